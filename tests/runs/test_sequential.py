"""Which episodes come next, and when it is enough."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import Run

from toolshift.agents.catalog import contestants
from toolshift.agents.contestant import Contestant
from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn
from toolshift.core.scene import Applied
from toolshift.measure.claims import families_by, shift_claims
from toolshift.runs.cell import Cell
from toolshift.runs.design import Budget, read_budget
from toolshift.runs.execute import RunSpec, execute
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.sequential import Course, Outcome, Pair, changes, in_order, name_of
from toolshift.runs.suite import Selection, select

SHIFTS = ("redirect", "merged_tools", "semantic_trap")
CLEAN = [Cell("poi", f"kind {n % 4}", n // 4, 0, "dev", 200) for n in range(24)]


def under(cell: Cell, shift: str) -> Cell:
    return Cell(
        cell.world, cell.kind, cell.index, cell.seed, cell.pool, cell.size, (Applied(shift, 2),)
    )


PAIRS = [Pair(under(cell, shift), cell) for shift in SHIFTS for cell in CLEAN]
FAMILIES = families_by(PAIRS, lambda cell: cell.shifts[0].shift)


def outcomes(seed: int, rates: tuple[float, ...], calls: int = 3) -> dict[str, Outcome]:
    """Of all cells: clean, then one rate of passes a shift."""
    rng = Random(seed)
    cells = [*CLEAN, *(pair.after for pair in PAIRS)]
    rate = [rates[0]] * len(CLEAN) + [r for r in rates[1:] for _ in CLEAN]
    found = {}
    for cell, chance in zip(cells, rate, strict=True):
        passed = float(rng.random() < chance)
        found[name_of(cell)] = Outcome(passed, passed, calls)
    return found


def parts(known: dict[str, Outcome], budget: str = "") -> tuple[list[list[str]], Course]:
    course = Course(shift_claims(budget=budget), FAMILIES, known)
    return [[name_of(cell) for cell in part] for part in course.rounds()], course


RATES = st.tuples(*[st.sampled_from([0.0, 0.3, 0.8, 1.0])] * 4)


def test_kinds_come_in_turn_whatever_the_order_they_are_given_in() -> None:
    order = in_order(CLEAN)
    assert sorted(order) == sorted(cell.lineage for cell in CLEAN)
    for turn in range(0, 24, 4):
        assert len({name.split("/")[1] for name in order[turn : turn + 4]}) == 4
    assert in_order(reversed(CLEAN)) == order
    last = in_order(CLEAN, lambda cell: cell.kind == "kind 3")[:6]
    assert {name.split("/")[1] for name in last} == {"kind 3"}


@given(st.integers(0, 99), RATES)
@settings(max_examples=10, deadline=None)
def test_rounds_follow_from_outcomes_alone(seed: int, rates: tuple[float, ...]) -> None:
    known = outcomes(seed, rates)
    asked, _ = parts(known)
    shuffled = list(known.items())
    Random(seed).shuffle(shuffled)
    assert parts(dict(shuffled))[0] == asked
    flat = [name for part in asked for name in part]
    assert len(flat) == len(set(flat))


@given(st.integers(0, 99), RATES, st.integers(0, 60))
@settings(max_examples=10, deadline=None)
def test_a_resumed_run_asks_what_an_unbroken_one_does(
    seed: int, rates: tuple[float, ...], kept: int
) -> None:
    """However many episodes, of whichever part, were kept before it was stopped."""
    known = outcomes(seed, rates)
    flat = [name for part in parts(known)[0] for name in part]
    stored = {name: known[name] for name in flat[:kept]}
    course = Course(shift_claims(), FAMILIES, stored)
    again = []
    for part in course.rounds():
        names = [name_of(cell) for cell in part]
        again += names
        stored |= {name: known[name] for name in names}
    assert again == flat


@given(st.integers(0, 99), RATES)
@settings(max_examples=10, deadline=None)
def test_what_is_left_out_could_not_be_decided_or_is(seed: int, rates: tuple[float, ...]) -> None:
    known = outcomes(seed, rates)
    asked = {name: known[name] for part in parts(known)[0] for name in part}
    claims = shift_claims()
    for family in FAMILIES:
        seen = changes(family, asked)
        said = claims.verdict(family, seen.lows, seen.highs, False)
        assert (
            said != "open"
            or len(seen.lows) == len(family.tasks)
            or claims.to_go(family, seen.likely, False) is None
        )


def test_what_fails_clean_is_not_asked_under_each_shift() -> None:
    known = outcomes(1, (0.7, 1.0, 1.0, 1.0))
    asked = {name for part in parts(known)[0] for name in part}
    failed = {cell.lineage for cell in CLEAN if not known[name_of(cell)].low}
    assert failed
    assert not any(name_of(p.after) in asked for p in PAIRS if p.after.lineage in failed)


def test_it_is_asked_where_the_verdict_depends_on_it() -> None:
    """Clean failures may be gains, which would make up for losses."""
    known = outcomes(3, (0.6, 0.0, 1.0, 1.0))
    asked = {name for part in parts(known)[0] for name in part}
    again = [p for p in PAIRS if name_of(p.after) in asked and not known[name_of(p.before)].low]  # type: ignore[arg-type]
    assert {p.after.stack for p in again} == {"redirect:2"}


def test_a_void_episode_says_nothing_for_either_side() -> None:
    known = {name: one._replace(low=0.0, high=1.0) for name, one in outcomes(0, (1.0,) * 4).items()}
    known |= {name_of(cell): Outcome(1.0, 1.0) for cell in CLEAN}
    seen = changes(FAMILIES[0], known)
    assert (set(seen.lows), set(seen.highs)) == ({-1.0}, {0.0})


@given(st.integers(0, 99), RATES, st.integers(10, 300))
@settings(max_examples=10, deadline=None)
def test_a_budget_in_calls_is_kept(seed: int, rates: tuple[float, ...], most: int) -> None:
    known = outcomes(seed, rates)
    asked, course = parts(known, f"{most}calls")
    spent = 3 * sum(map(len, asked))
    assert spent <= max(most, 6)
    assert asked == parts(known)[0] or spent <= most
    if course.spent_out:
        assert spent + 6 * max(1, len(SHIFTS)) * 4 > most


def test_a_budget_goes_where_the_fewest_tasks_decide() -> None:
    """One shift is taken to its end before money for three runs out."""
    known = outcomes(5, (1.0, 0.0, 0.0, 0.0))
    asked, course = parts(known, "75calls")
    claims = shift_claims()
    seen = {name: known[name] for part in asked for name in part}
    said = [claims.verdict(f, (c := changes(f, seen)).lows, c.highs, False) for f in FAMILIES]
    assert course.spent_out
    assert said.count("breaks") == 1


def test_minutes_end_it_between_rounds() -> None:
    known, now = outcomes(2, (1.0, 1.0, 1.0, 1.0)), [0.0]

    def clock() -> float:
        now[0] += 20.0
        return now[0]

    course = Course(shift_claims(budget="1min"), FAMILIES, known, clock=clock)
    assert len(list(course.rounds())) == 4
    assert course.spent_out


@pytest.mark.parametrize("text", ["", "0calls", "5", "5 eur", "calls", "-3min", "1e3calls"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="2000calls, 5usd or 20min"):
        read_budget(text)


def test_budgets() -> None:
    assert read_budget("2_000 calls") == Budget(2000.0, "calls")
    assert read_budget("0.5USD") == Budget(0.5, "usd")
    assert read_budget("20min") == Budget(20.0, "min")


def test_dollars_need_prices() -> None:
    course = Course(shift_claims(budget="5usd"), FAMILIES, outcomes(0, (1.0,) * 4))
    with pytest.raises(UsageError, match="--price-in"):
        list(course.rounds())


# -- a whole run ---------------------------------------------------------------------------------

SMALL = Selection(tasks=12, shifts=("redirect", "identity_erasure"), pool="train")


class Answers:
    """Calls nothing, and fails every task."""

    name = "answers"

    def reply(self, turn: Turn) -> Reply:
        return Reply("I cannot tell.")


def stored(folder: Path) -> bytes:
    return (folder / "episodes.jsonl").read_bytes()


def sequential(folder: Path, agents: list[Contestant], stop_at: int = 10**6) -> None:
    def watch(done: int, _total: int) -> None:
        if done >= stop_at:
            raise KeyboardInterrupt

    spec = RunSpec(make_plan(select(SMALL)), agents, folder, claims=shift_claims())
    execute(spec, watch)


def test_the_same_bytes_whatever_is_in_flight(tmp_path: Path) -> None:
    for at_once in (1, 8):
        sequential(tmp_path / str(at_once), [Contestant(Answers(), "", at_once)])
    assert stored(tmp_path / "1") == stored(tmp_path / "8")


def test_the_same_bytes_wherever_it_was_stopped(tmp_path: Path) -> None:
    """Ctrl-C loses nothing, and the run goes on to the same end."""
    agents = contestants(["memorises_names"])
    sequential(tmp_path / "whole", agents)
    assert 20 < stored(tmp_path / "whole").count(b"\n") < 48
    for stop in (1, 9, 20):
        with pytest.raises(KeyboardInterrupt):
            sequential(tmp_path / str(stop), agents, stop)
        assert stop <= stored(tmp_path / str(stop)).count(b"\n") < 40
        sequential(tmp_path / str(stop), agents)
        assert stored(tmp_path / str(stop)) == stored(tmp_path / "whole")


def test_both_designs_are_in_the_manifest_and_the_fixed_one_goes_on(
    toolshift: Run, tmp_path: Path
) -> None:
    words = ("run", "--agent", "oracle", "--tasks", "8", "--shift", "redirect", "--out", "out")
    report = json.loads(toolshift(*words, "--design", "sequential", "--json")[1])
    (agent,) = report["agents"]
    assert agent["complete"]
    assert {claim["label"] for claim in agent["claims"]} == {"placebo", "redirect"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["format"], manifest["design"]["name"]) == (3, "sequential")
    few = len(list(RunFolder.read(tmp_path / "out").records()))
    code, _, said = toolshift(*words, "--design", "sequential", "--holds-within", "20")
    assert code == 2
    assert "margin 20" in said
    assert toolshift(*words)[0] == 0
    run = RunFolder.read(tmp_path / "out")
    assert len(list(run.records())) == len(run.plan.cells) > few
    assert run.manifest.design is not None
    assert run.manifest.design.name == "fixed"


def test_evaluate_takes_a_budget() -> None:
    report = evaluate("oracle", tasks=8, shifts=("redirect",), budget="40calls")
    claims = report.agent().claims
    assert claims is not None
    assert report.agent().everything.episodes < 24
    with pytest.raises(UsageError, match="design"):
        evaluate("oracle", tasks=8, design="clever")
