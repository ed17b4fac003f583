"""The proxy: two connections, and between them the layers.

Whatever is not about tools passes untouched in both directions: resources, prompts, completion,
logging, progress, sampling, elicitation, roots, subscriptions, in whichever era of the protocol
client and server agree on. Without shifts so do the tools, page by page.

Of a shifted server `tools/list` is answered from the shown tools, and `tools/call` goes through the
layers (see `behind`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types.jsonrpc import JSONRPCError

from toolshift.connect.list_changed import BY_CALLS, BY_DEPLOYMENT, is_newer, labelled
from toolshift.connect.mcp.shifted_server import ShiftedTools, ShiftOptions
from toolshift.connect.trace import Trace
from toolshift.core.values import as_mapping
from toolshift.interop.mcp_client import CLOSED, Streams, Target, Upstream, schemas_of

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"
METHOD_NOT_FOUND = -32601
ENDED = "Connection closed"
"""What the SDK answers a request that is open when its dispatcher ends."""


class Caller(Protocol):
    """The client, as the sender of one request; its notices go where the answer goes."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tells the client."""
        ...

    async def send_raw_request(self, method: str, params: Any) -> dict[str, Any]:
        """Asks the client."""
        ...


class Wire:
    """One client's connection to one real server.

    Args:
        upstream: the real server.
        how: the shifts.
        trace: told of each exchange, where there is one.

    Attributes:
        offered: the schemas of the tools as the client was last shown them.
    """

    def __init__(self, upstream: Upstream, how: ShiftOptions, trace: Trace | None = None) -> None:
        self.upstream, self.how = upstream, how
        self.tools = ShiftedTools(upstream, how, trace)
        self.front: Caller | None = None
        self.offered: dict[str, Any] = {}
        self._newer = False
        self._callers: list[Caller] = []
        self._tokens: dict[str | int, tuple[Caller, str | int]] = {}
        self._listening: dict[str, tuple[Caller, Any, bool]] = {}
        self._number = 0

    # -- from the client -----------------------------------------------------------------------

    async def request(
        self, caller: Caller, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answers a request of the client."""
        self._newer = self._newer or is_newer(params)
        if method == "subscriptions/listen":
            return await self._listen(caller, params or {})
        self._callers.append(caller)
        token, params = self._own_token(caller, params)
        try:
            if method == "tools/call":
                answer, changed = await self.tools.call(params or {})
                if changed:
                    await self._tell_changed(caller)
                return answer
            if method == "tools/list" and self.how.stack:
                answer = await self.tools.list(params or {})
                self.offered = schemas_of(answer["tools"])
                self.tools.note_tools(answer, params)
                return await self.tools.with_notes(answer, params)
            answer = await self.upstream.ask(method, params)
            if method == "tools/list":
                self._pass_tools(answer)
                self.tools.note_tools(answer, params)
                return await self.tools.with_notes(answer, params)
        finally:
            self._callers.remove(caller)
            self._tokens.pop(token, None)
        return self._capable(answer) if self.how.stack else answer

    def _pass_tools(self, answer: Mapping[str, Any]) -> None:
        """Keeps the schemas of a page that passes: headers repeat arguments, on both sides."""
        tools = answer.get("tools")
        if isinstance(tools, list):
            self.upstream.note_tools(tools)
            self.offered |= schemas_of(tools)

    async def heard(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        """Passes on a notice of the client; a cancellation has cancelled the call already."""
        if method != "notifications/cancelled":
            await self.upstream.notify(method, params)

    # -- from the server -----------------------------------------------------------------------

    async def asked(
        self, context: Any, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Passes a request of the server (sampling, elicitation, roots) to the client."""
        client = self._related()
        if client is None:
            raise MCPError(METHOD_NOT_FOUND, f"no client is there to answer {method}")
        return await client.send_raw_request(method, params)

    async def told(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        """Passes a notice of the server to the client whom it is about."""
        given = dict(params or {})
        if method == CHANGED:
            self.tools.stale = True
        if method == "notifications/cancelled":
            return
        named = (given.get("_meta") or {}).get(SUBSCRIPTION)
        if isinstance(named, str) and named in self._listening:
            caller, name, wants = self._listening[named]
            given["_meta"] = {**given["_meta"], SUBSCRIPTION: name}
            if method.endswith("/acknowledged") and wants:
                given["notifications"] = {
                    **given.get("notifications", {}),
                    "toolsListChanged": True,
                }
            await caller.notify(method, given)
            return
        if method == CHANGED and self._newer and self.how.stack:
            await self._tell_changed(None)
            return
        if method == "notifications/progress" and given.get("progressToken") in self._tokens:
            caller, token = self._tokens[given["progressToken"]]
            await caller.notify(method, {**given, "progressToken": token})
            return
        client = self._related()
        if client is not None:
            await client.notify(method, params)

    def _related(self) -> Caller | None:
        """Whom an unaddressed message is for: the one caller, else the client's own stream."""
        return self._callers[0] if len(self._callers) == 1 else self.front

    def _own_token(
        self, caller: Caller, params: Mapping[str, Any] | None
    ) -> tuple[str | int, Mapping[str, Any] | None]:
        """Keeps the progress tokens of clients apart; one that is alone stays as it is."""
        meta = (params or {}).get("_meta")
        token = meta.get("progressToken") if isinstance(meta, Mapping) else None
        if params is None or not isinstance(token, str | int):
            return "", params
        own = token
        if token in self._tokens:
            self._number += 1
            own = f"toolshift-{self._number}"
        self._tokens[own] = (caller, token)
        return own, {**params, "_meta": {**meta, "progressToken": own}}  # type: ignore[dict-item]

    # -- subscriptions of the newer era ----------------------------------------------------------

    async def _listen(self, caller: Caller, params: Mapping[str, Any]) -> dict[str, Any]:
        """Holds a listening stream open, over ids of our own."""
        self._number += 1
        own = f"listen-{self._number}"
        asked = params.get("notifications")
        asked = as_mapping(asked)
        name = getattr(caller, "request_id", None)
        wants = bool(self.how.stack) and asked.get("toolsListChanged") is True
        self._listening[own] = (caller, name, wants)
        try:
            answer = await self.upstream.ask("subscriptions/listen", params, own)
        except MCPError as fault:
            if fault.code != METHOD_NOT_FOUND or not wants:
                raise
            answer = await self._listen_here(caller, name)
        finally:
            self._listening.pop(own, None)
        meta = answer.get("_meta")
        if isinstance(meta, Mapping) and meta.get(SUBSCRIPTION) == own:
            answer = {**answer, "_meta": {**meta, SUBSCRIPTION: name}}
        return answer

    async def _listen_here(self, caller: Caller, name: Any) -> dict[str, Any]:
        """Holds a stream of ours open where the server has none, until the client leaves it."""
        meta = {SUBSCRIPTION: name}
        told = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        await caller.notify("notifications/subscriptions/acknowledged", told)
        await anyio.sleep_forever()
        return {"_meta": meta}

    async def _tell_changed(self, caller: Caller | None) -> None:
        """Tells the client that the tools have changed: one of the newer era where it listens."""
        for listener, name, wants in list(self._listening.values()):
            if wants:
                await listener.notify(CHANGED, {"_meta": {SUBSCRIPTION: name}})
        if self.front is not None and not self._newer:
            await (caller or self.front).notify(CHANGED, None)

    async def deployed(self) -> None:
        """Waits for the deployment that changes the tools, where there is to be one."""
        if self.how.deployment is None:
            return
        await self.how.deployment.come()
        if self.tools.deploy():
            await self._tell_changed(None)

    def _capable(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Says that the tools may change, in the answers that say what the server can do."""
        can = answer.get("capabilities")
        if not isinstance(can, Mapping) or not isinstance(can.get("tools"), Mapping):
            return answer
        able = {**can, "tools": {**can["tools"], "listChanged": True}}
        answer = {**answer, "capabilities": able}
        if "supportedVersions" not in answer:  # that of `initialize`
            return answer
        return labelled(answer, BY_CALLS if self.how.deployment is None else BY_DEPLOYMENT)


class Explained:
    """A stream to the client in which the end of the connection behind says what has ended.

    Args:
        stream: the client's.
        name: how messages call the real server.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    async def __aenter__(self) -> Explained:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)

    async def send(self, item: Any) -> None:
        """Sends a message."""
        message = getattr(item, "message", None)
        error = message.error if isinstance(message, JSONRPCError) else None
        if error is not None and (error.code, error.message) == (CLOSED, ENDED):
            error.message = (
                f"the server behind the proxy ({self._name}) cannot be reached, or was lost: the "
                "standard error of the proxy says why"
            )
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Closes the stream below."""
        await self._stream.aclose()


async def serve(
    streams: Streams, target: Target, how: ShiftOptions, trace: Trace | None = None, **started: Any
) -> None:
    """Serves one client over open streams, with a connection to the real server of its own.

    Returns when the client has gone; the server is ended with it.
    """
    async with target.open() as behind, anyio.create_task_group() as group:
        upstream = Upstream(behind, target.name)
        wire = Wire(upstream, how, trace)
        read, write = streams
        front: JSONRPCDispatcher[Any] = JSONRPCDispatcher(read, Explained(write, target.name))
        wire.front = front
        await group.start(upstream.wire.run, wire.asked, wire.told)
        group.start_soon(wire.deployed)
        try:
            await front.run(wire.request, wire.heard, **started)
        finally:
            wire.tools.end()
        group.cancel_scope.cancel()


@asynccontextmanager
async def in_process(
    target: Target, how: ShiftOptions, trace: Trace | None = None
) -> AsyncIterator[Streams]:
    """The proxy as a transport: `mcp.Client(in_process(target, how))`."""
    async with (
        create_client_server_memory_streams() as (client, server),
        anyio.create_task_group() as group,
    ):
        group.start_soon(serve, server, target, how, trace)
        yield client
        group.cancel_scope.cancel()
