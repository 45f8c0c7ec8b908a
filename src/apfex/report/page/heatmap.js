/* Rates of two attributes against each other. */

const STEPS_OF_HEAT = 7;
const MOST_ROWS = 60;
const MOST_COLUMNS = 30;
const FEW = `† fewer than ${D.settings.min_count} rows count:`;
const attributes = D.groupings.filter((grouping) => grouping.attributes.length === 1).map(({ by }) => by);

/* The grouping of one attribute, or of two in whichever order. */
function heatGrouping(down, across) {
  const wanted = new Set([down, across]);
  const fits = (own) => own.length === wanted.size && own.every((name) => wanted.has(name));
  return D.groupings.find((grouping) => fits(grouping.attributes));
}
/* Ends of the colours: over all points, so that colours stay comparable along the front. */
function rateRange(by, key) {
  const all = D.points.flatMap((point) => point.rates[key].groupings[by].rate).filter(known);
  return all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
}
const heatOf = (rate, [from, to]) =>
  Math.min(STEPS_OF_HEAT - 1, Math.floor((STEPS_OF_HEAT * (rate - from)) / (to - from || 1)));

/* Places of the lowest and the highest rate among groups with enough rows. */
function endsOf(column) {
  const few = new Set(column.few);
  const counted = column.rate.map((rate, g) => [rate, g]).filter(([rate, g]) => known(rate) && !few.has(g));
  if (counted.length < 2) return {};
  const ordered = counted.sort((a, b) => a[0] - b[0]);
  if (ordered[0][0] === ordered[ordered.length - 1][0]) return {};
  return { [ordered[0][1]]: "▼ lowest", [ordered[ordered.length - 1][1]]: "▲ highest" };
}
function heatCell(g, grouping, column, range, extremes) {
  if (g === undefined) return cell("", "empty");
  const rate = column.rate[g];
  if (!known(rate)) return cell("–", "empty");
  const few = column.few.includes(g);
  const { name, rows } = grouping.groups[g];
  const interval = between(column.lower[g], column.upper[g], percent);
  const size = `${plural(rows, "row")}${few ? ", too few that count" : ""}`;
  return el(
    "td",
    {
      class: `heat h${heatOf(rate, range)}${few ? " few" : ""}${extremes[g] ? " end" : ""}`,
      title: `${shownName(name)}: ${percent(rate)} (${interval}), ${size}`,
    },
    el("span", { class: "value" }, percent(rate), few && el("sup", { "aria-label": "few rows" }, "†")),
    el("span", { class: "rows" }, count(rows), extremes[g] && ` ${extremes[g]}`),
  );
}
function drawHeat() {
  const [down, across] = [$("heat-rows").value, $("heat-columns").value];
  const grouping = heatGrouping(down, across);
  const rate = rateOf.get(state.rate);
  const column = current().rates[rate.key].groupings[grouping.by];
  const range = rateRange(grouping.by, rate.key);
  const extremes = endsOf(column);
  const alone = grouping.attributes.length === 1;
  const places = new Map();
  grouping.groups.forEach(({ values }, g) => {
    const value = (name) => values[grouping.attributes.indexOf(name)];
    const row = value(down);
    if (!places.has(row)) places.set(row, new Map());
    places.get(row).set(alone ? "" : value(across), g);
  });
  const inOrder = (name) => groupingOf.get(name).groups.map(({ values }) => values[0]);
  const overall = current().rates[rate.key].overall.rate[0];
  const away = (g) => Math.max(column.lower[g] - overall, overall - column.upper[g]);
  const byColumn = turned(places);
  const columns = alone
    ? [""]
    : farthest(ordered(inOrder(across), byColumn), byColumn, away, MOST_COLUMNS);
  const rows = farthest(ordered(inOrder(down), places), places, away, MOST_ROWS);
  const heads = [
    alone ? nameNode(down) : el("div", {}, el("div", {}, nameNode(`${down} ↓`)), nameNode(`${across} →`)),
    ...columns.map((name) => [alone ? rate.title : nameNode(name), "heat-head"]),
  ];
  const body = rows.map((name) => {
    const own = places.get(name);
    const cells = columns.map((other) => heatCell(own.get(other), grouping, column, range, extremes));
    return el("tr", {}, rowHead(nameNode(name)), cells);
  });
  $("heat-map").replaceChildren(
    table(`${rate.title} by ${nameText(grouping.attributes.join(" and "))}`, heads, body, { css: "heat-table" }),
    ...leftOutOfMap(rows.length, places.size, columns.length, byColumn.size),
    ...moreButton(0, "", grouping),
  );
  $("heat-about").textContent = `${rate.title}: ${rate.text}; ${percent(overall)} of all rows.`;
  drawHeatLegend(range, column.few.length > 0);
}
/* Places of groups by column, then row. */
function turned(places) {
  const found = new Map();
  for (const [row, own] of places) {
    for (const [column, g] of own) {
      if (!found.has(column)) found.set(column, new Map());
      found.get(column).set(row, g);
    }
  }
  return found;
}
/* Of too many values those with a group whose rate is surely farthest from that of all rows. */
function farthest(names, places, away, most) {
  if (names.length <= most) return names;
  const size = (name) => Math.max(...[...places.get(name).values()].map(away));
  const far = new Map(names.map((name) => [name, size(name)]));
  const kept = new Set([...names].sort((a, b) => far.get(b) - far.get(a)).slice(0, most));
  return names.filter((name) => kept.has(name));
}
function leftOutOfMap(rows, allRows, columns, allColumns) {
  if (rows === allRows && columns === allColumns) return [];
  const part = (some, all) => `${count(some)} of ${count(all)}`;
  const shown = `${part(rows, allRows)} values down and ${part(columns, allColumns)} across`;
  return [el("p", { class: "quiet" }, `Shown are ${shown}, farthest from the rate of all rows.`)];
}
/* Values in the order of their attribute; those of groups that are not shown there come last. */
function ordered(order, places) {
  const used = new Set(places.keys());
  const first = order.filter((name) => used.has(name));
  return [...first, ...[...used].filter((name) => !first.includes(name))];
}
function drawHeatLegend([from, to], few) {
  const boxes = Array.from({ length: STEPS_OF_HEAT }, (_, n) => el("span", { class: `heat h${n}` }));
  $("heat-legend").replaceChildren(
    el(
      "p",
      { class: "heat-scale" },
      percent(from),
      el("span", { class: "boxes", "aria-hidden": "true" }, boxes),
      percent(to),
      D.points.length > 1 && el("span", { class: "quiet" }, "(the same colours at every point)"),
    ),
    el("p", { class: "quiet" }, "Below each rate: rows of the group. ▼ and ▲ mark the lowest and the highest of those compared.", few && ` ${FEW} shown, but in no gap.`),
  );
}
function startHeat() {
  options($("rate"), D.rates.map(({ key, title }) => [key, title]), state.rate);
  $("rate").addEventListener("change", () => choose({ rate: $("rate").value }));
  const pairs = attributes.map((name) => [name, nameText(name)]);
  // The attribute with more values goes down, so that the map fits a page.
  const size = (name) => groupingOf.get(name).groups.length;
  const [down, across] = attributes.length < 2 ? [attributes[0]] : attributes.slice(0, 2).sort((a, b) => size(b) - size(a));
  options($("heat-rows"), pairs, down);
  options($("heat-columns"), pairs, across || down);
  for (const id of ["heat-rows", "heat-columns"]) {
    $(id).closest("label").hidden = attributes.length < 2;
    $(id).addEventListener("change", drawHeat);
  }
  view(["point", "rate"], drawHeat);
}
