"""What commands share: options, the structs that hold them, and help under headings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import click
import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, NotRead, some_unread
from toolshift.core.terminal import say
from toolshift.core.text import escaped
from toolshift.core.tool import JSON
from toolshift.lm.bases import WHEELS
from toolshift.lm.device import DEVICE, DEVICES
from toolshift.runs.location import check_address, check_local, is_address
from toolshift.runs.pool import Executor

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
Options = TypeVar("Options")


if TYPE_CHECKING:
    _PathType = click.Path[Path]
    _PlaceType = click.ParamType[Path | str]
else:  # earlier versions of click have no such parameters
    _PathType, _PlaceType = click.Path, click.ParamType


class _Local(_PathType):
    """A file or folder of this machine; an address is refused, which a path would cut short."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """A path."""
        check_local(os.fspath(value), _name(param))
        return super().convert(value, param, ctx)


PATH = _Local(path_type=Path)


class _Place(_PlaceType):
    """A folder, or the address of one in an object store, which is kept as it is written."""

    name = "path"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """An address as text; all else as a path."""
        check_address(str(value), _name(param))
        return str(value) if is_address(str(value)) else Path(str(value))


PLACE = _Place()


def _name(param: click.Parameter | None) -> str:
    """An option or argument as the help has it."""
    if isinstance(param, click.Option):
        return param.opts[-1]
    return param.human_readable_name if param is not None else "path"


# -- one struct a command ------------------------------------------------------------------------


def options_struct(
    kind: type[Options],
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Pass a command its options as one frozen struct, whose fields have the names of the options.

    A field that is such a struct itself is made of the options that its own fields name. Where the
    command asks for JSON and its input was not read, that is said as JSON too.
    """

    def decorate(action: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(action)
        def command(**given: object) -> None:
            options = _made(kind, given)
            assert not given, f"{kind.__name__} has no field for {', '.join(given)}"
            try:
                action(options)
            except NotRead as fault:
                if getattr(options, "as_json", False):
                    said = {"error": str(fault), "unread": [fault.intake]}
                    say(escaped(JSON.encode(said).decode()))  # one line, as `watch` prints
                raise

        return command

    return decorate


def _made(kind: type[Options], given: dict[str, object]) -> Options:
    """A struct of what is given, which is taken away; a field without an option has its default."""
    found: dict[str, Any] = {}
    for name, of in get_type_hints(kind).items():
        if _is_struct(of):
            found[name] = _made(of, given)
        elif name in given:
            found[name] = given.pop(name)
    return kind(**found)


def _is_struct(kind: object) -> bool:
    return is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def say_unread(intakes: Iterable[Intake]) -> None:
    """Says on standard error what could not be read of inputs, where that is anything."""
    for each in some_unread(intakes):
        say(f"Warning: {each.source}: {each.missing()}", err=True)


# -- help under headings ---------------------------------------------------------------------------

HEADINGS = {
    "Tasks": (
        "suite", "worlds", "kinds", "shifts", "without", "severities", "tasks", "trials",
        "baseline", "margin", "by", "seal", "plan", "data", "count", "alpha", "slips", "share",
    ),
    "Agents": (
        "agent", "agents", "commands", "urls", "agent_timeout", "isolate", "baseline_agent",
        "base_url", "protocol", "max_cost", "price_in", "price_out", "judge", "judge_url", "preset",
        "model", "adapter", "full", "rank", "layout",
    ),
    "Output": (
        "out", "estimate", "only_distinguishable", "inconclusive", "junit", "markdown", "bundle",
        "as_json", "show_mask", "sarif", "fail_on",
    ),
}  # fmt: skip
"""Headings of the help of long commands, and the parameters below them; others are advanced."""


class Sectioned(click.Command):
    """A command of many options: its help lists them under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each heading with its options, in the order in which the command has them."""
        place = {name: heading for heading, names in HEADINGS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*HEADINGS, "Advanced")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections[place.get(param.name or "", "Advanced")].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _to_children(variable: str) -> Callable[..., None]:
    """Hands an option on by the environment, which processes that are started have too."""

    def hand_on(_context: click.Context, _param: click.Parameter, value: object) -> None:
        if value:
            os.environ[variable] = str(value)

    return hand_on


def header_of(text: str, option: str) -> tuple[str, str]:
    """The name and the value of a header, with variables of the environment."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"{option}: write it as 'Name: value'")
    return name.strip(), with_variables(value, f"{option} {name}").strip()


def with_variables(text: str, option: str) -> str:
    """A text in which each `$NAME` is what the environment has under that name."""
    missing = [one for one in re.findall(r"\$(\w+)", text) if one not in os.environ]
    if missing:
        raise UsageError(f"{option}: the environment has no {missing[0]}")
    return re.sub(r"\$(\w+)", lambda one: os.environ[one[1]], text)


# -- options that several commands have ----------------------------------------------------------


def options(*those: Option) -> Option:
    """Several options as one decorator."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(those):
            command = option(command)
        return command

    return decorate


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
judging = options(
    click.option(
        "--judge",
        default="",
        metavar="chat:MODEL",
        help="A model that reads endings in prose, and nothing else (docs/strangers.md).",
    ),
    click.option("--judge-url", metavar="URL", help="Its base url, where it is another."),
)
entities = options(
    click.option("--seed", default=0, show_default=True, help="Seed of the world (the first one)."),
    click.option(
        "--pool",
        default="dev",
        show_default=True,
        help="Pool of entities and shifted wordings: train, dev or test. Test is for planned "
        "studies only.",
    ),
    click.option("--size", default=200, show_default=True, help="Entities in each world."),
)
scope = options(
    click.option(
        "--suite",
        default="quick",
        show_default=True,
        help="quick, standard or paper; see `toolshift list suites`.",
    ),
    click.option("--world", "worlds", multiple=True, help="World instead of the suite's; repeat."),
    click.option("--kind", "kinds", multiple=True, help="Only this task kind; repeat."),
    click.option(
        "--shift",
        "shifts",
        multiple=True,
        metavar="NAME[:SEV][+NAME[:SEV]][*TASKS]",
        help="Shift instead of the suite's; repeat. a+b composes; a tier's name or 'all' stands "
        "for its shifts; 'clean' for none; *12 limits it to 12 tasks a world.",
    ),
    click.option("--without", multiple=True, help="Hold out a shift, or a whole tier; repeat."),
    click.option("--severity", "severities", multiple=True, type=int, help="1 to 3; repeat."),
)
"""The options that say which worlds, kinds and shifts: those of a `Selection`."""

selection = options(
    scope,
    click.option(
        "--tasks",
        type=int,
        help="Tasks of each world and seed (default: the suite's). Where a shift applies to few of "
        "them and its arm has a number of its own (*12), more tasks are drawn for it.",
    ),
    click.option("--trials", default=1, show_default=True, help="Runs of each scene."),
    click.option("--seeds", default=1, show_default=True, help="How many seeds, from --seed up."),
    entities,
    click.option(
        "--placebo/--no-placebo",
        default=True,
        show_default=True,
        help="Run the placebo arm, the noise floor of every contrast.",
    ),
    click.option(
        "--max-repeats",
        type=int,
        default=0,
        help="End an episode where the same call has had the same result this often: 6 saves a "
        "fifth of the turns of local models and turned none of 10,660 verdicts (docs/agents.md).",
    ),
)
"""The options that make a `toolshift.runs.suite.Selection`."""

machine = options(
    click.option(
        "--device",
        type=click.Choice(DEVICES),
        expose_value=False,
        callback=_to_children(DEVICE),
        help=f"What local models compute on. Default: ${DEVICE}, or a GPU where there is one.",
    ),
    click.option(
        "--wheels",
        metavar="FOLDER",
        expose_value=False,
        callback=_to_children(WHEELS),
        help=f"Folder of wheels and weights, for a machine without network. Default: ${WHEELS}.",
    ),
)
"""The options of commands that load base models."""

at_once = options(
    click.option("--workers", default=1, show_default=True, help="Processes for scripted agents."),
    click.option("--concurrency", type=int, help="Episodes at once, for chat and your own agents."),
)
executor = click.option(
    "--executor",
    type=click.Choice(get_args(Executor)),
    default="process",
    show_default=True,
    help="Where workers are: processes here, or a cluster of Ray, all CPUs of which are used where "
    "--workers is 1 (docs/large.md).",
)
in_processes = options(
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Processes; the bytes are the same.",
    ),
    executor,
)
"""The options of commands that make data."""

model = options(
    click.option("--base-url", help="chat: the address before /chat/completions."),
    click.option(
        "--protocol",
        type=click.Choice(["native", "text"]),
        help="chat: native tool calls, or tools written into the prompt.",
    ),
    click.option("--temperature", type=float, help="chat: sampling temperature; default 0."),
    click.option("--max-tokens", type=int, help="chat: most tokens of one reply."),
    click.option(
        "--timeout",
        type=float,
        help="chat: seconds of silence before giving up; programs: seconds for an episode (300).",
    ),
    click.option(
        "--agent-timeout",
        type=float,
        metavar="SECONDS",
        help="Your own functions: seconds for one turn, in a process of their own, which is ended "
        "where it takes longer.",
    ),
    click.option(
        "--isolate",
        is_flag=True,
        flag_value=True,
        default=None,
        help="Your own programs: start them in namespaces of their own (Linux), where they see no "
        "other process and no run folder.",
    ),
    click.option("--retries", type=int, help="chat: attempts after the first."),
    click.option("--price-in", type=float, help="chat: dollars per million input tokens."),
    click.option("--price-out", type=float, help="chat: dollars per million output tokens."),
    click.option(
        "--max-cost",
        type=float,
        help="chat: dollars that the whole run may cost; it then stops, resumably.",
    ),
)
"""The options that make `ModelOptions`."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Settings of `chat:` agents; None leaves one as the agent has it."""

    base_url: str | None
    protocol: str | None
    temperature: float | None
    max_tokens: int | None
    timeout: float | None
    agent_timeout: float | None
    isolate: bool | None
    retries: int | None
    price_in: float | None
    price_out: float | None
    max_cost: float | None

    def given(self) -> dict[str, Any]:
        """The settings that are not left as they are."""
        return {name: value for name, value in asdict(self).items() if value is not None}
