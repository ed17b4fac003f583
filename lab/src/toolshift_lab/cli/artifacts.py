"""`toolshift artifacts`: what of the studies' weights is here, and bringing back what is not."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from toolshift.cli.group import Group
from toolshift.cli.options import as_json
from toolshift.core.command_line import command
from toolshift.core.terminal import print_json, say
from toolshift_lab.artifacts import bring_back, choose, present, read_artifacts, repository


@click.group(cls=Group, invoke_without_command=True)
@as_json
@click.pass_context
def artifacts(context: click.Context, as_json: bool) -> None:
    """List the weights of the studies, or bring some back from the repository's history."""
    if context.invoked_subcommand is not None:
        return
    root = repository(Path())
    listed = [(each, present(each, root)) for each in read_artifacts(root)]
    if as_json:
        print_json([{**msgspec.to_builtins(each), "present": there} for each, there in listed])
        return
    for each, there in listed:
        said = "present" if there else "absent "
        say(f"{said}  {each.bytes / 2**20:.1f} MiB  {each.commit[:7]}  {each.path}")
    absent = sum(not there for _, there in listed)
    get = command("artifacts", "get", "PATH")
    say(f"{absent} of {len(listed)} absent; `{get}` brings one back.")


@artifacts.command()
@click.argument("path")
def get(path: str) -> None:
    """Bring back the weights at PATH, a file or a folder such as a stage's, or `all`."""
    root = repository(Path())
    for each in choose(read_artifacts(root), path, root):
        bring_back(each, root)
        say(f"{each.path}: here, sha256 as listed")
