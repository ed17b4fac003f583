"""Kinds of agents, by the beginning of their specs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import signature
from typing import Any, TypeAlias

from toolshift.core.errors import UsageError, defined_at, described, placed
from toolshift.core.importing import import_attribute
from toolshift.episode.contract import Agent, CallableAgent, OutsideAgent, ScriptedAgent

AnyAgent: TypeAlias = Agent | ScriptedAgent | OutsideAgent
AgentLike: TypeAlias = str | AnyAgent | Callable[..., object]
"""What an agent may be given as: a spec, an agent, or a function of (messages, tools)."""


class AgentKind:
    """Agents whose specs begin alike. Subclasses override what differs.

    Attributes:
        forms: how its specs are written, and what each means, for `toolshift list agents`.
        private: whether specs may hold a private path or a key, so that none is stored.
        takes: the options of a run that its agents take; None where it may take any.
    """

    forms: Mapping[str, str] = {}
    private = False
    takes: Collection[str] | None = None

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """Makes the agent of a spec."""
        raise NotImplementedError

    def is_free(self, spec: str) -> bool:
        """Whether running the agent costs no money; loads no model and needs no key."""
        return isinstance(self.make(spec, {}), ScriptedAgent)


class PluginKind(AgentKind):
    """Adapts a registered agent, agent class or function.

    Args:
        name: what it is registered as. Where this ends in `:`, the object is a function that
            makes an agent from what follows in the spec.
        thing: the object.
    """

    takes = ()

    def __init__(self, name: str, thing: Any) -> None:
        self.name, self.thing = name, thing
        about = (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0].rstrip(".")
        self.forms = {f"{name}..." if name.endswith(":") else name: about}

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """The agent itself, or the one that the object makes."""
        if not self.name.endswith(":"):
            if spec != self.name:
                raise UsageError(f"agent {spec!r}: {self.name} takes no settings")
            return as_agent(self.thing, spec)
        with blamed(f"agent {spec} could not be made"):
            made = self.thing(spec.removeprefix(self.name))
        return as_agent(made, spec)


class OwnKind(AgentKind):
    """`module:function`: the caller's own code; the working directory can be imported from."""

    forms = {"module:function": "your own function of (messages, tools)"}
    takes = ()

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """Imports it."""
        module, _, attribute = spec.partition(":")
        return as_agent(import_attribute(module, attribute, "agent"), spec)


def own(spec: str) -> AgentKind:
    """The kind of every spec with a `:` whose beginning is not registered."""
    return OwnKind()


def as_agent(found: object, name: str) -> AnyAgent:
    """An agent as it is, an instance of a class, or a function of (messages, tools) wrapped."""
    if isinstance(found, type):
        place = defined_at(found)
        with blamed(f"{placed(f'agent {name}', place)} could not be made without arguments"):
            found = found()
    if isinstance(found, Agent | ScriptedAgent | OutsideAgent):
        if not isinstance(found.name, str) or not found.name:
            said = f"agent {placed(name, defined_at(found))}: its `name` is {found.name!r}"
            raise UsageError(
                f"{said}; it must be a text, because reports show it as the agent's name"
            )
        return found
    wrong = _no_agent(found)
    if wrong:
        raise UsageError(f"agent {placed(name, defined_at(found))}: {wrong}")
    assert callable(found)
    return CallableAgent(found, name)


def _no_agent(found: object) -> str:
    """Why an object cannot answer turns; "" if it is a function of (messages, tools)."""
    wanted = "an agent is a function of (messages, tools), or has a name and reply(turn)"
    if callable(getattr(found, "reply", None)):
        return 'it has reply(turn) and no `name`; give it one, as in name = "mine"'
    if not callable(found):
        own = type(found).__module__ != "builtins"
        methods = [each for each in dir(found) if own and not each.startswith("_")]
        near = get_close_matches("reply", methods, n=1)
        offer = f"; did you mean reply in place of {near[0]}?" if near else ""
        return f"it is {type(found).__name__}; {wanted}{offer}"
    try:
        signature(found).bind([], [])
    except TypeError as fault:
        return f"it cannot be called with (messages, tools): {fault}"
    except ValueError:  # built in: it has no signature to look at
        pass
    return ""


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Reports an exception as a UsageError."""
    try:
        yield
    except UsageError:
        raise
    except Exception as fault:
        raise UsageError(f"{what}: {described(fault)}") from fault
