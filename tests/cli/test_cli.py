"""The commands: what they print, what they write, and what they say to bad input."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click import Context
from running import Run

from toolshift.cli import toolshift as commands
from toolshift.core.command_line import PLUGINS

RUN = ("run", "--tasks", "4", "--shift", "identity_erasure:3", "--shift", "fatal_error")


def parsed(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result[2]
    return json.loads(result[1])


@pytest.fixture
def out(toolshift: Run) -> Path:
    agents = ("--agent", "memorises_names", "--agent", "oracle")
    assert toolshift(*RUN, *agents, "--out", "out")[0] == 0
    return Path("out")


BAD = {
    "command": (("rum",), "did you mean run"),
    "world": (("run", "--agent", "oracle", "--world", "medicine"), "did you mean medical"),
    "shift": (("run", "--agent", "oracle", "--shift", "identity_erase"), "identity_erasure"),
    "suite": (("run", "--agent", "oracle", "--suite", "quik"), "did you mean quick"),
    "kind": (("run", "--agent", "oracle", "--kind", "bookin"), "did you mean booking"),
    "pool": (("run", "--agent", "oracle", "--pool", "tests"), "did you mean test"),
    "severity": (("run", "--agent", "oracle", "--shift", "placebo:4"), "from 1 to 3"),
    "severity flag": (("run", "--agent", "oracle", "--severity", "0"), "from 1 to 3"),
    "severity word": (("run", "--agent", "oracle", "--shift", "placebo:high"), "1, 2 or 3"),
    "tasks": (("run", "--agent", "oracle", "--tasks", "-1"), "at least 1"),
    "tasks to check": (("check", "redirect", "--tasks", "-3"), "--tasks must be 0"),
    "no tasks": (("run", "--agent", "oracle", "--tasks", "0"), "at least 1"),
    "module alone": (("run", "--agent", "mine"), "are written as mine:reply"),
    "submodule alone": (("run", "--agent", "json.tool"), "are written as json.tool:reply"),
    "margin as a share": (("gate", "a", "--baseline", "b", "--margin", "0.05"), "for 5 points"),
    "size": (("run", "--agent", "oracle", "--size", "3"), "at least 10"),
    "workers": (("run", "--agent", "oracle", "--workers", "0"), "at least 1"),
    "agent": (("run", "--agent", "memorises_name"), "did you mean memorises_names"),
    "strength": (("run", "--agent", "noisy@2"), "from 0 to 1"),
    "agent twice": (
        ("run", "--agent", "oracle", "--agent", "oracle"),
        "give one of them another name",
    ),
    "module": (("run", "--agent", "nowhere:agent"), "no module 'nowhere'"),
    "attribute": (("run", "--agent", "mine:refuse"), "did you mean mine:refuses"),
    "not callable": (("run", "--agent", "mine:number"), "it is int; an agent is a function"),
    "model": (("run", "--agent", "chat:"), "name of a model"),
    "setting": (("run", "--agent", "chat:gpt-x,base_url=http://localhost:1/v1"), "--base-url"),
    "key": (("run", "--agent", "chat:gpt-x"), "OPENAI_API_KEY"),
    "protocol": (("run", "--agent", "chat:gpt-x", "--protocol", "smoke"), "native"),
    "adapter": (("run", "--agent", "smol:nothing"), "shipped adapter"),
    "local option": (("run", "--agent", "local:here,adaptor=x"), "did you mean adapter"),
    "run folder": (("report", "nowhere"), "there is no such folder"),
    "table": (("report", "nowhere", "--table", "kind"), "did you mean kinds"),
    "list": (("list", "shift"), "did you mean shifts"),
    "show kind": (("show", "poi/bookin"), "did you mean booking"),
    "show index": (("show", "poi/booking/one"), "must be a number"),
    "option": (("run", "--agnt", "oracle"), "No such option"),
    "check": (("check", "identity"), "did you mean"),
    "plugin": (("check", "mine:number"), "neither a World nor"),
    "margin": (("gate", "a", "--baseline", "b", "--margin", "-1"), "margin"),
}


@pytest.mark.parametrize("words", BAD.values(), ids=BAD.keys())
def test_bad_input_is_explained(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[tuple[str, ...], str]
) -> None:
    for name in ("OPENAI_API_KEY", "TOOLSHIFT_API_KEY", "OPENAI_BASE_URL", "TOOLSHIFT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = toolshift(*words[0])
    assert code == 2
    assert words[1] in err
    assert not Path("runs").exists()


def damage(name: str, content: bytes | None) -> Any:
    def act(folder: Path) -> None:
        path = folder / name
        path.unlink() if content is None else path.write_bytes(content)

    return act


def newer(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"format": 3', '"format": 99'))


def cut_plan(folder: Path) -> None:
    path = folder / "plan.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def spoil_line(folder: Path) -> None:
    path = folder / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"episode": 3}\n' + b"".join(lines[2:]))


def spoil_step(folder: Path) -> None:
    path = folder / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    spoilt = re.sub(rb'"turn":\d+', b'"turn":"x"', lines[1], count=1)
    assert spoilt != lines[1]
    path.write_bytes(lines[0] + spoilt + b"".join(lines[2:]))


DAMAGE = {
    "manifest": (damage("manifest.json", b'{"form'), "manifest.json is damaged"),
    "newer": (newer, "newer ToolShift"),
    "plan cut": (cut_plan, "does not belong"),
    "plan gone": (damage("plan.jsonl", None), "incomplete"),
    "line": (spoil_line, "line 2 is damaged"),
    "step": (spoil_step, "line 2 is damaged"),
}


@pytest.mark.parametrize("harm", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_folder_is_explained(toolshift: Run, out: Path, harm: tuple[Any, str]) -> None:
    harm[0](out)
    commands = (
        ("report", out),
        (*RUN, "--agent", "memorises_names", "--agent", "oracle", "--out", out),
    )
    for words in commands:
        code, _, err = toolshift(*words)
        assert code == 2
        assert harm[1] in err


def test_another_plan_or_agent_in_the_folder_is_an_error(toolshift: Run, out: Path) -> None:
    code, _, err = toolshift(
        "run", "--agent", "oracle", "--out", out, "--seed", "3", "--tasks", "2"
    )
    assert code == 2
    assert "another plan" in err
    assert "seeds" in err
    code, _, err = toolshift(*RUN, "--agent", "noisy", "--out", out)
    assert code == 2
    assert "other agents" in err


def test_a_folder_that_cannot_be_written_is_explained(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = toolshift(*RUN, "--agent", "oracle", "--out", "file/out")
    assert code == 2
    assert "cannot write" in err
    code, _, err = toolshift(*RUN, "--agent", "oracle", "--out", "/proc/out")
    assert code == 2
    code, _, err = toolshift(*RUN, "--agent", "oracle", "--out", ".")
    assert code == 2
    assert "not empty" in err


def test_a_full_disk_is_explained(toolshift: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolshift.runs.run_folder import RunFolder

    opened = RunFolder._open

    def full(self: RunFolder) -> None:
        opened(self)
        self._episodes = Path("/dev/full").open("ab")  # noqa: SIM115

    monkeypatch.setattr(RunFolder, "_open", full)
    code, _, err = toolshift(*RUN, "--agent", "oracle", "--out", "out")
    assert code == 2
    assert "No space left" in err
    assert "Free some space" in err


def test_regrading_gives_the_same_verdicts(toolshift: Run, out: Path) -> None:
    before = (out / "episodes.jsonl").read_bytes()
    found = parsed(toolshift("regrade", out, "--write", "--json"))
    assert found == {"episodes": 32, "changed": [], "left": {}}
    assert (out / "episodes.jsonl").read_bytes() == before


def test_regrading_says_what_has_changed(
    toolshift: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolshift.episode.grade._passed", lambda scene, steps, end: False)
    code, said, _ = toolshift("regrade", out)
    assert code == 0
    assert "verdicts changed" in said
    assert "passed -> failed" in said


def test_reports_again_also_as_json(toolshift: Run, out: Path) -> None:
    code, text, _ = toolshift("report", out, "--only-distinguishable")
    assert code == 0
    assert "memorises_names" in text
    report = parsed(toolshift("report", out, "--json"))
    assert report == json.loads((out / "report.json").read_text())
    for table in ("kinds", "cells", "severities"):
        code, text, _ = toolshift("report", out, "--table", table)
        assert code == 0
        assert "AES" in text
        found = parsed(toolshift("report", out, "--table", table, "--json"))
        assert list(found) == ["memorises_names", "oracle"]
    one = parsed(toolshift("report", out, "--json", "--agent", "oracle"))
    assert one["name"] == "oracle"
    assert max(len(line) for line in text.splitlines()) <= 100


def test_compares_agents(toolshift: Run, out: Path) -> None:
    words = ("compare", out, out, "--agent", "oracle", "--agent", "memorises_names")
    code, text, _ = toolshift(*words)
    assert code == 0
    assert "perception" in text
    found = parsed(toolshift(*words, "--json"))["comparison"]
    assert found["tiers"][0]["lost"] == 4
    code, _, err = toolshift("compare", out, out)
    assert code == 2
    assert "several agents" in err


def test_a_failure_is_shown_and_minimised_to_a_test_that_fails(
    toolshift: Run, out: Path, tmp_path: Path
) -> None:
    report = json.loads((out / "report.json").read_text())
    episode = report["agents"][0]["shifts"][0]["examples"]["memorised_name"]
    code, text, _ = toolshift("trace", out, episode[:7])
    assert code == 0
    assert "failed: memorised name" in text
    found = parsed(toolshift("minimise", out, episode, "--json"))
    assert found["smallest"]["cell"]["shifts"][0]["severity"] == 1
    assert found["smallest"]["tools"]
    test = tmp_path / found["file"]
    pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test]
    ran = subprocess.run(pytest_, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 1
    assert "memorised_name" in ran.stdout
    test.write_text(test.read_text().replace("'memorises_names'", "'oracle'"))
    ran = subprocess.run(pytest_, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout


def test_only_a_failure_is_minimised(toolshift: Run, out: Path) -> None:
    first = json.loads((out / "episodes.jsonl").read_text().splitlines()[0])["episode"]
    code, _, err = toolshift("minimise", out, first)
    assert code == 2
    assert "only a failure" in err
    assert toolshift("minimise", out, "zzz")[0] == 2


def test_shows_a_scene_side_by_side(toolshift: Run) -> None:
    words = ("show", "poi/listing", "--shift", "identity_erasure:3", "--shift", "query_typos:1")
    code, text, _ = toolshift(*words)
    assert code == 0
    assert "find_place" in text
    data = parsed(toolshift(*words, "--json"))
    assert data["clean"]["right_end"] == data["shifted"]["right_end"]
    assert data["clean"]["tools"] != data["shifted"]["tools"]
    assert toolshift("show", "medical/chart")[0] == 0


@pytest.mark.parametrize("what", ["all", "worlds", "kinds", "shifts", "suites", "agents"])
def test_lists(toolshift: Run, what: str) -> None:
    assert parsed(toolshift("list", what, "--json"))
    code, text, _ = toolshift("list", what)
    assert code == 0
    assert text


def test_estimates_without_sending(toolshift: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    prices = ("--price-in", "1", "--price-out", "2")
    found = parsed(toolshift(*RUN, "--agent", "chat:any", "--estimate", *prices, "--json"))
    assert found[0]["episodes"] == 16
    assert found[0]["dollars"] > 0


def test_an_estimate_knows_its_agents(toolshift: Run) -> None:
    code, _, err = toolshift(*RUN, "--agent", "nonsense", "--estimate")
    assert code == 2
    assert "unknown agent" in err
    code, _, err = toolshift(*RUN, "--agent", "local:here,adaptor=x", "--estimate")
    assert code == 2
    assert "did you mean adapter" in err
    words = ("--agent", "oracle", "--agent", "smol", "--price-in", "1", "--price-out", "1")
    code, text, _ = toolshift(*RUN, *words, "--estimate")
    assert code == 0
    assert text.count("no cost: it runs on this machine") == 2
    assert "$" not in text


def test_runs_as_json_into_a_new_folder(toolshift: Run) -> None:
    report = parsed(toolshift(*RUN, "--agent", "oracle", "--json"))
    assert report["agents"][0]["clean"]["accuracy"]["estimate"] == 1
    assert len(list(Path("runs").iterdir())) == 1


@pytest.mark.parametrize(
    "more",
    [("redirect",), ("redirect:2*3",), ("redirect:2+redirect:2",), ("interaction",)],
    ids=str,
)
def test_shifts_that_overlap_run_each_scene_once(toolshift: Run, more: tuple[str, ...]) -> None:
    shifts = [word for name in ("redirect:2", *more) for word in ("--shift", name)]
    words = ("run", "--agent", "oracle", "--tasks", "3", *shifts, "--out", "out", "--json")
    code, _, err = toolshift(*words)
    if "+" in more[0]:
        assert (code, "redirect is given twice" in err) == (2, True)
        return
    assert code == 0
    lines = Path("out/episodes.jsonl").read_text().splitlines()
    episodes = [json.loads(line)["episode"] for line in lines]
    assert len(set(episodes)) == len(episodes)


def test_every_command_has_a_help_text(toolshift: Run) -> None:
    code, text, _ = toolshift("--help")
    assert code == 0
    for command in commands.list_commands(Context(commands)):
        assert command in text
        code, text_of_its_own, _ = toolshift(command, "--help")
        assert code == 0
        assert len(text_of_its_own.splitlines()) > 4


def pasted(text: str) -> list[list[str]]:
    """The commands of a text as a shell reads them, without the name of the program."""
    return [shlex.split(line)[1:] for line in re.findall(r"\btoolshift [^`\n()]+", text)]


def test_what_is_printed_of_a_folder_with_a_space_can_be_pasted(toolshift: Run) -> None:
    folder, agent = "my runs/it's one", ("--agent", "memorises_names")
    assert toolshift(*RUN, *agent, "--out", folder)[0] == 0
    episode = parsed(toolshift("trace", folder, "--json"))[0]["episode"]
    code, listed, _ = toolshift("trace", folder)
    _, _, unknown = toolshift("trace", folder, "zzz")
    assert toolshift(*RUN, "--agent", "oracle", "--out", "base")[0] == 0
    gate = ("gate", folder, "--baseline", "base", "--margin", "5", "--agent", "memorises_names")
    _, gated, _ = toolshift(*gate, "--baseline-agent", "oracle", "--markdown", "said.md")
    for text in (listed, unknown, gated, Path("said.md").read_text()):
        (words, *_) = pasted(text)
        assert words[:2] == ["trace", folder]
        assert toolshift(*[episode if word == "EPISODE" else word for word in words])[0] == 0
    code, found, _ = toolshift("minimise", folder, episode, "--out", "a test.py")
    assert code == 0
    assert "pytest 'a test.py'" in found


def test_what_is_printed_with_a_plugin_names_it(
    toolshift: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLUGINS, "")  # what the command sets is taken back with it
    # Names of their own: a shift stays known for the rest of the process.
    Path("my shifts.py").write_text(PLUGIN.replace("shouts", "calls").replace("does_n", "says_n"))
    plugin = ("--plugin", "my shifts.py")
    _, listed, _ = toolshift(*plugin, "trace", out)
    assert pasted(listed)[-1] == [*plugin, "trace", "out", "EPISODE"]


PLUGIN = '''
from toolshift.core.shift import Change, NotApplicable, shift
from dataclasses import replace

DECLARED = dict(tier="perception", dimension="query", level=1, imitates="A test.")


@shift(**DECLARED)
def does_nothing(scene, rng, severity):
    """Does nothing."""
    return Change()


@shift(**DECLARED)
def shouts(scene, rng, severity):
    """Puts the request in capitals, again and again."""
    louder = [replace(ask, text=ask.text + " PLEASE" * severity) for ask in scene.asks]
    return Change(asks=tuple(louder))
'''


def test_checks_a_plugin(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text(PLUGIN)
    code, text, err = toolshift("check", "plug:shouts", "--tasks", "3")
    assert code == 0, text + err
    code, text, _ = toolshift("check", "plug:does_nothing", "--tasks", "3", "--json")
    assert code == 1
    failed = [each for each in json.loads(text) if each["state"] == "fail"]
    assert {each["rule"] for each in failed} == {5}
    assert all("(plug.py, line " in each["detail"] for each in failed)
    _, text, _ = toolshift("check", "plug:does_nothing", "--tasks", "3")
    assert "The rules:\n  5  a shift changes something, keeps what it declares" in text


def test_importing_is_cheap() -> None:
    code = "import sys, toolshift; print([m for m in ('numpy', 'rich', 'httpx', 'click') "
    code += "if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["click", "rich.console", "toolshift.core.errors", "numpy"])
def test_ctrl_c_while_a_command_is_imported_is_one_line(module: str) -> None:
    """Stopped as a part is looked for; numpy is of the command, the others are of the group."""
    code = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['toolshift', 'run', '--help']\n"
        "from toolshift.cli import main\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", "Stopped.")


BARE = """
from toolshift import Change, shift
from dataclasses import replace


@shift(tier="perception", dimension="query")
def bare(scene, rng, severity):
    return Change(asks=tuple(replace(ask, text=ask.text + " Please.") for ask in scene.asks))
"""


def test_a_shift_with_nothing_but_what_it_needs_prints_well(tmp_path: Path) -> None:
    """Neither a docstring nor a changelog that it imitates: no empty quotes, labels or brackets."""
    (tmp_path / "bare.py").write_text(BARE)

    def said(words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "toolshift", "--plugin", "bare.py", *words.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = said("show poi/visit --shift bare:1")
    assert "bare, severity 1 [perception, query]" in shown
    assert "as in" not in shown
    about = said("shift show bare")
    assert "imitates" not in about
    assert "what" not in about
    assert json.loads(said("shift show bare --json"))["imitates"] == ""
    assert "bare" in said("list shifts")
    (row,) = (r for r in json.loads(said("list shifts --json")) if r["shift"] == "bare")
    assert row["imitates"] == row["what"] == ""
