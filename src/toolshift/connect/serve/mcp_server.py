"""What an MCP client is offered: the tools of one episode, in both eras of the protocol.

Clients of 2026-07-28 hear of changed tools on their `subscriptions/listen` streams. Older ones
hear of them in their session: whoever made the call on the stream of its result, the others on
their standing streams.

In 2026-07-28 the tools of a server do not change by requests. Those of an episode do: what it
plays is a drift, and its proof by the oracle counts calls. So `_meta` says it: that they may, in
what `server/discover` answers; that they have, in the result of the call and in the list.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolshift.connect.list_changed import BY_CALLS, CHANGES, labelled
from toolshift.connect.serve.session import ActResult, AgentSession

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

Asked = ServerRequestContext[Any, Any]


class Offer(Server[Any]):
    """The MCP server of one episode."""

    def __init__(self, seat: AgentSession) -> None:
        self._seat = seat
        self._bus = InMemorySubscriptionBus()
        self._older: dict[str, ServerSession] = {}
        self._revision = 0
        super().__init__(
            "toolshift",
            version=version("toolshift"),
            instructions=seat.instructions,
            get_tool_input_schema=seat.schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
            # For every episode the same, or it would tell whether the tools are to change.
            cache_hints={"tools/list": CacheHint(), "server/discover": CacheHint()},
        )
        self.middleware.append(_label)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Tells clients of the older era that the tools may change."""
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)

    async def tell_all(self, caller: Asked | None = None) -> None:
        """Tells every client that the tools have changed."""
        self._revision += 1
        await self._bus.publish(ToolsListChanged())
        mine = _session_of(caller) if caller is not None else None
        for name, session in list(self._older.items()):
            if caller is not None and name == mine:
                notice = ToolListChangedNotification()
                await caller.session.send_notification(notice, caller.request_id)
            else:
                await session.send_tool_list_changed()

    async def _list(self, asked: Asked, _: PaginatedRequestParams | None) -> ListToolsResult:
        self._remember(asked)
        tools = [_as_mcp(tool) for tool in self._seat.tools()]
        return ListToolsResult(tools=tools, _meta=self._changed_by(asked, "calls"))

    async def _call(self, asked: Asked, params: CallToolRequestParams) -> CallToolResult:
        self._remember(asked)
        heard = self._seat.call(params.name, params.arguments or {})
        if heard.changed:
            await self.tell_all(asked)
        content = [TextContent(text=spoken(heard))]
        meta = self._changed_by(asked, "this call") if heard.changed else None
        return CallToolResult(content=list(content), is_error=not heard.ok, _meta=meta)

    def _changed_by(self, asked: Asked, what: str) -> dict[str, Any] | None:
        """What is said of changed tools to a client of the newer era; nothing before they have."""
        if not self._revision or asked.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return None
        return {CHANGES: {"revision": self._revision, "changed_by": what}}

    def _remember(self, asked: Asked) -> None:
        if asked.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._older[_session_of(asked)] = asked.session


async def _label(ctx: Asked, call_next: CallNext) -> HandlerResult:
    """Says of what is served that its tools may change by calls."""
    result = await call_next(ctx)
    discovered = ctx.method == "server/discover" and isinstance(result, dict)
    return labelled(result, BY_CALLS) if discovered else result  # type: ignore[arg-type]


def spoken(heard: ActResult) -> str:
    """What came of a call as one text, the user's next turn included."""
    notice = f" {heard.notice}" if heard.notice else ""
    message = f"\nThe user says: {heard.message}" if heard.message else ""
    return f"{heard.text}{notice}{message}"


def _session_of(asked: Asked) -> str:
    """The id of an older session; "" over stdio, where there is only one."""
    headers = getattr(asked.request, "headers", None) or {}
    return str(headers.get("mcp-session-id", ""))


def _as_mcp(tool: dict[str, Any]) -> Tool:
    function = tool["function"]
    return Tool(
        name=function["name"],
        description=function["description"],
        input_schema=function["parameters"],
    )
