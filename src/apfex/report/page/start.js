/* Put it all on the page. */

const THEMES = ["auto", "light", "dark"];
function startTheme() {
  let place = 0;
  $("theme").addEventListener("click", () => {
    place = (place + 1) % THEMES.length;
    const name = THEMES[place];
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    $("theme").textContent = `Theme: ${name}`;
  });
}

function startHead() {
  const { confidence } = D.settings;
  const rows = D.fresh ? plural(D.rows, "test row") : `${plural(D.rows, "row")} that fit has seen`;
  $("kind").textContent = isFront ? "report" : "audit";
  const parts = [
    D.source && visible(D.source),
    !(D.source || "").includes(plural(D.rows, isFront ? "test row" : "row")) && (isFront ? rows : plural(D.rows, "row")),
    `${plural(D.groups, "group")} of ${byText(crossing.by)}`,
    `favorable label “${visible(D.favorable)}”`,
    `limit ${tolerance} for each gap, ${percent(confidence, 0)} confidence`,
    D.weighted && "weighted rows",
  ].filter(Boolean);
  $("about").textContent = parts.join(" · ");
  $("footer").textContent = isFront || !D.command ? "Made by APFEx." : `Made by APFEx: ${visible(D.command)}`;
}

const READING = [
  ["Gap", "Largest minus smallest rate over the groups that are compared. 0 is parity."],
  ...D.criteria.map(({ title, also, text }) => [
    also ? `${title} (${also})` : title,
    `${text[0].toUpperCase()}${text.slice(1)}.`,
  ]),
  [
    "Interval",
    `Where the true gap lies with ${percent(D.settings.confidence, 0)} confidence, as far as these rows ` +
      "can tell. Each interval stands on its own; p-values (Holm) are adjusted for all rows of their table.",
  ],
  [
    "Noise floor",
    "The gap that groups of these sizes show on average if all are treated alike. A gap near it says nothing.",
  ],
  [
    "Verdict",
    "Violation: the whole interval is above the limit. Within tolerance: all of it is below. " +
      "Inconclusive: the limit lies inside, so there is too little data to tell. Not estimable: fewer than two " +
      "groups have enough rows.",
  ],
  [
    "Few rows",
    `A rate that rests on fewer than ${D.settings.min_count} rows is shown, but takes no part in a gap.`,
  ],
];
const READING_FRONT = [
  [
    "Gains, loses",
    "A group gains where more of its people get the favorable label than lose it, against point " +
      `${D.baseline} (${CHOSE}), and a coin would rarely divide them so (exact sign test, group by ` +
      "group). Levelled down: some groups lose, and none gains.",
  ],
  [
    "Validation rows",
    "The point for a limit was chosen by figures on other rows, a part of those that fit was given. These may " +
      "flatter it, and are shown for comparison only. There every group counts that has a row; figures to compare " +
      "leave out groups of fewer than " +
      `${D.settings.min_count} rows, as here.`,
  ],
  [
    "Choosing from this page",
    D.fresh
      ? "The test rows did not choose the points. Whoever picks the one that looks best here uses them to " +
        "choose: audit it once more on rows that nobody has looked at."
      : "Fit has seen these rows: audit the one you pick on rows that nobody has looked at.",
  ],
];
function startReading() {
  const entries = isFront ? [...READING, ...READING_FRONT] : READING;
  const entry = ([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, visible(text)));
  $("reading-list").replaceChildren(...entries.map(entry));
}

/* A link with #point-3 opens there, #point-3&use-3 with that one ticked; the address follows both,
   so that a choice survives a reload, and the page follows an address that is typed. */
function followAddress() {
  const found = /^#point-(\d+)(?:&use-(\d+))?$/.exec(location.hash);
  if (!found || !D.points[Number(found[1])]) return;
  const ticked = found[2] !== undefined && D.points[Number(found[2])] ? Number(found[2]) : null;
  choose({ point: Number(found[1]), ticked });
}
function startAddress() {
  followAddress();
  window.addEventListener("hashchange", followAddress);
  view(["point", "ticked"], () => {
    const use = state.ticked === null ? "" : `&use-${state.ticked}`;
    try {
      history.replaceState(null, "", `#point-${state.point}${use}`);
    } catch {
      /* some browsers keep the address of a file as it is */
    }
  });
}
/* Paper has no button for more: there all groups are shown. */
function startPrint() {
  const media = matchMedia("print");
  media.addEventListener("change", () => choose({ printed: media.matches }));
  window.addEventListener("beforeprint", () => choose({ printed: true }));
  window.addEventListener("afterprint", () => choose({ printed: false }));
}

startTheme();
startHead();
startPoint();
if (isFront) startFront();
startGaps();
if (isFront) startChanges();
else startWorst();
startHeat();
startGroups();
if (isFront) {
  startCompare();
  startPoints();
  startCalibration();
} else {
  startThresholds();
  startPlan();
}
startMade();
startDecision();
startReading();
startPrint();
if (isFront) startHistory();
if (!isFront) $("first").classList.add("single");
for (const { draw } of views) draw();
if (isFront) startAddress();
document.documentElement.dataset.ready = "true";
