"""The specs of agents that are programs. What drives one needs an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.agents.kind import AgentKind, AnyAgent
from toolshift.connect.serve.server import require
from toolshift.core.importing import load


class _Program(AgentKind):
    """Agents in programs of their own, over MCP."""

    private = True

    def __init__(self, maker: str, form: str, about: str, takes: tuple[str, ...]) -> None:
        self._maker, self.takes = maker, takes
        self.forms = {form: about}

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """Takes the options `timeout` and `concurrency`, and `isolate` where it is started."""
        taken = {name: options[name] for name in self.takes or () if name in options}
        require()
        made: AnyAgent = load(self._maker)(spec.partition(":")[2], **taken)
        return made

    def is_free(self, spec: str) -> bool:
        """It may well ask a paid model."""
        return False


COMMAND_KIND = _Program(
    "toolshift.connect.program:CommandAgent",
    "command:PROGRAM ARGUMENTS",
    "your own program, started for each episode, over MCP",
    ("timeout", "concurrency", "isolate"),
)
URL_KIND = _Program(
    "toolshift.connect.program:UrlAgent",
    "url:http://HOST:PORT/PATH",
    "your own agent, which runs already, over MCP",
    ("timeout", "concurrency"),
)
