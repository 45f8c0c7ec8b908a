/* Whose decisions differ from the starting point, by the favorable label. */

const WORDS = {
  1: ["▲", "gains", "gain"],
  "-1": ["▼", "loses", "lose"],
  0: ["•", "no clear change", ""],
};

/* Rows that match what is typed, some of them, and how many are left. */
function someOf(rows, text, most) {
  const wanted = text.trim().toLocaleLowerCase();
  const found = wanted ? rows.filter(({ name }) => shownName(name).toLocaleLowerCase().includes(wanted)) : rows;
  const limit = state.printed ? found.length : most;
  return { shown: found.slice(0, limit), left: Math.max(0, found.length - limit), found: found.length };
}
const nobody = () => el("p", {}, "No group has such a name.");
function moreButton(left, key, grouping = { left_out: 0 }) {
  const parts = [];
  if (left > 0) {
    const onclick = () => choose({ [key]: state[key] + 50 });
    const text = left > 50 ? `Show 50 more of ${count(left)}` : `Show ${count(left)} more`;
    parts.push(el("button", { type: "button", class: "more no-print", onclick }, text));
  }
  if (grouping.left_out) {
    const who = `${plural(grouping.left_out, "further group")} of this grouping`;
    const why = "not on this page: those here are worst off at some point, or make a gap.";
    parts.push(el("p", { class: "quiet" }, `${who} ${grouping.left_out === 1 ? "is" : "are"} ${why}`));
  }
  return parts;
}

function changeMark(row, most, width = 200, height = 20) {
  const scale = linear(0, most || 1, 0, width / 2 - 2);
  const middle = width / 2;
  const lost = scale(row.lost / row.rows);
  const gained = scale(row.gained / row.rows);
  return svg(
    "svg",
    { class: "change-mark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    svg("rect", { class: "lose", x: middle - lost, y: 4, width: lost, height: height - 8 }),
    svg("rect", { class: "gain", x: middle, y: 4, width: gained, height: height - 8 }),
    svg("line", { class: "axis", x1: middle, x2: middle, y1: 0, y2: height }),
  );
}
function changeRows(by) {
  const point = current();
  const { gained, lost, net_share: net, direction } = point.changes[by];
  const now = point.rates.favored.groupings[by].rate;
  const before = D.points[D.baseline].rates.favored.groupings[by].rate;
  return groupingOf.get(by).groups.map((group, g) => ({
    ...group,
    gained: gained[g],
    lost: lost[g],
    net: net[g],
    direction: direction[g],
    now: now[g],
    before: before[g],
  }));
}
function drawChanges() {
  const point = current();
  const box = $("changes-table");
  if (isBaseline(point)) {
    $("changes-about").textContent =
      "The others are compared with this point; choose another to see whose decisions it changes.";
    box.replaceChildren();
    return;
  }
  const grouping = groupingOf.get($("changes-by").value);
  const sign = $("changes-order").value === "gain" ? -1 : 1;
  const rows = changeRows(grouping.by).sort((a, b) => sign * (a.direction - b.direction || a.net - b.net));
  const { gained, lost } = point.tally;
  const get = `${count(gained)} people get “${visible(D.favorable)}” who did not`;
  $("changes-about").textContent =
    `Against point ${D.baseline}: ${get}, ${count(lost)} no longer do.`;
  const { shown, left, found } = someOf(rows, $("changes-filter").value, state.shownChanges);
  const most = Math.max(0, ...rows.map((row) => Math.max(row.gained, row.lost) / row.rows));
  const heads = [
    ...groupHeads(grouping),
    ["Rows", "number wide"],
    ["lost | gained", "graph middle wide"],
    ["Lost", "number"],
    ["Gained", "number"],
    ["Net", "number"],
    ["Favored before, now", "number wide"],
    ["Change", "wide"],
  ];
  const line = (row) => {
    const [mark, word, css] = WORDS[row.direction];
    return el(
      "tr",
      {},
      groupCells(grouping, row),
      cell(count(row.rows), "number wide"),
      cell(changeMark(row, most), "graph middle wide"),
      cell(count(row.lost), "number"),
      cell(count(row.gained), "number"),
      cell([points(row.net), narrowLine([mark, " ", word], "words")], "number strong"),
      cell(`${percent(row.before)} → ${percent(row.now)}`, "number wide"),
      cell([el("span", { class: css, "aria-hidden": "true" }, mark), " ", word], "word wide"),
    );
  };
  const caption = `Who gains and who loses at point ${point.point}`;
  box.replaceChildren(
    found ? table(caption, heads, shown.map(line), { all: () => rows.map(line) }) : nobody(),
    ...moreButton(left, "shownChanges", grouping),
  );
}
function startChanges() {
  $("changes").hidden = false;
  groupingOptions($("changes-by"));
  for (const id of ["changes-by", "changes-order"]) $(id).addEventListener("change", drawChanges);
  $("changes-filter").addEventListener("input", drawChanges);
  view(["point", "shownChanges", "printed"], drawChanges);
}
