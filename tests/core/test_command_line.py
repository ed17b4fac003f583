"""Commands that are printed can be pasted."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

import toolshift
from toolshift.cli.group import SECTIONS
from toolshift.core.command_line import PLUGINS, command, path_word

SOURCE = sorted(Path(toolshift.__file__).parent.rglob("*.py"))
NAMES = [name for entries in SECTIONS.values() for name in entries]
OURS = re.compile(rf"\btoolshift (?:{'|'.join(NAMES)}) [^:.]*$")


@pytest.mark.parametrize("name", ["first run", "it's", "$HOME", "a;b", "~/x", "plain", "*.json"])
def test_what_a_shell_reads_is_what_was_meant(name: str) -> None:
    assert shlex.split(command("trace", Path(name), "EPISODE")) == [
        "toolshift", "trace", name, "EPISODE",
    ]  # fmt: skip


def test_plugins_that_are_loaded_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, "/home/me/my shifts.py:mine.shifts")
    assert (
        command("check") == "toolshift --plugin '/home/me/my shifts.py' --plugin mine.shifts check"
    )
    assert "/home" not in command("check", travels=True)


def unquoted(file: Path) -> list[str]:
    """Values that are put into a command of ours without `command`."""
    found = []
    for text in ast.walk(ast.parse(file.read_text())):
        if isinstance(text, ast.JoinedStr):
            for before, value in zip(text.values, text.values[1:], strict=False):
                said = before.value if isinstance(before, ast.Constant) else ""
                if isinstance(value, ast.FormattedValue) and OURS.search(str(said)):
                    found.append(f"{file.name}:{text.lineno}: {said}")
    return found


def test_no_command_is_printed_unquoted() -> None:
    assert [said for file in SOURCE for said in unquoted(file)] == []


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("mine", "./mine"),
        ("my folder", "'./my folder'"),
        ("-mine", "./-mine"),
        ("sub/mine", "sub/mine"),
        ("-sub/mine", "./-sub/mine"),
        ("../mine", "../mine"),
        ("/tmp/mine", "/tmp/mine"),
        (".", "."),
    ],
)
def test_a_path_is_never_a_name_or_an_option(path: str, word: str) -> None:
    assert path_word(Path(path)) == word
