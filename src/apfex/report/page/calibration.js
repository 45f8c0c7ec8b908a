/* Whether probabilities are what they say: the reliability curve, the Brier score, every group. */

const MEASURES = {
  brier: ["Brier score", "mean squared distance of probability and outcome; smaller is better"],
  auc: ["AUC", "chance that somebody who is “{}” gets the higher probability of two; 50% is chance"],
  calibration: ["Outcome less probability", "0 where probabilities are right on average"],
};
function plotCalibration(width) {
  const { bins } = D.calibration;
  const size = Math.min(width, 460);
  const plot = frame(size, Math.round(0.85 * size), {
    x: [0, 1],
    y: [0, 1],
    xLabel: `probability of “${visible(D.favorable)}”`,
    yLabel: "share that was so",
    xForm: (value) => percent(value, 0),
    yForm: (value) => percent(value, 0),
  });
  const diagonal = { x1: plot.x(0), y1: plot.y(0), x2: plot.x(1), y2: plot.y(1) };
  const marks = bins.map(({ probability, share, lower, upper }) => {
    const x = plot.x(probability);
    return [
      known(lower) && svg("line", { class: "interval", x1: x, x2: x, y1: plot.y(lower), y2: plot.y(upper) }),
      svg("circle", { class: "dot", cx: x, cy: plot.y(share), r: 5 }),
    ];
  });
  const curve = path(bins.map((bin) => bin.probability), bins.map((bin) => bin.share), plot);
  const label = "Share that came true against probability; the table has the numbers";
  const box = { width: size, height: Math.round(0.85 * size) };
  $("calibration-plot").replaceChildren(
    svg(
      "svg",
      { ...box, viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": label, class: "rate-mark" },
      plot.axes,
      svg("line", { class: "tolerance", ...diagonal }),
      svg("path", { class: "line l0", d: curve }),
      marks,
    ),
  );
}
function drawCalibrationTables() {
  const { measures, constant, bins, groups } = D.calibration;
  const interval = (one, form) => cell(between(one.lower, one.upper, form), "number");
  const measureRows = Object.entries(measures).map(([key, one]) => {
    const [title, text] = MEASURES[key];
    return el(
      "tr",
      {},
      rowHead([title, el("span", { class: "also no-csv" }, text.replace("{}", visible(D.favorable)))]),
      cell(decimal(one.value), "number strong"),
      interval(one, decimal),
      cell(key === "brier" ? decimal(constant) : "–", "number wide"),
      cell(text.replace("{}", visible(D.favorable)), "csv-only"),
    );
  });
  const binRows = bins.map((one) =>
    el(
      "tr",
      {},
      rowHead(percent(one.probability), "number"),
      cell(percent(one.share), "number strong"),
      interval(one, percent),
      cell(count(one.rows), "number"),
    ),
  );
  const named = new Map(crossing.groups.map((group) => [group.name, group]));
  const off = [...groups].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const groupLine = (one) =>
    el(
      "tr",
      {},
      groupCells(crossing, named.get(one.group) || { name: one.group }),
      cell(count(one.rows), "number"),
      cell(percent(one.probability), "number"),
      cell(percent(one.probability + one.value), "number"),
      cell(points(one.value), "number strong"),
      cell(between(one.lower, one.upper, points), "number wide"),
    );
  const most = state.printed ? off.length : 12;
  $("calibration-tables").replaceChildren(
    table(
      "How good the probabilities are",
      ["Measure", ["Value", "number"], ["Interval", "number"], ["Same probability for all", "number wide"], ["Meaning", "csv-only"]],
      measureRows,
    ),
    table(
      "Probability and what came true",
      [["Mean probability", "number"], ["Share that was so", "number"], ["Interval", "number"], ["Rows", "number"]],
      binRows,
      { css: "numbered" },
    ),
  );
  $("calibration-groups").replaceChildren(
    el("h3", {}, "By group, farthest off first"),
    table(
      `Probabilities by group of ${byText(crossing.by)}`,
      [
        ...groupHeads(crossing),
        ["Rows", "number"],
        ["Mean probability", "number"],
        ["Share that was so", "number"],
        ["Difference", "number"],
        ["Interval", "number wide"],
      ],
      off.slice(0, most).map(groupLine),
      { all: () => off.map(groupLine) },
    ),
    off.length > most && el("p", { class: "quiet" }, `${plural(off.length - most, "group")} closer to the diagonal not shown.`),
  );
}
function startCalibration() {
  if (!D.calibration) return;
  $("calibration").hidden = false;
  $("calibration-about").textContent =
    `How often people were “${visible(D.favorable)}” who got a certain probability of it, on the same rows. ` +
    "On the line, probabilities are what they say. They are the same at every point; decisions differ.";
  responsive($("calibration-plot"), plotCalibration);
  view(["printed"], drawCalibrationTables);
}
