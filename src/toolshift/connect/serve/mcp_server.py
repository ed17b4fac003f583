"""What an MCP client is offered: the tools of one episode, in both eras of the protocol.

Clients of 2026-07-28 hear of changed tools on their `subscriptions/listen` streams. Older ones
hear of them in their session: whoever made the call on the stream of its result, the others on
their standing streams.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server import Server
from mcp.server.context import ServerRequestContext
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
        super().__init__(
            "toolshift",
            version=version("toolshift"),
            instructions=seat.instructions,
            get_tool_input_schema=seat.schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

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
        return ListToolsResult(tools=[_as_mcp(tool) for tool in self._seat.tools()])

    async def _call(self, asked: Asked, params: CallToolRequestParams) -> CallToolResult:
        self._remember(asked)
        heard = self._seat.call(params.name, params.arguments or {})
        if heard.changed:
            await self.tell_all(asked)
        content = [TextContent(text=spoken(heard))]
        return CallToolResult(content=list(content), is_error=not heard.ok)

    def _remember(self, asked: Asked) -> None:
        if asked.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._older[_session_of(asked)] = asked.session


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
