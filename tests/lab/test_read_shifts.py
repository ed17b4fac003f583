"""The parts of a rewrite: each is solved by the oracle, and changes what it says it changes."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from toolshift_lab import poi_2, read_shifts  # noqa: F401 - by their names

from toolshift.core.scene import Scene
from toolshift.core.shift import TIERS, NotApplicable
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.stacks import read_arms, read_stack
from toolshift.worlds.registry import find_world

OURS = (
    "described_by_data", "retold_description", "other_tools", "surplus_parameter",
    "padded_description", "other_tools_last", "lent_tools", "shuffled_list",
    "retold_parameters",
)  # fmt: skip
LAB = Path(__file__).parents[2] / "lab"
REWRITE = "identity_erasure:3+described_by_data:3+other_tools:2"


def clean(pool: str = "test", kind: str = "route", world: str = "poi-2") -> Scene:
    return make_scene(find_world(world), kind, 1, pool=pool)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("world", ["poi-2", "medical", "retail"])
def test_the_oracle_solves_a_rewrite_in_every_pool_and_world(pool: str, world: str) -> None:
    for kind in list(find_world(world).kinds)[:3]:
        scene = compose(clean(pool, kind, world), read_stack(REWRITE))
        assert scene.rehearsal[-1].kind == clean(pool, kind, world).rehearsal[-1].kind
        assert not {t.name for t in scene.tools} & {t.name for t in clean(pool, kind, world).tools}


@pytest.mark.parametrize("pool", POOLS)
def test_a_description_by_data_keeps_no_sentence_and_tells_tools_apart(pool: str) -> None:
    before = {tool.origin: tool.description for tool in clean(pool).tools}
    after = compose(clean(pool), read_stack("described_by_data:3")).tools
    assert len({tool.description for tool in after}) == len(after)
    for tool in after:
        old = re.findall(r"\w+", before[tool.origin].lower())
        runs = {tuple(old[n : n + 4]) for n in range(len(old) - 3)}
        new = re.findall(r"\w+", tool.description.lower())
        assert not runs & {tuple(new[n : n + 4]) for n in range(len(new) - 3)}, tool.description


@pytest.mark.parametrize(("severity", "more"), [(1, 4), (2, 8), (3, 12)])
def test_other_tools_stand_among_ours_in_another_order(severity: int, more: int) -> None:
    scene = compose(clean(), read_stack(f"other_tools:{severity}"))
    ours = [tool.name for tool in clean().tools]
    shown = [tool.name for tool in scene.tools]
    assert len(shown) == len(ours) + more
    assert [name for name in shown if name in ours] != ours
    live, lent = scene.open(), next(tool for tool in scene.tools if not tool.origin)
    live.tools()
    assert live.call(lent.name, {param.name: "a" for param in lent.params}).ok


def test_a_list_is_taken_apart_into_its_order_and_whose_tools_stand_in_it() -> None:
    def shown(stack: str) -> list[str]:
        return [tool.name for tool in compose(clean(), read_stack(stack)).tools]

    ours, count = [tool.name for tool in clean().tools], len(clean().tools)
    assert shown("shuffled_list:2") != ours
    assert sorted(shown("shuffled_list:2")) == sorted(ours)
    assert shown("other_tools_last:2")[:count] == ours
    assert len(shown("other_tools_last:2")) == len(shown("other_tools:2"))
    taught, asked = (set(shown(name)) - set(ours) for name in ("lent_tools:3", "other_tools:3"))
    assert not taught & asked


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("world", ["poi", "poi-2", "medical", "retail"])
def test_parameters_keep_neither_name_nor_text(pool: str, world: str) -> None:
    def known(scene: Scene) -> tuple[set[str], set[str]]:
        params = [param for tool in scene.tools for param in tool.params]
        return {p.name for p in params}, {str(p.schema["description"]) for p in params}

    for kind in find_world(world).kinds:
        before = clean(pool, kind, world)
        scene = compose(before, read_stack("opaque_parameters:3+retold_parameters:3"))
        for old, new in zip(known(before), known(scene), strict=True):
            assert not old & new
        assert len(known(scene)[0]) == len(known(before)[0])
        same = compose(before, read_stack("retold_parameters:3"))
        assert known(same)[0] == known(before)[0]


@pytest.mark.parametrize("name", ["opaque_parameters", "retold_parameters"])
@pytest.mark.parametrize("world", ["poi", "medical", "retail"])
def test_what_another_change_says_of_a_parameter_stays(name: str, world: str) -> None:
    said = ("required_parameter:3", "enum_change:3", "type_change:3", "merged_tools:2")
    for other in said:
        for kind in find_world(world).kinds:
            before = clean(kind=kind, world=world)
            try:
                scene = compose(before, read_stack(f"{name}:3+{other}"))
            except NotApplicable:
                continue
            assert scene.rehearsal[-1].kind == before.rehearsal[-1].kind, (other, kind)


def test_a_description_by_data_tells_of_parameters_as_they_are_told_now() -> None:
    stack = read_stack("retold_parameters:3+described_by_data:3")
    for old, new in zip(clean().tools, compose(clean(), stack).tools, strict=True):
        text = new.description.lower()
        for was, now in zip(old.params, new.params, strict=True):
            was_said, now_said = (str(p.schema["description"])[:-1].lower() for p in (was, now))
            assert now_said in text
            assert was_said not in text


def test_schema_noise_is_its_two_parts() -> None:
    whole = compose(clean(), read_stack("schema_noise:2")).tools
    parts = compose(clean(), read_stack("surplus_parameter:2+padded_description:2")).tools
    for one, other in zip(whole, parts, strict=True):
        assert [p.name for p in one.params] == [p.name for p in other.params]
        assert len(one.description.split(". ")) == len(other.description.split(". "))


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_so_many_optional_parameters_are_added_to_needed_tools(severity: int) -> None:
    scene = compose(clean(), read_stack(f"surplus_parameter:{severity}"))
    needed = {step.name for step in scene.calls}
    for tool in scene.tools:
        added = [p for p in tool.params if not p.required]
        assert len(added) == (severity if tool.name in needed else 0)


def test_training_meets_new_descriptions_each_time() -> None:
    told = set()
    for draw in range(20):
        stack = read_stack("retold_description:3+varied_options:2")
        told |= {tool.description for tool in compose(clean("train"), stack, str(draw)).tools}
    assert len(told) > 150


def test_no_suite_draws_them() -> None:
    for name in OURS:
        assert find_shift(name).tier == "none"
        for chosen in ("all", *TIERS):
            assert name not in {one.shift for arm in read_arms(chosen) for one in arm.shifts}


def test_other_processes_find_them_by_entry_points() -> None:
    told = tomllib.loads((LAB / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    for group, names in (("toolshift.shifts", OURS), ("toolshift.worlds", ("poi-2",))):
        for name in names:
            module, _, attribute = told[group][name].partition(":")
            assert hasattr(importlib.import_module(module), attribute)
