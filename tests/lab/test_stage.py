"""Studies: stages are keyed by what decides them, kept, and added up over seeds."""

import json
import os
import re
import shlex
import signal
from collections import Counter
from math import isnan
from pathlib import Path

import msgspec
import pytest
from toolshift_lab import stage as stage_module
from toolshift_lab.experiments import SCALES, STUDIES, find_study
from toolshift_lab.stage import stages
from train import tiny

from toolshift.core.errors import UsageError
from toolshift.core.message import Turn
from toolshift.lm.prompt import to_plain_messages
from toolshift.runs import cell
from toolshift.shifts.training_families import TRAINING_FAMILIES
from toolshift.train.presets import PRESETS
from toolshift.train.scenes import check, draw

KEPT_PROMPTS = {
    "description-first": "40efe099",
    "name-first": "1c9f1032",
    "json": "ed6f300b",
    "spaced": "c9af1745",
    "spaced-texts": "65ff36df",
}


@pytest.mark.parametrize("name", STUDIES)
def test_every_arm_can_be_drawn_and_compared(name):
    study = STUDIES[name]
    names = [arm.name for arm in study.arms]
    assert len(names) == len(set(names))
    for arm in study.arms:
        check(arm.mixed(SCALES["small"], 0))
        assert not arm.init or arm.init in names
    for pair in study.contrasts:
        assert set(pair) <= set(names)


def test_the_same_arm_is_one_stage_in_all_studies():
    kept = {
        study: {s.arm.name: s.folder for s in stages(STUDIES[study], "small", 1, Path("w"))}
        for study in ("contrast", "more", "alpha")
    }
    assert kept["contrast"]["static"] == kept["more"]["static"] == kept["alpha"]["static"]
    assert kept["contrast"]["paft"] == kept["alpha"]["paft"]
    assert len(set(kept["more"].values())) == 3


def test_what_an_arm_starts_from_comes_before_it_and_decides_it():
    made = stages(find_study("beyond"), "small", 1, Path("w"), ("paft-mild-first",))
    assert [stage.arm.name for stage in made] == ["paft-mild", "paft-mild-first"]
    first, second = (stage.arm.mixed(SCALES["small"], 0) for stage in made)
    tasks = [{draw(mix, n).task.id for n in range(40)} for mix in (first, second)]
    assert not tasks[0] & tasks[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"lr": 1e-3}},
        {"settings": {"layout": "name-first"}},
        {"factor": 2.0},
        {"passes": 2},
        {"mix": {"alpha": 0.5, "shifts": ("SBP",)}},
    ],
)
def test_whatever_decides_a_stage_is_in_its_key(changed):
    study = find_study("alpha")
    other = msgspec.structs.replace(
        study, arms=(msgspec.structs.replace(study.arms[0], **changed), *study.arms[1:])
    )
    keys = {stages(each, "small", 1, Path("w"), ("static",))[0].key for each in (study, other)}
    assert len(keys) == 2


def test_a_change_of_the_preset_is_in_the_key(monkeypatch):
    before = stages(find_study("alpha"), "small", 1, Path("w"), ("static",))[0].key
    slower = msgspec.structs.replace(PRESETS["small"], lr=1e-4)
    monkeypatch.setitem(PRESETS, "small", slower)
    assert stages(find_study("alpha"), "small", 1, Path("w"), ("static",))[0].key != before


def static_key():
    stage_module._behaviour.cache_clear()
    return stages(find_study("alpha"), "small", 1, Path("w"), ("static",))[0].key


@pytest.fixture(scope="module")
def unchanged_key():
    return static_key()


def test_a_change_of_how_prompts_are_written_is_in_the_key(monkeypatch, unchanged_key):
    monkeypatch.setattr("toolshift.lm.prompt._INTRODUCTION", "Call a tool:")
    assert static_key() != unchanged_key


def _of_loss(patch):
    patch.setattr("toolshift.train.loss._sum", lambda logits, ids, weights: logits.mean())


def _of_the_mask(patch):
    patch.setattr("toolshift.train.batches._spread", lambda mask, said: mask)


def _of_a_library(patch):
    patch.setattr("toolshift.train.fingerprint.version", lambda package: "0")


def _of_the_arithmetic(patch):
    patch.setattr("toolshift.train.fingerprint.computes_in", lambda precision: "int4")


def test_what_changes_nothing_leaves_the_key(unchanged_key):
    assert static_key() == unchanged_key


@pytest.mark.parametrize("change", [_of_loss, _of_the_mask, _of_a_library, _of_the_arithmetic])
def test_a_change_of_what_training_does_is_in_the_key(monkeypatch, change, unchanged_key):
    change(monkeypatch)
    assert static_key() != unchanged_key


@pytest.mark.parametrize(("layout", "written"), KEPT_PROMPTS.items())
def test_prompts_are_written_as_for_the_stages_that_are_kept(layout, written):
    tool = {
        "name": "find_place",
        "description": "Find a place.",
        "parameters": {
            "properties": {
                "name": {"type": "string", "description": "Its name as people say it."},
                "city": {"type": "string", "enum": ["Lyon", "Rio"]},
                "n": {"type": "integer"},
            },
            "required": ["name"],
        },
    }
    call = {"name": "find_place", "arguments": '{"name":"Quiet Fox","n":2}'}
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Where is Quiet Fox?"},
        {"role": "assistant", "tool_calls": [{"function": call}]},
        {"role": "tool", "content": '{"id":"PL-1"}'},
    ]
    found = stage_module._hash(to_plain_messages(Turn(messages, [tool]), layout))
    assert found == written, "the shipped adapters were trained on prompts that are written so"


def test_the_recipe_of_the_docs_is_that_of_the_studies(toolshift, monkeypatch):
    docs = Path(__file__).parents[2] / "docs" / "train.md"
    after = docs.read_text("utf-8").partition("## The recipe that was measured")[2]
    command = re.search(r"^    toolshift (.+?)\n\n", after, re.DOTALL | re.MULTILINE)[1]
    asked = {}

    def paft_command(options):
        asked.update(mix=options.mix(), count=options.count, settings=options.settings())

    monkeypatch.setattr("toolshift.cli.paft.paft_command", paft_command)
    code, _, err = toolshift(*shlex.split(command.replace("\\\n", " ")))
    assert code == 0, err
    (arm,) = (arm for arm in find_study("copying").arms if arm.name == "paft-spaced-texts")
    assert asked == {
        "mix": arm.mixed(SCALES["small"], 0),
        "count": arm.amount(SCALES["small"]),
        "settings": stage_module._settings(arm, "small", 0),
    }


def test_arms_share_the_draws_of_the_families_that_they_share():
    arms = {arm.name: arm for arm in find_study("contrast").arms}
    counts = {
        name: Counter(
            applied.shift
            for number in range(900)
            for applied in draw(arms[name].mixed(SCALES["small"], 0), number).shifts
        )
        for name in ("paft", "refuses", "paft-without-limits")
    }
    for limit in TRAINING_FAMILIES.find("limits"):
        assert counts["paft"][limit] == pytest.approx(counts["refuses"][limit], abs=4)
        assert not counts["paft-without-limits"][limit]
    for error in TRAINING_FAMILIES.find("EFP"):
        assert counts["paft"][error] == pytest.approx(counts["paft-without-limits"][error], abs=4)


def test_unknown_names_are_refused():
    with pytest.raises(UsageError, match="did you mean contrast"):
        find_study("contrst")
    with pytest.raises(UsageError, match="did you mean paft"):
        stages(find_study("contrast"), "small", 1, Path("w"), ("pafd",))
    with pytest.raises(UsageError, match="did you mean small"):
        stages(find_study("contrast"), "smal", 1, Path("w"))


def test_a_wording_of_an_error_changes_the_key_of_what_is_trained_on_it(monkeypatch):
    from toolshift.shifts import wording

    def keys():
        made = stages(find_study("contrast"), "small", 1, Path("w"))
        return {stage.arm.name: stage.key for stage in made}

    before, opaque = keys(), wording.opaque
    monkeypatch.setattr(wording, "opaque", lambda *given: opaque(*given) + "x")
    changed = {name for name, key in keys().items() if key != before[name]}
    assert changed == {"paft", "paft-without-limits"}


def test_a_wording_changes_where_an_arm_is_measured(monkeypatch):
    from toolshift.shifts import wording

    def forget():
        stage_module._scenes.cache_clear()
        cell._shifted.cache_clear()

    def where():
        forget()
        made = stages(find_study("controls"), "small", 1, Path("w"), ("static", "native-reasoning"))
        return {stage.arm.name: stage.run.name for stage in made}

    before, opaque = where(), wording.opaque
    monkeypatch.setattr(wording, "opaque", lambda *given: opaque(*given) + "x")
    after = where()
    forget()
    assert {name for name in before if after[name] != before[name]} == {"static"}


@pytest.mark.model
@pytest.mark.parametrize(
    ("study", "arms", "missing", "another"),
    [
        ("more", ("static",), "steps-x4", "alpha"),
        pytest.param("rl", ("paft", "grpo-shifted"), "grpo-static", "more", marks=pytest.mark.slow),
    ],
    ids=["sft", "grpo"],
)
def test_a_study_runs_end_to_end_and_is_not_run_twice(
    tmp_path, toolshift, monkeypatch, study, arms, missing, another
):
    words = ("reproduce", study, "--preset", "smoke", "--seeds", "1", "--arm", arms[-1])
    where = ("--work", tmp_path / "stages", "--out", tmp_path / "page")
    code, out, err = toolshift(*words, *where, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert tuple(arm["arm"] for arm in found["arms"]) == arms
    assert f"{missing}, seed 0" in found["missing"]
    assert not found["evidence"]
    assert "No evidence" in (tmp_path / "page" / "README.md").read_text()
    assert all(not isnan(arm["measures"]["clean"][0]) for arm in found["arms"])
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("report.json"))
    code, _, err = toolshift(*words, *where)
    assert code == 0
    assert f"{len(arms)} stages, {len(arms)} of them done" in err
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("report.json")) == before
    results = (tmp_path / "page" / "results.json").read_bytes()
    code, _, err = toolshift("reproduce", study, "--preset", "small", *where, "--only-page")
    assert code == 2
    assert f"holds results of {study}, preset smoke, pool dev, which would be lost" in err
    code, _, err = toolshift("reproduce", another, "--preset", "smoke", *where, "--only-page")
    assert code == 2
    assert f"holds results of {study}" in err
    elsewhere = ("--work", tmp_path / "nothing", "--out", tmp_path / "page")
    code, _, err = toolshift(*words, *elsewhere, "--only-page")
    assert code == 2
    assert "has no finished stage of this study" in err
    assert (tmp_path / "page" / "results.json").read_bytes() == results
    monkeypatch.chdir(tmp_path)  # where its own folder is
    code, _, err = toolshift(*words, *where[:2], "--only-page")
    assert code == 0, err
    assert f" --out {tmp_path / 'page'}\n" in (tmp_path / "page" / "README.md").read_text()
    own = (tmp_path / "studies" / study / "README.md").read_text()
    assert f"$ toolshift reproduce {study} --preset smoke\n" in own
    if study == "more":
        _is_measured_elsewhere(toolshift, tmp_path, words)


def _is_measured_elsewhere(toolshift, folder, words):
    """What was trained is measured in another world too, on a page of its own."""
    trained = {path: path.stat().st_mtime_ns for path in folder.rglob("model/*")}
    where = ("--work", folder / "stages", "--world", "medical", "--out")
    code, _, err = toolshift(*words, *where, folder / "page")
    assert code == 2
    assert "holds results of more, preset smoke, pool dev" in err
    code, _, err = toolshift(*words, *where, folder / "other")
    assert code == 0, err
    assert "training" not in err
    assert trained == {path: path.stat().st_mtime_ns for path in folder.rglob("model/*")}
    text = (folder / "other" / "README.md").read_text()
    assert "measured in the world medical, all its kinds, on" in text
    assert "--world medical" in text
    worlds = [json.loads(f.read_bytes())["selection"]["worlds"]
              for f in folder.glob("stages/*/run-*/manifest.json")]  # fmt: skip
    assert sorted(worlds) == [["medical"], ["poi"]]
    code, _, err = toolshift(*words, *where[:3], "medicin", *where[4:], folder / "other")
    assert code == 2
    assert "medical" in err


@pytest.mark.slow
@pytest.mark.model
def test_an_arm_that_only_decodes_otherwise_is_measured_with_what_another_learned(
    tmp_path, toolshift
):
    where = ("--work", tmp_path / "stages", "--out", tmp_path / "page")
    code, _, err = toolshift(
        "reproduce", "copying", "--preset", "smoke", "--seeds", "1",
        "--arm", "static-constrained", *where,
    )  # fmt: skip
    assert code == 0, err
    free, bound = (
        json.loads(file.read_bytes())["agents"][0]["settings"]
        for name in ("static-smoke", "static-constrained")
        for file in (tmp_path / "stages").glob(f"{name}-*/run-*/manifest.json")
    )
    assert (free.pop("decoding"), bound.pop("decoding")) == ("free", "constrained")
    assert free == bound
    assert not list((tmp_path / "stages").glob("static-constrained-*/model"))


@pytest.mark.slow
@pytest.mark.model
def test_ctrl_c_in_a_stage_loses_nothing(tmp_path, toolshift, monkeypatch):
    def study(folder):
        where = ("--work", tmp_path / folder, "--out", tmp_path / f"{folder}-page")
        return toolshift(
            "reproduce", "more", "--preset", "smoke", "--seeds", "1", "--arm", "static", *where
        )

    def press(owner, name):
        """Presses Ctrl-C at the first call."""
        original = getattr(owner, name)

        def pressed(*args, **kwargs):
            monkeypatch.setattr(owner, name, original)
            os.kill(os.getpid(), signal.SIGINT)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, pressed)

    from toolshift.agents.local import LocalAgent
    from toolshift.train.callbacks import Progress

    assert study("whole")[0] == 0
    press(Progress, "on_log")
    code, _, err = study("broken")
    assert code == 130
    assert "a checkpoint is in" in err
    press(LocalAgent, "reply_batch")
    code, _, err = study("broken")
    assert code == 130
    assert "measuring" in err
    assert study("broken")[0] == 0
    for file in ("model/model.safetensors", "run-*/report.json"):
        (whole,), (broken,) = ((tmp_path / name).glob(f"*/{file}") for name in ("whole", "broken"))
        assert broken.read_bytes() == whole.read_bytes(), file


@pytest.mark.model
def test_the_test_pool_is_opened_by_a_plan_and_for_nothing_else(tmp_path, toolshift):
    words = ("reproduce", "more", "--preset", "smoke", "--seeds", "1", "--pool", "test")
    where = ("--work", tmp_path / "stages", "--out", tmp_path / "page")
    code, _, err = toolshift(*words, *where, "--only-page")
    assert code == 2
    assert "plans none of these stages" in err
    code, _, err = toolshift(*words, *where, "--arm", "static")
    assert code == 0
    assert "commit it, then go on" in err
    assert not (tmp_path / "stages").exists()
    code, _, err = toolshift(*words, *where, "--arm", "steps-x4")
    assert code == 2
    assert "plans other stages than steps-x4-smoke-seed0" in err
    plan = tmp_path / "page" / "plan.json"
    kept = plan.read_bytes()
    (run,) = json.loads(kept).values()
    plan.write_text(json.dumps(dict.fromkeys(json.loads(kept), run[:-8] + "0" * 8)))
    code, _, err = toolshift(*words, *where, "--arm", "static")
    assert code == 2, "the scenes are others than those that were planned for"
    plan.write_bytes(kept)
    code, _, err = toolshift(*words, *where, "--arm", "static")
    assert code == 0, err
    said = (tmp_path / "page" / "README.md").read_text()
    assert "pool test" in said
    assert "--pool test --arm static --out" in said
    assert "steps-x4, seed" not in said, "what was not planned is not missing"
    plan.write_text("[]")
    code, _, err = toolshift(*words, *where, "--only-page")
    assert code == 2
    assert "is no plan of stages" in err


@pytest.mark.slow
@pytest.mark.model
def test_a_study_trains_in_several_processes_and_says_so_where_it_is_one_of_them(
    tmp_path, toolshift, monkeypatch
):
    words = ("reproduce", "more", "--preset", "smoke", "--seeds", "1", "--arm", "static")
    where = ("--work", tmp_path / "stages", "--out", tmp_path / "page")
    code, _, err = toolshift(*words, *where, "--launch", shlex.join(tiny.two_processes()))
    assert code == 0, err
    (folder,) = (tmp_path / "stages").iterdir()
    record = json.loads((folder / "model" / "training.json").read_bytes())
    assert record["hardware"]["processes"] == 2
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = toolshift(*words, *where)
    assert code == 2
    assert "--launch 'accelerate launch" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "nosuch"), "unknown base model 'nosuch'"),
        (("--model", "gema3-270m"), "did you mean gemma3-270m"),
        (("--model", "gemma3-270m"), "name a study: "),
        (("--minutes", "5"), "name a study: "),
        (("nosuch",), "decisive"),
        (("decisve",), "did you mean decisive?"),
    ],
    ids=" ".join,
)
def test_what_no_study_is_named_for_is_said(words, said, toolshift):
    code, _, err = toolshift("reproduce", *words)
    assert (code, said in err) == (2, True), err
