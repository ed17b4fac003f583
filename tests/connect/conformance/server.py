"""The server that the conformance tests of MCP ask for: its tools, resources and prompts.

    python server.py --http PORT     or over standard input and output

It is what stands behind the proxy: what passes before it must pass before the proxy too.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQ"
    "AAAABJRU5ErkJggg=="
)
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
MISSING_CAPABILITY, INVALID = -32021, -32602
STRING = {"type": "string"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
CHOICES = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": f"{word} Option"}
    for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
]
DEFAULTS = {
    "name": {**STRING, "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {**STRING, "enum": CHOICES},
    "titledSingle": {**STRING, "oneOf": TITLED},
    "legacyEnum": {
        **STRING,
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {**STRING, "enum": CHOICES}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
USER = {
    "username": {**STRING, "description": "User's response"},
    "email": {**STRING, "description": "User's email address"},
}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {**STRING, "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SIMPLE: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        },
    ],
}


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampled(prompt: str, most: int) -> dict[str, Any]:
    message = {"role": "user", "content": text(prompt)}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": most},
    }


NAME = form("What is your name?", name=STRING)
ROOTS = {"method": "roots/list", "params": {}}
WANTED: dict[str, dict[str, Any]] = {
    "elicitation": {"user_name": NAME},
    "sampling": {"capital_question": sampled("What is the capital of France?", 100)},
    "list_roots": {"client_roots": ROOTS},
    "request_state": {"confirm": form("Please confirm", ok={"type": "boolean"})},
    "multiple_inputs": {
        "user_name": NAME,
        "greeting": sampled("Generate a greeting", 50),
        "client_roots": ROOTS,
    },
    "tampered_state": {"confirm": form("Please confirm", ok={"type": "boolean"})},
    "capabilities": {"user_name": NAME, "greeting": sampled("Generate a greeting", 50)},
}
STEPS = (
    {"step1": form("Step 1: What is your name?", name=STRING)},
    {"step2": form("Step 2: What is your favorite color?", color=STRING)},
)
STATEFUL = ("request_state", "multiple_inputs", "tampered_state")
NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def tool(name: str, schema: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    made = {"type": "object", "properties": properties, "required": list(properties)}
    said = name.replace("_", " ").capitalize()
    return {
        "name": name,
        "description": f"{said}.",
        "inputSchema": schema or made,
        "annotations": {"readOnlyHint": True},
    }


PLAIN = """test_tool_with_logging test_error_handling test_tool_with_progress test_logging_tool
    test_elicitation_sep1034_defaults test_elicitation_sep1330_enums test_reconnection
    test_streaming_elicitation test_missing_capability test_trigger_tool_change"""
TOOLS = [
    *map(tool, (*SIMPLE, *PLAIN.split())),
    tool("test_sampling", prompt=STRING),
    tool("test_elicitation", message=STRING),
    tool("json_schema_2020_12_tool", SCHEMA_2020_12),
    tool("test_header", region={**STRING, "x-mcp-header": "Region"}),
    *(tool(f"test_input_required_result_{kind}") for kind in (*WANTED, "multi_round")),
]  # fmt: skip
LATER = tool("test_later")


def declared(ctx: Any, capability: str) -> bool:
    able = ctx.session.client_capabilities
    return able is not None and getattr(able, capability, None) is not None


class Everything:
    """The handlers."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools = TOOLS

    async def list_tools(self, ctx: Any, params: Any) -> Any:
        return types.ListToolsResult.model_validate(
            {"tools": self.tools, "ttlMs": 60_000, "cacheScope": "public"}
        )

    async def call(self, ctx: Any, params: Any) -> Any:  # noqa: PLR0912  one case a tool
        name = params.name
        if name in SIMPLE:
            return self.said(*SIMPLE[name])
        if name.startswith("test_input_required_result_"):
            return self.asked(ctx, params, name.removeprefix("test_input_required_result_"))
        given = params.arguments or {}
        match name:
            case "test_error_handling":
                found = self.said(text("This tool intentionally returns an error for testing"))
                return found.model_copy(update={"is_error": True})
            case "test_tool_with_logging" | "test_logging_tool":
                for said in (
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed",
                ):
                    await ctx.session.send_log_message(
                        "info", said, related_request_id=ctx.request_id
                    )
                    await anyio.sleep(0.05)
            case "test_tool_with_progress":
                for done in (0, 50, 100):
                    await ctx.session.report_progress(done, 100)
                    await anyio.sleep(0.05)
            case "test_streaming_elicitation":
                await ctx.session.report_progress(1, 1)
                if "user_name" not in (params.input_responses or {}):
                    return self.wants({"user_name": NAME}, None)
            case "test_sampling":
                return self.said(text(f"LLM response: {await self.sample(ctx, given['prompt'])}"))
            case "test_elicitation":
                return await self.elicit(ctx, given["message"], USER, list(USER))
            case "test_elicitation_sep1034_defaults":
                return await self.elicit(ctx, "Please give your details", DEFAULTS, [])
            case "test_elicitation_sep1330_enums":
                return await self.elicit(ctx, "Please choose", ENUMS, [])
            case "test_reconnection":
                if ctx.close_sse_stream is not None:
                    await ctx.close_sse_stream()
                await anyio.sleep(0.1)
            case "test_missing_capability":
                self.require(ctx, "sampling")
            case "test_trigger_tool_change":
                self.tools = [*TOOLS, LATER] if len(self.tools) == len(TOOLS) else TOOLS
                await self.bus.publish(ToolsListChanged())
            case "json_schema_2020_12_tool" | "test_header" | "test_later":
                pass
            case _:
                raise MCPError(INVALID, f"Unknown tool: {name}")
        return self.said(text(f"{name}: done"))

    def said(self, *blocks: dict[str, Any]) -> Any:
        return types.CallToolResult.model_validate({"content": list(blocks)})

    def require(self, ctx: Any, capability: str) -> None:
        if not declared(ctx, capability):
            wanted = {"requiredCapabilities": {capability: {}}}
            raise MCPError(MISSING_CAPABILITY, f"The client has not declared {capability}", wanted)

    async def sample(self, ctx: Any, prompt: str) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
        answer = await ctx.session.create_message(
            [message], max_tokens=100, related_request_id=ctx.request_id
        )
        return str(getattr(answer.content, "text", ""))

    async def elicit(self, ctx: Any, message: str, properties: Any, required: list[str]) -> Any:
        schema = {"type": "object", "properties": properties, "required": required}
        got = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        said = f"action={got.action}, content={json.dumps(got.content or {})}"
        return self.said(text(f"Elicitation completed: {said}"))

    def asked(self, ctx: Any, params: Any, kind: str) -> Any:
        """A tool of 2026-07-28 that asks for input in its result."""
        answers = params.input_responses or {}
        state = params.request_state
        if kind == "multi_round":
            done = len(json.loads(state)) if state else 0
            if done < len(STEPS):
                return self.wants(STEPS[done], json.dumps([*range(done + 1)]))
            return self.said(text("All steps are done"))
        wanted = WANTED[kind]
        if kind == "capabilities":
            wanted = {k: v for k, v in wanted.items() if declared(ctx, NEEDS[v["method"]])}
        if any(name not in answers for name in wanted):
            return self.wants(wanted, kind if kind in STATEFUL else None)
        if kind in STATEFUL and state != kind:
            raise MCPError(INVALID, "requestState is missing or of another call")
        return self.said(text(f"state-ok: {json.dumps(_plain(answers))}"))

    def wants(self, wanted: dict[str, Any], state: str | None) -> Any:
        found = {"resultType": "input_required", "inputRequests": wanted}
        return types.InputRequiredResult.model_validate(
            found | ({"requestState": state} if state else {})
        )

    async def resources(self, ctx: Any, params: Any) -> Any:
        listed = [
            {"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"},
        ]
        return types.ListResourcesResult.model_validate({"resources": listed})

    async def templates(self, ctx: Any, params: Any) -> Any:
        listed = [{"uriTemplate": "test://template/{id}/data", "name": "template"}]
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": listed})

    async def read(self, ctx: Any, params: Any) -> Any:
        uri = str(params.uri)
        if uri in ("test://static-text", "test://watched-resource"):
            found = {
                "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            }
        elif uri == "test://static-binary":
            found = {"mimeType": "image/png", "blob": PIXEL}
        elif uri.startswith("test://template/"):
            one = uri.split("/")[3]
            data = {"id": one, "templateTest": True, "data": f"Data for ID: {one}"}
            found = {"mimeType": "application/json", "text": json.dumps(data)}
        else:
            raise MCPError(INVALID, f"Resource not found: {uri}", {"uri": uri})
        return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **found}]})

    async def prompts(self, ctx: Any, params: Any) -> Any:
        listed = [
            {"name": "test_simple_prompt"},
            {
                "name": "test_prompt_with_arguments",
                "arguments": [
                    {"name": "arg1", "required": True},
                    {"name": "arg2", "required": True},
                ],
            },
            {
                "name": "test_prompt_with_embedded_resource",
                "arguments": [{"name": "resourceUri", "required": True}],
            },
            {"name": "test_prompt_with_image"},
            {"name": "test_input_required_result_prompt"},
        ]
        return types.ListPromptsResult.model_validate(
            {"prompts": [{"description": one["name"], **one} for one in listed]}
        )

    async def prompt(self, ctx: Any, params: Any) -> Any:
        given = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                said: list[Any] = [text("This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                said = [
                    text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
                ]
            case "test_prompt_with_embedded_resource":
                resource = {
                    "uri": given["resourceUri"],
                    "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                }
                said = [
                    {"type": "resource", "resource": resource},
                    text("Please process the embedded resource above."),
                ]
            case "test_prompt_with_image":
                said = [IMAGE, text("Please analyze the image above.")]
            case "test_input_required_result_prompt":
                if "user_context" not in (params.input_responses or {}):
                    return self.wants(
                        {
                            "user_context": form(
                                "What context should the prompt use?", context=STRING
                            )
                        },
                        None,
                    )
                said = [text("The prompt with its context")]
            case _:
                raise MCPError(INVALID, f"Unknown prompt: {params.name}")
        return types.GetPromptResult.model_validate(
            {"messages": [{"role": "user", "content": one} for one in said]}
        )

    async def complete(self, ctx: Any, params: Any) -> Any:
        return types.CompleteResult.model_validate(
            {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}
        )

    async def nothing(self, ctx: Any, params: Any) -> Any:
        return types.EmptyResult()

    def schema(self, name: str) -> Any:
        return next((one["inputSchema"] for one in self.tools if one["name"] == name), None)


def _plain(answers: Any) -> Any:
    return {
        name: getattr(one, "model_dump", lambda one=one, **_: one)(mode="json")
        for name, one in answers.items()
    }


class Reference(Server[Any]):
    def create_initialization_options(self, *_: Any, **__: Any) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


def server() -> Server[Any]:
    made = Everything()
    found = Reference(
        "reference",
        version="1",
        get_tool_input_schema=made.schema,
        on_list_tools=made.list_tools,
        on_call_tool=made.call,
        on_list_resources=made.resources,
        on_list_resource_templates=made.templates,
        on_read_resource=made.read,
        on_subscribe_resource=made.nothing,
        on_unsubscribe_resource=made.nothing,
        on_set_logging_level=made.nothing,
        on_list_prompts=made.prompts,
        on_get_prompt=made.prompt,
        on_completion=made.complete,
        on_subscriptions_listen=ListenHandler(made.bus),
    )
    found.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="reference")
    )
    return found


async def over_stdio() -> None:
    made = server()
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())


def over_http(port: int) -> None:
    import uvicorn

    uvicorn.run(server().streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, default=0)
    port = parser.parse_args().http
    over_http(port) if port else anyio.run(over_stdio)
