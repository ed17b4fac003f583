"""The endpoint: requests shifted on their way out, replies carried back on their way in."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolshift.connect.model_proxy.conversation import Conversation, Message, Round, Said, Turn
from toolshift.connect.model_proxy.scope import CHAT, functions_of, unshifted
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
from toolshift.core.text import one_line
from toolshift.core.tool import JSON
from toolshift.interop.tools import Toolbox
from toolshift.shifts.live import LiveScene

MAX_ROUNDS = 8
"""How often in a row a model is answered by the layers alone, before its turn is ended."""
MAX_TOOL_LISTS = 256
MAX_PATHS = 50
"""Of how many paths it is kept how often they were asked for; the rest is counted together."""
LET_THROUGH = "--pass-through"
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
        pass_through: what is not shifted is passed on as it is, and counted, in place of refused.
    """

    def __init__(
        self,
        upstream: str,
        how: ShiftOptions,
        key: str = "",
        write: Write = lambda record: None,
        client: httpx.AsyncClient | None = None,
        pass_through: bool = False,
    ) -> None:
        self.upstream, self.how, self.write = upstream.rstrip("/"), how, write
        self.pass_through = pass_through
        self._key = key
        self.requests = 0
        self.idle: Counter[str] = Counter()
        self.unshifted: Counter[str] = Counter()
        self.toolless = 0
        self._said = Said()
        self._known: OrderedDict[bytes, tuple[Toolbox, LiveScene]] = OrderedDict()
        self._client = client or httpx.AsyncClient(
            timeout=httpx.Timeout(600, connect=20), trust_env=not _is_local(upstream)
        )
        self.app = Starlette(routes=[Route("/{path:path}", _Endpoint(self))])

    # -- requests ------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response:
        """Answers a request: shifted, or not at all where that is not known to be possible."""
        raw = await request.body()
        if not self.how.stack:
            return await self._forward(request, raw)
        path, encoding = _path(request), request.headers.get("content-encoding", "identity")
        if (request.method, path) != ("POST", CHAT):
            what = f"{request.method} {one_line(path)[:100]}"
            return await self._leave(request, raw, what)
        if encoding.strip().lower() not in ("", "identity"):
            return await self._leave(request, raw, f"a body in the encoding {encoding[:20]!r}")
        return await self._chat(request, raw)

    async def _leave(self, request: Request, raw: bytes, what: str) -> Response:
        """Refuses what is not shifted, or passes it on where that is asked for; counts both."""
        path = one_line(_path(request))[:100]
        if path not in self.unshifted and len(self.unshifted) >= MAX_PATHS:
            path = "other paths"
        self.unshifted[path] += 1
        if self.pass_through:
            response = await self._forward(request, raw)
        else:
            response = _refusal(
                501,
                f"toolshift shifts POST {CHAT} with tools that are functions, and not {what}: "
                f"leave it out, or start the proxy with {LET_THROUGH}",
            )
            response.headers["x-should-retry"] = "false"  # which the official clients heed
        said: dict[str, Any] = {"unshifted": f"{request.method} {path}", "why": what}
        self.write({"status": response.status_code, **said, "spoken": [], "carried": []})
        return response

    async def _chat(self, request: Request, raw: bytes) -> Response:
        try:
            body = _read(raw)
            if what := unshifted(body):
                return await self._leave(request, raw, what)
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
        return await self._ask(request, body, exchange)

    async def _ask(self, request: Request, body: Body, exchange: Exchange | None) -> Response:
        """Asks the model, in the words of the exchange where there are tools to shift."""
        if exchange is None:
            self.toolless += 1  # written anew: of a key that is there twice, one has been read
            return await self._forward(request, JSON.encode(body))
        url, headers = self._url(request), self._headers(request)
        try:
            if body.get("stream"):
                return await self._streamed(exchange, url, headers)
            return await self._whole(exchange, url, headers)
        except httpx.HTTPError as fault:
            return _refusal(502, f"the model cannot be reached: {type(fault).__name__}")
        except LayerFault as broken:
            return _refusal(500, _broken(broken))

    async def _forward(self, request: Request, raw: bytes) -> Response:
        """Passes a request on as it is, and its answer back as it comes."""
        steps = _path(request).split("/")
        if steps[:2] != ["", "v1"] or any(unquote(step) in (".", "..") for step in steps):
            return _refusal(404, "the addresses of this server begin with /v1/")
        encoding = request.headers.get("content-encoding")
        headers = self._headers(request) | ({"content-encoding": encoding} if encoding else {})
        try:
            sent = self._client.build_request(
                request.method, self._url(request), content=raw, headers=headers
            )
            got = await self._client.send(sent, stream=True)
        except httpx.InvalidURL as fault:
            return _refusal(400, f"the address cannot be read: {fault}")
        except httpx.HTTPError as fault:
            return _refusal(502, f"the model cannot be reached: {type(fault).__name__}")
        return StreamingResponse(_all_of(got), got.status_code, _back(got))

    def _url(self, request: Request) -> str:
        """The model's address for a path under `/v1`, with its query."""
        query = f"?{request.url.query}" if request.url.query else ""
        return f"{self.upstream}{_path(request).removeprefix('/v1')}{query}"

    # -- one exchange --------------------------------------------------------------------------

    def _exchange(self, body: Body) -> Exchange | None:
        """What is to be done about a request; None where it offers no tools."""
        listed = functions_of(body)
        if not listed:
            return None
        toolbox, scene = self._prepared(listed)
        return Exchange(Conversation(scene, toolbox, self._said), body, self._said)

    def _prepared(self, listed: list[dict[str, Any]]) -> tuple[Toolbox, LiveScene]:
        name = JSON.encode(listed)
        if name not in self._known:
            self._known[name] = prepare(listed, self.how)
            while len(self._known) > MAX_TOOL_LISTS:
                self._known.popitem(last=False)
        return self._known[name]

    async def _whole(self, exchange: Exchange, url: str, headers: dict[str, str]) -> Response:
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

    async def _streamed(self, exchange: Exchange, url: str, headers: dict[str, str]) -> Response:
        first = await self._open(exchange, url, headers)
        if first.status_code != 200:
            self._note(exchange, first.status_code)
            content = await first.aread()
            await first.aclose()
            return Response(content, first.status_code, _back(first))
        return StreamingResponse(
            self._pieces(exchange, url, headers, first), media_type="text/event-stream"
        )

    async def _open(self, exchange: Exchange, url: str, headers: dict[str, str]) -> httpx.Response:
        sent = self._client.build_request("POST", url, content=exchange.request, headers=headers)
        return await self._client.send(sent, stream=True)

    async def _pieces(
        self, exchange: Exchange, url: str, headers: dict[str, str], got: httpx.Response
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
                got = await self._open(exchange, url, headers)
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
        """What is to be said at the end: shifts that changed nothing, and what was not shifted."""
        said = [
            f"{name} changed nothing in {count} of {self.requests} requests"
            for name, count in self.idle.items()
        ]
        if self.toolless:
            said.append(f"requests without tools, in which nothing was shifted: {self.toolless}")
        if self.unshifted or self.pass_through:
            done = (
                "passed on unshifted" if self.pass_through else "refused, for they are not shifted"
            )
            paths = ", ".join(f"{path} {count}" for path, count in self.unshifted.most_common())
            said.append(f"requests {done}: {self.unshifted.total()}{paths and f' ({paths})'}")
        return said

    # -- inside --------------------------------------------------------------------------------

    def _headers(self, request: Request) -> dict[str, str]:
        sent = {name: value for name, value in request.headers.items() if name not in _HOP}
        return sent | {"authorization": f"Bearer {self._key}"} if self._key else sent

    def _note(self, exchange: Exchange, status: int) -> None:
        shifts = [f"{one.shift}:{one.severity}" for one in self.how.stack]
        self.requests += 1
        self.idle.update(exchange.conversation.idle)
        self.write({"shifts": shifts, "seed": self.how.seed, "status": status, **exchange.record()})


class _Endpoint:
    """The endpoint of all requests; a class, so that Starlette passes every method on."""

    def __init__(self, proxy: ModelProxy) -> None:
        self.proxy = proxy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.proxy.answer(Request(scope, receive))
        await response(scope, receive, send)


def _path(request: Request) -> str:
    """The path as it was sent: one that is escaped is another one to some servers."""
    sent = request.scope.get("raw_path") or request.scope["path"].encode()
    return str(sent.decode("latin-1"))


def _read(raw: bytes) -> Body:
    """The body of a request."""
    body = msgspec.json.decode(raw, type=dict[str, Any])
    check_request(body)
    return body


def _broken(fault: LayerFault) -> str:
    return f"toolshift: a shift is broken: {fault}. Leave it out, or mend it"


class Exchange:
    """One request of the agent: one round with the model, or several that the layers answer."""

    def __init__(self, conversation: Conversation, body: Body, said: Said) -> None:
        self.conversation, self._said = conversation, said
        self.history: list[Message] = list(body.get("messages") or ())
        self._shown = conversation.show(self.history)
        self._body = {**body, "tools": _tools(conversation)}
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
        self._body["tools"] = _tools(self.conversation)
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


def _tools(conversation: Conversation) -> list[dict[str, Any]]:
    return [_lenient(tool) for tool in conversation.tools]


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
    """An answer in the form in which clients of OpenAI read an error, and those of Anthropic."""
    error = {"message": why, "type": "toolshift", "code": status}
    content = JSON.encode({"type": "error", "error": error})
    return Response(content, status, media_type="application/json")


def _is_local(url: str) -> bool:
    return is_loopback(httpx.URL(url).host)
