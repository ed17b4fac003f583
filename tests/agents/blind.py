"""Six weak agents, written from the documentation alone, without a look at the cause rules.

Each has one dominant weakness, and `EXPECTED` says which documented cause (docs/measures.md) a
valid instrument ranks first among its failures over a mixed set of shifted scenes. The
declarations were made before anything was run.

Where a docstring says "a sound walk", the agent makes the calls that the oracle makes in the scene
as it stands, so that nothing is wrong with it but what the docstring says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from toolshift.core.calls import ToolCall
from toolshift.core.message import FINAL_ANSWER, REFUSE, Reply, Turn
from toolshift.core.scene import Scene
from toolshift.core.solver import Known, Solver
from toolshift.core.step import Step
from toolshift.core.tool import Result, Tool
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode, Over
from toolshift.episode.oracle import EpisodeBackend, OracleAgent

EXPECTED: dict[str, str] = {
    "tape": "no_recovery",
    "eager": "answered_without_evidence",
    "alarmist": "no_recovery",
    "hammer": "repetition",
    "old_keys": "bad_arguments",
    "recency": "ignored_result",
}

TAPE_UNDER: dict[str, str] = {
    "identity_erasure": "memorised_name",
    "semantic_rename": "memorised_name",
    "merged_tools": "memorised_name",
    "tool_migrated": "memorised_name",
    "transient_error": "no_recovery",
    "permanent_error": "no_recovery",
    "redirect": "no_recovery",
    "fatal_error": "no_recovery",
    "fatal_error_lookalike": "no_recovery",
    "no_such_entity": "invented_value",  # declared as bad_arguments, of which it was a part then
    "reversed_order": "wrong_order",
    "new_precondition": "wrong_order",
}
"""What should come first for the tape under each shift by itself; it passes under format_drift."""

_CODE = re.compile(r"\b[B-DF-HJ-NP-TV-XZ2-9]{4}-[B-DF-HJ-NP-TV-XZ2-9]{4}\b")


# -- agents that answer turns ------------------------------------------------------------------


class Tape:
    """Replays the clean scene's calls and answers to the letter and never looks at a result.

    Expected no_recovery: of 13 shifts five (transient, permanent, redirect, fatal and its
    look-alike) first show it a failure that names a way on, past which it walks; only four take a
    name away, and where only reading was asked for it even gets away with those, as everywhere.
    """

    name = "tape"

    def __init__(self, scene: Scene) -> None:
        self.script = scene.clean.rehearsal

    def reply(self, turn: Turn) -> dict[str, Any]:
        done = sum(message["role"] == "assistant" for message in turn.messages)
        step = self.script[min(done, len(self.script) - 1)]
        name, arguments = _spoken(step)
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": f"tape_{done}", "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}


class Eager:
    """Makes a sound walk, but takes the first code in sight for the one that was asked for.

    Expected answered_without_evidence: it answers, in prose, while the calls that fulfil the
    request have not been made yet ("was not fulfilled"); no call of it is wrong, and no right code
    was passed over, since it stops before it sees one.
    """

    name = "eager"

    def __init__(self, scene: Scene) -> None:
        self.script = scene.rehearsal
        self.place = 0

    def reply(self, turn: Turn) -> str | Reply:
        last = turn.messages[-1]
        codes = _CODE.findall(str(last["content"])) if last["role"] == "tool" else []
        if codes:
            while self.script[self.place].kind == "call":
                self.place += 1
            self.place += 1
            return f"Here you are: {codes[0]}"
        self.place += 1
        name, arguments = _spoken(self.script[self.place - 1])
        return Reply(calls=(ToolCall(name, arguments),))


class Alarmist:
    """Makes a sound walk, but declares failure at the first error or notice, whatever it says.

    Expected no_recovery: nearly all that alarms it (a busy service, a successor's name, a
    migration notice) offered a way on; that it says so in a refusal is only how it ends, and by
    the documentation an ending is the cause only where there was no slip.
    """

    name = "alarmist"

    def __init__(self, scene: Scene) -> None:
        self.script = scene.rehearsal
        self.place = 0

    def reply(self, turn: Turn) -> str | Reply:
        last = turn.messages[-1]
        text = str(last["content"]) if last["role"] == "tool" else ""
        if '"error"' in text or "\nNotice: " in text:
            return "I am sorry, I cannot do this: the service reported a failure."
        self.place += 1
        name, arguments = _spoken(self.script[self.place - 1])
        return Reply(calls=(ToolCall(name, arguments),))


def _spoken(step: Step) -> tuple[str, dict[str, Any]]:
    """A step of a walk, as the call that makes it."""
    if step.kind == "answer":
        return FINAL_ANSWER, {"answer": step.said}
    if step.kind == "refuse":
        return REFUSE, {"reason": step.name}
    assert step.kind == "call", step.kind
    assert isinstance(step.arguments, dict)
    return step.name, step.arguments


# -- agents that drive an episode --------------------------------------------------------------


class Hammer(OracleAgent):
    """Solves soundly, but makes a failed call again and again until it works or time is up.

    Expected repetition: where the failure names another tool, or is final, nothing asks for the
    same call again; that the budget runs out is only the consequence. Where a retry is asked for
    it does well.
    """

    name = "hammer"

    def play(self, episode: Episode) -> None:
        backend = _HammersBackend(episode)
        try:
            while not episode.end:
                self.work(episode, backend)
        except Over:
            return


class _HammersBackend(EpisodeBackend):
    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        text, result = super().call(name, arguments)
        while not result.ok:
            text, result = super().call(name, arguments)
        return text, result


class OldKeys(OracleAgent):
    """Solves soundly and calls tools as shown, but spells parameters as in the clean interface.

    Expected bad_arguments: the tool's name is the right one, so it is no memorised_name as that is
    documented (it speaks of tools); what is wrong is a key that nothing shown supports any more.
    """

    name = "old_keys"

    class solver(Solver):
        def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            assert isinstance(self.backend, EpisodeBackend)
            clean = self.backend.episode.scene.clean
            old = {param.fact: param.name for shown in clean.tools for param in shown.params}
            fact = {param.name: param.fact for param in tool.params}
            return tool.name, {old.get(fact.get(k, ""), k): v for k, v in arguments.items()}


class Recency(OracleAgent):
    """Solves soundly, but of several ids of a kind that it has read it uses the latest.

    Expected ignored_result: the right id stood in a result that it had read, and it used another
    that had been shown too, so nothing is invented and nothing misspelt.
    """

    name = "recency"

    class solver(Solver):
        def read(self, data: Any, result: Result) -> list[dict[str, Any]]:
            records = super().read(data, result)
            for record in records:
                self._latest.update({k: v for k, v in record.items() if k.endswith("_id")})
            return records

        def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
            meant = super().arguments(tool, env)
            fact = {param.name: param.fact for param in tool.params}
            return {name: self._latest.get(fact[name], value) for name, value in meant.items()}

        @property
        def _latest(self) -> dict[str, Any]:
            return self.__dict__.setdefault("latest", {})


# -- all of them -------------------------------------------------------------------------------

AGENTS: dict[str, Callable[[Scene], Any]] = {
    "tape": Tape,
    "eager": Eager,
    "alarmist": Alarmist,
    "hammer": lambda scene: Hammer(),
    "old_keys": lambda scene: OldKeys(),
    "recency": lambda scene: Recency(),
}


def play(name: str, scene: Scene) -> Episode:
    """An agent's episode in a scene."""
    agent, episode = AGENTS[name](scene), Episode(scene)
    if hasattr(agent, "play"):
        agent.play(episode)
    else:
        converse(agent, episode)
    return episode
