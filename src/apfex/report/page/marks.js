/* The few marks that plots are made of. */

const linear = (from, to, low, high) => (value) =>
  low + ((value - from) / (to - from || 1)) * (high - low);

/* Round numbers between two ends, about as many as asked for. */
function ticks(from, to, wanted) {
  const span = to - from || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => span / size <= wanted);
  const found = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + 1e-9 * span; n++) found.push(n * step);
  return { values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/* A plot with labelled axes; x and y are scales from data to the canvas. */
function frame(width, height, { x, y, xLabel, yLabel, xForm, yForm, left = 58 }) {
  const box = { left, right: width - 14, top: 12, bottom: height - 46 };
  const scaleX = linear(x[0], x[1], box.left, box.right);
  const scaleY = linear(y[0], y[1], box.bottom, box.top);
  const across = ticks(x[0], x[1], Math.max(2, Math.floor((box.right - box.left) / 80)));
  const up = ticks(y[0], y[1], Math.max(2, Math.floor((box.bottom - box.top) / 50)));
  const axes = svg(
    "g",
    { class: "axes", "aria-hidden": "true" },
    up.values.map((value) => [
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: scaleY(value), y2: scaleY(value) }),
      svg("text", { x: box.left - 7, y: scaleY(value) + 4, "text-anchor": "end" }, yForm(value, up.digits)),
    ]),
    across.values.map((value) => [
      svg("line", { class: "tick", x1: scaleX(value), x2: scaleX(value), y1: box.bottom, y2: box.bottom + 4 }),
      svg("text", { x: scaleX(value), y: box.bottom + 18, "text-anchor": "middle" }, xForm(value, across.digits)),
    ]),
    svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    svg(
      "text",
      { class: "label", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" },
      xLabel,
    ),
    svg(
      "text",
      {
        class: "label",
        transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      yLabel,
    ),
  );
  return { box, x: scaleX, y: scaleY, axes };
}

const verticalLine = (css, value, plot) =>
  svg("line", { class: css, x1: plot.x(value), x2: plot.x(value), y1: plot.box.top, y2: plot.box.bottom });
const horizontalLine = (css, value, plot) =>
  svg("line", { class: css, x1: plot.box.left, x2: plot.box.right, y1: plot.y(value), y2: plot.y(value) });

/* A verdict has a shape of its own, not only a colour. */
const SHAPES = {
  within: (r) => svg("circle", { r }),
  violation: (r) => svg("path", { d: `M0 ${-1.25 * r}L${1.25 * r} 0L0 ${1.25 * r}L${-1.25 * r} 0Z` }),
  inconclusive: (r) => svg("path", { d: `M0 ${-1.2 * r}L${1.15 * r} ${0.85 * r}L${-1.15 * r} ${0.85 * r}Z` }),
  unknown: (r) => svg("rect", { x: -0.8 * r, y: -0.8 * r, width: 1.6 * r, height: 1.6 * r }),
};
const shape = (css, r) => fill(SHAPES[css](r), { class: `shape ${css}` });

function legend(entries) {
  return el(
    "ul",
    { class: "legend" },
    entries.map(([mark, text]) => el("li", {}, mark, " ", text)),
  );
}
const sample = (...children) =>
  svg("svg", { width: 26, height: 16, viewBox: "-13 -8 26 16", "aria-hidden": "true" }, ...children);

/* A gap on a common scale: interval, the gap itself, tolerance and noise floor. */
function gapMark(gap, top, width = 220, height = 26) {
  const scale = linear(0, top, 6, width - 6);
  const cut = (value) => scale(Math.min(value, top));
  const middle = height / 2;
  const css = VERDICTS[gap.verdict].css;
  const floor = cut(gap.noise_floor);
  return svg(
    "svg",
    { class: "gap-mark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    svg("line", { class: "rail", x1: scale(0), x2: scale(top), y1: middle, y2: middle }),
    svg("line", { class: "tolerance", x1: cut(tolerance), x2: cut(tolerance), y1: 1, y2: height - 1 }),
    known(gap.noise_floor) &&
      svg("line", { class: "floor", x1: floor, x2: floor, y1: 4, y2: height - 4 }),
    known(gap.lower) &&
      svg("line", { class: `interval ${css}`, x1: cut(gap.lower), x2: cut(gap.upper), y1: middle, y2: middle }),
    known(gap.gap) &&
      svg("g", { transform: `translate(${cut(gap.gap)} ${middle})` }, shape(css, 5.5)),
  );
}
/* Where the common scale ends: at the widest interval, but not far beyond the widest gap. */
function gapTop(gaps) {
  const widest = Math.max(tolerance, ...gaps.map((gap) => gap.gap || 0));
  const upper = Math.max(...gaps.map((gap) => gap.upper || 0));
  return Math.min(1, Math.max(1.08 * widest, Math.min(1.03 * upper, 2.5 * widest)));
}

/* A rate with its interval, between the ends of a common scale. */
function rateMark(rate, lower, upper, overall, [from, to], width = 170, height = 22) {
  const scale = linear(from, to, 6, width - 6);
  const middle = height / 2;
  return svg(
    "svg",
    { class: "rate-mark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    svg("line", { class: "rail", x1: scale(from), x2: scale(to), y1: middle, y2: middle }),
    known(overall) &&
      svg("line", { class: "overall", x1: scale(overall), x2: scale(overall), y1: 3, y2: height - 3 }),
    known(lower) &&
      svg("line", { class: "interval", x1: scale(lower), x2: scale(upper), y1: middle, y2: middle }),
    known(rate) && svg("circle", { class: "dot", cx: scale(rate), cy: middle, r: 4.5 }),
  );
}

/* Cells of a rate: drawn, in percent, its interval, and how far it is from that of all rows. */
const RATE_HEADS = [["Interval", "number wide"], ["To all rows", "number wide"]];
function rateCells(rate, { lower, upper, difference }, overall, ends) {
  const interval = between(lower, upper, percent);
  return [
    cell(rateMark(rate, lower, upper, overall, ends), "graph wide"),
    cell([percent(rate), narrowLine(interval)], "number strong"),
    cell(interval, "number wide"),
    cell(points(difference), "number wide"),
  ];
}

/* Drawn anew whenever its box changes width. */
function responsive(box, draw) {
  let width = 0;
  const again = () => {
    const now = Math.floor(box.clientWidth);
    if (now < 50 || now === width) return;
    width = now;
    draw(now);
  };
  new ResizeObserver(again).observe(box);
  return () => {
    width = 0;
    again();
  };
}
