/* What only the page of an audit has: worst-off groups, thresholds, rows to collect. */

function startWorst() {
  const { worst, share_favored: overall, worse_off: sure } = current();
  $("worst").hidden = worst.length === 0;
  $("worst-about").textContent = sure === 0 ? "None of these is clearly worse off than all rows." : "";
  const heads = [
    "Group",
    ["Rows", "number"],
    ["", "graph wide"],
    ["Favored", "number"],
    ["Interval", "number wide"],
    ["To all rows", "number wide"],
    ["Driven by", "wide"],
  ];
  const lowest = Math.min(...worst.map((row) => row.lower));
  const highest = Math.max(overall, ...worst.map((row) => row.upper));
  const driver = (row) => [nameNode(row.driver), ` (others ${percent(row.others)})`];
  const body = worst.map((row, n) =>
    el(
      "tr",
      { hidden: n >= 10 },
      rowHead([nameNode(row.group), row.driver && narrowLine(["driven by ", driver(row)], "words")]),
      cell(count(row.count), "number"),
      cell(rateMark(row.favored, row.lower, row.upper, overall, [lowest, highest]), "graph wide"),
      cell([percent(row.favored), narrowLine(between(row.lower, row.upper, percent))], "number strong"),
      cell(between(row.lower, row.upper, percent), "number wide"),
      cell(points(row.difference), "number wide"),
      cell(row.driver ? driver(row) : "–", "wide"),
    ),
  );
  $("worst-table").replaceChildren(table("Groups that get the favorable label least", heads, body));
  const hidden = body.filter((row) => row.hidden);
  if (!hidden.length) return;
  const more = el("button", { type: "button", class: "more no-print" }, `Show ${count(hidden.length)} more`);
  more.addEventListener("click", () => {
    for (const row of hidden) row.hidden = false;
    more.remove();
  });
  $("worst-table").append(more);
}

function startThresholds() {
  if (!D.thresholds) return;
  $("thresholds").hidden = false;
  const [what, where] = [$("thresholds-criterion"), $("thresholds-by")];
  options(what, D.criteria.map(({ key, title }) => [key, title.toLowerCase()]), D.criteria[0].key);
  options(where, D.levels.map(({ by }) => [by, byText(by)]), crossing.by);
  const draw = responsive($("thresholds-plot"), (width) => {
    const own = D.thresholds.find(({ criterion, by }) => criterion === what.value && by === where.value);
    const title = titleOf(own.criterion);
    const words = {
      x: "threshold of the score",
      y: `gap in ${title}`,
      xForm: (value, digits) => value.toFixed(digits),
      label: `Gap in ${title} at ${own.threshold.length} thresholds; the table has the numbers`,
      top: tolerance,
    };
    const lines = [{ values: own.gap, css: "l0" }];
    const bound = (plot) => levelLine("tolerance", tolerance, plot);
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
      rowHead([title, narrowLine(levelName(one.by)), narrowLine(who(), "words")]),
      cell(levelName(one.by), "wide"),
      cell([settled ? count(one.more_rows) : "no number would do", narrowLine(verdict())], "number strong"),
      cell(who(), "wide"),
      cell(verdict(), "wide"),
    );
  });
  $("plan-table").replaceChildren(table("Rows that would settle verdicts", heads, rows));
}
