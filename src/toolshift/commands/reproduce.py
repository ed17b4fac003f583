"""`toolshift reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.commands.output import print_json, print_table
from toolshift.errors import UsageError
from toolshift.files import write
from toolshift.tool import JSON
from toolshift.train.experiments import STUDIES, find_study


def reproduce_command(name: str, asked: dict[str, Any]) -> None:
    """Runs what is left of a study, and writes its page and results."""
    from toolshift.train.findings import find, page
    from toolshift.train.grpo_settings import processes
    from toolshift.train.reproduce import chosen_arms, run, stages

    if not name:
        _list(asked["as_json"])
        return
    study, scale = find_study(name), asked["preset"]
    seeds = study.seeds if asked["seeds"] is None else asked["seeds"]
    if seeds < 1:
        raise UsageError(f"seeds must be at least 1, not {seeds}")
    if processes() > 1:
        raise UsageError(
            "reproduce runs in one process and starts others to train: toolshift reproduce "
            f"{name} --preset {scale} --launch 'accelerate launch --config_file FILE'"
        )
    names = chosen_arms(study, asked["arms"])
    work, out = asked["work"], asked["out"] or Path("studies") / name
    everything = stages(study, scale, max(seeds, study.seeds), work, ())
    todo = [each for each in everything if each.seed < seeds and each.arm.name in names]
    changes = {"threads": asked["threads"]} if asked["threads"] else {}
    if not asked["only_page"]:
        _say(f"{len(todo)} stages, {sum(each.measured for each in todo)} of them done")
        for stage in todo:
            run(stage, study, _say, asked["launch"], **changes)
            _write(out, find(study, everything), page, name, scale)
    found = find(study, everything)
    _write(out, found, page, name, scale)
    if asked["as_json"]:
        print_json(found)
    else:
        click.echo(f"{out / 'README.md'} and results.json: {len(found.arms)} arms.")


def _write(out: Path, found: Any, page: Any, name: str, scale: str) -> None:
    """The page as it stands, with all arms and seeds that are there, whatever was asked to run."""
    out.mkdir(parents=True, exist_ok=True)
    command = f"toolshift reproduce {name} --preset {scale}"
    write(out / "results.json", JSON.encode(found) + b"\n")
    if found.arms:
        from toolshift.train.plots import accuracy_by_shift

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
