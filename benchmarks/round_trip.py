"""Formats of data round-tripped, on conversations made to be hard.

    python benchmarks/round_trip.py [--count 1000] [--out benchmarks/round_trip.json]

The conversations (`tests/conversations.py`) have names of tools that are parts of one another and
of prose, JSON inside of strings, text from right to left, and values that look like names. For each
format: a row is written over itself as it was read; it goes to OpenAI messages and back with the
same calls, results, prose and tools; and names that a shift of level 1 has changed, written and
read in that format, are undone to the conversation that was there before.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conversations import NAMES, openai, question

from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import Conversation, Format, portable
from toolshift.data.formats import FORMATS
from toolshift.data.prepared import called, prepared
from toolshift.data.replay import check, replay, undone

OPENAI = FORMATS.find("openai")
SHIFTS = ("identity_erasure", "semantic_rename@1", "tool_name_noise", "parameter_rename")


def row_of(form: Format, seed: int) -> dict[str, Any]:
    """A row of a format; the same conversation in each but xLAM, which has questions alone."""
    if form.name == "xlam":
        return question(seed)
    row = openai(seed)
    return row if form is OPENAI else form.write(OPENAI.read(row), None)


def plain(text: str) -> str:
    """A text; JSON without its spaces."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text)).decode()
    except msgspec.DecodeError:
        return text


def content(conversation: Conversation) -> Any:
    """What is said, called and on offer, without the marks of a format."""
    said = [
        (m.role, plain(m.text), [(c.name, c.arguments) for c in m.calls])
        for m in portable(conversation).messages
    ]
    return said, [tool.function for tool in conversation.tools]


def over_itself(form: Format, row: dict[str, Any]) -> bool:
    """Whether a row that is written over itself says the same, in the same columns."""
    before = form.read(row)
    written = json.loads(json.dumps(form.write(before, row)))
    return form.read(written) == before and written.keys() == row.keys()


def there_and_back(form: Format, row: dict[str, Any]) -> bool:
    """Whether a row survives the way to OpenAI messages and back."""
    before = form.read(row)
    messages = json.loads(json.dumps(OPENAI.write(portable(before), None)))
    middle = OPENAI.read(messages)
    again = form.read(json.loads(json.dumps(form.write(portable(middle), None))))
    tools = [[tool["name"], tool.get("description", "")] for tool in content(again)[1]]
    # xLAM knows types of its own, so that schemas are compared by what they let through.
    same = content(again)[0] == content(before)[0]
    check(again)
    return same and tools == [[t["name"], t.get("description", "")] for t in content(before)[1]]


def renamed_and_undone(form: Format, row: dict[str, Any], seed: int) -> bool | None:
    """Whether names that a shift has changed come back; None where it cannot be applied."""
    before = form.read(row)
    applied = Applied(SHIFTS[seed % len(SHIFTS)], 1 + seed // len(SHIFTS) % 3)
    try:
        ready = prepared(before.tools, (applied,), called(before), seed % 16)
    except NotApplicable:
        return None
    (after,) = replay(before, ready)
    read = form.read(json.loads(json.dumps(form.write(after, row))))
    check(read)
    return content(undone(read, ready, before)) == content(before)


def hard(row: dict[str, Any]) -> list[str]:
    """What makes a row hard."""
    text = json.dumps(row, ensure_ascii=False)
    named = [name for name in NAMES if name in text]
    found = {
        "names inside of names": any(a != b and a in b for a in named for b in named),
        "right to left": "שלום" in text or "u05e9" in text,
        "JSON in a string": '{\\\\\\"order' in text or '{\\"order' in text,
        "a name inside of a value": "get order id" in text or '\\"get_order\\"' in text,
    }
    return [name for name, is_so in found.items() if is_so]


def measured(form: Format, count: int) -> dict[str, Any]:
    """How many of so many rows of a format survive each way."""
    kept: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failed = []
    for seed in range(count):
        row = json.loads(json.dumps(row_of(form, seed)))
        kinds.update(hard(row))
        undo = renamed_and_undone(form, row, seed)
        results = {
            "over_itself": over_itself(form, row),
            "there_and_back": there_and_back(form, row),
            "renamed_and_undone": undo is True,
        }
        kept.update(name for name, ok in results.items() if ok)
        kept["rename_not_applicable"] += undo is None
        if undo is False or not (results["over_itself"] and results["there_and_back"]):
            failed.append(seed)
    return {"rows": count, **kept, "failed": failed[:10], "hard": dict(sorted(kinds.items()))}


def main() -> None:
    """Measures each format; prints the figures and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    for name, form in FORMATS.all().items():
        found[name] = measured(form, options.count)
        print(name, found[name], flush=True)
    told = {
        "command": f"python benchmarks/round_trip.py --count {options.count}",
        "machine": {"machine": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("msgspec", "jsonschema-rs")},
        "formats": found,
    }
    if options.out:
        options.out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
