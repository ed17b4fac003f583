"""A study whose plan is a file: it says what is run, and is refused where it was changed later."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")

from toolshift_lab import endpoints, experiments, findings
from toolshift_lab import page as page_module
from toolshift_lab import stage as stage_module
from toolshift_lab.arm import Arm
from toolshift_lab.endpoints import (
    LEAST_P,
    Contrast,
    as_markdown,
    compared,
    endpoints_of,
    p_text,
    told_p,
)
from toolshift_lab.planned import (
    Endpoint,
    PlanFile,
    arm_of,
    check_fixed,
    read_plan,
    study_of,
    take_up,
)
from toolshift_lab.plots import endpoints_by_arm

from toolshift.agents.local_kind import shipped_adapter
from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.measure.crossed import Crossed
from toolshift.measure.statistics import Interval
from toolshift.train.model import find_base
from toolshift.train.record import Asked, alone_in
from toolshift.train.reward import Weights
from toolshift.train.scenes import Mix, draws
from toolshift.train.settings import TrainSettings

STUDIES = Path(__file__).parents[2] / "studies"
PLAN = STUDIES / "decisive" / "plan.toml"
SMALL = """
name = "decisive"
question = "Does it run?"
preset = "smoke"
pool = "dev"
kinds = ["listing"]
tasks = 2
trajectories = 12
max_repeats = 6
held_out = ["redirect"]
[[endpoints]]
name = "tier 2"
measure = "drop"
shifts = ["redirect:2", "transient_error:2"]
[[endpoints]]
name = "right refusal"
measure = "passed"
shifts = ["fatal_error:2"]
[[arms]]
name = "static"
summary = "clean"
seeds = 1
[[arms]]
name = "graph"
summary = "split tools"
seeds = 1
doses = { split_tools = 6, EFP = 3 }
[[contrasts]]
first = "static"
second = "graph"
[[blocks]]
arms = ["static", "graph"]
seeds = [0]
"""


LATER = """
extends = "plan.toml"
name = "later"
question = "And then?"
tasks = 1
updates = 2
[[arms]]
name = "rl"
summary = "GRPO from static"
method = "grpo"
init = "static"
seeds = 1
settings = { group = 2, headroom = [0.2, 0.8], redraw = 1, reward = { over_refusal = 0.5 } }
alpha = 0.5
shifts = ["SBP"]
[[contrasts]]
first = "static"
second = "rl"
[[blocks]]
arms = ["rl", "static"]
seeds = [0]
"""


@pytest.fixture(autouse=True)
def nothing_stays_known() -> Iterator[None]:
    """A plan that is taken up is known as a study and a scale from then on: not to other tests."""
    kept = [(known, dict(known)) for known in (experiments.STUDIES, experiments.SCALES)]
    yield
    for known, before in kept:
        known.clear()
        known.update(before)


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes a small plan with some of its text changed."""

    def write(*changes: tuple[str, str]) -> Path:
        text = SMALL.replace("EFP = 3", "SBP = 3")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "plan.toml"
        file.write_text(text)
        return file

    return write


def test_the_committed_plan_is_the_one_that_was_fixed() -> None:
    plan = read_plan(PLAN)
    check_fixed(plan, PLAN)
    assert {arm.name: arm.seeds for arm in plan.arms}["static"] >= 6
    assert len(plan.order) == len(set(plan.order)) == sum(arm.seeds for arm in plan.arms)
    first = plan.blocks[0]
    assert {pair.second for pair in plan.contrasts} - {"diverse"} < set(first.arms)
    study = study_of(plan)
    assert study.probes == plan.probes
    assert not any(arm.meets(plan.held_out) for arm in study.arms)


def test_every_shift_of_the_graph_reaches_its_dose() -> None:
    """Counted on a tenth of the trajectories; where a shift cannot be applied they stay clean."""
    plan = read_plan(PLAN)
    arm = next(arm_of(each, plan) for each in plan.arms if each.name == "paft-graph")
    scenes = list(draws(Mix(kinds=plan.kinds, share=arm.together, **arm.mix), 150))
    found = [each.shifts[0].shift for each in scenes if each.shifts]
    for shift, least in (("split_tools", 15), ("merged_tools", 15), ("reversed_order", 9)):
        assert sum(name.startswith(shift) for name in found) >= least, shift


def test_a_plan_that_is_changed_later_is_refused(written: Any, toolshift: Any) -> None:
    file = written()
    with pytest.raises(UsageError, match=r"plan\.sha256 says nothing"):
        check_fixed(read_plan(file), file)
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    check_fixed(read_plan(file), file)
    written(("tasks = 2", "tasks = 3"))
    code, _, err = toolshift("reproduce", "decisive", "--plan", file)
    assert code == 2
    assert "what is planned is fixed before it is run" in err


@pytest.mark.parametrize("name", ["transfer", "ablations", "rl", "gemma", "dagger"])
def test_the_plans_that_extend_it_are_those_that_were_fixed(name: str) -> None:
    file, first = PLAN.with_name(f"{name}.toml"), read_plan(PLAN)
    plan = read_plan(file)
    check_fixed(plan, file)
    assert (plan.trained, plan.kinds) == ("decisive", first.kinds)
    if not plan.model:  # another one's is named, as its own tokenizer derives it: see test_gemma.py
        assert plan.layout == first.layout == "derived"
    assert plan.held_out == first.held_out
    if name != "transfer":  # in the same scenes, so that the arms of the first stand beside
        assert (plan.probes, plan.tasks, plan.world) == (first.probes, first.tasks, first.world)


@pytest.fixture
def later(written: Any) -> Any:
    """Writes the small plan with its hash, and one that extends it with some text changed."""

    def write(*changes: tuple[str, str]) -> Path:
        first = written()
        first.with_suffix(".sha256").write_text(f"{read_plan(first).sha256}  plan.toml\n")
        text = LATER
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = first.with_name("later.toml")
        file.write_text(text)
        return file

    return write


def test_a_plan_that_extends_another_says_only_what_differs(later: Any) -> None:
    file = later()
    plan = read_plan(file)
    first = read_plan(file.with_name("plan.toml"))
    assert (plan.name, plan.trained, plan.tasks, plan.kinds) == (
        "later",
        "decisive",
        1,
        ("listing",),
    )
    assert plan.endpoints == first.endpoints
    assert plan.order == [("rl", 0), ("static", 0)]
    assert [arm.name for arm in plan.used] == ["static", "rl"], "graph is not asked for"
    assert plan.sha256 != first.sha256
    arm = {each.name: each for each in study_of(plan).arms}["rl"]
    assert (arm.method, arm.init, arm.mix["alpha"]) == ("grpo", "static", 0.5)
    assert arm.settings["reward"] == Weights(over_refusal=0.5)
    assert arm.settings["headroom"] == (0.2, 0.8)
    only = later(('arms = ["rl", "static"]', 'arms = ["rl"]'))
    assert [each.name for each in read_plan(only).used] == ["static", "rl"], "rl starts from it"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('init = "static"', 'init = "statics"', "rl: init: unknown earlier arm 'statics'"),
        ('init = "static"', 'init = "rl"', "rl: init: unknown earlier arm 'rl'"),
        ('name = "rl"', 'name = "graph"', "graph is there twice"),
        ("updates = 2", "", "rl: updates, the GRPO steps of an arm, are missing"),
        ("alpha = 0.5", "", "rl: alpha and shifts go together"),
        (
            "alpha = 0.5",
            "alpha = 0.5\ndoses = { EFP = 3 }",
            "doses say what alpha and shifts would",
        ),
        ('["SBP"]', '["redirect"]', "rl is trained on a shift that is held out"),
        ("group = 2,", "grup = 2,", "rl: settings: .*grup"),
        ("group = 2,", "group = 1,", "rl: settings: .*at least 2"),
        ("over_refusal", "over_refusals", "rl: settings: .*over_refusals"),
        ("updates = 2", 'model = "gemma"\nupdates = 2', "unknown .*'gemma'"),
        ("updates = 2", 'world = "mars"\nupdates = 2', "unknown world 'mars'"),
        ("updates = 2", 'adapter = "smol:paft"\nupdates = 2', "adapter: .*the base model"),
        ('"plan.toml"', '"plans.toml"', r"extends: there is no plan .*plans\.toml"),
        ('"plan.toml"', "3", "extends"),
        ('"plan.toml"', '"later.toml"', "extends a plan itself"),
        ("updates = 2", "updates = 2\ntrained = 'x'", "trained is not written in a plan"),
        ("seeds = [0]", "seeds = []", "blocks: no stage is in one"),
        ('[[arms]]\nname = "rl"', '[arms]\nname = "rl"', "arms"),
        ('method = "grpo"', 'aggregate = true\nmethod = "grpo"', "aggregate is said of rounds"),
        ('method = "grpo"', 'passes = 2\nmethod = "grpo"', "rl: passes: grpo reads none"),
        ("group = 2,", "steps = 2,", "rl: settings: .*leave steps out"),
    ],
)
def test_an_extension_that_contradicts_itself_is_refused(
    later: Any, old: str, new: str, said: str
) -> None:
    with pytest.raises(UsageError, match=rf"^\S+\.toml.*: .*{said}"):
        read_plan(later((old, new)))


def test_what_is_extended_is_a_plan_that_is_fixed_and_extends_nothing(
    later: Any, tmp_path: Path
) -> None:
    file = later()
    (tmp_path / "third.toml").write_text(LATER.replace("plan.toml", "later.toml"))
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  later.toml\n")
    with pytest.raises(UsageError, match=r"third\.toml: extends .*name that one"):
        read_plan(tmp_path / "third.toml")
    with (tmp_path / "plan.toml").open("a") as first:
        first.write("# changed\n")
    with pytest.raises(UsageError, match="what is planned is fixed before it is run"):
        read_plan(file)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("SBP = 3", "redirect = 3", "graph is trained on a shift that is held out"),
        ("SBP = 3", "SBP = 9", "doses are more than 12 together"),
        ("SBP = 3", "SBQ = 3", "unknown shift or family"),
        ('first = "static"', 'first = "statics"', "contrasts: unknown arm"),
        ("seeds = [0]", "seeds = [0, 1]", "blocks: static has seeds 0 to 0"),
        ('arms = ["static", "graph"]', 'arms = ["static"]', "not so: graph seed 0"),
        ("fatal_error:2", "fatal_errors:2", "unknown shift"),
        ('preset = "smoke"', 'preset = "smok"', "unknown preset"),
        ("tasks = 2", "tusks = 2", "tusks"),
        ("tasks = 2", "tasks = 0", "tasks must be at least 1"),
        ("trajectories = 12", "trajectories = 0", "trajectories must be at least 1"),
        ('["redirect"]', '["redirects"]', "held_out: .*unknown shift 'redirects'"),
        ('["redirect"]', '["split_tools:2"]', "held_out: name shifts, without version"),
        ('["redirect"]', '["merged_tools@1"]', "held_out: name shifts, without version"),
        ('["redirect"]', '["SBP"]', "held_out: name shifts, .*no families"),
        ('["redirect:2", "transient_error:2"]', "[]", "tier 2: a drop takes shifts"),
        ('name = "right refusal"', 'name = "tier 2"', "endpoints: tier 2 is there twice"),
        ('name = "decisive"', 'name = "../x"', "'../x' names folders"),
        ('name = "static"', 'name = "a/b"', "'a/b' names folders"),
        ("split_tools = 6, SBP = 3", "split_tools = 0", "dose of split_tools must be at least 1"),
        ("split_tools = 6, SBP = 3", "split_tools = -6", "dose of split_tools must be at least 1"),
        ("doses =", "factor = nan\ndoses =", "graph: factor must be above 0"),
        ("doses =", "passes = 0\ndoses =", "graph: passes must be at least 1"),
        ("doses =", "rounds = 2\ndoses =", "graph: rounds are of dagger, and sft has none"),
        ("doses =", "settings = { seed = 7 }\ndoses =", "graph: settings: its seeds are counted"),
        ("doses =", 'method = "dagger"\ndoses =', "graph: dagger takes at least 1 round"),
        ("doses =", 'method = "none"\ndoses =', "graph: doses: none reads none"),
        ("doses =", "passes = 2\nsettings = { epochs = 3 }\ndoses =", "graph: .*leave epochs out"),
        ("doses =", 'settings = { model = "m" }\ndoses =', "graph: settings: .*leave model out"),
        ("doses =", 'settings = { preset = "paper" }\ndoses =', "graph: .*leave preset out"),
        ('second = "graph"', 'second = "static"', "contrasts: static less itself is 0"),
        (
            "[[blocks]]",
            '[[contrasts]]\nfirst = "static"\nsecond = "graph"\n[[blocks]]',
            "contrasts: graph less static is there twice",
        ),
        ('"transient_error:2"', '"redirect"', "tier 2: shifts: redirect:2 is there twice"),
        ('"transient_error:2"', '""', "tier 2: shifts: '' names none"),
        (
            'measure = "passed"\nshifts = ["fatal_error:2"]',
            'measure = "passed"\ndealt = true\nshifts = ["fatal_error:2*1", "redirect*2"]',
            r"right refusal: redirect\*2 is dealt, and tier 2 measures it too",
        ),
        ('name = "decisive"', 'name = "contrast"', "name: contrast is a study or a preset"),
        ("seeds = 1\ndoses", "seeds = 1000000000\ndoses", "blocks: .* not so: graph seed 1"),
        (
            'arms = ["static", "graph"]',
            'arms = ["graph", "static"]',
            "graph starts from static, and is run before it at seed 0",
        ),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(
    written: Any, old: str, new: str, said: str
) -> None:
    more = [("doses =", 'init = "static"\ndoses =')] if "starts from" in said else []
    with pytest.raises(UsageError, match=rf"^\S+\.toml.*: .*{said}"):
        read_plan(written((old, new), *more))


def test_what_an_arm_starts_from_leaves_weights_at_each_of_its_seeds(written: Any) -> None:
    two = ("seeds = 1\ndoses", "seeds = 2\ndoses")
    blocks = ("seeds = [0]", 'seeds = [0]\n[[blocks]]\narms = ["graph"]\nseeds = [1]')
    from_static = ('summary = "split tools"', 'summary = "split tools"\ninit = "static"')
    untrained = ('summary = "clean"', 'summary = "clean"\nmethod = "none"')
    with pytest.raises(UsageError, match="static has 1 seeds, fewer than the 2 of graph"):
        read_plan(written(two, blocks, from_static))
    with pytest.raises(UsageError, match="static trains nothing"):
        read_plan(written(from_static, untrained))
    base = ("doses = { split_tools = 6, SBP = 3 }", 'method = "none"')
    with pytest.raises(UsageError, match=r"graph: nothing is trained, .*must be 1, not 2"):
        read_plan(written(two, blocks, base))


def test_the_page_of_another_plan_is_not_written_over(
    written: Any, toolshift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolshift_lab.cli.reproduce.stages", lambda *given, **more: [])
    file = written()
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    words = ("reproduce", "decisive", "--plan", file, "--work", tmp_path / "stages", "--only-page")
    page = tmp_path / "page"
    page.mkdir()
    (page / "README.md").write_text("my notes")
    code, _, err = toolshift(*words, "--out", page)
    assert (code, "is not the page of a study, and would be lost" in err) == (2, True), err
    kept = {"study": "decisive", "scale": "decisive", "pool": "dev"}
    (page / "results.json").write_text(json.dumps(kept))
    (page / "endpoints.json").write_text(json.dumps({"plan_sha256": "0" * 64}))
    code, _, err = toolshift(*words, "--out", page)
    assert (code, "the page of another plan (0000000000000000)" in err) == (2, True), err
    (page / "endpoints.json").write_text("{")
    code, _, err = toolshift(*words, "--out", page)
    assert (code, "endpoints.json is damaged" in err) == (2, True), err


def test_a_stage_of_dagger_took_what_all_its_fits_took(tmp_path: Path) -> None:
    arm = next(each for each in read_plan(PLAN).arms if each.name == "paft-graph-dagger")
    stage = stage_module.Stage(
        arm_of(arm, read_plan(PLAN)), 0, "smoke", tmp_path, "", tmp_path / "r", "dev", "", ""
    )
    assert stage.fits() == []
    for steps, folder in enumerate(("round-0", "round-1/model", "model"), 1):
        (tmp_path / folder).mkdir(parents=True)
        record = {"base_sha256": "", "steps": steps}
        (tmp_path / folder / "training.json").write_text(json.dumps(record))
    assert [each["steps"] for each in stage.fits()] == [1, 2, 3]


def test_an_endpoint_that_no_task_counts_for_is_refused_before_anything_is_trained(
    written: Any, toolshift: Any, tmp_path: Path
) -> None:
    file = written(("fatal_error:2", "reversed_order:2"))
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    code, _, err = toolshift("reproduce", "decisive", "--plan", file, "--work", tmp_path / "stages")
    assert code == 2
    assert "right refusal: reversed_order:2 is applicable to none of the 2 tasks" in err
    assert not (tmp_path / "stages").exists()


def test_dagger_is_not_launched_in_several_processes(
    written: Any, toolshift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_run(study: Any, *rest: Any, **more: Any) -> list[Any]:
        return [SimpleNamespace(arm=arm, seed=0, measured=False) for arm in study.arms]

    monkeypatch.setattr("toolshift_lab.cli.reproduce.stages", not_run)
    dagger = 'summary = "split tools"\nmethod = "dagger"\nrounds = 1'
    file = written(('summary = "split tools"', dagger))
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    words = ("reproduce", "decisive", "--plan", file, "--work", tmp_path / "stages")
    code, _, err = toolshift(*words, "--launch", "touch started")
    assert (code, "run graph without it" in err) == (2, True), err
    assert not (tmp_path / "stages").exists()
    assert not Path("started").exists()


def test_a_stage_that_another_process_is_at_is_passed_over(
    written: Any, toolshift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, work = [], tmp_path / "stages"

    def two(study: Any, *rest: Any, **more: Any) -> list[Any]:
        return [
            stage_module.Stage(arm, 0, "smoke", work / arm.name, "", work / "none", "dev", "", "")
            for arm in study.arms
        ]

    def fit(stage: Any, *rest: Any) -> None:
        made.append(stage.arm.name)

    monkeypatch.setattr("toolshift_lab.cli.reproduce.stages", two)
    monkeypatch.setattr(stage_module, "_train", fit)
    monkeypatch.setattr(stage_module, "_measure", lambda *given: None)
    file = written()
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    words = ("reproduce", "decisive", "--plan", file, "--work", work, "--no-page")
    (work / "static").mkdir(parents=True)
    with alone_in(work / "static"):
        code, _, err = toolshift(*words)
    assert code == 0, err
    assert "static, seed 0: another process is at it" in err
    assert "0 of 2 stages are done; --only-page writes the page" in err
    assert made == ["graph"]
    code, out, _ = toolshift(*words, "--json")
    assert (code, json.loads(out)) == (0, {"stages": 2, "done": 0})
    assert made == ["graph", "static", "graph"]
    code, _, err = toolshift(*words, "--only-page")
    assert (code, "leave one out" in err) == (2, True)
    for given in ((), ("contrast",)):
        code, _, err = toolshift("reproduce", *given, "--plan", file)
        assert (code, "name " in err) == (2, True), err
    code, _, err = toolshift("reproduce", "contrast", "--no-page")
    assert (code, "only `decisive` runs without its page" in err) == (2, True)


def test_a_stage_waits_for_the_one_that_it_starts_from(
    written: Any, toolshift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process is training `static`, from which `graph` starts here."""
    made, work = [], tmp_path / "stages"
    monkeypatch.setattr(stage_module.Stage, "trained", property(lambda self: self.arm.name in made))
    monkeypatch.setattr(
        stage_module.Stage, "measured", property(lambda self: self.arm.name in made)
    )

    def two(study: Any, *rest: Any, **more: Any) -> list[Any]:
        return [
            stage_module.Stage(arm, 0, "smoke", work / arm.name, "", work / "none", "dev", "", "")
            for arm in study.arms
        ]

    pair = ("graph", "static")

    def parents(stage: Any, study: Any) -> list[Any]:
        return [each for each in two(study) if (stage.arm.name, each.arm.name) == pair]

    monkeypatch.setattr("toolshift_lab.cli.reproduce.stages", two)
    monkeypatch.setattr(stage_module, "_parents", parents)
    monkeypatch.setattr(stage_module, "_train", lambda stage, *rest: made.append(stage.arm.name))
    monkeypatch.setattr(stage_module, "_measure", lambda *given: None)
    file = written()
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    (work / "static").mkdir(parents=True)
    with ExitStack() as other:
        other.enter_context(alone_in(work / "static"))
        pauses: list[float] = []

        def end(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) > 1:
                other.close()  # which dies before it has finished

        # Not `time.sleep` itself: threads of other tests sleep as well.
        clock = SimpleNamespace(sleep=end, monotonic=time.monotonic)
        monkeypatch.setattr("toolshift_lab.cli.reproduce.time", clock)
        code, _, err = toolshift(
            "reproduce", "decisive", "--plan", file, "--work", work, "--no-page"
        )
    assert code == 0, err
    assert err.count("static, seed 0: another process is at it") == 1
    assert err.count("graph, seed 0: waits for static, seed 0") == 1
    assert made == ["static", "graph"]
    assert len(pauses) == 2


def test_what_starts_from_a_stage_starts_from_its_weights(tmp_path: Path) -> None:
    """Two fits of one arm and seed are two models, which no page takes for one."""
    plan = read_plan(PLAN)
    first = arm_of(plan.arms[1], plan)
    second = msgspec.structs.replace(first, name="rl", init=first.name)
    stages = []
    for arm in (first, second):
        model = tmp_path / arm.name / "model"
        model.mkdir(parents=True)
        stages.append(stage_module.Stage(arm, 1, "smoke", model.parent, "", model, "dev", "", ""))
    (tmp_path / first.name / "model" / "weights.sha256").write_text("abc  adapter\n")
    record = {"base_sha256": "", "adapter_sha256": "abc"}
    (tmp_path / "rl" / "model" / "training.json").write_text(json.dumps(record))
    stage_module.check_lineage(stages)
    (tmp_path / first.name / "model" / "weights.sha256").write_text("abd  adapter\n")
    with pytest.raises(UsageError, match=r"rl was trained from other weights than those of .*stat"):
        stage_module.check_lineage(stages)
    stage_module.check_lineage(stages[1:])


def test_the_page_says_where_the_reward_of_rl_did_not_rise(tmp_path: Path) -> None:
    plan = read_plan(PLAN)
    arm = msgspec.structs.replace(arm_of(plan.arms[1], plan), name="rl", method="grpo")
    stages = []
    for seed, (steps, slope) in enumerate(((50, 0.01), (50, -0.01), (30, 0.01))):
        model = tmp_path / str(seed) / "model"
        model.mkdir(parents=True)
        lines = [
            {"step": n, "reward": -9, "reward_drawn": 0.5 + slope * n} for n in range(1, steps + 1)
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in [*lines, {"step": steps, "limits": 1}])
        (model / "curves.jsonl").write_text(text)
        stages.append(
            stage_module.Stage(arm, seed, "smoke", model.parent, "", model, "dev", "", "")
        )
    rewards = [findings._rewards(stage) for stage in stages]
    assert rewards[0] == pytest.approx((0.605, 0.905))
    nothing: tuple[Any, ...] = ({}, {}, {}, {}, [], [], [], [])
    result = findings.ArmResult("rl", "", [0, 1, 2], *nothing, rewards=rewards)
    assert result.rose == [True, False, False]
    said = "\n".join(page_module._reward_table([result]))
    assert re.search(r"\| rl \| 0\.6\d → 0\.9\d, 0\.[34]\d → 0\.[01]\d, n\.d\. \| 1 of 3 \|", said)
    assert "It is not seen to rise in every seed of rl:" in said
    risen = msgspec.structs.replace(result, rewards=rewards[:1])
    assert "not seen to rise" not in "\n".join(page_module._reward_table([risen]))
    assert page_module._reward_table([msgspec.structs.replace(result, rewards=[])]) == []


def test_memory_that_runs_out_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def full(*given: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 296.00 MiB.")

    monkeypatch.setattr(stage_module, "_train", full)
    arm = arm_of(read_plan(PLAN).arms[1], read_plan(PLAN))
    stage = stage_module.Stage(arm, 3, "smoke", tmp_path / "s", "", tmp_path / "r", "dev", "", "")
    study = study_of(read_plan(PLAN))
    with pytest.raises(UsageError, match=r"static, seed 3: memory ran out.*run fewer processes"):
        stage_module.run(stage, study, print)

    def broken(*given: Any) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(stage_module, "_train", broken)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        stage_module.run(stage, study, print)


def played(folder: Path, agent: str, plan: PlanFile, arm: str, seed: int) -> stage_module.Stage:
    """A stage of a scripted agent."""
    evaluate(
        agent, worlds=["poi"], kinds=["listing"], shifts=plan.probes, tasks=4, placebo=False,
        out=folder,
    )  # fmt: skip
    of_plan = next(arm_of(each, plan) for each in plan.arms if each.name == arm)
    return stage_module.Stage(of_plan, seed, plan.name, folder, "", folder, plan.pool, "", "")


def test_endpoints_are_told_by_task_and_contrasts_by_pairs(written: Any, tmp_path: Path) -> None:
    plan = read_plan(written())
    stages = [
        played(tmp_path / f"{arm}{seed}", agent, plan, arm, seed)
        for arm, agent in (("static", "gives_up"), ("graph", "oracle"))
        for seed in range(3)
    ]
    clean = Endpoint("clean", "passed", ())
    plan = msgspec.structs.replace(plan, secondary=(clean,))
    found = endpoints_of(plan, stages)
    told = {(each.arm, each.endpoint): each.found for each in found.arms}
    assert told["graph", "tier 2"].interval.estimate == 0
    assert told["graph", "right refusal"].interval.estimate == 1
    assert told["graph", "clean"].interval.estimate == 1
    assert {told[arm, "right refusal"].interval.low for arm in ("static", "graph")} == {0.0}
    lost = told["static", "tier 2"]
    assert (lost.seeds, lost.tasks) == (3, 4)
    assert lost.interval.estimate >= 0.5
    drop = found.contrasts[0]
    assert drop.found.interval.estimate == -lost.interval.estimate
    assert drop.p_holm >= drop.found.p >= LEAST_P
    assert drop.unpaired is not None
    assert drop.unpaired.interval.estimate == drop.found.interval.estimate
    assert drop.accuracy is not None
    assert drop.accuracy.interval.estimate > 0, "more is passed where less is lost"
    accuracy = {each.arm: each.accuracy for each in found.arms if each.endpoint == "tier 2"}
    assert [one.interval.estimate for one in accuracy.values() if one] == [0, 1]
    share = found.contrasts[1].found.interval
    assert -1 <= share.low <= share.high <= 1, "shares differ by 1 at most"
    page = as_markdown(found)
    assert f"| graph - static | tier 2 | {-100 * lost.interval.estimate:.0f} [" in page
    assert "| graph against static | tier 2 | 100 |" in page, "the oracle loses nothing"
    assert drop.won_back == [1.0, 1.0, 1.0]
    assert [each.won_back for each in found.contrasts if each.endpoint != "tier 2"] == [[], []]
    assert msgspec.json.encode(found)
    assert [len(each.by_seed) for each in found.arms] == [3] * len(found.arms)
    drawn = endpoints_by_arm(found)
    assert drawn.startswith("<svg")
    titles = {"tier 2: points lost", "right refusal: percent passed", "static", "graph"}
    assert titles <= set(re.findall(r">([^<]+)<", drawn))
    assert drawn.count("NaN") == 0


@pytest.mark.parametrize(
    ("p", "seeds", "told"),
    [(1e-9, 6, "at most 0.001"), (0.03, 3, "0.03"), (0.03, 2, "nan"), (1e-9, 1, "nan")],
)
def test_no_p_is_told_that_so_few_seeds_cannot_bear(p: float, seeds: int, told: str) -> None:
    assert p_text(told_p(p, seeds)) == told


def test_p_is_adjusted_over_all_contrasts_of_the_plan(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two contrasts of the plan with a test each: Holm's factors are 2 and 1, not 1 and 1."""
    plan = read_plan(written())
    plan = msgspec.structs.replace(plan, contrasts=plan.contrasts * 2, endpoints=plan.endpoints[:1])
    raw = iter([0.01, 0.02])

    def contrast(*given: object) -> list[Contrast]:
        p = next(raw)
        found = Crossed(Interval(0.1, 0.0, 0.2, "crossed t", 3), p, 3, 8)
        return [Contrast("static", "graph", "tier 2", found, p)]

    monkeypatch.setattr(endpoints, "_contrast", contrast)
    scores: Any = {arm: {0: {"": {"a": (True, False)}}} for arm in ("static", "graph")}
    assert [each.p_holm for each in compared(plan, scores).contrasts] == [0.02, 0.02]


def test_a_finished_stage_that_lost_episodes_is_refused(written: Any, tmp_path: Path) -> None:
    stage = played(tmp_path / "run", "gives_up", read_plan(written()), "static", 0)
    assert stage_module.Stage.report(stage).complete
    file = tmp_path / "run" / "episodes.jsonl"
    for kept in (file.read_bytes().splitlines(keepends=True)[:-1], []):
        file.write_bytes(b"".join(kept))
        with pytest.raises(UsageError, match="run was finished, and lacks episodes of its plan"):
            stage_module.Stage.report(stage)


def test_a_shift_of_an_endpoint_may_leave_its_severity_out(written: Any, tmp_path: Path) -> None:
    both = ('["redirect:2", "transient_error:2"]', '["redirect", "transient_error@1:2"]')
    plan = read_plan(written(both, ('["fatal_error:2"]', '["fatal_error"]')))
    stage = played(tmp_path / "run", "gives_up", plan, "static", 0)
    found = endpoints_of(plan, [stage])
    assert [each.endpoint for each in found.arms] == ["tier 2", "right refusal"]
    stated = read_plan(written())
    expected = endpoints_of(stated, [stage]).arms
    assert [e.found.interval for e in found.arms] == [e.found.interval for e in expected]


def test_a_void_episode_makes_no_endpoint_one_over_other_shifts(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both arms lose nothing but one shift of each task; of one a scene of it is void."""
    plan = read_plan(written())
    whole = {
        stack: dict.fromkeys("abcd", (stack != "redirect:2", False))
        for stack in ("", "redirect:2", "transient_error:2")
    }
    torn = {stack: {t: one[t] for t in one if (t, stack) != ("a", "redirect:2")}
            for stack, one in whole.items()}  # fmt: skip
    told = {"static": whole, "graph": torn}
    monkeypatch.setattr(endpoints, "scores_of_run", lambda run: told[run])
    stages: Any = [
        SimpleNamespace(measured=True, arm=SimpleNamespace(name=arm), seed=0, run=arm)
        for arm in told
    ]
    found = endpoints_of(plan, stages)
    assert {each.found.interval.estimate for each in found.contrasts} == {0.0}
    assert [each.found.tasks for each in found.contrasts] == [4]
    assert {e.arm: e.found.interval.estimate for e in found.arms} == {"static": 0.5, "graph": 0.375}


def test_a_drop_of_an_arm_with_too_little_to_lose_is_marked(written: Any, tmp_path: Path) -> None:
    plan = read_plan(written())
    stages = [
        played(tmp_path / arm, agent, plan, arm, 0)
        for arm, agent in (("static", "always_refuses"), ("graph", "oracle"))
    ]
    found = endpoints_of(plan, stages)
    assert [each.clean for each in found.arms if each.endpoint == "tier 2"] == [0.0, 1.0]
    page = as_markdown(found)
    assert page.count("(n.d.: clean 0%)") == 2, "the arm, and its contrast"
    assert "| graph - static | right refusal |" in page
    assert page.count("| one seed |") == len(found.contrasts), "one seed gets no p"
    assert "| tier 2 | static | (0 → 0) |" in page
    assert "| tier 2 | graph | 100 → 0 |" in page
    assert "| graph | tier 2 | 0 [-60, 60] |" in page


@pytest.mark.parametrize(
    ("scale", "settings", "measured"),
    [
        ("small", {}, ("", "model")),
        ("small", {"full": True}, ("model", "")),
        ("smoke", {}, ("model", "")),
        ("smoke", {"full": False}, ("", "model")),
    ],
)
def test_an_arm_is_measured_with_what_it_has_trained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scale: str,
    settings: dict[str, Any],
    measured: tuple[str, str],
) -> None:
    made = Arm("made", "", settings=settings)
    strict = Arm("strict", "", "none", init="made", decoding="constrained")
    study = experiments.Study("s", "?", (made, strict))

    def stage_of(arm: Arm) -> Any:
        return SimpleNamespace(arm=arm, scale=scale, folder=tmp_path, seed=0, pool="dev")

    def parents(stage: Any, _: Any) -> list[Any]:
        return [stage_of(made)] if stage.arm.init else []

    monkeypatch.setattr(stage_module, "_parents", parents)
    expected = tuple(tmp_path / name if name else None for name in measured)
    for arm in study.arms:
        assert stage_module._made(stage_of(arm), study) == expected, arm.name
    start = stage_module._from(*expected)
    assert start == {("model" if measured[0] else "adapter"): str(tmp_path / "model")}


def test_an_arm_may_be_trained_in_other_worlds_than_the_plans(written: Any) -> None:
    file = written(
        ('summary = "split tools"', 'summary = "split tools"\nworlds = ["poi", "retail"]')
    )
    plan = read_plan(file)
    study, scale = take_up(plan)
    static, graph = (arm.mixed(experiments.SCALES[scale], 0) for arm in study.arms)
    assert (static.worlds, static.kinds) == (("poi",), ("listing",))
    assert (graph.worlds, graph.kinds) == (("poi", "retail"), ())
    assert {scene.task.world for scene in draws(graph, 12)} == {"poi", "retail"}
    with pytest.raises(UsageError, match=r"graph: .*retial"):
        read_plan(written(('summary = "split tools"', 'summary = "s"\nworlds = ["retial"]')))


@pytest.mark.model
def test_a_plan_may_start_from_an_adapter_that_ships(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ('preset = "smoke"', 'preset = "small"\nadapter = "smol:paft"')
    as_it_is = ('summary = "clean"', 'summary = "clean"\nmethod = "none"')
    file = written(named, as_it_is)
    plan = read_plan(file)
    study, scale = take_up(plan)
    found = stage_module.stages(study, scale, 1, tmp_path / "stages")
    shipped = shipped_adapter("smol:paft")
    assert [stage_module._made(each, study)[1] for each in found] == [
        shipped,
        found[1].folder / "model",
    ]
    asked: list[Any] = []
    monkeypatch.setattr(stage_module.Job, "run", lambda job, *_: asked.append(job))
    stage_module._train(found[1], study, {}, "")
    assert asked[0].settings["adapter"] == str(shipped)

    without = read_plan(written(('preset = "smoke"', 'preset = "small"'), as_it_is))
    other = stage_module.stages(*take_up(without), 1, tmp_path / "stages")
    for one, two in zip(found, other, strict=True):
        assert one.recipe != two.recipe
        assert one.key != two.key
    with pytest.raises(UsageError, match=r"no shipped adapter .smol:patf."):
        read_plan(written(('preset = "smoke"', 'preset = "small"\nadapter = "smol:patf"')))
    with pytest.raises(UsageError, match=r"adapter: smol:paft is of the model smol, and"):
        read_plan(written(('preset = "smoke"', 'preset = "smoke"\nadapter = "smol:paft"')))
    take_up(plan)
    there = []
    other_seed = replace(found[1], seed=1, folder=tmp_path / "another")
    for stage, began in ((found[1], "abc"), (other_seed, "abd")):
        model = stage.folder / "model"
        model.mkdir(parents=True)
        (model / "training.json").write_text(
            json.dumps({"base_sha256": "", "adapter_sha256": began})
        )
        there.append(stage)
    stage_module.check_lineage(there[:1])
    with pytest.raises(UsageError, match="different weights of smol:paft"):
        stage_module.check_lineage(there)
    with pytest.raises(UsageError, match=r"another smol:paft \(sha256 abc\).*go on with that one"):
        stage_module.check_start(there)
    weights = (shipped / "adapter_model.safetensors").read_bytes()
    recorded = hashlib.sha256(weights).hexdigest()
    given = TrainSettings(adapter=str(shipped), layout="spaced-texts")
    assert Asked.of(given, [], find_base(given)).adapter_sha256 == recorded, "as training does"
    record = {"base_sha256": "", "adapter_sha256": recorded}
    for stage in there:
        (stage.folder / "model" / "training.json").write_text(json.dumps(record))
    stage_module.check_start([*found, *there])


@pytest.mark.model
def test_an_adapter_that_was_measured_as_it_is_is_not_mixed_with_the_one_that_replaced_it() -> None:
    """Such an arm has no training record; these runs were of the adapter before."""
    study, scale = take_up(read_plan(STUDIES / "reads" / "tier4-look.toml"))
    [shipped] = stage_module.stages(study, scale, 1, STUDIES / "stages", ("shipped",))
    assert shipped.measured
    with pytest.raises(UsageError, match=r"another smol:paft \(sha256 8259a241d7f8\)"):
        stage_module.check_start([shipped])


@pytest.mark.slow
@pytest.mark.model
def test_a_plan_runs_end_to_end_in_slices_and_is_not_run_twice(
    written: Any, tmp_path: Path, toolshift: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiments, "STUDIES", dict(experiments.STUDIES))
    file = written()
    file.with_suffix(".sha256").write_text(f"{read_plan(file).sha256}  plan.toml\n")
    words = ("reproduce", "decisive", "--plan", file, "--work", tmp_path / "stages")
    words = (*words, "--out", tmp_path / "page")
    code, _, err = toolshift(*words, "--minutes", "0.0001")
    assert code == 0, err
    assert "0 of them done" in err
    assert "the time is up" in err
    code, out, err = toolshift(*words, "--json")
    assert code == 0, err
    assert "2 stages, 1 of them done" in err
    found = json.loads(out)
    assert {each["arm"] for each in found["arms"]} == {"static", "graph"}
    text = (tmp_path / "page" / "README.md").read_text()
    assert "## Endpoints of the plan" in text
    assert found["plan_sha256"][:16] in text
    manifests = list((tmp_path / "stages").glob("*/run-*/manifest.json"))
    assert [json.loads(m.read_bytes())["selection"]["max_repeats"] for m in manifests] == [6, 6]

    file.with_name("later.toml").write_text(
        LATER.replace("tasks = 1", 'world = "medical"\ntasks = 1')
    )
    later = file.with_name("later.toml")
    later.with_suffix(".sha256").write_text(f"{read_plan(later).sha256}  later.toml\n")
    words = ("reproduce", "decisive", "--plan", later, *words[4:-1], tmp_path / "after")
    code, _, err = toolshift(*words)
    assert code == 0, err
    assert "static, seed 0: training" not in err, "it is there"
    assert "rl, seed 0: training" in err
    text = (tmp_path / "after" / "README.md").read_text()
    assert "measured in the world medical" in text
    assert "--world" not in text.rpartition("```console")[2], "the plan says so"
    code, _, err = toolshift(*words, "--world", "poi", "--only-page")
    assert (code, "name another folder with --out" in err) == (2, True), "no page is lost"
    words = (*words, "--out", tmp_path / "in-poi")
    code, _, err = toolshift(*words, "--world", "poi", "--only-page")
    assert (code, "no finished stage of this plan" in err) == (2, True), "what is asked for holds"
    assert "later.toml" in text.rpartition("```console")[2]
    made = {
        m.parent.parent.name[:-9]: m for m in (tmp_path / "stages").glob("*/run-*/manifest.json")
    }
    assert set(made) == {f"{a}-decisive-seed0" for a in ("static", "graph", "rl")}
    assert json.loads(made["rl-decisive-seed0"].read_bytes())["selection"]["worlds"] == ["medical"]


def test_a_plan_that_is_no_text_is_named(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"plan\.toml is not TOML"):
        read_plan(file)
