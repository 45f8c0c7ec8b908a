/* Gaps of every criterion and grouping, and the table of all points. */

const ALARM = Object.keys(VERDICTS);

function gapRow(gap, top) {
  const criterion = criterionOf.get(gap.criterion);
  const interval = between(gap.lower, gap.upper, decimal);
  return el(
    "tr",
    {},
    rowHead([criterion.title, narrowLine(groupingName(gap.by))]),
    cell(groupingName(gap.by), "wide"),
    cell(gapMark(gap, top), "graph wide"),
    cell([decimal(gap.gap), narrowLine(interval), narrowLine(badge(gap.verdict))], "number strong"),
    cell(interval, "number wide"),
    cell([badge(gap.verdict)], "wide"),
    cell([`${count(gap.groups_compared)} of ${count(gap.groups)}`, narrowLine(" groups")], "number"),
    gap.ends.length
      ? gap.ends.map(({ group, rate }) => cell([nameNode(group), ` ${percent(rate)}`], "wide"))
      : [cell("–", "wide"), cell("–", "wide")],
    CONSTANT && isFront && cell(decimal(constantGap(gap.criterion, gap.by)), "number wide"),
    cell(decimal(gap.noise_floor), "number wide"),
    cell(decimal(gap.p_adjusted), "number wide"),
  );
}
function drawGaps() {
  const { gaps } = current();
  const top = gapTop(gaps);
  const rank = (gap) => ALARM.indexOf(gap.verdict);
  const ordered = [...gaps].sort((a, b) => rank(a) - rank(b) || (b.gap || 0) - (a.gap || 0));
  const heads = [
    "Gap in",
    ["Between groups of", "wide"],
    [`0 to ${decimal(top, 2)}`, "graph wide"],
    ["Gap", "number"],
    ["Interval", "number wide"],
    ["Verdict", "wide"],
    ["Groups compared", "number"],
    ["Lowest group", "wide"],
    ["Highest group", "wide"],
    ...(CONSTANT && isFront ? [[`Gap of ${CONSTANT}`, "number wide"]] : []),
    ["Noise floor", "number wide"],
    ["p (Holm)", "number wide"],
  ];
  const whose = isFront ? `point ${state.point}` : "the decisions";
  const upright = (css) => sample(svg("line", { class: css, x1: 0, x2: 0, y1: -8, y2: 8 }));
  $("gaps-table").replaceChildren(
    table(`Gaps of ${whose} by every grouping`, heads, ordered.map((gap) => gapRow(gap, top)), { css: "dense" }),
    legend([
      [upright("tolerance"), `limit ${tolerance}`],
      [upright("floor"), "noise floor"],
      [sample(svg("line", { class: "interval", x1: -12, x2: 12 })), `${percent(D.settings.confidence, 0)} interval`],
    ]),
  );
}
function startGaps() {
  $("gaps-about").textContent =
    "The largest difference between two groups, most alarming verdict first, then the largest gap. " +
    "“Inconclusive” is not “fair”: there is too little data to tell.";
  view(["point"], drawGaps);
}

const validationGap = ({ gap, compared }) => (known(compared) || !known(gap) ? decimal(compared) : `${decimal(gap)}‡`);
function pointRow(point) {
  const here = point.point === state.point;
  const onclick = () => choose({ point: point.point });
  const label = `Show point ${point.point}`;
  const attributes = { type: "button", class: "go no-print", "aria-label": label, onclick };
  const go = el("button", attributes, point.point);
  const tags = [
    point.trivial && "trivial",
    point.near_constant && "near constant",
    point.levelled_down.length > 0 && "levelled down",
    point.caveats.some(({ code }) => code === "violation") && "violation",
    isBaseline(point) && "starting point",
    point.caveats.some(({ code }) => code === "gap_grew") && "a gap grew",
    point.point === D.chosen && chosenTag(),
  ].filter(Boolean);
  return el(
    "tr",
    { class: here ? "here" : null, "aria-current": here ? "true" : null },
    rowHead([go, el("span", { class: "print-only" }, point.point)]),
    cell(tags.join(", ")),
    cell(percent(point.error), "number"),
    cell(percent(point.balanced_error), "number wide"),
    CONSTANT && cell(gainText(point), "number"),
    CONSTANT && cell(percent(point.gain_share, 0), "number wide"),
    mainGaps(point).map((gap) => [
      cell([decimal(gap.gap), el("br"), el("span", { class: "no-csv" }, badge(gap.verdict))], "number"),
      cell(gap.verdict, "csv-only"),
    ]),
    cell(percent(point.validation.error), "number validation"),
    D.criteria.map(({ key }) => cell(validationGap(point.validation.gaps[key] || {}), "number validation")),
  );
}
/* What doing nothing would give. */
function constantRow() {
  if (!CONSTANT) return [];
  const none = () => cell("–", "number validation");
  return el(
    "tr",
    { class: "constant" },
    rowHead(CONSTANT),
    cell("constant decision"),
    cell(percent(D.constant.error), "number"),
    cell(percent(D.constant.balanced_error), "number wide"),
    cell("0.0 pts", "number"),
    cell("0%", "number wide"),
    D.criteria.map(({ key }) => [cell(decimal(constantGap(key, crossing.by)), "number"), cell("", "csv-only")]),
    none(),
    D.criteria.map(none),
  );
}
function drawPoints() {
  const heads = [
    "Point",
    "Remarks",
    ["Error", "number"],
    ["Balanced error", "number wide"],
    ...(CONSTANT ? [["Gain over constant", "number"], ["Way to the best", "number wide"]] : []),
    ...D.criteria.flatMap(({ title }) => [[`${title} gap`, "number"], [`${title}: verdict`, "csv-only"]]),
    ["Error, validation rows", "number validation"],
    ...D.criteria.map(({ title }) => ([`${title} gap, validation rows`, "number validation"])),
  ];
  const had = document.activeElement && document.activeElement.classList.contains("go");
  $("points-table").replaceChildren(
    table("All points of the front", heads, [...D.points.map(pointRow), constantRow()], {
      css: D.criteria.length > 2 ? "numbered many" : "numbered",
    }),
  );
  if (had) $("points-table").querySelector("tr.here button").focus();
}
function startPoints() {
  $("points").hidden = false;
  $("points-about").textContent =
    `Gaps are between groups of ${byText(crossing.by)}. Point ${D.baseline} was ${CHOSE}; the others are ` +
    "compared with it. The last row gives everybody one label: a model that closes less than half of the way from " +
    "it to the best model is near constant. The last columns are of the validation rows, which choose the point for a limit and may flatter it; groups " +
    `of fewer than ${D.settings.min_count} rows are left out there, too (‡ where they could not be).`;
  view(["point"], drawPoints);
}
