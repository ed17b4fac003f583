"""What `augment --preview` prints: the lines that change, and no others; as JSON both rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conversations import openai

from toolshift.data.preview import Preview

Run = Callable[..., tuple[int, str, str]]


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    lines = Preview(1, "renamed", before, after).diff()
    return [line for line in lines if line[0] in "-+"]


def test_only_what_changes_is_said() -> None:
    row = {"id": 7, "tools": [{"name": "a", "text": "b"}], "messages": ["long"] * 40}
    assert changed(row, row) == []
    other = {**row, "tools": [{"name": "c", "text": "b"}]}
    assert [line.split() for line in changed(row, other)] == [
        ["-", '"name":', '"a",'],
        ["+", '"name":', '"c",'],
    ]


@pytest.mark.parametrize("stop", [". ", "? ", "\u3002"])
def test_of_a_long_line_only_the_sentence_that_changes_is_said(stop: str) -> None:
    same = [f"Sentence {n} stays as it is" for n in range(20)]
    before, after = ({"prompt": stop.join([*same, f"Call {name}", *same])} for name in "ab")
    assert [line.split('"')[1].strip(stop) for line in changed(before, after)] == [
        "Call a",
        "Call b",
    ]


@pytest.mark.parametrize("wrap", [json.dumps, lambda value: "\n".join(("one", value["name"]))])
def test_a_text_is_opened_so_that_a_change_in_it_is_found(wrap: Callable[..., str]) -> None:
    more = {f"key{n}": "same" for n in range(50)}
    before, after = ({"tools": wrap({"name": name, **more})} for name in ("a", "b"))
    assert len(changed(before, after)) == 2
    assert all("same" not in line and "one" not in line for line in changed(before, after))


@pytest.mark.parametrize("text", ["{not JSON", "[", "{}", "", "[" * 100_000, '{"a":' * 5_000])
def test_a_text_that_only_begins_like_json_stays_a_text(text: str) -> None:
    assert changed({"a": text}, {"a": f"{text} x"})


def test_the_command_prints_a_diff_or_both_rows(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [openai(seed) for seed in range(12)]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("augment", "mine.jsonl", "--shift", "tool_name_noise", "--preview")
    code, out, _ = toolshift(*words)
    assert code == 0
    assert out.startswith("line 1: tool_name_noise")
    assert "\n-" in out
    assert "\n+" in out
    code, out, _ = toolshift(*words, "--json")
    told = json.loads(out)
    first = told["previews"][0]
    assert (code, len(told["previews"]), first["line"], first["before"]) == (0, 10, 1, rows[0])
    assert first["after"] != rows[0]
    assert (told["untried"], told["unread"]) == ({}, [])
    assert not list(tmp_path.glob("preview*"))


def test_rows_that_are_not_read_are_said_beside_those_that_are(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text("{broken\n" + json.dumps(openai(1)) + "\n")
    words = ("augment", "mine.jsonl", "--shift", "tool_name_noise", "--preview")
    code, _, err = toolshift(*words)
    assert (code, "mine.jsonl, line 1: " in err) == (0, True)
    code, out, _ = toolshift(*words, "--json")
    told = json.loads(out)
    assert (code, len(told["previews"]), told["unread"][0]["unread"]) == (0, 1, 1)
