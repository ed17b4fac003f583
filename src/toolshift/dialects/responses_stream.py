"""A streamed response while it arrives: events read, and events for the agent.

Thoughts and texts go on at once. From the first call on all waits, so that items keep their order;
calls are written whole once the response is. Items and events are numbered anew, for the agent may
read several answers of the model as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from toolshift.dialects.form import Answer, Body, Message, Reason, ToldError
from toolshift.dialects.responses_items import (
    CALLS,
    Item,
    places_of,
    read_spoken,
    write_calls,
)
from toolshift.dialects.sse import DONE, frame, read_data

_LIFE = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete")
_GROWN = {
    "response.function_call_arguments.delta": ("arguments", False),
    "response.function_call_arguments.done": ("arguments", True),
    "response.custom_tool_call_input.delta": ("input", False),
    "response.custom_tool_call_input.done": ("input", True),
}
"""Events with a piece of what a call says; whether it is the whole."""
_TYPES = {
    "response.function_call_arguments.delta": "function_call",
    "response.function_call_arguments.done": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.custom_tool_call_input.done": "custom_tool_call",
}
"""What the item is of which these events tell."""
_OF_ITEMS = (
    "response.output_item.", "response.content_part.", "response.output_text.", "response.refusal.",
    "response.reasoning_", "response.function_call_arguments.", "response.custom_tool_call_input.",
)  # fmt: skip
"""The beginnings of the events that are known to tell of an item; others do not go on."""
_REASONS: dict[Any, Reason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def as_asked(response: Body, asked: Body) -> Body:
    """A response that repeats the tools and the choice of its request: as the agent sent them."""
    own = {
        "tools": asked.get("tools") or [],
        "tool_choice": asked.get("tool_choice") or "auto",
        "previous_response_id": asked.get("previous_response_id"),
    }
    return {**response, **{key: value for key, value in own.items() if key in response}}


@dataclass
class _Told:
    """What the agent has been told so far, over all answers that it reads as one."""

    head: Body = field(default_factory=dict)
    events: int = 0
    items: list[Item] = field(default_factory=list)
    late: list[bytes] = field(default_factory=list)


@dataclass
class _Slot:
    """An item while it arrives; `place` is its number for the agent, None while it waits."""

    item: Item
    index: int
    whole: bool = False
    place: int | None = None
    waiting: list[Body] = field(default_factory=list)

    @property
    def is_call(self) -> bool:
        return self.item.get("type") in CALLS


class ResponsesStream:
    """The events of a response.

    Args:
        asked: the agent's request, which responses repeat in part.
        told: what the agent has been told in answers before it; None for the first.
    """

    def __init__(self, asked: Body, told: _Told | None = None) -> None:
        self.whole = False
        self._asked, self._told = asked, told or _Told()
        self._first = told is None
        self._slots: list[_Slot] = []
        self._end: Body = {}

    # -- in ------------------------------------------------------------------------------------

    def add(self, event: str, data: str) -> list[bytes]:
        """Takes an event in; gives those that may go on now."""
        late, self._told.late = self._told.late, []
        if data.strip() == DONE:
            return late
        piece = read_data(data)
        kind = piece.get("type") or event
        if kind in ("error", "response.failed") or (piece.get("error") and not piece.get("type")):
            raise ToldError(self._failure(piece))
        if kind in _LIFE:
            return [*late, *self._begin(kind, piece)]
        if kind in _ENDS:
            self._finish(kind, piece)
            return late
        return [*late, *self._going(kind, piece)]

    def _failure(self, piece: Body) -> Body:
        """A failure as the agent is told of it; its response is the one that it has begun."""
        response = piece.get("response")
        if not isinstance(response, dict):
            inner = piece.get("error")
            return inner if isinstance(inner, dict) and "message" not in piece else piece
        told = as_asked(response, self._asked) | {"output": self._told.items}
        told |= {"id": self._told.head["id"]} if "id" in self._told.head else {}
        return {**piece, "response": told, "sequence_number": self._told.events}

    def _begin(self, kind: str, piece: Body) -> list[bytes]:
        response = piece.get("response")
        if not isinstance(response, dict):
            raise ValueError(f"an event {kind} without a response")
        if not self._first:
            return []
        self._told.head = response
        return [self._frame({**piece, "response": as_asked(response, self._asked)}, kind)]

    def _finish(self, kind: str, piece: Body) -> None:
        response = piece.get("response")
        if not isinstance(response, dict):
            raise ValueError(f"an event {kind} without a response")
        self._end = {"status": kind.removeprefix("response."), **response}
        self.whole = True
        for place, item in enumerate(response.get("output") or ()):
            if not isinstance(item, dict):
                raise ValueError("an item of the output is no JSON object")
            slot = self._slot_of(item, place)
            if slot is None:
                self._slots.append(_Slot(item, place, True))
            elif not slot.whole:
                slot.item, slot.whole = item, True

    def _going(self, kind: str, piece: Body) -> list[bytes]:
        slot = self._slot(kind, piece) if str(kind).startswith(_OF_ITEMS) else None
        if slot is None:  # of an item that never began; the whole one comes at the end
            return []
        self._grow(slot, kind, piece)
        if slot.place is None and self._must_wait(slot):
            slot.waiting.append({**piece, "type": kind})
            return []
        return [self._placed(slot, {**piece, "type": kind})]

    def _must_wait(self, slot: _Slot) -> bool:
        return slot.is_call or any(one.place is None for one in self._slots if one is not slot)

    def _slot(self, kind: str, piece: Body) -> _Slot | None:
        """The item that an event is of."""
        item, index = piece.get("item"), piece.get("output_index")
        index = index if isinstance(index, int) else None
        if not isinstance(item, dict):
            return self._slot_of({"id": piece.get("item_id"), "type": _TYPES.get(kind)}, index)
        begins = kind == "response.output_item.added"
        found = self._slot_of(item, index, begins)
        if found is None or (begins and found.whole):
            place = index if index is not None else len(self._slots)
            found = _Slot(dict(item), place)
            self._slots.append(found)
        if kind == "response.output_item.done":
            found.item, found.whole = item, True
        return found

    def _slot_of(self, item: Item, index: int | None, begins: bool = False) -> _Slot | None:
        """By its ids; else by its number, for some gateways give each event another id.

        An item that begins is another one where its ids are others. The id of a call, which the
        model has made, is the same in all events. Where an event has no number either, it is of
        the item that began last and is not whole.
        """
        alike = []
        for slot in reversed(self._slots):
            both = [k for k in ("id", "call_id") if item.get(k) and slot.item.get(k)]
            others = [key for key in both if item[key] != slot.item[key]]
            if both and not others:
                return slot
            if "call_id" in others or (begins and (others or index is None)):
                continue
            same_kind = (item.get("type") or slot.item.get("type")) == slot.item.get("type")
            here = slot.index == index if index is not None else not slot.whole
            alike += [slot] if here and same_kind else []
        return alike[0] if alike else None

    def _grow(self, slot: _Slot, kind: str, piece: Body) -> None:
        key, whole = _GROWN.get(kind, ("", False))
        if not key or slot.whole:
            return
        text = piece.get(key if whole else "delta")
        if isinstance(text, str):
            before = "" if whole else slot.item.get(key) or ""
            slot.item = {**slot.item, key: before + text}

    # -- what has come -------------------------------------------------------------------------

    @property
    def answer(self) -> Answer:
        """The message so far."""
        items = [slot.item for slot in self._in_order]
        details = self._end.get("incomplete_details")
        why = details.get("reason") if isinstance(details, dict) else None
        cut = self._end.get("status") == "incomplete"
        reason = _REASONS.get(why, "length") if cut else ""
        name = str(self._end.get("id") or "")
        return Answer(read_spoken(items), self._end.get("usage"), reason, name)

    @property
    def _in_order(self) -> list[_Slot]:
        return sorted(self._slots, key=lambda slot: slot.index)

    # -- out -----------------------------------------------------------------------------------

    def again(self) -> ResponsesStream:
        """The stream of a further response, which the agent reads as part of this one."""
        for slot in self._in_order:
            if not slot.is_call and slot.place is None:
                self._told.late += self._released(slot)
        return ResponsesStream(self._asked, self._told)

    def closing(self, message: Message, usage: Any, cut: bool) -> Iterable[bytes]:
        """The last events: what waited, the calls of a message, why it ended, what it cost."""
        yield from self._told.late
        slots = self._in_order
        places = places_of(self._asked.get("tools"))
        calls = message.get("tool_calls") or ()
        written = write_calls([slot.item for slot in slots], calls, places)
        for slot, item in zip(slots, written, strict=False):
            if slot.is_call and item is not None:
                yield from self._call(item)
            elif not slot.is_call:
                yield from self._released(slot)
        for item in written[len(slots) :]:
            if item is not None:
                yield from self._call(item)
        yield self._last(usage, cut)

    def _last(self, usage: Any, cut: bool) -> bytes:
        response = as_asked(self._end, self._asked) | {"output": self._told.items}
        response |= {"id": self._told.head["id"]} if "id" in self._told.head else {}
        response |= {"usage": usage} if usage else {}
        if cut:
            details = {"reason": "max_output_tokens"}
            response |= {"status": "incomplete", "incomplete_details": details}
        kind = f"response.{response['status']}"
        return self._frame({"type": kind, "response": response}, kind)

    def _released(self, slot: _Slot) -> list[bytes]:
        """What waited of an item; all of it, where no event has told of it."""
        if slot.place is None and not slot.waiting:
            kinds = ("response.output_item.added", "response.output_item.done")
            slot.waiting = [{"type": kind, "item": slot.item} for kind in kinds]
        waiting, slot.waiting = slot.waiting, []
        frames = [self._placed(slot, piece) for piece in waiting]
        if slot.place is not None:
            self._told.items[slot.place] = slot.item
        return frames

    def _call(self, item: Item) -> Iterator[bytes]:
        """A call of the agent's tools, whole."""
        place, key = len(self._told.items), CALLS[item["type"]]
        self._told.items.append(item)
        named = {"item_id": item.get("id") or "", "output_index": place}
        begun = {**item, key: ""} | ({"status": "in_progress"} if "status" in item else {})
        text = item.get(key) or ""
        grown = "custom_tool_call_input" if key == "input" else "function_call_arguments"
        for kind, said in (
            ("response.output_item.added", {"item": begun, "output_index": place}),
            (f"response.{grown}.delta", {**named, "delta": text}),
            (f"response.{grown}.done", {**named, key: text}),
            ("response.output_item.done", {"item": item, "output_index": place}),
        ):
            yield self._frame({"type": kind, **said}, kind)

    def _placed(self, slot: _Slot, piece: Body) -> bytes:
        if slot.place is None:
            slot.place = len(self._told.items)
            self._told.items.append(slot.item)
        self._told.items[slot.place] = slot.item
        return self._frame({**piece, "output_index": slot.place}, piece["type"])

    def _frame(self, piece: Body, kind: str) -> bytes:
        number = self._told.events
        self._told.events += 1
        return frame({**piece, "sequence_number": number}, kind)
