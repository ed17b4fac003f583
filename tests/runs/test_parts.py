from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from running import Run

from toolshift.agents.catalog import contestants
from toolshift.api import report_of, run_spec
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.report.html.episodes import fragment
from toolshift.report.html.subjects import durations
from toolshift.runs.execute import RunSpec
from toolshift.runs.parts import joined
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.worlds.registry import find_world

AGENTS = ("memorises_names@0.5", "gives_up@0.3")
Make = Callable[..., RunFolder]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes a run of some seeds; 2 tasks each, a shift and a stack, twice."""
    base = tmp_path_factory.mktemp("parts")

    def made(name: str, seed: int, seeds: int = 1, agents: tuple[str, ...] = AGENTS) -> RunFolder:
        asked = Selection(
            worlds=("poi",),
            shifts=("identity_erasure", "transient_error+parameter_rename:1"),
            tasks=2,
            trials=2,
            seed=seed,
            seeds=seeds,
        )
        if not (base / name).exists():
            run_spec(RunSpec(make_plan(select(asked)), contestants(list(agents)), base / name))
        return RunFolder.read(base / name)

    return made


def test_the_report_of_the_parts_is_that_of_the_whole(make: Make) -> None:
    whole, parts = make("whole", 4, 2), joined([make("late", 5), make("early", 4)])
    assert JSON.encode(report_of(parts)) == JSON.encode(report_of(whole))
    assert parts.plan.hash == whole.manifest.plan_hash
    assert parts.manifest.selection == whole.manifest.selection
    assert {name: list(tiers) for name, tiers in durations(parts).items()} == {
        name: list(tiers) for name, tiers in durations(whole).items()
    }
    mine, theirs = (fragment([run], keep=9).data for run in (parts, whole))
    assert sorted(mine["traces"]) == sorted(theirs["traces"])
    assert {r.episode for r in parts.records()} == {r.episode for r in whole.records()}


def test_parts_that_were_made_on_several_machines_say_so(make: Make) -> None:
    early, late = make("early", 4), make("late", 5)
    late = RunFolder.read(late.path)
    late.manifest = replace(late.manifest, platform="Another", packages={"numpy": "9"})
    found = joined([early, late]).manifest
    assert found.platform == f"{early.manifest.platform}, Another"
    assert found.packages["numpy"] == f"{early.manifest.packages.get('numpy', 'none')}, 9"
    assert found.python == early.manifest.python


def test_an_episode_that_is_damaged_is_named_by_its_line(make: Make, tmp_path: Path) -> None:
    for file in make("early", 4).path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    name = next(RunFolder.read(tmp_path).records()).episode
    kept = (
        (tmp_path / "episodes.jsonl")
        .read_bytes()
        .replace(b'"arguments":{', b'"arguments":3,"a":{', 1)
    )
    (tmp_path / "episodes.jsonl").write_bytes(kept)
    with pytest.raises(UsageError, match=r"episodes\.jsonl, line 1 is damaged"):
        list(RunFolder.read(tmp_path).some({name}))


def test_a_part_that_is_not_finished_leaves_its_agents_incomplete(
    make: Make, tmp_path: Path
) -> None:
    for file in make("early", 4).path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    episodes = (tmp_path / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(episodes[:-1]))
    report = report_of(joined([RunFolder.read(tmp_path), make("late", 5)]))
    assert [each.complete for each in report.agents] == [True, False]


def test_the_command_joins_what_it_is_told_to(make: Make, toolshift: Run) -> None:
    whole, early, late = make("whole", 4, 2), make("early", 4), make("late", 5)
    paths = [str(run.path) for run in (early, late)]
    _, told, _ = toolshift("report", str(whole.path), "--json")
    code, out, _ = toolshift("report", *paths, "--join", "--json")
    assert (code, json.loads(out)) == (0, json.loads(told))
    code, out, _ = toolshift("report", *paths, "--join", "--html", "page.html")
    assert code == 0
    assert "early+late" in Path("page.html").read_text(encoding="utf-8")
    assert not (early.path / "report.html").exists()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (("whole", 4, 2), "early and .*whole are not parts of one run: both have seed 4"),
        (("alone", 7, 1, ("oracle",)), "they are of other agents"),
        (("far", 7), r"a part is missing. .* \(--seed 5 --seeds 2\)"),
    ],
    ids=["seeds", "agents", "a gap"],
)
def test_what_is_no_part_is_refused(make: Make, other: tuple[object, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        joined([make("early", 4), make(*other)])


def test_parts_of_a_world_with_given_tasks_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another seed has the same tasks there, which would count twice."""
    monkeypatch.setattr(find_world("poi"), "counts", {"listing": 3}, raising=False)
    with pytest.raises(UsageError, match="poi has fixed tasks"):
        joined([make("early", 4), make("late", 5)])
    assert joined([make("early", 4)]).plan.hash == make("early", 4).manifest.plan_hash


def test_a_run_with_other_options_is_no_part(make: Make, tmp_path: Path) -> None:
    asked = Selection(worlds=("poi",), shifts=("identity_erasure",), tasks=1, seed=9)
    run_spec(RunSpec(make_plan(select(asked)), contestants(list(AGENTS)), tmp_path / "other"))
    with pytest.raises(UsageError, match="they differ in tasks, arms, trials"):
        joined([make("early", 4), RunFolder.read(tmp_path / "other")])


def test_episodes_are_found_by_their_names_with_their_steps(make: Make) -> None:
    run = make("early", 4)
    records = list(run.records())
    assert list(run.some({records[3].episode, records[1].episode})) == [records[1], records[3]]
    assert not list(run.some(set()))
