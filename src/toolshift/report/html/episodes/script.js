// Opening an episode by its link, and following a run that is served while it goes on.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("episodes-data").textContent);
const live = document.querySelector('meta[name="toolshift-live"]')?.content;
const atLoad = data.ids.length / 10; // episodes that the figures of the page count
const POLL = 1500; // milliseconds between looks at a run that is going on
let opened = "";
let missing = false; // what is open is not in the index
let asked = 0;

/** Where the traces of an episode are: on the page, or fetched. */
async function packOf(row) {
  if (data.traces[row.key] || !live) return data;
  const reply = await fetch(`${live}/trace/${row.key}`);
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

/** Opens an episode; `jump` brings the reader to it. */
async function open(key, jump) {
  const row = index.byKey.get(key);
  const ticket = (asked += 1);
  linkOf(opened)?.removeAttribute("aria-current");
  opened = key;
  missing = !row;
  linkOf(key)?.setAttribute("aria-current", "true");
  let parts;
  try {
    const pack = row && await packOf(row);
    const trace = pack?.traces[key];
    parts = !row ? unknown(key) : trace ? episode(pack, row, trace) : elsewhere(row);
  } catch (fault) {
    parts = [el("p", { class: "ep-note" }, "This episode cannot be shown: ", brief(fault.message, 600))];
  }
  if (ticket !== asked) return; // another one was opened meanwhile
  $("ep-title").replaceChildren(...title(row));
  $("ep-command").replaceChildren(...(row ? command("trace", row) : []));
  $("ep-steps").replaceChildren(...parts.flat(2).filter(Boolean));
  if (jump) $("ep-title").focus();
  if (jump) $("ep-episode").scrollIntoView();
}

function title(row) {
  if (!row) return ["No such episode"];
  const shift = row.stack.name.replaceAll("_", " ") || "clean";
  return [brief(row.agent), " on ", brief(row.task), ", ", brief(shift),
    row.trial ? `, trial ${row.trial + 1}` : ""];
}

/** The words to type for an episode. */
function command(which, row) {
  const words = which === "trace" ? `toolshift trace ${quoted(row.run)} ${row.id}` : `toolshift report --open ${quoted(row.run)}`;
  return ["In a terminal: ", el("code", {}, brief(words, 300))];
}

const quoted = (word) => (/^[\w.\/+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function elsewhere(row) {
  const about = [["Outcome", badge(row.outcome, row.outcome)], ["Cause", row.cause && `${row.cause}: ${row.why}`]];
  return [
    el("dl", { class: "ep-verdicts" }, about.filter(([, value]) => value).map(([key, value]) =>
      [el("dt", {}, key), el("dd", {}, value)])),
    el("p", {}, "The steps of this episode are not in this page, which keeps those that matter most. All are in the run folder. ",
      command("report", row)),
  ];
}

const unknown = (key) => [el("p", { class: "ep-note" },
  live ? "There is no episode of this name in the run yet: " : "There is no episode of this name: ", brief(key))];

/** Goes to an episode without a new step in the browser's history. */
function go(key) {
  history.replaceState(null, "", `#episode-${key}`);
  open(key, false);
}

const fromHash = () => /^#episode-(.+)$/.exec(location.hash)?.[1] || "";

function onHash() {
  const key = fromHash();
  if (key && key !== opened) open(key, true);
}

// -- a run that goes on ---------------------------------------------------------------------------

/** Brings the episodes that are new; all of them again where the files were put in order. */
async function follow(state) {
  const reply = await fetch(`${live}/rows?from=${index.rows.length}&version=${state.version}`);
  if (!reply.ok) throw new Error(await reply.text());
  const news = await reply.json();
  if (news.version !== state.version && index.rows.length) {
    index.rows.length = 0;
    index.byKey.clear();
  }
  for (const [id, numbers] of news.rows) addRow(id, numbers);
  if (news.rows.length) {
    sortRows();
    fillFilters();
    const limit = index.limit;
    applyFilters();
    index.limit = Math.max(limit, PAGE);
    drawList();
  }
  say(news);
  return { version: news.version, done: index.rows.length >= news.planned };
}

function say(news) {
  const all = index.rows.length >= news.planned;
  const figures = index.rows.length > atLoad;
  $("ep-live").replaceChildren(
    all ? "The run is complete." : `Following the run: ${number(index.rows.length)} of ${number(news.planned)} episodes.`,
    ...(figures ? [" The figures above are older: ", el("a", { href: location.pathname }, "make them again"), "."] : []));
}

async function keepFollowing() {
  let state = { version: "" };
  for (;;) {
    try {
      state = await follow(state);
      if (!opened) start();
      else if (missing && index.byKey.has(opened)) open(opened, false);
    } catch (fault) {
      $("ep-live").textContent = `Not following: ${fault.message}. Is toolshift report --open still running?`;
    }
    await new Promise((ready) => { setTimeout(ready, state.done ? 10 * POLL : POLL); });
  }
}

// -- the beginning --------------------------------------------------------------------------------

function start() {
  const key = fromHash();
  if (key) open(key, true);
  else if (index.shown.length) open((index.shown.find((row) => row.stack.name) || index.shown[0]).key, false);
}

for (let i = 0; i < atLoad; i += 1) {
  addRow(data.ids.slice(10 * i, 10 * i + 10), data.rows.map((column) => column[i]));
}
sortRows();
fillFilters();
applyFilters();
for (const filter of FILTERS) $(`ep-${filter}`).addEventListener("change", applyFilters);
$("ep-search").addEventListener("input", applyFilters);
$("ep-form").addEventListener("submit", (event) => event.preventDefault());
$("ep-form").addEventListener("reset", () => setTimeout(applyFilters));
$("ep-more").addEventListener("click", showMore);
$("ep-previous").addEventListener("click", () => move(-1));
$("ep-next").addEventListener("click", () => move(1));
$("episodes").addEventListener("keydown", onKey);
window.addEventListener("hashchange", onHash);
$("ep-body").hidden = false;
if (live) keepFollowing();
else start();
