// The index of all episodes: search, filters, and a list that the keyboard walks through.

const PAGE = 100; // rows of the list at a time
const FILTERS = ["run", "agent", "outcome", "cause", "tier", "shift", "severity", "kind"];
const ORDER = { failed: 0, unclear: 1, void: 2, passed: 3 };

/** The index: rows in the order in which they are listed, and where each is by its key. */
const index = { rows: [], byKey: new Map(), shown: [], limit: PAGE };

/** A row from its numbers, which are places in the lists of the data. */
function addRow(id, [run, agent, task, stack, trial, result, cause]) {
  const about = data.stacks[stack];
  const [kind, place] = data.tasks[task];
  const row = {
    key: `${run}-${id}`, id, stack: about, trial,
    run: data.runs[run], agent: data.agents[agent], kind, task: `${kind}/${place}`,
    outcome: data.outcomes[result], cause: data.causes[cause][0], why: data.causes[cause][1],
    tier: about.tier, shift: about.shifts.length ? about.shifts : ["clean"],
    severity: about.severities.map(String),
  };
  row.words = [row.id, row.run, row.agent, row.task, about.name.replaceAll("_", " "), about.name, row.tier,
    row.outcome, row.cause, cause ? row.why : ""].join(" ").toLowerCase();
  index.rows.push(row);
  index.byKey.set(row.key, row);
}

/** Failures first; of these, those whose steps are on this page, each way to fail before any twice. */
function sortRows() {
  const places = new Map(Object.keys(data.traces).map((key, place) => [key, place]));
  const kept = (row) => places.get(row.key) ?? places.size;
  index.rows.forEach((row, place) => { row.place ??= place; });
  index.rows.sort((a, b) =>
    ORDER[a.outcome] - ORDER[b.outcome] || kept(a) - kept(b) || a.place - b.place);
}

/** The values of a filter that occur, in reading order. */
function valuesOf(filter) {
  return [...new Set(index.rows.flatMap((row) => row[filter]))].filter(Boolean).sort();
}

function fillFilters() {
  for (const filter of FILTERS) {
    const select = $(`ep-${filter}`);
    const values = valuesOf(filter);
    const before = select.value;
    const labels = [el("option", { value: "" }, "any"), ...values.map((value) =>
      el("option", { value }, String(value).replaceAll("_", " ").slice(0, 80)))];
    select.replaceChildren(...labels);
    select.value = values.includes(before) ? before : "";
    select.closest("label").hidden = values.length < 2;
  }
}

/** What is said in a trace, for searching; made once. */
function spoken(row) {
  const trace = data.traces[row.key];
  if (trace && row.trace == null) row.trace = JSON.stringify(trace.steps).toLowerCase();
  return row.trace || "";
}

function applyFilters() {
  const wanted = FILTERS.map((filter) => [filter, $(`ep-${filter}`).value]).filter(([, value]) => value);
  const words = $("ep-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  index.shown = index.rows.filter((row) =>
    wanted.every(([filter, value]) => [row[filter]].flat().includes(value)) &&
    words.every((word) => row.words.includes(word) || spoken(row).includes(word)));
  index.limit = PAGE;
  drawList();
}

function listItem(row) {
  const shift = row.stack.name.replaceAll("_", " ") || "clean";
  const trial = row.trial ? ` (trial ${row.trial + 1})` : "";
  const away = !live && !data.traces[row.key];
  return el("li", {}, el("a", { href: `#episode-${row.key}`, "data-key": row.key, class: away && "ep-away",
    "aria-current": row.key === opened && "true" },
    badge(row.outcome, row.outcome), " ", el("span", { class: "ep-shift" }, brief(shift)), " ",
    el("span", {}, brief(row.task + trial)), " ", el("span", {}, brief(row.agent, 60)), " ",
    el("span", { class: "ep-why" }, row.cause, away ? [row.cause && ", ", "steps not in this page"] : "")));
}

function drawList() {
  const focused = document.activeElement?.dataset?.key;
  const list = $("ep-list");
  list.replaceChildren(...index.shown.slice(0, index.limit).map(listItem));
  const left = index.shown.length - index.limit;
  $("ep-more").hidden = left <= 0;
  $("ep-more").textContent = `Show ${number(Math.min(left, PAGE))} more of ${number(Math.max(left, 0))}`;
  $("ep-count").textContent = `${number(index.shown.length)} of ${number(index.rows.length)} episodes`;
  $("ep-none").hidden = index.shown.length > 0 || !index.rows.length;
  if (focused) linkOf(focused)?.focus({ preventScroll: true });
}

function showMore() {
  const from = index.limit;
  index.limit += PAGE;
  drawList();
  $("ep-list").children[from]?.querySelector("a").focus();
}

const linkOf = (key) => document.querySelector(`#ep-list a[data-key="${CSS.escape(key)}"]`);

/** Moves through the list from where the reader is, and opens what it comes to. */
function move(by) {
  const place = index.shown.findIndex((row) => row.key === opened);
  const next = index.shown[Math.max(0, Math.min(index.shown.length - 1, place + by))];
  if (!next) return;
  const at = index.shown.indexOf(next);
  if (at >= index.limit) {
    index.limit = at + PAGE;
    drawList();
  }
  linkOf(next.key)?.focus();
  go(next.key);
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  const inList = event.target.closest("#ep-list");
  const by = { j: 1, k: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1, Home: -1e9, End: 1e9 } : {}) }[event.key];
  if (!by) return;
  event.preventDefault();
  move(by);
}
