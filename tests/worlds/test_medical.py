"""The medical world: every task can be done, by reading only, and no code can be parroted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from toolshift.core.step import Step
from toolshift.core.tool import ToolFailure, input_schema, invalid_arguments
from toolshift.core.world import POOLS, State
from toolshift.episode.draw import make_scene
from toolshift.episode.user import answer
from toolshift.worlds.medical import WORLD
from toolshift.worlds.medical.hospital import MOST, NAMES, Series, build

CODE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")
# how many calls the oracle makes: the least and the most over many tasks; turns count together
CALLS = {
    "chart": (2, 2),
    "clearance": (3, 3),
    "panel": (4, 4),
    "weight": (2, 3),
    "strongest": (3, 3),
    "fees": (4, 4),
    "prescribe": (4, 4),
    "safe_dose": (4, 4),
    "refer": (5, 5),
    "quickest": (6, 6),
    "chart_then_prescribe": (6, 6),
}
WRITES = {
    "fees": "file_fees",
    "prescribe": "issue_prescription",
    "safe_dose": "issue_prescription",
    "refer": "send_referral",
    "quickest": "send_referral",
    "chart_then_prescribe": "issue_prescription",
}
TRIANGLES = (
    ("find_patient", "open_chart", "screen_medication", "patient_id", "chart_id"),
    ("find_patient", "find_policy", "request_authorisation", "patient_id", "policy_id"),
    ("open_chart", "screen_medication", "issue_prescription", "chart_id", "clearance_code"),
    ("find_specialist", "request_authorisation", "send_referral", "provider_id", "auth_number"),
)


def turns(steps: tuple[Step, ...]) -> Iterator[tuple[list[Step], Step]]:
    """The calls and the answer of each turn."""
    calls: list[Step] = []
    for step in steps:
        if step.kind == "call":
            calls.append(step)
        else:
            yield calls, step
            calls = []


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", sorted(CALLS))
def test_the_oracle_solves_every_task(kind: str, pool: str) -> None:
    counts = set()
    for index in range(30):
        scene = make_scene(WORLD, kind, index, pool=pool)
        assert scene.solvable
        counts.add(len(scene.calls))
        rounds = list(turns(scene.rehearsal))
        assert len(rounds) == len(scene.asks)
        for (calls, step), ask in zip(rounds, scene.asks, strict=True):
            assert (step.kind, step.said) == ("answer", ask.expected)
            assert all(call.ok for call in calls)
            codes = CODE.findall("\n".join(call.text for call in calls))
            assert step.said in codes
            assert codes[-1] != step.said
            assert CODE.search(ask.text) is None
        written = [effect[0] for effect in scene.outcome.effects]
        assert written == ([WRITES[kind]] if kind in WRITES else [])
    assert (min(counts), max(counts)) == CALLS[kind]


def test_every_kind_is_listed() -> None:
    assert set(CALLS) == set(WORLD.kinds)


@pytest.mark.parametrize("kind", sorted(CALLS))
def test_no_place_in_the_results_gives_the_answer_away(kind: str) -> None:
    """The answer is beside a decoy in its own record, and never the last code of it."""
    for index in range(30):
        scene = make_scene(WORLD, kind, index)
        for calls, step in turns(scene.rehearsal):
            bearing = [
                record
                for call in calls
                for record in re.findall(r"\{[^{}]*\}", call.text)
                if step.said in record
            ]
            assert bearing
            assert all(CODE.findall(record)[-1] != step.said for record in bearing)


def test_phrasings_are_twelve_a_pool_and_shared_by_none() -> None:
    requests = {r for kind in WORLD.kinds.values() for r in kind.requests}
    seen: dict[str, str] = {}
    for request in requests:
        slots = {
            pool: {frozenset(re.findall(r"\{(\w+)\}", text)) for text in bank}
            for pool, bank in request.phrasings.items()
        }
        assert len(set.union(*slots.values())) == 1
        for pool, bank in request.phrasings.items():
            assert len(set(bank)) == 12
            assert all(seen.setdefault(text, pool) == pool for text in bank)


def test_phrasings_name_no_tool() -> None:
    texts = [
        text
        for kind in WORLD.kinds.values()
        for request in kind.requests
        for bank in request.phrasings.values()
        for text in bank
    ]
    assert not [text for text in texts if any(tool.name in text for tool in WORLD.tools)]


@pytest.mark.parametrize("kind", sorted(CALLS))
def test_a_simple_question_is_answered_with_the_right_slot(kind: str) -> None:
    scene = make_scene(WORLD, kind, 3)
    ask = scene.asks[-1]
    assert set(ask.goal) <= set(WORLD.facts)
    for slot, value in ask.goal.items():
        reply = answer(f"What is the {WORLD.facts[slot].label}?", ask, WORLD.facts)
        assert reply.slot == slot
        assert str(value) in reply.text


def test_the_labels_of_all_facts_are_significant() -> None:
    ask = make_scene(WORLD, "chart", 0).asks[0]
    for slot, fact in WORLD.facts.items():
        assert answer(f"What is the {fact.label}?", ask, WORLD.facts).slot == slot
    words = [word for fact in WORLD.facts.values() for word in fact.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("size", [10, 200, 20_000])
@pytest.mark.parametrize("pool", POOLS)
def test_sizes(size: int, pool: str) -> None:
    db = build(7, size, pool)
    assert len(db.people) == len(db.by_name) == size
    charts = {db.charts.id(number) for number in range(size)}
    assert len(charts) == size
    assert all(db.charts.number(db.charts.id(n)) == n for n in range(0, size, max(1, size // 50)))
    for kind in WORLD.kinds:
        assert make_scene(WORLD, kind, 1, seed=7, pool=pool, size=size).rehearsal


def test_the_same_seed_makes_the_same_hospital() -> None:
    one, again, other = build(3, 200, "dev"), build(3, 200, "dev"), build(4, 200, "dev")
    assert one.people == again.people
    assert [one.patient(n) for n in range(200)] == [again.patient(n) for n in range(200)]
    assert [one.provider(n) for n in range(24)] == [again.provider(n) for n in range(24)]
    assert one.people != other.people


def test_lists_have_at_most_five_records() -> None:
    db = build(0, 500, "train")
    for number in range(500):
        patient = db.patient(number)
        assert 2 <= len(patient.panels) <= MOST
        assert 2 <= len(patient.medications) <= MOST
        doses = [drug.dose for drug in patient.medications]
        assert len(set(doses)) == len(doses)


def _parts(pool: str, kind: str) -> set[str]:
    found = NAMES[pool][kind]
    return {part for group in found for part in group} if kind in ("clinics", "drugs") else {*found}


def test_pools_share_no_names_and_no_ids() -> None:
    for one, other in combinations(POOLS, 2):
        for kind in NAMES["train"]:
            assert not _parts(one, kind) & _parts(other, kind)
        left, right = build(0, 200, one), build(0, 200, other)
        assert not set(left.people) & set(right.people)
        ids = [{db.charts.id(n) for n in range(200)} for db in (left, right)]
        assert len(ids[0] & ids[1]) < 5


def test_a_name_alone_never_contains_another() -> None:
    """A detail that the user leaves out must not be said by another detail."""
    for pool in POOLS:
        db = build(0, 200, pool)
        for names in (db.clinics, db.drugs):
            assert not [(a, b) for a in names for b in names if a != b and a.lower() in b.lower()]


def test_series_go_there_and_back() -> None:
    series = Series.of(5, "MRN", 6)
    names = [series.id(number) for number in range(2000)]
    assert len(set(names)) == 2000
    assert [series.number(name) for name in names] == list(range(2000))
    assert {series.number(name) for name in ("MRN", "CHT482910", "482910", "MRN9", "MRNx")} == {-1}


def test_triangles_stand_in_at_least_two_kinds() -> None:
    tools = {tool.name: tool for tool in WORLD.tools}
    called = {kind: {s.name for s in make_scene(WORLD, kind, 2).calls} for kind in CALLS}
    for a, b, c, x, y in TRIANGLES:
        assert not tools[a].many
        assert not tools[b].many
        assert tools[a].yields(x)
        assert tools[b].yields(y)
        assert x in tools[b].needs
        assert {x, y} <= set(tools[c].needs)
        assert sum({a, b, c} <= names for names in called.values()) >= 2


def test_descriptions_are_short_and_name_no_tool() -> None:
    names = [tool.name for tool in WORLD.tools]
    assert 9 <= len(names) <= 12
    for tool in WORLD.tools:
        assert 6 <= len(tool.description.split()) <= 14
        assert not [name for name in names if name in tool.description]
        assert len(tool.returns) <= 5
        for param in tool.params:
            assert input_schema(tool)["properties"][param.name]["description"]
        for field in tool.returns:
            assert not field.unit or field.path[-1].endswith(f"_{field.unit}")


def _arguments() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Arguments of each tool that work, and values that make it refuse."""
    state = WORLD.truth(0, 50, "dev").open().state
    patient, other, provider = state.db.patient(0), state.db.patient(1), state.db.provider(0)
    drug = state.db.drugs[0]
    one, chart = {"patient_id": patient.patient_id}, {"chart_id": patient.chart_id}
    seen = {**one, "provider_id": provider.provider_id}
    clearance = {"clearance_code": state.code("clearance", patient.chart_id, drug)}
    auth = WORLD.actions["request_authorisation"](state, {**seen, "policy_id": patient.policy_id})
    nobody, nothing = {"patient_id": "MRN100000"}, {"chart_id": "CHT1000000"}
    person = {"name": patient.name.upper(), "birth_date": patient.birth_date}
    return {
        "find_patient": (person, {"birth_date": "1901-01-01"}),
        "open_chart": (one, nobody),
        "list_panels": (chart, nothing),
        "read_panel": ({"panel_id": patient.panels[0].panel_id}, {"panel_id": "LAB1000000"}),
        "list_medications": (chart, nothing),
        "screen_medication": (
            {**one, **chart, "medication": drug.lower()},
            {"chart_id": other.chart_id},
        ),
        "issue_prescription": (
            {**chart, **clearance, "medication": drug, "dose_mg": 50},
            {"medication": state.db.drugs[1]},
        ),
        "find_policy": (one, nobody),
        "find_specialist": (
            {"specialty": provider.specialty, "clinic": provider.clinic},
            {"clinic": "Elsewhere"},
        ),
        "request_authorisation": (
            {**seen, "policy_id": patient.policy_id},
            {"policy_id": other.policy_id},
        ),
        "send_referral": (
            {**seen, "auth_number": auth["auth_number"]},
            {"provider_id": state.db.provider(1).provider_id},
        ),
        "file_fees": ({**chart, "total_eur": 12.5}, nothing),
    }


ARGUMENTS = _arguments()


@pytest.mark.parametrize("tool", WORLD.tools, ids=lambda tool: tool.name)
def test_each_tool_works_and_refuses(tool: Any) -> None:
    right, wrong = ARGUMENTS[tool.name]
    state = State(WORLD.truth(0, 50, "dev").db)
    assert invalid_arguments(tool, right) == ""
    data = WORLD.actions[tool.name](state, right)
    keys = {field.path[0] for field in tool.returns}
    for record in data if tool.many else [data]:
        assert set(record) == keys
    assert bool(state.effects) is (tool.effect == "write")
    state = State(state.db)
    with pytest.raises(ToolFailure) as refused:
        WORLD.actions[tool.name](state, {**right, **wrong})
    assert refused.value.code == "not_found"
    assert not state.effects
