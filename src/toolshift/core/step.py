"""One step of an episode, as a trace stores it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

StepKind = Literal["call", "ask", "answer", "refuse", "failure", "budget"]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened, as it is stored in a trace.

    Attributes:
        turn: the agent's turn, counted from 0; several calls may share one.
        name: of the tool called, or the reason of a refusal. Of an answer that ends a scripted turn
            ("ask_user", or a reason): what was said in its place.
        arguments: of the call; a string where it was malformed.
        text: what came back to the agent: a result, the user's reply or next turn.
        said: what the agent said: an answer, a question, an explanation, or the words beside the
            first call of a turn.
        ok: the call succeeded.
        error: the code of a failed call.
        provoked: the failure was made by the interface, not by the agent's call.
        hint: what the result asked for (see `tool.Hint`).
        true: the true calls behind it: name and arguments.
        effects: the writes that it made, in terms of entities.
        slot: what a question to the user was about; "" where he did not understand it.
        prose: said outside the protocol, and read by `reading.prose.read_prose`.
        through: of a refusal that was read in the words of an answer: the tool that carried them,
            "final_answer"; "" for any other step.
        judge: the model that was asked what the prose is (`agents.judge`); "" for none.
        told: of an answer that its type left unclear: "right" or "wrong", as a judge or somebody
            decided; "" where nobody has.
        told_by: who decided it.
        touched: what came back is not what the bare truth would have said.
        evidence: the reason for a refusal that came to light in this step.
        tools: the names on offer after this step, where some have gone, or come with a request.
        notice: the system message that came with the user's next turn.
        call_id: the agent's own, of the call; "" where it gave none.
        extra: what came beside the call (`ToolCall.extra`).
        beside: what came beside the message (`Reply.extra`); in the first step of its turn.
        recalled: the agent's reply was a stored answer (`--cache`), and no request was sent.
    """

    kind: StepKind
    turn: int
    name: str = ""
    arguments: dict[str, Any] | str = {}
    text: str = ""
    said: str = ""
    ok: bool = True
    error: str = ""
    provoked: bool = False
    hint: str = ""
    true: tuple[tuple[str, dict[str, Any]], ...] = ()
    effects: tuple[tuple[Any, ...], ...] = ()
    slot: str = ""
    prose: bool = False
    through: str = ""
    judge: str = ""
    told: str = ""
    told_by: str = ""
    touched: bool = False
    evidence: str = ""
    tools: tuple[str, ...] = ()
    notice: str = ""
    call_id: str = ""
    extra: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    recalled: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the call; none where it was malformed."""
        return self.arguments if isinstance(self.arguments, dict) else {}

    @property
    def malformed(self) -> bool:
        """Whether the arguments of the call could not be read."""
        return not isinstance(self.arguments, dict)
