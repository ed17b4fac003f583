"""Agents by spec: the short texts by which the command line and `evaluate` name an agent.

A spec begins with a word (`oracle`, `gives_up@0.5`) or a word and a colon (`chat:MODEL`). The kind
that stands behind this beginning reads the rest. `toolshift list agents` prints every form. Other
packages add kinds, agents or functions by the entry-point group `toolshift.agents`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from toolshift.agents.contestant import Contestant
from toolshift.agents.cost import CostLimit
from toolshift.agents.kind import AgentKind, AgentLike, AnyAgent, OwnKind, PluginKind
from toolshift.agents.separate import SeparateAgent, check_timeout
from toolshift.core.errors import UsageError
from toolshift.core.importing import in_module
from toolshift.core.names import unknown
from toolshift.core.registry import Registry
from toolshift.core.tool import JSON
from toolshift.episode.contract import (
    Agent,
    BatchAgent,
    CallableAgent,
    OutsideAgent,
    ScriptedAgent,
)

_PLANTED = "toolshift.agents.planted:KIND"
KINDS: Registry[Any] = Registry(
    "agent",
    {
        "oracle": "toolshift.episode.oracle:OracleAgent",
        "chat:": "toolshift.agents.chat:KIND",
        "responses:": "toolshift.agents.chat:KIND",
        "anthropic:": "toolshift.agents.chat:KIND",
        "gemini:": "toolshift.agents.chat:KIND",
        "litellm:": "toolshift.agents.litellm:KIND",
        "local:": "toolshift.agents.local_kind:LOCAL_KIND",
        "smol": "toolshift.agents.local_kind:SMOL_KIND",
        "smol:": "toolshift.agents.local_kind:SHIPPED_KIND",
        "gemma3-270m": "toolshift.agents.local_kind:GEMMA_KIND",
        "code:": "toolshift.connect.code_mode:CODE_KIND",
        "command:": "toolshift.connect.program_kind:COMMAND_KIND",
        "url:": "toolshift.connect.program_kind:URL_KIND",
        "*:": "toolshift.agents.kind:own",
        "memorises_names": _PLANTED,
        "memorises_order": _PLANTED,
        "ignores_results": _PLANTED,
        "parrots": _PLANTED,
        "offers_all": _PLANTED,
        "never_refuses": _PLANTED,
        "always_refuses": _PLANTED,
        "repeats_itself": _PLANTED,
        "gives_up": _PLANTED,
        "noisy": _PLANTED,
        "ignores_required": _PLANTED,
        "skims_parameters": _PLANTED,
        "fixed_types": _PLANTED,
        "fixed_choices": _PLANTED,
        "likest_choices": _PLANTED,
        "assumes_defaults": _PLANTED,
        "ignores_units": _PLANTED,
        "never_searches": _PLANTED,
        "calls_at_once": _PLANTED,
        "searches_once": _PLANTED,
        "cuts_the_list": _PLANTED,
        "half_memory": _PLANTED,
    },
    "toolshift.agents",
)
"""The beginnings of specs, each with an `AgentKind`, or with an object that `PluginKind` adapts."""


def find_kind(spec: str) -> AgentKind:
    """The kind of agent that a spec names."""
    found = re.match(r"[^:,+@]*:?", spec)
    begin = found[0] if found else ""
    try:
        return _kind(begin)
    except UsageError as fault:
        if not str(fault).startswith("unknown"):
            raise
        if written := in_module(spec, "reply"):
            raise UsageError(
                f"agent {spec!r}: a module and the function or class in it are written as {written}"
            ) from None
        raise UsageError(f"{fault} (`toolshift list agents`)") from None


def _kind(name: str) -> AgentKind:
    thing = KINDS.find(name)
    return thing if isinstance(thing, AgentKind) else PluginKind(name, thing)


def forms() -> dict[str, str]:
    """How agents can be named, and what each form means."""
    kinds = [*map(_kind, KINDS.names()), _kind("module:")]
    return {form: what for kind in kinds for form, what in kind.forms.items()}


def make_agent(spec: str, **options: Any) -> AnyAgent:
    """Makes the agent that a spec names.

    Args:
        spec: see the module's text.
        options: for `chat:` agents, the arguments of `ChatAgent`; programs take `timeout` and
            `concurrency`; others leave them alone.

    Returns:
        The agent, ready to be asked.

    Raises:
        UsageError: for an unknown name, a module or function that is not there, and whatever the
            agent itself needs and lacks.
    """
    return find_kind(spec).make(spec, options)


def is_free(spec: str) -> bool:
    """Whether running an agent costs no money; neither loads a model nor needs a key."""
    return find_kind(spec).is_free(spec)


def contestants(
    agents: Sequence[AgentLike],
    concurrency: int | None = None,
    *,
    agent_timeout: float | None = None,
    isolate: bool = False,
    **options: Any,
) -> list[Contestant]:
    """Makes agents ready for a study: specs are made, functions are wrapped."""
    _check_isolation(agents, isolate)
    check_settings(agents, options)
    options = {"cost_limit": CostLimit(options.get("max_cost")), **options}  # one for all of them
    found = [
        _contestant(agent, concurrency, _for_kind(agent, options, isolate)) for agent in agents
    ]
    if options.get("max_cost") is not None:
        _check_limit(found, options["cost_limit"])
    if agent_timeout is not None:
        check_timeout(agent_timeout)
        found = [
            _apart(each, given, agent_timeout) for each, given in zip(found, agents, strict=True)
        ]
        if not any(isinstance(each.agent, SeparateAgent) for each in found):
            raise UsageError(
                "--agent-timeout works only with your own functions and objects, and no agent "
                "here is one: leave it out (for programs and chat models use --timeout)"
            )
    names = [contestant.name for contestant in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two agents are named {name!r}: give one of them another name")
    return found


def _contestant(
    agent: AgentLike, concurrency: int | None, options: Mapping[str, Any]
) -> Contestant:
    spec = agent if isinstance(agent, str) else ""
    made: Any = agent
    if spec:
        made = make_agent(spec, **({"concurrency": concurrency} if concurrency else {}), **options)
    elif not isinstance(agent, Agent | ScriptedAgent | OutsideAgent):
        if isinstance(agent, type) or not callable(agent):
            raise UsageError(
                "an agent must be a spec, a function of (messages, tools), or an object with a "
                f"name and reply(turn), not {agent!r}"
            )
        made = CallableAgent(agent, getattr(agent, "__name__", type(agent).__name__))
    return Contestant(made, spec, concurrency or int(getattr(made, "concurrency", 1)))


def _is_program(agent: AgentLike) -> bool:
    """Whether it is started for each episode."""
    return isinstance(agent, str) and agent.startswith("command:")


def _check_isolation(agents: Sequence[AgentLike], isolate: bool) -> None:
    """Checks that isolation has an effect on an agent: nobody may rely on one that has none."""
    if isolate and not any(map(_is_program, agents)):
        raise UsageError(
            "--isolate works only with programs (--agent-command), and no agent here is one: "
            "leave it out"
        )


_CHECKED = ("agent_timeout", "isolate", "max_cost", "cost_limit")
"""Options with a check of their own."""


_SPOKEN = {"options": "--set or --unset (options)", "headers": "--model-header (headers)"}
"""How the command line says an option that is called otherwise in Python."""


def check_settings(
    agents: Sequence[AgentLike], options: Mapping[str, Any], others: Iterable[str] = ()
) -> None:
    """Checks that each option has an effect on an agent: nobody may rely on one that has none."""
    kinds = [find_kind(agent).takes for agent in agents if isinstance(agent, str)]
    if not options or None in kinds:  # a kind of others may take what it likes
        return
    taken = {name for takes in kinds for name in takes or ()}
    known = find_kind("chat:").takes or ()
    for name, value in options.items():
        if name in _CHECKED:
            continue
        if name not in known:
            raise UsageError(unknown("argument", name, (*known, *others)))
        if name not in taken and value is not None:
            programs = " and for programs" if name == "timeout" else ""
            raise UsageError(
                f"the option {_SPOKEN.get(name, name)} is for chat: agents{programs}, and no "
                "agent here is one, so it has no effect: leave it out"
            )


def _check_limit(found: Sequence[Contestant], limit: CostLimit) -> None:
    """Checks that the money of an agent is counted; a kind of others may count it as it likes."""
    if not any(
        getattr(each.agent, "cost_limit", None) is limit
        or (each.spec and not type(find_kind(each.spec)).__module__.startswith("toolshift."))
        for each in found
    ):
        raise UsageError(
            "max_cost (--max-cost) works only with chat: agents, and no agent here is one: leave "
            "it out"
        )


def _for_kind(agent: AgentLike, options: dict[str, Any], isolate: bool) -> dict[str, Any]:
    """The options of one agent; isolation is left out for agents that start no program."""
    return {**options, "isolate": True} if isolate and _is_program(agent) else options


def _apart(contestant: Contestant, given: AgentLike, timeout: float) -> Contestant:
    """The caller's own agent in a process of its own; others as they are."""
    agent, spec = contestant.agent, contestant.spec
    own = not spec or isinstance(find_kind(spec), OwnKind | PluginKind)
    if not own or not isinstance(agent, Agent) or isinstance(agent, ScriptedAgent | OutsideAgent):
        return contestant
    if isinstance(agent, BatchAgent):
        raise UsageError(
            f"agent {agent.name} answers in batches, which --agent-timeout cannot end one by "
            "one: leave it out, or give the agent its own time limit"
        )
    maker: Any = partial(make_agent, spec) if spec else partial(_given, agent)
    apart = SeparateAgent(agent, maker, timeout)
    return replace(contestant, agent=apart)


def _given(agent: Any) -> Any:
    return agent


def describe(contestant: Contestant) -> dict[str, Any]:
    """Describes an agent for a manifest: settings and hashes, no secret and no private path."""
    agent = contestant.agent
    settings = getattr(agent, "settings", None)
    if isinstance(agent, SeparateAgent):
        agent = agent.inner
    said: dict[str, Any] = {"name": contestant.name, "class": type(agent).__name__}
    if contestant.spec and not find_kind(contestant.spec).private:
        said["spec"] = contestant.spec
    for name in ("model", "decoding", "settings"):
        value = settings if name == "settings" else getattr(agent, name, None)
        if isinstance(value, str | int | float | dict) and value != "":
            said[name] = value
    if contestant.judge is not None:
        said["judge"] = contestant.judge.settings
    adapter = getattr(agent, "adapter", None)
    if isinstance(adapter, str | Path):
        said["adapter_sha256"] = hash_of_adapter(Path(adapter))
    own = agent.function if isinstance(agent, CallableAgent) else type(agent)
    if not str(getattr(own, "__module__", "")).startswith("toolshift."):
        said["source_sha256"] = _hash_source(own)
    try:
        found: dict[str, Any] = msgspec.json.decode(JSON.encode(said))  # as it will be read back
    except (TypeError, ValueError) as fault:
        raise UsageError(
            f"agent {contestant.name}: its settings cannot be written as JSON ({fault})"
        ) from None
    return found


def hash_of_adapter(folder: Path) -> str:
    """The hash by which a manifest names an adapter: of its weights and its configuration."""
    digest = sha256()
    for path in sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*config.json")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _hash_source(own: Any) -> str:
    """A hash of the file a function or class is in: a resumed run notices that it has changed."""
    own = inspect.unwrap(getattr(own, "func", own))  # `func` of a functools.partial
    try:
        path = inspect.getsourcefile(own if inspect.isroutine(own) else _class_of(own))
    except (TypeError, OSError):  # builtin, or typed into a notebook
        path = None
    return sha256(Path(path).read_bytes()).hexdigest()[:16] if path and Path(path).exists() else ""


def _class_of(own: Any) -> type:
    return own if isinstance(own, type) else type(own)
