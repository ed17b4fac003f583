// What the agent was shown before its first step: the request and the tools, clean and shifted.

const PARTS = [["name", "renamed"], ["params", "with other parameters"], ["text", "described otherwise"]];

/** The request and the system prompt, where they differ or as one. */
function request(clean, shifted) {
  const rows = [["System prompt", clean?.system, shifted.system]];
  (shifted.asks || []).forEach(([text], i) => {
    const before = clean?.asks?.[i];
    rows.push([i ? `The user's request ${i + 1}` : "The user asks", before && before[0], text]);
  });
  return rows.map(([title, before, after]) => {
    if (clean && before != null && beginning(before) === beginning(after)) {
      return el("div", { class: "ep-told" }, el("h4", {}, title, el("small", {}, " the same in both")),
        block(after));
    }
    return el("div", { class: "ep-told" }, el("h4", {}, title),
      el("div", { class: "ep-two" },
        clean && side(0, before == null ? gap("Not asked here") : block(before, after, 0)),
        side(1, block(after, clean ? before ?? "" : null, 1))));
  });
}

/** The signature of a tool as text, for comparing. */
const params = (tool) => tool.params
  .map(([called, required, kind]) => `${beginning(called)}${required ? "" : " (optional)"}: ${beginning(kind)}`)
  .join("\n");
const parts = (tool) => (tool || null) && ({ name: beginning(tool.name), params: params(tool), text: beginning(tool.text) });

function toolCard(tool, other, which) {
  const [mine, its] = [parts(tool), parts(other)];
  return el("div", { class: "ep-tool" },
    el("div", { class: "ep-name", dir: "auto" }, marked(mine.name, its && its.name, which)),
    block(mine.text, its ? its.text : null, which),
    mine.params !== its?.params && el("div", { class: "ep-params" }, block(mine.params, its ? its.params : null, which)));
}

/** The tools of both scenes: what differs in full, what is the same by name only. */
function tools(pack, clean, shifted, pairs) {
  if (shifted.missing) return el("p", { class: "ep-note" }, "The tools cannot be shown: ", brief(shifted.missing, 600));
  const look = (scene, place) => (place == null ? null : pack.tools[scene.tools[place]]);
  const rows = clean && pairs
    ? pairs.map(([left, right]) => [look(clean, left), look(shifted, right)])
    : shifted.tools.map((place) => [pack.tools[place], pack.tools[place]]);
  const kinds = new Map();
  const count = (kind) => kinds.set(kind, (kinds.get(kind) || 0) + 1);
  const changed = [];
  const same = [];
  for (const [before, after] of rows) {
    if (before === after) {
      same.push(after);
      continue;
    }
    changed.push([before, after]);
    if (!before) count("added");
    else if (!after) count("removed");
    else for (const [part, word] of PARTS) if (parts(before)[part] !== parts(after)[part]) count(word);
  }
  const paired = changed.some(([before, after]) => before && after);
  return el("details", { class: "ep-tools" },
    el("summary", {}, summary(kinds, same.length, clean, shifted)),
    (paired ? changed : beside(changed)).map(([before, after]) => el("div", { class: "ep-two" },
      side(0, before ? toolCard(before, paired && after, 0) : gap("No such tool")),
      side(1, after ? toolCard(after, paired && before, 1) : gap("Taken away")))),
    same.length > 0 && el("p", { class: "ep-same" }, changed.length ? "The same in both: " : "",
      same.map((tool, i) => [i ? ", " : "", el("code", {}, brief(tool.name))])));
}

/** Where no tool has a partner, as in another domain, they are set beside each other as they come. */
function beside(rows) {
  const [gone, made] = [0, 1].map((which) => rows.map((row) => row[which]).filter(Boolean));
  const longer = gone.length > made.length ? gone : made;
  return longer.map((_, i) => [gone[i], made[i]]);
}

function summary(kinds, same, clean, shifted) {
  const shown = shifted.tools.length;
  if (!clean) return `${shown} tools shown`;
  if (!kinds.size) return `Tools: the same ${shown} in both`;
  const words = [...kinds].map(([kind, count]) => `${count} ${kind}`);
  return `Tools: ${words.join(", ")}; ${same} the same`;
}
