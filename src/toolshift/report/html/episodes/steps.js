// One episode, or the clean and the shifted one side by side, row by row.

const SIDES = ["Clean", "Shifted"];
const VERBS = { call: "calls", ask: "asks the user", answer: "answers", refuse: "refuses", failure: "breaks off", budget: "has spent its budget of" };

/** A cell of one side; its label is read out, and seen where the columns stack. */
function side(which, ...children) {
  return el("div", { class: `ep-side ep-${which ? "shifted" : "clean"}` },
    el("span", { class: "ep-label" }, SIDES[which]), children);
}

const gap = (text) => el("p", { class: "ep-gap" }, text);

/** A link's text, and what it stands for. */
function badge(kind, text) {
  return el("span", { class: `ep-badge ep-${kind}` }, text);
}

function badges(step) {
  return [
    step.failed && step.kind === "call" && badge("failed", step.error ? ["failed: ", brief(step.error)] : "failed"),
    step.provoked && badge("moved", "failure made by the shift"),
    step.touched && !step.provoked && badge("moved", "result changed by the shift"),
    step.prose && badge("plain", step.judge ? ["in prose, read by ", brief(step.judge)] : "in prose"),
    step.evidence && badge("plain", ["shows: ", brief(step.evidence)]),
  ];
}

function argumentRows(step, other, which) {
  if (!step.args) return null;
  if (!Array.isArray(step.args)) {
    return el("div", {}, el("p", { class: "ep-note" }, "Arguments that could not be read:"), block(step.args.raw));
  }
  const theirs = Array.isArray(other?.args) ? other.args : null;
  const text = (args) => args.map(([key, value]) => `${beginning(key)} = ${beginning(value)}`).join("\n");
  const cut = step.args.find(([, value]) => fullLength(value) > beginning(value).length);
  const mine = cut ? [text(step.args), fullLength(cut[1])] : text(step.args);
  return beginning(mine) && el("div", { class: "ep-args" }, block(mine, theirs ? text(theirs) : null, which));
}

/** The tool that a call names, or the reason of a refusal. */
function calledBy(step, like, which) {
  const text = beginning(step.name).slice(0, 200);
  if (step.kind === "refuse") return el("bdi", {}, visible(text.replaceAll("_", " ")));
  if (step.kind !== "call") return null;
  const other = like && beginning(like.name).slice(0, 200);
  return el("code", { dir: "auto", class: "ep-called" }, marked(text, other, which));
}

/** A step; `other` is what stands beside it, against which its words are marked. */
function stepCard(step, place, other, which, guilt) {
  const like = other && other.kind === step.kind ? other : null;
  const words = calledBy(step, like, which);
  return el("div", { class: `ep-step${guilt ? " ep-guilty" : ""}` },
    guilt && el("p", { class: "ep-cause" }, el("strong", {}, "Here it goes wrong: "), guilt),
    el("p", { class: "ep-act" }, el("span", { class: "ep-number" }, String(place + 1)),
      ` ${VERBS[step.kind] || step.kind} `, words, " ", badges(step)),
    argumentRows(step, like, which),
    step.said && el("div", { class: "ep-said" }, block(step.said, like?.said ?? null, which)),
    step.true && el("p", { class: "ep-note" }, "Stands for: ", brief(step.true, 300)),
    step.text && el("div", { class: "ep-back" },
      el("span", { class: "ep-from" }, step.kind === "call" ? "result" : "user"),
      block(step.text, like?.text ?? null, which)),
    step.notice && el("div", { class: "ep-back" }, el("span", { class: "ep-from" }, "system"), block(step.notice)),
    step.wrote && el("p", { class: "ep-note" }, "Wrote: ", brief(step.wrote, 300)),
    step.tools && el("p", { class: "ep-note" }, "Tools on offer from here: ", brief(step.tools, 2000)));
}

/** One row of the alignment. */
function alignedRow(clean, shifted, [left, right, same, note], place) {
  const [before, after] = [clean.steps[left], shifted.steps[right]];
  const first = place === shifted.diverges;
  const guilt = right != null && right === shifted.guilty && shifted.cause;
  const own = left != null && left === clean.guilty && clean.cause;
  return el("li", { class: `ep-row${same ? "" : " ep-apart"}` },
    first && el("p", { class: "ep-first" }, el("strong", {}, "First divergence. "), note),
    !first && note && el("p", { class: "ep-note ep-between" }, note),
    el("div", { class: "ep-two" },
      side(0, before ? stepCard(before, left, after, 0, own) : gap("No such step")),
      side(1, after ? stepCard(after, right, before, 1, guilt) : gap("No such step"))));
}

/** Whether a row only says again what the row before it has said, as a call that is made again. */
function repeats(shifted, place) {
  const [[before, last], [clean, right]] = [shifted.pairs[place - 1] || [0], shifted.pairs[place]];
  const again = clean == null && before == null && right !== shifted.guilty && place !== shifted.diverges;
  return again && JSON.stringify(shifted.steps[last]) === JSON.stringify(shifted.steps[right]);
}

/** Both episodes, aligned; what is said over and over is folded up. */
function aligned(clean, shifted) {
  const items = [];
  for (let place = 0; place < shifted.pairs.length; place += 1) {
    let until = place;
    while (until < shifted.pairs.length && repeats(shifted, until)) until += 1;
    const more = [];
    for (; place < until; place += 1) more.push(alignedRow(clean, shifted, shifted.pairs[place], place));
    if (more.length > 1) {
      items.push(el("li", { class: "ep-row" }, el("details", { class: "ep-again" },
        el("summary", {}, `The same again, ${more.length} times`), el("ol", { class: "ep-rows" }, more))));
    } else items.push(...more);
    if (place < shifted.pairs.length) items.push(alignedRow(clean, shifted, shifted.pairs[place], place));
  }
  return el("ol", { class: "ep-rows" }, items);
}

/** One episode alone. */
function alone(trace) {
  return el("ol", { class: "ep-rows" }, trace.steps.map((step, place) =>
    el("li", { class: "ep-row" },
      stepCard(step, place, null, 1, place === trace.guilty && trace.cause))));
}

/** An episode and all that is said of it. `row` is its row in the index. */
function episode(pack, row, trace) {
  const clean = trace.clean ? pack.traces[trace.clean] : null;
  const [scene, base] = [pack.scenes[trace.scene], clean && pack.scenes[clean.scene]];
  const apart = clean && trace.diverges == null;
  return [
    el("dl", { class: "ep-verdicts" },
      clean && [el("dt", {}, "Clean"), el("dd", {}, outcome(clean.verdict))],
      [el("dt", {}, row.stack.name ? "Shifted" : "Clean"), el("dd", {}, outcome(trace.verdict),
        trace.cause && el("span", { class: "ep-why" }, " ", trace.cause))],
      trace.right && [el("dt", {}, "Expected:"), el("dd", {}, brief(trace.right, 300))],
      row.stack.about.length > 0 && [el("dt", {}, "The shift"), el("dd", {}, row.stack.about.join(" "))]),
    row.stack.name && !clean && el("p", { class: "ep-note" }, "There is no clean episode of this task to set beside it."),
    request(base, scene),
    tools(pack, base, scene, trace.toolPairs),
    el("h4", {}, "Step by step"),
    clean && legend(),
    apart && el("p", { class: "ep-note" }, "Both episodes do the same throughout, each through its own interface."),
    clean && el("div", { class: "ep-two ep-heads", "aria-hidden": "true" }, SIDES.map((word) => el("span", {}, word))),
    clean ? aligned(clean, trace) : alone(trace),
    trace.more > 0 && el("p", { class: "ep-note" }, `${number(trace.more)} more steps are in the run folder.`),
  ];
}

const outcome = (verdict) => badge(verdict.split(":")[0], verdict);

function legend() {
  return el("p", { class: "ep-legend" }, "Left the clean episode, right the shifted one; steps that do the same stand in one row. ",
    el("del", {}, "Only clean"), " and ", el("ins", {}, "only shifted"), " words are marked.");
}
