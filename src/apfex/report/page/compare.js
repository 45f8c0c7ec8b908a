/* Two points side by side. */

const MOVERS = 8;

function compareRow(title, one, two, difference, constant) {
  return el(
    "tr",
    {},
    rowHead([title, narrowLine(difference)]),
    cell(one, "number"),
    cell(two, "number"),
    cell(difference, "number strong wide"),
    CONSTANT && cell(constant, "number wide"),
  );
}
const shareRow = (title, a, b, constant) =>
  compareRow(title, percent(a), percent(b), points(b - a), percent(constant));
function gapCell(gap) {
  const interval = el("span", { class: "quiet" }, between(gap.lower, gap.upper, decimal));
  return [decimal(gap.gap), el("br"), interval, el("br"), badge(gap.verdict)];
}
function compareGaps(a, b) {
  return D.criteria.map(({ key, title }) => {
    const [one, two] = [gapOf(a, key, crossing.by), gapOf(b, key, crossing.by)];
    const moved = known(one.gap) && known(two.gap) ? two.gap - one.gap : null;
    const difference = known(moved) ? signed(moved, decimal(moved)) : "–";
    return compareRow(`${title} gap`, gapCell(one), gapCell(two), difference, decimal(constantGap(key, crossing.by)));
  });
}
function drawCompare() {
  const [a, b] = [D.points[Number($("compare-a").value)], D.points[Number($("compare-b").value)]];
  const warnings = (point) => count(point.caveats.filter(({ level }) => level === "warning").length);
  const heads = [
    "Figure",
    [`Point ${a.point}`, "number"],
    [`Point ${b.point}`, "number"],
    ["Difference", "number wide"],
    ...(CONSTANT ? [[CONSTANT, "number wide"]] : []),
  ];
  const constant = D.constant || {};
  const body = [
    shareRow("Error", a.error, b.error, constant.error),
    shareRow("Balanced error", a.balanced_error, b.balanced_error, constant.balanced_error),
    ...compareGaps(a, b),
    shareRow("Favorable decisions", a.share_favored, b.share_favored, constant.share_favored),
    compareRow("Reasons for caution", warnings(a), warnings(b), "", ""),
  ];
  const caption = `Point ${a.point} and point ${b.point} side by side`;
  $("compare-table").replaceChildren(table(caption, heads, body, { css: "compare" }));
  const rates = (point) => point.rates.favored.groupings[crossing.by];
  const moved = crossing.groups
    .map((group, g) => ({ ...group, one: rates(a).rate[g], two: rates(b).rate[g] }))
    .map((row) => ({ ...row, moved: row.two - row.one }))
    .sort((x, y) => Math.abs(y.moved) - Math.abs(x.moved));
  const line = (row) =>
    el(
      "tr",
      {},
      groupCells(crossing, row, narrowLine(points(row.moved))),
      cell(percent(row.one), "number"),
      cell(percent(row.two), "number"),
      cell(points(row.moved), "number strong wide"),
    );
  const rows = moved.slice(0, state.printed ? moved.length : MOVERS).map(line);
  const left = moved.length - rows.length;
  const groupHead = [...groupHeads(crossing), ...heads.slice(1, 4)];
  const caption2 = `Favorable decisions at points ${a.point} and ${b.point}`;
  $("compare-groups").replaceChildren(
    el("h3", {}, "Favorable decisions of groups, largest change first"),
    table(caption2, groupHead, rows, { all: () => moved.map(line) }),
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
  view(["printed"], drawCompare);
}
