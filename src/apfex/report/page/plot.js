/* The front: error against the gap of a criterion, on the test rows; axes as of front_.plot(). */

/* The constant decision is on the scale, or, where that would crush the points, above its end. */
function frontScale(gaps) {
  const errors = D.points.map(rankedError);
  let [low, high] = [Math.min(...errors), Math.max(...errors)];
  const constant = D.constant ? rankedError(D.constant) : high;
  const fits = constant - high <= Math.max(0.02, 3 * (high - low));
  if (fits) [low, high] = [Math.min(low, constant), Math.max(high, constant)];
  const pad = 0.08 * (high - low) || 0.01;
  const size = constantGap(state.criterion, state.by) || 0;
  return { x: [0, Math.max(gapTop(gaps), 1.05 * size)], y: [Math.max(0, low - pad), high + (fits ? pad : 3 * pad)] };
}

function pointLabel(point, gap) {
  const place = `Point ${point.point}${point.trivial ? ", trivial" : ""}`;
  const size = `${decimal(gap.gap)}, ${between(gap.lower, gap.upper, decimal)}`;
  const flag = point.near_constant ? ", near constant" : "";
  const gained = CONSTANT ? `, ${gainText(point)} over ${CONSTANT}${flag}` : "";
  return `${place}: ${rankedBy} ${percent(rankedError(point))}${gained}, ${titleOf(gap.criterion)} gap ${size}, ${gap.verdict}`;
}

function frontMark(point, gap, plot, top) {
  const y = plot.y(rankedError(point));
  const x = (value) => plot.x(Math.min(value, top));
  const css = VERDICTS[gap.verdict].css;
  const chosen = point.point === state.point;
  const shown = known(gap.gap) ? x(gap.gap) : plot.box.left;
  return svg(
    "g",
    {
      class: `mark ${css}${chosen ? " chosen" : ""}${point.trivial || point.near_constant ? " trivial" : ""}`,
      role: "radio",
      "aria-checked": String(chosen),
      "aria-label": pointLabel(point, gap),
      tabindex: chosen ? "0" : "-1",
      "data-point": point.point,
    },
    svg("title", {}, pointLabel(point, gap)),
    known(gap.lower) && svg("line", { class: "interval", x1: x(gap.lower), x2: x(gap.upper), y1: y, y2: y }),
    svg(
      "g",
      { transform: `translate(${shown} ${y})` },
      svg("circle", { class: "ring", r: 13 }),
      svg("circle", { class: "target", r: 14 }),
      shape(css, chosen ? 8 : 6),
    ),
  );
}

/* Labels find a free place, or none: no label covers another one or a mark. */
function placer(spots, plot) {
  const { left, right, top, bottom } = plot.box;
  const taken = spots.map(({ x, y }) => [x - 8, y - 8, x + 8, y + 8]);
  const clash = (a) => taken.some((b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]);
  return (places, width) => {
    const boxes = places.map(([x, y]) => [x, y - 11, x + width, y + 2]);
    const inside = (b) => b[0] >= left && b[2] <= right + 12 && b[1] >= top - 6 && b[3] <= bottom;
    const place = boxes.findIndex((box) => inside(box) && !clash(box));
    if (place < 0) return null;
    taken.push(boxes[place]);
    return places[place];
  };
}
function lineName(text, x, plot, free) {
  const width = 6.6 * text.length;
  const { top, bottom } = plot.box;
  const bases = [top + 8, top + 24, (top + bottom) / 2, bottom - 20, bottom - 6];
  const places = bases.flatMap((base) => [[x + 4, base], [x - width - 4, base]]);
  const place = free(places, width) || places[0];
  return svg("text", { class: "line-name", x: place[0], y: place[1], "aria-hidden": "true" }, text);
}
/* The constant decision: a cross, which no click chooses. */
function constantMark(plot, top) {
  const size = constantGap(state.criterion, state.by);
  if (!CONSTANT || !known(size)) return null;
  const error = rankedError(D.constant);
  const [x, inside] = [plot.x(Math.min(size, top)), plot.y(error)];
  const y = Math.max(plot.box.top + 8, inside);
  const told = `${CONSTANT}: ${rankedBy} ${percent(error)}, gap ${decimal(size)}`;
  const beyond = inside < plot.box.top && svg("text", { x: 10, y: 4 }, `↑ at ${percent(error)}`);
  const at = { class: "constant-mark", transform: `translate(${x} ${y})` };
  return { x, y, node: svg("g", at, svg("title", {}, told), cross(), beyond) };
}
const cross = () => svg("path", { d: "M-6 -6L6 6M-6 6L6 -6" });
function frontNumbers(spots, free) {
  const order = [...spots].sort((a, b) => Number(b.chosen) - Number(a.chosen));
  return order.map(({ x, y, point, chosen }) => {
    const width = 8 * String(point).length + 3;
    const far = chosen ? 15 : 10;
    const [right, left, middle] = [x + far, x - far - width, x - width / 2];
    const sides = [y - 6, y + 16].flatMap((base) => [[right, base], [left, base]]);
    const places = [...sides, [middle, y - 16], [middle, y + 26]];
    const place = free(places, width) || (chosen ? places[0] : null);
    const css = chosen ? "number chosen" : "number";
    return place && svg("text", { class: css, x: place[0], y: place[1], "aria-hidden": "true" }, point);
  });
}

function plotFront(width) {
  const gaps = D.points.map((point) => gapOf(point, state.criterion, state.by));
  const scale = frontScale(gaps);
  const height = Math.round(Math.min(500, Math.max(300, 0.8 * width)));
  const criterion = criterionOf.get(state.criterion);
  const plot = frame(width, height, {
    ...scale,
    xLabel: `gap in ${criterion.title.toLowerCase()}`,
    yLabel: D.fresh ? `${rankedBy} on the test rows` : `${rankedBy} on rows that fit has seen`,
    xForm: decimal,
    yForm: (value, digits) => percent(value, Math.max(0, digits - 2)),
    left: 66,
  });
  const spots = D.points.map((point, p) => ({
    x: known(gaps[p].gap) ? plot.x(Math.min(gaps[p].gap, scale.x[1])) : plot.box.left,
    y: plot.y(rankedError(point)),
    point: point.point,
    chosen: point.point === state.point,
  }));
  const constant = constantMark(plot, scale.x[1]);
  const reserved = constant ? [0, 16, 32, 48, 64, 80].map((step) => ({ x: constant.x + step, y: constant.y })) : [];
  const free = placer([...spots, ...reserved], plot);
  const floor = gaps[state.point].noise_floor;
  const hasFloor = known(floor) && floor < scale.x[1];
  const { left, top, bottom } = plot.box;
  const told =
    `${plural(D.points.length, "point")}: the gap in ${criterion.title.toLowerCase()} between groups of ` +
    `${byText(state.by)} from left to right, ${rankedBy} from bottom to top. Arrow ` +
    "keys move from point to point. The table of all points has the same numbers.";
  const edge = plot.x(tolerance);
  const marks = D.points.map((point, p) => frontMark(point, gaps[p], plot, scale.x[1]));
  marks.push(marks.splice(state.point, 1)[0]); // the chosen one on top
  const canvas = svg(
    "svg",
    {
      class: "front",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "radiogroup",
      "aria-labelledby": "front-svg-title",
      "aria-describedby": "front-svg-text",
    },
    svg("title", { id: "front-svg-title" }, "Points of the front"),
    svg("desc", { id: "front-svg-text" }, told),
    svg("rect", { class: "zone", x: left, width: edge - left, y: top, height: bottom - top }),
    plot.axes,
    verticalLine("tolerance", tolerance, plot),
    hasFloor && verticalLine("floor", floor, plot),
    constant && constant.node,
    marks,
    frontNumbers(spots, free),
    lineName(`limit ${tolerance}`, edge, plot, free),
    hasFloor && lineName(`noise floor ${decimal(floor)}`, plot.x(floor), plot, free),
  );
  canvas.addEventListener("click", (event) => chooseNearest(event, canvas, spots));
  canvas.addEventListener("keydown", frontKeys);
  const had = $("plot").contains(document.activeElement);
  $("plot").replaceChildren(canvas);
  if (had) canvas.querySelector('[aria-checked="true"]').focus({ preventScroll: true });
}

function chooseNearest(event, canvas, spots) {
  const box = canvas.getBoundingClientRect();
  const x = ((event.clientX - box.left) * canvas.width.baseVal.value) / box.width;
  const y = ((event.clientY - box.top) * canvas.height.baseVal.value) / box.height;
  const away = (spot) => Math.hypot(spot.x - x, spot.y - y);
  const near = spots.reduce((best, spot) => (away(spot) < away(best) ? spot : best));
  if (away(near) > 60) return;
  // Of points that lie upon each other, each click takes the next.
  const pile = spots.filter((spot) => Math.hypot(spot.x - near.x, spot.y - near.y) < 7);
  const chosen = pile.findIndex((spot) => spot.chosen);
  choose({ point: chosen < 0 ? near.point : pile[(chosen + 1) % pile.length].point });
  $("plot").querySelector('[aria-checked="true"]').focus({ preventScroll: true });
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
function frontKeys(event) {
  if (event.key in STEPS) move(STEPS[event.key]);
  else if (event.key === "Home") choose({ point: 0 });
  else if (event.key === "End") choose({ point: D.points.length - 1 });
  else return;
  event.preventDefault();
}

function drawLegend() {
  const seen = new Set(D.points.map((point) => gapOf(point, state.criterion, state.by).verdict));
  const entries = Object.keys(VERDICTS)
    .filter((verdict) => seen.has(verdict))
    .map((verdict) => [sample(shape(VERDICTS[verdict].css, 5.5)), verdict]);
  const dash = (css) => sample(svg("line", { class: css, x1: -12, x2: 12 }));
  const lines = [
    CONSTANT && [sample(svg("g", { class: "constant-mark" }, cross())), `${CONSTANT} (constant decision)`],
    D.points.some((point) => point.near_constant || point.trivial) && [
      sample(svg("g", { class: "mark trivial" }, shape("unknown", 5.5))),
      "hollow: trivial, or near the constant decision",
    ],
    [dash("tolerance"), "limit"],
    [dash("floor"), "noise floor of this point: the gap that parity would show by chance"],
  ].filter(Boolean);
  $("front-about").textContent =
    `Gap in ${titleOf(state.criterion)} between groups of ${byText(state.by)}.`;
  $("plot-legend").replaceChildren(legend([...entries, ...lines]));
}

function startFront() {
  $("front").hidden = false;
  gapOptions($("criterion"), $("by"));
  $("criterion").addEventListener("change", () => choose({ criterion: $("criterion").value }));
  $("by").addEventListener("change", () => choose({ by: $("by").value }));
  view(["point", "criterion", "by"], responsive($("plot"), plotFront));
  view(["criterion", "by"], drawLegend);
  document.addEventListener("keydown", (event) => {
    const nowhere = document.activeElement === document.body;
    if (nowhere && ["ArrowLeft", "ArrowRight"].includes(event.key)) frontKeys(event);
  });
}
