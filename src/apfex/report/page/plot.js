/* The front: error against the gap of a criterion, on the test rows. */

function frontScale(gaps) {
  const errors = D.points.map((point) => point.error);
  const [low, high] = [Math.min(...errors), Math.max(...errors)];
  const pad = 0.08 * (high - low) || 0.01;
  return { x: [Math.max(0, low - pad), high + pad], y: [0, gapTop(gaps)] };
}

function pointLabel(point, gap) {
  const place = `Point ${point.point}${point.trivial ? ", trivial" : ""}`;
  const size = `${decimal(gap.gap)}, ${between(gap.lower, gap.upper, decimal)}`;
  return `${place}: error ${percent(point.error)}, ${titleOf(gap.criterion)} gap ${size}, ${gap.verdict}`;
}

function frontMark(point, gap, plot, top) {
  const x = plot.x(point.error);
  const y = (value) => plot.y(Math.min(value, top));
  const css = VERDICTS[gap.verdict].css;
  const chosen = point.point === state.point;
  const shown = known(gap.gap) ? y(gap.gap) : plot.box.bottom;
  return svg(
    "g",
    {
      class: `mark ${css}${chosen ? " chosen" : ""}${point.trivial ? " trivial" : ""}`,
      role: "radio",
      "aria-checked": String(chosen),
      "aria-label": pointLabel(point, gap),
      tabindex: chosen ? "0" : "-1",
      "data-point": point.point,
    },
    svg("title", {}, pointLabel(point, gap)),
    known(gap.lower) && svg("line", { class: "interval", x1: x, x2: x, y1: y(gap.lower), y2: y(gap.upper) }),
    svg(
      "g",
      { transform: `translate(${x} ${shown})` },
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
function lineName(text, y, plot, free) {
  const width = 6.6 * text.length;
  const { left, right } = plot.box;
  const starts = [right - width - 2, left + 4, (left + right - width) / 2];
  const places = [y - 5, y + 14].flatMap((base) => starts.map((start) => [start, base]));
  const place = free(places, width) || places[0];
  return svg("text", { class: "line-name", x: place[0], y: place[1], "aria-hidden": "true" }, text);
}
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
    xLabel: D.fresh ? "error on the test rows" : "error on rows that fit has seen",
    yLabel: `gap in ${criterion.title.toLowerCase()}`,
    xForm: (value, digits) => percent(value, Math.max(0, digits - 2)),
    yForm: decimal,
  });
  const spots = D.points.map((point, p) => ({
    x: plot.x(point.error),
    y: known(gaps[p].gap) ? plot.y(gaps[p].gap) : plot.box.bottom,
    point: point.point,
    chosen: point.point === state.point,
  }));
  const free = placer(spots, plot);
  const floor = gaps[state.point].noise_floor;
  const hasFloor = known(floor) && floor < scale.y[1];
  const { left, right, bottom } = plot.box;
  const told =
    `${plural(D.points.length, "point")}: error from left to right, the gap in ` +
    `${criterion.title.toLowerCase()} between groups of ${byText(state.by)} from bottom to top. Arrow ` +
    "keys move from point to point. The table of all points has the same numbers.";
  const edge = plot.y(tolerance);
  const marks = D.points.map((point, p) => frontMark(point, gaps[p], plot, scale.y[1]));
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
    svg("rect", { class: "zone", x: left, width: right - left, y: edge, height: bottom - edge }),
    plot.axes,
    horizontalLine("tolerance", tolerance, plot),
    hasFloor && horizontalLine("floor", floor, plot),
    marks,
    lineName(`tolerance ${tolerance}`, edge, plot, free),
    hasFloor && lineName(`noise floor ${decimal(floor)}`, plot.y(floor), plot, free),
    frontNumbers(spots, free),
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
    [dash("tolerance"), "tolerance"],
    [dash("floor"), "noise floor of this point: the gap that parity would show by chance"],
  ];
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
