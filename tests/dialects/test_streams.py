"""Streams as providers send them: no call is lost, none made up, and the model is asked once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from dialects.streams import WIRES, Sent, drawn_calls

from toolshift.connect.callables import start_episode
from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.connect.model_proxy.settings import ShiftOptions
from toolshift.core.http import httpx
from toolshift.dialects import DIALECTS
from toolshift.dialects.form import ToldError
from toolshift.dialects.sse import events
from toolshift.shifts.stacks import read_stack

STREAMS = 1000
TOOLS = start_episode("poi/booking/0").tools()[:3]
NAMES = [tool["function"]["name"] for tool in TOOLS]


class Pieces(httpx.AsyncByteStream):
    """Bytes as a network brings them: one by one, all at once, or in between."""

    def __init__(self, rng: Random, raw: bytes) -> None:
        self._rng, self._raw = rng, raw

    async def __aiter__(self) -> AsyncIterator[bytes]:
        most, at = self._rng.choice((1, 9, 200, 100_000)), 0
        while at < len(self._raw):
            size = self._rng.randint(1, most)
            yield self._raw[at : at + size]
            at += size


class Setting:
    """A proxy before a model that streams what it is told to."""

    def __init__(self, dialect: str) -> None:
        self.wire, self.asked = WIRES[dialect], 0
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._upstream))
        options = ShiftOptions(read_stack("tool_name_noise:3"))
        way = httpx.ASGITransport(app=ModelProxy("http://model/v1", options, client=client).app)
        self.agent = httpx.AsyncClient(transport=way, base_url="http://proxy")
        self.stream: Any = None

    def _upstream(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        shown = self.wire.shown(json.loads(request.content))
        assert not set(shown) & set(NAMES)
        return httpx.Response(200, stream=self.stream(dict(zip(NAMES, shown, strict=True))))

    async def ask(self) -> str:
        got = await self.agent.post(self.wire.path, json=self.wire.request(TOOLS))
        assert got.status_code == 200, got.text
        return got.text


def drawn(rng: Random, wire: Any, names: dict[str, str]) -> tuple[str, list[Any], Sent]:
    text = rng.choice(("", "Hm.", "a\u2028b\n\ndata: x", "é" * 5))
    calls = drawn_calls(rng, NAMES)
    return text, calls, wire.stream(rng, text, [(names[name], given) for name, given in calls])


@pytest.mark.parametrize("dialect", sorted(WIRES))
def test_no_call_of_a_stream_is_lost_and_none_made_up(dialect: str) -> None:
    asyncio.run(_whole_cut_and_broken(Setting(dialect)))


async def _whole_cut_and_broken(setting: Setting) -> None:
    for seed in range(STREAMS):
        rng = Random(seed)
        expected: list[Any] = []

        def upstream(names: dict[str, str], rng: Random = rng, into: Any = expected) -> Pieces:
            text, calls, sent = drawn(rng, setting.wire, names)
            raw, how = sent.raw, rng.choice(("whole", "whole", "cut", "broken"))
            if how == "cut":
                raw = raw[: rng.randrange(sent.end)]
            elif how == "broken":
                place = rng.randrange(len(sent.frames))
                raw = b"".join((*sent.frames[:place], setting.wire.error(rng)))
            into.extend((text, calls, how, raw))
            return Pieces(rng, raw)

        setting.stream, setting.asked = upstream, 0
        answer = await setting.ask()
        heard = setting.wire.heard(answer)
        text, calls, how, raw = expected
        assert setting.asked == 1, (seed, raw)
        if how == "whole":
            assert (heard.text, heard.calls, heard.error) == (text, calls, ""), (seed, raw)
        else:
            assert heard.error, (seed, raw)
            assert not heard.calls, (seed, raw)


@pytest.mark.parametrize("dialect", sorted(WIRES))
def test_a_stream_cut_at_any_byte_is_not_whole(dialect: str) -> None:
    asyncio.run(_cut_anywhere(dialect))


async def _cut_anywhere(dialect: str) -> None:
    for seed in range(6):
        rng = Random(seed)
        _, _, sent = drawn(rng, WIRES[dialect], {name: name for name in NAMES})
        for end in range(sent.end):
            assert not await _is_whole(dialect, sent.raw[:end]), (seed, end, sent.raw[:end])
        assert await _is_whole(dialect, sent.raw)


async def _is_whole(dialect: str, raw: bytes) -> bool:
    async def at_once() -> AsyncIterator[bytes]:
        yield raw

    stream = DIALECTS.find(dialect).stream({})
    try:
        async for event in events(at_once()):
            list(stream.add(event.name, event.data))
    except (ValueError, ToldError):
        return False
    return stream.whole
