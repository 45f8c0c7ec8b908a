/* What only the page of an audit has: worst-off groups, thresholds, rows to collect. */

function drawWorst() {
  const { worst, share_favored: overall, worse_off: sure, summary } = current();
  const larger = summary.larger.slice(0, 3).flatMap(({ group, favored }, place) => [
    place ? ", " : " Larger groups that are clearly worse off: ",
    nameNode(group),
    ` (${percent(favored)})`,
  ]);
  const rest = summary.larger.length - 3;
  if (larger.length) larger.push(rest > 0 ? `, and ${count(rest)} more.` : ".");
  $("worst").hidden = worst.length === 0;
  const clear = sure === 1 ? "1 is" : `${count(sure)} are`;
  $("worst-about").replaceChildren(
    sure === 0
      ? "None of these is clearly worse off than all rows."
      : `${clear} clearly worse off than all rows, and listed first; then the lowest rate first.`,
    ...larger,
  );
  const isDriven = crossing.attributes.length > 1;
  const heads = [
    ...groupHeads(crossing),
    ["Rows", "number"],
    ["", "graph wide"],
    ["Favored", "number"],
    ...RATE_HEADS,
    "Clearly worse off",
    ...(isDriven ? [["Driven by", "wide"]] : []),
  ];
  const lowest = Math.min(...worst.map((row) => row.lower));
  const highest = Math.max(overall, ...worst.map((row) => row.upper));
  const driver = (row) => [nameNode(row.driver), ` (others ${percent(row.others)})`];
  const line = (row) =>
    el(
      "tr",
      {},
      groupCells(
        crossing,
        { name: row.group, values: row.values },
        row.driver && narrowLine(["driven by ", driver(row)], "words"),
      ),
      cell(count(row.count), "number"),
      rateCells(row.favored, row, overall, [lowest, highest]),
      cell(row.clearly_below ? "yes" : "not clearly"),
      isDriven && cell(row.driver ? driver(row) : "–", "wide"),
    );
  const body = worst.slice(0, state.printed ? worst.length : state.shownWorst).map(line);
  $("worst-table").replaceChildren(
    table("Groups that get the favorable decision least", heads, body, { all: () => worst.map(line) }),
    ...moreButton(worst.length - body.length, "shownWorst"),
  );
}
const startWorst = () => view(["shownWorst", "printed"], drawWorst);

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
  const places = own.threshold.map((_, n) => n);
  const line = (n) =>
    el(
      "tr",
      {},
      rowHead(decimal(own.threshold[n]), "number"),
      cell(decimal(own.gap[n]), "number strong"),
      cell(end(own.lowest[n], own.lowest_rate[n])),
      cell(end(own.highest[n], own.highest_rate[n])),
    );
  const rows = places.filter((n) => n % step === 0).map(line);
  const heads = [["Threshold", "number"], ["Gap", "number"], "Lowest group", "Highest group"];
  $("thresholds-table").replaceChildren(
    table("Gaps at some thresholds", heads, rows, { css: "numbered", all: () => places.map(line) }),
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
    const who = () => (settled ? one.groups.slice(0, 3).map(need) : "the gap lies at the limit");
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
