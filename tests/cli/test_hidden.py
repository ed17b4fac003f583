"""No character that moves the cursor, turns the text or is not seen reaches a terminal raw."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import Run

import toolshift.cli
from toolshift.core.text import escaped, visible

EVIL = "\x1b]0;owned\x07\u202egnp.\x9b2J\r\u200b"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")


def tools(name: str, text: str) -> str:
    schema = {"type": "object", "properties": {f"p{EVIL}": {"type": "string", "description": text}}}
    return json.dumps([{"name": name, "description": text, "inputSchema": schema}])


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(tools("get_order", f"Gets an order. {EVIL}"))
    (tmp_path / "new.json").write_text(tools("fetch_order", f"Gets the order. {EVIL}"))
    (tmp_path / f"evil{EVIL}.json").write_text("[")
    called = {"tool": f"get{EVIL}", "arguments": {"a": EVIL}, "answers": [EVIL]}
    (tmp_path / "trace.jsonl").write_text(json.dumps(called) + "\n")


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "old.json", "--out", "old.lock"),
        ("lock", f"evil{EVIL}.json", "--out", "x.lock"),
        ("verify", "old.lock", "new.json"),
        ("verify", "old.lock", "new.json", "--json"),
        ("verify", "old.lock", "new.json", "--calls", "trace.jsonl"),
        ("shift", "from-diff", "old.json", "new.json", "--out", "change.json"),
        ("shift", "from-diff", "old.json", "new.json", "--out", "change.json", "--json"),
        ("watch", "trace.jsonl"),
        ("run", "--agent", f"none{EVIL}"),
        ("run", "--agent", "oracle", "--kind", EVIL),
        ("trace", f"none{EVIL}"),
        (f"command{EVIL}",),
        ("list", f"x{EVIL}"),
    ],
    ids=range(13),
)
def test_nothing_hidden_is_printed(toolshift: Run, files: None, words: tuple[str, ...]) -> None:
    toolshift("lock", "old.json", "--out", "old.lock")
    _, out, err = toolshift(*words)
    assert out + err
    assert not HIDDEN.search(out + err), repr(out + err)


def test_json_that_is_shown_is_the_same_data() -> None:
    data = {"a": EVIL, "b": "\U000e0041\U0001f600"}
    shown = escaped(json.dumps(data, ensure_ascii=False))
    assert not HIDDEN.search(shown)
    assert json.loads(shown) == data
    assert visible(shown) == shown


def test_commands_print_in_one_way() -> None:
    folder = Path(toolshift.cli.__file__).parent
    raw = [file.name for file in folder.glob("*.py") if "click.echo(" in file.read_text()]
    assert not raw, "`say` names what is hidden; click.echo prints it"
