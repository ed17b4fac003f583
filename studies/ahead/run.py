"""What `toolshift` says of a release before it is run, and what then happens.

    python studies/ahead/run.py install FOLDER   # every version of servers.toml; npm, pip, network
    python studies/ahead/run.py lists FOLDER     # tools/list of each, and no other question
    python studies/ahead/run.py users FOLDER     # the calls of users.toml, on the old versions
    python studies/ahead/run.py predict          # from the lists and the calls alone
    python studies/ahead/run.py play FOLDER      # on the new versions; checks the hash first
    python studies/ahead/run.py page             # the tables of README.md
    python studies/ahead/run.py undeclared FOLDER   # an argument that no list declares
    python studies/ahead/run.py again FOLDER     # where today's ToolShift says something else

Servers run without network where the machine allows it, in a scratch folder that is also their
home. A call is refused where the answer is an error of the protocol, says `isError`, or says in its
own words that it failed (`failed_in_words`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import lzma
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import msgspec

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "real_drift"))

from collect import CAPABILITIES, WORK, ask, innermost, install, slug, target_of  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from scipy.stats import beta  # noqa: E402

from toolshift.data.augment import Recipe, augmented  # noqa: E402
from toolshift.drift.calls import Checker, RecordedCall  # noqa: E402
from toolshift.drift.release import ExpectedCall, _meets, read_release  # noqa: E402
from toolshift.interop.mcp_client import Upstream, decline, greet, ignore  # noqa: E402
from toolshift.shifts.release.inputs import side_of  # noqa: E402
from toolshift.shifts.release.mapping import Answers  # noqa: E402

SECONDS = 60
LONGEST = 4000
"""Characters of an answer that are kept; a longer one is kept as its hash and its beginning."""
Call = dict[str, Any]


def servers() -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / "servers.toml").read_text())


def users() -> dict[str, dict[str, list[Call]]]:
    return tomllib.loads((HERE / "users.toml").read_text())


def read(name: str) -> Any:
    return json.loads(lzma.decompress((HERE / f"{name}.json.xz").read_bytes()))


def write(name: str, content: Any) -> None:
    save(name, json.dumps(content, indent=0, ensure_ascii=False).encode())


def save(name: str, raw: bytes) -> None:
    packed = lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)
    (HERE / f"{name}.json.xz").write_bytes(packed)


def folder_of(folder: str, name: str, version: str) -> Path:
    return Path(folder) / f"{slug(name)}@{version}"


def pairs() -> Iterator[tuple[str, str, str]]:
    """Each server with its old and its new version, where there is a user of the old one."""
    known = users()
    for name, about in servers().items():
        for old, new in pairwise(about["versions"]):
            if old in known.get(name, {}):
                yield name, old, new


# -- the servers -----------------------------------------------------------------------------------


def installed(folder: str) -> None:
    for name, about in servers().items():
        for version in about["versions"]:
            where = folder_of(folder, name, version)
            if not where.exists():
                where.mkdir(parents=True)
                install(name, about, version, where)


def scratch(about: Mapping[str, Any], work: Path) -> None:
    """Lays out a scratch folder as servers.toml says."""
    for path, text in about.get("files", {}).items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    if "before" in about:
        subprocess.run(["sh", "-c", about["before"]], cwd=work, capture_output=True, check=True)


def listed(folder: str) -> None:
    """Takes the lists that are not there yet."""
    found = read("lists") if (HERE / "lists.json.xz").exists() else {}
    for name, about in servers().items():
        for version in about["versions"]:
            where = folder_of(folder, name, version)
            if version in found.get(name, {}) or not where.exists():
                continue
            with tempfile.TemporaryDirectory() as work:
                scratch(about, Path(work))
                try:
                    tools = ask(name, about, version, where, Path(work))
                except Exception as fault:
                    print(f"{name} {version}: {str(innermost(fault))[:200]}", flush=True)
                    continue
            found.setdefault(name, {})[version] = tools
            print(f"{name} {version}: {len(tools)} tools", flush=True)
            write("lists", found)


# -- playing ---------------------------------------------------------------------------------------


async def played(
    name: str, version: str, calls: Sequence[Call], folder: str, known: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The answers of one version to calls that are made one after the other.

    `known` has the values that calls take from earlier answers, as they are written in the calls.
    """
    about = servers()[name]
    with tempfile.TemporaryDirectory() as place, (Path(place) / "errors").open("w") as errors:
        work = Path(place) / "work"
        work.mkdir()
        scratch(about, work)
        where = folder_of(folder, name, version)
        target = target_of(name, about, version, where, work, errors)
        async with target.open() as streams, anyio.create_task_group() as group:
            upstream = Upstream(streams, name)
            await group.start(upstream.wire.run, decline, ignore)
            with anyio.fail_after(120):
                await greet(upstream, CAPABILITIES)
                await upstream.tools(None)
            answers, now = [], {WORK: str(work)}
            for call in calls:
                answer = await answered(upstream, call, now)
                for key, pattern in call.get("take", {}).items():
                    taken = re.search(pattern, said(answer))
                    if taken:
                        now[known.get(key, f"{{{key}}}")] = taken[1]
                answers.append(tidy(answer, now))
            group.cancel_scope.cancel()
        return answers


async def answered(upstream: Upstream, call: Call, now: Mapping[str, str]) -> dict[str, Any]:
    text = json.dumps(call.get("arguments", {}))
    for old, new in now.items():
        text = text.replace(old, new)
    params = {"name": call["tool"], "arguments": json.loads(text)}
    try:
        with anyio.fail_after(SECONDS):
            return {"result": await upstream.ask("tools/call", params)}
    except MCPError as fault:
        return {"error": {"code": fault.code, "message": fault.message}}
    except TimeoutError:
        return {"error": {"code": 0, "message": "no answer"}}


def said(answer: Mapping[str, Any]) -> str:
    """The words of an answer: its texts, or the message of an error."""
    if "error" in answer:
        return str(answer["error"]["message"])
    content = answer["result"].get("content") or []
    return "\n".join(one.get("text", f"<{one.get('type')}>") for one in content)


def tidy(answer: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """What is kept of an answer: how it ended, and its words without scratch names."""
    text = said(answer)
    for written, value in now.items():
        text = text.replace(value, written)
    ended = "error" if "error" in answer else "isError" if answer["result"].get("isError") else ""
    words = not ended and failed_in_words(text)
    kept = {"refused": ended or ("words" if words else ""), "said": text}
    if len(text) > LONGEST:
        kept |= {"said": text[:400], "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return kept


def failed_in_words(text: str) -> bool:
    """Whether a result that is no error says that the call failed."""
    try:
        data = json.loads(text)
    except ValueError:
        return bool(re.match(r"\W*(error|failed|invalid|unknown tool)\b", text, re.IGNORECASE))
    if not isinstance(data, dict):
        return False
    return bool(data.get("error")) or data.get("success") is False or data.get("status") == "error"


def steadiness(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """How far the answers of two runs of one version are the same: in their words, in their shape
    (all but numbers and hashes), or not at all."""
    if one["said"] == other["said"]:
        return "words"
    return "shape" if shape(one["said"]) == shape(other["said"]) else "nothing"


def shape(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{7,}\b|\d+", "#", text)


def users_played(folder: str) -> None:
    """Plays the user of each old version twice on it: what differs is not compared later."""
    found = read("old") if (HERE / "old.json.xz").exists() else {}
    for name, old, _ in pairs():
        if old in found.get(name, {}):
            continue
        calls = users()[name][old]
        runs = [asyncio.run(played(name, old, calls, folder, {})) for _ in range(2)]
        for call, one, other in zip(calls, *runs, strict=True):
            one["steady"] = steadiness(one, other)
            mark = one["refused"] or f"ok, {one['steady']}"
            print(f"{name} {old} {call['tool']}: {mark}: {one['said'][:110]!r}", flush=True)
        found.setdefault(name, {})[old] = runs[0]
        write("old", found)


# -- predicting ------------------------------------------------------------------------------------


def foretold() -> list[dict[str, Any]]:
    """Says of each call what becomes of it, from the two lists alone."""
    lists = read("lists")
    found = []
    for name, old, new in pairs():
        if name not in lists:
            continue
        before, after = (side_of("mcp", version, lists[name][version]) for version in (old, new))
        calls = users()[name][old]
        settled = read_release(
            before,
            after,
            Answers(),
            lambda calls=calls: [  # type: ignore[misc]
                (str(n), call["tool"], call.get("arguments", {})) for n, call in enumerate(calls)
            ],
        )
        checks = Checker(before.tools), Checker(after.tools)
        with tempfile.TemporaryDirectory() as folder:
            shift = Path(folder) / "release.json"
            shift.write_bytes(settled.shift.encode())
            rows = [
                {
                    "tool": call["tool"],
                    "arguments": call.get("arguments", {}),
                    **predicted(call, settled.reading, checks),
                    **carried(call, before.tools, shift),
                }
                for call in calls
            ]
        for row in rows:
            if row["carried"]:
                made = RecordedCall(row["carried"]["tool"], row["carried"]["arguments"])
                row["carried_is_taken"] = not any(checks[1].fault(made))
        worst = next((row.severity for row in settled.reading.rows), "nothing")
        found.append({"server": name, "old": old, "new": new, "worst": worst, "calls": rows})
    return found


def predict() -> None:
    if (HERE / "new.json.xz").exists():
        raise SystemExit("the calls were played: predictions stay as they are (see `again`)")
    raw = json.dumps(foretold(), indent=1, ensure_ascii=False).encode() + b"\n"
    save("predictions", raw)
    (HERE / "predictions.sha256").write_text(
        f"{hashlib.sha256(raw).hexdigest()}  predictions.json\n"
    )


def predicted(call: Call, reading: Any, checks: tuple[Checker, Checker]) -> dict[str, Any]:
    """refused, may differ or as before; and why."""
    made = RecordedCall(call["tool"], call.get("arguments", {}))
    if any(checks[0].fault(made)):
        raise SystemExit(f"{call} is not valid by the old list: {checks[0].fault(made)}")
    where, why = checks[1].fault(made)
    expected = ExpectedCall("", made.tool, made.arguments)
    met = [
        row
        for row in reading.rows
        if row.change is not None and row.severity != "harmless" and _meets(expected, row.change)
    ]
    verdict = "refused" if why else "may differ" if met else "as before"
    at = f"{where}: " if where else ""
    because = [f"{row.severity}, {row.carriage}: {row.sentence}" for row in met]
    return {"says": verdict, "why": f"{at}{why}"[:300], "changes": because[:6]}


def carried(call: Call, tools: Sequence[Mapping[str, Any]], shift: Path) -> dict[str, Any]:
    """The call as `toolshift augment --shift` writes it for the new tools; None where it is the
    same, or cannot be carried."""
    arguments = call.get("arguments", {})
    made = {"name": call["tool"], "arguments": json.dumps(arguments)}
    said = ", ".join(map(str, arguments.values())) or "it"
    row = {
        "messages": [
            {"role": "user", "content": f"Please do {said}"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": made}],
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description") or "",
                    "parameters": tool.get("inputSchema") or {"type": "object"},
                },
            }
            for tool in tools
        ],
    }
    recipe = Recipe(alpha=1.0, shifts=(str(shift),))
    done = augmented(row, msgspec.json.encode(row), recipe)
    if not done.rows:
        why = "; ".join(done.reasons.values()) or done.untried
        same = why.endswith("nothing that is shown changes")
        return {"carried": None, "not_carried": "" if same else why[:300]}
    last = done.rows[-1]["messages"][-1]
    calls = [one for m in done.rows[-1]["messages"] for one in m.get("tool_calls") or ()]
    if not calls:
        return {"carried": None, "not_carried": f"refused: {last.get('content')}"[:300]}
    (one,) = calls
    given = one["function"]["arguments"]
    given = json.loads(given) if isinstance(given, str) else given
    now = {"tool": one["function"]["name"], "arguments": given}
    same = now == {"tool": call["tool"], "arguments": arguments}
    return {"carried": None if same else now, "not_carried": ""}


# -- what happens ----------------------------------------------------------------------------------


def predictions() -> list[dict[str, Any]]:
    raw = lzma.decompress((HERE / "predictions.json.xz").read_bytes())
    if hashlib.sha256(raw).hexdigest() != (HERE / "predictions.sha256").read_text().split()[0]:
        raise SystemExit("predictions.json is not what was predicted")
    return json.loads(raw)


def new_played(folder: str) -> None:
    """Plays each user on the new version: as it is, and with what is carried."""
    found = []
    for pair in predictions():
        name, old, new = pair["server"], pair["old"], pair["new"]
        calls = users()[name][old]
        moved = [
            {**call, **(row["carried"] or {})}
            for call, row in zip(calls, pair["calls"], strict=True)
        ]
        runs = [asyncio.run(played(name, new, made, folder, {})) for made in (calls, moved)]
        found.append({"server": name, "old": old, "new": new, "as_is": runs[0], "carried": runs[1]})
        print(name, old, new, [one["refused"] or "ok" for one in runs[0]], flush=True)
        write("new", found)


def undeclared(folder: str) -> None:
    """Passes an argument that the list does not declare, to each version, with the first call that
    it takes: does it refuse it, and does its list say so?"""
    works: dict[tuple[str, str], list[Call]] = {}
    for name, by_version in users().items():
        for version, calls in by_version.items():
            works[name, version] = calls
    for pair in read("new"):
        calls = users()[pair["server"]][pair["old"]]
        taken = [one for one, got in zip(calls, pair["as_is"], strict=True) if not got["refused"]]
        works.setdefault((pair["server"], pair["new"]), taken)
    lists, found = read("lists"), []
    for (name, version), calls in works.items():
        if not calls or name not in lists:
            continue
        call = calls[0]
        schema = next(t for t in lists[name][version] if t["name"] == call["tool"])["inputSchema"]
        more = {**call, "arguments": {**call.get("arguments", {}), "not_declared": "x"}}
        (answer,) = asyncio.run(played(name, version, [more], folder, {}))
        closed = schema.get("additionalProperties") is False
        found.append([name, version, call["tool"], closed, answer["refused"], answer["said"][:200]])
        print(*found[-1][:5], repr(answer["said"][:90]), flush=True)
    write("undeclared", found)


def again(folder: str) -> None:
    """Prints where today's ToolShift says something else than was predicted, and what the new
    version answers to calls that are carried now and were not."""
    known = {(then["server"], then["new"]): then for then in predictions()}
    for now in foretold():
        name, new = now["server"], now["new"]
        then = known[name, new]
        for one, other in zip(then["calls"], now["calls"], strict=True):
            if (one["says"], one["carried"]) == (other["says"], other["carried"]):
                if bool(one["not_carried"]) != bool(other["not_carried"]):
                    print(f"{name} {new} {one['tool']}: was {one['not_carried']!r}, carried now")
                continue
            print(f"{name} {new} {one['tool']}: {one['says']}, {one['carried']}")
            print(f"  now {other['says']}, {other['carried']}")
            if other["carried"]:
                (answer,) = asyncio.run(played(name, new, [other["carried"]], folder, {}))
                print(
                    f"  answers {answer['refused'] or 'without an error'}: {answer['said'][:80]!r}"
                )


# -- what came of it -------------------------------------------------------------------------------

BY_EYE = {("code-index-mcp", "2.8.0", 3): "it says that another call is needed first"}
"""Refusals that a reader sees and the rule does not: by server, new version and place."""
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?")
VERDICTS = ("refused", "may differ", "as before")
START, END = "<!-- figures -->", "<!-- end -->"


class Row(msgspec.Struct):
    """One call: what was said of it, and what happened."""

    pair: str
    server: str
    tool: str
    says: str
    network: bool
    refused: bool
    answer: str
    """same, changed or unclear; of a call that is taken."""
    carried: bool
    carried_is_taken: bool
    carried_answer: str

    @property
    def right(self) -> bool:
        return (self.says == "refused") == self.refused


def rows() -> list[Row]:
    old, new, known, found = read("old"), read("new"), users(), []
    for pair, got in zip(predictions(), new, strict=True):
        name, before, after = pair["server"], pair["old"], pair["new"]
        played_calls = zip(
            known[name][before],
            pair["calls"],
            old[name][before],
            got["as_is"],
            got["carried"],
            strict=True,
        )
        for place, (call, row, was, now, moved) in enumerate(played_calls):
            eye = (name, after, place) in BY_EYE
            versions = (before, after)
            found.append(
                Row(
                    f"{name} {before} -> {after}",
                    name,
                    call["tool"],
                    row["says"],
                    bool(call.get("network")),
                    bool(now["refused"]) or eye,
                    compared(was, now, versions),
                    row["carried"] is not None,
                    not moved["refused"],
                    compared(was, moved, versions),
                )
            )
    return found


def compared(was: Mapping[str, Any], now: Mapping[str, Any], versions: tuple[str, str]) -> str:
    """Whether an answer is the one of before, as far as two runs of one version agree."""
    if was["steady"] == "nothing" or ("sha256" in was and was["steady"] == "shape"):
        return "unclear"
    texts = [
        TIMES.sub("#", one.get("sha256", one["said"])).replace(version, "#")
        for one, version in zip((was, now), versions, strict=True)
    ]
    if was["steady"] == "shape":
        texts = [shape(text) for text in texts]
    return "same" if texts[0] == texts[1] else "changed"


def page() -> None:
    everything = rows()
    played_rows = [row for row in everything if not row.network]
    lines = [
        "| release | worst change | calls | said: refused, may differ, as before "
        "| refused | right |",
        "|---|---|--:|---|--:|--:|",
    ]
    for pair in predictions():
        name = f"{pair['server']} {pair['old']} -> {pair['new']}"
        own = [row for row in played_rows if row.pair == name]
        counts = ", ".join(str(sum(row.says == v for row in own)) for v in VERDICTS)
        refused, right = (sum(getattr(row, k) for row in own) for k in ("refused", "right"))
        cells = (name, pair["worst"], len(own), counts, refused, right)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| said | calls | refused | answer the same | changed | unclear |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for verdict in VERDICTS:
        own = [row for row in played_rows if row.says == verdict]
        taken = [row for row in own if not row.refused]
        cells = [sum(row.answer == one for row in taken) for one in ("same", "changed", "unclear")]
        cells = [len(own), len(own) - len(taken), *cells]
        lines.append(f"| {verdict} | {' | '.join(map(str, cells))} |")
    moved = [row for row in played_rows if row.carried]
    releases = {row.pair for row in played_rows}
    wrong = {row.pair for row in played_rows if not row.right}
    figures = {
        "calls of which it was said rightly whether they are refused": (
            sum(row.right for row in played_rows),
            len(played_rows),
        ),
        "calls said to be refused that are": (
            sum(row.refused for row in played_rows if row.says == "refused"),
            sum(row.says == "refused" for row in played_rows),
        ),
        "refused calls of which it was said": (
            sum(row.says == "refused" for row in played_rows if row.refused),
            sum(row.refused for row in played_rows),
        ),
        "releases of which everything was said rightly": (
            len(releases - wrong),
            len(releases),
        ),
        "calls carried to the new list that are taken": (
            sum(row.carried_is_taken for row in moved),
            len(moved),
        ),
    }
    lines += ["", "| share | of | exact 95% interval |", "|---|---|---|"]
    for name, (part, whole) in figures.items():
        low, high = exact(part, whole)
        lines.append(f"| {name} | {part} of {whole} | {low:.0%} to {high:.0%} |")
    path = HERE / "README.md"
    text = path.read_text()
    head, _, rest = text.partition(START)
    path.write_text("\n".join([head + START, "", *lines, "", END]) + rest.partition(END)[2])
    for row in played_rows:
        if not row.right:
            print("wrong:", row.pair, row.tool, row.says)


def exact(part: int, whole: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share."""
    low = float(beta.ppf(0.025, part, whole - part + 1)) if part else 0.0
    high = float(beta.ppf(0.975, part + 1, whole - part)) if part < whole else 1.0
    return low, high


def main() -> None:
    command, *folder = sys.argv[1:] or ["help"]
    steps = {
        "install": installed,
        "lists": listed,
        "users": users_played,
        "play": new_played,
        "undeclared": undeclared,
        "again": again,
    }
    if command in steps and folder:
        steps[command](folder[0])
    elif command == "predict":
        predict()
    elif command == "page":
        page()
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
