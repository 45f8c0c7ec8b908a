/* Every group with its rate and interval; of hundreds the lowest first. */

/* Groups of few rows come last in any order, so that their chance does not lead. */
const ORDERS = {
  low: (a, b) => a.rate - b.rate || a.upper - b.upper,
  high: (a, b) => b.rate - a.rate || b.lower - a.lower,
  far: (a, b) => b.away - a.away,
  rows: (a, b) => b.rows - a.rows,
};
function groupRows(by, key) {
  const { groupings, overall } = current().rates[key];
  const everyone = overall.rate[0];
  const { rate, lower, upper, few } = groupings[by];
  const small = new Set(few);
  return groupingOf.get(by).groups.map((group, g) => ({
    ...group,
    rate: rate[g],
    lower: lower[g],
    upper: upper[g],
    difference: rate[g] - everyone,
    away: Math.max(lower[g] - everyone, everyone - upper[g]),
    few: small.has(g),
  }));
}
function drawGroups() {
  const grouping = groupingOf.get($("groups-by").value);
  const rate = rateOf.get(state.rate);
  const everyone = current().rates[rate.key].overall.rate[0];
  const all = groupRows(grouping.by, rate.key).filter((row) => known(row.rate));
  const order = ORDERS[$("groups-order").value];
  all.sort((a, b) => Number(a.few) - Number(b.few) || order(a, b));
  const { shown, left, found } = someOf(all, $("groups-filter").value, state.shownGroups);
  const [from, to] = [Math.min(...all.map((row) => row.lower)), Math.max(...all.map((row) => row.upper))];
  const heads = [
    ...groupHeads(grouping),
    ["Rows", "number"],
    [`${percent(from, 0)} to ${percent(to, 0)}`, "graph wide"],
    ["Rate", "number"],
    ...RATE_HEADS,
  ];
  const counted = all.filter((row) => !row.few).map((row) => row.rate);
  const [lowest, highest] = [Math.min(...counted), Math.max(...counted)];
  const end = ({ few, rate: own }) => {
    if (few || lowest === highest || (own !== lowest && own !== highest)) return null;
    return el("span", { class: "tag" }, own === lowest ? "▼ lowest" : "▲ highest");
  };
  const line = (row) =>
    el(
      "tr",
      { class: row.few ? "few" : null },
      groupCells(grouping, row, row.few && el("sup", { title: "few rows" }, "†"), end(row)),
      cell(count(row.rows), "number"),
      rateCells(row.rate, row, everyone, [from, to]),
    );
  const caption = `${rate.title} of groups of ${byText(grouping.by)}`;
  $("groups-table").replaceChildren(
    found ? table(caption, heads, shown.map(line), { all: () => all.map(line) }) : nobody(),
    ...moreButton(left, "shownGroups", grouping),
    el(
      "p",
      { class: "quiet" },
      `${rate.title}: ${rate.text}. The upright line is the rate of all rows, ${percent(everyone)}; `,
      "bars are Wilson intervals.",
      all.some((row) => row.few) && ` ${FEW} in no gap, and listed last.`,
    ),
  );
  $("groups-rate").value = rate.key;
}
function startGroups() {
  groupingOptions($("groups-by"));
  options($("groups-rate"), D.rates.map(({ key, title }) => [key, title]), state.rate);
  $("groups-rate").addEventListener("change", () => {
    $("rate").value = $("groups-rate").value;
    choose({ rate: $("groups-rate").value });
  });
  for (const id of ["groups-by", "groups-order"]) $(id).addEventListener("change", drawGroups);
  $("groups-filter").addEventListener("input", drawGroups);
  view(["point", "rate", "shownGroups", "printed"], drawGroups);
}
