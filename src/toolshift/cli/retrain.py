"""`toolshift retrain`: teach a model exactly this release, and keep it only if it helps."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Annotated

import click
import msgspec

from toolshift.cli.options import say_unread
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.training import PRESET, ModelOptions, warn_of_evidence
from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.text import visible
from toolshift.data.files import check_source, digest_of
from toolshift.drift.hypotheses import settled_likely
from toolshift.drift.lock import read_lock
from toolshift.drift.questions import NOT_TAKEN, with_open
from toolshift.drift.sources import read_sources
from toolshift.measure.gate import Family, Rules, check_rules, in_percent, in_points
from toolshift.retrain.decision import EXIT_CODES
from toolshift.retrain.retrain import DECISION, MODEL, SHIFT, Asked, retrain
from toolshift.runs.suite import Selection
from toolshift.shifts.release.file import FORMAT, ShiftFile, read_shift_file
from toolshift.shifts.release.inputs import side_of
from toolshift.train.model import require_training
from toolshift.train.presets import TRAJECTORIES, Settings, preset
from toolshift.train.scenes import Mix
from toolshift.train.settings import check_rank


@dataclass(frozen=True, kw_only=True)
class RetrainOptions(ModelOptions):
    """What `toolshift retrain` is asked for.

    Attributes:
        drift: a lock of the old tools, or the file of a release.
        sources: of the new tools; none where `drift` is a release.
    """

    drift: Annotated[Path, argument(metavar="LOCK|RELEASE.json")]
    sources: Annotated[tuple[str, ...], argument(metavar="[SOURCE]...")] = ()
    out: Annotated[
        Path,
        option(help="Folder of all results; if it contains some results, the command resumes."),
    ] = field()  # needed, here
    steps: Annotated[
        int | None, option(help="Optimizer steps. Default: one pass over the rows.")
    ] = None
    alpha: Annotated[
        float,
        option(
            help="Share of the trajectories on the new tools; the others train on the old ones, so "
            "that the model does not forget them.",
        ),
    ] = 0.5
    count: Annotated[int, option(help=f"Trajectories. {PRESET}", show_default=False)] = 0
    data: Annotated[
        Path | None,
        option(
            help="Your own conversations, to train on instead of trajectories, in any format of "
            "`toolshift augment`; give the file of your tasks with --world.",
        ),
    ] = None
    worlds: Annotated[
        tuple[str, ...], option("--world", help="The world whose tools these are; repeat.")
    ] = Mix().worlds
    kinds: Annotated[tuple[str, ...], option("--kind", help="Only this task kind; repeat.")] = ()
    tasks: Annotated[
        int, option(help="Number of tasks on which the old and the new model are measured.")
    ] = 64
    pool: Annotated[
        str,
        option(help="Pool of these tasks, dev or test. The model is trained on the pool train."),
    ] = "dev"
    guard: Annotated[
        tuple[str, ...],
        option(metavar="NAME[:SEV]", help="Another shift on which nothing may be lost; repeat."),
    ] = ()
    margin: Annotated[
        float,
        option(
            help="Points of accuracy that may be lost on the old tools, and under each --guard.",
        ),
    ] = 5.0
    always: Annotated[bool, option(help="Train even if the release costs less than --margin.")] = (
        False
    )

    def asked(self, release: ShiftFile) -> Asked:
        """What decides the retraining, checked."""
        check_rules(Rules(self.margin))
        if not 0 < self.alpha <= 1:
            raise UsageError(
                f"--alpha {self.alpha:g}: the share on the new tools must be above 0 and at most 1"
            )
        if self.tasks < 1:
            raise UsageError(f"--tasks {self.tasks}: give at least one task")
        if self.data is not None:
            self._check_data()
        settings = preset(self.preset, **self.changes(Settings))
        check_rank(self.rank, self.adapter, settings.full)
        measured = Selection(
            worlds=self.worlds, kinds=self.kinds, tasks=self.tasks, pool=self.pool, placebo=False
        )
        return Asked(
            shift=release.stored_name,
            settings=settings,
            alpha=self.alpha,
            count=self.count or TRAJECTORIES[settings.preset],
            measured=measured,
            guard=self.guard,
            margin=self.margin,
            always=self.always,
            data_sha256=digest_of(self.data) if self.data is not None else "",
        )

    def _check_data(self) -> None:
        """Checks what is asked beside conversations of the user's."""
        if self.worlds == Mix().worlds:
            raise UsageError(
                "--data trains on your own conversations, so the model must be measured on your "
                "own tasks: give their file with --world (`toolshift world init` writes a first "
                "version)"
            )
        if self.count:
            raise UsageError(
                "--count is for trajectories of the oracle, but --data names your own "
                "conversations: leave one of them out"
            )
        assert self.data is not None
        check_source(self.data)


@click.command(
    "retrain",
    cls=Sectioned,
    first=("out", "preset", "model", "adapter", "data", "worlds", "guard", "margin"),
)
@options_struct(RetrainOptions)
def command(options: RetrainOptions) -> None:
    """Train a model on exactly what a release changes, and keep it only if nothing is lost.

    The old model is measured with the old and the new tools, trained on trajectories of both, and
    measured again in the same scenes. The new model is kept if it is better on the new tools
    (exact 90% interval above 0) and passes the gate everywhere else.

    \b
    toolshift retrain toolshift.lock 'mcp:npx -y my-server@2' --adapter runs/paft --out runs/monday
    toolshift retrain monday.json --adapter smol:static --kind listing --out runs/monday
    toolshift retrain monday.json --data mine.jsonl --world tasks.yaml --out runs/monday

    Exit codes: 0 kept or not needed, 1 rejected, 3 undecided, 2 a usage error.
    """
    require_training()
    release = _release(options.drift, options.sources)
    decided_by = options.asked(release)
    warn_of_evidence(decided_by.settings)
    try:
        decision = retrain(
            decided_by, release, options.out, lambda text: say(text, err=True), options.data
        )
    except KeyboardInterrupt:
        say(f"Stopped. Results so far are in {options.out}; the same command resumes.", err=True)
        sys.exit(130)
    if options.as_json:
        print_json(msgspec.to_builtins(decision))
    else:
        if decision.gain is not None:
            columns = ("", "tasks", "before", "after", "change [90%]", "lost", "gained")
            rows = [_row("new tools", decision.gain)]
            rows += [_row(family.label, family) for family in decision.guarded]
            print_table(f"\nold -> new model, margin {decision.margin:g} points", columns, rows)
        say(visible(f"\nDecision {decision.sentence}"))
        say(f"Record: {options.out / DECISION}; the release as a shift: "
                   f"{options.out / SHIFT}")  # fmt: skip
        if decision.outcome == "keep":
            say(f"The new model: {options.out / MODEL}")
    sys.exit(EXIT_CODES[decision.outcome])


def _release(drift: Path, sources: tuple[str, ...]) -> ShiftFile:
    """The release, from a lock and the tools as they are, or from a file of `from-diff`."""
    if not sources:
        if drift.suffix != ".json":
            raise UsageError(
                f"name the current tools after {drift}: a file, an http address or mcp:COMMAND"
            )
        return read_shift_file(drift)
    lock = read_lock(drift)
    now = read_sources(sources)
    say_unread(now.unread)
    before = side_of(lock.kind, lock.origin or "the lock", lock.documents)
    if before.tools == now.tools:
        raise UsageError(f"nothing to learn: {now.origin} is the same as {drift}")
    settled = settled_likely(before, now)
    likely = [
        *settled.guessed,
        *(one for one in settled.questions if one.path[0] not in NOT_TAKEN and one.guess),
    ]
    if likely:
        taken = ", ".join(f"{'.'.join(one.path)} = {one.guess}" for one in likely)
        asks = "`toolshift shift from-diff` asks about each; you can give its file here instead."
        say(visible(f"Most likely matches, used here: {taken}. {asks}"), err=True)
    answers = with_open(settled)
    asked = [one for one in settled.questions if one.path[0] in NOT_TAKEN]
    for why, names in (
        (
            "Open questions; tasks that need an answer are left out",
            [f"{'.'.join(one.path)} ({one.note})" for one in asked],
        ),
        ("Treated as removed, because no successor was found", answers.removed),
    ):
        if names:
            say(visible(f"{why}: {', '.join(names)}."), err=True)
    return ShiftFile(FORMAT, "release", before, now, answers)


def _row(label: str, family: Family) -> list[str]:
    known = not isnan(family.baseline)
    return [
        label,
        str(family.tasks),
        in_percent(family.baseline) if known else "",
        in_percent(family.candidate) if known else "",
        in_points(family.change),
        str(family.lost),
        str(family.gained),
    ]
