"""Whatever reads foreign text takes time that grows as the text does, and no faster."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from functools import cache

import pytest

from toolshift.adapt.errors_said import failure_of
from toolshift.core.calls import read_arguments
from toolshift.core.documents import read_json, read_toml, read_yaml
from toolshift.core.errors import UsageError
from toolshift.core.redaction import Redactor
from toolshift.core.scene import Scene
from toolshift.core.text import one_line, visible
from toolshift.data.formats import hermes, read_as, recognised, toolace
from toolshift.drift.rewordings import says_otherwise
from toolshift.drift.schemas import wording
from toolshift.drift.stream import Reader
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, Over
from toolshift.interop.text_records import pieces
from toolshift.lm.parse_reply import parse_reply
from toolshift.reading.answers.by_words import matches
from toolshift.reading.prose import read_prose
from toolshift.reading.text import codes_in, fold
from toolshift.report.figures import shown
from toolshift.shifts.release.match import alike_names
from toolshift.worlds.registry import find_world

SMALL, TIMES = 1_000, 8
"""Characters of the shorter text, and how much longer the other one is."""
SLACK = 3.0
"""How much more than in proportion the longer may take; with the square it is eight times."""
QUICK = 0.15
"""Seconds of CPU under which nothing is compared: noise."""


def _hermes(text: str) -> object:
    turns = [{"from": "system", "value": text}, {"from": "gpt", "value": text}]
    return hermes.Hermes().read({"conversations": turns})


def _span(text: str) -> object:
    said = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.definitions")
    more = dict.fromkeys((*said, "gen_ai.input.messages"), text)
    name = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a"}
    line = {"attributes": {**name, **more, "gen_ai.response.finish_reasons": ["stop"]}}
    return Reader().read(json.dumps(line).encode())


def _sharegpt(text: str) -> object:
    turns = [{"from": who, "value": text} for who in ("human", "function_call", "observation")]
    row = {"conversations": turns, "tools": "[]"}
    return read_as(recognised(row), row)


def _error(text: str) -> object:
    return failure_of(json.dumps({"error": text}))


def _question(text: str) -> object:
    scene = _scene()
    return Episode(scene).ask(text)


@cache
def _scene() -> Scene:
    return make_scene(find_world("poi"), "listing", 0, pool="dev")


READERS: dict[str, Callable[[str], object]] = {
    "a local model's reply": lambda text: parse_reply(text, tools=("a", "tool")),
    "arguments": read_arguments,
    "prose": lambda text: read_prose(text, text[:500], "Find it."),
    "a question": _question,
    "a typed answer": lambda text: (
        matches(text, "12"),
        matches(text, "2026-03-03"),
        matches(text, "open"),
    ),
    "codes": lambda text: list(codes_in(text, {"AB-12", "Q7-K2"})),
    "folding": fold,
    "records in a server's text": pieces,
    "secrets": Redactor(("opensesame",)).clean,
    "ToolACE calls": lambda text: toolace.read_calls(text, ["a", "b"]),
    "Hermes turns": _hermes,
    "the terminal": lambda text: (visible(text), one_line(text)),
    "the page": shown,
    "two descriptions": lambda text: wording(text, text[::-1] + " so"),
    "two meanings": lambda text: says_otherwise(text, text[::-1] + " so"),
    "a span": _span,
    "ShareGPT turns": _sharegpt,
    "the words of an error": _error,
    "YAML": lambda text: read_yaml(text.encode(), ""),
    "TOML": lambda text: read_toml(text.encode(), ""),
    "JSON": lambda text: read_json(text.encode(), ""),
    "two names": lambda text: alike_names(text, text[::-1]),
}
UNITS = [
    "tool ",
    "a ",
    " ",
    "\n",
    "a()\n",
    'a(b="c")\n',
    "[",
    "{",
    "(",
    '"',
    "\\",
    "`",
    "```\n",
    "-",
    "_",
    "*",
    "<tool_call>",
    "<tool_call>x ",
    "</tool_call>",
    "<tools>",
    "sk-",
    "-eyJ",
    "Bearer ",
    "key=",
    "://a:",
    "-----BEGIN ",
    "AB-12 ",
    "The code is Q7-K2. ",
    "12 ",
    "3 March 2026, ",
    "not ",
    "Which one? ",
    "I cannot ",
    "?",
    "&#45;",
    "<a",
    "1,",
    "a: b\n",
    "- a\n",
    "|a|b|\n",
    "a,b\n",
    '{"a":',
    '{"name": "a", "arguments": {}}\n',
    "‑",
    "\u202e",
    "\x1b[",
]
STARTS = ["<tool_call>x", "a(b=", '{"name": "a", "arguments": "', "<tool_response>x"]
FILLERS = [" ", "a", "(", "\\", "<", "-"]


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    with contextlib.suppress(ValueError, RecursionError, Over, UsageError):
        read(text)
    return time.process_time() - start


def _texts(length: int) -> dict[str, str]:
    """One thing over and again, some after a beginning that asks for an end, which never comes."""
    made = [("", unit) for unit in UNITS] + [(start, unit) for start in STARTS for unit in FILLERS]
    return {
        start + unit: start + (unit * (length // len(unit) + 1))[:length] + "y"
        for start, unit in made
    }


LONG = {"a question", "a typed answer"}  # half a minute each


@pytest.mark.parametrize(
    "reader",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in READERS],
)
def test_time_grows_with_the_text(reader: str) -> None:
    read = READERS[reader]
    long = _texts(SMALL * TIMES)
    for name, text in _texts(SMALL).items():
        took = _seconds(read, long[name])
        if took > QUICK:
            took = min(took, *(_seconds(read, long[name]) for _ in range(2)))  # garbage, once
            short = min(_seconds(read, text) for _ in range(2))
            assert took < SLACK * TIMES * short, f"{name!r}: {short:.3f} s, then {took:.3f} s"
