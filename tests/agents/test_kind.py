"""Agents of the user's own that cannot work are said in one sentence, with the nearest name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from running import Run

CODE = """
from toolshift import Reply


class Overlap:
    name = "overlap"

    def reply(self, turn):
        return Reply(text="x")


class Nameless:
    def reply(self, turn):
        return "x"


class Numbered(Overlap):
    name = 5


class Replays:
    name = "r"

    def replay(self, turn):
        return "x"


class NeedsModel(Overlap):
    def __init__(self, model):
        pass


class Two(Overlap):
    def reply(self, messages, tools):
        return "x"


class Few(Overlap):
    batch = 2

    def reply_batch(self, turns):
        return []


def one(messages):
    return "x"


def nothing(messages, tools):
    pass
"""
PLACE = r"\(second.py, line \d+\)"
MISTAKES = [
    ("second.Overlap", "written as second:Overlap"),
    ("second", "written as second:reply"),
    ("secnd:Overlap", "no module 'secnd' .*did you mean second:Overlap"),
    ("second:Overlp", "has no 'Overlp': did you mean second:Overlap"),
    ("second:", "name what is meant in the module: it has Few, Nameless"),
    ("second:Zebra", "it has Few, Nameless, NeedsModel"),
    ("second:Nameless", f"{PLACE}: it has reply.turn. and no `name`"),
    ("second:Numbered", f"{PLACE}: its `name` is 5"),
    ("second:Replays", f"{PLACE}: .*did you mean reply in place of replay"),
    ("second:NeedsModel", f"{PLACE} could not be made without arguments: .*'model'"),
    ("second:Two", f"raised on its first turn: .*'tools' {PLACE}; its reply is called with .turn."),
    ("second:Few", f"0 replies to 2 turns {PLACE}; its reply_batch is called with a list of turns"),
    ("second:one", rf"{PLACE}: it cannot be called with \(messages, tools\)"),
    ("second:nothing", rf"not NoneType {PLACE}; it is called with \(messages, tools\)"),
]


@pytest.mark.parametrize(("spec", "said"), MISTAKES, ids=[spec for spec, _ in MISTAKES])
def test_an_agent_that_cannot_work_is_said(toolshift: Run, spec: str, said: str) -> None:
    Path("second.py").write_text(CODE)
    words = ("--tasks", "2", "--shift", "clean", "--kind", "listing", "--no-placebo")
    code, _, err = toolshift("run", "--agent", spec, *words)
    assert code == 2
    assert re.search(said, err), err
    assert len(err.strip().splitlines()) == 1
