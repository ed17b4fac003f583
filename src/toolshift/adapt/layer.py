"""A layer around any agent that tells it what has changed in the tools since the lock.

    lock = read_lock(Path("toolshift.lock.json"))
    agent = toolshift.adapt(my_agent, lock=lock)                  # it is told what has changed
    agent = toolshift.adapt(my_agent, lock=lock, rewrite=True)    # calls may be moved, too
    interventions(messages)                             # what it did in a conversation, and why

Without `rewrite` the layer makes no call, and shows no value that is not of the agent or the
server. Its parts:

notes        what has changed in the tools is said as facts behind the system message
lessons      what failed in earlier conversations, and what then worked, is put before the agent

with `rewrite`, by names that are the same words (`moves`):

names        a tool whose name is spelled otherwise today is called by that name
parameters   arguments go under the names that parameters have today
results      what comes back is shown to the agent in the form that the lock declares
redirects    a failed call that only reads is made of the tool that the failure names
lists        a failed call that only reads, of a tool that has left the list, is made by that list
retries      a call that only reads and failed or lacks values is made again
pages        the next page of a list is read, if the tool only reads

and only where `only` names them, for they ask the agent again:

loops        an agent that repeats a failing call is told what was learned, and asked once more
evidence     an agent that refuses or claims success with nothing to show for it is asked once more

The layer keeps nothing between turns, lessons apart. What it did to a call stands, as JSON behind
`[adapted]`, in the text of the message that makes the call; the agent itself is shown the
conversation as if the call had been made as it spoke it. So every call that is not the agent's own
is in the trace, with its evidence. Notes change no call: `record` alone is told of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from toolshift.adapt.errors_said import incomplete_of, is_of_rights, named_tool, says_again
from toolshift.adapt.evidence import question_of, unsupported
from toolshift.adapt.lessons import Lessons
from toolshift.adapt.notes import facts, text_of
from toolshift.adapt.paging import MAX_PAGES, chooses_page, is_list, next_page
from toolshift.adapt.repair import MAX_LISTS, Intervention, Repairer, as_mcp, moved
from toolshift.adapt.results import restored
from toolshift.agents.catalog import contestants
from toolshift.agents.kind import AgentLike
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES, Reply, Turn
from toolshift.core.names import unknown
from toolshift.core.render import NOTICE
from toolshift.dialects import read_reply
from toolshift.drift.calls import RecordedCall
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
    "lessons": "what failed earlier, and what then worked, is put before the agent",
}
"""The parts that only tell the agent something: the default."""
REWRITING: Mapping[str, str] = {
    "names": "a tool whose name is spelled otherwise today is called by that name",
    "parameters": "arguments go under the names that parameters have today",
    "results": "results are shown in the form that the lock declares",
    "redirects": "a failed call that only reads is made of the tool that the failure names",
    "lists": "a failed call that only reads is made by the list of now, once its tool has left it",
    "retries": "a call that only reads is made again where that is said to help",
    "pages": "the next page of a list is read, if the tool only reads",
}
"""The parts that make calls or change results: they need `rewrite`."""
ASKING: Mapping[str, str] = {
    "loops": "an agent that repeats a failing call is told what was learned",
    "evidence": "an ending with nothing to show for it is asked for evidence, once",
}
"""The parts that ask the agent once more: they must be named."""
PARTS: Mapping[str, str] = {**TELLING, **REWRITING, **ASKING}
MAX_RETRIES = 3
"""After one failure more than this a call is left to the agent, whose own tries count too."""
FAILED_ALIKE, FAILED_PASSING = 2, 5
"""How often the same call may fail before a loop is seen: where no tool takes it, and elsewhere."""

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
) -> AdaptedAgent:
    """Puts a layer around an agent that tells it what has changed in the tools since the lock.

    Args:
        agent: anything that answers turns: a function of (messages, tools), an object with `name`
            and `reply(turn)`, or a spec such as "chat:gpt-4.1-mini".
        lock: the tools as the agent knows them. With `rewrite`, results are restored where it has
            `outputSchema`, and calls are repeated where it says `readOnlyHint`.
        only: the parts that act (`PARTS`); where None, `TELLING`, and with `rewrite` also
            `REWRITING`.
        without: parts that do not act.
        record: told of each intervention when it is made.
        lessons: a memory across conversations (`adapt.lessons.Lessons`), which this agent reads
            and adds to; none where None. Conversations are then played one after another.
        as_known: whether the agent is shown a tool as the lock has it, where its names are spelled
            otherwise today and nothing else has changed; needs `rewrite`.
        rewrite: whether the layer may make calls, and show results in another form.

    Returns:
        An agent of the same name with "+adapt" behind it.

    Raises:
        UsageError: for an unknown part, for one that needs `rewrite` where that is not given, and
            for an agent that drives its episode itself.
    """
    usual = {**TELLING, **(REWRITING if rewrite else {})}
    parts = _chosen(usual if only is None else only) - _chosen(without)
    rewriting = [
        *(part for part in REWRITING if part in parts),
        *(["as_known"] if as_known else []),
    ]
    if rewriting and not rewrite:
        raise UsageError(
            f"{', '.join(rewriting)}: this makes calls or changes what the agent is shown; "
            "give rewrite=True too"
        )
    (contestant,) = contestants([agent])
    if not isinstance(contestant.agent, Agent):
        raise UsageError(
            f"agent {contestant.name} drives its episode itself: adapt takes agents that "
            "answer turns (a function of messages and tools, or an object with reply(turn))"
        )
    return AdaptedAgent(contestant.agent, lock, frozenset(parts), record, lessons, as_known)


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
    """

    def __init__(
        self,
        inner: Agent,
        lock: Lock,
        parts: frozenset[str],
        record: Callable[[Intervention], None],
        lessons: Lessons | None = None,
        as_known: bool = False,
    ) -> None:
        self.inner, self.lock, self.parts, self.record = inner, lock, parts, record
        self.as_known = as_known
        self.name = f"{inner.name}+adapt"
        self.lessons = lessons if "lessons" in parts else None
        self.concurrency = 1 if self.lessons else int(getattr(inner, "concurrency", 1))
        self.settings = {"lock": lock.hash, "parts": sorted(parts)}
        if as_known:
            self.settings["as_known"] = "yes"
        self._repairer = Repairer(lock, parts)
        self._before = self._repairer.before
        self._forms: dict[tuple[str, str], str] = {}
        self._notes: dict[bytes, str] = {}
        self._noted: tuple[Tools, str] = ({}, self._note_on({}))

    def release(self) -> None:
        """Lets the agent release its resources."""
        if isinstance(self.inner, Releases):
            self.inner.release()

    def reply(self, turn: Turn) -> Reply:
        """Answers a turn: with a call of the layer's own, or as the agent does."""
        tools = {t["function"]["name"]: t["function"] for t in turn.tools}
        talk = read_conversation(turn.messages, self._in_form)
        self._notes_told(talk, tools)
        notices = self._lessons_told(talk, tools) if self.lessons is not None else ()
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

    def _lessons_told(self, talk: Conversation, tools: Tools) -> tuple[Intervention, ...]:
        """Learns from the conversation, and tells the agent the lessons of earlier ones."""
        assert self.lessons is not None
        own = {name: tool for name, tool in tools.items() if name not in PROTOCOL_NAMES}
        if not talk.begun:
            self.lessons.begin()
        self.lessons.learn(talk.made, own)
        text = self.lessons.text(own)
        if not text:
            return ()
        return self._told_before("lessons", text, talk)

    def _notes_told(self, talk: Conversation, tools: Tools) -> None:
        """Tells the agent what has changed in the tools since the lock."""
        if "notes" not in self.parts:
            return
        known, text = self._noted
        if tools != known:  # the list is mostly that of the turn before
            text = self._note_on(tools)
            self._noted = (tools, text)
        if text:
            self._told_before("notes", text, talk)

    def _note_on(self, tools: Tools) -> str:
        key = msgspec.json.encode(list(tools.values()))
        if key not in self._notes:
            if len(self._notes) >= MAX_LISTS:
                self._notes.clear()
            own = (as_mcp(tool) for name, tool in tools.items() if name not in PROTOCOL_NAMES)
            self._notes[key] = text_of(facts(self.lock, list(own)))
        return self._notes[key]

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

    def _in_form(self, text: str, call: MadeCall) -> str:
        if "results" not in self.parts:
            return text
        source = self._before.sources.get(call.asked.tool)
        if source is None or not source.outputs:
            return text
        key = (source.tool.name, text)
        if key not in self._forms:
            if len(self._forms) >= 1024:
                self._forms.clear()
            self._forms[key] = restored(text, source.outputs)
        return self._forms[key]

    # -- calls of the layer's own ------------------------------------------------------------------

    def _own_call(self, talk: Conversation, tools: Tools) -> Intervention | None:
        """The safe call that follows from a result of the last turn, if there is one."""
        for call in talk.last_made:
            if call.made.tool in PROTOCOL_NAMES:
                continue
            own = self._elsewhere(call, tools) if call.failure else None
            why = call.failure or incomplete_of(call.text)
            own = own or (self._retry(call, why, tools, talk) if why else None)
            own = own or self._page(call, talk, tools)
            if own is not None:
                return own
        return None

    def _elsewhere(self, call: MadeCall, tools: Tools) -> Intervention | None:
        return self._redirect(call, tools) or self._refreshed(call, tools)

    def _refreshed(self, call: MadeCall, tools: Tools) -> Intervention | None:
        """A call that failed on a stale list, by the list that has come since; of reads alone."""
        if "lists" not in self.parts or call.part or call.made.tool in tools:
            return None
        world = self._repairer.today(tools)
        repair = None if is_of_rights(call.failure) else self._repairer.repair(call.asked, tools)
        if repair is None or world is None:
            return None
        if not world[0].only_reads(call.asked.tool, repair.made.tool):
            return None
        why = f"{call.made.tool} has left the list of tools since the call; {repair.evidence}"
        return Intervention("lists", why, call.asked, repair.made, call.id)

    def _redirect(self, call: MadeCall, tools: Tools) -> Intervention | None:
        """A failed read, of the tool that the failure names, where the two are the same words."""
        if "redirects" not in self.parts or call.asked != call.made:
            return None
        failure = call.failure
        others = (name for name in tools if name != call.made.tool and name not in PROTOCOL_NAMES)
        target = named_tool(failure, others)
        world = self._repairer.today(tools) if target else None
        if world is None:
            return None
        today, checker = world
        move = today.between(call.asked.tool, target)
        made = moved(call.asked, move) if move else None
        if made is None or not today.only_reads(call.asked.tool, target) or checker.fault(made)[1]:
            return None
        why = f'the failure names {target}: "{failure[:200]}"'
        return Intervention("redirects", why, call.asked, made, call.id)

    def _retry(
        self,
        call: MadeCall,
        failure: str,
        tools: Tools,
        talk: Conversation,
    ) -> Intervention | None:
        if "retries" not in self.parts or not says_again(failure):
            return None
        if failures_in_a_row(talk.made, call.made) > MAX_RETRIES:
            return None
        world = self._repairer.today(tools) if call.made.tool in tools else None
        if world is None or not world[0].only_reads(call.asked.tool, call.made.tool):
            return None
        why = f'the call only reads, and the server says: "{failure[:200]}"'
        return Intervention("retries", why, call.asked, call.made, call.id)

    def _page(self, call: MadeCall, talk: Conversation, tools: Tools) -> Intervention | None:
        """The call that brings the next page of a list, of a tool that only reads."""
        if "pages" not in self.parts or call.failure or NOTICE not in call.text:
            return None
        own = call.part == "pages"
        if talk.own.get("pages", 0) >= MAX_PAGES or (
            not own and chooses_page(call.asked.arguments)
        ):
            return None
        world = self._repairer.today(tools) if call.made.tool in tools else None
        if world is None or not world[0].only_reads(call.asked.tool, call.made.tool):
            return None
        if not is_list(self._in_form(call.text, call)):
            return None
        today, checker = world
        known = {param.name: param for param in today.after.sources[call.made.tool].tool.params}
        argument = next_page(call.text, known)
        if argument is None:
            return None
        made = RecordedCall(call.made.tool, {**call.made.arguments, argument[0]: argument[1]})
        if made == call.made or checker.fault(made)[1]:
            return None
        why = f'the call only reads, and the server says: "{_notice(call.text)[:200]}"'
        return Intervention("pages", why, call.asked, made, call.id)

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
        notices: dict[str, str] = {}
        if talk.failed and "loops" in self.parts:
            notices["loops"] = self._loop(reply, talk, tools)
        ends = not reply.calls or reply.calls[0].name in PROTOCOL_NAMES
        if ends and "evidence" in self.parts and "evidence" not in talk.prompted:
            missing = (name for name in self._before.sources if name not in tools)
            lacks = unsupported(reply, talk, missing)
            notices["evidence"] = question_of(lacks, reply) if lacks else ""
        for part, text in notices.items():
            if text:
                call = _first(reply)
                return Intervention(part, text, call, call, place=PROMPT)
        return None

    def _loop(self, reply: Reply, talk: Conversation, tools: Tools) -> str:
        """The notice for a reply that repeats a failing call; "" for any other."""
        first = reply.calls[0] if len(reply.calls) == 1 else None
        if not isinstance(first, ToolCall):
            return ""
        call = RecordedCall(first.name, first.arguments)
        failures = [failure for failed_call, failure in talk.failed if failed_call == call]
        if len(failures) < FAILED_ALIKE:
            return ""
        world = self._repairer.today(tools)
        hopeless = world is None or bool(world[1].fault(call)[1])
        if not hopeless and len(failures) < FAILED_PASSING:
            return ""
        there = "" if call.tool in tools else " There is no tool of this name today."
        return (
            f"The same call of {call.tool} has failed {len(failures)} times, last with: "
            f'"{failures[-1][:300]}".{there} Do not repeat it: use another tool, other '
            "arguments, or say that the request cannot be fulfilled."
        )


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


def _notice(text: str) -> str:
    return text.partition(NOTICE)[2]
