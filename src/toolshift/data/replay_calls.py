"""The calls of a recording, made by what is shown for them; what the layers ask is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.ask import is_said
from toolshift.core.codecs import leaves
from toolshift.core.render import NOTICE, facts, show
from toolshift.core.shift import NotApplicable
from toolshift.core.solver import Impossible, Solver, Untraceable
from toolshift.core.tool import NOT_RECORDED, Result, Tool, error
from toolshift.core.values import as_text
from toolshift.data.conversation import Call, Conversation, Message, Turn, encoded
from toolshift.data.flow import data_of, turns_of
from toolshift.data.prepared import Prepared
from toolshift.data.refusal_rows import ending_of
from toolshift.data.replay_release import (
    check_needed,
    check_still_shown,
    difference,
    stated,
    why_not,
)
from toolshift.data.result_mentions import check_results
from toolshift.data.tool_mentions import Seen, ToolNames
from toolshift.data.tools import check_gone
from toolshift.data.value_mentions import check_values
from toolshift.interop.outcome import has_failed
from toolshift.interop.tools import Documented
from toolshift.shifts.live import Live
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.told import lost_of
from toolshift.worlds.own.stand_in import carry_out


def played(conversation: Conversation, ready: Prepared) -> list[Conversation]:
    """A conversation whose calls go through the layers."""
    return _Play(conversation, ready).parts()


@dataclass(frozen=True)
class _Attempt:
    """One call as it was made, and what came back.

    Attributes:
        text: of the result.
        shown: the tools on offer when it was made.
    """

    name: str
    arguments: dict[str, Any]
    text: str
    result: Result
    shown: tuple[Tool, ...]


@dataclass(frozen=True)
class _Recorded:
    """A call with its result, as they were recorded.

    Attributes:
        is_there: whether a result was recorded.
    """

    call: Call
    message: Message
    is_there: bool = True

    @cached_property
    def data(self) -> Any:
        """The result as data."""
        return data_of(self.message.text)


def _example(release: Release, name: str) -> Any:
    """A result of a tool of which none was recorded, as the side has it that declares one.

    Where only the new tool does, what the old one returns is held to that, and nothing is known of
    it: so the example is one of the new tool.
    """
    old = release.before.sources[name]
    stand = (new for new, routes in release.routes.items() if any(r.old == name for r in routes))
    declared = (s for s in (old, *map(release.after.sources.get, stand)) if s and s.outputs)
    return next(declared, old).example()


_FAILED = "recorded_failure"
"""The code of an error that stands for a recorded result which says that its call failed."""


class _Play:
    """One conversation under way; the backend of a solver that follows what the layers ask."""

    def __init__(self, conversation: Conversation, ready: Prepared) -> None:
        self.ready = ready
        self.live = Live(ready.scene, ready.toolbox, self._carry)
        self.true = {tool.name: tool for tool in ready.toolbox.tools}
        self.said: list[Message] = []
        self.views: list[tuple[int, tuple[Tool, ...]]] = [(0, self.live.tools())]
        self._now: list[_Recorded] = []
        self._made: list[_Attempt] = []
        self._missing = ""
        self._moved: dict[str, str] = {}
        """What was told in place of tools that failed for good: whoever learns is told once."""
        self._failed_at: dict[str, int] = {}
        """The recorded message whose call of a tool was the first to be told of another."""
        self._renewed: dict[Any, Any] = {}
        """Values that were told in place of others."""
        self._conversation = conversation
        self._all_calls = [call for message in conversation.messages for call in message.calls]
        self._seen = Seen(conversation.messages)
        self._places = {id(said): place for place, said in enumerate(conversation.messages)}
        self._texts: list[str] = []
        self._brought: dict[int, list[dict[str, Any]]] = {}
        self._lost: list[tuple[int, str, Any]] = []
        """Values that results show no more, each with its place in what is said and in results."""
        self._results = [
            message.text for message in conversation.messages if message.role == "tool"
        ]
        turns = turns_of(conversation)
        while turns:
            turns = turns[self._play(turns) :]
        self._check_mentions()
        check_still_shown(self._lost, self.said)
        check_results(conversation, self.said)
        check_values(conversation, (t for _, view in self.views for t in view), ready.toolbox)

    # -- the backend of the solver -------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        """The tools as shown now."""
        return self.live.tools()

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        """Makes a call through the layers, and notes it."""
        shown = self.live.tools()
        result = self.live.call(name, arguments).result
        if not result.ok and result.data["error"]["code"] == _FAILED:
            # For the caller it is what came back, and nothing is to be tried again.
            result = Result(True, self._now[0].data, notice=result.notice)
        if self._missing:
            raise NotApplicable(f"the shift calls {self._missing}, of which nothing was recorded")
        self._made.append(_Attempt(name, arguments, self._text(result), result, shown))
        if not result.ok and result.hint is not None and result.hint.kind == "use":
            self._moved[name] = result.hint.tool
        return show(result), result

    def ask(self, slot: str, question: str) -> str:
        """Nobody is there to ask."""
        raise Impossible("not_found")

    def was_shown(self, value: Any) -> bool:
        """What a recorded call says has been shown in the recording."""
        return True

    def request(self) -> str:
        """Nothing: no search is made in a recording."""
        return ""

    def user_said(self, value: Any) -> bool:
        """Whether the user has said a value."""
        return any(is_said(as_text(value), text) for text in self._texts)

    # -- inside --------------------------------------------------------------------------------

    def _carry(self, name: str, arguments: dict[str, Any]) -> Result:
        """The recorded result of a call that is under way."""
        if self.ready.releases:
            return self._carry_on(name, arguments)
        for recorded in self._now:
            if (name, arguments) == (recorded.call.name, recorded.call.arguments):
                return self._came(recorded)
        self._missing = name
        return error(NOT_RECORDED, f"{name} was not called so.")

    def _came(self, recorded: _Recorded) -> Result:
        """A recorded result, as layers take it: they leave failures alone."""
        if not has_failed(recorded.data):
            return Result(True, recorded.data)
        if len(self._now) > 1:
            raise NotApplicable("one of the calls that one tool stands for has failed")
        return error(_FAILED, "The call failed.")

    def _carry_on(self, name: str, arguments: dict[str, Any]) -> Result:
        """The recorded result of what a coming change makes of a call."""
        release, why = self.ready.releases[0], f"{name}, of which nothing was recorded"
        for recorded in self._now:
            if recorded.call.name != name:
                continue
            why = difference(recorded.call, arguments, self._default(name))
            if why:
                why = f"{name} otherwise than it was recorded: {why}"
            elif recorded.is_there:
                return self._came(recorded)
            else:  # what nobody recorded is not shown, but is of a shape that can be carried
                return Result(True, _example(release, name))
        self._missing = why
        return error(NOT_RECORDED, f"{name} was not called so.")

    def _default(self, name: str) -> Callable[[str], Any]:
        params = {param.name: param.schema.get("default") for param in self.true[name].params}
        return params.get

    def _text(self, result: Result) -> str:
        """A result as it is read: word for word, where the layers have left it alone."""
        if result.ok and result.form == "json":
            for recorded in self._now:
                if result.data == recorded.data:
                    return _noted(recorded.message.text, result)
        if result.ok and result.form != "json":
            return show(result)
        now = (recorded.message.text for recorded in self._now)
        like = next((text for text in (*now, *self._results) if text[:1] in ("{", "[")), "")
        return _noted(encoded(result.data, like), result)

    def _play(self, turns: list[Turn]) -> int:
        """Plays the first of some turns; how many of them that was."""
        message, results = turns[0]
        if message.role == "user":
            self._texts.append(message.text)
            self.said.append(message)
            return 1
        if not self.ready.lost.isdisjoint(call.name for call in message.calls):
            self._refuse(turns)
            return len(turns)
        here = self._seen.at(self._places[id(message)], message.role)
        text = self.ready.say(message.text, here)
        message = msgspec.structs.replace(message, thought=self.ready.say(message.thought, here))
        if self.ready.kept_names.issuperset(call.name for call in message.calls):
            self.said.append(msgspec.structs.replace(message, text=text))
            self.said += [result for result in results if result is not None]
            return 1
        made, taken = self._calls(turns)
        self._note_moved(message, made, self._places[id(turns[0][0])])
        views = [attempt.shown for attempts in made for attempt in attempts]
        recorded = [result for result in results if result is not None]
        if len(recorded) < len(message.calls):
            self._without_results(message, text, made)
        elif len(views) == len(message.calls) and all(view == views[0] for view in views):
            self._together(message, text, recorded, [attempts[0] for attempts in made])
        else:
            for call, result, attempts in zip(message.calls, recorded, made, strict=True):
                self._one_by_one(message, text, call, result, attempts)
                text, message = "", msgspec.structs.replace(message, thought="")
        self._see(self.live.tools())
        return taken

    def _note_moved(self, message: Message, made: list[list[_Attempt]], place: int) -> None:
        """Notes the tools that a message calls and that failed for good, as others were told."""
        for call, attempts in zip(message.calls, made, strict=True):
            moved = (self._moved.get(attempt.name, attempt.name) for attempt in attempts)
            if any(new != attempt.name for new, attempt in zip(moved, attempts, strict=True)):
                self._failed_at.setdefault(call.name, place)

    def _refuse(self, turns: list[Turn]) -> None:
        """Ends the conversation where it needs a tool that a coming change has taken away."""
        message, results = turns[0]
        later = [one for one, _ in turns[1:]]
        for call, result in zip(message.calls, results, strict=True):
            if call.name in self.ready.lost:
                check_needed(self.ready.releases[0], call, result, later)
        if not message.learned:
            raise NotApplicable("a tool that is gone is called where nothing is learned")
        rng = seeds.rng("gone", *sorted(self.ready.lost), *self._texts)
        self.said.append(ending_of(self._conversation, rng, bool(self.ready.kept)))

    def _see(self, shown: tuple[Tool, ...]) -> None:
        """Notes which tools are on offer from here on."""
        if shown != self.views[-1][1]:
            self.views.append((len(self.said), shown))

    def _calls(self, turns: list[Turn]) -> tuple[list[list[_Attempt]], int]:
        """The attempts of each call of the first turn, and how many turns they serve."""
        message, results = turns[0]
        if None in results and any(results):
            raise NotApplicable("the recording has the results of some calls and not of others")
        alone = len(message.calls) == 1 and not self._in_place_of(message.calls[0].name)
        joint = self._joint(message.calls[0].name) if alone else None
        if joint is None:
            return [self._one(c, r) for c, r in zip(message.calls, results, strict=True)], 1
        taken = len(joint.origin)
        steps = _steps(turns[:taken], joint)
        return [self._made_by((joint,), steps)], taken

    def _joint(self, name: str) -> Tool | None:
        """The tool that stands for this one and others after it, if none stands for it alone."""
        shown = [tool for tool in self.live.tools() if not tool.retired]
        if any(tool.origin == (name,) for tool in shown):
            return None
        joint = (t for t in shown if t.origin[:1] == (name,) and t.operations is None)
        return next(joint, None)

    def _one(self, call: Call, recorded: Message | None) -> list[_Attempt]:
        """Makes a recorded call by what is shown; every attempt that it takes."""
        step = _Recorded(call, recorded or Message("tool"), recorded is not None)
        if self._in_place_of(call.name):
            return self._made_in_place(step)
        return self._made_by(_standing_for(self.live.tools(), call.name), [step])

    def _in_place_of(self, name: str) -> bool:
        """Whether a tool of a coming change stands for a true one."""
        shown = self.live.tools()
        return any(isinstance(tool, Documented) and name in tool.stands for tool in shown)

    def _made_in_place(self, step: _Recorded) -> list[_Attempt]:
        """Makes a recorded call as a task of a world of one's own has its expected calls made."""
        self._now, self._made = [step], []
        call, release = step.call, self.ready.releases[0]
        given, further = _given([step], self.true)
        if further:
            raise NotApplicable("a call has an argument that its schema does not declare")
        goal = stated(self._all_calls, "\n".join(self._texts))
        solver = Solver(self, {}, goal)
        try:
            carry_out(solver, self.true[call.name], solver.root.about(**given), self._brought)
        except (Impossible, Untraceable) as reason:
            said = reason.said if isinstance(reason, Impossible) else str(reason)
            raise NotApplicable(why_not(release, self._conversation, call, said)) from None
        data = self._made[-1].result.data
        records = data if isinstance(data, list) else [data]
        self._brought[len(self._brought)] = [
            {".".join((call.name, *path)): value for path, value in leaves(record)}
            for record in records
            if isinstance(record, dict) and step.is_there
        ]
        if step.is_there:
            gone = lost_of(release, call.name, step.data)
            self._lost += [(len(self.said), place, value) for place, value in gone]
        return self._made

    def _made_by(self, tools: tuple[Tool, ...], steps: list[_Recorded]) -> list[_Attempt]:
        """Makes recorded calls by tools that together stand for them."""
        self._now, self._made = steps, []
        tools = tuple(map(self._known_for, tools))
        given, further = _given(steps, self.true)
        known, left = dict(given), list(tools)
        while left:
            tool = next((t for t in left if known.keys() >= set(t.needs)), None)
            if tool is None:
                tool = self._feeding(left[0], known)
            else:
                left.remove(tool)
            arguments = {p.name: known[p.fact] for p in tool.params if p.fact in known}
            known |= self._performed(tool, {**arguments, **further})
        _check_passed(given, steps, tools)
        if len(tools) > 1:
            _check_shared_out(steps[0], self._made)
        return self._made

    def _known_for(self, tool: Tool) -> Tool:
        """The tool that the conversation has told to take in place of one; else that itself."""
        met: set[str] = set()
        while tool.name in self._moved and tool.name not in met:
            met.add(tool.name)
            name = self._moved[tool.name]
            tool = next((one for one in self.live.tools() if one.name == name), tool)
        return tool

    def _feeding(self, tool: Tool, known: Mapping[str, Any]) -> Tool:
        """A tool of the layers that yields what another needs."""
        missing = [param for param in tool.params if param.required and param.fact not in known]
        for candidate in self.live.tools():
            yields = any(candidate.yields(param.fact) for param in missing)
            if yields and not candidate.origin and known.keys() >= set(candidate.needs):
                return candidate
        raise NotApplicable(f"{missing[0].name} is what {tool.name} requires now")

    def _performed(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool and follows what comes back; the facts that this brings."""
        try:
            solver = Solver(self, {}, {})
            solver.renewed = self._renewed
            data, result = solver.perform(tool, solver.current(arguments))
        except (Impossible, Untraceable) as reason:
            raise NotApplicable(f"a call cannot be carried: {reason}") from None
        return facts(data, result.fields)

    def _check_mentions(self) -> None:
        """Checks that nothing which is shown names a tool that others have taken the place of.

        What is learned, or on offer, when one has gone midway does not name that one either.
        """
        replaced = self.ready.gone
        # A prompt may name what a coming change takes away: so it stands before an agent then.
        speaking = ("assistant",) if self.ready.releases else ("system", "assistant")
        names, seen = ToolNames(frozenset((*self.true, *replaced.names))), Seen(self.said)
        for place, message in enumerate(self.said):
            texts = (message.text, message.thought) if message.role in speaking else ()
            if any(
                names.first_meant(text, replaced.names, seen.at(place, message.role))
                for text in texts
            ):
                raise NotApplicable("a text names a tool that others take the place of")
        for tool in self.live.tools():
            if isinstance(tool, Documented) or replaced.names.keys() & set(tool.origin):
                continue  # in the words of its own document, or in the place of one
            if tool.origin and replaced.speak(tool.description) != tool.description:
                raise NotApplicable("a text names a tool that others take the place of")
        for (begin, tools), end in self._spans():
            gone = self.true.keys() - replaced.names.keys() - {tool.name for tool in tools}
            check_gone(gone, self.ready.as_shown(tools), self.said[begin:end])
        self._check_moved(names)

    def _check_moved(self, names: ToolNames) -> None:
        """Checks that nothing learned names a tool after another was told in place of it.

        What was said beside the call that failed is context by then; what was thought is not.
        """
        for name, failed in self._failed_at.items():
            for place, message in enumerate(self._conversation.messages[failed:], failed):
                if message.role != "assistant" or not message.learned:
                    continue
                said = message.text if place > failed else ""
                here = self._seen.at(place, message.role)
                if any(names.first_meant(text, [name], here) for text in (said, message.thought)):
                    raise NotApplicable("what is said names a tool that failed for good by then")

    def _together(
        self, message: Message, text: str, results: list[Message], made: list[_Attempt]
    ) -> None:
        """Calls that went at once, in one message, as they were recorded."""
        self._say_calls(message, text, made)
        for recorded, attempt in zip(results, made, strict=True):
            name = attempt.name if recorded.name else ""
            self.said.append(msgspec.structs.replace(recorded, text=attempt.text, name=name))

    def _say_calls(self, message: Message, text: str, made: list[_Attempt]) -> None:
        """A message of the calls that stand for those of a recorded one."""
        self._see(made[0].shown)
        calls = tuple(
            Call(attempt.name, attempt.arguments, call.id)
            for call, attempt in zip(message.calls, made, strict=True)
        )
        self.said.append(msgspec.structs.replace(message, text=text, calls=calls))

    def _without_results(self, message: Message, text: str, made: list[list[_Attempt]]) -> None:
        """Calls whose results nobody recorded: what comes before each, then all of them at once."""
        for call, attempts in zip(message.calls, made, strict=True):
            for number, attempt in enumerate(attempts[:-1]):
                self._attempt(message, text, attempt, f"{call.id or call.name}-{number}", None)
                text = ""
        self._say_calls(message, text, [attempts[-1] for attempts in made])

    def _one_by_one(
        self, message: Message, text: str, call: Call, recorded: Message, attempts: list[_Attempt]
    ) -> None:
        """A call that took several; one that the layers made fail is not learned."""
        for number, attempt in enumerate(attempts[:-1]):
            own = f"{call.id}-{number}" if call.id else ""
            self._attempt(message, text, attempt, own, recorded)
            text = ""
        self._see(attempts[-1].shown)
        last = Call(attempts[-1].name, attempts[-1].arguments, call.id)
        learned = message.learned and attempts[-1].result.ok
        self.said.append(
            msgspec.structs.replace(message, text=text, calls=(last,), learned=learned)
        )
        answered = msgspec.structs.replace(
            recorded,
            text=attempts[-1].text,
            name=last.name if recorded.name else "",
            call_id=call.id,
        )
        self.said.append(answered)

    def _attempt(
        self, message: Message, text: str, made: _Attempt, own: str, recorded: Message | None
    ) -> None:
        """One attempt before the last, with what came back; `own` is the id of its call."""
        self._see(made.shown)
        call = Call(made.name, made.arguments, own)
        learned = message.learned and made.result.ok
        self.said.append(Message("assistant", text, (call,), learned=learned))
        name = made.name if recorded and recorded.name else ""
        self.said.append(Message("tool", made.text, name=name, call_id=own))

    def _spans(self) -> Iterator[tuple[tuple[int, tuple[Tool, ...]], int]]:
        """Each list of tools with where it was seen first, and where the next one was."""
        ends = [place for place, _ in self.views[1:]] + [len(self.said)]
        return zip(self.views, ends, strict=True)

    def parts(self) -> list[Conversation]:
        """One conversation for each list of tools; what was said before is context only."""
        parts = []
        for (begin, tools), end in self._spans():
            if not any(
                message.role == "assistant" and message.learned for message in self.said[begin:end]
            ):
                continue
            earlier = (
                msgspec.structs.replace(message, learned=False)
                if message.role == "assistant"
                else message
                for message in self.said[:begin]
            )
            messages = (*earlier, *self.said[begin:end])
            parts.append(Conversation(self.ready.as_shown(tools), messages))
        return parts


def _noted(text: str, result: Result) -> str:
    """The text of a result, with what is noted behind it."""
    return f"{text}{NOTICE}{result.notice}" if result.notice else text


def _standing_for(shown: tuple[Tool, ...], name: str) -> tuple[Tool, ...]:
    """The shown tools that stand for a true one: one, or several that each do a part of it."""
    parts: dict[tuple[frozenset[str], frozenset[str]], list[Tool]] = {}
    for tool in shown:
        if tool.origin == (name,) and not tool.retired:
            yields = frozenset(field.fact for field in tool.returns)
            parts.setdefault((frozenset(tool.needs), yields), []).append(tool)
    if not parts:
        raise NotApplicable(f"no tool that is shown stands for {name} alone")
    return tuple(max(alike, key=lambda tool: tool.authority) for alike in parts.values())


def _steps(turns: list[Turn], joint: Tool) -> list[_Recorded]:
    """The recorded calls that a merged tool stands for, each in a turn of its own."""
    recorded: list[_Recorded] = []
    for name, (message, results) in zip(joint.origin, turns, strict=False):
        if [call.name for call in message.calls] != [name] or results[0] is None:
            break
        if recorded and (message.text.strip() or message.learned != turns[0][0].learned):
            raise NotApplicable("something is said between the calls that one tool stands for")
        recorded.append(_Recorded(message.calls[0], results[0]))
    if len(recorded) < len(joint.origin):
        raise NotApplicable(f"{recorded[0].call.name} is called without the one that follows it")
    whole: dict[str, Any] = {}
    for step in recorded:
        if any(whole.get(key, value) != value for key, value in step.data.items()):
            raise NotApplicable("two results have other values under one key")
        whole |= step.data
    return recorded


def _given(
    steps: list[_Recorded], true: Mapping[str, Tool]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of recorded calls by fact, and those that no schema declares."""
    given: dict[str, Any] = {}
    further: dict[str, Any] = {}
    for step in steps:
        own = {p.name: p.fact for p in true[step.call.name].params}
        for name, value in step.call.arguments.items():
            if name in own:
                given[own[name]] = value
            else:
                further[name] = value
    if further and len(steps) > 1:
        raise NotApplicable("a call has an argument that its schema does not declare")
    return given, further


def _check_passed(
    given: Mapping[str, Any], steps: list[_Recorded], tools: tuple[Tool, ...]
) -> None:
    """Checks that every argument is taken by a tool, or is what another call feeds."""
    taken = {param.fact for tool in tools for param in tool.params}
    for fact in given:
        fed = any(field.fact == fact for tool in tools for field in tool.returns)
        if fact not in taken and not (fed and len(steps) > 1):
            raise NotApplicable(f"{fact} is what {tools[0].name} takes no longer")


def _check_shared_out(step: _Recorded, made: list[_Attempt]) -> None:
    """Checks that several calls bring back all that one did."""
    brought = [attempt.result.data for attempt in made if attempt.result.ok]
    if step.data in brought:
        return
    whole = {k: v for data in brought if isinstance(data, dict) for k, v in data.items()}
    if not isinstance(step.data, dict) or not step.data.items() <= whole.items():
        raise NotApplicable("a result has values that none of several calls would bring")
