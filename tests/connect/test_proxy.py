"""The proxy between the official client and a real server of the same library, in one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from connect.shop_server import ORDERS, TOOLS, Shop, shop_server
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsResult, ResourceTemplateReference, Root

from toolshift.connect.mcp.proxy import in_process
from toolshift.connect.mcp.shifted_server import ShiftedTools, ShiftOptions
from toolshift.connect.trace import Trace
from toolshift.core.scene import Applied
from toolshift.drift.lock import lock_tools
from toolshift.interop.mcp_client import Target
from toolshift.shifts.observation import Drift

Visit = Callable[[Client], Awaitable[Any]]
CITED = {"customer": "Ada"}


def shifting(*stack: str, **more: Any) -> ShiftOptions:
    applied = (one.split(":") for one in stack)
    return ShiftOptions(tuple(Applied(name, int(sev)) for name, sev in applied), **more)


def visit(
    work: Visit,
    how: ShiftOptions | None = None,
    shop: Shop | None = None,
    trace: Trace | None = None,
    mode: str = "auto",
    seconds: float = 60,
    **client: Any,
) -> Any:
    """Does some work as a client, directly where `how` is None."""

    async def go() -> Any:
        transport: Any = InMemoryTransport(shop_server(shop))
        if how is not None:
            transport = in_process(Target(transport=transport), how, trace)
        async with Client(transport, mode=mode, **client) as session:
            return await asyncio.wait_for(work(session), seconds)

    return asyncio.run(go())


async def all_tools(client: Client) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found |= {t.name: t.model_dump(by_alias=True, exclude_none=True) for t in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            return found


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content if block.type == "text"]


# -- nothing shifted is nothing changed ----------------------------------------------------------


async def transcript(client: Client) -> list[Any]:
    """What a client can see of a server, errors and notices included."""
    heard: list[Any] = []

    async def ask(request: Awaitable[Any]) -> Any:
        try:
            answer = await request
        except MCPError as fault:
            heard.append(["error", fault.code, fault.message, fault.data])
            return None
        heard.append(answer.model_dump(mode="json", by_alias=True))
        return answer

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append([done, total, message])

    heard.append([client.server_info.model_dump(), client.server_capabilities.model_dump()])
    heard.append([client.instructions, client.protocol_version])
    page = await ask(client.list_tools())
    while page.next_cursor:
        page = await ask(client.list_tools(cursor=page.next_cursor))
    for name, given in (
        ("find_orders", CITED),
        ("get_order", {"order_ref": "R-1001"}),
        ("get_order", {"order_ref": "nope"}),
        ("cancel_order", {"order_ref": "R-1001", "reason": "late"}),
        ("count_cancelled", {}),
        ("take_picture", {}),
        ("nothing", {}),
        ("hostile", {"kind": "control"}),
        ("hostile", {"kind": "link"}),
    ):
        await ask(client.call_tool(name, given))
    await ask(client.call_tool("work", {"steps": 3}, progress_callback=progress))
    await ask(client.list_resources())
    await ask(client.list_resource_templates())
    await ask(client.read_resource("note://one"))
    await ask(client.list_prompts())
    await ask(client.get_prompt("greet", {"who": "Ada"}))
    reference = ResourceTemplateReference(uri="note://{name}")
    await ask(client.complete(reference, {"name": "name", "value": "A"}))
    return heard


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_without_shifts_the_whole_transcript_is_the_same(mode: str) -> None:
    assert visit(transcript, ShiftOptions(), mode=mode) == visit(transcript, mode=mode)


def test_what_is_not_about_tools_passes_under_shifts_too() -> None:
    def rest(heard: list[Any]) -> list[Any]:
        return heard[-6:]

    shifted = visit(transcript, shifting("identity_erasure:3", "format_drift:3"))
    assert rest(shifted) == rest(visit(transcript))


def test_the_server_can_ask_the_client() -> None:
    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///tmp/one")])  # type: ignore[arg-type]

    async def consult(client: Client) -> list[str]:
        return texts(await client.call_tool("consult", {}))

    for how in (ShiftOptions(), shifting("schema_noise:1")):
        heard = visit(consult, how, mode="legacy", list_roots_callback=roots)
        assert heard == ["file:///tmp/one"]


# -- shifted -------------------------------------------------------------------------------------


def test_all_pages_are_shifted_and_shown_as_one() -> None:
    tools = visit(all_tools, shifting("identity_erasure:3"))
    assert len(tools) == len(TOOLS)
    assert not set(tools) & {tool["name"] for tool in TOOLS}
    told = {tool["description"] for tool in tools.values()}
    assert "Take a picture." in told
    assert not any(tool["name"] in text for tool in TOOLS for text in told if "_" in tool["name"])


def test_renamed_tools_and_parameters_reach_the_true_ones() -> None:
    async def order(client: Client) -> Any:
        tools = await all_tools(client)
        name, tool = next(one for one in tools.items() if "Get one order" in one[1]["description"])
        (param,) = tool["inputSchema"]["properties"]
        assert (name, param) != ("get_order", "order_ref")
        found = await client.call_tool(name, {param: "R-1001"})
        lost = await client.call_tool(name, {param: "nope"})
        return name, found, lost, tools

    name, found, lost, tools = visit(order, shifting("tool_name_noise:3", "parameter_rename:3"))
    assert found.structured_content == ORDERS[0]
    assert lost.is_error
    (said,) = texts(lost)
    assert said.startswith(f"{name}: ")
    assert "find_orders" not in said
    assert "get_order" not in said
    assert any(tool_name in said for tool_name in tools)


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_a_drifted_format_says_the_same_and_promises_no_schema(severity: int) -> None:
    async def order(client: Client) -> Any:
        tools = await all_tools(client)
        return tools, await client.call_tool("get_order", {"order_ref": "R-1001"})

    tools, found = visit(order, shifting(f"format_drift:{severity}"))
    assert "outputSchema" not in tools["get_order"]
    (text,) = texts(found)
    assert all(str(value) in text for value in ORDERS[0].values())
    assert "order_ref" not in text
    if found.structured_content:
        assert json.loads(text) == found.structured_content


LISTED = {"type": "object", "additionalProperties": True}


class OpenShop(Shop):
    """Lists open records as Python servers do: one text each, all of them in an envelope."""

    def __init__(self) -> None:
        super().__init__()
        schema = {"properties": {"result": {"type": "array", "items": LISTED}}, "type": "object"}
        self.tools = [{**TOOLS[0], "outputSchema": schema}]

    async def answer(self, ctx: Any, params: Any) -> dict[str, Any]:
        found = ORDERS if params.arguments["customer"] == "Ada" else []
        said = [{"type": "text", "text": json.dumps(one, indent=2)} for one in found]
        return {"content": said, "structuredContent": {"result": found}}


@pytest.mark.parametrize("severity", [1, 2])
def test_a_list_of_open_records_drifts_in_its_texts_too(severity: int) -> None:
    async def orders(client: Client) -> Any:
        tools = await all_tools(client)
        none = await client.call_tool("find_orders", {"customer": "nobody"})
        return tools, await client.call_tool("find_orders", CITED), none

    tools, found, none = visit(orders, shifting(f"format_drift:{severity}"), OpenShop())
    (text,) = texts(found)
    assert all(str(value) in text for one in ORDERS for value in one.values())
    assert "order_ref" not in text
    if found.structured_content:
        assert len(found.structured_content["result"]) == len(ORDERS)
        assert not any("order_ref" in one for one in found.structured_content["result"])
    assert (none.structured_content or {"result": []}) == {"result": []}
    assert "outputSchema" not in tools["find_orders"]


async def order_by(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    return (await client.call_tool(name, arguments)).structured_content


def test_tools_behind_an_action_answer_as_they_did() -> None:
    async def work(client: Client) -> Any:
        ((name, tool),) = (await all_tools(client)).items()
        (chooser,) = tool["inputSchema"]["required"]
        right = await order_by(client, name, {chooser: "get_order", "order_ref": "R-1001"})
        wrong = await client.call_tool(name, {chooser: "get_order"})
        return right, wrong.is_error, "\n".join(texts(wrong))

    right, failed, text = visit(work, shifting("tools_by_action:3"))
    assert right == ORDERS[0]
    assert failed
    assert "order_ref" in text


def test_tools_behind_a_search_are_found_and_called() -> None:
    async def work(client: Client) -> Any:
        tools = await all_tools(client)
        search, run = tools
        (query,), (choice, nest) = (tools[name]["inputSchema"]["required"] for name in tools)
        found = await client.call_tool(search, {query: "order"})
        call = {choice: "get_order", nest: {"order_ref": "R-1001"}}
        return "\n".join(texts(found)), await order_by(client, run, call)

    found, right = visit(work, shifting("tools_behind_search:2"))
    assert "get_order" in found
    assert right == ORDERS[0]


def test_a_stale_list_is_replaced_by_the_call_that_fails() -> None:
    async def work(client: Client) -> Any:
        before = await all_tools(client)
        failed = await client.call_tool("get_order", {"order_ref": "R-1001"})
        after = await all_tools(client)
        (now,) = (n for n, t in after.items() if t["description"] == "Get one order.")
        return before, failed.is_error, now, await order_by(client, now, {"order_ref": "R-1001"})

    before, failed, now, right = visit(work, shifting("stale_tool_list:2"))
    assert list(before) == [tool["name"] for tool in TOOLS]
    assert failed
    assert now != "get_order"
    assert right == ORDERS[0]


def test_an_argument_of_another_type_reaches_the_tool_as_it_was() -> None:
    async def work(client: Client) -> Any:
        schema = (await all_tools(client))["get_order"]["inputSchema"]["properties"]["order_ref"]
        value: Any = ["R-1001"] if schema["type"] == "array" else {"content": "R-1001"}
        refused = await client.call_tool("get_order", {"order_ref": "R-1001"})
        return refused.is_error, await order_by(client, "get_order", {"order_ref": value})

    assert visit(work, shifting("type_change:2")) == (True, ORDERS[0])


def test_text_that_is_not_json_and_pictures_pass() -> None:
    async def both(client: Client) -> Any:
        note = await client.call_tool("read_note", {"name": "rain"})
        return note, await client.call_tool("take_picture", {})

    note, picture = visit(both, shifting("format_drift:2"))
    assert texts(note) == ["A note on rain."]
    kinds = [block.type for block in picture.content]
    assert sorted(kinds) == ["image", "text"]
    assert '{"width": 1}' not in texts(picture)


def test_a_change_of_tools_is_announced() -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async def call_until_they_move(client: Client) -> Any:
        before = await all_tools(client)
        for _ in range(3):
            await client.call_tool("read_note", {"name": "x"})
        return before, await all_tools(client)

    how = shifting("tool_removed_midway:3")
    before, after = visit(call_until_they_move, how, mode="legacy", message_handler=listen)
    assert set(before) != set(after)
    assert heard.count("notifications/tools/list_changed") == 1


def test_tools_that_the_server_brings_later_are_seen_under_the_same_shift() -> None:
    async def grow(client: Client) -> Any:
        tools = await all_tools(client)
        name = next(n for n, t in tools.items() if t["description"] == "Bring a further tool.")
        await client.call_tool(name, {})
        return name, tools, await all_tools(client)

    name, before, after = visit(grow, shifting("identity_erasure:3"), mode="legacy")
    assert name != "grow"
    assert set(after) - set(before) == {"late_tool"}
    assert set(before) < set(after)


def test_listening_clients_of_the_newer_era_hear_of_changes_too() -> None:
    async def listen(client: Client) -> Any:
        assert client.server_capabilities.tools.list_changed
        async with client.listen(tools_list_changed=True) as stream:
            for _ in range(2):
                await client.call_tool("read_note", {"name": "x"})
            async for event in stream:
                return type(event).__name__

    assert visit(listen, shifting("tool_removed_midway:3")) == "ToolsListChanged"


def test_a_shift_that_does_not_apply_is_said_to_the_client() -> None:
    async def look(client: Client) -> Any:
        with pytest.raises(MCPError) as fault:
            await client.list_tools()
        return fault.value.message

    said = visit(look, shifting("merged_tools:2"))
    assert "merged_tools:2 is not applicable to these tools: no pair to merge" in said
    assert len(visit(all_tools, shifting("merged_tools:2", skip=True))) == len(TOOLS)


def test_one_spoken_write_is_one_real_write() -> None:
    async def cancel(client: Client) -> Any:
        given = {"order_ref": "R-1001", "reason": "late"}
        spoken = 0
        for _ in range(4):
            result = await client.call_tool("cancel_order", given)
            spoken += not result.is_error
        return spoken

    for stack in (["transient_error:3"], ["schema_noise:2", "format_drift:3"]):
        shop = Shop()
        spoken = visit(cancel, shifting(*stack), shop)
        assert shop.cancelled == spoken > 0


def test_calls_at_the_same_time_do_not_mix() -> None:
    async def many(client: Client) -> Any:
        calls = [client.call_tool("read_note", {"name": f"n{n}"}) for n in range(50)]
        return [texts(result) for result in await asyncio.gather(*calls)]

    heard = visit(many, shifting("schema_noise:2"))
    assert heard == [[f"A note on n{n}."] for n in range(50)]


@pytest.mark.parametrize("how", [ShiftOptions(), shifting("schema_noise:2")])
def test_a_call_that_is_given_up_is_given_up_behind_the_proxy(
    how: ShiftOptions, tmp_path: Path
) -> None:
    shop = Shop()

    async def give_up(client: Client) -> list[str]:
        await client.list_tools()
        waiting = asyncio.create_task(client.call_tool("hostile", {"kind": "wait"}))
        await asyncio.sleep(0.3)
        waiting.cancel()
        for _ in range(100):
            if shop.left:
                break
            await asyncio.sleep(0.02)
        return texts(await client.call_tool("read_note", {"name": "after"}))

    file = tmp_path / "trace.jsonl"
    assert visit(give_up, how, shop, Trace(file), mode="legacy") == ["A note on after."]
    assert shop.left == 1
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    made = {line["tool"]: line["ok"] for line in lines if "tool" in line}
    assert made == {"hostile": False, "read_note": True}  # one without an answer is no success


# -- what a hostile or dying server does -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["big", "deep", "deep structured", "control", "link"])
@pytest.mark.parametrize("how", [ShiftOptions(), shifting("format_drift:3", "parameter_rename:1")])
def test_hostile_results_leave_the_proxy_healthy(kind: str, how: ShiftOptions) -> None:
    async def survive(client: Client) -> Any:
        tools = await all_tools(client)
        (param,) = tools["hostile"]["inputSchema"]["properties"]
        (name,) = tools["read_note"]["inputSchema"]["properties"]
        bad = await client.call_tool("hostile", {param: kind})
        return bad, texts(await client.call_tool("read_note", {name: "after"}))

    bad, after = visit(survive, how)
    assert not bad.is_error
    assert after == ["A note on after."]
    direct = visit(lambda client: client.call_tool("hostile", {"kind": kind}))
    assert texts(bad) == texts(direct)


def test_a_circular_schema_is_shown_and_called() -> None:
    async def nest(client: Client) -> Any:
        tools = await all_tools(client)
        (param,) = tools["nest"]["inputSchema"]["properties"]
        given = {param: {"child": {"child": {}}}}
        return tools["nest"], texts(await client.call_tool("nest", given))

    tool, heard = visit(nest, shifting("parameter_rename:3"))
    assert tool["inputSchema"]["$defs"] == TOOLS[8]["inputSchema"]["$defs"]
    assert heard == ["a tree"]


# -- a layer that fails ----------------------------------------------------------------------------


def test_a_layer_that_fails_costs_its_call_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def call(self: Any, name: str, arguments: Any, memory: Any, below: Any) -> Any:
        if arguments == {"name": "x"}:
            raise RuntimeError("a fault of its own")
        return below(name, arguments)

    monkeypatch.setattr(Drift, "call", call)

    async def work(client: Client) -> Any:
        bad = await client.call_tool("read_note", {"name": "x"})
        return bad, await client.call_tool("count_cancelled", {})

    bad, good = visit(work, shifting("format_drift:1"))
    assert bad.is_error
    assert texts(bad) == ["toolshift could not shift this call (RuntimeError)"]
    assert texts(good) == ['{"cancelled": 0}']
    assert "a fault of its own" in capfd.readouterr().err


# -- calls by the names of a lock ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shifts", "moved"),
    [([], False), (["tool_name_noise:1"], True), (["identity_erasure:3"], False)],
)
@pytest.mark.parametrize("rewrite", [True, False])
def test_only_calls_by_names_of_the_same_words_are_moved_and_only_with_rewrite(
    shifts: list[str], moved: bool, rewrite: bool, tmp_path: Path
) -> None:
    async def known(client: Client) -> tuple[Any, Any]:
        tools = await all_tools(client)
        return tools, await client.call_tool("get_order", {"order_ref": "R-1001"})

    tools, expected = visit(known)
    lock = lock_tools(tools.values())

    async def by_heart(client: Client) -> Any:
        return await client.call_tool("get_order", {"order_ref": "R-1001"})

    file = tmp_path / "trace.jsonl"
    how = shifting(*shifts, lock=lock, rewrite=rewrite, needed=("get_order",))
    answer = visit(by_heart, how, trace=Trace(file))
    works = not shifts or (moved and rewrite)
    assert answer.is_error == (not works)
    assert (texts(answer) == texts(expected)) == works
    calls = [line for line in map(json.loads, file.read_text().splitlines()) if "tool" in line]
    assert ["adapted" in line for line in calls] == [moved and rewrite]
    if moved and rewrite:
        assert calls[0]["adapted"]["asked"] == {
            "tool": "get_order",
            "arguments": {"order_ref": "R-1001"},
        }


def test_a_client_that_lists_again_sees_what_a_server_has_added_without_a_word() -> None:
    class Silent:
        listed = TOOLS[:2]

        async def tools(self, meta: Any) -> tuple[list[Any], dict[str, Any]]:
            return self.listed, {}

    async def look() -> tuple[list[str], list[str]]:
        how = ShiftOptions((Applied("identity_erasure", 3),))
        server: Any = Silent()
        tools = ShiftedTools(server, how, None)
        before = await tools.list({})
        server.listed = TOOLS[:3]
        after = await tools.list({})
        return [tool["name"] for tool in before["tools"]], [tool["name"] for tool in after["tools"]]

    before, after = asyncio.run(look())
    assert after[:2] == before
    assert len(after) == 3
