"""The endpoint: requests shifted on their way out, replies carried back on their way in."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from toolshift.connect.model_proxy.conversation import Conversation, Message, Round, Said, Turn
from toolshift.connect.model_proxy.settings import ShiftOptions, prepare
from toolshift.connect.model_proxy.wire import (
    DONE,
    Assembly,
    ToldError,
    added,
    check_completion,
    check_request,
    closing,
    event,
    events,
    odd_tool,
)
from toolshift.core.errors import ShiftFault, UsageError
from toolshift.core.layer import LayerFault
from toolshift.core.loopback import is_loopback
from toolshift.core.tool import JSON
from toolshift.interop.tools import Toolbox
from toolshift.shifts.live import LiveScene

MAX_ROUNDS = 8
"""How often in a row a model is answered by the layers alone, before its turn is ended."""
MAX_TOOL_LISTS = 256
NO_COMPLETION = (
    "the model's answer is no chat completion: an object with `choices`, of which the first has a "
    "`message`. Does --upstream end before /chat/completions?"
)
_HOP = frozenset(
    (
        "host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
        "content-length", "content-encoding", "accept-encoding", "cookie", "set-cookie", "origin",
        "referer", "proxy-authorization", "proxy-authenticate",
    )
)  # fmt: skip
Body = dict[str, Any]
Write = Callable[[dict[str, Any]], None]


class ModelProxy:
    """Stands between an agent and its model.

    Args:
        upstream: the model's address before `/chat/completions`.
        how: what is shifted.
        key: sent to the model in place of what the agent sends as authorization; "" passes that on.
        write: takes one record a request, without headers and keys.
        client: for requests upstream.
    """

    def __init__(
        self,
        upstream: str,
        how: ShiftOptions,
        key: str = "",
        write: Write = lambda record: None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self.upstream, self.how, self.write = upstream.rstrip("/"), how, write
        self._key = key
        self.requests = 0
        self.idle: Counter[str] = Counter()
        self._said = Said()
        self._known: OrderedDict[bytes, tuple[Toolbox, LiveScene]] = OrderedDict()
        self._client = client or httpx.AsyncClient(
            timeout=httpx.Timeout(600, connect=20), trust_env=not _is_local(upstream)
        )
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/responses", self._responses, methods=["POST"]),
                Route("/v1/{path:path}", self._pass, methods=["GET", "POST"]),
            ]
        )

    # -- routes --------------------------------------------------------------------------------

    async def _chat(self, request: Request) -> Response:
        raw = await request.body()
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
            check_request(body)
            exchange = self._exchange(body)
        except UsageError as wrong:
            return _refusal(400, f"toolshift: {wrong}")
        except (ValueError, RecursionError) as wrong:  # msgspec's own errors, and invalid UTF-8
            return _refusal(400, f"the request cannot be read: {wrong}")
        except LayerFault as broken:
            if name := odd_tool(body):
                return _refusal(400, f"the parameters of the tool {name} are no JSON Schema")
            return _refusal(500, _broken(broken))
        except ShiftFault as broken:
            return _refusal(500, f"toolshift: {broken}. Leave it out, or mend it")
        if exchange is None:
            return await self._forward(request, raw, "chat/completions")
        headers = self._headers(request)
        try:
            if body.get("stream"):
                return await self._streamed(exchange, headers)
            return await self._whole(exchange, headers)
        except httpx.HTTPError as fault:
            return _refusal(502, f"the model cannot be reached: {type(fault).__name__}")
        except LayerFault as broken:
            return _refusal(500, _broken(broken))

    async def _responses(self, request: Request) -> Response:
        return _refusal(
            501, "toolshift model-proxy speaks chat completions; /responses is not supported"
        )

    async def _pass(self, request: Request) -> Response:
        return await self._forward(request, await request.body(), request.path_params["path"])

    async def _forward(self, request: Request, raw: bytes, path: str) -> Response:
        """Passes a request on as it is, and its answer back as it comes."""
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"{self.upstream}/{path}{query}"
        sent = self._client.build_request(
            request.method, url, content=raw, headers=self._headers(request)
        )
        try:
            got = await self._client.send(sent, stream=True)
        except httpx.HTTPError as fault:
            return _refusal(502, f"the model cannot be reached: {type(fault).__name__}")
        return StreamingResponse(_all_of(got), got.status_code, _back(got))

    # -- one exchange --------------------------------------------------------------------------

    def _exchange(self, body: Body) -> Exchange | None:
        """What is to be done about a request; None where it passes as it is.

        Raises:
            UsageError: where a shift is not applicable to the tools of the request.
        """
        listed = [tool for tool in body.get("tools") or () if _is_function(tool)]
        if body.get("functions") and self.how.stack:
            raise UsageError("`functions` is the old way to offer tools: use `tools`")
        if not listed or not self.how.stack:
            return None
        if (body.get("n") or 1) != 1:
            raise UsageError("one reply a request (n=1) can be carried back, not several")
        toolbox, scene = self._prepared(listed)
        return Exchange(Conversation(scene, toolbox, self._said), body, self._said)

    def _prepared(self, listed: list[dict[str, Any]]) -> tuple[Toolbox, LiveScene]:
        name = JSON.encode(listed)
        if name not in self._known:
            self._known[name] = prepare(listed, self.how)
            while len(self._known) > MAX_TOOL_LISTS:
                self._known.popitem(last=False)
        return self._known[name]

    async def _whole(self, exchange: Exchange, headers: dict[str, str]) -> Response:
        url = f"{self.upstream}/chat/completions"
        while True:
            got = await self._client.post(url, content=exchange.request, headers=headers)
            if got.status_code != 200:
                self._note(exchange, got.status_code)
                return Response(got.content, got.status_code, _back(got))
            reply = _completion(got.content)
            if reply is None:  # it may hold the names that are shown, so it does not pass
                self._note(exchange, 502)
                return _refusal(502, NO_COMPLETION)
            if "choices" not in reply:  # an error, as some servers send it with 200
                self._note(exchange, 200)
                return Response(got.content, 200, _back(got))
            choice = reply["choices"][0]
            exchange.usage = added(exchange.usage, reply.get("usage"))
            if exchange.hears(choice["message"]):
                break
        given = exchange.given()
        reason = "length" if exchange.cut else choice.get("finish_reason")
        choice = {**choice, "message": given, "finish_reason": reason}
        exchange.keep(given)
        self._note(exchange, 200)
        answer = {**reply, "choices": [choice]}
        if exchange.usage:
            answer["usage"] = exchange.usage
        return Response(JSON.encode(answer), media_type="application/json")

    async def _streamed(self, exchange: Exchange, headers: dict[str, str]) -> Response:
        first = await self._open(exchange, headers)
        if first.status_code != 200:
            self._note(exchange, first.status_code)
            content = await first.aread()
            await first.aclose()
            return Response(content, first.status_code, _back(first))
        return StreamingResponse(
            self._pieces(exchange, headers, first), media_type="text/event-stream"
        )

    async def _open(self, exchange: Exchange, headers: dict[str, str]) -> httpx.Response:
        url = f"{self.upstream}/chat/completions"
        sent = self._client.build_request("POST", url, content=exchange.request, headers=headers)
        return await self._client.send(sent, stream=True)

    async def _pieces(
        self, exchange: Exchange, headers: dict[str, str], got: httpx.Response
    ) -> AsyncIterator[bytes]:
        """The stream that the agent reads: text at once, calls once they are whole."""
        head: dict[str, Any] = {}
        try:
            while True:
                assembly = Assembly(head)
                async for chunk in events(got.aiter_lines()):
                    for going in assembly.add(chunk):
                        yield event(going)
                head = assembly.head
                await got.aclose()
                exchange.usage = added(exchange.usage, assembly.usage)
                if exchange.hears(assembly.message):
                    break
                got = await self._open(exchange, headers)
                got.raise_for_status()
        except ToldError as told:
            self._note(exchange, 502)
            yield event({"error": told.error})
            return
        except (httpx.HTTPError, ValueError, msgspec.MsgspecError) as fault:
            self._note(exchange, 502)
            why = f"{fault}" if isinstance(fault, ValueError) else type(fault).__name__
            yield event({"error": {"message": f"the model's stream broke: {why}"}})
            return
        except LayerFault as broken:
            self._note(exchange, 500)
            yield event({"error": {"message": _broken(broken)}})
            return
        finally:
            await got.aclose()
        given = exchange.given(streamed=True)
        reason = "length" if exchange.cut else assembly.finish_reason
        for chunk in closing(head, given, reason, exchange.usage):
            yield event(chunk)
        yield DONE
        exchange.keep(given)
        self._note(exchange, 200)

    @property
    def ending(self) -> list[str]:
        """What is to be said at the end: shifts that changed nothing, and in how many requests."""
        return [
            f"{name} changed nothing in {count} of {self.requests} requests"
            for name, count in self.idle.items()
        ]

    # -- inside --------------------------------------------------------------------------------

    def _headers(self, request: Request) -> dict[str, str]:
        sent = {name: value for name, value in request.headers.items() if name not in _HOP}
        return sent | {"authorization": f"Bearer {self._key}"} if self._key else sent

    def _note(self, exchange: Exchange, status: int) -> None:
        shifts = [f"{one.shift}:{one.severity}" for one in self.how.stack]
        self.requests += 1
        self.idle.update(exchange.conversation.idle)
        self.write({"shifts": shifts, "seed": self.how.seed, "status": status, **exchange.record()})


def _broken(fault: LayerFault) -> str:
    return f"toolshift: a shift is broken: {fault}. Leave it out, or mend it"


class Exchange:
    """One request of the agent: one round with the model, or several that the layers answer."""

    def __init__(self, conversation: Conversation, body: Body, said: Said) -> None:
        self.conversation, self._said = conversation, said
        self.history: list[Message] = list(body.get("messages") or ())
        self._shown = conversation.show(self.history)
        self._body = {**body, "tools": _tools(body, conversation)}
        if isinstance(body.get("tool_choice"), dict):
            self._body["tool_choice"] = _choice(body["tool_choice"], conversation)
        self.rounds: list[Round] = []
        self.usage: Any = None

    @property
    def request(self) -> bytes:
        """What the model is sent."""
        return JSON.encode({**self._body, "messages": self._shown})

    @property
    def cut(self) -> bool:
        """Whether the model was answered by the layers once too often."""
        return bool(self.rounds) and self.rounds[-1].hidden

    def hears(self, message: Message) -> bool:
        """Takes the model's message; whether it is the agent's turn now."""
        found = self.conversation.carry(message)
        self.rounds.append(found)
        if not found.hidden or len(self.rounds) == MAX_ROUNDS:
            return True
        self._shown += [message, *found.heard]
        self._body["tools"] = _tools(self._body, self.conversation)
        return False

    def given(self, streamed: bool = False) -> Message:
        """The message for the agent, its calls under the agent's own names."""
        last = self.rounds[-1]
        given = {key: value for key, value in last.message.items() if key != "tool_calls"}
        if streamed:
            texts = [str(each.message.get("content") or "") for each in self.rounds]
            given["content"] = "".join(texts) or None
        return {**given, "tool_calls": list(last.carried)} if last.carried else given

    def keep(self, given: Message) -> None:
        """Remembers what stood behind the message for the agent."""
        self._said.keep(self.history, given, Turn(tuple(self.rounds), self.conversation.tools_id))

    def record(self) -> dict[str, Any]:
        """What a trace holds of this request."""
        return {
            "turn": sum(message.get("role") == "assistant" for message in self.history),
            "tools": [tool.get("function", tool).get("name") for tool in self._body["tools"]],
            "results": self.conversation.changed,
            "spoken": [_calls(each.message.get("tool_calls")) for each in self.rounds],
            "answered": [each.answers for each in self.rounds],
            "carried": _calls(self.rounds[-1].carried) if self.rounds else [],
            "text": self.rounds[-1].message.get("content") if self.rounds else None,
            "usage": self.usage,
            "nothing_changed_by": self.conversation.idle,
        }


def _tools(body: Body, conversation: Conversation) -> list[dict[str, Any]]:
    """The tools as shown, and those of other kinds as they are."""
    others = [tool for tool in body["tools"] if not _is_function(tool)]
    return [*map(_lenient, conversation.tools), *others]


def _is_function(tool: dict[str, Any]) -> bool:
    """Whether it is a function; some agents leave the type out, and some servers take that."""
    return (tool.get("type") or "function") == "function"


def _lenient(tool: dict[str, Any]) -> dict[str, Any]:
    """Strict schemas require every parameter; one with new optional ones is strict no more."""
    function = tool["function"]
    schema = function.get("parameters") or {}
    named, required = schema.get("properties") or {}, schema.get("required") or []
    whole = isinstance(named, dict) and isinstance(required, list)
    if not function.get("strict") or (whole and all(name in required for name in named)):
        return tool
    return {**tool, "function": {**function, "strict": False}}


def _choice(choice: dict[str, Any], conversation: Conversation) -> dict[str, Any]:
    """A demanded tool, or those that are allowed, under the names that they are shown with."""
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict) and isinstance(allowed.get("tools"), list):
        those = [_choice(t, conversation) if isinstance(t, dict) else t for t in allowed["tools"]]
        return {**choice, "allowed_tools": {**allowed, "tools": those}}
    function = choice.get("function")
    if not isinstance(function, dict) or "name" not in function:
        return choice
    name = conversation.spoken_name(str(function["name"]))
    return {**choice, "function": {**function, "name": name}}


def _calls(calls: Any) -> list[dict[str, Any]]:
    return [{"id": call.get("id"), **(call.get("function") or {})} for call in calls or ()]


async def _all_of(got: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in got.aiter_bytes():
            yield piece
    finally:
        await got.aclose()


def _completion(content: bytes) -> dict[str, Any] | None:
    """A chat completion with a message, or an error; None for anything else."""
    try:
        reply = msgspec.json.decode(content, type=dict[str, Any])
        if "error" in reply and "choices" not in reply:
            return reply
        check_completion(reply)
        return reply if isinstance(reply["choices"][0]["message"], dict) else None
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def _back(got: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in got.headers.items() if name not in _HOP}


def _refusal(status: int, why: str) -> Response:
    error = {"message": why, "type": "toolshift", "code": status}
    return Response(JSON.encode({"error": error}), status, media_type="application/json")


def _is_local(url: str) -> bool:
    return is_loopback(httpx.URL(url).host)
