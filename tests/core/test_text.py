"""Text of others is shown with what it hides named, and nothing else of it is changed."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Run

from toolshift.core.terminal import print_table
from toolshift.core.text import one_line, storable, visible

SOURCE = Path(__file__).parents[2] / "src" / "toolshift"
ANY = st.text(st.characters(categories=["L", "N", "P", "S", "Z", "C"]))
TURNING = ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")


@given(ANY)
def test_nothing_that_moves_the_cursor_or_turns_the_text_is_left(text: str) -> None:
    for character in visible(text):
        assert character in "\t\n" or unicodedata.category(character) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(character) not in TURNING
    assert visible(visible(text)) == visible(text)
    assert visible(text).encode() is not None
    assert not re.search(r"[\n\t\r]|  ", one_line(text))


@pytest.mark.parametrize("text", ["Größe שלום مرحبا", "می‌خواهم", "👩‍🔧 𝒳", "a\tb\nc"])
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == storable(text) == text


def test_a_table_shows_no_control(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ["name"], [["\x1b[31m\u202ePL\x07"]])
    assert "[ESC][31m[U+202E]PL[U+0007]" in capsys.readouterr().out


def test_neither_a_report_nor_an_error_shows_one(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "class Odd:\n    name = 'od\\x1b[31md\\u202e'\n"
        "    def reply(self, turn):\n        return 'No.'\nodd = Odd()\n"
    )
    code, out, err = toolshift(
        *("run", "--agent", "odd:odd", "--tasks", "2", "--shift", "redirect", "--no-placebo"),
        *("--out", str(tmp_path / "run")),
    )
    assert code == 0, err
    assert "od[ESC][31md[U+202E]" in out
    assert not set(out + err) & {"\x1b", "\u202e"}
    _, _, said = toolshift("report", "no\x1b[2Jrun")
    assert "no[ESC][2Jrun" in said


def test_there_is_one_place_that_does_so() -> None:
    """Ranges of control characters stand in no other file, but where hidden texts are sought."""
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"isprintable|\\x00-\\x|\\u202[ae]", path.read_text("utf-8"))
    ]
    assert sorted(found) == ["core/codecs.py", "core/text.py", "drift/disguises.py"]
