"""Under any shift a client gets what it was promised, and the parts of a result agree.

Thirty tools of many forms stand behind the proxy. The official client checks the structured content
of each success against the `outputSchema` that it was shown, and raises where it does not fit. The
same cases with the official TypeScript client are in `test_typescript_client.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jsonschema
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
ROUNDS = (True, False, False, True, True)
"""Whether the list is read again before a round of calls: new lists and old ones are both met."""
LONGEST = 600.0
"""Seconds for a case, which has up to 2150 calls, on a machine with much else to do."""
Case = tuple[str, int, int]


def options(case: Case) -> ShiftOptions:
    name, severity, seed = case
    needed = tuple(tool["name"] for tool in Office(seed).tools[:: 1 + seed % 7])
    return shifting(f"{name}:{severity}", seed=seed, needed=needed, may_write=True)


def cases(seed: int | None = None) -> Iterator[Case]:
    """Each shift at each severity that applies, under one seed; without one, with seeds in turn."""
    for number, (name, severity) in enumerate(_stacks()):
        case = (name, severity, number % SEEDS if seed is None else seed)
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
        shift_tools(Office(case[2]).tools, options(case))
    except UsageError:
        return False
    return True


async def _calls(client: Client) -> list[Any]:
    """What comes back from all tools, in several rounds."""
    found: list[Any] = []
    shown: dict[str, dict[str, Any]] = {}
    for again in ROUNDS:
        shown = await all_tools(client) if again else shown
        for name, document in shown.items():
            schema = document["inputSchema"]
            properties = schema["properties"].items()
            given = {key: sample(inner, "R-1") for key, inner in properties}
            called = {key: given[key] for key in schema.get("required", ())}
            try:
                result = await client.call_tool(name, called)
            except Exception as fault:
                found.append({"name": name, "error": str(fault)})
                continue
            found.append({"name": name, "result": result.model_dump(by_alias=True, mode="json")})
    return found


def _order(blocks: list[dict[str, Any]], words: set[str]) -> list[str]:
    """The blocks of a result by kind: prose of the server as it is, its data once as "data"."""
    found: list[str] = []
    for block in blocks:
        said = block.get("text", "")
        label = (said if said in words else "data") if block["type"] == "text" else block["type"]
        label += block.get("name") or ""
        found += [label] if label != "data" or "data" not in found else []
    return found


def _is_data(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and block["text"][:1] in ("{", "[")


def broken(case: Case, met: list[dict[str, Any]]) -> list[Any]:
    """What a client has met that breaks a promise."""
    answers = [one["content"] for one in Office(case[2]).answers.values()]
    texts = [block for blocks in answers for block in blocks if block["type"] == "text"]
    words = {block["text"] for block in texts if not _is_data(block)}
    orders = [_order(blocks, words) for blocks in answers]
    found: list[Any] = [] if met else [(case, "nothing was called")]
    for one in met:
        result = one.get("result")
        if result is None or not (_agrees(result) and _in_order(result, orders, words)):
            found.append((case, one))
    return found


def _in_order(result: dict[str, Any], orders: list[list[str]], words: set[str]) -> bool:
    order = _order(result["content"], words)
    alike = [one for one in orders if sorted(one) == sorted(order)]
    return bool(not alike or result.get("isError") or order in alike)


def _agrees(result: dict[str, Any]) -> bool:
    """Whether the texts of a result say its structured content."""
    data = result.get("structuredContent")
    if data is None:
        return True
    read = json.JSONDecoder().raw_decode
    said = [read(block["text"])[0] for block in result["content"] if _is_data(block)]
    forms = [*said, *({"result": one} for one in said), {"result": said}]
    return not result.get("isError") and data in forms


def _check(taken: Iterator[Case] | list[Case] | set[Case]) -> None:
    """Plays the cases, and tells of all that is broken in them."""
    faults = [one for case in taken for one in broken(case, _met(case))]
    assert not faults, (len(faults), faults[:5])


def _met(case: Case) -> list[dict[str, Any]]:
    met: list[dict[str, Any]] = visit(_calls, options(case), Office(case[2]), seconds=LONGEST)
    return met


@pytest.fixture(autouse=True)
def _schemas_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the time went to the same schemas, held against the metaschema for each client."""
    held = jsonschema.Draft202012Validator.check_schema
    known = set[str]()

    def check(schema: Any, *more: Any, **options: Any) -> None:
        written = json.dumps(schema, sort_keys=True)
        if written not in known:
            held(schema, *more, **options)
            known.add(written)

    monkeypatch.setattr(jsonschema.Draft202012Validator, "check_schema", check)


def test_results_keep_what_was_promised(share: Callable[..., Any]) -> None:
    found = list(cases())
    assert {name for name, *_ in found} >= {"csv_results", "format_drift", "truncation"}
    results = [case for case in found if case[0] in OBSERVED]
    _check({*results, *share(found, 8, "contracts")})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_results_keep_what_was_promised_under_all_seeds(seed: int) -> None:
    _check(cases(seed))


def test_a_result_that_breaks_its_schema_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Office.__init__

    def broken_office(office: Office, seed: int) -> None:
        held(office, seed)
        for tool in office.tools:
            if "outputSchema" in tool:
                tool["outputSchema"]["required"] = ["never there"]

    monkeypatch.setattr(Office, "__init__", broken_office)
    case = ("parameter_rename", 1, 3)
    assert any("never there" in str(one) for one in broken(case, _met(case)))
