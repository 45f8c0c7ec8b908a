/* The decision: who takes responsibility for which point, and why; kept in a file. */

const FIELDS = ["name", "date", "reason"];
const dataHash = () => D.data_sha256 || (D.run && (D.run.data_sha256 || D.run.sha256 || (D.run.data || {}).sha256)) || null;
const today = () => {
  const now = new Date();
  return [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
};
/* Which run it is on: of a front its run_id, of an audit its date and settings. */
const runFacts = () => {
  const { run_id = null, date = null, settings = null } = D.run || {};
  return run_id ? { run_id } : { run_date: date, run_settings: settings };
};
const draftKey = () => `apfex:${(D.run && (D.run.run_id || D.run.date)) || dataHash() || D.title}`;
/* Text of several lines, as it was typed. */
const typedLines = (text) =>
  String(text)
    .split(/\r\n|\r|\n/)
    .flatMap((line, place) => [place ? el("br", {}) : null, visible(line.replace(/\t/g, " "))]);
function readDraft() {
  try {
    return JSON.parse(localStorage.getItem(draftKey())) || {};
  } catch {
    return {}; // no storage here: what is typed lasts as long as the page
  }
}
function keepDraft() {
  try {
    localStorage.setItem(draftKey(), JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, $(`sign-${name}`).value]))));
  } catch {
    /* as above */
  }
}
const signedPoint = () => (isFront ? (state.ticked ?? state.point) : null);
function drawSigned() {
  const which = isFront ? `point ${signedPoint()}` : "these decisions";
  $("sign-about").textContent =
    `For ${which}. The button saves decision.json, which goes with the run: ` +
    "apfex report RUN --decision decision.json shows it on this page and in print.";
  const given = D.decision || Object.fromEntries(FIELDS.map((name) => [name, $(`sign-${name}`).value]));
  const lines = { "Decision for": known(given.point) ? `point ${given.point}` : which, Name: given.name, Date: given.date };
  const all = Object.entries({ ...lines, Reason: given.reason, Signature: "" });
  $("sign-paper").replaceChildren(...all.map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, typedLines(text || "")))));
}
function saveDecision() {
  const given = Object.fromEntries(FIELDS.map((name) => [name, $(`sign-${name}`).value.trim()]));
  const missing = FIELDS.filter((name) => !given[name]);
  $("sign-said").textContent = missing.length ? `Fill in: ${missing.join(", ")}.` : "Saved as decision.json.";
  if (missing.length) return;
  if (given.date > today()) {
    $("sign-said").textContent = "The date is in the future: give the day of the decision.";
    return;
  }
  const point = signedPoint();
  const decision = {
    kind: "apfex.decision",
    schema_version: 1,
    title: D.title,
    data_sha256: dataHash(),
    ...runFacts(),
    point,
    headline: D.points[point ?? 0].summary.headline,
    ...given,
  };
  saveFile("decision.json", JSON.stringify(decision, null, 2) + "\n", "application/json");
}
function startDecision() {
  const draft = readDraft();
  for (const name of FIELDS) {
    $(`sign-${name}`).value = draft[name] || (name === "date" ? today() : "");
    $(`sign-${name}`).addEventListener("input", () => {
      $("sign-said").textContent = "";
      drawSigned();
      keepDraft();
    });
  }
  $("sign-save").addEventListener("click", saveDecision);
  drawSigned();
  view(["point", "ticked"], drawSigned);
  if (!D.decision) return;
  const { point, name, date, reason } = D.decision;
  const what = known(point) ? `Decided: point ${point}` : "Signed";
  $("signed").hidden = false;
  $("signed").replaceChildren();
  fill($("signed"), {}, [el("strong", {}, what), ` by ${visible(name)} on ${visible(date)}. Reason: `, typedLines(reason)]);
}
