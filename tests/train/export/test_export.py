"""Exported packages: what they are made of, that scenes are found again, and what is refused."""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
import tomllib
from itertools import islice
from pathlib import Path

import msgspec
import pytest
import yaml
from running import Run, runner

from toolshift.core.errors import UsageError
from toolshift.episode.episode import Episode
from toolshift.runs.suite import Selection
from toolshift.train.environment import act, reward_of
from toolshift.train.export.package import KINDS
from toolshift.train.export.scenes import Exported, export_scenes, read_scenes
from toolshift.train.export.trl_rows import rows_of

SMALL = Selection(shifts=("redirect", "format_drift:3"), pool="train", size=100)


@pytest.fixture(scope="module")
def exported() -> Exported:
    return export_scenes(SMALL, 0.5)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_the_stream_has_no_end_and_is_the_same_again(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "scenes.json").write_bytes(exported.encoded())
    again = read_scenes(tmp_path)
    assert again == exported
    for begin in (0, 10**6, 2**31 - 3):
        first = list(islice(exported.stream(begin), 4))
        second = list(islice(again.stream(begin), 4))
        assert [number for number, _ in first] == list(range(begin, begin + 4))
        for (_, one), (_, other) in zip(first, second, strict=True):
            assert one.task.id == other.task.id
            assert one.shifts == other.shifts
            assert [a.text for a in one.asks] == [a.text for a in other.asks]


@pytest.mark.parametrize("trainer", KINDS)
def test_the_next_step_installs_the_folder(
    trainer: str, cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli("export", trainer, "--shift", "redirect", "--out", "my-pack", "--name", "p")
    assert code == 0
    assert "Next: pip install ./my-pack && " in out


def test_the_mix_is_what_was_asked_for(exported: Exported) -> None:
    scenes = [exported.scene(number) for number in range(40)]
    shifted = [scene for scene in scenes if scene.shifts]
    assert 15 <= len(shifted) <= 20  # a shift that cannot be applied leaves its scene clean
    assert {(a.shift, a.severity) for scene in shifted for a in scene.shifts} == {
        ("redirect", 2),
        ("format_drift", 3),
    }
    assert {scene.task.pool for scene in scenes} == {"train"}
    assert export_scenes(msgspec.structs.replace(SMALL, shifts=("clean",)), 0.5).mix.alpha == 0


def test_the_oracle_earns_one_and_a_wrong_answer_nothing(exported: Exported) -> None:
    for number in range(6):
        scene = exported.scene(number)
        right, wrong = Episode(scene), Episode(scene)
        for step in scene.rehearsal:
            if step.kind == "call":
                assert act(right, step.name, step.arguments) == step.text
            else:
                act(right, "final_answer", {"answer": step.said})
        while not wrong.end:
            act(wrong, "final_answer", {"answer": "BCDF-GHJK"})
        assert (reward_of(right), reward_of(wrong)) == (1.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_is_whole(kind: str, cli: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("export", kind, "--shift", "redirect", "--alpha", "0.3", "--out", out)
    code, printed, _ = cli(*words, "--name", "my-shifts", "--json")
    assert code == 0
    assert json.loads(printed)["package"] == "my_shifts"
    there = {str(file) for file in out.rglob("*") if file.is_file()}
    assert set(json.loads(printed)["files"]) == there
    project = tomllib.loads((out / "pyproject.toml").read_text())["project"]
    assert any(each.startswith("toolshift==") for each in project["dependencies"])
    assert all("[" not in each for each in project["dependencies"])  # our core only
    assert compileall.compile_dir(out, quiet=2)
    scenes = read_scenes(out if kind == "openenv" else out / "my_shifts")
    assert (scenes.mix.alpha, scenes.mix.shifts) == (0.3, ("redirect:2",))
    assert scenes.versions.keys() == {"redirect"}
    if kind == "openenv":
        assert yaml.safe_load((out / "openenv.yaml").read_text())["name"] == "my_shifts"
    assert cli(*words, "--name", "my-shifts")[0] == 0  # an export is made again


def test_core_alone_writes_and_reads_packages(tmp_path: Path) -> None:
    """No extra is imported, for its pins may be others than those of the trainer."""
    program = (
        "import sys; from toolshift.cli.export import export; "
        "from toolshift.train.export.trl_rows import rows_of; "
        "extras = {'mcp', 'torch', 'transformers', 'trl', 'datasets', 'starlette'}; "
        "bad = extras & set(sys.modules); "
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_rows_for_trl(exported: Exported, tmp_path: Path) -> None:
    (tmp_path / "scenes.json").write_bytes(exported.encoded())
    made = rows_of(tmp_path, 6, begin=3)
    assert [row["scene"] for row in made.rows] == list(range(3, 9))
    for row, number in zip(made.rows, range(3, 9), strict=True):
        assert row["prompt"][-1]["content"] == exported.scene(number).asks[0].text
        assert row["environment"] in made.factories
    with pytest.raises(UsageError, match="at least one scene"):
        rows_of(tmp_path, 0)


def test_joined_rows_for_trl_play_their_own_scenes(exported: Exported, tmp_path: Path) -> None:
    """Those of two loads, and those of another package."""
    other = msgspec.structs.replace(exported, mix=msgspec.structs.replace(exported.mix, seed=5))
    folders = (tmp_path / "one", exported, 0), (tmp_path / "one", exported, 3), (tmp_path, other, 0)
    rows, factories = [], {}
    for folder, scenes, begin in folders:
        folder.mkdir(exist_ok=True)
        (folder / "scenes.json").write_bytes(scenes.encoded())
        made = rows_of(folder, 3, begin)
        rows += [(row, scenes) for row in made.rows]
        factories |= made.factories
    for row, scenes in rows:
        environment = factories[row["environment"]]()
        environment.reset(**row)
        assert environment._episode.scene.task == scenes.scene(row["scene"]).task


def test_another_version_of_a_shift_is_said(exported: Exported, tmp_path: Path) -> None:
    then = msgspec.structs.replace(exported, versions={"redirect": 7}, toolshift="0.1")
    (tmp_path / "scenes.json").write_bytes(then.encoded())
    with pytest.raises(UsageError, match=r"redirect was version 7 .* install toolshift==0\.1"):
        read_scenes(tmp_path)
    (tmp_path / "scenes.json").write_bytes(msgspec.structs.replace(exported, format=9).encoded())
    with pytest.raises(UsageError, match="newer ToolShift"):
        read_scenes(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shift", "redirec"), "redirect"),
        (("--alpha", "1.5"), "alpha"),
        (("--pool", "test"), "the test pool is for planned studies"),
        (("--name", "Bad Name"), "lower-case words joined by hyphens"),
        (("--world", "OWN"), "toolshift world record"),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str, cli: Run, tmp_path: Path) -> None:
    own = str(Path(__file__).parents[3] / "examples/own_tools/tasks.yaml")
    given = [own if word == "OWN" else word for word in words]
    code, _, err = cli("export", "verifiers", *given, "--out", tmp_path / "out")
    assert code == 2
    assert said in err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_things_is_left_alone(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = cli("export", "trl", "--shift", "redirect", "--out", tmp_path)
    assert code == 2
    assert "name another folder" in err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


DESK = '''
def get_ticket(ticket_id: str) -> dict:
    """Looks up a ticket.

    Args:
        ticket_id: Identifier of the ticket.
    """
    return {"ticket_id": ticket_id, "owner": "Ilse"}
'''
TASKS = """
world: help_desk
tools: {python: desk_of_export}
tasks:
  - id: owner
    ask: Who owns ticket T-31?
    calls: [{name: get_ticket, arguments: {ticket_id: T-31}}]
    check: {answer: Ilse}
"""
READ = """
import sys
from pathlib import Path
from toolshift.train.export.scenes import read_scenes
found = read_scenes(Path(sys.argv[1]))
scenes = [found.scene(number) for number in range(4)]
print([(s.task.world.partition("@")[0], [tool.name for tool in s.tools]) for s in scenes])
"""


@pytest.mark.parametrize("trainer", KINDS)
def test_a_recorded_world_and_a_coming_change_go_along(
    trainer: str, cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(str(home))
    for known in ("TOOLSHIFT_SHIFTS", "TOOLSHIFT_WORLDS"):
        monkeypatch.setenv(known, "")
    Path("desk_of_export.py").write_text(DESK)
    tasks = TASKS.replace("help_desk", f"desk_{trainer}")  # a name is found once in a process
    Path("live.yaml").write_text(tasks)
    assert cli("world", "record", "live.yaml", "--out", "rec.jsonl")[0] == 0
    Path("tasks.yaml").write_text(tasks.replace("python: desk_of_export", "recording: rec.jsonl"))
    schema = {
        "type": "object",
        "properties": {"ticket_id": {"type": "string"}},
        "required": ["ticket_id"],
    }
    old = json.loads(Path("rec.jsonl").read_text().splitlines()[0])["tools"]
    Path("old.json").write_text(json.dumps(old))
    new = [{"name": "fetch_ticket", "description": "Looks up a ticket.", "inputSchema": schema}]
    Path("new.json").write_text(json.dumps(new))
    Path("map.toml").write_text('renamed = {get_ticket = "fetch_ticket"}\n')
    words = ("old.json", "new.json", "--mapping", "map.toml", "--out", "monday.json")
    assert cli("shift", "from-diff", *words)[0] == 0
    scope = ("--world", "tasks.yaml", "--shift", "monday.json", "--alpha", "0.5")
    code, said, errors = cli("export", trainer, *scope, "--out", "made", "--name", "own-desk")
    assert code == 0, (said, errors)
    inner = home / "made" / ("" if trainer == "openenv" else "own_desk")
    elsewhere = tmp_path / "elsewhere"
    inner.rename(elsewhere)
    for file in home.rglob("*.*"):
        if file.is_file():
            file.unlink()
    for known in ("TOOLSHIFT_SHIFTS", "TOOLSHIFT_WORLDS"):
        monkeypatch.setenv(known, "")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(elsewhere)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"'desk_{trainer}'") == 4
    assert done.stdout.count("fetch_ticket") == 2
