"use strict";
/* The data, small helpers for elements and numbers, and what is chosen at the moment. */

const D = JSON.parse(document.getElementById("data").textContent);
const isFront = D.kind === "apfex.front";
const tolerance = D.settings.tolerance;
const crossing = D.groupings[D.groupings.length - 1];
const groupingOf = new Map(D.groupings.map((grouping) => [grouping.by, grouping]));
const criterionOf = new Map(D.criteria.map((criterion) => [criterion.key, criterion]));
const rateOf = new Map(D.rates.map((rate) => [rate.key, rate]));

const $ = (id) => document.getElementById(id);

/* What is invisible, or turns the direction, is shown by its number: the rule of `printable` in
   apfex/plain.py, by the category of Unicode. Joiners, and choices of a form, stay after signs
   that they are made for. */
const EMOJI = "\\u2190-\\u2bff\\u{1f000}-\\u{1faff}";
const HAN = "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const IN_USE =
  `(?<=[\\u0600-\\u109f\\u1780-\\u18af${EMOJI}])[\\u200c\\u200d]|(?<=[${EMOJI}]\\ufe0f)\\u200d` +
  `|(?<=[${EMOJI}])[\\ufe0e\\ufe0f]|(?<=[${HAN}])[\\ufe00-\\ufe0d\\u{e0100}-\\u{e01ef}]` +
  "|(?<=[\\u1820-\\u18aa])[\\u180b-\\u180d\\u180f]";
const UNDRAWN =
  "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180d\\u180f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0" +
  "\\u{e0100}-\\u{e01ef}";
const DISGUISES = new RegExp(`(${IN_USE})|(?! )[\\p{C}\\p{Z}${UNDRAWN}]`, "gu");
const SHORT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };
function numberOf(mark) {
  const code = mark.codePointAt(0).toString(16);
  if (code.length <= 2) return SHORT[mark] ?? `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}
function visible(text) {
  return String(text).replace(DISGUISES, (mark, used) => (used === undefined ? numberOf(mark) : mark));
}

/* Text goes in as text nodes only. */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const el = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/* A group as people write it: without the quotes that tell names apart in tables. */
const shownNames = new Map(Object.entries(D.names || {}));
const shownName = (name) => visible(shownNames.get(name) ?? name);

const LONG_WORD = /\S{25}/;
/* A name from data: whole, on as many lines as it needs, in its own direction. */
function nameNode(text) {
  const shown = shownName(text);
  return el("bdi", { class: LONG_WORD.test(shown) ? "name long" : "name", title: shown }, shown);
}
/* The same within a line of text that is no element, such as a label for a screen reader. */
const nameText = (text) => `\u2068${shownName(text)}\u2069`;
/* Attributes of a grouping; one that could be read as several is quoted. */
const attributeName = (name) => (/ [x×] /.test(` ${name} `) ? `“${name}”` : name);
const attributesOf = (by) => groupingOf.get(by).attributes.map(attributeName).join(" × ");
const groupingName = (by) => nameNode(attributesOf(by));
const byText = (by) => nameText(attributesOf(by));

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);
const percent = (value, digits = 1) => (known(value) ? `${(100 * value).toFixed(digits)}%` : "–");
const decimal = (value, digits = 3) => (known(value) ? value.toFixed(digits) : "–");
const count = (value) => (known(value) ? value.toLocaleString("en-US") : "–");
const signed = (value, text) => (value > 0 ? `+${text}` : text.replace("-", "−"));
function points(value) {
  if (!known(value)) return "–";
  const text = (100 * value).toFixed(1);
  return `${signed(Number(text), text === "-0.0" ? "0.0" : text)} pts`;
}
const change = (value) => (known(value) ? signed(value, count(value)) : "–");
const between = (low, high, form) => (known(low) ? `${form(low)} to ${form(high)}` : "–");
const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

/* The most alarming first, as everywhere. */
const VERDICTS = {
  violation: { mark: "✕", css: "violation" },
  inconclusive: { mark: "?", css: "inconclusive" },
  "not estimable": { mark: "–", css: "unknown" },
  "within tolerance": { mark: "✓", css: "within" },
};
function badge(verdict) {
  const { mark, css } = VERDICTS[verdict];
  return el(
    "span",
    { class: `badge ${css}` },
    el("span", { class: "symbol", "aria-hidden": "true" }, mark),
    verdict,
  );
}

const gapOf = (point, criterion, by) =>
  point.gaps.find((gap) => gap.criterion === criterion && gap.by === by);

/* Heads are labels, or pairs of a label and its classes. Its button saves all rows as CSV; where
   only some are shown, options.all gives them all. */
function table(caption, heads, rows, options = {}) {
  const head = heads.map((one) => {
    const [label, css] = Array.isArray(one) ? one : [one];
    return el("th", { scope: "col", class: css || null }, label);
  });
  const onclick = () => saveTable(caption, head, options.all ? options.all() : rows);
  const label = `Save as CSV: ${caption}`;
  return el(
    "div",
    { class: "table" },
    el(
      "div",
      { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
      el(
        "table",
        { class: options.css || null },
        el("caption", { class: options.showCaption ? null : "hidden-text" }, caption),
        el("thead", {}, el("tr", {}, head)),
        el("tbody", {}, rows),
      ),
    ),
    el("button", { type: "button", class: "csv no-print", "aria-label": label, onclick }, "Save as CSV"),
  );
}
const cell = (content, css) => el("td", { class: css || null }, content);
/* On a narrow screen two columns become two lines of one. */
const narrowLine = (text, css = "") => el("span", { class: `narrow-only quiet ${css}` }, text);
const rowHead = (content, css) => el("th", { scope: "row", class: css || null }, content);

function options(select, pairs, chosen) {
  select.replaceChildren(
    ...pairs.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
}

const groupingOptions = (select) => options(select, D.groupings.map(({ by }) => [by, byText(by)]), crossing.by);
function gapOptions(criterion, by) {
  options(criterion, D.criteria.map(({ key, title }) => [key, title.toLowerCase()]), D.criteria[0].key);
  groupingOptions(by);
}

/* What is chosen. A view is drawn again when one of the things it depends on changes. */
const state = {
  point: D.chosen,
  ticked: null,
  criterion: D.criteria[0].key,
  by: crossing.by,
  rate: D.rates[0].key,
  shownChanges: 12,
  shownGroups: 12,
  shownWorst: 10,
  printed: false,
};
const views = [];
function view(depends, draw) {
  views.push({ depends, draw });
}
function choose(patch) {
  const changed = Object.keys(patch).filter((key) => state[key] !== patch[key]);
  if (!changed.length) return;
  Object.assign(state, patch);
  for (const { depends, draw } of views) {
    if (depends.some((key) => changed.includes(key))) draw();
  }
}
const current = () => D.points[state.point];

/* The error that ranks models. */
const isBalanced = D.settings.ranked_by === "balanced_accuracy";
const rankedBy = isBalanced ? "balanced error" : "error";
const rankedError = (one) => (isBalanced ? one.balanced_error : one.error);
/* The constant decision: one label for everybody. */
const CONSTANT = D.constant && visible(D.constant.text);
const constantGap = (criterion, by) => {
  const found = D.constant && D.constant.gaps.find((gap) => gap.criterion === criterion && gap.by === by);
  return found ? found.gap : null;
};

/* A group in a table: a column for each attribute; on a narrow screen its name in one. */
const groupHeads = (grouping) => [
  ["Group", "narrow-cell"],
  ...grouping.attributes.map((name) => [nameNode(name), "wide"]),
];
const groupCells = (grouping, { name, values }, ...more) => [
  rowHead([nameNode(name), more], "narrow-cell"),
  (values || [name]).map((value, place) => rowHead([nameNode(value), place === 0 && more], "wide")),
];
