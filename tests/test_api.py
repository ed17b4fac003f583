"""What a Python user calls: the arguments of `evaluate`."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from toolshift.api import attempt, evaluate
from toolshift.core.errors import UsageError
from toolshift.runs.suite import Selection


def test_evaluate_takes_every_part_of_a_selection_at_its_default() -> None:
    taken = {name: param.default for name, param in signature(evaluate).parameters.items()}
    wanted = {name: getattr(Selection(), name) for name in Selection.__struct_fields__}
    assert {name: taken[name] for name in wanted} == wanted


def test_one_name_stands_for_a_list_of_one() -> None:
    report = evaluate(
        "oracle", worlds="poi", kinds="visit", shifts="query_typos:1", tasks=2, placebo=False
    )
    assert report.agents[0].everything.episodes == 4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"worlds": ["medicine"]}, "did you mean medical"),
        ({"without": "perceptions"}, "unknown shift"),
        ({"tasks": "ten"}, "tasks: Expected"),
        ({"workers": 0}, "at least 1"),
        ({"concurrency": -1}, "at least 1"),
        ({"workers": 10**30}, "at most"),
        ({"workers": None}, "workers: Expected `int`"),
        ({"concurrency": b"2"}, "concurrency: Expected `int | null`"),
        ({"agent_timeout": "5"}, "agent_timeout: Expected `float | null`"),
        ({"executor": None}, "executor: Expected `str`"),
        ({"judge": 3}, "judge: Expected `str`"),
        ({"out": 3}, "out: a folder is named by a text or a path"),
        ({"seeds": 10**30}, "seeds must be at most"),
        ({"tasks": 10**30}, "tasks must be at most"),
        ({"trials": 10**30}, "trials must be at most"),
        ({"seed": "\ud800"}, "half of a character"),
    ],
)
def test_a_wrong_argument_is_named(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate("oracle", **asked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"task": None}, r"task: Expected `str`"),
        ({"task": b"poi/visit"}, r"task: Expected `str`"),
        ({"shifts": 3}, r"shifts: Expected `str`"),
        ({"seed": "0"}, r"seed: Expected `int`"),
        ({"seed": 1.5}, r"seed: Expected `int`"),
        ({"pool": None}, r"pool: Expected `str`"),
        ({"size": None}, r"size: Expected `int`"),
        ({"trial": -1}, r"trial: Expected `int` >= 0"),
        ({"tools": 3}, r"tools: Expected `array`"),
        ({"tools": [b"find_place"]}, r"tools.*: Expected `str`"),
        ({"tools": "find_plac"}, r"find_place"),
    ],
    ids=str,
)
def test_an_argument_of_attempt_of_another_type_is_said(words: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        attempt(**{"agent": "oracle", "task": "poi/visit/0", **words})
