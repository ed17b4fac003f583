"""Under any shift the official client takes each result by the `outputSchema` that it was shown.

The client checks the structured content of a success against that schema, and raises where it does
not fit. The real proxy stands between it and a real server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from connect.shop_server import READS, RECORD, structured, text, tool
from connect.test_proxy import Shop, all_tools, shifting, texts, visit
from mcp import Client

from toolshift.connect.mcp.shifted_server import ShiftOptions, shift_tools
from toolshift.core.errors import UsageError
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Applied
from toolshift.core.tool import Result
from toolshift.interop.schema import sample
from toolshift.interop.tools import from_mcp, from_openai
from toolshift.shifts.live import Live, live_scene, shifted
from toolshift.shifts.registry import shifts
from toolshift.shifts.surface import Surface

ID = {"id": {"type": "string"}}
ROUTE = {
    "type": "object",
    "properties": {
        "route_id": {"type": "string"},
        "duration_minutes": {"type": "integer"},
        "leg": {
            "type": "object",
            "properties": {"distance_km": {"type": "number"}, "departs": {"type": "string"}},
            "required": ["distance_km"],
        },
    },
    "required": ["route_id", "duration_minutes", "leg"],
}
FEW = {"type": "array", "items": RECORD, "minItems": 3}
LISTED = {"type": "object", "properties": {"result": FEW}, "required": ["result"]}
LOOSE = {"type": "object", "properties": {"note": {"type": ["string", "null"]}}}
ORDER = {"order_ref": "R-1", "total": 42.5, "status": "paid"}
LEG = {"distance_km": 3.5, "departs": "08:15"}
ANSWERS: dict[str, dict[str, Any]] = {
    "get_order": structured(ORDER),
    "list_orders": structured({"result": [{**ORDER, "order_ref": f"R-{n}"} for n in range(3)]}),
    "find_route": structured({"route_id": "A7", "duration_minutes": 7, "leg": LEG}),
    "read_note": structured({"note": None, "more": [{"word_count": 3}]}),
    "get_customer": structured({"customer_id": "C-1", "full_name": "Ada"}),  # declares nothing
    "get_invoice": {"content": [text(json.dumps({"invoice_id": "I-1", "total": 9}))]},
    "cancel": {"content": [text("done")]},
    "refund": {"content": [text("There is no such id.")], "isError": True},
}
DECLARED = {"get_order": RECORD, "list_orders": LISTED, "find_route": ROUTE, "read_note": LOOSE}
WRITES = {"cancel": {}, "refund": {"outputSchema": RECORD}}


def _listed(name: str) -> dict[str, Any]:
    if name in WRITES:
        return tool(name, f"{name.title()} by id.", ID, **WRITES[name])
    more = {"outputSchema": DECLARED[name]} if name in DECLARED else {}
    return tool(name, f"{name.replace('_', ' ').capitalize()}.", ID, annotations=READS, **more)


class Office(Shop):
    """Some of its tools declare their results, and some do not."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [_listed(name) for name in ANSWERS]

    async def answer(self, ctx: Any, params: Any) -> dict[str, Any]:
        return ANSWERS[params.name]


Case = tuple[str, int, int, tuple[str, ...]]
NEEDED = ((), ("cancel",), ("get_order", "list_orders"))


def _cases(seeds: int) -> Iterator[Case]:
    """All shifts that apply to these tools, with the tools that an agent is said to need."""
    for name, found in shifts().items():
        for severity in found.severities:
            for seed in range(seeds):
                for needed in NEEDED:
                    case = (name, severity, seed, needed)
                    if _applies(case):
                        yield case


def _options(case: Case) -> ShiftOptions:
    name, severity, seed, needed = case
    return shifting(f"{name}:{severity}", seed=seed, needed=needed, may_write=True)


def _applies(case: Case) -> bool:
    try:
        shift_tools(Office().tools, _options(case))
    except UsageError:
        return False
    return True


async def _call_all(client: Client, rounds: int = 3) -> list[tuple[str, Any]]:
    """Calls all tools that are shown, again and again, as the list stands then."""
    found = []
    for _ in range(rounds):
        for name, shown in (await all_tools(client)).items():
            schema = shown["inputSchema"]
            given = {key: sample(inner, "R-1") for key, inner in schema["properties"].items()}
            called = {key: given[key] for key in schema.get("required", ())}
            found.append((name, await client.call_tool(name, called)))
    return found


def _says_the_same(result: Any) -> bool:
    """Whether a text of a result is its structured content, maybe with a notice after it."""
    read = json.JSONDecoder().raw_decode
    return any(
        said[:1] in ("{", "[") and result.structured_content in _forms(read(said)[0])
        for said in texts(result)
    )


def _forms(data: Any) -> tuple[Any, ...]:
    return data, {"result": data}


def _check(case: Case) -> None:
    for name, result in visit(partial(_call_all), _options(case), Office()):
        if result.structured_content is not None:
            assert _says_the_same(result), (case, name, result)
            assert not result.is_error


def test_the_client_takes_every_result_of_a_shifted_server(share: Callable[..., Any]) -> None:
    cases = list(_cases(1))
    assert {name for name, *_ in cases} >= {"csv_results", "format_drift", "truncation"}
    for case in share(cases, 30, "output schemas"):
        _check(case)


def test_a_need_for_one_tool_does_not_vouch_for_the_others() -> None:
    for shift in ("csv_results", "format_drift"):
        _check((shift, 2, 0, ("cancel",)))


@pytest.mark.slow
def test_the_client_takes_every_result_for_many_seeds() -> None:
    for case in _cases(4):
        _check(case)


# -- which schemas stay --------------------------------------------------------------------------


def _kept(*stack: str, needed: tuple[str, ...] = ()) -> set[str]:
    """The true tools that are shown with their schema of results."""
    live, _ = shift_tools(Office().tools, shifting(*stack, needed=needed, may_write=True))
    shown = zip(live.tools(), live.documents(), strict=True)
    return {tool.origin[0] for tool, document in shown if "outputSchema" in document}


ALL = {*DECLARED, "refund"}


@pytest.mark.parametrize(
    "stack",
    [
        ("tool_name_noise:3", "parameter_rename:3"),
        ("transient_error:3",),
        ("type_change:3",),
        ("tool_migrated:2",),
        ("stale_tool_list:3",),
    ],
)
def test_a_schema_stays_where_no_result_changes(stack: tuple[str, ...]) -> None:
    assert _kept(*stack) == ALL


def test_a_schema_goes_where_a_result_may_change() -> None:
    assert not _kept("csv_results:2", needed=("cancel",))
    assert not _kept("format_drift:1", "tool_name_noise:2")
    assert _kept("truncation:1") == ALL - {"list_orders"}


def test_rows_and_requests_of_a_model_lose_what_declared_their_results() -> None:
    said = {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": ID}}
    for key in ("outputSchema", "return", "response"):
        toolbox = from_openai([{"type": "function", "function": {**said, key: RECORD}}])
        for shift, kept in (("tool_name_noise", True), ("csv_results", False)):
            scene = shifted(live_scene(toolbox), (Applied(shift, 2),))
            (shown,) = Live(scene, toolbox, lambda *_: None).documents()  # type: ignore[arg-type,return-value]
            assert (key in shown["function"]) is kept


class Shouts(Surface):
    """A layer with a call of its own, over one that leaves results as they are."""

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        return below(name, arguments).with_(data={"LOUD": True})


def test_a_layer_speaks_for_its_own_call_alone() -> None:
    (tool, *_) = from_mcp(Office().tools).tools
    assert not Surface().changes_results(tool)
    assert Shouts().changes_results(tool)
    assert not Layer().changes_results(tool)
