"""An episode: one agent in one scene. The step loop, the budgets and the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal

import msgspec

from toolshift.core.ask import Ask, leaves_out
from toolshift.core.calls import Call, MalformedCall, ToolCall
from toolshift.core.errors import ConnectionDropped, WorldFault
from toolshift.core.layer import LayerFault, WrongReturn, closes, follows
from toolshift.core.message import (
    ASK_USER,
    CODE,
    FINAL_ANSWER,
    PROTOCOL_NAMES,
    REFUSE,
    UNSTATED,
    Reply,
    Turn,
    Usage,
    as_tool_call,
    protocol_error,
    protocol_tools,
)
from toolshift.core.render import show
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import (
    BROKEN_SHIFT,
    DROPPED,
    JSON,
    NOT_RECORDED,
    OWN_OUTAGE,
    Result,
    Tool,
    as_openai,
    error,
    invalid_arguments,
)
from toolshift.episode.budget import Budget
from toolshift.episode.grading_rules import answers_right
from toolshift.episode.user import answer as user_answers
from toolshift.reading.answers.none import is_none
from toolshift.reading.prose import FAILED, ProseReader, ProseReading, read_prose, says_why
from toolshift.reading.refusals import read_plain_prose, says_of_what

CONTEXT = "context"
"""How the end of an episode begins whose conversation is longer than the model's context."""
End = Literal["", "answered", "refused", "budget", "crashed", "infrastructure"]


REPEATS = "repeats"
"""The message of the last step when the same call had the same result too often."""
_UNSHOWN = "a result that cannot be written out"
_MALFORMED = "malformed_arguments", "The arguments are not a JSON object."


class Over(Exception):
    """The episode has ended; a scripted agent does not catch this."""


class Episode:
    """One agent in one scene. Scripted agents call its methods; `converse` drives the others."""

    def __init__(
        self,
        scene: Scene,
        budget: Budget | None = None,
        trial: int = 0,
        live: bool = True,
        judge: ProseReader | None = None,
    ) -> None:
        self.scene = scene
        self.judge = judge
        self.trial = trial
        self.budget = budget or Budget.of(scene)
        self.session = scene.open_live() if live else scene.open()
        self.steps: list[Step] = []
        self.end: End = ""
        self.turn = 0
        self.asked = 0
        self.usage = Usage()
        self.fault: LayerFault | WorldFault | None = None
        self._calls = self._calls_before = 0
        self._seen: dict[tuple[str, bytes, str], int] = {}
        self._dynamic = bool(scene.layers)
        self._everything: tuple[Tool, ...] | None = None
        self.tools: tuple[Tool, ...] = scene.truth.tools
        self._by_name: dict[str, Tool] = scene.truth.by_name
        if self._dynamic:
            self._by_name = {}
            self._tell_turn()
            self._look()

    # -- what an agent sees --------------------------------------------------------------------

    @property
    def ask_now(self) -> Ask:
        """The user's request that is being worked on."""
        return self.scene.asks[self.asked]

    @property
    def observation(self) -> Turn:
        """The conversation so far and the tools on offer now."""
        tools = [*map(as_openai, self.tools), *protocol_tools()]
        return Turn(messages(self.scene, self.steps, as_it_came=True), tools)

    # -- what an agent does --------------------------------------------------------------------

    def call(self, name: str, arguments: dict[str, Any], said: str = "") -> tuple[str, Result]:
        """Calls a tool as shown.

        Args:
            name: of the tool, as shown.
            arguments: of the call.
            said: the words beside it.

        Returns:
            The text that comes back, and the result behind it.

        Raises:
            Over: where the episode has ended, or ends for want of budget.
        """
        return self._call(ToolCall(name, arguments), said)

    def _call(self, call: Call, said: str) -> tuple[str, Result]:
        self._spend()
        try:
            return self._carry_out(call, said)
        except ConnectionDropped as dropped:
            words = f"{call.name}: {dropped}"
            step = Step("failure", self.turn, name=DROPPED, said=words, ok=False)
            self._finish("infrastructure", step)
            raise Over from dropped
        except LayerFault as fault:
            self._break(fault)
            raise Over from fault
        except WorldFault as fault:
            broken = WorldFault(f"world {self.scene.world.name}: {fault}")
            if self.scene.truth is self.scene.clean.truth:
                raise broken from fault
            self._break(broken)
            raise Over from fault

    def _shown(self, result: Result, name: str) -> str:
        """The text of a result."""
        try:
            text = show(result)
            if not text.isascii():
                text.encode()  # half a character, which no trace can hold
            return text
        except (TypeError, ValueError, LookupError, AttributeError) as fault:
            if self.scene.layers:
                made = WrongReturn(f"made {_UNSHOWN}: {fault}")
                raise LayerFault(self.scene.layers[-1], made) from fault
            raise WorldFault(f"the action of {name} returned {_UNSHOWN}: {fault}") from fault

    def _carry_out(self, call: Call, words: str) -> tuple[str, Result]:
        session = self.session
        before, written = len(session.true_calls), len(session.upstream.effects)
        wrong, result = self._result_of(call)
        text = self._shown(result, call.name)
        shown = self.tools
        gone = self._look() if self._dynamic else ()
        loaded = self.tools is not shown and _loaded(self.tools, shown)
        made = session.true_calls[before:]
        true = made[-1][2] if made else None
        hint = result.hint.kind if result.hint else ""
        self.steps.append(
            Step(
                "call",
                self.turn,
                call.name,
                _spoken(call),
                text,
                words,
                ok=result.ok,
                error="" if result.ok else result.data["error"]["code"],
                provoked=result.provoked,
                hint=hint,
                true=tuple([(n, a) for n, a, _ in made]),
                effects=tuple(session.upstream.effects[written:]),
                touched=self._dynamic and not wrong and _touched(result, true),
                evidence=_evidence(result, bool(gone)),
                tools=tuple(tool.name for tool in self.tools) if gone or loaded else (),
            )
        )
        if true is not None and true.unrecorded:
            words = f"{call.name} was called as it never was in the recording"
            step = Step("failure", self.turn, name=NOT_RECORDED, said=words, ok=False)
            self._finish("infrastructure", step)
            raise Over
        if self.budget.repeats:
            self._count_repeats()
        return text, result

    def ask(self, question: str, prose: bool = False) -> str:
        """Asks the user.

        Args:
            question: as the agent puts it.
            prose: whether it was read out of prose.

        Returns:
            The user's reply.

        Raises:
            Over: where the episode has ended.
        """
        self._still_going()
        ask = self.ask_now
        so_far = replace(ask, text=heard_in(self.steps, ask))
        reply = user_answers(question, so_far, self.scene.world.facts)
        if ask.scripted and not leaves_out(so_far, reply.slot):
            return self._say(Step("answer", self.turn, ASK_USER, said=question, prose=prose))
        torn = isinstance(ask.goal.get(reply.slot), tuple)
        evidence = "contradictory_request" if torn else ""
        self.steps.append(
            Step(
                "ask",
                self.turn,
                text=reply.text,
                said=question,
                slot=reply.slot,
                prose=prose,
                evidence=evidence,
            )
        )
        return reply.text

    def answer(self, text: str, prose: bool = False) -> str:
        """Answers the request.

        Args:
            text: of the answer.
            prose: whether it was read out of prose.

        Returns:
            The user's next turn; "" where that was the last one.

        Raises:
            Over: where the episode has ended, or a shift breaks down at the next turn.
        """
        self._still_going()
        return self._say(Step("answer", self.turn, said=text, prose=prose))

    def final_answer(self, text: str) -> None:
        """Answers the request, or refuses it where the words of the answer do.

        "There is no place by that name." is a refusal, whether it is said through the protocol or
        in prose. What the check of the request takes for right stays an answer, and so does all
        that says neither why by itself (`says_why`) nor of what (`says_of_what`): here, unlike in
        prose, an answer is expected, and nobody replies to a question.

        Args:
            text: of the answer, as an agent gave it to `final_answer`.

        Raises:
            Over: where the episode has ended, or a shift breaks down at the next turn.
        """
        self._still_going()
        reading = self._refusal_in(text)
        if reading is None or reading.kind != "refusal":
            self.answer(text)
        else:
            self.refuse(reading.reason or UNSTATED, text, through=FINAL_ANSWER)
        if reading is not None and reading.judge:
            self.steps[-1] = msgspec.structs.replace(self.steps[-1], judge=reading.judge)

    def _refusal_in(self, text: str) -> ProseReading | None:
        """How an answer is read that may be a refusal; None for any other.

        A judge is only asked where the words look like a refusal, and decides there.
        """
        if self._goes_on or self._is_right(text):
            return None
        if self._read(text, final=True).kind != "refusal":
            return None
        reading = self._read(text, self.judge, final=True)
        decided = reading.judge and not reading.judge.endswith(FAILED)
        named = not has_codes(self.scene) and says_of_what(text, self.ask_now.text)
        if not decided and not named and not says_why(text):
            return msgspec.structs.replace(reading, kind="answer")
        return reading

    @property
    def _goes_on(self) -> bool:
        """Whether a refusal is no end: the user goes by a script, whatever is said to them."""
        scene, ask = self.scene, self.ask_now
        return ask.scripted and (scene.solvable or ask.blocked or scene.outcome.calls_alone)

    def _is_right(self, text: str) -> bool:
        """Whether an answer says what the check of its request wants."""
        said = [*self.steps, Step("answer", self.turn, said=text)]
        return any(
            bool(scene.asks[self.asked].pattern or scene.asks[self.asked].expected)
            and answers_right(scene, said)[self.asked]
            for scene in (self.scene, self.scene.clean)
            if self.asked < len(scene.asks)
        )

    def _read(
        self, text: str, judge: ProseReader | None = None, final: bool = False
    ) -> ProseReading:
        """What a message to the user is: a question, a refusal or an answer."""
        shown = "\n".join(step.text for step in self.steps if step.kind == "call")
        heard = heard_in(self.steps, self.ask_now)
        return read_ending(self.scene, text, shown, heard, judge, final)

    def _say(self, step: Step) -> str:
        """Ends a request with the words to the user; returns the user's next turn."""
        step = self._judged(step)
        if self.asked + 1 == len(self.scene.asks):
            self._finish("answered", step)
            return ""
        self.asked += 1
        for memory in self.session.memories:
            memory["asks"] = self.asked
        before = self.tools
        if self._dynamic:
            try:
                self._look()
            except LayerFault as fault:
                self._break(fault)
                raise Over from fault
        following = self.ask_now
        shown: tuple[str, ...] = ()
        if self.tools is not before and _names(self.tools) - _names(before):
            shown = tuple(tool.name for tool in self.tools)
        self.steps.append(
            msgspec.structs.replace(step, text=following.text, notice=following.notice, tools=shown)
        )
        return str(following.text)

    def _judged(self, step: Step) -> Step:
        """The step that ends a request, with the effects that the upstream adds to it."""
        upstream = self.session.upstream
        before = len(upstream.effects)
        if not follows(upstream):
            return step
        upstream.request_over(self._calls - self._calls_before)
        self._calls_before = self._calls
        return msgspec.structs.replace(step, effects=tuple(self.session.upstream.effects[before:]))

    def refuse(self, reason: str, said: str = "", prose: bool = False, through: str = "") -> None:
        """Ends the episode because the request cannot be fulfilled.

        Args:
            reason: one of `toolshift.core.message.REASONS`.
            said: the words beside it.
            prose: whether it was read out of prose.
            through: the tool in whose words it was read (`Step.through`).
        """
        self._still_going()
        step = Step("refuse", self.turn, reason, said=said, prose=prose, through=through)
        if not self._goes_on:
            self._finish("refused", step)
        elif self.asked + 1 == len(self.scene.asks):
            self._finish("refused", self._judged(step))
        else:
            self._say(msgspec.structs.replace(step, kind="answer"))

    def crash(self, why: str) -> None:
        """Ends the episode because the agent itself broke down; that is its own failure.

        Args:
            why: what it raised, in one line.
        """
        self._finish("crashed", Step("failure", self.turn, said=why, ok=False))

    def fail(self, why: str, own: bool = False) -> None:
        """Ends the episode because the agent's infrastructure failed.

        Args:
            why: what failed, in one line.
            own: only the agent itself says so (`OWN_OUTAGE`).
        """
        name = OWN_OUTAGE if own else ""
        self._finish("infrastructure", Step("failure", self.turn, name=name, said=why, ok=False))

    def overflow(self, why: str) -> None:
        """Ends the episode because its conversation is longer than the model's context.

        That is scored: what a scene shows decides it, and a model with more room goes on.

        Args:
            why: what the endpoint says, in one line.
        """
        self._finish("budget", Step("budget", self.turn, said=f"{CONTEXT}: {why}", ok=False))

    def _break(self, fault: LayerFault | WorldFault) -> None:
        """Ends the episode because the shift itself failed; the agent is not to blame."""
        self.fault = fault
        step = Step("failure", self.turn, name=BROKEN_SHIFT, said=str(fault), ok=False)
        self._finish("infrastructure", step)

    def next_turn(self) -> None:
        """Counts a turn of the agent; the episode ends where the budget is spent."""
        self.turn += 1
        if self._dynamic:
            self._tell_turn()
        if not self.end and self.turn >= self.budget.turns:
            self._finish("budget", Step("budget", self.turn, said="turns"))

    def use(self, new: Usage) -> None:
        """Counts the tokens of a reply.

        Args:
            new: what it took.
        """
        self.usage += new

    def take(self, reply: Reply) -> None:
        """Carries out one reply: its calls in order, or its prose.

        Args:
            reply: of the agent; its calls are read again, for a program may have made them itself.
        """
        reply = Reply.of(reply)
        beside = reply.extra
        recalled = reply.usage.recalled > 0 and not reply.usage.requests
        self.use(reply.usage)
        try:
            if reply.failure:
                (self.overflow if reply.overflow else self.fail)(reply.failure)
            elif reply.calls:
                for place, call in enumerate(reply.calls):
                    said, more = ("", {}) if place else (reply.text, beside)
                    self._take_kept(call, said, more, recalled)
            else:
                self._keep(
                    lambda: self._take_prose(reply.text), {"beside": beside, "recalled": recalled}
                )
        except Over:
            return
        self.next_turn()

    def _take_kept(self, call: Call, said: str, beside: dict[str, Any], recalled: bool) -> None:
        """Carries out a call, and keeps what came with it in its step."""
        if said and beside and call.name in PROTOCOL_NAMES:
            beside = {"content": said, **beside}  # the words beside such a call are not kept else
        kept = {
            "call_id": call.id,
            "extra": call.extra,
            "beside": beside,
            "recalled": recalled,
        }
        self._keep(lambda: self.take_call(call, said), kept)

    def _keep(self, act: Callable[[], None], kept: dict[str, Any]) -> None:
        """Does what adds a step, and keeps what came with it there, even where that ends it."""
        place = len(self.steps)
        try:
            act()
        finally:
            kept = {name: value for name, value in kept.items() if value}
            if kept and place < len(self.steps):
                self.steps[place] = msgspec.structs.replace(self.steps[place], **kept)

    # -- inside --------------------------------------------------------------------------------

    def _tell_turn(self) -> None:
        """Tells the layers which turn it is."""
        for memory in self.session.memories:
            memory["turn"] = self.turn

    def _spend(self) -> None:
        """Counts a call; the episode ends where the budget is spent."""
        self._still_going()
        if self._calls >= self.budget.calls:
            self._finish("budget", Step("budget", self.turn, said="calls"))
            raise Over
        self._calls += 1

    def _count_repeats(self) -> None:
        """Ends the episode where the last call had the same result as often as is allowed."""
        last = self.steps[-1]
        made = last.name, JSON.encode(last.arguments), last.text
        times = self._seen[made] = self._seen.get(made, 0) + 1
        if times == self.budget.repeats:
            self._finish("budget", Step("budget", self.turn, said=REPEATS))
            raise Over

    def _result_of(self, call: Call) -> tuple[bool, Result]:
        """The result of a call, and whether it is the client's error for an invalid call."""
        name, tool = call.name, self._by_name.get(call.name)
        if tool is None:
            offered = ", ".join(shown.name for shown in self.tools)
            return True, error("unknown_tool", f"Unknown tool {name}. Available tools: {offered}.")
        if isinstance(call, MalformedCall):
            return True, error(*_MALFORMED)
        wrong = "" if tool.retired else invalid_arguments(tool, call.arguments)
        if wrong:
            return True, error("invalid_arguments", f"{name}: {wrong}")
        return False, self.session.call(name, call.arguments)

    def _look(self) -> tuple[str, ...]:
        """Looks at the tools again; returns the names that have gone."""
        everything = self.session.tools()
        if everything is self._everything:
            return ()
        self._everything = everything
        before = self._by_name
        self._by_name, self.tools = _on_offer(everything)
        shown = _names(self.tools) if before else ()
        return tuple([n for n, tool in before.items() if not tool.retired and n not in shown])

    def take_call(self, call: Call, said: str = "", protocol: bool = True) -> None:
        """Carries out one call as the agent made it.

        Args:
            call: to a tool, or of the protocol.
            said: the words beside it.
            protocol: whether the protocol tools are on offer; else they are unknown tools.

        Raises:
            Over: where the episode has ended, or ends for want of budget.
        """
        if not protocol or call.name not in PROTOCOL_NAMES:
            self._call(call, said)
        elif isinstance(call, MalformedCall):
            self._reject(call, *_MALFORMED)
        elif wrong := protocol_error(call):
            self._reject(call, "invalid_arguments", wrong)
        elif call.name == FINAL_ANSWER:
            self.final_answer(call.arguments["answer"])
        elif call.name == REFUSE:
            self.refuse(call.arguments["reason"], str(call.arguments.get("explanation", said)))
        elif call.name == ASK_USER:
            self.ask(call.arguments["question"])

    def _reject(self, call: Call, code: str, wrong: str) -> None:
        """Answers a malformed protocol call like any other malformed call."""
        self._spend()
        text = show(error(code, wrong))
        self.steps.append(
            Step("call", self.turn, call.name, _spoken(call), text, ok=False, error=code)
        )
        if self.budget.repeats:
            self._count_repeats()

    def _take_prose(self, text: str) -> None:
        reading = self._read(text, self.judge)
        if reading.kind == "question":
            self.ask(text, prose=True)
        elif reading.kind == "refusal":
            self.refuse(reading.reason or UNSTATED, text, prose=True)
        else:
            self.answer(text, prose=True)
        if reading.judge:
            self.steps[-1] = msgspec.structs.replace(self.steps[-1], judge=reading.judge)

    def _still_going(self) -> None:
        if self.end:
            raise Over

    def _finish(self, end: End, step: Step) -> None:
        upstream = self.session.upstream
        before = len(upstream.effects)
        if closes(upstream):
            upstream.close()
            more = tuple(self.session.upstream.effects[before:])
            step = msgspec.structs.replace(step, effects=(*step.effects, *more))
        self.steps.append(step)
        self.end = end


@lru_cache(maxsize=256)  # the episodes of a scene are shown the same lists
def _on_offer(tools: tuple[Tool, ...]) -> tuple[dict[str, Tool], tuple[Tool, ...]]:
    """All tools by name, and the tools that are still shown."""
    by_name = {tool.name: tool for tool in tools}
    return by_name, tuple([tool for tool in tools if not tool.retired])


def _loaded(tools: tuple[Tool, ...], before: tuple[Tool, ...]) -> bool:
    """Whether tools have come into the list where there is a search for them."""
    return any(tool.lists for tool in tools) and not _names(tools) <= _names(before)


def _names(tools: Iterable[Tool]) -> set[str]:
    return {tool.name for tool in tools}


def _spoken(call: Call) -> dict[str, Any] | str:
    """The arguments of a call as a trace keeps them."""
    return call.text if isinstance(call, MalformedCall) else call.arguments


def read_ending(
    scene: Scene,
    text: str,
    shown: str,
    request: str,
    judge: ProseReader | None = None,
    final: bool = False,
) -> ProseReading:
    """Reads a message in prose by the rule of its scene, or by a judge; `final` if none replies."""
    reading = judge.read(text, shown, request) if judge else None
    if reading and not reading.judge.endswith(FAILED):
        return reading
    if has_codes(scene):
        kind, reason = read_prose(text, shown, request)
    else:
        none = may_be_none(scene)
        lines = (f"{tool.name} {tool.description}" for tool in scene.tools) if none else ()
        tools = "\n".join(lines)
        kind, reason = read_plain_prose(text, shown, request, none, final, tools)
    own = ProseReading(kind, reason)
    return msgspec.structs.replace(own, judge=reading.judge) if reading else own


def has_codes(scene: Scene) -> bool:
    """Whether the answers of a task are codes that cannot be guessed, as in our worlds.

    The clean scene decides, so that the same words are read alike in every shift.
    """
    return any(
        not ask.pattern and CODE.fullmatch(ask.expected or "") is not None
        for ask in scene.clean.asks
    )


def may_be_none(scene: Scene) -> bool:
    """Whether a right answer of a task may be "none"; the clean scene decides."""
    return any(
        is_none(wanted)
        for ask in scene.clean.asks
        for wanted in (ask.pattern or ask.expected or "",)
        if isinstance(wanted, str)
    )


def heard_in(steps: Sequence[Step], ask: Ask) -> str:
    """What the user said in a request."""
    since = next((n for n in range(len(steps), 0, -1) if steps[n - 1].kind == "answer"), 0)
    replies = [step.text for step in steps[since:] if step.kind == "ask"]
    return "\n".join((ask.text, *replies))


def _evidence(result: Result, gone: bool) -> str:
    if result.hint is not None and result.hint.kind == "fatal":
        return "service_failure"
    if gone:
        return "tool_unavailable"
    empty = result.ok and result.data == []
    if empty or (not result.ok and result.data["error"]["code"] == "not_found"):
        return "not_found"
    return ""


def _touched(result: Result, true: Result | None) -> bool:
    """Whether a layer changed a result, compared with the last true one."""
    if true is None or result.provoked or result.notice or result.form != true.form:
        return True
    return result.data is not true.data and result.data != true.data


def messages(scene: Scene, steps: Sequence[Step], as_it_came: bool = False) -> list[dict[str, Any]]:
    """The conversation of a trace as OpenAI messages; the calls of a turn are in one message.

    With `as_it_came` the agent's messages have the ids that it gave and what came beside them: a
    model is shown them so. Training rows leave that out.
    """
    return conversation(scene.system, scene.asks[0].text, steps, as_it_came)


def conversation(
    system: str, request: str, steps: Sequence[Step], as_it_came: bool = False
) -> list[dict[str, Any]]:
    """The same, where the beginning is known and the scene may not be."""
    dialogue: list[dict[str, Any]] = [
        {"role": "system", "content": system},
        {"role": "user", "content": request},
    ]
    spoken = (
        (f"call_{number}", step)
        for number, step in enumerate(steps)
        if step.kind not in ("failure", "budget")
    )
    for _, turn in groupby(spoken, key=lambda numbered: numbered[1].turn):
        steps_of_turn = list(turn)
        if as_it_came:
            steps_of_turn = _with_own_ids(steps_of_turn)
        beside = steps_of_turn[0][1].beside if as_it_came else {}
        dialogue.extend(_turn(steps_of_turn, beside, as_it_came))
    return dialogue


def _with_own_ids(turn: list[tuple[str, Step]]) -> list[tuple[str, Step]]:
    """A turn with the ids that the agent gave, where they tell its calls apart."""
    own = [step.call_id for _, step in turn]
    whole = all(own) and len(set(own)) == len(own)
    return [(step.call_id, step) for _, step in turn] if whole else turn


def _turn(
    turn: list[tuple[str, Step]], beside: dict[str, Any], as_it_came: bool
) -> list[dict[str, Any]]:
    """What was said in one turn of the agent, and what came back."""
    first = turn[0][1]
    if first.prose:
        return [{"role": "assistant", "content": first.said, **beside}, *_from_user(first)]
    content = first.said if first.kind == "call" else ""
    calls = [_as_call(name, step, step.extra if as_it_came else {}) for name, step in turn]
    results = [_tool(name, step) for name, step in turn if _is_answered(step)]
    heard = [m for _, step in turn if step.kind == "answer" for m in _from_user(step)]
    spoken = {"role": "assistant", "content": content, "tool_calls": calls, **beside}
    return [spoken, *results, *heard]


def _is_answered(step: Step) -> bool:
    """Whether a message of a tool follows a call: always, but for the one that ends the episode.

    A result may be empty. Endpoints refuse a conversation in which a call has none.
    """
    return step.kind in ("call", "ask") or (step.kind == "answer" and bool(step.text))


def _as_call(name: str, step: Step, extra: dict[str, Any]) -> dict[str, Any]:
    spoken: dict[str, tuple[str, Any]] = {
        "call": (step.name, step.arguments),
        "ask": (ASK_USER, {"question": step.said}),
        "answer": (FINAL_ANSWER, {"answer": step.said}),
        "refuse": (REFUSE, {"reason": step.name}),
    }
    kind = step.kind
    if kind == "answer" and step.name:
        kind = "ask" if step.name == ASK_USER else "refuse"
    if step.through:
        kind = "answer"
    tool, arguments = spoken[kind]
    return as_tool_call(tool, arguments, name, extra)


def _tool(name: str, step: Step) -> dict[str, Any]:
    text = "Delivered." if step.kind == "answer" else step.text
    return {"role": "tool", "tool_call_id": name, "content": text}


def _from_user(step: Step) -> list[dict[str, Any]]:
    notice = [{"role": "system", "content": step.notice}] if step.notice else []
    return [*notice, {"role": "user", "content": step.text}] if step.text else []
