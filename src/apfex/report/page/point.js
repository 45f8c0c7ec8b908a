/* The panel of one point, or of the audit: what it is, whether to trust it, how to use it. */

const isBaseline = (point) => point.point === D.baseline;
const CHOSE = "the most accurate on the validation rows";
const mainGaps = (point) => D.criteria.map(({ key }) => gapOf(point, key, crossing.by));

/* "Selection rate: above the tolerance. ..." */
function verdictSentence(gaps) {
  return Object.entries(VERDICTS)
    .map(([verdict, { says }]) => [gaps.filter((gap) => gap.verdict === verdict), says])
    .filter(([found]) => found.length)
    .map(([found, says]) => [found.map((gap) => criterionOf.get(gap.criterion).title), says])
    .map(([titles, says]) => `${titles.join(", ")}: gap ${says}.`)
    .join(" ");
}
const titleOf = (criterion) => criterionOf.get(criterion).title.toLowerCase();

function gainSentence(point) {
  if (isBaseline(point)) return `The others are compared with this starting point: it was ${CHOSE}.`;
  const { groups_gain: gain, groups_lose: lose, groups_same: same } = point.tally;
  if (!gain && !lose) return `Against point ${D.baseline}, no group clearly gains or loses.`;
  const clauses = [
    [gain, "gains", "gain"],
    [lose, "loses", "lose"],
    [same, "shows no clear change", "show no clear change"],
  ].filter(([n]) => n);
  const told = clauses.map(([n, one, many], place) => {
    const who = place ? count(n) : plural(n, "group");
    return `${who} ${n === 1 ? one : many}`;
  });
  return `Against point ${D.baseline}, ${told.join(", ")}.`;
}

function headlineOf(point) {
  if (isFront) {
    const wrong = `Wrong for ${percent(point.error)} of people.`;
    return `${wrong} ${verdictSentence(mainGaps(point))} ${gainSentence(point)}`;
  }
  const worst = point.worst[0];
  const verdicts = verdictSentence(mainGaps(point));
  if (!worst || !known(worst.favored)) return verdicts;
  const share = `${percent(worst.favored)} against ${percent(point.share_favored)} of all`;
  return `${verdicts} Fewest favorable decisions: ${nameText(worst.group)}, ${share}.`;
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
    validationLine(percent(point.validation.error)),
  );
}
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
  const top = gapTop(D.points.flatMap(mainGaps).filter((one) => one.criterion === gap.criterion));
  const [low, high] = gap.ends;
  return card(
    [`${criterion.title} gap`, criterion.also && el("span", { class: "also" }, ` ${criterion.also}`)],
    [decimal(gap.gap), " ", badge(gap.verdict)],
    gapMark(gap, top, 240),
    known(gap.gap)
      ? `${between(gap.lower, gap.upper, decimal)}; noise floor ${decimal(gap.noise_floor)}`
      : "fewer than two groups have enough rows",
    low && ends([low.group, percent(low.rate)], [high.group, percent(high.rate)]),
    chosen && validationLine(comparedGap(chosen)),
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
  const worst = point.worst[0];
  return card(
    "Favorable decisions",
    percent(point.share_favored),
    `of ${plural(D.rows, "row")} get “${visible(D.favorable)}”`,
    worst && [quiet("Fewest"), ends([worst.group, percent(worst.favored)])],
  );
}

const NO_CAVEAT =
  "Nothing stands against it: it is not trivial, nobody is levelled down, no gap is a violation or " +
  "clearly grew, and these rows did not choose it.";
function caveatList(point) {
  const list = point.caveats;
  const title = isFront ? "Why this point may not be trusted" : "What to know of these rows";
  if (!list.length) {
    return [el("h3", {}, title), quiet(isFront ? NO_CAVEAT : "Nothing unusual.")];
  }
  const items = list.map(({ level, text, data: { groups = [] } }) =>
    el(
      "li",
      { class: level === "note" ? "caveat note" : "caveat" },
      el("span", { class: "symbol", "aria-hidden": "true" }, level === "note" ? "i" : "!"),
      el("span", {}, visible(text), groups.length > 0 && namesOf(groups)),
    ),
  );
  return [el("h3", {}, title), el("ul", {}, items)];
}
function namesOf(groups, most = 6) {
  const names = groups.slice(0, most).map((name) => el("li", {}, nameNode(name)));
  const rest = groups.length - most;
  return el("ul", { class: "names" }, names, rest > 0 && el("li", {}, `and ${count(rest)} more`));
}

function commandOf(place) {
  return D.command ? `${D.command} --point ${place}` : `clf.at(${place}).predict(X)`;
}

const CHOSEN = {
  bounds: "chosen by max_gap",
  nearest: "nearest to max_gap, which no point meets",
  hand: "chosen by hand",
};
function drawPoint() {
  const point = current();
  const tags = [
    point.point === D.chosen && CHOSEN[D.chosen_by],
    isBaseline(point) && "starting point",
    point.trivial && "trivial",
  ].filter(Boolean);
  $("now-title").replaceChildren(
    isFront ? `Point ${point.point}` : "What the decisions show",
    ...(isFront ? tags.flatMap((tag) => [" ", el("span", { class: "tag" }, tag)]) : []),
  );
  $("headline").textContent = headlineOf(point);
  const gapCards = mainGaps(point).map((gap) => gapCard(point, gap));
  const parts = isFront ? [errorCard(point), ...gapCards, gainCard(point)] : [...gapCards, favoredCard(point)];
  $("cards").replaceChildren(...parts);
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
