"""`toolshift proxy`: a real MCP server, seen through shifts."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
import click
import msgspec
import uvicorn
from mcp.server.stdio import stdio_server

from toolshift.adapt.lessons import read_lessons
from toolshift.cli.group import say_moved
from toolshift.cli.options import AsJson, Headers, Wordings, headers_of
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.connect.mcp.deployment import read_deployment
from toolshift.connect.mcp.proxy import serve
from toolshift.connect.mcp.shifted_server import NOT_HERE, WAY_OUT, ShiftOptions, shift_tools
from toolshift.connect.mcp.trial import Trial, try_call
from toolshift.connect.mcp.web import IDLE, application
from toolshift.connect.serve.server import bind
from toolshift.connect.serve.timeouts import Impatient
from toolshift.connect.trace import Trace
from toolshift.core.errors import UsageError, cause_of
from toolshift.core.scene import Scene
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.text import visible
from toolshift.core.tool import Tool
from toolshift.core.values import as_json
from toolshift.drift.lock import read_lock
from toolshift.interop.client_files import server_of
from toolshift.interop.mcp_client import Target
from toolshift.interop.mcp_results import words_of
from toolshift.interop.server import Server, address_name, command_name
from toolshift.runs.cell import write_stack
from toolshift.runs.suite import check_entities
from toolshift.shifts.live import never
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import read_stack

MAX_LINES, MAX_WIDTH = 14, 160
"""How much of a result a dry run prints."""
LAST_ANSWER = 0.3
"""Seconds that the answers to open requests have to get out when the server is lost."""


@dataclass(frozen=True, kw_only=True)
class ProxyOptions:
    """What `toolshift proxy` is asked for.

    Attributes:
        server: the real server, as `mcp:COMMAND`, by its http address or as `FILE#NAME`; or, as it
            was written before, its program and arguments.
        upstream_url: its address, as it was written before.
        headers: "Name: value" for the address; `${NAME}` is read from the environment.
        shifts: `a:2+b:1`.
        needed: the tools that the agent needs, where the user has said so.
        skip: leave out what is not applicable.
        may_write: let a trap lie over tools that write.
        lock: the lock of the tools that the client knows; what has changed is said to it.
        memory: with `lock`, the file of what is remembered across sessions.
        rewrite: with `lock`, also move calls to names that are the same words.
        deploy: what brings about the changes in mid-session: seconds or "signal"; "" for calls.
        port: the port to serve on, in place of standard input and output.
        idle: with `port`, seconds after which the session of a client ends that has gone.
        trace: the file to append calls to.
        dry_run: print the tools and one real result before and after, and serve nothing.
        tried: the call of the dry run, `TOOL {"argument": ...}`.
        as_json: with `dry_run`.
    """

    server: Annotated[tuple[str, ...], argument(metavar="SERVER")] = ()
    upstream_url: Annotated[str | None, option(hidden=True)] = None
    headers: Headers = ()
    shifts: Annotated[
        tuple[str, ...], option("--shift", metavar="NAME[:SEV][+NAME[:SEV]]", help="Shift; repeat.")
    ] = ()
    wordings: Wordings
    needed: Annotated[
        tuple[str, ...],
        option("--needs", metavar="TOOL", help="A tool that your agent needs; repeat."),
    ] = ()
    skip: Annotated[
        bool, option("--skip-inapplicable", help="Leave out the shifts that are not applicable.")
    ] = False
    may_write: Annotated[
        bool,
        option(
            "--allow-traps-that-write", help="Allow misleading names for tools that write, too."
        ),
    ] = False
    lock: Annotated[
        Path | None,
        option(
            "--adapt",
            metavar="LOCK",
            help="Add to the description of each tool what has changed since this lock "
            "(`toolshift lock`), and to each error what today's tools accept. Calls and "
            "results are not changed.",
        ),
    ] = None
    memory: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="--adapt: store in this file which notes were followed by success.",
        ),
    ] = None
    rewrite: Annotated[
        bool,
        option(
            help="--adapt: also accept calls under names of the lock that consist of the same "
            "words as today's names, such as getOrder for get_order."
        ),
    ] = False
    deploy: Annotated[
        str,
        option(
            metavar="SECONDS|signal",
            help="Tools that change during a session change after SECONDS, or at SIGHUP, and not "
            "after calls.",
        ),
    ] = ""
    port: Annotated[
        int | None,
        option(
            type=click.IntRange(0, 65535),
            help="Serve over HTTP on this port instead of standard input and output; 0 takes a "
            "free port.",
        ),
    ] = None
    idle: Annotated[
        float,
        option(
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="--port: end a session whose client sends no request and holds no stream for "
            "this long.",
        ),
    ] = IDLE
    trace: Annotated[Path | None, option(help="Append each call to this file.")] = None
    dry_run: Annotated[
        bool, option(help="Print the tools, and one real result, before and after; serve nothing.")
    ] = False
    tried: Annotated[
        str,
        option(
            "--try",
            metavar="'TOOL {...}'",
            help="--dry-run: the call to make (default: a tool marked readOnlyHint is called).",
        ),
    ] = ""
    as_json: AsJson = False


@click.command()
@options_struct(ProxyOptions)
def proxy(options: ProxyOptions) -> None:
    """Show a real MCP server to any MCP client through shifts.

    SERVER is mcp:COMMAND (a server to start), the http address of a running server, or FILE#NAME
    for a server in the file of an MCP client, such as .mcp.json#github.

    \b
    toolshift proxy --shift semantic_rename:2 --shift format_drift:1 \\
        'mcp:npx -y @modelcontextprotocol/server-filesystem DIR'
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    shifting, target = _shifting(options), _target(options)
    if options.dry_run:
        _dry_run(target, shifting, options)
        return
    if options.tried:
        raise UsageError("--try needs --dry-run")
    if options.as_json:
        raise UsageError("--json needs --dry-run: otherwise the output is MCP")
    try:
        if options.port is None:
            asyncio.run(_over_stdio(target, shifting, options.trace))
        else:
            _over_http(target, shifting, options)
    except BaseExceptionGroup as several:
        fault = cause_of(several)
        if isinstance(fault, UsageError | KeyboardInterrupt | SystemExit):
            raise fault from None
        raise UsageError(_lost(target, fault)) from several


# -- what is asked -----------------------------------------------------------------------------


def _shifting(options: ProxyOptions) -> ShiftOptions:
    if options.rewrite and options.lock is None:
        raise UsageError("--rewrite needs --adapt LOCK: it redirects calls under names of the lock")
    if options.memory is not None and options.lock is None:
        raise UsageError("--memory needs --adapt LOCK: it stores which notes helped")
    check_entities(options.wordings.pool, 200)
    stack = read_stack("+".join(options.shifts))
    for one in () if options.skip else stack:
        if why := never(find_shift(one.shift), options.needed):
            raise UsageError(f"{write_stack((one,))} {NOT_HERE}: {why}. {WAY_OUT}")
    return ShiftOptions(
        stack,
        options.wordings.seed,
        options.wordings.pool,
        options.needed,
        options.skip,
        options.may_write,
        read_lock(options.lock) if options.lock else None,
        options.rewrite,
        read_deployment(options.deploy) if options.deploy else None,
        read_lessons(options.memory) if options.memory else None,
        options.memory,
    )


def _target(options: ProxyOptions) -> Target:
    return Target.of(_server(options).given(headers_of(options.headers)))


def _server(options: ProxyOptions) -> Server:
    """The real server, in the old forms too."""
    words, url = options.server, options.upstream_url
    named = server_of(words[0]) if words else None
    if bool(words) == bool(url) or (len(words) > 1 and named is not None):
        raise UsageError("name one server: 'mcp:COMMAND', its http address, or FILE#NAME")
    if url:
        if not re.match(r"https?://[^/]+", url):
            raise UsageError(f"--upstream-url {url!r}: it must begin with http:// or https://")
        say_moved("proxy --upstream-url URL", "`toolshift proxy URL`")
        return Server(address_name(url), url=url)
    if named is not None:
        return named
    if len(words) == 1 and shutil.which(words[0]) is None:
        raise UsageError(
            f"{words[0]!r} names no server: there is no program and no file of a client like it. "
            "Write 'mcp:COMMAND', its http address, or FILE#NAME"
        )
    say_moved("proxy -- COMMAND", "`toolshift proxy 'mcp:COMMAND'`")
    return Server(command_name(words), words)


# -- serving -----------------------------------------------------------------------------------


async def _over_stdio(target: Target, how: ShiftOptions, trace: Path | None) -> None:

    target.check()  # while nothing waits for standard input
    written = _trace(trace, target)
    ended: list[int] = []
    try:
        with anyio.CancelScope() as scope:

            def end(sign: int) -> None:
                ended.append(sign)
                scope.cancel()

            # Ended by its client's signal, or by Ctrl-C, it must not leave the real server behind.
            for sign in (signal.SIGTERM, signal.SIGINT):
                with suppress(NotImplementedError):  # Windows
                    asyncio.get_running_loop().add_signal_handler(sign, end, sign)
            if how.deployment is not None:
                how.deployment.begin()
            async with stdio_server() as streams:
                status = 0
                try:
                    await serve(streams, target, how, written)
                except Exception as several:
                    fault, status = cause_of(several), 2
                    told = isinstance(fault, UsageError)
                    say(f"Error: {fault if told else _lost(target, fault)}", err=True)
                    await anyio.sleep(LAST_ANSWER)
                finally:
                    status = 128 + ended[0] if scope.cancel_called else status
                    if status:
                        if written:
                            written.close()
                        os._exit(status)  # a thread is left that waits for standard input
    finally:
        if written:
            written.close()


def _lost(target: Target, fault: BaseException) -> str:
    return f"{target.name}: {type(fault).__name__}: {fault}"


def _over_http(target: Target, how: ShiftOptions, options: ProxyOptions) -> None:

    listener = bind("127.0.0.1", options.port or 0)
    written = _trace(options.trace, target)
    say(f"Serving on http://127.0.0.1:{listener.getsockname()[1]}/mcp", err=True)
    settings = uvicorn.Config(
        application(target, how, written, idle=options.idle),
        http=Impatient,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=2,
    )
    try:
        uvicorn.Server(settings).run(sockets=[listener])
    finally:
        if written:
            written.close()


def _trace(path: Path | None, target: Target) -> Any:

    return Trace(path, tuple(target.headers.values())) if path else None


# -- a dry run -----------------------------------------------------------------------------------


def _dry_run(target: Target, how: ShiftOptions, options: ProxyOptions) -> None:
    """Prints what would be shown of the tools, and of one result."""
    call = _call(options.tried) if options.tried else None
    shown: dict[str, Any] = {}

    def look(listed: list[dict[str, Any]]) -> None:
        shown.update(_print_tools(listed, how, options.as_json))

    try:
        trial = asyncio.run(try_call(target, how, call, look))
    except BaseExceptionGroup as several:
        fault = cause_of(several)
        if isinstance(fault, UsageError):
            raise fault from None
        raise UsageError(_lost(target, fault)) from None
    if options.as_json:
        print_json({**shown, "result": trial})
    else:
        _print_trial(trial)


def _call(text: str) -> tuple[str, dict[str, Any]]:
    name, _, arguments = text.strip().partition(" ")
    try:
        return name, msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            f"--try {text!r}: the arguments are not a JSON object ({fault}). Write it as "
            """'TOOL {"name": "value"}'"""
        ) from None


def _print_trial(trial: Trial | None) -> None:
    if trial is None:
        say(
            "\nNo real result: no tool that is marked readOnlyHint answered. Name a call with "
            "--try 'TOOL {...}'; the call is really made, twice."
        )
        return
    say(f"\nA real call:  {trial.tool} {as_json(trial.arguments)}")
    say(_quoted(trial.before))
    if trial.after is None:
        say("No single shown tool corresponds to it.")
        return
    say(f"is shown as:  {trial.shown_as} {as_json(trial.shown_arguments)}")
    same = _quoted(trial.after) == _quoted(trial.before)
    say("  (the same result)" if same else _quoted(trial.after))
    by = ", ".join(trial.by)
    say(f"Changed by: {by}" if by else "No shift changed this call or its result.")


def _quoted(answer: dict[str, Any]) -> str:
    """An answer in words, the first lines of them."""
    lines = "\n".join(words_of(answer)).splitlines() or ["(no text)"]
    more = len(lines) - MAX_LINES
    cut = [*lines[:MAX_LINES], *([f"... {more} more lines"] if more > 0 else [])]
    return "\n".join(f"  | {visible(line)[:MAX_WIDTH]}" for line in cut)


def _print_tools(listed: list[dict[str, Any]], how: ShiftOptions, as_json: bool) -> dict[str, Any]:
    """Prints the tools before and after; as JSON they are returned instead."""
    live, left = shift_tools(listed, how)
    shown = list(zip(live.tools(), live.documents(), strict=True))
    if as_json:
        after = [words for _, words in shown]
        result: dict[str, Any] = {"before": listed, "after": after, "in_use": _in_use(live.scene)}
        return {**result, "not_applicable": left}
    rows = [
        (_stands_for(tool), tool.name, _changes(live.toolbox, tool, words)) for tool, words in shown
    ]
    seen = {name for tool, _ in shown for name in tool.origin}
    rows += [(name, "(hidden)", "") for name in live.toolbox.sources if name not in seen]
    print_table("", ("tool", "shown as", "what has changed"), rows)
    for name, what in _in_use(live.scene).items():
        say(f"{name}: {what}")
    for name, why in left.items():
        say(f"{name} is not applicable: {why}")
    if live.moves:
        say("The tools change again while they are used.")
    return {}


def _stands_for(tool: Tool) -> str:
    """The true tools behind a shown one; of many, the first three."""
    more = len(tool.origin) - 3
    named = ", ".join(tool.origin[:3])
    return f"{named} and {more} more" if more > 0 else named or "(made up)"


def _in_use(scene: Scene) -> dict[str, str]:
    """What happens when the tools are called, which their list does not show, by shift."""

    known = {write_stack((one,)): find_shift(one.shift) for one in scene.shifts}
    return {
        name: f"{'results' if shift.dimension == 'observation' else 'calls'}: {shift.summary}"
        for name, shift in known.items()
        if shift.tier == "interaction"
    }


def _changes(toolbox: Any, tool: Any, words: dict[str, Any]) -> str:
    """What differs in one tool, in a few words."""
    source = toolbox.sources.get(tool.origin[0]) if len(tool.origin) == 1 else None
    if source is None:
        return "new"
    before = source.raw
    changes = []
    own = {source.known[p.fact]: p.name for p in tool.params if p.fact in source.known}
    changes += [f"{old} -> {new}" for old, new in own.items() if old != new]
    changes += [f"- {p.name}" for p in source.tool.params if p.name not in own]
    changes += [f"+ {p.name}" for p in tool.params if p.fact not in source.known]
    was = {p.fact: p.schema for p in source.tool.params}
    changes += [
        f"{aspect} of {p.name}"
        for p in tool.params
        if p.fact in was
        for aspect in _aspects(was[p.fact], p.schema)
    ]
    if words.get("description", "") != before.get("description", ""):
        changes.append("description" if words.get("description") else "no description")
    if "outputSchema" in before and "outputSchema" not in words:
        changes.append("no outputSchema")
    return ", ".join(changes)


def _aspects(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs between two schemas of a parameter, beside its description."""
    named = {"type": "type", "enum": "choices", "default": "default"}
    aspects = [what for key, what in named.items() if before.get(key) != after.get(key)]
    same = {**before, "description": ""} == {**after, "description": ""}
    return aspects or ([] if same else ["schema"])
