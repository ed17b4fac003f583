"""Under any shift a client gets what it was promised, and the parts of a result agree.

Thirty tools of many forms stand behind the proxy. The official client checks the structured content
of each success against the `outputSchema` that it was shown, and raises where it does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pytest
from connect.office_server import Office
from connect.test_proxy import all_tools, shifting, visit
from mcp import Client

from toolshift.connect.mcp.shifted_server import ShiftOptions, shift_tools
from toolshift.core.errors import UsageError
from toolshift.interop.schema import sample
from toolshift.shifts.registry import shifts

SEEDS = 20
OBSERVED = ("format_drift", "csv_results", "truncation", "unit_change", "merged_tools")
Case = tuple[str, int, int]


def _options(case: Case) -> ShiftOptions:
    name, severity, seed = case
    needed = tuple(tool["name"] for tool in Office(seed).tools[:: 1 + seed % 7])
    return shifting(f"{name}:{severity}", seed=seed, needed=needed, may_write=True)


def _cases(seeds: int) -> Iterator[Case]:
    """Each shift at each severity that applies, with seeds in turn."""
    for number, (name, severity) in enumerate(_stacks()):
        for seed in range(number, number + seeds):
            case = (name, severity, seed % SEEDS)
            if _applies(case):
                yield case


def _stacks() -> Iterator[tuple[str, int]]:
    """All shifts, those of results first."""
    for name in (*OBSERVED, *(name for name in shifts() if name not in OBSERVED)):
        for severity in shifts()[name].severities:
            yield name, severity


@cache
def _applies(case: Case) -> bool:
    try:
        shift_tools(Office(case[2]).tools, _options(case))
    except UsageError:
        return False
    return True


async def _calls(client: Client, again: bool) -> list[Any]:
    """The results of all tools, in three rounds; the list is read once, or before each round."""
    found: list[Any] = []
    shown = await all_tools(client)
    for _ in range(3):
        for name, document in shown.items():
            schema = document["inputSchema"]
            properties = schema["properties"].items()
            given = {key: sample(inner, "R-1") for key, inner in properties}
            called = {key: given[key] for key in schema.get("required", ())}
            found.append(await client.call_tool(name, called))
        shown = await all_tools(client) if again else shown
    return found


def _order(blocks: list[dict[str, Any]], words: set[str]) -> list[str]:
    """The blocks of a result by kind: prose of the server as it is, its data once as "data"."""
    found: list[str] = []
    for block in blocks:
        said = block.get("text", "")
        label = (said if said in words else "data") if block["type"] == "text" else block["type"]
        found += [label + block.get("name", "")] if label != "data" or "data" not in found else []
    return found


def _is_prose(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and block["text"][:1] not in ("{", "[")


def _check(case: Case, again: bool) -> None:
    office = Office(case[2])
    answers = [one["content"] for one in office.answers.values()]
    words = {block["text"] for blocks in answers for block in blocks if _is_prose(block)}
    orders = [_order(blocks, words) for blocks in answers]
    for result in visit(partial(_calls, again=again), _options(case), office):
        if result.structured_content is not None:
            assert not result.is_error, (case, result)
            assert _said(result), (case, result)
        blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
        order = _order(blocks, words)
        alike = [one for one in orders if sorted(one) == sorted(order)]
        assert not alike or result.is_error or order in alike, (case, result)


def _said(result: Any) -> bool:
    """Whether the texts of a result say its structured content."""
    read = json.JSONDecoder().raw_decode
    data = result.structured_content
    texts = [block.text for block in result.content if block.type == "text"]
    said = [read(text)[0] for text in texts if text[:1] in ("{", "[")]
    forms = [*said, *({"result": one} for one in said), {"result": said}]
    return data in forms


@pytest.mark.parametrize("again", [True, False], ids=["listed again", "listed once"])
def test_results_keep_what_was_promised(again: bool, share: Callable[..., Any]) -> None:
    cases = list(_cases(1))
    assert {name for name, *_ in cases} >= {"csv_results", "format_drift", "truncation"}
    results = [case for case in cases if case[0] in OBSERVED]
    for case in {*results, *share(cases, 8, f"contracts {again}")}:
        _check(case, again)


@pytest.mark.slow
@pytest.mark.parametrize("again", [True, False], ids=["listed again", "listed once"])
def test_results_keep_what_was_promised_for_all_seeds(again: bool) -> None:
    for case in _cases(SEEDS):
        _check(case, again)
