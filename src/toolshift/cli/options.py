"""What commands share: marks of options, structs that hold them, and values of headers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from toolshift.agents.answer_cache import Exchanges
from toolshift.cli.parameters import field_option, option, options, options_of
from toolshift.cli.request_fields import request_fields, request_headers
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, some_unread
from toolshift.core.terminal import say
from toolshift.lm.bases import WHEELS
from toolshift.lm.device import DEVICE, DEVICES
from toolshift.runs.design import read_budget
from toolshift.runs.pool import Executor
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection

VARIABLE = r"\$(?:\{(\w+)\}|(\w+))"
"""A variable of the environment in the value of a header: `${NAME}` or `$NAME`."""


def say_unread(intakes: Iterable[Intake]) -> None:
    """Says on standard error what could not be read of inputs, where that is anything."""
    for intake in some_unread(intakes):
        say(f"Warning: {intake.source}: {intake.missing()}", err=True)


def _to_children(variable: str) -> Callable[..., None]:
    """Hands an option on by the environment, which processes that are started have too."""

    def hand_on(_context: click.Context, _param: click.Parameter, value: object) -> None:
        if value:
            os.environ[variable] = str(value)

    return hand_on


def header_of(text: str, option: str) -> tuple[str, str]:
    """The name and the value of a header, with variables of the environment."""
    name, value = named_header(text, option)
    return name, with_variables(value, f"{option} {name}").strip()


def named_header(text: str, option: str) -> tuple[str, str]:
    """The name and the value of a header, as they are written."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"{option}: write it as 'Name: value'")
    return name.strip(), value.strip()


def headers_of(texts: Iterable[str]) -> dict[str, str]:
    """The headers of `--header`."""
    return dict(header_of(each, "--header") for each in texts)


def with_variables(text: str, option: str) -> str:
    """A text in which each `${NAME}` or `$NAME` is what the environment has under that name."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in os.environ:
            raise UsageError(f"{option}: the environment has no {name}")
        return os.environ[name]

    return re.sub(VARIABLE, value, text)


# -- options that several commands have ----------------------------------------------------------

AsJson = Annotated[bool, option("--json", help="Print JSON instead of tables.")]
as_json = field_option("as_json", AsJson, False)

Headers = Annotated[
    tuple[str, ...],
    option(
        "--header",
        metavar="'NAME: VALUE'",
        help="Header to send to the http address; ${VAR} is read from the environment; repeat.",
    ),
]

JudgeModel = Annotated[
    str,
    option(
        metavar="chat:MODEL",
        help="Model that reads answers and refusals in prose, and nothing else "
        "(docs/strangers.md).",
    ),
]
JudgeUrl = Annotated[
    str | None, option(metavar="URL", help="Base url of the judge, if it is not the default.")
]

_SEED = option(help="Seed of the world (the first one).")
_POOL = option(
    help="Pool of entities and shifted wordings: train, dev or test. Test is for planned studies "
    "only."
)
_SIZE = option(help="Entities in each world.")
UNDER = option(
    metavar="NAME[:SEV][+NAME[:SEV]]",
    help="Shifts that apply to every scene, clean ones too, such as crowded_list:3: the tools "
    "among 400 others (docs/tool-sets.md).",
)
SCOPE = {
    "suite": option(
        help="quick, standard or paper; see `toolshift list suites`. [default: standard for worlds "
        "of your own, else quick]"
    ),
    "worlds": option("--world", help="World to use instead of the suite's; repeat."),
    "kinds": option(
        "--kind", metavar="[WORLD/]KIND", help="Only this task kind, such as poi/booking; repeat."
    ),
    "shifts": option(
        "--shift",
        metavar="NAME[:SEV][+NAME[:SEV]][*TASKS]",
        help="Shift to use instead of the suite's; repeat. a+b composes; the name of a tier or "
        "'all' means all its shifts; 'clean' means no shift; *12 limits it to 12 tasks per "
        "world.",
    ),
    "without": option(help="Leave out a shift, or a whole tier; repeat."),
    "severities": option("--severity", help="1 to 3; repeat."),
}
"""The options that say which worlds, kinds and shifts: fields of a `Selection`."""

Selected = Annotated[
    Selection,
    options_of(
        Selection,
        {
            **SCOPE,
            "tasks": option(
                help="Tasks of each world and seed (default: the suite's). If a shift with its "
                "own number (*12) applies to too few of them, more tasks are drawn for it.",
            ),
            "trials": option(help="Runs of each scene."),
            "seeds": option(help="Number of seeds, from --seed up."),
            "seed": _SEED,
            "pool": _POOL,
            "size": _SIZE,
            "placebo": option(
                "--placebo/--no-placebo",
                help="Run the placebo arm, which measures the noise floor.",
            ),
            "max_repeats": option(
                help="End an episode when the same call has had the same result this many times: "
                "6 saves a fifth of the turns of local models and changed none of 10,660 "
                "verdicts (docs/agents.md).",
                show_default=False,
            ),
            "under": UNDER,
        },
    ),
]
"""A selection with all its options."""


@dataclass(frozen=True, kw_only=True)
class Entities:
    """Which entities a world has."""

    seed: Annotated[int, _SEED] = 0
    pool: Annotated[str, _POOL] = "dev"
    size: Annotated[int, _SIZE] = 200


@dataclass(frozen=True, kw_only=True)
class Wordings:
    """How the shifts of a proxy choose."""

    seed: Annotated[int, option(help="Seed of all random choices.")] = 0
    pool: Annotated[str, option(help="Pool of wordings: train, dev or test.")] = "dev"


machine = options(
    click.option(
        "--device",
        type=click.Choice(DEVICES),
        expose_value=False,
        callback=_to_children(DEVICE),
        help=f"Device for local models. Default: ${DEVICE}, or a GPU if there is one.",
    ),
    click.option(
        "--wheels",
        metavar="FOLDER",
        expose_value=False,
        callback=_to_children(WHEELS),
        help=f"Folder of wheels and weights, for a machine without network. Default: ${WHEELS}.",
    ),
)
"""The options of commands that load base models; no field holds them."""

AgentWorkers = Annotated[int, option(help="Number of processes for scripted agents.")]
Concurrency = Annotated[
    int | None, option(help="Number of episodes at the same time, for chat and your own agents.")
]
Where = Annotated[
    Executor,
    option(
        "--executor",
        help="Where workers run: processes on this machine, or a Ray cluster, where --workers 1 "
        "uses all CPUs (docs/large.md).",
    ),
]
DataWorkers = Annotated[
    int,
    option(type=click.IntRange(min=1), help="Number of processes; it does not change the output."),
]


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Which answers of models are used again."""

    cache: Annotated[
        str | None,
        option(
            metavar="FOLDER",
            help="Models: store answers in this folder, and reuse those of earlier runs for "
            "identical requests. Without it, answers are reused only within this run; `off` "
            "sends every request (docs/agents.md).",
        ),
    ] = None
    fresh: Annotated[
        bool,
        option(
            help="Models: do not use answers of earlier runs in --cache; replace them by new ones."
        ),
    ] = False

    cache_own: Annotated[
        bool,
        option(
            help="Your own functions: store their replies too. Use this only if each reply "
            "depends only on the messages and tools."
        ),
    ] = False

    def exchanges(self) -> Exchanges:
        """The store of a run."""
        return Exchanges(self.cache, self.fresh, self.cache_own)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Which episodes of a plan are played, and what they may cost."""

    design: Annotated[
        Literal["fixed", "sequential"] | None,
        option(
            help="fixed runs the whole plan; sequential stops when the result is decided "
            "(docs/budget.md)."
        ),
    ] = None
    budget: Annotated[
        str,
        option(
            metavar="2000calls|5usd|20min",
            help="Spend no more than this, on the most decisive episodes, and report what stays "
            "undecided; the design is then sequential.",
        ),
    ] = ""

    @property
    def given(self) -> list[str]:
        """The options that are given, as they are written."""
        return [f"--{name}" for name in ("design", "budget") if getattr(self, name)]

    def is_sequential(self, out: Path | str | None = None, usual: bool = False) -> bool:
        """Whether a run stops when it is decided; one that is in `out` goes on as it was."""
        if self.budget:
            read_budget(self.budget)
            if self.design == "fixed":
                raise UsageError(
                    "--budget is for the sequential design; --max-cost limits a fixed one"
                )
            return True
        if self.design is not None:
            return self.design == "sequential"
        if usual and isinstance(out, Path) and (out / "manifest.json").exists():
            return RunFolder.read(out).manifest.sequential
        return usual


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Settings of `chat:` agents; None leaves one as the agent has it."""

    base_url: Annotated[str | None, option(help="chat: the address before /chat/completions.")] = (
        None
    )
    protocol: Annotated[
        Literal["native", "text"] | None,
        option(help="chat: native tool calls, or tools written into the prompt."),
    ] = None
    temperature: Annotated[float | None, option(help="chat: sampling temperature; default 0.")] = (
        None
    )
    max_tokens: Annotated[int | None, option(help="chat: maximum number of tokens in a reply.")] = (
        None
    )
    timeout: Annotated[
        float | None,
        option(
            help="chat: seconds without data before giving up; programs: seconds for an episode "
            "(300)."
        ),
    ] = None
    agent_timeout: Annotated[
        float | None,
        option(
            metavar="SECONDS",
            help="Your own functions: seconds for one turn. The function then runs in its own "
            "process, which is ended if it takes longer.",
        ),
    ] = None
    isolate: Annotated[
        bool | None,
        option(
            help="Your own programs: start them in separate namespaces (Linux), where they see no "
            "other process and no run folder."
        ),
    ] = None
    set_: Annotated[
        tuple[str, ...],
        option(
            "--set",
            metavar="NAME=VALUE",
            help="Models: set a field of each request, as in reasoning_effort=high or "
            "thinking.budget_tokens=2048; VALUE is JSON, or a text. Repeatable.",
        ),
    ] = ()
    unset: Annotated[
        tuple[str, ...],
        option(
            metavar="NAME",
            help="Models: leave this field out of each request, such as temperature. Repeatable.",
        ),
    ] = ()
    model_header: Annotated[
        tuple[str, ...],
        option(
            metavar="'NAME: VALUE'",
            help="Models: header for each request; ${VARIABLE} is read from the environment. "
            "Repeatable.",
        ),
    ] = ()
    requests_per_minute: Annotated[
        float | None, option(help="Models: maximum number of requests per minute.")
    ] = None
    tokens_per_minute: Annotated[
        float | None,
        option(help="Models: maximum number of tokens per minute (sent, and allowed for replies)."),
    ] = None
    retries: Annotated[int | None, option(help="chat: number of attempts after the first.")] = None
    price_in: Annotated[float | None, option(help="chat: dollars per million input tokens.")] = None
    price_out: Annotated[float | None, option(help="chat: dollars per million output tokens.")] = (
        None
    )
    price_cached: Annotated[
        float | None,
        option(help="Models: dollars per million input tokens that the provider has cached."),
    ] = None
    batch: Annotated[
        bool | None,
        option(
            help="Models: send requests in batches, at half the price (OpenAI, Anthropic); a run "
            "takes hours, and can be stopped and resumed."
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        option(help="chat: cost limit of the whole run, in dollars; a stopped run can be resumed."),
    ] = None

    def given(self) -> dict[str, Any]:
        """The settings that are not left as they are."""
        own = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        changed = own.pop("set_", ()), own.pop("unset", ())
        fields = request_fields(*changed)
        headers = request_headers(own.pop("model_header", ()))
        return (
            own
            | ({"options": fields} if fields else {})
            | ({"headers": headers} if headers else {})
        )
