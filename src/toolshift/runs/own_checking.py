"""Tries the tasks of a world: clean, under every shift, and with agents whose calls are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from toolshift.agents.catalog import contestants
from toolshift.core.errors import described
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable, Unproved
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.episode.oracle import OracleAgent
from toolshift.reading.answers.kinds import kind_of
from toolshift.runs.cell import Cell
from toolshift.runs.study import play
from toolshift.shifts.registry import apply, shifts
from toolshift.worlds.own.world import OwnWorld, Prepared

Watch = Callable[[int, int], None]


class Tried(msgspec.Struct, frozen=True):
    """The result of checking one task.

    Attributes:
        state: "ok", or "fail" where the expected calls do not pass by its own check, or a shift
            raises.
        shifts: how many shifts apply at some severity, each proved by the same calls.
        said: what is wrong, or worth knowing.
        not_applicable: why the others do not apply, at any severity.
        unproved: shifts with the severity at which these calls do not pass under them; a run leaves
            such a scene out.
        answer_type: the type of its answer: the one that the check says (`as:`), or else the one
            that the value has, with a question mark.
    """

    id: str
    kind: str
    state: str
    shifts: int
    said: str
    not_applicable: dict[str, str]
    answer_type: str = ""
    unproved: tuple[str, ...] = ()


def check_tasks(world: OwnWorld, watch: Watch = lambda done, total: None) -> list[Tried]:
    """Tries every task of a world on the recorded tools."""
    places = [(kind, n) for kind, count in world.counts.items() for n in range(count)]
    tried = []
    for done, (kind, place) in enumerate(places):
        watch(done, len(places))
        scene = make_scene(world, kind, place)
        tried.append(_tried(world.by_kind[kind][place], scene))
    return tried


def _tried(task: Prepared, scene: Scene) -> Tried:
    wrong = _fails(scene)
    proved: set[str] = set()
    reasons, unproved, broken = dict[str, str](), list[str](), dict[str, str]()
    for name, shift in () if wrong else shifts().items():
        for severity in shift.severities:
            try:
                apply(scene, name, severity).rehearsal  # noqa: B018  which it may fail in
            except Unproved:
                unproved.append(f"{name}:{severity}")
            except NotApplicable as reason:
                reasons.setdefault(name, str(reason))
            except Exception as fault:  # a broken shift says nothing of the task, and is said
                broken[name] = described(fault)
            else:
                proved.add(name)
    remarks = [wrong] if wrong else []
    if not task.given.calls:
        remarks.append("no expected calls: that the tools suffice is not proved")
    if unproved:
        listed = ", ".join(unproved)
        remarks.append(f"left out of runs, for these shifts take its solution away: {listed}")
    remarks += [f"the shift {name} raised {fault}" for name, fault in broken.items()]
    remarks += [
        f"{task.given.calls[call].name}: {key} {value!r} stands neither in the request nor in an "
        "earlier result; an agent must make it up (see {any: ...})"
        for call, key, value in task.origins.free
    ]
    state = "fail" if wrong or broken else "ok"
    tried = {*proved, *broken, *(name.partition(":")[0] for name in unproved)}
    return Tried(
        task.given.id,
        task.given.kind,
        state,
        len(proved),
        "; ".join(remarks),
        {name: reason for name, reason in reasons.items() if name not in tried},
        _type(task),
        tuple(unproved),
    )


def _type(task: Prepared) -> str:
    """The type of the answer of a task; "" where none is checked."""
    check = task.given.check
    return check.kind or (f"{kind_of(check.answer)}?" if check.answer else "")


def _fails(scene: Scene) -> str:
    """Why the expected calls do not pass on the recorded tools; "" if they do."""
    try:
        episode = Episode(scene, live=False)
        OracleAgent().play(episode)
    except Exception as fault:
        return f"the expected calls fail: {type(fault).__name__}: {fault}"
    verdict: Grade = grade(episode)
    if verdict.passed:
        return ""
    return f"the expected calls do not pass its check: {verdict.cause or episode.end}"


def let_play(world: OwnWorld, agents: Sequence[str], options: dict[str, Any], watch: Watch) -> None:
    """Runs agents on every clean task of a world, and records what the real tools answer."""
    cells = [
        Cell(world.name, kind, place, 0, "dev", 200)
        for kind, count in world.counts.items()
        for place in range(count)
    ]
    players = contestants(list(agents), **options)
    world.keeping = True
    try:
        for number, contestant in enumerate(players):
            for done, cell in enumerate(cells):
                watch(number * len(cells) + done, len(players) * len(cells))
                scene = make_scene(world, cell.kind, cell.index)
                play(contestant, cell, scene, fresh=done == 0)
    finally:
        world.keeping = False
