// Texts of models and tools: hostile until shown otherwise. They reach the page as text nodes only.

const SHOWN = 1200; // characters of a text before "show all"
const MOST_CELLS = 2e6; // of the table behind a word diff; larger texts are compared as a whole
const ALIKE = 0.3; // share of words in common under which two texts are just another text each
const MOST_ODD = 2000; // spans for invisible characters in one text; the rest is plain text
const ODD = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]+", "gu");
const TOKENS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

/** An element; strings among the children become text nodes, what is false is left out. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, String(value));
  }
  made.append(...children.flat(2).filter((child) => child || child === 0));
  return made;
}

const CONTROLS = ("NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK " +
  "SYN ETB CAN EM SUB ESC FS GS RS US").split(" ");

/** An invisible character by its name or number; few fonts have the symbols that Unicode offers. */
function symbol(character) {
  const code = character.codePointAt(0);
  return `[${CONTROLS[code] || (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`)}]`;
}

/** Text nodes in which nothing is invisible and no character reorders its surroundings. */
function visible(text) {
  const parts = [];
  let from = 0;
  let spans = 0;
  for (const match of text.matchAll(ODD)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const symbols = Array.from(match[0], symbol).join("");
    parts.push(spans++ < MOST_ODD ? el("span", { class: "ep-odd" }, symbols) : symbols);
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** A cut text is a list of its beginning and its full length. */
const beginning = (value) => (Array.isArray(value) ? value[0] : value || "");
const fullLength = (value) => (Array.isArray(value) ? value[1] : (value || "").length);

/** A short hostile text in a line of ours: isolated, so that it cannot turn its surroundings. */
function brief(value, most = 120) {
  const text = beginning(value);
  const more = fullLength(value) > most ? "\u2026" : "";
  return el("bdi", {}, visible(text.slice(0, most)), more);
}

const number = (value) => value.toLocaleString("en");

/** The parts of two texts: [[changed, text], ...] for each; null where they have little in common. */
function diff(before, after) {
  const [a, b] = [before, after].map((text) => text.match(TOKENS) || []);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const middle = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const flags = [a, b].map((tokens, side) =>
    tokens.map((_, i) => i >= start && i < tokens.length - end && !middle[side].has(i - start)));
  const words = (tokens, which) => tokens.filter((token, i) => /[\p{L}\p{N}]/u.test(token) && which(i)).length;
  const kept = words(a, (i) => !flags[0][i]);
  if (kept < ALIKE * Math.min(words(a, () => true), words(b, () => true))) return null;
  return [runs(a, flags[0]), runs(b, flags[1])];
}

/** The places of a longest common subsequence of two lists, as two sets. */
function common(a, b) {
  const found = [new Set(), new Set()];
  const wide = b.length + 1;
  if (!a.length || !b.length || a.length * b.length > MOST_CELLS) return found;
  const best = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * wide + j] = a[i] === b[j]
        ? best[(i + 1) * wide + j + 1] + 1
        : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      found[0].add(i++);
      found[1].add(j++);
    } else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

/** Neighbours of one kind joined; a gap without a word between two changes is a change as well. */
function runs(tokens, flags) {
  const parts = [];
  tokens.forEach((token, i) => {
    const last = parts.at(-1);
    if (last && last[0] === flags[i]) last[1] += token;
    else parts.push([flags[i], token]);
  });
  const joined = [];
  parts.forEach(([changed, text], i) => {
    const between = i > 0 && i < parts.length - 1 && !/[\p{L}\p{N}]/u.test(text);
    const flag = changed || between;
    const last = joined.at(-1);
    if (last && last[0] === flag) last[1] += text;
    else joined.push([flag, text]);
  });
  return joined;
}

/** A text with the words marked that the other one does not have; `side` 0 is the clean one. */
function marked(text, other, side) {
  if (other == null || other === text) return visible(text);
  const parts = side ? diff(other, text) : diff(text, other);
  const long = text.length > 60; // a name stays in its line
  if (!parts) return [el(side ? "ins" : "del", { class: long && "ep-whole" }, visible(text))];
  return parts[side].flatMap(([changed, part]) =>
    (changed && part.trim() ? el(side ? "ins" : "del", {}, visible(part)) : visible(part)));
}

/** A text of any length as a block, with a button for the rest and a note where it was cut. */
function block(value, other, side) {
  const text = beginning(value);
  const against = other == null ? null : beginning(other);
  const body = el("div", { class: "ep-text", dir: "auto" });
  const draw = (most) => {
    const cut = (whole) => (whole == null || most == null ? whole : whole.slice(0, most));
    body.replaceChildren(...marked(cut(text), cut(against), side));
  };
  const box = el("div", { class: "ep-block" }, body);
  draw(SHOWN);
  if (text.length > SHOWN) {
    const all = `Show all ${number(text.length)} characters`;
    const button = el("button", { type: "button", class: "button", "aria-expanded": "false" }, all);
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") === "true";
      draw(open ? SHOWN : null);
      button.setAttribute("aria-expanded", String(!open));
      button.textContent = open ? all : "Show less";
    });
    box.append(button);
  }
  if (fullLength(value) > text.length) {
    box.append(el("p", { class: "ep-note" },
      `Cut here at ${number(text.length)} of ${number(fullLength(value))} characters; ` +
        "the whole trace is in the run folder."));
  }
  return box;
}
