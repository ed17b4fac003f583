"""Checks worlds and shifts against the rules that make them an instrument (docs, rules 1 to 7).

1  same seed, same scenes, in a second process with another hash seed
2  answers cannot be guessed: they stand in no prompt, and parroting scores nothing
3  inaction and refusing at once never pass
4  the oracle solves, or rightly refuses, every scene through what is shown
5  a shift changes something, keeps what it claims to keep, and its severity rises
6  the pools train, dev and test share no phrasing, no entity and no invented name
7  wording does not tell solvable from unsolvable before the evidence (AUC below 0.6)
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from toolshift.agents.planted import planted
from toolshift.core.errors import UsageError
from toolshift.core.importing import import_attribute
from toolshift.core.message import Reply, Turn
from toolshift.core.names import unknown
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable, Shift
from toolshift.core.tool import JSON
from toolshift.core.world import POOLS, World
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.runs.check_wording import wording_auc
from toolshift.shifts.registry import apply, find_shift, shifts
from toolshift.worlds.names import is_file
from toolshift.worlds.registry import find_world, world_names

State = Literal["pass", "fail", "not tested"]
MAX_AUC = 0.6
MIN_TOOLS, MIN_KINDS, MIN_PHRASINGS = 8, 8, 12


class Verdict(msgspec.Struct, frozen=True):
    """What one rule says of one world or shift."""

    subject: str
    rule: int
    state: State
    detail: str


@dataclass(frozen=True)
class Bench:
    """What is checked: some worlds, some shifts, on tasks of these worlds."""

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
        """The scenes of all worlds under a shift, where it is applicable.

        Args:
            name: of the shift.
            severity: 1 to 3.
            pool: of the entities and wordings.

        Yields:
            Scenes, one after the other.
        """
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
        yield from (verdict for verdict in _check_scenes(name, scenes) if verdict.rule != 2)
        return
    yield from _check_scenes(name, scenes)
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
    yield _verdict(name, 5, "too little: " + ", ".join(lacking) if lacking else "")
    yield _verdict(name, 6, _shared_wording(bench, world))


def check_shift(bench: Bench, name: str) -> Iterator[Verdict]:
    """Checks one shift at all severities."""
    shift = find_shift(name)
    by_severity = {each: list(bench.shifted(name, each)) for each in shift.severities}
    scenes = [scene for each in by_severity.values() for scene in each]
    if not scenes:
        yield Verdict(name, 5, "fail", "not applicable to any task")
        return
    yield from _check_scenes(name, scenes)
    yield _verdict(name, 5, _changes_nothing(scenes) or _breaks_claim(shift, scenes))
    yield _severity(shift, by_severity)
    yield _verdict(name, 6, _shared_names(bench, name))
    if shift.preserves == "nothing":
        yield _wording(bench, name)


def fingerprint(bench: Bench) -> str:
    """A hash of every scene and of the oracle's way through it."""
    digest = blake2b(digest_size=16)
    for scene in _all_scenes(bench):
        digest.update(scene.task.id.encode())
        digest.update(JSON.encode([t.name + t.description for t in scene.tools]))
        digest.update(JSON.encode(messages(scene, scene.rehearsal)))
    return digest.hexdigest()


def check_determinism(names: Sequence[str], bench: Bench) -> Verdict:
    """Makes the same scenes in two further processes with different hash seeds."""
    found = set()
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
        found.add(ran.stdout.strip())
    return _verdict("all", 1, "two processes made different scenes" if len(found) > 1 else "")


# -- rules on scenes ---------------------------------------------------------------------------


class _Inert:
    """Answers at once with nothing."""

    name = "inert"

    def reply(self, turn: Turn) -> Reply:
        return Reply(text="Done.")


def _check_scenes(name: str, scenes: list[Scene]) -> Iterator[Verdict]:
    unsolved = next(filter(None, map(oracle_fails, scenes)), "")
    yield _verdict(name, 4, unsolved)
    if unsolved:
        return
    solvable = [scene for scene in scenes if scene.solvable]
    guessed = [scene for scene in solvable if _is_told(scene) or _passes(scene, "parrots")]
    yield _verdict(name, 2, f"guessable in {_where(guessed)}" if guessed else "")
    idle = [scene for scene in scenes if _inert_passes(scene) or _passes(scene, "always_refuses")]
    yield _verdict(name, 3, f"passed by doing nothing in {_where(idle)}" if idle else "")


def oracle_fails(scene: Scene) -> str:
    """Where and how the oracle fails in a scene; "" where it solves or rightly refuses it."""
    episode = Episode(scene)
    try:
        OracleAgent().play(episode)
    except Exception as fault:
        return f"the oracle fails in {_where([scene])}: {type(fault).__name__}: {fault}"
    verdict = grade(episode)
    right = verdict.passed and (verdict.solvable or verdict.right_reason)
    return "" if right else f"the oracle fails in {_where([scene])}: {verdict.cause or episode.end}"


def _is_told(scene: Scene) -> bool:
    """Whether an answer that is a code stands in the first prompt."""
    first = JSON.encode(list(messages(scene, ()))).decode()
    return any(ask.expected and "-" in ask.expected and ask.expected in first for ask in scene.asks)


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
    said = "severity " + " ".join(f"{size:.3f}" for size in sizes)
    flat = shift.tier == "none"
    rises = sizes[0] <= sizes[1] <= sizes[2] and sizes[0] < sizes[2]
    state: State = "pass" if rises else "not tested" if flat else "fail"
    return Verdict(shift.name, 5, state, said if rises or flat else f"{said} does not rise")


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
    return JSON.encode([tools, messages(scene, scene.rehearsal)]).decode()


# -- pools and wording -------------------------------------------------------------------------


def _shared_wording(bench: Bench, world: World) -> str:
    """Phrasings and entities that two pools share."""
    for kind in world.kinds.values():
        for request in kind.requests:
            both = _overlap([set(request.phrasings[pool]) for pool in POOLS])
            if both:
                return f"{kind.name}: two pools share the phrasing {min(both)!r}"
    choices = {value for t in world.tools for p in t.params for value in p.schema.get("enum", ())}
    numbered = [set(_stated(bench.clean(world, pool))) - choices for pool in POOLS]
    both = _overlap(numbered)
    return f"two pools share the entity {min(both)!r}" if both else ""


def _stated(scenes: Iterable[Scene]) -> Iterator[str]:
    """Names that users state: text of more than one word or with a capital, no numbers or times."""
    for scene in scenes:
        for ask in scene.asks:
            for value in ask.goal.values():
                if isinstance(value, str) and value[:1].isupper():
                    yield value


def _shared_names(bench: Bench, name: str) -> str:
    """Invented names of tools that two pools share; names made of true ones do not count."""
    pools = [set(_invented(bench.shifted(name, 2, pool))) for pool in POOLS]
    both = _overlap(pools)
    return f"two pools share the tool name {min(both)!r}" if both else ""


def _invented(scenes: Iterable[Scene]) -> Iterator[str]:
    for scene in scenes:
        true = {tool.name for tool in scene.clean.tools} | {t.name for t in scene.world.tools}
        for tool in scene.tools:
            if tool.name not in true and not any(old in tool.name for old in true):
                yield tool.name


def _overlap(sets: Sequence[set[str]]) -> set[str]:
    return {each for n, one in enumerate(sets) for other in sets[n + 1 :] for each in one & other}


def _wording(bench: Bench, name: str) -> Verdict:
    """Whether words tell the unsolvable scenes from their look-alikes."""
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
    said = [str(m.get("content", "")) for m in messages(scene, scene.rehearsal[:step])]
    return "\n".join([tools, *said])


# -- small parts -------------------------------------------------------------------------------


def _all_scenes(bench: Bench) -> Iterator[Scene]:
    for world in bench.worlds:
        yield from bench.clean(world)
    for name in bench.shifts:
        for severity in find_shift(name).severities:
            yield from bench.shifted(name, severity)


def _where(scenes: Sequence[Scene]) -> str:
    first = scenes[0]
    stack = "+".join(f"{a.shift}:{a.severity}" for a in first.shifts) or "clean"
    task = first.task
    more = f" and {len(scenes) - 1} more" if len(scenes) > 1 else ""
    return f"{task.world}/{task.kind}/{task.index} {stack}{more}"


def _verdict(subject: str, rule: int, wrong: str) -> Verdict:
    return Verdict(subject, rule, "fail" if wrong else "pass", wrong)


def worlds_of(names: Sequence[str]) -> list[World]:
    """The worlds among some names."""
    loaded = [subject_of(name) for name in names]
    return [each for each in loaded if isinstance(each, World)]


def subject_of(name: str) -> World | Shift:
    """The world or shift of a name, a file, or `module:attribute`.

    Args:
        name: as it stands on the command line.

    Returns:
        What is to be checked.

    Raises:
        UsageError: where it is neither.
    """
    module, colon, attribute = name.partition(":")
    if is_file(name):
        return find_world(name)
    if not colon:
        if name in world_names():
            return find_world(name)
        if name in shifts():
            return find_shift(name)
        raise UsageError(unknown("world or shift", name, [*world_names(), *shifts()]))
    found = import_attribute(module, attribute, "plugin")
    if isinstance(found, type) and issubclass(found, World):
        found = found()
    if isinstance(found, World | Shift):
        return found
    by_rule = [each for each in shifts().values() if each.rule is found]
    if not by_rule:
        raise UsageError(f"plugin {name} is neither a World nor a function marked with @shift(...)")
    return by_rule[0]


def bench_of(names: Sequence[str], tasks: int, seed: int) -> Bench:
    """What to check: the worlds and shifts named, or all of ours; shifts need worlds to stand in.

    Args:
        names: of worlds and shifts; () for all of ours.
        tasks: of each kind.
        seed: of the worlds.

    Returns:
        The worlds, the shifts and the scenes to check.

    Raises:
        UsageError: for a name that is neither, and a plugin that cannot be imported.
    """
    found_worlds, found_shifts = worlds_of(names), _shifts_of(names)
    if not names:
        found_shifts = [name for name in shifts() if shifts()[name].tier != "none"]
    worlds = found_worlds or [find_world(name) for name in world_names()]
    return Bench(tuple(worlds), tuple(found_shifts), tasks, seed)


def _shifts_of(names: Sequence[str]) -> list[str]:
    loaded = [subject_of(name) for name in names]
    return [each.name for each in loaded if isinstance(each, Shift)]


if __name__ == "__main__":
    print(fingerprint(bench_of(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]))))
