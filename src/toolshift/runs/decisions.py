"""Decides answers of which their type does not tell whether they are right.

A judge or a person decides; the step keeps the decision and who made it, so a grade made again from
the trace is the same. What people decide is kept in the run folder beside, with the time.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import JSON
from toolshift.episode.episode import End
from toolshift.episode.grade import is_unclear, regrade
from toolshift.episode.grading_rules import answer_verdicts
from toolshift.reading.answers.by_words import as_answer
from toolshift.reading.prose import ProseReader
from toolshift.runs.run_folder import DECISIONS, Record, RunFolder

Decided = Literal["right", "wrong"]


class Decision(msgspec.Struct, frozen=True):
    """What somebody decided of an episode.

    Attributes:
        episode: its id.
        verdict: "right" or "wrong".
        by: who decided, the name of the account.
        at: when, in UTC.
    """

    episode: str
    verdict: Decided
    by: str
    at: str


def judged(
    scene: Scene, steps: Sequence[Step], end: End, judge: ProseReader | None
) -> tuple[Step, ...]:
    """The steps, with unclear answers decided by a judge as far as it gives a verdict."""
    if judge is None or not is_unclear(scene, steps, end):
        return tuple(steps)
    verdicts = iter(zip(scene.asks, answer_verdicts(scene, steps), strict=False))
    read = []
    for step in steps:
        ask, verdict = next(verdicts, (None, "")) if step.kind == "answer" else (None, "")
        if ask is not None and verdict == "unclear":
            wanted = ask.pattern if isinstance(ask.pattern, str) else as_answer(ask.pattern)
            told = judge.decide(ask.text, wanted, step.said)
            by = judge.name if told else ""
            read.append(msgspec.structs.replace(step, told=told, told_by=by))
        else:
            read.append(step)
    return tuple(read)


def decide(folder: RunFolder, verdicts: Mapping[str, str]) -> list[Record]:
    """Decides unclear episodes by hand ("right" or "wrong" by the beginning of an id)."""
    records = list(folder.records())
    now, who = datetime.now(UTC).isoformat(timespec="seconds"), _who()
    decided: dict[str, Record] = {}
    made = []
    for name, verdict in verdicts.items():
        if verdict not in ("right", "wrong"):
            raise UsageError(f"--decide {name}={verdict}: say right or wrong")
        found = [record for record in records if name and record.episode.startswith(name)]
        if len(found) != 1:
            why = f"{len(found)} episodes start so" if found else "there is none"
            raise UsageError(f"--decide {name}: {why}: {command('trace', folder.path)} lists them")
        record = found[0]
        if not (record.grade.unclear or any(step.told for step in record.steps)):
            raise UsageError(
                f"--decide {name}: its answer is not unclear, so there is nothing to decide: "
                "only answers that are unclear by their type can be decided by hand"
            )
        decided[record.episode] = _decided(folder, record, verdict, who)
        made.append(JSON.encode(Decision(record.episode, verdict, who, now)) + b"\n")  # type: ignore[arg-type]
    with folder.held():
        folder.rewrite([decided.get(record.episode, record) for record in records])
        before = folder.path / DECISIONS
        kept = before.read_bytes() if before.exists() else b""
        folder.write(DECISIONS, kept + b"".join(made))
    return list(decided.values())


def _decided(folder: RunFolder, record: Record, verdict: str, who: str) -> Record:
    """An episode with its unclear answers decided."""
    scene = folder.scene(folder.cell(record))
    bare = [msgspec.structs.replace(step, told="", told_by="") for step in record.steps]
    verdicts = iter(answer_verdicts(scene, bare))
    steps = tuple(
        msgspec.structs.replace(step, told=verdict, told_by=who)
        if step.kind == "answer" and next(verdicts, "") == "unclear"
        else step
        for step in bare
    )
    grade = regrade(scene, steps, record.end)
    return msgspec.structs.replace(record, steps=steps, grade=grade)


def _who() -> str:
    """The name of the account; "unknown" where there is none, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
