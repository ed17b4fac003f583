"""A sealed plan: what is not as it was sealed is refused before a run and an error after it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running import Run, write_agent

from toolshift.core.errors import UsageError
from toolshift.measure.gate import Rules
from toolshift.measure.sealed import (
    plan_bytes,
    read_plan,
    run_breaches,
    save_plan,
    seal,
)
from toolshift.runs.run_folder import SEALED, RunFolder

WORDS = ("--shift", "redirect:2", "--tasks", "6", "--no-placebo")
GATE = ("gate", "--agent", "memorises_names", "--baseline", "old")


@pytest.fixture
def sealed(toolshift: Run) -> Run:
    """A baseline `old`, and `plan.json`, sealed for memorises_names at a margin of 5."""
    assert toolshift("run", "--agent", "oracle", *WORDS, "--out", "old")[0] == 0
    assert toolshift(*GATE, "--margin", "5", "--seal", "plan.json")[0] == 0
    return toolshift


def test_a_run_under_its_plan_is_gated_and_carries_the_plan(sealed: Run) -> None:
    plan = read_plan(Path("plan.json"))
    code, out, _ = sealed(*GATE, "--plan", "plan.json", "--out", "new", "--json")
    said = json.loads(out)
    assert (code, said["verdict"], said["plan"], said["breaches"]) == (1, "fail", plan.hash, [])
    assert Path("new", SEALED).read_bytes() == Path("plan.json").read_bytes()
    again = sealed("gate", "new", "--baseline", "old", "--plan", "plan.json")
    assert again[0] == 1
    assert plan.name in again[1]


def test_the_same_gate_has_the_same_hash(sealed: Run) -> None:
    assert sealed(*GATE, "--margin", "5", "--seal", "again.json")[0] == 0
    assert Path("again.json").read_bytes() == Path("plan.json").read_bytes()
    assert sealed(*GATE, "--margin", "5", "--seal", "plan.json")[0] == 0  # the same: no harm
    code, _, err = sealed(*GATE, "--margin", "6", "--seal", "plan.json")
    assert (code, "another sealed plan" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plan", "plan.json", "--margin", "6"), "was sealed with 5"),
        (("--plan", "plan.json", "--by", "shift"), "was sealed with tier"),
        (("--plan", "plan.json", "--inconclusive", "pass"), "was sealed with none"),
        (("--plan", "nothing.json",), "there is no sealed plan"),
        (("--plan", "old/manifest.json"), "restore it, or seal a new plan"),
        (("--plan", "old"), "old is a folder: name the file in it"),
        (("--margin", "5", "--seal", "old"), "old is a folder: name the file in it"),
        (("--plan", "plan.json", "--agent", "oracle"), "the agent is not the sealed one"),
        (("--plan", "plan.json", "--out", "begun"), "started without the plan"),
        (("--plan", "plan.json", "--seal", "x.json"), "must be used before the run"),
        ((), "give --margin"),
    ],
)  # fmt: skip
def test_what_is_not_as_sealed_is_refused_before_the_run(
    sealed: Run, words: tuple[str, ...], said: str
) -> None:
    if "begun" in words:
        assert sealed(*GATE, "--margin", "5", "--out", "begun")[0] == 1
    code, _, err = sealed(*GATE, *words)
    assert code == 2
    assert said in err
    assert not Path("runs").exists()


def test_a_broken_seal_is_refused(sealed: Run) -> None:
    text = Path("plan.json").read_text()
    Path("plan.json").write_text(text.replace('"margin": 5.0', '"margin": 50.0'))
    code, _, err = sealed(*GATE, "--plan", "plan.json")
    assert (code, "the seal is broken" in err) == (2, True)


def test_a_baseline_that_was_changed_after_the_seal_is_refused(sealed: Run) -> None:
    episodes = Path("old/episodes.jsonl")
    episodes.write_text(episodes.read_text().replace('"passed":true', '"passed":false', 1))
    code, _, err = sealed(*GATE, "--plan", "plan.json")
    assert (code, "the results of old are not those that were sealed" in err) == (2, True)


def test_a_run_without_the_plan_or_under_another_is_an_error(sealed: Run) -> None:
    assert sealed(*GATE, "--margin", "5", "--out", "free")[0] == 1
    code, out, _ = sealed("gate", "free", "--baseline", "old", "--plan", "plan.json", "--json")
    assert (code, json.loads(out)["verdict"]) == (4, "error")
    assert "was not made under a sealed plan" in json.loads(out)["breaches"][0]
    assert sealed(*GATE, "--plan", "plan.json", "--out", "new")[0] == 1
    assert sealed(*GATE, "--margin", "60", "--seal", "wide.json")[0] == 0  # chosen after the result
    files = ("--junit", "gate.xml", "--markdown", "gate.md", "--inconclusive", "pass")
    assert sealed("gate", "new", "--baseline", "old", "--plan", "wide.json", *files)[0] == 2
    code, out, _ = sealed("gate", "new", "--baseline", "old", "--plan", "wide.json", *files[:4])
    assert code == 4
    assert "made under the sealed plan" in out
    assert (
        '<testcase classname="toolshift.plan" name="sealed" time="0">'
        in Path("gate.xml").read_text()
    )
    assert "ToolShift gate: error" in Path("gate.md").read_text()


def test_another_agent_source_or_version_is_no_longer_the_sealed_one(
    sealed: Run, tmp_path: Path
) -> None:
    write_agent(tmp_path, name="sealed_agent")  # a name of its own, so that nobody has imported it
    mine = ("gate", "--agent", "sealed_agent:refuses", "--baseline", "old")
    assert sealed(*mine, "--margin", "5", "--seal", "mine.json")[0] == 0
    assert sealed(*mine, "--plan", "mine.json", "--out", "new")[0] == 1
    with Path("sealed_agent.py").open("a") as file:
        file.write("\n# another build\n")
    code, _, err = sealed(*mine, "--plan", "mine.json", "--out", "newer")
    assert (code, "source_sha256 changed" in err) == (2, True)
    plan, old, new = read_plan(Path("mine.json")), RunFolder.read(Path("old")), Path("new")
    assert run_breaches(plan, old, RunFolder.read(new)) == []
    manifest = new / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"toolshift": "', '"toolshift": "9.'))
    assert any("9." in each for each in run_breaches(plan, old, RunFolder.read(new)))


def test_a_copy_of_a_run_under_another_plan_is_told(sealed: Run) -> None:
    assert sealed(*GATE, "--plan", "plan.json", "--out", "new")[0] == 1
    old, new = RunFolder.read(Path("old")), RunFolder.read(Path("new"))
    agent = new.manifest.agents[0]
    other = seal(old, agent, Rules(7.0, "tier", 5.0), new.manifest.toolshift)
    assert any("made under" in each for each in run_breaches(other, old, new))
    (new.path / SEALED).write_bytes(plan_bytes(other))  # who resists nobody can be caught
    assert run_breaches(other, old, new) == []
    (new.path / SEALED).write_bytes(b"{}")
    assert any("not a sealed plan" in each for each in run_breaches(other, old, new))


def test_a_plan_needs_a_place_to_be_written(sealed: Run) -> None:
    plan = read_plan(Path("plan.json"))
    Path("file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        save_plan(plan, Path("file/plan.json"))


def test_a_stopped_run_goes_on_under_its_plan(sealed: Run) -> None:
    assert sealed(*GATE, "--plan", "plan.json", "--out", "new")[0] == 1
    episodes = Path("new/episodes.jsonl")
    whole = episodes.read_bytes()
    episodes.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    code, out, _ = sealed("gate", "new", "--baseline", "old", "--plan", "plan.json")
    assert code == 4  # missing episodes
    assert "void or missing" in out
    assert sealed(*GATE, "--plan", "plan.json", "--out", "new")[0] == 1
    assert episodes.read_bytes() == whole
    shutil.rmtree("new")


def test_a_plan_is_of_its_two_agents(sealed: Run) -> None:
    assert sealed("run", "--agent", "oracle", "--agent", "noisy", *WORDS, "--out", "two")[0] == 0
    words = ("gate", "--agent", "noisy", "--baseline", "two", "--margin", "5")
    assert sealed(*words, "--baseline-agent", "oracle", "--seal", "other.json")[0] == 0
    under = ("--baseline", "two", "--plan", "other.json")
    code, _, err = sealed("gate", "two", "--agent", "oracle", *under)
    assert (code, "the gate of noisy was sealed" in err) == (2, True), err
    code, _, err = sealed("gate", "two", "--baseline-agent", "noisy", *under)
    assert (code, "oracle was sealed" in err) == (2, True), err
    code, _, err = sealed("gate", "--agent", "noisy", *under, "--early", "--out", "third")
    assert code in (0, 1, 3), err


def test_what_cannot_be_sealed_is_said(sealed: Run) -> None:
    code, _, err = sealed(*GATE, "--margin", "5", "--seal", "x.json", "--junit", "j.xml", "--early")
    assert (code, "--junit, --early" in err) == (2, True), err
    episodes = Path("old", "episodes.jsonl")
    episodes.write_text("".join(episodes.read_text().splitlines(keepends=True)[:3]))
    code, _, err = sealed(*GATE, "--margin", "5", "--seal", "x.json")
    assert (code, "is not finished" in err) == (2, True), err
    assert not Path("x.json").exists()


def test_a_tree_that_is_not_installed_gates_under_its_plan_too(
    sealed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolshift.runs.provenance.version_of", lambda package: "")
    assert sealed(*GATE, "--margin", "5", "--seal", "bare.json")[0] == 0
    code, out, err = sealed(*GATE, "--plan", "bare.json", "--out", "bare")
    assert code == 1, out + err
