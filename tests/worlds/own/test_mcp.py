"""An MCP server that keeps something on disk starts clean in every episode."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from worlds.own.test_own import called, played

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.shifts.registry import apply
from toolshift.worlds.own import load

SERVER = Path(__file__).with_name("notes_server.py")
SETUP = """
async def fill(folder):
    assert not list(folder.iterdir())
    (folder / "notes.txt").write_text("first\\n")


def fail(folder):
    raise OSError("disk full")
"""
TASKS = f"""
world: notes
tools:
  mcp: "{sys.executable} {SERVER} {{episode_dir}}/notes.txt"
  env: {{TITLE: "of ${{READER}} in {{episode_dir}}"}}
  cwd: "{{episode_dir}}"
  reset: "notes_setup:fill"
writes: [add_note]
tasks:
  - id: add
    ask: Note that tea is out, as 'tea', and tell me how many notes there are.
    calls: [{{name: add_note, arguments: {{text: tea}}}}]
    check: {{answer: "2", calls: true}}
  - id: read
    ask: What stands in {{episode_dir}}/notes.txt?
    calls: [{{name: read, arguments: {{path: "{{episode_dir}}/notes.txt"}}}}]
    check: {{answer: first, calls: true}}
"""


@pytest.fixture
def scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Scene]:
    monkeypatch.setenv("READER", "Mara")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "notes_setup.py").write_text(SETUP)
    (tmp_path / "notes.yaml").write_text(TASKS)
    world = load(tmp_path / "notes.yaml")
    assert not world.shared
    return [make_scene(world, "task", place) for place in range(2)]


def test_every_episode_has_a_folder_of_its_own_which_goes_with_it(
    scenes: list[Scene], tmp_path: Path
) -> None:
    for _ in range(2):
        assert played(scenes[0]).passed
    first, second = Episode(scenes[0]), Episode(scenes[0])
    for episode in (first, second):
        text, _ = episode.call("add_note", {"text": "milk"})
        assert '"title":"of Mara in /episode"' in text
        assert '"notes":2' in text
    assert len(list((tmp_path / "tmp").glob("toolshift-*"))) == 2
    first.refuse("not_found")
    second.refuse("not_found")
    assert not list((tmp_path / "tmp").glob("toolshift-*"))


def test_agents_see_the_folder_under_one_name_in_both_directions(scenes: list[Scene]) -> None:
    assert scenes[1].asks[0].text == "What stands in /episode/notes.txt?"
    episode = Episode(scenes[1])
    text, _ = episode.call("where", {})
    assert "toolshift-" not in text
    assert text.count("/episode/notes.txt") == 2
    assert '"folder":"/episode"' in text
    text, result = episode.call("read", {"path": "/episode/notes.txt"})
    assert result.ok
    episode.answer("first")
    assert called(scenes[1], ("read", {"path": "/episode/notes.txt"}), answer="first").passed
    assert not called(scenes[1], ("where", {}), answer="first").passed


def test_the_folder_stays_under_shifts(scenes: list[Scene]) -> None:
    for shift in ("identity_erasure", "parameter_rename", "format_drift", "redirect"):
        assert all(played(apply(scene, shift, 2)).passed for scene in scenes), shift


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("notes_setup:fill", "notes_setup:fail", r"tools.reset: .*fail raised OSError: disk full"),
        ("notes_setup:fill", "notes_setup:fil", r"tools.reset: .*fil"),
        ("${READER}", "${NOBODY}", r"tools.env.TITLE: the environment has no variable NOBODY"),
        ('mcp: "', "mcp: \"'", r"tools.mcp: .* is no command line"),
        ("  env: {TITLE", "  envs: {TITLE", r"unknown field 'envs': did you mean env"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    monkeypatch.setenv("READER", "Mara")
    (tmp_path / "notes_setup.py").write_text(SETUP)
    (tmp_path / "notes.yaml").write_text(TASKS.replace(old, new))
    with pytest.raises(UsageError, match=said):
        load(tmp_path / "notes.yaml")
