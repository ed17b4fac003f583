"""The group of all commands: a table, from which a command is imported when it is asked for."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any, NamedTuple

import click

from toolshift.core.command_line import PLUGINS
from toolshift.core.errors import IN_THE_LAB, UsageError, ended
from toolshift.core.installation import extra
from toolshift.core.names import unknown
from toolshift.core.registry import Registry
from toolshift.core.terminal import say
from toolshift.core.text import visible

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Entry(NamedTuple):
    """A command: the `module:object` that it is, its line in the help, and the extra it needs."""

    place: str
    help: str
    extra: str = ""


SECTIONS = {
    "Measure": {
        "run": Entry(
            "toolshift.cli.run:run",
            "Run agents in clean and shifted scenes, and report where they break.",
        ),
        "change": Entry(
            "toolshift.cli.change:change",
            "Show what a change of tools breaks for your agents, and what is untested.",
        ),
        "report": Entry(
            "toolshift.cli.report:report",
            "Print the report of run folders again, and write or open their pages.",
        ),
        "compare": Entry(
            "toolshift.cli.runs:compare", "Compare two runs, paired on the scenes that both have."
        ),
        "gate": Entry(
            "toolshift.cli.gate:gate",
            "Stop a release that is worse than a baseline, scene by scene.",
        ),
        "trace": Entry(
            "toolshift.cli.trace:trace", "Print one episode of a run and mark where it went wrong."
        ),
        "show": Entry(
            "toolshift.cli.scenes:show",
            "Show a scene before and after a shift, or what a shift changes.",
        ),
        "minimise": Entry(
            "toolshift.cli.scenes:minimise",
            "Find the smallest scene in which an episode still fails.",
        ),
        "regrade": Entry(
            "toolshift.cli.runs:regrade", "Grade stored traces again, and show what has changed."
        ),
        "replay": Entry(
            "toolshift.cli.replay:replay",
            "Replay episodes of a run or of a gate's bundle, and check the verdicts.",
        ),
        "list": Entry(
            "toolshift.cli.listing:list_",
            "List worlds, shifts, suites, agents, kinds or base models.",
        ),
        "check": Entry(
            "toolshift.cli.check:check", "Check worlds and shifts, or a file of your own tasks."
        ),
    },
    "Watch": {
        "lock": Entry("toolshift.cli.lock:lock", "Record an agent's tools in a file."),
        "verify": Entry(
            "toolshift.cli.verify:verify",
            "Compare tools with their lock: what changed, and what it costs your agent.",
        ),
        "watch": Entry(
            "toolshift.cli.watch:watch",
            "Follow a stream of calls and report drift.",
        ),
    },
    "Train": {
        "data": Entry("toolshift.cli.data:data", "Write expert trajectories as training data."),
        "augment": Entry(
            "toolshift.cli.augment:augment",
            "Shift a share of your own tool-use conversations, for training.",
        ),
        "train": Entry(
            "toolshift.cli.train:train",
            "Train a model: sft, paft (a share of the trajectories in shifted scenes), grpo.",
        ),
        "retrain": Entry(
            "toolshift.cli.retrain:command",
            "Train a model on exactly what a release changes; keep it only if nothing is lost.",
        ),
        "export": Entry(
            "toolshift.cli.export:export",
            "Write shifted scenes as a package for verifiers, OpenEnv or TRL.",
        ),
    },
    "Connect": {
        "world": Entry(
            "toolshift.cli.world:world",
            "A world from your own tools: MCP, OpenAPI or Python functions.",
        ),
        "shift": Entry(
            "toolshift.cli.shift:shift",
            "Make a shift from a coming change of tools.",
        ),
        "serve": Entry(
            "toolshift.cli.serve:serve",
            "Serve scenes over MCP to agents that run as separate programs.",
            "connect",
        ),
        "proxy": Entry(
            "toolshift.cli.proxy:proxy",
            "Show a real MCP server to any MCP client through shifts.",
            "connect",
        ),
        "login": Entry(
            "toolshift.cli.login:login",
            "Log in to a server with OAuth, and store the login for other commands.",
            "connect",
        ),
        "model-proxy": Entry(
            "toolshift.cli.model_proxy:model_proxy",
            "Shift an agent's tools between the agent and its model.",
            "connect",
        ),
    },
}
"""Every command, by what it is for, in the order in which they are of use."""

HIDDEN = {
    "schedule": Entry(
        "toolshift.cli.schedule:schedule",
        "Write a cron line or a workflow that measures an agent regularly.",
    ),
}
"""Old commands that no other has taken over; they are run as they are."""


class Old(NamedTuple):
    """What an old command has become.

    Attributes:
        now: the words that stand in its place.
        form: the new form, as it is said on standard error; "" for a spelling, which stays.
        options: the names of its options that have changed.
        needs: an option without which it did nothing.
    """

    now: tuple[str, ...]
    form: str
    options: Mapping[str, str] = {}
    needs: str = ""


OLD = {
    ("view",): Old(("report", "--open"), "`toolshift report --open`"),
    ("leaderboard",): Old(
        ("report",), "`toolshift report RUN... --site FOLDER`", {"--out": "--site"}, "--out"
    ),
    ("trend",): Old(("report",), "`toolshift report FOLDER --site FOLDER`", {"--out": "--site"}),
    ("recheck",): Old(("replay", "--sample", "100"), "`toolshift replay RUN --sample NUMBER`"),
    ("schedule",): Old(("schedule",), "two files to copy: examples/schedule (docs/watch.md)"),
    ("world", "check"): Old(("check", "--no-rules"), "`toolshift check FILE`"),
    ("shift", "show"): Old(("show",), "`toolshift show SHIFT`"),
    ("minimize",): Old(("minimise",), ""),
}
"""Old commands, which still run for one minor version."""

OLD_OPTIONS = {
    ("proxy",): {"--http": ("--port", "--port PORT")},
    ("watch",): {"--metrics": ("--metrics-port", "--metrics-port PORT")},
    ("world", "init"): {
        "--mcp": ("mcp:", "'mcp:COMMAND'"),
        "--mcp-url": ("", "URL"),
        "--openapi": ("", "FILE"),
        "--python": ("python:", "python:MODULE[:NAME]"),
    },
}
"""Old options by command: what stands before their value now, and how that is said."""

GOES = "the old form will be removed in the next minor version"


def _no_command(thing: object) -> str:
    """What is wrong with what another package names as a command; "" for nothing."""
    if isinstance(thing, click.Command | Entry):
        return ""
    return (
        f"is of type {type(thing).__name__}, not a click command: put @click.command() above the "
        "function"
    )


COMMANDS: Registry[click.Command | Entry] = Registry(
    "command", {}, "toolshift.commands", wrong=_no_command
)
"""Commands of other packages: an entry point names a click command, or an `Entry` of one whose
import takes long, so that the help does not wait for it."""

INSTALLED = "Installed beside ToolShift"
"""The heading of commands of other packages."""

LAB = ("reproduce", "artifacts")
"""Commands that have moved to a distribution of their own."""


def renewed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line in their new form, and what is to be said of the old one."""
    words, notes = list(words), []
    for length in (2, 1):
        name = tuple(words[:length])
        old = OLD.get(name)
        if old is None:
            continue
        rest = words[length:]
        if old.needs and not any(word.partition("=")[0] in (old.needs, "--help") for word in rest):
            raise UsageError(f"{old.needs} is missing; {' '.join(name)} is now {old.form}")
        words = [*old.now, *_renamed(rest, old.options)]
        if old.form:
            notes.append(moved(" ".join(name), old.form))
        break
    for name, options in OLD_OPTIONS.items():
        if tuple(words[: len(name)]) == name:
            used = {word.partition("=")[0] for word in _before_dashes(words)}
            command = " ".join(name)
            notes += [
                moved(f"{command} {option}", f"`toolshift {command} {new}`")
                for option, (_, new) in options.items()
                if option in used
            ]
            words = _renamed(words, {option: now for option, (now, _) in options.items()})
    return words, notes


def _before_dashes(words: Sequence[str]) -> list[str]:
    """The words before `--`, behind which no option stands."""
    return list(takewhile(lambda word: word != "--", words))


def _renamed(words: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The words with options by their new names; where that is no option, it begins the value."""
    ours, renamed = _before_dashes(words), []
    rest, left = list(words[len(ours) :]), iter(ours)
    for word in left:
        option, equals, value = word.partition("=")
        now = names.get(option)
        if now is None:
            renamed.append(word)
        elif now.startswith("--"):
            renamed.append(now + equals + value)
        else:
            renamed.append(now + (value if equals else next(left, "")))
    return renamed + rest


def say_moved(old: str, new: str) -> None:
    """Says on standard error that an old form has become a new one."""
    say(moved(old, new), err=True)


def moved(old: str, new: str) -> str:
    """One line on an old form of a command, and its new one."""
    return f"toolshift {old} is now {new}; {GOES}."


class Group(click.Group):
    """Commands in the order of definition; an unknown one is answered with the nearest names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, or offers the nearest names."""
        if args and self.get_command(ctx, args[0]) is None:
            raise UsageError(unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


class ReaderGone(Exception):
    """Nobody reads stdout any more. Click ends with 1 there, which a gate's "fail" is."""


class LazyGroup(Group):
    """The commands of `SECTIONS`; a module is imported when one of its commands is asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; that its reader is gone is told apart from how it ends."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as gone:
            raise ReaderGone from gone

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, section by section; those of other packages last."""
        ours = [name for entries in SECTIONS.values() for name in entries]
        return list(dict.fromkeys((*ours, *COMMANDS.declared())))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command, by an old name too; says where one is that has left ToolShift."""
        args, notes = renewed(args)
        for line in notes if not ctx.resilient_parsing else ():
            say(line, err=True)
        if args and args[0] in LAB and args[0] not in COMMANDS.declared():
            raise UsageError(f"toolshift {args[0]} is not installed: {IN_THE_LAB}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command."""
        if cmd_name in _ours():
            command = _command(cmd_name, _ours()[cmd_name])
            assert isinstance(command, click.Command)
            return command
        return _of_another(cmd_name) if cmd_name in COMMANDS.declared() else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each section of the help, from the table alone."""
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])
        if COMMANDS.declared():
            with formatter.section(INSTALLED):
                formatter.write_dl([(name, _help_of_another(name)) for name in COMMANDS.declared()])


def _ours() -> dict[str, Entry]:
    """Our commands by name, the hidden ones too."""
    return {
        name: entry for section in SECTIONS.values() for name, entry in section.items()
    } | HIDDEN


def _command(name: str, entry: Entry) -> Any:
    """Imports what an entry names; says which packages are missing for it."""
    module, _, path = entry.place.partition(":")
    try:
        return getattr(_imported(module), path)
    except ImportError as fault:
        if not entry.extra or (fault.name or "").startswith("toolshift"):
            raise
        raise UsageError(
            f"toolshift {name} needs packages that are not installed ({fault}): "
            f"{extra(entry.extra)}"
        ) from None


def _of_another(name: str) -> click.Command:
    """A command of another package."""
    found: Any = COMMANDS.find(name)
    try:
        found = _command(name, found) if isinstance(found, Entry) else found
    except UsageError:
        raise
    except (Exception, SystemExit) as fault:
        raise UsageError(f"{COMMANDS.title(name)} cannot be imported: {ended(fault)}") from fault
    if wrong := _no_command(found):
        raise UsageError(f"{COMMANDS.title(name)} {wrong}")
    assert isinstance(found, click.Command)
    return found


def _help_of_another(name: str) -> str:
    """The line of help of a command of another package, or what is wrong with it."""
    if name in _ours():
        package = COMMANDS.package(name)
        return (
            f"The command of {package} is not used, because ToolShift has one with this name. "
            "Rename it there."
        )
    try:
        found = COMMANDS.find(name)
    except UsageError as fault:  # the help of all other commands is not to go with it
        return f"Error: {visible(str(fault))}"
    return found.help if isinstance(found, Entry) else found.get_short_help_str(limit=100)


def _imported(module: str) -> Any:
    """Imports the module of a command.

    What it brings stays until the end: to look through it for garbage, now and later, takes a sixth
    of the time of a short command.
    """
    if module in sys.modules or not gc.isenabled():
        return import_module(module)
    gc.disable()
    try:
        imported = import_module(module)
        gc.freeze()
    finally:
        gc.enable()
    return imported


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="toolshift", message="%(package)s %(version)s")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py|MODULE",
    help="File or module with your own shifts and worlds; write it before the command; repeat.",
)
def toolshift(plugins: tuple[str, ...]) -> None:
    """Stress-test tool-use agents: how does your agent perform when its tools change?"""
    for plugin in plugins:
        if os.pathsep in plugin:
            module = plugin.partition(os.pathsep)[0]
            raise UsageError(
                f"--plugin {plugin}: name a file or a module; all its shifts and worlds are then "
                f"known by their names: --plugin {module}"
            )
    if plugins:
        os.environ[PLUGINS] = os.pathsep.join(plugins)  # worker processes inherit it
