"""`toolshift artifacts`: what of the studies' weights is here, and bringing back what is not."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from toolshift.core.terminal import print_json
from toolshift.reproduce.artifacts import bring_back, choose, present, read_artifacts, repository


def list_command(here: Path, as_json: bool) -> None:
    """Prints every file of weights, and whether it is in the tree."""
    root = repository(here)
    listed = [(each, present(each, root)) for each in read_artifacts(root)]
    if as_json:
        print_json([{**msgspec.to_builtins(each), "present": there} for each, there in listed])
        return
    for each, there in listed:
        said = "present" if there else "absent "
        click.echo(f"{said}  {each.bytes / 2**20:.1f} MiB  {each.commit[:7]}  {each.path}")
    absent = sum(not there for _, there in listed)
    click.echo(f"{absent} of {len(listed)} absent; `toolshift artifacts get PATH` brings one back.")


def get_command(here: Path, path: str) -> None:
    """Brings back the weights at a path."""
    root = repository(here)
    for each in choose(read_artifacts(root), path):
        bring_back(each, root)
        click.echo(f"{each.path}: here, sha256 as listed")
