"""`toolshift lock`: what an agent's tools look like, in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.cli.options import AsJson, Headers, headers_of, say_unread
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.command_line import command
from toolshift.core.terminal import print_json, say
from toolshift.drift.lock import lock_side, write_lock
from toolshift.drift.poisoning import signs_in
from toolshift.drift.sources import read_sources

LOCK_FILE = Path("toolshift").with_suffix(".lock")  # written whole it would look like a module


@dataclass(frozen=True, kw_only=True)
class LockOptions:
    """What `toolshift lock` is asked for."""

    sources: Annotated[tuple[str, ...], argument(metavar="SOURCE...")]
    out: Annotated[Path, option(help="The lock file.")] = LOCK_FILE
    headers: Headers = ()
    as_json: AsJson = False


@click.command()
@options_struct(LockOptions)
def lock(options: LockOptions) -> None:
    """Record an agent's tools in a file: names, schemas, descriptions and a hash of each.

    SOURCE: an MCP server (mcp:COMMAND, its http address, or FILE#NAME for one in the file of an MCP
    client, such as .mcp.json#github), an OpenAPI 3 document, a list of tools as JSON or YAML, a
    trace of the proxy, conversations with tools or OpenTelemetry spans (.jsonl), or a run folder.
    Commit the lock; `toolshift verify` compares it. Texts that may instruct the model are reported,
    because the text in a lock is later trusted as known.

    \b
    toolshift lock 'mcp:npx -y my-server@1'
    toolshift lock .mcp.json#github
    toolshift lock tools.json openapi.yaml --out tools.lock

    Exit codes: 0 locked, 2 could not lock: a source cannot be read, or no tool was found in it.
    """
    side = read_sources(options.sources, headers_of(options.headers))
    made = lock_side(side)
    write_lock(options.out, made)
    say_unread(side.unread)
    signs = signs_in(side.tools)
    if options.as_json:
        tools = {str(tool.document["name"]): tool.hash for tool in made.tools}
        said = {"out": str(options.out), "origin": made.origin, "hash": made.hash, "tools": tools}
        print_json({**said, "unread": side.unread, "signs": signs})
        return
    count = len(made.tools)
    say(f"{count} tool{'s' if count != 1 else ''} of {made.origin} locked in {options.out}.")
    say(f"Hash: {made.hash}")
    for name, found in signs.items():
        for sign in found:
            say(f"Warning: {name}: a text may instruct the model: {sign.what}: {sign.text!r}")
    say(f"Compare later: {command('verify', options.out, *options.sources)}")
