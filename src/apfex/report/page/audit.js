/* What only the page of an audit has: worst-off groups, thresholds, rows to collect. */

function drawWorst() {
  const { worst, share_favored: overall, worse_off: sure } = current();
  $("worst").hidden = worst.length === 0;
  $("worst-about").textContent = sure === 0 ? "None of these is clearly worse off than all rows." : "";
  const heads = [
    "Group",
    ["Rows", "number"],
    ["", "graph wide"],
    ["Favored", "number"],
    ...RATE_HEADS,
    ["Driven by", "wide"],
  ];
  const lowest = Math.min(...worst.map((row) => row.lower));
  const highest = Math.max(overall, ...worst.map((row) => row.upper));
  const driver = (row) => [nameNode(row.driver), ` (others ${percent(row.others)})`];
  const body = worst.slice(0, state.shownWorst).map((row) =>
    el(
      "tr",
      {},
      rowHead([nameNode(row.group), row.driver && narrowLine(["driven by ", driver(row)], "words")]),
      cell(count(row.count), "number"),
      rateCells(row.favored, row, overall, [lowest, highest]),
      cell(row.driver ? driver(row) : "–", "wide"),
    ),
  );
  $("worst-table").replaceChildren(
    table("Groups that get the favorable label least", heads, body),
    ...moreButton(worst.length - body.length, "shownWorst"),
  );
}
const startWorst = () => view(["shownWorst"], drawWorst);

function startThresholds() {
  if (!D.thresholds) return;
  $("thresholds").hidden = false;
  const [what, where] = [$("thresholds-criterion"), $("thresholds-by")];
  gapOptions(what, where);
  const draw = responsive($("thresholds-plot"), (width) => {
    const own = D.thresholds.find(({ criterion, by }) => criterion === what.value && by === where.value);
    const title = titleOf(own.criterion);
    const words = {
      x: "threshold of the score",
      y: `gap in ${title}`,
      label: `Gap in ${title} at ${own.threshold.length} thresholds; the table has the numbers`,
      top: tolerance,
    };
    const lines = [{ values: own.gap, css: "l0" }];
    const bound = (plot) => horizontalLine("tolerance", tolerance, plot);
    $("thresholds-plot").replaceChildren(linePlot(width, 260, own.threshold, lines, words, bound));
    drawThresholdTable(own);
  });
  for (const select of [what, where]) select.addEventListener("change", draw);
}
function drawThresholdTable(own) {
  const step = Math.max(1, Math.ceil(own.threshold.length / 11));
  const end = (name, rate) => (name ? [nameNode(name), ` ${percent(rate)}`] : "–");
  const places = own.threshold.map((_, n) => n).filter((n) => n % step === 0);
  const rows = places.map((n) =>
    el(
      "tr",
      {},
      rowHead(decimal(own.threshold[n]), "number"),
      cell(decimal(own.gap[n]), "number strong"),
      cell(end(own.lowest[n], own.lowest_rate[n])),
      cell(end(own.highest[n], own.highest_rate[n])),
    ),
  );
  const heads = [["Threshold", "number"], ["Gap", "number"], "Lowest group", "Highest group"];
  $("thresholds-table").replaceChildren(
    table("Gaps at some thresholds", heads, rows, { css: "numbered" }),
  );
}

function startPlan() {
  if (!D.plan.length) return;
  $("plan").hidden = false;
  const heads = [
    "Gap in",
    ["Between groups of", "wide"],
    ["More rows", "number"],
    ["Of these groups most", "wide"],
    ["Expected verdict", "wide"],
  ];
  const rows = D.plan.map((one) => {
    const settled = known(one.more_rows);
    const need = ({ group, more_rows: more }) => el("div", {}, nameNode(group), ` +${count(more)}`);
    const who = () => (settled ? one.groups.slice(0, 3).map(need) : "the gap lies at the tolerance");
    const verdict = () => {
      if (!settled) return "–";
      return one.expected in VERDICTS ? badge(one.expected) : one.expected;
    };
    const title = criterionOf.get(one.criterion).title;
    return el(
      "tr",
      {},
      rowHead([title, narrowLine(groupingName(one.by)), narrowLine(who(), "words")]),
      cell(groupingName(one.by), "wide"),
      cell([settled ? count(one.more_rows) : "no number would do", narrowLine(verdict())], "number strong"),
      cell(who(), "wide"),
      cell(verdict(), "wide"),
    );
  });
  $("plan-table").replaceChildren(table("Rows that would settle verdicts", heads, rows));
}
