"""`toolshift export`: shifted scenes as packages of trainers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.cli.options import SCOPE, AsJson
from toolshift.cli.parameters import argument, option, options_of, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.core.command_line import path_word
from toolshift.core.terminal import print_json, say
from toolshift.runs.suite import Selection, suite_of
from toolshift.train.export.package import KINDS, check_name, write_package
from toolshift.train.export.scenes import Exported, export_scenes
from toolshift.train.scenes import Mix

_NEXT = {
    "verifiers": "pip install {out} && vf-eval {name} -n 20 --env.agent.harness.id null "
    "--env.agent.runtime.type subprocess",
    "openenv": "pip install {out} && python -m {package}.server.app --port 8000",
    "trl": 'pip install {out} && python -c "import {package}; print({package}.load(10).rows[0])"',
}


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What `toolshift export` is asked for.

    Attributes:
        trainer: for which the package is written.
    """

    trainer: Annotated[str, argument(type=click.Choice(list(KINDS)))]
    selection: Annotated[
        Selection,
        options_of(
            Selection,
            {
                **SCOPE,
                "seed": option(help="Seed of the worlds and of all choices."),
                "pool": option(
                    default="train",
                    help="Pool of entities and shifted wordings: train, or dev for evaluation "
                    "during training.",
                ),
                "size": option(default=Mix().size, help="Entities in each world."),
            },
        ),
    ]
    alpha: Annotated[float, option(help="Share of scenes to shift, 0 to 1.")] = 0.5
    out: Annotated[Path, option(metavar="FOLDER", help="The package's folder.")]
    name: Annotated[str, option(help="Name of the package (default: toolshift-SUITE).")] = ""
    as_json: AsJson = False


@click.command(
    cls=Sectioned, first=("suite", "worlds", "shifts", "alpha", "seed", "out", "name", "as_json")
)
@options_struct(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write shifted scenes as a package for verifiers, OpenEnv or TRL.

    \b
    toolshift export verifiers --suite quick --out toolshift-quick
    toolshift export trl --shift semantic_rename:3 --shift redirect --alpha 0.3 --out shifted

    There is no last scene, and number N is always the same scene. The package needs ToolShift
    (without extras) and the trainer.
    """
    asked = options.selection
    name = options.name or f"toolshift-{suite_of(asked).name.partition('@')[0]}"
    check_name(name)
    exported = export_scenes(asked, options.alpha)
    files = write_package(options.trainer, exported, options.out, name, _about(exported))
    package = name.replace("-", "_")
    following = _NEXT[options.trainer].format(
        out=path_word(options.out), name=name, package=package
    )
    if options.as_json:
        print_json({"name": name, "package": package, "files": [str(file) for file in files]})
        return
    for file in files:
        say(f"Written: {file}")
    say(f"\nNext: {following}")


def _about(exported: Exported) -> str:
    """One line on the scenes."""
    mix = exported.mix
    shifts = f"{len(mix.shifts)} shift{'s' if len(mix.shifts) != 1 else ''}"
    return f"{', '.join(mix.worlds)}, {shifts}, {100 * mix.alpha:g}% of scenes shifted"
