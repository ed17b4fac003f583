"""Where RL starts, its scenes, and the supervised run beside it: chosen by the plan's rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")

from toolshift_lab.job import Job
from toolshift_lab.outcomes import passes_gate
from toolshift_lab.planned import check_fixed, read_plan, study_of
from toolshift_lab.stage import chosen_arms
from toolshift_lab.started import Choice, pick_match, pick_start

from toolshift.core.errors import UsageError
from toolshift.lm.checkpoint import training_record
from toolshift.train import grpo_settings, presets
from toolshift.train.scenes import Mix

PLAN = Path(__file__).parents[2] / "studies" / "reads" / "rl.toml"


def choices(*shares: float) -> list[Choice]:
    return [Choice(64 + 32 * place, share) for place, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("shares", "number"),
    [((0.1, 0.4, 0.5), 96), ((0.1, 0.2, 0.9), 96), ((0.7, 0.9), 64), ((0.3,), 64)],
)
def test_a_start_is_the_first_within_the_window_or_the_nearest(
    shares: tuple[float, ...], number: int
) -> None:
    assert pick_start(choices(*shares), (0.3, 0.6)).number == number


def test_the_matched_checkpoint_is_the_nearest_and_of_equals_the_first() -> None:
    assert pick_match(choices(0.2, 0.8, 1.0), 0.9).number == 96
    assert pick_match(choices(0.2, 0.7, 0.95), 0.9).number == 128


def settings(**changes: Any) -> dict[str, Any]:
    asked = presets.preset("smoke", steps=2, batch=2, threads=1, **changes)
    return dict(msgspec.to_builtins(asked))


@pytest.mark.slow
def test_a_start_its_scenes_and_its_match_are_trained_at_smoke_size(tmp_path: Path) -> None:
    mix = Mix(kinds=("listing",), size=200)
    more: dict[str, Any] = {"sizes": (4, 6), "window": (0.3, 0.6), "tries": 2}
    start = tmp_path / "start"
    Job("start", mix, 6, settings(), more=more).run(start)
    told = json.loads((start / "model" / "chosen.json").read_text())
    assert [each["number"] for each in told["looked at"]] == [4, 6]  # nothing passes
    assert told["chosen"]["number"] == 4
    assert training_record(start / "model")
    matched = tmp_path / "matched"
    more = {"every": 1, "tries": 2}
    Job("matched", mix, 4, settings(save_every=0), more=more).run(matched)
    assert not (matched / "model").exists()  # its target is still in training
    before = (matched / "all" / "training.json").stat().st_mtime_ns
    more["target"] = str(start / "model")
    Job("matched", mix, 4, settings(save_every=0), more=more).run(matched)
    assert (matched / "all" / "training.json").stat().st_mtime_ns == before
    told = json.loads((matched / "model" / "chosen.json").read_text())
    assert [each["number"] for each in told["looked at"]] == [1, 2]
    assert told["chosen"] == {"number": 1, "passed": 0.0}
    assert training_record(matched / "model")["steps"] == 2
    asked = grpo_settings.preset("smoke", model=str(start / "model"), threads=1)
    given = dict(msgspec.to_builtins(asked))
    job = Job("grpo", mix, 2, given, more={"screen": 3, "samples": 2})
    with pytest.raises(UsageError, match="no scene"):
        job.run(tmp_path / "rl")
    assert len((tmp_path / "rl" / "screen.jsonl").read_text().splitlines()) == 3


def test_the_plan_is_fixed_and_knows_what_each_arm_needs() -> None:
    plan = read_plan(PLAN)
    check_fixed(plan, PLAN)
    assert chosen_arms(study_of(plan), ("sft-static",)) == ["start", "rl-static", "sft-static"]
    gated = {arm.name for arm in plan.arms if arm.gate}
    assert gated == {arm.name for arm in plan.arms if arm.method == "grpo"}


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ('method = "start"\nsizes = []\ntries = 2', "sizes"),
        ('method = "start"\nsizes = [4]', "tries"),
        ('method = "matched"\ntries = 2', "until"),
        ('until = "paft"', "until"),
        ("screen = 4", "screen"),
    ],
)
def test_an_arm_that_lacks_its_rule_is_refused(tmp_path: Path, said: str, because: str) -> None:
    text = PLAN.read_text("utf-8").replace(
        'extends = "plan.toml"', f'extends = "{PLAN.parent / "plan.toml"}"'
    )
    arm = f'[[arms]]\nname = "odd"\nsummary = "odd"\nseeds = 1\n{said}\n'
    file = tmp_path / "rl.toml"
    file.write_text(text.replace("[[contrasts]]", f"{arm}\n[[contrasts]]", 1))
    with pytest.raises(UsageError, match=because):
        read_plan(file)


def test_a_run_whose_reward_did_not_rise_passes_no_gate(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("toolshift_lab.outcomes.RunFolder.read", lambda run: _Played())
    stage: Any = type("Stage", (), {"folder": tmp_path, "run": tmp_path})
    (tmp_path / "model").mkdir()
    for rise, passes in ((0.1, False), (0.3, True)):
        lines = [{"step": n, "reward": 0.3 + rise * (n >= 40)} for n in range(60)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "model" / "curves.jsonl").write_text(text)
        assert passes_gate({"reward": 0.2, "clean": 0.5}, stage) == passes
        assert not passes_gate({"reward": 0.2, "clean": 0.9}, stage)


class _Played:
    """A folder with three clean scenes of which two pass, and a shifted one."""

    def records(self) -> list[Any]:
        grades = [(True, ""), (True, ""), (False, ""), (False, "redirect:2")]
        kind = type("Record", (), {})
        found = []
        for passed, shifts in grades:
            record: Any = kind()
            record.grade = type("Grade", (), {"passed": passed, "void": False})
            record.shifts = shifts
            found.append(record)
        return found

    def cell(self, record: Any) -> Any:
        return record
