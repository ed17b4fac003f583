"""Every shift of perception: the oracle still solves, it changes something, and by severity."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenes import Share, level, proven, some_of
from toolshift.core.scene import Scene, kind_of
from toolshift.core.shift import SEVERITIES, NotApplicable
from toolshift.core.tool import JSON, as_openai
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts import wording
from toolshift.shifts.registry import apply, find_shift, shifts
from toolshift.shifts.surface import Surface
from toolshift.worlds.registry import find_world

ACTION = (
    "tool_name_noise",
    "semantic_rename",
    "identity_erasure",
    "semantic_trap",
    "parameter_rename",
    "schema_noise",
    "description_paraphrase",
    "description_removal",
    "distractor_tools",
)
QUERY = (
    "query_paraphrase",
    "query_typos",
    "query_ambiguity",
    "query_underspecification",
    "query_redundancy",
)
ALL = (*ACTION, *QUERY, "placebo")
WORLDS = ("poi", "medical", "retail")
KINDS = [(name, kind) for name in WORLDS for kind in find_world(name).kinds]
SOME = [kind for place, kind in enumerate(KINDS) if kind[0] == "poi" or place % 4 == 0]
SPOKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@cache
def clean(world: str, kind: str, pool: str = "dev", index: int = 0) -> Scene:
    return make_scene(find_world(world), kind, index, pool=pool)


def tried(scene: Scene, *stack: tuple[str, int]) -> Scene | None:
    """The scene after a stack of shifts; None where one is not applicable."""
    try:
        for name, severity in stack:
            scene = apply(scene, name, level(name, severity))
    except NotApplicable:
        return None
    return scene


def shown(scene: Scene) -> list[str]:
    """The words of everything that the oracle is shown, and of what it says."""
    tools = [as_openai(tool) for tool in scene.tools]
    text = JSON.encode([tools, messages(scene, scene.rehearsal)]).decode()
    return re.findall(r"\w+", text)


@cache
def shown_clean(world: str, kind: str, pool: str) -> list[str]:
    return shown(clean(world, kind, pool))


def changed_words(scene: Scene) -> int:
    ours, clean_ones = Counter(shown(scene)), Counter(shown(scene.clean))
    return ((ours - clean_ones) + (clean_ones - ours)).total()


def check_solved(scene: Scene) -> None:
    """The oracle gives the answers of the clean scene with the same effects."""
    episode = Episode(scene)
    OracleAgent().play(episode)
    answers = [step.said for step in episode.steps if step.kind == "answer"]
    assert answers == [ask.expected for ask in scene.clean.asks]
    assert set(episode.session.upstream.state.effects) == set(scene.clean.outcome.effects)
    names = [tool.name for tool in scene.tools]
    assert len(set(names)) == len(names)
    assert all(SPOKEN.fullmatch(name) for name in names)
    assert all(tool.channels for tool in scene.tools)
    for tool in scene.tools:
        params = [param.name for param in tool.params]
        assert len(set(params)) == len(params)


@pytest.mark.parametrize(("world", "kind"), KINDS)
@pytest.mark.parametrize("name", ALL)
def test_the_oracle_solves_what_each_shift_makes(name, world, kind, share: Share):
    for pool, severity in share(product(POOLS, find_shift(name).severities), 3, name, world, kind):
        scene = tried(clean(world, kind, pool), (name, severity))
        if scene is None:
            continue
        check_solved(scene)
        now = shown(scene)
        assert now != shown_clean(world, kind, pool), "a shift that changes nothing"
        again = apply(clean(world, kind, pool), name, severity)
        assert shown(again) == now


@pytest.mark.parametrize("first", ALL)
@pytest.mark.parametrize("second", ALL)
def test_the_oracle_solves_what_pairs_make(first, second, share: Share):
    applied = 0
    enough = len(share(SOME, 6))
    for place, (world, kind) in some_of(enumerate(SOME), len(SOME), first, second):
        pool = POOLS[place % 3]
        severity, other = SEVERITIES[place % 3], SEVERITIES[place // 3 % 3]
        scene = tried(clean(world, kind, pool, 1), (first, severity), (second, other))
        if scene is not None:
            applied += 1
            check_solved(scene)
        if applied == enough:
            break
    if first != second and not {first, second} <= {*ACTION, "placebo"}:
        return
    # These cannot be stacked: what one needs, the other has taken, or nothing is left to rename.
    closed = {"identity_erasure", "semantic_trap", "description_removal", "semantic_rename"}
    assert applied or {first, second} <= closed or first == second


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(POOLS),
    st.integers(0, 9),
    st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from(SEVERITIES)), max_size=5),
)
def test_the_oracle_solves_any_stack(kind, pool, index, stack):
    scene = tried(clean(*kind, pool, index), *stack)
    if scene is not None:
        check_solved(scene)


@pytest.mark.parametrize("name", [n for n in ALL if len(find_shift(n).severities) > 1])
@pytest.mark.parametrize("world", WORLDS)
def test_severity_rises_in_shown_words(name, world, share: Share):
    counts = []
    # Few tasks have three values that only the user could give.
    rare = name in ("query_ambiguity", "query_underspecification")
    draws = list(product(("train", "dev"), find_world(world).kinds, (0, 1)))
    for pool, kind, index in draws if rare else share(draws, 16, name, world):
        base = clean(world, kind, pool, index)
        scenes = [tried(base, (name, severity)) for severity in SEVERITIES]
        if None not in scenes:
            counts.append([changed_words(scene) for scene in scenes])
    assert len(counts) >= (2 if rare else 14)
    low, middle, high = (sum(column) / len(counts) for column in zip(*counts, strict=True))
    assert low < middle < high, (low, middle, high)


@pytest.mark.parametrize("name", ACTION)
def test_the_task_is_touched(name):
    for world, kind in KINDS:
        scene = tried(clean(world, kind), (name, 1))
        if scene is None or name == "distractor_tools":
            continue
        before = {JSON.encode(as_openai(tool)) for tool in scene.clean.tools}
        fresh = {t.name for t in scene.tools if JSON.encode(as_openai(t)) not in before}
        assert fresh & {step.name for step in scene.calls}


# -- pools share no surface forms --------------------------------------------------------------


def by_pool(table: str) -> list[set[str]]:
    return [{str(form) for form in wording.TABLES[table][pool]} for pool in POOLS]


def apart(pools: list[set[str]]) -> bool:
    return all(pools) and sum(map(len, pools)) == len(set.union(*pools))


def test_pools_share_no_synonyms():
    entries = [row for table in ("verbs", "nouns") for row in wording.TABLES[table].values()]
    assert all(len(row) == len(POOLS) for row in entries)
    assert apart([{row[place] for row in entries} for place in range(3)])


@pytest.mark.parametrize(
    "table",
    [
        "frames",
        "boilerplate",
        "vague",
        "vague_number",
        "missing",
        "missing_number",
        "chatter",
        "constraints",
        "twins",
    ],
)
def test_pools_share_no_sentences(table):
    assert apart(by_pool(table))


def test_pools_share_no_surplus_parameters_or_distractors():
    for table in ("surplus", "distractors"):
        assert apart([{row["name"] for row in wording.TABLES[table][pool]} for pool in POOLS])
    descriptions = wording.TABLES["distractors"]
    assert apart([{row["description"] for row in descriptions[pool]} for pool in POOLS])


@pytest.mark.parametrize(
    "name",
    [
        "tool_name_noise",
        "semantic_rename",
        "identity_erasure",
        "semantic_trap",
        "parameter_rename",
        "opaque_parameters",
    ],
)
def test_pools_share_no_names(name):
    """The names that a shift brings in one pool turn up in no other, over every world."""
    seen: list[set[str]] = []
    for pool in POOLS:
        found = set()
        for (world, kind), severity in product(KINDS, SEVERITIES):
            scene = tried(clean(world, kind, pool), (name, severity))
            if scene is not None:
                before = names_in(scene.clean)
                found |= names_in(scene) - before
        seen.append(found)
    assert apart(seen)


def names_in(scene: Scene) -> set[str]:
    params = {param.name for tool in scene.tools for param in tool.params}
    return params | {tool.name for tool in scene.tools}


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=12), st.randoms())
def test_pools_share_no_slips(word, rng):
    slips = [{wording.typo(word, pool, rng) for _ in range(40)} - {word} for pool in POOLS]
    assert not (slips[0] & slips[1])
    assert not (slips[1] & slips[2])
    assert not (slips[0] & slips[2])


# -- single shifts -----------------------------------------------------------------------------


def test_an_erased_name_leaves_only_the_description():
    scene = apply(clean("poi", "listing"), "identity_erasure", 3)
    assert all(tool.channels == {"description"} for tool in scene.tools)
    assert tried(scene, ("description_removal", 1)) is None


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("world", WORLDS)
def test_an_opaque_parameter_has_one_name_in_every_tool_and_says_what_it_said(world, pool):
    for kind in find_world(world).kinds:
        before = clean(world, kind, pool)
        after = apply(before, "opaque_parameters", 3)
        renamed: dict[str, set[str]] = {}
        for old, new in zip(before.tools, after.tools, strict=True):
            for was, now in zip(old.params, new.params, strict=True):
                renamed.setdefault(was.name, set()).add(now.name)
                assert (now.schema, now.required) == (was.schema, was.required)
        names = [name for each in renamed.values() for name in each]
        assert len(names) == len(set(names)) == len(renamed)
        assert not set(names) & set(renamed)


@pytest.mark.parametrize("pool", POOLS)
def test_a_trap_suggests_the_name_of_another_tool(pool):
    base = clean("poi", "listing", pool)
    scene = apply(base, "semantic_trap", 3)
    true = {tool.description: tool.name for tool in base.tools}
    sets = range(wording.NAME_SETS)
    suggested = {
        tool.name: {wording.reword_by_set(tool.name, pool, number) for number in sets}
        for tool in base.tools
    }
    for tool in scene.tools:
        own = true[tool.description]
        assert tool.name not in suggested[own]
        assert any(tool.name in names for other, names in suggested.items() if other != own)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", ["semantic_rename", "semantic_trap"])
def test_names_are_drawn_from_at_least_eight_sets(name, pool):
    for tool in (tool for world in WORLDS for tool in find_world(world).tools):
        sets = {wording.reword_by_set(tool.name, pool, n) for n in range(wording.NAME_SETS)}
        assert len(sets - {tool.name}) >= 8, tool.name
    seen = set()
    for index in range(40):
        scene = apply(clean("poi", "listing", pool, index), name, 3)
        seen.add(next(t.name for t in scene.tools if t.origin == ("get_details",)))
    assert len(seen) >= 8


def test_name_sets_of_pools_share_no_word():
    small = {"in", "out", "on", "up", "to", "of", "for", "back"}
    words = [set(), set(), set()]
    for table in ("verbs", "nouns"):
        for forms in wording.NAMES[table].values():
            for place, pool in enumerate(POOLS):
                words[place] |= {part for form in forms[pool] for part in form.split("_")} - small
                assert len(set(forms[pool])) == len(forms[pool]) >= 2
        for forms in wording.TABLES[table].values():
            for place, form in enumerate(forms):
                words[place].add(form)
    assert apart(words)
    assert not set.union(*words) & set(wording.UNRELATED)


@pytest.mark.parametrize("pool", POOLS)
def test_near_twins_have_the_schema_and_the_documentation_decides(pool):
    base = clean("poi", "listing", pool)
    like = {tool.name: tool for tool in base.tools}
    ends = [text.removeprefix("%s") for text in wording.TABLES["twins"][pool]]
    assert len(ends) >= 4
    for severity in SEVERITIES:
        scene = apply(base, "distractor_tools", severity)
        needed = {step.name for step in base.calls}
        extra = [tool for tool in scene.tools if tool.name not in like]
        assert len(extra) == {1: 1, 2: len(needed), 3: 2 * len(needed)}[severity]
        for tool in extra:
            (twin,) = [
                one
                for one in map(like.get, needed)
                if tool.description.startswith(one.description.removesuffix("."))
            ]
            assert tool.params == twin.params
            assert any(tool.description.endswith(end) for end in ends)
            assert twin.name.partition("_")[2] in tool.name


@pytest.mark.parametrize("pool", POOLS)
def test_distractors_answer_with_decoys(pool):
    base = clean("poi", "listing", pool)
    scene = apply(base, "distractor_tools", 3)
    true = {step.text for step in base.rehearsal}
    extra = [tool for tool in scene.tools if not tool.origin]
    assert len(extra) == 2 * len({step.name for step in base.calls})
    assert {tool.effect for tool in extra} == {"read"}
    session = scene.open()
    for tool in extra:
        result = session.call(tool.name, {"place_id": "PL-1"})
        assert result.ok
        assert JSON.encode(result.data).decode() not in true
        assert base.asks[0].expected not in JSON.encode(result.data).decode()
    assert session.true_calls == []


LONG = "_".join(["fetch", *["quite"] * 8, "details"])
"""A name as long as those of some foreign tools."""


@pytest.mark.parametrize("name", sorted(shifts()))
def test_names_stay_within_what_clients_accept(name):
    base = clean("poi", "visit", "dev", 1)
    names = {tool.name: f"{LONG}{place:02d}" for place, tool in enumerate(base.tools)}
    assert all(60 < len(long) <= 64 for long in names.values())
    long = base.with_(layers=(Surface(names=names),))
    for severity in find_shift(name).severities:
        scene = tried(long, (name, severity))
        if scene is None:
            continue
        ever = {tool.name for tool in scene.open().tools()}
        ever |= {step.name for step in scene.calls}
        assert all(len(each) <= 64 for each in ever), max(ever, key=len)
        assert len(ever) >= len(scene.tools)
        assert proven(scene)


def test_the_placebo_stays_with_training_phrasings():
    for world, kind in KINDS:
        scene = apply(clean(world, kind, "test"), "placebo", 2)
        for ask, request in zip(scene.asks, kind_of(scene).requests, strict=True):
            assert ask.text in {one.format(**ask.goal) for one in request.phrasings["train"]}


def test_the_placebo_documents_as_much_as_schema_noise():
    lengths = {"placebo": 0, "schema_noise": 0}
    for (world, kind), severity in product(KINDS, SEVERITIES):
        for name in lengths:
            scene = apply(clean(world, kind, "train"), name, severity)
            lengths[name] += sum(len(tool.description.split()) for tool in scene.tools)
    assert lengths["placebo"] == pytest.approx(lengths["schema_noise"], rel=0.03)


def test_what_is_declared():
    for name in ALL:
        found = find_shift(name)
        assert found.level == 1
        assert found.preserves == "end_state"
        assert found.imitates
        assert found.tier == ("none" if name == "placebo" else "perception")
