/* How this was made: the record of the run, as far as it is known. */

const MADE = {
  created: "Date (UTC)",
  date: "Date (UTC)",
  data: "Data",
  source: "File",
  sha256: "sha256",
  rows: "Rows",
  fit_rows: "Rows to train and choose",
  test_rows: "Test rows",
  features: "Features",
  model: "Model",
  settings: "Settings",
  seed: "Seed",
  versions: "Versions",
};
const ORDER = Object.keys(MADE);
const wordsOf = (key) => MADE[key] || key.replace(/_/g, " ");
function madeValue(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.map(madeValue).join(", ") || "none";
  if (typeof value === "object") {
    return Object.entries(value).map(([key, part]) => `${wordsOf(key)} ${madeValue(part)}`).join("; ") || "none";
  }
  return typeof value === "number" ? String(value) : visible(value);
}
const isPlainMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
function madeRows(key, value) {
  if (!isPlainMap(value)) return [[wordsOf(key), madeValue(value)]];
  return Object.entries(value).map(([name, part]) => [`${wordsOf(key)}: ${wordsOf(name)}`, madeValue(part)]);
}
function startMade() {
  if (!D.run) return;
  $("made").hidden = false;
  const place = ([key]) => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  const entries = Object.entries(D.run).sort((a, b) => place(a) - place(b));
  const rows = entries.flatMap(([key, value]) => madeRows(key, value));
  $("made-table").replaceChildren(
    table(
      "How this was made",
      ["What", "Value"],
      rows.map(([what, value]) => el("tr", {}, rowHead(visible(what)), cell(value, "made"))),
    ),
  );
}
