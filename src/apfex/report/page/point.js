/* The panel of one point, or of the audit: what it is, whether to trust it, how to use it. */

const isBaseline = (point) => point.point === D.baseline;
const RANK = (D.ranked_by || "error").replaceAll("_", " ");
const CHOSE = `${RANK === "error" ? "the most accurate" : `that with the lowest ${RANK}`} on the validation rows`;
const mainGaps = (point) => D.criteria.map(({ key }) => gapOf(point, key, crossing.by));
/* Of each criterion the gap with the most alarming verdict, then the largest lower end and gap. */
const alarm = ({ verdict }) => Object.keys(VERDICTS).indexOf(verdict);
const moreAlarming = (a, b) => alarm(a) - alarm(b) || b.lower - a.lower || b.gap - a.gap;
const worstGaps = (point) =>
  D.criteria.map(({ key }) => point.gaps.filter((gap) => gap.criterion === key).sort(moreAlarming)[0]);
/* Of an audit that of its summary, which looks into strata, too. */
const worstVerdict = (point) =>
  point.verdict ?? Object.keys(VERDICTS).find((verdict) => point.gaps.some((gap) => gap.verdict === verdict));

const titleOf = (criterion) => criterionOf.get(criterion).title.toLowerCase();

/* Sentences of the summary: text, and names from data. */
const sentence = (parts) => parts.map((part) => (part.group ? nameNode(part.group) : visible(part)));
function drawSummary(point) {
  const { headline, parts } = point.summary;
  const useless = D.conclusion && D.conclusion.code === "no_usable_model";
  $("headline").textContent = visible(useless ? D.conclusion.text : headline);
  const css = useless || D.trivial ? "violation" : VERDICTS[worstVerdict(point)].css;
  $("headline").className = `headline ${css}`;
  $("summary").replaceChildren(
    ...parts.map(({ title, text }) => el("div", {}, el("dt", {}, title), el("dd", {}, sentence(text)))),
  );
}

const quiet = (...text) => el("p", { class: "quiet" }, ...text);
function card(title, big, ...more) {
  return el(
    "div",
    { class: "card" },
    el("h3", {}, title),
    el("p", { class: "big" }, big),
    more.flat().map((line) => (line && !(line instanceof Element) ? quiet(line) : line)),
  );
}
function errorCard(point) {
  const most = D.points[D.baseline];
  const extra = isBaseline(point) ? "" : `; ${points(point.error - most.error)} against point ${most.point}`;
  return card(
    "Error",
    percent(point.error),
    `${between(point.error_lower, point.error_upper, percent)}${extra}`,
    `balanced error ${percent(point.balanced_error)}`,
    CONSTANT && `${CONSTANT}: ${percent(D.constant.error)}, balanced ${percent(D.constant.balanced_error)}`,
    CONSTANT && gainLine(point),
    validationLine(percent(point.validation.error)),
  );
}
/* What a point gains over the constant decision. */
const gainText = (point) => `${signed(point.gain, (100 * point.gain).toFixed(1))} pts`;
const shareText = (point) => (known(point.gain_share) ? `${percent(point.gain_share, 0)} of the way to the best` : "");
function gainLine(point) {
  const [gained, share] = [gainText(point), shareText(point)];
  const flag = point.near_constant && el("span", { class: "tag flag" }, "near constant");
  return el("p", { class: "quiet" }, `gain over it ${gained}${share && `, ${share}`} `, flag);
}
const comparedText = (gap) => `${count(gap.groups_compared)} of ${plural(gap.groups, "group")} compared`;
const validationLine = (text) => el("p", { class: "quiet validation" }, `On the validation rows: ${text}`);

/* Every group with a row counted when the points were found; here it needs more of them. */
const SMALL_TOO = `with groups of fewer than ${D.settings.min_count} rows`;
function comparedGap({ gap, compared }) {
  if (!known(compared)) return `${decimal(gap)}, ${SMALL_TOO}: not to be compared`;
  const other = decimal(compared) === decimal(gap) ? "" : ` (${decimal(gap)} ${SMALL_TOO}, as it was chosen)`;
  return decimal(compared) + other;
}

/* Groups with a number each. */
const ends = (...pairs) =>
  el(
    "ul",
    { class: "ends quiet" },
    pairs.map(([name, text]) => el("li", {}, nameNode(name), el("span", {}, text))),
  );

function gapCard(point, gap) {
  const criterion = criterionOf.get(gap.criterion);
  const chosen = isFront && point.validation.gaps[gap.criterion];
  const top = gapTop(D.points.flatMap(worstGaps).filter((one) => one.criterion === gap.criterion));
  const others = point.gaps.length > D.criteria.length;
  const aimed = gap.by === crossing.by ? "" : "; of the groups that models were compared by";
  const [low, high] = gap.ends;
  return card(
    [`${criterion.title} gap`, criterion.also && el("span", { class: "also" }, ` ${criterion.also}`)],
    [decimal(gap.gap), " ", badge(gap.verdict)],
    others && quiet("between groups of ", groupingName(gap.by), ", the most alarming grouping"),
    gapMark(gap, top, 240),
    known(gap.gap)
      ? `${between(gap.lower, gap.upper, decimal)}; noise floor ${decimal(gap.noise_floor)}`
      : "fewer than two groups have enough rows",
    comparedText(gap),
    low && low.rate < high.rate && ends([low.group, `lowest ${percent(low.rate)}`], [high.group, `highest ${percent(high.rate)}`]),
    chosen && validationLine(comparedGap(chosen) + aimed),
  );
}

function gainCard(point) {
  const { groups_gain: gain, groups_lose: lose, gained, lost } = point.tally;
  const { direction, net_share: net } = point.changes[crossing.by];
  const named = crossing.groups.map((group, g) => ({ name: group.name, net: net[g], direction: direction[g] }));
  const extreme = (sign) =>
    named.filter((one) => one.direction === sign).sort((a, b) => sign * (b.net - a.net))[0];
  const line = (one, word) => one && [quiet(`${word} most`), ends([one.name, points(one.net)])];
  const get = `${percent(point.share_favored)} of all rows get “${visible(D.favorable)}”`;
  if (isBaseline(point)) {
    const why = "the others are compared with this point";
    return card("Favorable decisions", percent(point.share_favored), get, why);
  }
  return card(
    "Favorable decisions",
    [
      el("span", { class: "gain" }, `▲ ${gain}`),
      " ",
      el("span", { class: "lose" }, `▼ ${lose}`),
      el("span", { class: "unit" }, " groups gain, lose"),
    ],
    `${get}: ${count(gained)} people gained it, ${count(lost)} lost it`,
    line(extreme(1), "Gains"),
    line(extreme(-1), "Loses"),
  );
}
function favoredCard(point) {
  const [worst] = [...point.summary.larger, ...point.worst.filter((row) => row.clearly_below)];
  return card(
    "Favorable decisions",
    percent(point.share_favored),
    `of ${plural(D.rows, "row")} get “${visible(D.favorable)}”`,
    worst && [quiet("Surely below the average"), ends([worst.group, percent(worst.favored)])],
    known(point.error) && `wrong for ${percent(point.error)}; ${CONSTANT}: ${percent(D.constant.error)}`,
  );
}

/* What may be said where the list is empty: never more than the verdicts say. */
const NO_CAVEAT = {
  violation: "A gap exceeds the limit; see the gaps below.",
  inconclusive: "No warning; but there is too little data to tell whether a gap exceeds the limit.",
  "not estimable": "No warning; but some gaps cannot be measured, as too few rows count.",
  "within tolerance": "Nothing stands against it: every gap is within the limit, and no check gave a warning.",
};
function caveatList(point) {
  const list = point.caveats;
  const title = isFront ? "Reasons for caution" : "What to know of these decisions";
  const warned = list.some(({ level }) => level === "warning");
  const none = warned ? null : quiet(NO_CAVEAT[worstVerdict(point)]);
  if (!list.length) return [el("h3", {}, title), none];
  const items = list.map(({ level, text, data: { groups = [] } }) =>
    el(
      "li",
      { class: level === "note" ? "caveat note" : "caveat" },
      el("span", { class: "symbol", "aria-hidden": "true" }, level === "note" ? "i" : "!"),
      el("span", {}, visible(text), groups.length > 0 && namesOf(groups)),
    ),
  );
  return [el("h3", {}, title), none, el("ul", {}, items)].filter(Boolean);
}
function namesOf(groups, most = 6) {
  const name = (one, place) => el("li", { class: place < most ? null : "print-only" }, nameNode(one));
  const rest = groups.length - most;
  const more = rest > 0 && el("li", { class: "no-print" }, `and ${count(rest)} more`);
  return el("ul", { class: "names" }, groups.map(name), more);
}

function commandOf(place) {
  return D.command ? `${D.command} --point ${place}` : `clf.at(${place}).predict(X)`;
}

const CHOSEN = {
  bounds: "proposed",
  nearest: "comes closest to your limit",
  hand: "chosen by hand",
};
const chosenTag = () => (D.trivial ? "not usable" : CHOSEN[D.chosen_by]);
function drawPoint() {
  const point = current();
  const tags = [
    point.point === D.chosen && chosenTag(),
    isBaseline(point) && "starting point",
    point.trivial && "trivial",
    point.near_constant && "near constant",
  ].filter(Boolean);
  $("now-title").replaceChildren(
    isFront ? `Point ${point.point}` : "What the decisions show",
    ...(isFront ? tags.flatMap((tag) => [" ", el("span", { class: "tag" }, tag)]) : []),
  );
  drawSummary(point);
  const gapCards = worstGaps(point).map((gap) => gapCard(point, gap));
  const parts = isFront ? [errorCard(point), ...gapCards, gainCard(point)] : [...gapCards, favoredCard(point)];
  $("cards").replaceChildren(...parts);
  $("figures-title").textContent = isFront ? `Figures of point ${point.point}` : "Figures";
  $("caveats").replaceChildren(...caveatList(point));
  if (isFront) $("point").value = String(point.point);
}
function drawTick() {
  const here = state.ticked === state.point;
  $("tick").checked = here;
  $("command").hidden = !here;
  $("command-text").textContent = commandOf(state.point);
  $("copied").textContent = "";
  $("taken").textContent =
    state.ticked === null ? "" : `Ticked to predict with: point ${state.ticked}.`;
  drawSigned();
}

async function copyCommand() {
  const text = $("command-text").textContent;
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = "Copied.";
  } catch {
    const range = document.createRange();
    range.selectNodeContents($("command-text"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    $("copied").textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with Ctrl+C.";
  }
}

function startPoint() {
  view(["point"], drawPoint);
  if (D.weighted) $("figures-note").textContent = "Rows are weighted.";
  if (!isFront) return;
  view(["point", "ticked"], drawTick);
  $("mover").hidden = $("take").hidden = false;
  $("last").textContent = D.points.length - 1;
  options($("point"), D.points.map((point) => [String(point.point), point.point]), String(state.point));
  $("point").addEventListener("change", () => choose({ point: Number($("point").value) }));
  $("previous").addEventListener("click", () => move(-1));
  $("next").addEventListener("click", () => move(1));
  $("tick").addEventListener("change", () => choose({ ticked: $("tick").checked ? state.point : null }));
  $("copy").addEventListener("click", copyCommand);
}
function move(step) {
  choose({ point: Math.min(D.points.length - 1, Math.max(0, state.point + step)) });
}
