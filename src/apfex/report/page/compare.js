/* Two points side by side. */

const MOVERS = 8;

function compareRow(title, one, two, difference) {
  return el(
    "tr",
    {},
    rowHead([title, narrowLine(difference)]),
    cell(one, "number"),
    cell(two, "number"),
    cell(difference, "number strong wide"),
  );
}
function shareRow(title, a, b) {
  return compareRow(title, percent(a), percent(b), points(b - a));
}
function gapCell(gap) {
  const interval = el("span", { class: "quiet" }, between(gap.lower, gap.upper, decimal));
  return [decimal(gap.gap), el("br"), interval, el("br"), badge(gap.verdict)];
}
function compareGaps(a, b) {
  return D.criteria.map(({ key, title }) => {
    const [one, two] = [gapOf(a, key, crossing.by), gapOf(b, key, crossing.by)];
    const moved = known(one.gap) && known(two.gap) ? two.gap - one.gap : null;
    const difference = known(moved) ? signed(moved, decimal(moved)) : "–";
    return compareRow(`${title} gap`, gapCell(one), gapCell(two), difference);
  });
}
function drawCompare() {
  const [a, b] = [D.points[Number($("compare-a").value)], D.points[Number($("compare-b").value)]];
  const warnings = (point) => plural(point.caveats.filter(({ level }) => level === "warning").length, "caveat");
  const heads = [
    "Figure",
    [`Point ${a.point}`, "number"],
    [`Point ${b.point}`, "number"],
    ["Difference", "number wide"],
  ];
  const body = [
    shareRow("Error", a.error, b.error),
    shareRow("Balanced error", a.balanced_error, b.balanced_error),
    ...compareGaps(a, b),
    shareRow("Favorable decisions", a.share_favored, b.share_favored),
    compareRow("Trust", warnings(a), warnings(b), ""),
  ];
  const caption = `Point ${a.point} and point ${b.point} side by side`;
  $("compare-table").replaceChildren(table(caption, heads, body, { css: "compare" }));
  const rates = (point) => point.rates.favored.groupings[crossing.by];
  const moved = crossing.groups
    .map((group, g) => ({ name: group.name, one: rates(a).rate[g], two: rates(b).rate[g] }))
    .map((row) => ({ ...row, moved: row.two - row.one }))
    .sort((x, y) => Math.abs(y.moved) - Math.abs(x.moved));
  const rows = moved.slice(0, MOVERS).map((row) => shareRow(nameNode(row.name), row.one, row.two));
  const left = moved.length - rows.length;
  $("compare-groups").replaceChildren(
    el("h3", {}, "Favorable decisions of groups, largest change first"),
    table(`Favorable decisions at points ${a.point} and ${b.point}`, ["Group", ...heads.slice(1)], rows),
    left > 0 ? el("p", { class: "quiet" }, `${plural(left, "group")} with a smaller change not shown.`) : "",
  );
}
function startCompare() {
  if (D.points.length < 2) return;
  $("compare").hidden = false;
  const pairs = D.points.map(({ point }) => [String(point), String(point)]);
  const other = D.chosen === D.baseline ? D.points.length - 1 : D.chosen;
  options($("compare-a"), pairs, String(D.baseline));
  options($("compare-b"), pairs, String(other));
  for (const id of ["compare-a", "compare-b"]) $(id).addEventListener("change", drawCompare);
  view(["point"], () => {
    if (state.point === Number($("compare-a").value)) return;
    $("compare-b").value = String(state.point);
    drawCompare();
  });
  drawCompare();
}
