"""A layer around any agent that tells it what has changed in the tools since the lock.

    lock = read_lock(Path("toolshift.lock.json"))
    agent = toolshift.adapt(my_agent, lock=lock)                  # it is told what has changed
    agent = toolshift.adapt(my_agent, lock=lock, rewrite=True)    # calls may be moved, too
    interventions(messages)                             # what it did in a conversation, and why

Without `rewrite` the layer makes no call, and shows no value that is not of the agent or the
server. Its parts:

notes        what has changed in the tools is said behind the system message
failures     beside the error of a call that today's tools do not take, the tools that do are said
lessons      what failed in earlier conversations, and what then worked, is put before the agent

with `rewrite`, by names that are the same words (`moves`):

names        a tool whose name is spelled otherwise today is called by that name
parameters   arguments go under the names that parameters have today
lists        a failed call that only reads, of a tool that has left the list, is made by that list
retries      a call that only reads and failed is made again

and only where `only` names it, for it asks the agent again:

evidence     an agent that refuses or claims success with nothing to show for it is asked once more

The layer keeps nothing between turns, lessons apart. What it did to a call stands, as JSON behind
`[adapted]`, in the text of the message that makes the call; the agent itself is shown the
conversation as if the call had been made as it spoke it. So every call that is not the agent's own
is in the trace, with its evidence. What the agent is told follows from the lock, the tools and the
trace, so it is not in the trace once more: `record` alone is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.adapt.conversation import (
    MARK,
    PROMPT,
    Conversation,
    MadeCall,
    failures_in_a_row,
    interventions,
    noted,
    read_conversation,
)
from toolshift.adapt.evidence import question_of, unsupported
from toolshift.adapt.failures import beside
from toolshift.adapt.lessons import Lessons, outcomes, ranked
from toolshift.adapt.notes import Fact, facts, text_of
from toolshift.adapt.repair import MAX_LISTS, Intervention, Repairer, as_mcp
from toolshift.adapt.words import words_of
from toolshift.agents.catalog import contestants
from toolshift.agents.kind import AgentLike
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES, Reply, Turn
from toolshift.core.names import unknown
from toolshift.dialects import read_reply
from toolshift.drift.calls import Checker, RecordedCall
from toolshift.drift.lock import Lock
from toolshift.episode.contract import Agent, Releases, finished

__all__ = [
    "ASKING",
    "MARK",
    "PARTS",
    "REWRITING",
    "TELLING",
    "AdaptedAgent",
    "Intervention",
    "adapt",
    "interventions",
]

TELLING: Mapping[str, str] = {
    "notes": "what has changed in the tools is said behind the system message",
    "failures": "beside an error of a call that today's tools do not take, those that do are said",
    "lessons": "what failed earlier, and what then worked, is put before the agent",
}
"""The parts that only tell the agent something: the default."""
REWRITING: Mapping[str, str] = {
    "names": "a tool whose name is spelled otherwise today is called by that name",
    "parameters": "arguments go under the names that parameters have today",
    "lists": "a failed call that only reads is made by the list of now, once its tool has left it",
    "retries": "a call that only reads and failed is made again",
}
"""The parts that make calls: they need `rewrite`."""
ASKING: Mapping[str, str] = {
    "evidence": "an ending with nothing to show for it is asked for evidence, once",
}
"""The parts that ask the agent once more: they must be named."""
PARTS: Mapping[str, str] = {**TELLING, **REWRITING, **ASKING}
MAX_RETRIES = 2
"""How often a read that failed is made again; tries of the agent itself count too."""

Tools = Mapping[str, Mapping[str, Any]]


def adapt(
    agent: AgentLike,
    lock: Lock,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    record: Callable[[Intervention], None] = lambda done: None,
    lessons: Lessons | None = None,
    as_known: bool = False,
    rewrite: bool = False,
    reads: Iterable[str] = (),
) -> AdaptedAgent:
    """Puts a layer around an agent that tells it what has changed in the tools since the lock.

    Args:
        agent: anything that answers turns: a function of (messages, tools), an object with `name`
            and `reply(turn)`, or a spec such as "chat:gpt-4.1-mini".
        lock: the tools as the agent knows them.
        only: the parts that act (`PARTS`); where None, `TELLING`, and with `rewrite` also
            `REWRITING`.
        without: parts that do not act.
        record: told of each intervention when it is made.
        lessons: a memory across conversations (`adapt.lessons.Lessons`), which this agent reads
            and adds to; none where None. Conversations are then played one after another.
        as_known: whether the agent is shown a tool as the lock has it, where its names are spelled
            otherwise today and nothing else has changed; needs `rewrite`.
        rewrite: whether the layer may make calls.
        reads: tools of the lock that only read, as you vouch for beside those that declare
            `readOnlyHint`. With `rewrite`, calls of these alone are made again.

    Returns:
        An agent of the same name with "+adapt" behind it.

    Raises:
        UsageError: where the extra `adapt` is not installed, for an unknown part, for one that
            needs `rewrite` where that is not given, and for an agent that drives its episode
            itself.
    """
    words_of("")  # says at once that the package is missing which divides texts
    usual = {**TELLING, **(REWRITING if rewrite else {})}
    parts = _chosen(usual if only is None else only) - _chosen(without)
    rewriting = [
        *(part for part in REWRITING if part in parts),
        *(["as_known"] if as_known else []),
    ]
    if rewriting and not rewrite:
        raise UsageError(
            f"{', '.join(rewriting)}: this part makes calls or changes what the agent sees, so "
            "it needs rewrite=True"
        )
    (contestant,) = contestants([agent])
    if not isinstance(contestant.agent, Agent):
        raise UsageError(
            f"agent {contestant.name} runs its episode itself: adapt works only with agents that "
            "answer turns (a function of messages and tools, or an object with reply(turn))"
        )
    named = frozenset((reads,) if isinstance(reads, str) else reads)
    return AdaptedAgent(contestant.agent, lock, frozenset(parts), record, lessons, as_known, named)


def _chosen(names: Iterable[str]) -> set[str]:
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in PARTS:
            raise UsageError(unknown("part", name, PARTS))
    return set(names)


class AdaptedAgent:
    """An agent with the layer around it; see `adapt`.

    Args:
        inner: the agent.
        lock: the tools as it knows them.
        parts: what the layer does.
        record: told of each intervention.
        lessons: the memory across conversations, if there is one.
        as_known: whether tools with other names today are shown as the lock has them.
        reads: tools of the lock of which the user says that they only read.
    """

    def __init__(
        self,
        inner: Agent,
        lock: Lock,
        parts: frozenset[str],
        record: Callable[[Intervention], None],
        lessons: Lessons | None = None,
        as_known: bool = False,
        reads: Collection[str] = (),
    ) -> None:
        self.inner, self.lock, self.parts, self.record = inner, lock, parts, record
        self.as_known = as_known
        self.name = f"{inner.name}+adapt"
        self.lessons = lessons if "lessons" in parts else None
        self.concurrency = 1 if self.lessons else int(getattr(inner, "concurrency", 1))
        self.settings = {"lock": lock.hash, "parts": sorted(parts)}
        if as_known:
            self.settings["as_known"] = "yes"
        self._repairer = Repairer(lock, parts, reads)
        self._before = self._repairer.before
        self._known = {str(tool.get("name")): tool for tool in lock.documents}
        self._seen: dict[bytes, tuple[tuple[Fact, ...], Checker]] = {}
        self._now: tuple[Tools, tuple[tuple[Fact, ...], Checker]] = ({}, self._read({}))

    def release(self) -> None:
        """Lets the agent release its resources."""
        if isinstance(self.inner, Releases):
            self.inner.release()

    def reply(self, turn: Turn) -> Reply:
        """Answers a turn: with a call of the layer's own, or as the agent does."""
        tools = {t["function"]["name"]: t["function"] for t in turn.tools}
        told, today = self._told_now(tools)
        said: dict[str, str] = {}

        def said_beside(call: MadeCall, made: Sequence[MadeCall]) -> str:
            said[call.id] = self._beside(call, made, told, today)
            return said[call.id]

        talk = read_conversation(turn.messages, said_beside)
        for call in talk.last_made:
            if said.get(call.id):
                done = Intervention("failures", said[call.id], call.asked, call.made, place=PROMPT)
                self.record(done)
        if told and "notes" in self.parts:
            kept = ranked(told, today.documents, self.lessons.notes if self.lessons else {})
            self._told_before("notes", text_of(kept), talk)
        notices = self._lessons_told(talk, told, today) if self.lessons is not None else ()
        own = self._own_call(talk, tools) if talk.last else None
        if own is not None:
            self.record(own)
            return noted(Reply(calls=(ToolCall(own.made.tool, own.made.arguments),)), (own,))
        reply = self._asked(talk.shown, turn)
        held = self._held_back(reply, talk, tools)
        if held is not None:
            text = held.evidence
            reply = self._asked([*talk.shown, {"role": "user", "content": text}], turn)
            held = msgspec.structs.replace(held, made=_first(reply))
            self.record(held)
            notices = (*notices, held)
        return self._repaired(reply, tools, notices)

    def _asked(self, messages: Sequence[dict[str, Any]], turn: Turn) -> Reply:
        shown = self._repairer.as_known(turn.tools) if self.as_known else turn.tools
        answer = self.inner.reply(Turn(messages, shown))
        if isinstance(answer, Reply) and _is_read(answer):
            return answer
        return read_reply(finished(answer))

    # -- what has been said ------------------------------------------------------------------------

    def _lessons_told(
        self, talk: Conversation, told: Sequence[Fact], today: Checker
    ) -> tuple[Intervention, ...]:
        """Learns from the conversation, and tells the agent the lessons of earlier ones."""
        assert self.lessons is not None
        if not talk.begun:
            self.lessons.begin()
        self.lessons.learn(talk.made, today.documents, told)
        text = self.lessons.text(today.documents)
        return self._told_before("lessons", text, talk) if text else ()

    def _told_now(self, tools: Tools) -> tuple[tuple[Fact, ...], Checker]:
        """What has changed in the tools since the lock, and the tools."""
        known, read = self._now
        if tools != known:  # the list is mostly that of the turn before
            key = msgspec.json.encode(list(tools.values()))
            if key not in self._seen:
                if len(self._seen) >= MAX_LISTS:
                    self._seen.clear()
                self._seen[key] = self._read(tools)
            read = self._seen[key]
            self._now = (tools, read)
        return read

    def _read(self, tools: Tools) -> tuple[tuple[Fact, ...], Checker]:
        own = [as_mcp(tool) for name, tool in tools.items() if name not in PROTOCOL_NAMES]
        told = facts(self.lock, own) if {"notes", "failures"} & self.parts else ()
        return told, Checker(own)

    def _beside(
        self, call: MadeCall, made: Sequence[MadeCall], told: Sequence[Fact], today: Checker
    ) -> str:
        """What the agent reads beside the error of a call, after all calls until then."""
        if "failures" not in self.parts:
            return ""
        earlier = self.lessons.notes if self.lessons else {}
        here = outcomes(told, made, today.documents)
        kept = ranked(told, today.documents, earlier, here)
        return beside(call.made, today, self._known, kept)

    def _told_before(self, part: str, text: str, talk: Conversation) -> tuple[Intervention, ...]:
        """Adds a notice behind the system message; in the first turn also records it."""
        first = talk.shown[0] if talk.shown else {}
        if first.get("role") == "system" and isinstance(first.get("content"), str):
            talk.shown[0] = {**first, "content": f"{first['content']}\n\n{text}"}
        else:
            talk.shown.insert(0, {"role": "system", "content": text})
        if talk.begun:
            return ()
        nothing = RecordedCall("")
        notice = Intervention(part, text, nothing, nothing, place=PROMPT)
        self.record(notice)
        return (notice,)

    # -- calls of the layer's own ------------------------------------------------------------------

    def _own_call(self, talk: Conversation, tools: Tools) -> Intervention | None:
        """The safe call that follows from a failure in the last turn, if there is one."""
        for call in talk.last_made:
            if call.failure and call.made.tool not in PROTOCOL_NAMES:
                own = self._refreshed(call, tools) or self._retry(call, tools, talk)
                if own is not None:
                    return own
        return None

    def _refreshed(self, call: MadeCall, tools: Tools) -> Intervention | None:
        """A call that failed on a stale list, by the list that has come since; of reads alone."""
        if "lists" not in self.parts or call.part or call.made.tool in tools:
            return None
        world = self._repairer.today(tools)
        repair = self._repairer.repair(call.asked, tools)
        if repair is None or world is None:
            return None
        if not world[0].only_reads(call.asked.tool, repair.made.tool):
            return None
        why = f"{call.made.tool} has left the list of tools since the call; {repair.evidence}"
        return Intervention("lists", why, call.asked, repair.made, call.id)

    def _retry(self, call: MadeCall, tools: Tools, talk: Conversation) -> Intervention | None:
        """A failed read that today's tools take, once more."""
        if "retries" not in self.parts or failures_in_a_row(talk.made, call.made) > MAX_RETRIES:
            return None
        world = self._repairer.today(tools) if call.made.tool in tools else None
        if world is None or not world[0].only_reads(call.asked.tool, call.made.tool):
            return None
        if any(world[1].fault(call.made)):
            return None
        why = f'the call only reads, and failed: "{call.failure[:200]}"'
        return Intervention("retries", why, call.asked, call.made, call.id)

    # -- calls of the agent ------------------------------------------------------------------------

    def _repaired(self, reply: Reply, tools: Tools, notices: tuple[Intervention, ...]) -> Reply:
        done = list(notices)
        calls = list(reply.calls)
        for place, call in enumerate(calls):
            if not isinstance(call, ToolCall) or call.name in PROTOCOL_NAMES:
                continue
            repair = self._repairer.repair(RecordedCall(call.name, call.arguments), tools)
            if repair is not None:
                done.append(msgspec.structs.replace(repair, place=place))
                calls[place] = ToolCall(repair.made.tool, repair.made.arguments, call.id)
                self.record(done[-1])
        if not done or not calls or calls[0].name in PROTOCOL_NAMES:
            return reply
        return noted(msgspec.structs.replace(reply, calls=tuple(calls)), tuple(done))

    def _held_back(self, reply: Reply, talk: Conversation, tools: Tools) -> Intervention | None:
        """The notice for the agent in place of its reply, as an intervention."""
        ends = not reply.calls or reply.calls[0].name in PROTOCOL_NAMES
        if not ends or "evidence" not in self.parts or "evidence" in talk.prompted:
            return None
        missing = (name for name in self._before.sources if name not in tools)
        lacks = unsupported(reply, talk, missing)
        if not lacks:
            return None
        call = _first(reply)
        return Intervention("evidence", question_of(lacks, reply), call, call, place=PROMPT)


_PLAIN = frozenset((str, int, float, bool, type(None)))


def _is_read(reply: Reply) -> bool:
    """Whether the calls of a reply hold plain values only, so they need not be read again here."""
    return all(
        type(call) is ToolCall and all(type(value) in _PLAIN for value in call.arguments.values())
        for call in reply.calls
    )


def _first(reply: Reply) -> RecordedCall:
    """The first call of a reply; one without a name where there is none."""
    call = reply.calls[0] if reply.calls else None
    if not isinstance(call, ToolCall):
        return RecordedCall(call.name if call else "")
    return RecordedCall(call.name, call.arguments)
