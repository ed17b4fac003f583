"""Commands for the weights of studies that are kept in the repository's history."""

from __future__ import annotations

from pathlib import Path

import click

from toolshift.cli.group import Group, toolshift
from toolshift.cli.options import as_json


@toolshift.group(cls=Group, invoke_without_command=True)
@as_json
@click.pass_context
def artifacts(context: click.Context, as_json: bool) -> None:
    """List the weights of the studies, or bring some back from the repository's history."""
    from toolshift.cli.actions.artifacts import list_command

    if context.invoked_subcommand is None:
        list_command(Path(), as_json)


@artifacts.command()
@click.argument("path")
def get(path: str) -> None:
    """Bring back the weights at PATH, a file or a folder such as a stage's, or `all`."""
    from toolshift.cli.actions.artifacts import get_command

    get_command(Path(), path)
