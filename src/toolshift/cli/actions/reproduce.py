"""`toolshift reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.terminal import print_json, print_table
from toolshift.core.tool import JSON
from toolshift.reproduce.experiments import STUDIES, find_scale, find_study
from toolshift.train.model import require_training
from toolshift.train.settings import processes

if TYPE_CHECKING:
    from toolshift.reproduce.findings import Findings
    from toolshift.reproduce.reproduce import Stage

RESULTS, PLAN = "results.json", "plan.json"


def reproduce_command(name: str, asked: dict[str, Any]) -> None:
    """Runs what is left of a study, and writes its page and results."""

    if not name:
        if asked["arms"] or asked["only_page"] or asked["seeds"] or asked["out"]:
            raise click.UsageError(f"name a study: {', '.join(STUDIES)}")
        _list(asked["as_json"])
        return
    require_training()
    from toolshift.reproduce.findings import find
    from toolshift.reproduce.reproduce import chosen_arms, run, seeds_there, stages

    study, scale = find_study(name), asked["preset"]
    find_scale(scale)
    seeds = study.seeds if asked["seeds"] is None else asked["seeds"]
    if seeds < 1:
        raise UsageError(f"seeds must be at least 1, not {seeds}")
    if asked["threads"] < 0:
        raise UsageError(f"threads must be 0 (torch's own number) or more, not {asked['threads']}")
    if processes() > 1:
        raise UsageError(
            "reproduce runs in one process and starts others to train: toolshift reproduce "
            f"{name} --preset {scale} --launch 'accelerate launch --config_file FILE'"
        )
    names = chosen_arms(study, asked["arms"])
    out = asked["out"] or place(name, asked["pool"])
    _keep_others(out, name, scale, asked["pool"])
    most = max(seeds, study.seeds, seeds_there(study, scale, asked["work"]))
    everything = stages(study, scale, most, asked["work"], pool=asked["pool"])
    todo = [each for each in everything if each.seed < seeds and each.arm.name in names]
    changes = {"threads": asked["threads"]} if asked["threads"] else {}
    if asked["pool"] == "test" and not asked["only_page"] and not _planned(todo, out):
        return
    if asked["pool"] == "test":
        everything = _as_planned(everything, out)
    if not asked["only_page"]:
        _say(f"{len(todo)} stages, {sum(each.measured for each in todo)} of them done")
        for stage in todo:
            run(stage, study, _say, asked["launch"], **changes)
            _write(out, find(study, everything, seeds))
    found = find(study, everything, seeds)
    if not found.arms:
        raise UsageError(
            f"{asked['work']} has no finished stage of this study at preset {scale}, so no page is "
            f"written in {out}: name the folder of the stages with --work"
        )
    _write(out, found)
    if asked["as_json"]:
        print_json(found)
    else:
        click.echo(f"{out / 'README.md'} and results.json: {len(found.arms)} arms.")


def place(study: str, pool: str) -> Path:
    """Where the page of a study stands, unless another folder is named."""
    return Path("studies") / study / ("test" if pool == "test" else "")


def _keep_others(out: Path, study: str, scale: str, pool: str) -> None:
    """Refuses a folder that holds the results of another study, preset or pool.

    Raises:
        UsageError: where it does.
    """
    file = out / RESULTS
    if not file.exists() and (out / "README.md").exists():
        raise UsageError(
            f"{out} has a README.md that is not the page of a study, and would be lost: name "
            "another folder with --out"
        )
    if not file.exists():
        return
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
    except msgspec.MsgspecError:
        raise UsageError(
            f"{file} is not the results of a study, and would be lost: name another folder "
            "with --out"
        ) from None
    if (kept.study, kept.scale, kept.pool) != (study, scale, pool):
        raise UsageError(
            f"{out} holds results of {kept.study}, preset {kept.scale}, pool {kept.pool}, which "
            "would be lost: name another folder with --out"
        )


class _Kept(msgspec.Struct):
    study: str
    scale: str
    pool: str = "dev"


def _planned(todo: list[Stage], out: Path) -> bool:
    """Whether these stages were planned before; if nothing was, writes the plan.

    The test pool is opened once: what is measured on it is decided, and committed, before. A plan
    holds for the scenes as they were, names and wordings included.

    Raises:
        UsageError: where something else was planned.
    """
    file = out / PLAN
    wanted = {each.folder.name: each.run.name for each in todo}
    if not file.exists():
        out.mkdir(parents=True, exist_ok=True)
        write(file, msgspec.json.format(JSON.encode(wanted)) + b"\n")
        _say(f"{file} says what will be measured on the test pool, once: commit it, then go on.")
        return False
    planned = _plan(out)
    other = sorted(name for name, run in wanted.items() if planned.get(name) != run)
    if other:
        raise UsageError(
            f"{file} plans other stages than {', '.join(other)}: the test pool was opened for "
            "those, in the scenes of then. What is chosen after a look at it has to say so: plan "
            "in another folder (--out)"
        )
    return True


def _as_planned(stages: list[Stage], out: Path) -> list[Stage]:
    """Those of the stages that were planned: of others, none is missing.

    Raises:
        UsageError: where none is.
    """
    planned = _plan(out)
    if found := [each for each in stages if each.folder.name in planned]:
        return found
    raise UsageError(f"{out / PLAN} plans none of these stages: leave --only-page out to write one")


def _plan(out: Path) -> dict[str, str]:
    """What was planned to be measured on the test pool: stages, and in what; {} without a plan.

    Raises:
        UsageError: where the plan cannot be read.
    """
    file = out / PLAN
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}
    except msgspec.MsgspecError as fault:
        raise UsageError(f"{file} is no plan of stages ({fault}): take it back as it was") from None


def _write(out: Path, found: Findings) -> None:
    """The page as it stands, with all arms and seeds that are there, whatever was asked to run."""
    from toolshift.reproduce.page import page

    out.mkdir(parents=True, exist_ok=True)
    command = f"toolshift reproduce {found.study} --preset {found.scale}"
    if found.pool == "test":
        command += " --pool test" + "".join(f" --arm {arm.arm}" for arm in found.arms)
    if out != place(found.study, found.pool):
        command += f" --out {out}"
    write(out / RESULTS, JSON.encode(found) + b"\n")
    if found.arms:
        from toolshift.reproduce.plots import accuracy_by_shift

        write(out / "accuracy.svg", accuracy_by_shift(found).encode())
    write(out / "README.md", page(found, command).encode())


def _list(as_json: bool) -> None:
    if as_json:
        print_json(list(STUDIES.values()))
        return
    rows = [(s.name, s.question, ", ".join(a.name for a in s.arms)) for s in STUDIES.values()]
    print_table("studies", ("study", "question", "arms"), rows)


def _say(text: str) -> None:
    click.echo(text, err=True)
