/* Lines over steps or thresholds: the history of a training, gaps over all thresholds. */

const path = (xs, ys, plot) => {
  let pen = "M";
  return xs
    .map((x, n) => {
      if (!known(ys[n])) {
        pen = "M";
        return "";
      }
      const step = `${pen}${plot.x(x).toFixed(1)} ${plot.y(ys[n]).toFixed(1)}`;
      pen = "L";
      return step;
    })
    .join("");
};
function linePlot(width, height, xs, lines, words, extra = () => []) {
  const all = lines.flatMap(({ values }) => values).filter(known);
  const top = Math.max(1e-9, words.top || 0, ...all);
  const bottom = Math.min(0, ...all);
  const plot = frame(width, height, {
    x: [Math.min(...xs), Math.max(...xs)],
    y: [bottom, 1.05 * top],
    xLabel: words.x,
    yLabel: words.y,
    xForm: decimal,
    yForm: decimal,
    left: 64,
  });
  return svg(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words.label },
    extra(plot),
    plot.axes,
    lines.map(({ values, css }) => svg("path", { class: `line ${css}`, d: path(xs, values, plot) })),
  );
}

/* Stretches of steps under one strategy. */
function stretches(steps, names) {
  const found = [];
  names.forEach((name, n) => {
    const last = found[found.length - 1];
    if (last && last.name === name) last.to = steps[n + 1] ?? steps[n];
    else found.push({ name, from: steps[n], to: steps[n + 1] ?? steps[n] });
  });
  return found;
}
/* The step after which the point was archived: what comes later is not its history. */
function archiveMark(step, steps, { x, box }) {
  const at = x(Math.min(Math.max(step, steps[0]), steps[steps.length - 1]));
  const told = `archived after step ${count(step)}`;
  return svg("line", { class: "archived", x1: at, x2: at, y1: box.top, y2: box.bottom }, svg("title", {}, told));
}
function plotHistory(width) {
  const { members, objectives } = D.history;
  const { member: origin, epoch } = current().validation;
  if (origin < 0) {
    $("history-plot").replaceChildren();
    $("history-legend").replaceChildren();
    $("history-about").textContent = "This point is the model that was given, as it is: it has no training curves here.";
    return;
  }
  const found = members.find(({ member }) => member === origin);
  const own = found || members[0];
  const archived = found && known(epoch);
  const kinds = [...new Set(members.flatMap(({ strategy }) => strategy || []))];
  const bands = own.strategy ? stretches(own.step, own.strategy) : [];
  const band = ({ x, box }) =>
    bands.map(({ name, from, to }) => {
      const css = `band b${kinds.indexOf(name) % 6}`;
      const size = { width: Math.max(1, x(to) - x(from)), height: box.bottom - box.top };
      return svg("rect", { class: css, x: x(from), y: box.top, ...size }, svg("title", {}, visible(name)));
    });
  const panel = (lines, y) => {
    const label = `${y} over ${count(own.step[own.step.length - 1])} steps`;
    const extra = (plot) => [...band(plot), archived && archiveMark(epoch, own.step, plot)];
    return linePlot(width, 200, own.step, lines, { x: "step", y, label }, extra);
  };
  const each = (columns) => columns.map((values, k) => ({ values, css: `l${k % 6}` }));
  $("history-plot").replaceChildren(
    panel([{ values: own.direction_norm, css: "l-norm" }], "combined gradient"),
    panel(each(own.losses), "losses"),
    panel(each(own.weights), "weights"),
  );
  const stroke = (k) => sample(svg("line", { class: `line l${k % 6}`, x1: -12, x2: 12 }));
  const field = (k) => sample(svg("rect", { class: `band b${k % 6}`, x: -12, y: -7, width: 24, height: 14 }));
  $("history-legend").replaceChildren(
    legend([
      ...objectives.map((name, k) => [stroke(k), nameNode(name)]),
      ...kinds.map((name, k) => [field(k), nameNode(name)]),
    ]),
  );
  const which = found && members.length > 1 ? ` Shown is member ${own.member}, from which the point comes.` : "";
  const when = archived ? ` The upright line is where the point was archived, after step ${count(epoch)}: what comes later is not its history.` : "";
  const band_is = kinds.length ? "; the band is the strategy at work" : "; no strategy switches: the weights are fixed";
  $("history-about").textContent =
    `Length of the combined gradient, losses and weights, step by step${band_is}.${which}${when}`;
}
function startHistory() {
  if (!D.history) return;
  $("history").hidden = false;
  view(["point"], responsive($("history-plot"), plotHistory));
}
