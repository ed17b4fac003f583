"""A real MCP server for the tests of the proxy; `python shop_server.py` serves it over stdio."""

from __future__ import annotations

import os
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions

ORDERS = [
    {"order_ref": "R-1001", "total": 42.5, "status": "paid"},
    {"order_ref": "R-1002", "total": 7, "status": "shipped"},
    {"order_ref": "R-1003", "total": 99.99, "status": "paid"},
]
RECORD = {
    "type": "object",
    "properties": {
        "order_ref": {"type": "string"},
        "total": {"type": "number"},
        "status": {"type": "string"},
    },
    "required": ["order_ref", "total", "status"],
    "additionalProperties": False,
}
READS = {"readOnlyHint": True, "title": "Reads"}
TEXT = {"type": "string", "description": "What it is called."}
REF = {"type": "string", "description": "The `order_ref` of the order."}
PIXEL = "iVBORw0KGgo="


def tool(name: str, text: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    required = more.pop("required", list(properties))
    schema = {"type": "object", "properties": properties, **more.pop("root", {})}
    if required:
        schema["required"] = required
    return {"name": name, "description": text, "inputSchema": schema, **more}


TOOLS: list[dict[str, Any]] = [
    tool(
        "find_orders",
        "Find the orders of a customer. Use get_order for one of them.",
        {"customer": TEXT, "limit": {"type": "integer", "minimum": 1}},
        required=["customer"],
        annotations=READS,
        title="Order finder",
        outputSchema={
            "type": "object",
            "properties": {"orders": {"type": "array", "items": RECORD}},
            "required": ["orders"],
        },
    ),
    tool("get_order", "Get one order.", {"order_ref": REF}, annotations=READS, outputSchema=RECORD),
    tool(
        "cancel_order",
        "Cancel an order.",
        {"order_ref": REF, "reason": {"$ref": "#/$defs/Reason"}},
        root={"$defs": {"Reason": {"enum": ["late", "unwanted"], "description": "Why."}}},
    ),
    tool("count_cancelled", "Count the calls of cancel_order.", {}, annotations=READS),
    tool("read_note", "Read a note.", {"name": TEXT}, annotations=READS),
    tool("take_picture", "Take a picture.", {}, annotations=READS),
    tool("work", "Work for a while.", {"steps": {"type": "integer"}}, annotations=READS),
    tool("consult", "Ask the client for its roots.", {}, annotations=READS),
    tool(
        "nest",
        "Take a tree.",
        {"tree": {"$ref": "#/$defs/Node"}},
        annotations=READS,
        root={"$defs": {"Node": {"properties": {"child": {"$ref": "#/$defs/Node"}}}}},
    ),
    tool("hostile", "Answer badly.", {"kind": TEXT}, annotations=READS),
    tool("grow", "Bring a further tool.", {}, annotations=READS),
    tool("die", "End the server.", {}, annotations=READS),
]
LATER = tool("late_tool", "Came later.", {"word": TEXT}, annotations=READS)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def structured(data: dict[str, Any]) -> dict[str, Any]:
    import json

    return {"content": [text(json.dumps(data, indent=1))], "structuredContent": data}


def hostile(kind: str) -> dict[str, Any]:
    if kind == "big":
        return {"content": [text("x" * 10_000_000)]}
    if kind == "deep":
        return {"content": [text('{"a":' * 5000 + "1" + "}" * 5000)]}
    if kind == "deep structured":
        data: dict[str, Any] = {}
        for _ in range(100):
            data = {"a": data}
        return {"content": [text("deep")], "structuredContent": data}
    if kind == "control":
        return {"content": [text("\x00\x1b[31m\u202e\ufffe bell \x07")]}
    return {"content": [{"type": "resource_link", "uri": "note://one", "name": "one"}, text("{")]}


class Shop:
    """The state of one server."""

    def __init__(self) -> None:
        self.cancelled = self.left = 0
        self.tools = list(TOOLS)
        self.subscribed: list[str] = []

    async def list_tools(self, ctx: Any, params: Any) -> Any:
        start = int(params.cursor) if params is not None and params.cursor else 0
        page: dict[str, Any] = {"tools": self.tools[start : start + 5]}
        if start + 5 < len(self.tools):
            page["nextCursor"] = str(start + 5)
        return types.ListToolsResult.model_validate(page)

    async def call(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        return types.CallToolResult.model_validate(await self.answer(ctx, params))

    async def answer(  # noqa: PLR0912
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> dict[str, Any]:
        given = params.arguments or {}
        match params.name:
            case "find_orders":
                found = ORDERS[: given.get("limit", 3)] if given["customer"] != "nobody" else []
                return structured({"orders": found})
            case "get_order":
                found = [one for one in ORDERS if one["order_ref"] == given.get("order_ref")]
                if not found:
                    said = "get_order: there is no such order_ref, try find_orders"
                    return {"content": [text(said)], "isError": True}
                return structured(found[0])
            case "cancel_order":
                self.cancelled += 1
                return {"content": [text(f"cancelled: {given['reason']}")]}
            case "count_cancelled":
                return {"content": [text(f'{{"cancelled": {self.cancelled}}}')]}
            case "read_note":
                return {"content": [text(f"A note on {given['name']}.")]}
            case "take_picture":
                image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                return {"content": [text('{"width": 1}'), image]}
            case "work":
                for step in range(given["steps"]):
                    await ctx.session.report_progress(step + 1, given["steps"], f"step {step + 1}")
                return {"content": [text("done")]}
            case "consult":
                roots = await ctx.session.send_request(
                    types.ListRootsRequest(), types.ListRootsResult
                )
                return {"content": [text(", ".join(str(root.uri) for root in roots.roots))]}
            case "nest":
                return {"content": [text("a tree")]}
            case "hostile" if given["kind"] == "wait":
                try:
                    await anyio.sleep(30)
                finally:
                    self.left += 1
            case "hostile":
                return hostile(given["kind"])
            case "grow":
                self.tools = [*TOOLS, LATER]
                await ctx.session.send_tool_list_changed()
                return {"content": [text("grown")]}
            case "late_tool":
                return {"content": [text(given["word"])]}
            case "die":
                os._exit(3)
        raise types_error(-32602, f"unknown tool {params.name}; there is find_orders")


def types_error(code: int, message: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(code, message)


class ShopServer(Server[Any]):
    def create_initialization_options(self, *_: Any, **__: Any) -> Any:
        options = NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options)


def shop_server(shop: Shop | None = None) -> Server[Any]:
    shop = shop or Shop()

    async def resources(ctx: Any, params: Any) -> Any:
        return types.ListResourcesResult.model_validate(
            {"resources": [{"uri": "note://one", "name": "one", "mimeType": "text/plain"}]}
        )

    async def templates(ctx: Any, params: Any) -> Any:
        return types.ListResourceTemplatesResult.model_validate(
            {"resourceTemplates": [{"uriTemplate": "note://{name}", "name": "notes"}]}
        )

    async def read(ctx: Any, params: Any) -> Any:
        return types.ReadResourceResult.model_validate(
            {"contents": [{"uri": str(params.uri), "text": "note about find_orders"}]}
        )

    async def prompts(ctx: Any, params: Any) -> Any:
        return types.ListPromptsResult.model_validate(
            {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
        )

    async def prompt(ctx: Any, params: Any) -> Any:
        said = {"type": "text", "text": f"Greet {params.arguments['who']} with find_orders."}
        return types.GetPromptResult.model_validate(
            {"messages": [{"role": "user", "content": said}]}
        )

    async def complete(ctx: Any, params: Any) -> Any:
        return types.CompleteResult.model_validate(
            {"completion": {"values": [f"{params.argument.value}da"]}}
        )

    return ShopServer(
        "shop",
        version="7",
        instructions="Sells things.",
        on_list_tools=shop.list_tools,
        on_call_tool=shop.call,
        on_list_resources=resources,
        on_list_resource_templates=templates,
        on_read_resource=read,
        on_list_prompts=prompts,
        on_get_prompt=prompt,
        on_completion=complete,
    )


async def main() -> None:
    from mcp.server.stdio import stdio_server

    server = shop_server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
