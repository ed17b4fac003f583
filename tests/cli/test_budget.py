"""`--design` and `--budget` of run, gate and change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import Run

from toolshift.runs.run_folder import RunFolder

RUN = ("run", "--tasks", "16", "--shift", "redirect", "--no-placebo", "--agent")


def asked(folder: str) -> int:
    return len(list(RunFolder.read(Path(folder)).records()))


def design(folder: str) -> str:
    found = RunFolder.read(Path(folder)).manifest.design
    return found.name if found else ""


def make_older(folder: Path) -> None:
    """A run as versions before designs have written it."""
    path = folder / "manifest.json"
    raw = json.loads(path.read_text())
    del raw["design"]
    path.write_text(json.dumps(raw | {"format": 2}))


def test_a_budget_says_what_stayed_open(toolshift: Run) -> None:
    code, said, _ = toolshift(*RUN, "gives_up", "--out", "out", "--budget", "40calls")
    assert code == 0
    assert "Open, because the budget is spent or the run was stopped: redirect." in " ".join(
        said.split()
    )
    few = asked("out")
    code, said, _ = toolshift(*RUN, "gives_up", "--out", "out", "--budget", "400calls")
    assert code == 0
    assert "Breaks under redirect (-100 [" in " ".join(said.split())
    assert few < asked("out") < 32
    stored = json.loads(Path("out/manifest.json").read_text())
    assert stored["design"]["budget"] == "400calls"


def test_an_agent_that_passes_nothing_holds_nothing(toolshift: Run) -> None:
    words = (*RUN, "always_refuses", "--out", "out", "--design", "sequential")
    code, said, _ = toolshift(*words, "--holds-within", "50")
    assert code == 0
    said = " ".join(said.split())
    assert "Holds under" not in said
    assert "Open, because it passes too few of these tasks clean to lose more than" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "5"), "2000calls, 5usd or 20min"),
        (("--budget", "5usd", "--design", "fixed"), "--max-cost"),
        (("--holds-within", "5"), "--design sequential"),
        (("--holds-within", "0", "--budget", "9calls"), "above 0"),
        (("--budget", "5usd"), "--price-in"),
    ],
)
def test_what_cannot_be_spent_is_said(toolshift: Run, words: tuple[str, ...], said: str) -> None:
    code, _, wrong = toolshift(*RUN, "oracle", "--out", "out", *words)
    assert code == 2
    assert said in wrong


def test_a_gate_has_the_design_of_its_baseline_s_format(toolshift: Run) -> None:
    assert toolshift(*RUN, "oracle", "--out", "old")[0] == 0
    assert design("old") == "fixed"
    gate = ("gate", "--agent", "gives_up", "--baseline", "old", "--margin", "50")
    code, said, _ = toolshift(*gate, "--out", "new")
    assert (code, design("new")) == (1, "sequential")
    assert asked("new") < 32
    assert "Sequential design" in said
    assert toolshift(*gate, "--out", "fixed", "--design", "fixed")[0] == 1
    assert (asked("fixed"), design("fixed")) == (32, "fixed")
    narrow = (*gate[:-1], "5")  # so few tasks would never pass, so all are facts
    assert toolshift(*narrow, "--out", "narrow")[0] == 1
    assert (asked("narrow"), design("narrow")) == (32, "fixed")
    make_older(Path("old"))
    assert toolshift(*gate, "--out", "older")[0] == 1
    assert (asked("older"), design("older")) == (32, "fixed")


def test_a_baseline_is_whole(toolshift: Run) -> None:
    words = (*RUN, "oracle", "--out", "old")
    assert toolshift(*words, "--design", "sequential")[0] == 0
    gate = ("gate", "--agent", "oracle", "--baseline", "old", "--margin", "50", "--out", "new")
    code, _, said = toolshift(*gate)
    assert code == 2
    assert "--design fixed" in said
    notes = json.loads(toolshift("compare", "old", "old", "--json")[1])["comparison"]["notes"]
    assert "stopped when it had decided" in notes[-1]
    assert toolshift(*words, "--design", "fixed")[0] == 0
    assert toolshift(*gate)[0] == 0


def test_a_budget_leaves_a_gate_inconclusive_and_can_be_raised(toolshift: Run) -> None:
    assert toolshift(*RUN, "oracle", "--out", "old")[0] == 0
    gate = ("gate", "--agent", "gives_up", "--baseline", "old", "--margin", "5", "--out", "new")
    code, said, _ = toolshift(*gate, "--budget", "20calls")
    assert (code, "the budget of 20calls is spent; the same command" in said) == (3, True)
    folder = RunFolder.read(Path("new"))
    whole = list(folder.records())
    folder.rewrite(whole[:-1])
    code, said, _ = toolshift("gate", "new", *gate[3:-2])
    assert (code, "the run is unfinished: resume it" in said) == (4, True)
    folder.rewrite(whole)
    assert toolshift(*gate, "--budget", "200calls")[0] == 1


def test_a_sealed_plan_plays_everything(toolshift: Run) -> None:
    assert toolshift(*RUN, "oracle", "--out", "old")[0] == 0
    gate = ("gate", "--agent", "oracle", "--baseline", "old")
    assert toolshift(*gate, "--margin", "50", "--seal", "plan.json")[0] == 0
    code, _, said = toolshift(*gate, "--plan", "plan.json", "--out", "new", "--budget", "9calls")
    assert code == 2
    assert "need all scenes" in said
    assert toolshift(*gate, "--plan", "plan.json", "--out", "new")[0] == 0
    assert (asked("new"), design("new")) == (32, "fixed")
