"""Checks worlds and shifts against the rules that make them an instrument (`RULES`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations, product
from typing import Any, Literal

import msgspec

from toolshift.agents.planted import planted
from toolshift.core import seed as seeds
from toolshift.core.errors import ShiftFault, UsageError, defined_at, described, placed
from toolshift.core.importing import import_attribute, in_module
from toolshift.core.message import Reply, Turn
from toolshift.core.names import letters, unknown
from toolshift.core.plugins import undecorated
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable, Shift, declared
from toolshift.core.step import Step
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.core.world import POOLS, World
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.episode.grading_rules import effects_of
from toolshift.episode.oracle import OracleAgent
from toolshift.runs.check_shift import misnamed, misread
from toolshift.runs.check_wording import wording_auc
from toolshift.runs.check_world import world_findings
from toolshift.shifts.registry import apply, check_name, find_shift, shifts
from toolshift.worlds.names import BFCL, TAU2, is_file
from toolshift.worlds.registry import OURS, WORLDS, as_world, find_world, world_names

State = Literal["pass", "fail", "not tested"]
MAX_AUC = 0.6
RULES = (
    "the code of a world does what its tools declare, and its name is free",
    "the same seed gives the same scenes in a second process",
    "answers cannot be guessed: none stands in a prompt, and repeating what was read fails",
    "doing nothing and refusing at once fail",
    "the reference agent solves, or rightly refuses, every scene by what is shown",
    "a shift changes something, keeps what it declares, and its severity rises; a world is large",
    "the pools train, dev and test share no phrasing, no entity and no invented tool name",
    f"wording does not reveal early which scenes are unsolvable (AUC below {MAX_AUC})",
)
"""What is checked; the number of a rule is its place."""
DRAWS = 60
"""Draws of each kind whose names are compared between pools."""
PLACE = re.compile(r"\([^()]+, line \d+\)")
"""A file and line as `placed` adds them."""
MIN_TOOLS, MIN_KINDS, MIN_PHRASINGS = 8, 8, 12


class Verdict(msgspec.Struct, frozen=True):
    """The result of one rule for one world or shift."""

    subject: str
    rule: int
    state: State
    detail: str


@dataclass(frozen=True)
class Bench:
    """What is checked: worlds and shifts, on tasks of these worlds."""

    worlds: tuple[World, ...]
    shifts: tuple[str, ...]
    tasks: int = 0
    seed: int = 0
    size: int = 200

    def clean(self, world: World, pool: str = "dev") -> Iterator[Scene]:
        """The clean scenes: `tasks` of them, or one of each kind; every task that is given."""
        kinds = list(world.kinds)
        every = len(kinds) * max(world.counts.values(), default=1)
        for number in range(self.tasks or every):
            index, kind = divmod(number, len(kinds))
            if world.counts and index >= world.counts[kinds[kind]]:
                continue
            yield _clean(world, kinds[kind], index, self.seed, pool, self.size)

    def shifted(self, name: str, severity: int, pool: str = "dev") -> Iterator[Scene]:
        """The scenes of all worlds under a shift, where it is applicable."""
        for world in self.worlds:
            for scene in self.clean(world, pool):
                try:
                    yield apply(scene, name, severity)
                except NotApplicable:
                    continue


@lru_cache(maxsize=4096)
def _clean(world: World, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
    return make_scene(world, kind, index, seed, pool, size)


def check_world(bench: Bench, world: World) -> Iterator[Verdict]:
    """Checks one world."""
    name = world.name
    scenes = list(bench.clean(world))
    if world.counts:  # tasks that are given: what they are like is not ours to judge
        yield from of_given(name, scenes)
        return
    verdicts = list(_check_scenes(name, scenes))
    yield from verdicts
    if verdicts[0].state == "pass":
        findings = [*_name_taken(world), *world_findings(world, scenes)]
        yield from (Verdict(name, 0, "fail", finding) for finding in findings)
        if not findings:
            yield Verdict(name, 0, "pass", "")
    yield _size(world)
    if verdicts[0].state == "pass":
        yield _verdict(name, 6, _shared_by_pools(bench, world))


def _size(world: World) -> Verdict:
    """Whether a world is as large as the shipped ones; a smaller one is valid, but tells less."""
    lacking = [
        *([f"{len(world.tools)} tools"] if len(world.tools) < MIN_TOOLS else []),
        *([f"{len(world.kinds)} task kinds"] if len(world.kinds) < MIN_KINDS else []),
        *([] if {t.effect for t in world.tools} >= {"read", "write"} else ["no reads or writes"]),
    ]
    few = min(
        len(set(request.phrasings[pool]))
        for kind in world.kinds.values()
        for request in kind.requests
        for pool in POOLS
    )
    lacking += [f"a request with {few} phrasings in a pool"] if few < MIN_PHRASINGS else []
    if not lacking:
        return Verdict(world.name, 5, "pass", "")
    message = (
        f"small: it has {', '.join(lacking)}; a world that ships has at least {MIN_TOOLS} tools, "
        f"reads and writes among them, {MIN_KINDS} task kinds, and {MIN_PHRASINGS} phrasings of a "
        "request in each pool"
    )
    state: State = "fail" if world.name in OURS else "not tested"
    return Verdict(world.name, 5, state, placed(message, defined_at(type(world))))


def _name_taken(world: World) -> list[str]:
    """Whether another world has this name, so that runs would find that one."""
    if world.name not in world_names() or WORLDS.find(world.name) is world:
        return []
    other = type(WORLDS.find(world.name))
    mine = type(world)
    if (other.__module__, other.__qualname__) == (mine.__module__, mine.__qualname__):
        return []
    message = (
        f"the name {world.name!r} is that of a world of {other.__module__} already; choose another"
    )
    return [placed(message, defined_at(mine))]


def check_shift(bench: Bench, name: str) -> Iterator[Verdict]:
    """Checks one shift at all severities."""
    shift = find_shift(name)
    place = defined_at(shift.rule)
    by_severity = {level: list(bench.shifted(name, level)) for level in shift.severities}
    scenes = [scene for level in by_severity.values() for scene in level]
    if not scenes:
        yield _verdict(name, 5, f"not applicable to any task{_reason(bench, name)}", place)
        return
    verdicts = list(_check_scenes(name, scenes))
    yield from verdicts
    if verdicts[0].state == "fail":
        return
    yield _verdict(name, 5, _changes_nothing(scenes) or _breaks_claim(shift, scenes), place)
    yield _severity(shift, by_severity)
    yield _verdict(name, 6, _shared_names(bench, name), place)
    if shift.preserves == "nothing":
        yield _wording(bench, name)


def _reason(bench: Bench, name: str) -> str:
    """Why a shift is not applicable to the first task."""
    for world in bench.worlds:
        for scene in bench.clean(world):
            try:
                apply(scene, name, find_shift(name).severities[-1])
            except NotApplicable as reason:
                return f": {reason}" if str(reason) else "; raise NotApplicable with the reason"
    return ""


def fingerprint(bench: Bench) -> str:
    """A hash of every scene and of the oracle's steps in it."""
    digest = blake2b(digest_size=16)
    for scene in _all_scenes(bench):
        digest.update(scene.task.id.encode())
        digest.update(JSON.encode([t.name + t.description for t in scene.tools]))
        digest.update(JSON.encode(messages(scene, _rehearsal(scene))))
    return digest.hexdigest()


def _rehearsal(scene: Scene) -> tuple[Step, ...]:
    """The oracle's steps; none where it fails, which rule 4 says."""
    try:
        return scene.rehearsal
    except (UsageError, ShiftFault):
        raise
    except Exception:
        return ()


def check_determinism(names: Sequence[str], bench: Bench) -> Verdict:
    """Makes the same scenes in two further processes with different hash seeds."""
    hashes = set()
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [
                sys.executable,
                "-m",
                "toolshift.runs.check",
                str(bench.tasks),
                str(bench.seed),
                *names,
            ],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            last = ran.stderr.strip().splitlines()[-1:] or ["no message"]
            return Verdict("all", 1, "fail", f"a second process failed: {last[0]}")
        hashes.add(ran.stdout.strip())
    return _verdict("all", 1, _DIFFERENT if len(hashes) > 1 else "")


_DIFFERENT = (
    "two processes made different scenes: draw by the `rng` or the `seed` that is given, and take "
    "no clock, no hash() and no order of a set"
)


# -- rules on scenes ---------------------------------------------------------------------------


class _Inert:
    """Ends every task at once with an empty answer."""

    name = "inert"

    def reply(self, turn: Turn) -> Reply:
        return Reply(text="Done.")


def _check_scenes(name: str, scenes: list[Scene]) -> Iterator[Verdict]:
    for scene in scenes:
        if unsolved := _misnamed(scene) or oracle_fails(scene) or _unprovoked(scene):
            yield _verdict(name, 4, unsolved, _place(scene))
            return
    yield _verdict(name, 4, "")
    solvable = [scene for scene in scenes if scene.solvable]
    yield _first_wrong(name, 2, solvable, _guessed)
    yield _first_wrong(name, 3, scenes, _passed_idly)


def of_given(name: str, scenes: list[Scene]) -> Iterator[Verdict]:
    """Checks scenes of given tasks, whose answers are what they are: one may be guessable."""
    yield from (verdict for verdict in _check_scenes(name, scenes) if verdict.rule != 2)


def _first_wrong(
    name: str, rule: int, scenes: list[Scene], wrong: Callable[[Scene], str]
) -> Verdict:
    """What is wrong in the first of the scenes that break a rule, and how many do."""
    broken = [(scene, reason) for scene in scenes if (reason := wrong(scene))]
    if not broken:
        return _verdict(name, rule, "")
    (scene, reason), *_ = broken
    where = _where([scene for scene, _ in broken])
    return _verdict(name, rule, f"{where}: {reason}", _place(scene))


def _guessed(scene: Scene) -> str:
    """How the answer can be given without finding it out."""
    if answer := _in_first_prompt(scene):
        return f"the answer {answer!r} is guessable: it stands in the first prompt"
    if _passes(scene, "parrots"):
        answers = " and ".join(repr(ask.expected) for ask in scene.asks if ask.expected)
        return (
            f"the answer {answers} is guessable: an agent that repeats the last code that it read "
            "passes; let a second code stand behind the answer in its result"
        )
    return ""


def _passed_idly(scene: Scene) -> str:
    """How an agent passes that does nothing."""
    if _inert_passes(scene):
        return "an agent passes that does nothing and says 'Done.'"
    if _passes(scene, "always_refuses"):
        return "an agent passes that refuses at once"
    return ""


def _place(scene: Scene) -> str:
    """The file and line of what made a scene: its last shift, or the kind of its task."""
    if scene.shifts:
        return defined_at(find_shift(scene.shifts[-1].shift).rule)
    if scene.world.counts:
        return ""  # a task that is given stands in the user's file, which its name leads to
    return defined_at(scene.world.kinds[scene.task.kind].requests[-1].solve)


def _misnamed(scene: Scene) -> str:
    """What is wrong with the name of a shown tool, and where; "" for nothing."""
    wrong = misnamed(scene)
    return f"in {_where([scene])} {wrong}" if wrong else ""


def _unprovoked(scene: Scene) -> str:
    """Where a layer answers the oracle with a failure that counts as the agent's; "" if nowhere."""
    if not scene.layers or not scene.solvable:
        return ""
    for step in scene.rehearsal:
        if step.kind == "call" and not (step.ok or step.provoked or step.true):
            return (
                f"in {_where([scene])} the oracle's call of {step.name} fails with the code "
                f"{step.error!r}, as if the agent had made a mistake: its Result has to say "
                "provoked=True"
            )
    return ""


def oracle_fails(scene: Scene) -> str:
    """Where and how the oracle fails in a scene; "" if it solves or rightly refuses it."""
    try:
        episode = Episode(scene)  # which rehearses a scene whose reference steps are not known yet
        OracleAgent().play(episode)
    except (UsageError, ShiftFault):
        raise
    except Exception as fault:
        why = misread(scene) or described(fault)
        return f"the oracle fails in {_where([scene])}: {why}"
    if isinstance(episode.fault, ShiftFault):
        raise episode.fault
    verdict = grade(episode)
    if verdict.passed and (verdict.solvable or verdict.right_reason):
        return ""
    failed = next((step for step in reversed(episode.steps) if step.error), None)
    last = f" ({failed.name} came back as {failed.text[:120]})" if failed else ""
    why = misread(scene) or _surplus_write(scene, episode.steps)
    why = why or (verdict.cause.replace("_", " ") or episode.end) + last
    return f"the oracle fails in {_where([scene])}: {why}"


def _surplus_write(scene: Scene, steps: Sequence[Step]) -> str:
    """A write of the oracle that the outcome does not allow; "" for none."""
    allowed = [tuple(effect) for effect in scene.outcome.effects + scene.outcome.forgiven]
    for effect in map(tuple, effects_of(steps)):
        if effect not in allowed:
            return (
                f"it writes {' '.join(map(str, effect))!r}, which is neither among the `effects` "
                "of the outcome nor `forgiven`"
            )
    return ""


def _in_first_prompt(scene: Scene) -> str:
    """An answer that is a code and stands in the first prompt; "" where there is none."""
    first = as_json(list(messages(scene, ())))
    codes = (ask.expected for ask in scene.asks if ask.expected and "-" in ask.expected)
    return next((code for code in codes if code in first), "")


def _passes(scene: Scene, agent: str) -> bool:
    episode = Episode(scene)
    planted(agent).play(episode)
    return grade(episode).passed


def _inert_passes(scene: Scene) -> bool:
    episode = Episode(scene)
    converse(_Inert(), episode)
    return grade(episode).passed


def _changes_nothing(scenes: list[Scene]) -> str:
    same = [scene for scene in scenes if _text(scene) == _text(scene.clean)]
    return f"nothing changes in {_where(same)}" if same else ""


def _breaks_claim(shift: Shift, scenes: list[Scene]) -> str:
    for scene in scenes:
        kept = [ask.expected for ask in scene.asks] == [a.expected for a in scene.clean.asks]
        effects = scene.outcome.effects == scene.clean.outcome.effects
        if shift.preserves == "end_state" and not (kept and effects and scene.solvable):
            return f"claims to keep the end state, and does not in {_where([scene])}"
        if shift.preserves == "solvability" and not scene.solvable:
            return f"claims to stay solvable, and does not in {_where([scene])}"
        if shift.preserves == "nothing" and scene.solvable:
            return f"claims to be unsolvable, and is not in {_where([scene])}"
    return ""


def _severity(shift: Shift, by_severity: dict[Any, list[Scene]]) -> Verdict:
    """Compares the three severities on the tasks to which all are applicable."""
    if len(by_severity) == 1:
        return Verdict(shift.name, 5, "pass", "one level")
    kept = [{s.task.lineage: s for s in scenes} for scenes in by_severity.values()]
    shared = set.intersection(*map(set, kept))
    if not shared:
        return Verdict(shift.name, 5, "not tested", "no task with all three severities")
    sizes = [sum(distance(each[task]) for task in shared) / len(shared) for each in kept]
    message = "severity " + " ".join(f"{size:.3f}" for size in sizes)
    flat = shift.tier == "none"
    rises = sizes[0] <= sizes[1] <= sizes[2] and sizes[0] < sizes[2]
    state: State = "pass" if rises else "not tested" if flat else "fail"
    if not rises and not flat:
        message = placed(f"{message} does not rise", defined_at(shift.rule))
    return Verdict(shift.name, 5, state, message)


def distance(scene: Scene) -> float:
    """How far a scene is from its clean one, in [0, 1].

    One minus the Jaccard index of the three-character pieces of all that the oracle meets: the
    request, the tools, the results; plus what its conversation is longer by, in turns.
    """
    before, after = _pieces(_text(scene.clean)), _pieces(_text(scene))
    jaccard = len(before & after) / len(before | after)
    longer = max(0, len(scene.rehearsal) - len(scene.clean.rehearsal))
    return 1 - jaccard + longer / 10


def _pieces(text: str) -> set[str]:
    return {text[n : n + 3] for n in range(len(text) - 2)}


@lru_cache(maxsize=4096)
def _text(scene: Scene) -> str:
    tools = [[t.name, t.description, [(p.name, p.schema) for p in t.params]] for t in scene.tools]
    return as_json([tools, messages(scene, scene.rehearsal)])


# -- pools and wording -------------------------------------------------------------------------


def _shared_by_pools(bench: Bench, world: World) -> str:
    """A phrasing or an entity that two pools share, and where it stands in the world."""
    for kind in world.kinds.values():
        for number, request in enumerate(kind.requests, 1):
            phrasing, pools = _shared({pool: request.phrasings[pool] for pool in POOLS})
            if phrasing:
                message = (
                    f"task kind {kind.name}, request {number}: {pools} share the phrasing "
                    f"{phrasing!r}"
                )
                return placed(message, defined_at(type(world)))
    choices = {value for t in world.tools for p in t.params for value in p.schema.get("enum", ())}
    stated = {pool: _stated(bench, world, pool) for pool in POOLS}
    entity, pools = _shared({pool: stated[pool].keys() - choices for pool in POOLS})
    if not entity:
        return ""
    kind_name, key = next(found[entity] for found in stated.values() if entity in found)
    message = f"task kind {kind_name}, key {key!r}: {pools} share the entity {entity!r}"
    return placed(message, defined_at(type(world).build))


def _stated(bench: Bench, world: World, pool: str) -> dict[str, tuple[str, str]]:
    """Names that users state, each with the task kind and the key of the goal where it stands.

    A name is text that begins with a capital; numbers and times are none.
    """
    names: dict[str, tuple[str, str]] = {}
    db = world.truth(bench.seed, bench.size, pool).db
    for kind, number in product(world.kinds.values(), range(DRAWS)):
        goal = kind.draw(db, seeds.rng(bench.seed, world.name, kind.name, pool, number, "check"))
        for key, value in (goal or {}).items():
            if isinstance(value, str) and value[:1].isupper():
                names.setdefault(value, (kind.name, key))
    return names


def _shared_names(bench: Bench, name: str) -> str:
    """Invented tool names that two pools share; names derived from true ones do not count."""
    invented = {pool: set(_invented(bench.shifted(name, 2, pool))) for pool in POOLS}
    tool, pools = _shared(invented)
    advice = "let `scene.task.pool` decide which names are drawn"
    return f"{pools} share the tool name {tool!r}; {advice}" if tool else ""


def _shared(pools: Mapping[str, Collection[str]]) -> tuple[str, str]:
    """The first text that two pools share, and which pools; two empty texts where none is."""
    for (one, texts), (other, others) in combinations(pools.items(), 2):
        if both := set(texts) & set(others):
            return min(both), f"the pools {one} and {other}"
    return "", ""


def _invented(scenes: Iterable[Scene]) -> Iterator[str]:
    """The tool names that are no form of a true one, such as `getHours` of `get_hours`."""
    for scene in scenes:
        true = {tool.name for tool in (*scene.clean.tools, *scene.world.tools)}
        plain = set(map(letters, true))
        for tool in scene.tools:
            if tool.name not in true and not any(old in letters(tool.name) for old in plain):
                yield tool.name


def _wording(bench: Bench, name: str) -> Verdict:
    """Whether the wording gives away which scenes are unsolvable."""
    try:
        pair = find_shift(f"{name}_lookalike")
    except UsageError:
        return Verdict(name, 7, "not tested", f"there is no {name}_lookalike to compare with")
    texts: list[str] = []
    labels: list[int] = []
    groups: list[str] = []
    for severity in pair.severities:
        unsolvable = {s.task.lineage: s for s in bench.shifted(name, severity)}
        alike = {s.task.lineage: s for s in bench.shifted(f"{name}_lookalike", severity)}
        for task in unsolvable.keys() & alike.keys():
            until = _evidence_at(unsolvable[task])
            for label, scene in ((1, unsolvable[task]), (0, alike[task])):
                texts.append(_before(scene, until))
                labels.append(label)
                groups.append(task)
    auc, why = wording_auc(texts, labels, groups)
    if auc is None:
        return Verdict(name, 7, "not tested", why)
    state: State = "pass" if auc < MAX_AUC else "fail"
    return Verdict(name, 7, state, f"AUC {auc:.2f} of words before the evidence")


def _evidence_at(scene: Scene) -> int:
    reason = scene.outcome.refusal
    steps = scene.rehearsal
    return next((n for n, step in enumerate(steps) if step.evidence == reason), len(steps) - 1)


def _before(scene: Scene, step: int) -> str:
    tools = " ".join(f"{tool.name} {tool.description}" for tool in scene.tools)
    texts = [str(m.get("content", "")) for m in messages(scene, scene.rehearsal[:step])]
    return "\n".join([tools, *texts])


# -- small parts -------------------------------------------------------------------------------


def _all_scenes(bench: Bench) -> Iterator[Scene]:
    for world in bench.worlds:
        yield from bench.clean(world)
    for name in bench.shifts:
        for severity in find_shift(name).severities:
            yield from bench.shifted(name, severity)


def _where(scenes: Sequence[Scene]) -> str:
    """The first of some scenes, by world, kind, task and shifts, and how many more there are."""
    first = scenes[0]
    stack = "+".join(f"{a.shift}:{a.severity}" for a in first.shifts) or "clean"
    task = first.task
    given = first.world.task_ids.get(task.kind, [])
    own = f" ({given[task.index]!r})" if task.index < len(given) else ""
    more = f" and {len(scenes) - 1} more" if len(scenes) > 1 else ""
    return f"{task.world}/{task.kind}/{task.index}{own} {stack}{more}"


def _verdict(subject: str, rule: int, wrong: str, place: str = "") -> Verdict:
    """Failed where something is wrong; its place is added where the text has none yet."""
    detail = wrong if PLACE.search(wrong) else placed(wrong, place)
    return Verdict(subject, rule, "fail" if wrong else "pass", detail if wrong else "")


def worlds_of(names: Sequence[str]) -> list[World]:
    """The worlds among some names."""
    loaded = [subject_of(name) for name in names]
    return [thing for thing in loaded if isinstance(thing, World)]


def subject_of(name: str) -> World | Shift:
    """The world or shift of a name, a file, or `module:attribute`."""
    module, colon, attribute = name.partition(":")
    if is_file(name) or name.startswith((BFCL, TAU2)):
        return find_world(name)
    if not colon:
        if name in world_names():
            return find_world(name)
        if name in shifts():
            return find_shift(name)
        written = in_module(name, "NAME")
        if written:
            raise UsageError(
                f"plugin {name!r}: a module and the world or shift in it are written as {written}"
            )
        known = [*world_names(), *shifts()]
        raise UsageError(undecorated(name) or unknown("world or shift", name, known))
    target = import_attribute(module, attribute, "plugin")
    if isinstance(target, World) or (isinstance(target, type) and issubclass(target, World)):
        return as_world(target, f"world {name}")
    if isinstance(target, Shift):
        return target
    by_rule = [shift for shift in declared.values() if shift.rule is target]
    if not by_rule:
        kind = f"{type(target).__name__}, " if not callable(target) else ""
        message = f"plugin {name} is {kind}neither a World nor a function marked with @shift(...)"
        raise UsageError(placed(message, defined_at(target) if callable(target) else ""))
    check_name(by_rule[0])
    return by_rule[0]


def bench_of(names: Sequence[str], tasks: int, seed: int) -> Bench:
    """What to check: the worlds and shifts named, or all of ours; shifts need worlds."""
    if tasks < 0:
        raise UsageError(f"--tasks must be 0 (two of each kind) or more, not {tasks}")
    found_worlds, found_shifts = worlds_of(names), _shifts_of(names)
    if not names:
        found_shifts = [name for name in shifts() if shifts()[name].tier != "none"]
    worlds = found_worlds or [find_world(name) for name in world_names()]
    return Bench(tuple(worlds), tuple(found_shifts), tasks, seed)


def _shifts_of(names: Sequence[str]) -> list[str]:
    loaded = [subject_of(name) for name in names]
    return [thing.name for thing in loaded if isinstance(thing, Shift)]


if __name__ == "__main__":
    print(fingerprint(bench_of(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))))
