"""Commands that train: data, and (further below) the methods and the studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import as_json, options

mix = options(
    click.option(
        "--world", "worlds", multiple=True, default=("poi",), show_default=True, help="Repeat."
    ),
    click.option("--kind", "kinds", multiple=True, help="Only this task kind; repeat."),
    click.option(
        "--shift",
        "shifts",
        multiple=True,
        metavar="FAMILY|TIER|NAME[:SEV][+NAME[:SEV]]",
        help="What shifts the shifted share: EFP, SBP, SRP, formats, midway, graph, limits, "
        "diverse, a tier, a shift, 'all'; repeat. Named twice, drawn twice as often. Default: EFP, "
        "SBP, SRP and limits.",
    ),
    click.option("--severity", "severities", multiple=True, type=int, help="1 to 3; repeat."),
    click.option("--seed", default=0, show_default=True, help="Seed of worlds and choices."),
    click.option("--size", default=2000, show_default=True, help="Entities in each world."),
)


@toolshift.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help=".jsonl or .parquet.")
@click.option("--count", default=6050, show_default=True, help="Trajectories.")
@click.option("--alpha", default=0.0, show_default=True, help="Share that is shifted, 0 to 1.")
@mix
@as_json
def data(out: Path, count: int, alpha: float, as_json: bool, **asked: Any) -> None:
    """Write expert trajectories as training data: the oracle in clean and shifted scenes.

    Columns are TRL's: messages and tools. Entities and wordings are of the training pool only.

    \b
    toolshift data --out static.jsonl
    toolshift data --out paft.parquet --alpha 0.3 --shift EFP --shift SBP --shift SRP
    """
    from toolshift.commands.data import data_command

    data_command(out, count, alpha, asked, as_json)
