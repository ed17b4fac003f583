"""The endpoint: requests shifted on their way out, replies carried back on their way in."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolshift.connect.model_proxy.conversation import (
    Answered,
    Conversation,
    Message,
    Round,
    Said,
    Turn,
)
from toolshift.connect.model_proxy.settings import ShiftOptions, prepare
from toolshift.core.errors import ShiftFault, UsageError, described
from toolshift.core.http import httpx
from toolshift.core.http_limits import ReplyLimits, ReplyTooLarge, ReplyTooLong, whole
from toolshift.core.layer import LayerFault
from toolshift.core.loopback import is_loopback
from toolshift.core.message import text_of
from toolshift.core.text import one_line
from toolshift.core.tool import JSON
from toolshift.core.values import as_mapping
from toolshift.dialects import DIALECTS, dialect_of
from toolshift.dialects.chat import CHAT, odd_tool
from toolshift.dialects.form import Answer, Dialect, ToldError, added
from toolshift.dialects.form import Request as Asked
from toolshift.dialects.sse import events
from toolshift.interop.tools import Toolbox
from toolshift.lm.parse_reply import has_marked_call
from toolshift.shifts.live import LiveScene

MAX_ROUNDS = 8
"""How often in a row a model is answered by the layers alone, before its turn is ended."""
MAX_TOOL_LISTS = 256
MAX_PATHS = 50
"""Of how many paths it is kept how often they were asked for; the rest is counted together."""
LET_THROUGH = "--pass-through"
_HOP = frozenset(
    (
        "host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
        "content-length", "content-encoding", "accept-encoding", "cookie", "set-cookie", "origin",
        "referer", "proxy-authorization", "proxy-authenticate",
    )
)  # fmt: skip
_OF_BYTES = frozenset(("content-type", "content-md5", "digest", "etag", "repr-digest"))
_VERSION = re.compile(r"v\d+(alpha|beta)?\d*")
_KNOWN = ", ".join(DIALECTS.names())
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
        self.toolless = self.written = 0
        self._said, self._answered = Said(), Answered()
        self._known: OrderedDict[bytes, tuple[Toolbox, LiveScene]] = OrderedDict()
        ReplyLimits()  # a limit that is none is said before the first request
        self._client = client or httpx.AsyncClient(
            timeout=httpx.Timeout(600, connect=20), trust_env=not _is_local(upstream)
        )
        self.app = Starlette(routes=[Route("/{path:path}", _Endpoint(self))])

    # -- requests ------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response:
        """Answers a request: shifted, or not at all where that is not known to be possible."""
        if request.method in ("GET", "HEAD") and _path(request).strip("/") == "":
            return Response("toolshift model-proxy\n", media_type="text/plain")  # is it there?
        raw = await request.body()
        if not self.how.stack:
            return await self._forward(request, raw)
        path, encoding = _path(request), request.headers.get("content-encoding", "identity")
        dialect = dialect_of(request.method, path)
        if dialect is None:
            what = f"{request.method} {one_line(path)[:100]}"
            return await self._leave(request, raw, what, CHAT)
        if encoding.strip().lower() not in ("", "identity"):
            what = f"a body in the encoding {encoding[:20]!r}"
            return await self._leave(request, raw, what, dialect)
        return await self._shift(request, raw, dialect)

    async def _leave(self, request: Request, raw: bytes, what: str, dialect: Dialect) -> Response:
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
                f"toolshift shifts requests for {_KNOWN} with tools that are functions, and not "
                f"{what}: leave it out, or start the proxy with {LET_THROUGH}",
                dialect,
            )
            response.headers["x-should-retry"] = "false"  # which the official clients heed
        said: dict[str, Any] = {"unshifted": f"{request.method} {path}", "why": what}
        self.write({"status": response.status_code, **said, "spoken": [], "carried": []})
        return response

    async def _shift(self, request: Request, raw: bytes, dialect: Dialect) -> Response:
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
            asked = dialect.read(body, _path(request))
            what = dialect.unshifted(body, _path(request))
            before = self._answered.find(asked.follows)
            if before and not asked.tools:
                what = what or "what follows an answer to tools, where the request offers none"
            if what:
                return await self._leave(request, raw, what, dialect)
            if asked.tools and asked.follows:
                asked = _after(asked, before)
            exchange = self._exchange(body, asked, dialect)
        except UsageError as wrong:
            return _refusal(400, f"toolshift: {wrong}", dialect)
        except (ValueError, RecursionError) as wrong:  # msgspec's own errors, and invalid UTF-8
            return _refusal(400, f"the request cannot be read: {wrong}", dialect)
        except LayerFault as broken:
            if name := odd_tool(asked.tools):
                why = f"the parameters of the tool {name} are no JSON Schema"
                return _refusal(400, why, dialect)
            return _refusal(500, _broken(broken), dialect)
        except ShiftFault as broken:
            return _refusal(500, f"toolshift: {broken}. Leave it out, or mend it", dialect)
        return await self._ask(request, body, exchange)

    async def _ask(self, request: Request, body: Body, exchange: Exchange | None) -> Response:
        """Asks the model, in the words of the exchange where there are tools to shift."""
        if exchange is None:
            self.toolless += 1  # written anew: of a key that is there twice, one has been read
            return await self._forward(request, JSON.encode(body))
        url, headers = self._url(request), self._headers(request, exchange.dialect)
        try:
            if exchange.asked.stream:
                return await self._streamed(exchange, url, headers)
            return await self._whole(exchange, url, headers)
        except httpx.HTTPError as fault:
            why = f"the model cannot be reached: {_words(fault)}"
            return _refusal(502, why, exchange.dialect)
        except LayerFault as broken:
            return _refusal(500, _broken(broken), exchange.dialect)

    async def _forward(self, request: Request, raw: bytes) -> Response:
        """Passes a request on as it is, and its answer back as it comes."""
        version, _, rest = _path(request).removeprefix("/").partition("/")
        steps = rest.split("/")
        if not _VERSION.fullmatch(version) or any(unquote(step) in (".", "..") for step in steps):
            return _refusal(404, "the addresses of this server begin with /v1/")
        encoding = request.headers.get("content-encoding")
        dialect = dialect_of(request.method, _path(request)) or CHAT
        headers = self._headers(request, dialect) | (
            {"content-encoding": encoding} if encoding else {}
        )
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
        """The model's address for a path, with its query; `upstream` ends with the version."""
        query = f"?{request.url.query}" if request.url.query else ""
        return f"{self.upstream}/{_path(request).split('/', 2)[2]}{query}"

    # -- one exchange --------------------------------------------------------------------------

    def _exchange(self, body: Body, asked: Asked, dialect: Dialect) -> Exchange | None:
        """What is to be done about a request; None where it offers no tools."""
        if not asked.tools:
            return None
        toolbox, scene = self._prepared(asked.tools)
        conversation = Conversation(scene, toolbox, self._said)
        return Exchange(conversation, body, asked, dialect, self._said, self._answered)

    def _prepared(self, listed: list[dict[str, Any]]) -> tuple[Toolbox, LiveScene]:
        name = JSON.encode(listed)
        if name not in self._known:
            self._known[name] = prepare(listed, self.how)
            while len(self._known) > MAX_TOOL_LISTS:
                self._known.popitem(last=False)
        return self._known[name]

    async def _whole(self, exchange: Exchange, url: str, headers: dict[str, str]) -> Response:
        dialect = exchange.dialect
        while True:
            got = await _read(await self._open(exchange, url, headers))
            if got.status_code != 200:
                self._note(exchange, got.status_code)
                return Response(got.content, got.status_code, _back(got))
            try:
                reply = msgspec.json.decode(got.content, type=dict[str, Any])
                answer = dialect.read_answer(reply)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as odd:
                self._note(exchange, 502)  # it may hold the names that are shown: it does not pass
                return _refusal(502, _no_answer(dialect, odd), dialect)
            if answer is None:  # an error, as some servers send it with 200
                self._note(exchange, 200)
                return Response(got.content, 200, _back(got))
            if exchange.hears(answer):
                break
        given = exchange.given()
        exchange.keep(given, answer.id)
        self._note(exchange, 200)
        written = dialect.write_answer(reply, given, exchange.usage, exchange.cut, exchange.body)
        return Response(JSON.encode(written), headers=_back(got, "application/json"))

    async def _streamed(self, exchange: Exchange, url: str, headers: dict[str, str]) -> Response:
        first = await self._open(exchange, url, headers)
        if first.status_code != 200:
            self._note(exchange, first.status_code)
            refused = await _read(first)
            return Response(refused.content, refused.status_code, _back(refused))
        if first.headers.get("content-type", "").startswith("application/json"):
            first = await _read(first)
            with suppress(ValueError, RecursionError):  # some servers call events JSON
                return self._unstreamed(exchange, first, msgspec.json.decode(first.content))
        back = _back(first, "text/event-stream")
        return StreamingResponse(self._pieces(exchange, url, headers, first), headers=back)

    def _unstreamed(self, exchange: Exchange, got: httpx.Response, said: Any) -> Response:
        """An error in place of a stream: what JSON says that came where a stream was asked for."""
        why = "the model's server has answered with JSON where a stream was asked for"
        self._note(exchange, 502)
        frame = exchange.dialect.error_frame(as_mapping(said).get("error") or {"message": why})
        return Response(frame, headers=_back(got, "text/event-stream"))

    async def _open(self, exchange: Exchange, url: str, headers: dict[str, str]) -> httpx.Response:
        sent = self._client.build_request("POST", url, content=exchange.request, headers=headers)
        return await self._client.send(sent, stream=True)

    async def _pieces(
        self, exchange: Exchange, url: str, headers: dict[str, str], got: httpx.Response
    ) -> AsyncIterator[bytes]:
        """The stream that the agent reads: text at once, calls once they are whole."""
        dialect = exchange.dialect
        stream = dialect.stream(exchange.body)
        try:
            while True:
                async for event in events(ReplyLimits().apieces(got)):
                    for going in stream.add(event.name, event.data):
                        yield going
                if not stream.whole:
                    raise ValueError("the stream ended before the message did")
                await got.aclose()
                if exchange.hears(stream.answer):
                    break
                stream = stream.again()
                got = await self._open(exchange, url, headers)
                got.raise_for_status()
        except ToldError as told:
            self._note(exchange, 502)
            yield dialect.error_frame(told.error)
            return
        except (httpx.HTTPError, ValueError, LookupError, TypeError, AttributeError) as fault:
            self._note(exchange, 502)
            why = _words(fault)
            yield dialect.error_frame({"message": f"the model's stream broke: {why}"})
            return
        except LayerFault as broken:
            self._note(exchange, 500)
            yield dialect.error_frame({"message": _broken(broken)})
            return
        finally:
            await got.aclose()
        given = exchange.given(streamed=True)
        for going in stream.closing(given, exchange.usage, exchange.cut):
            yield going
        exchange.keep(given, exchange.ids[0])
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
        if self.written:
            said.append(
                "answers with calls as text, which went on under the names that the model was "
                f"shown: {self.written} (start the model's server with the parser of its calls)"
            )
        if self.unshifted or self.pass_through:
            done = (
                "passed on unshifted" if self.pass_through else "refused, for they are not shifted"
            )
            paths = ", ".join(f"{path} {count}" for path, count in self.unshifted.most_common())
            said.append(f"requests {done}: {self.unshifted.total()}{paths and f' ({paths})'}")
        return said

    # -- inside --------------------------------------------------------------------------------

    def _headers(self, request: Request, dialect: Dialect) -> dict[str, str]:
        """With a key, all in which clients send theirs is left out: it was for this server."""
        sent = {name: value for name, value in request.headers.items() if name not in _HOP}
        if not self._key:
            return sent
        kept = {name: value for name, value in sent.items() if name not in _of_keys()}
        named = dialect.headers(self._key).items()
        return kept | {name: value for name, value in named if name in _of_keys()}

    def _note(self, exchange: Exchange, status: int) -> None:
        shifts = [f"{one.shift}:{one.severity}" for one in self.how.stack]
        self.requests += 1
        self.idle.update(exchange.conversation.idle)
        self.written += exchange.writes_calls
        self.write({"shifts": shifts, "seed": self.how.seed, "status": status, **exchange.record()})


@cache
def _of_keys() -> frozenset[str]:
    """The headers in which the dialects send a key."""
    named = (one.headers("a-key").items() for one in DIALECTS.all().values())
    return frozenset(name for each in named for name, value in each if "a-key" in value)


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


def _broken(fault: LayerFault) -> str:
    return f"toolshift: a shift is broken: {fault}. Leave it out, or mend it"


class Exchange:
    """One request of the agent: one round with the model, or several that the layers answer."""

    def __init__(
        self,
        conversation: Conversation,
        body: Body,
        asked: Asked,
        dialect: Dialect,
        said: Said,
        answered: Answered,
    ) -> None:
        self.conversation, self.asked, self.dialect = conversation, asked, dialect
        self.body, self._said, self._answered = body, said, answered
        self._shown, self._known = conversation.show(asked.messages, asked.known)
        choice = asked.choice
        self._choice = _choice(choice, conversation) if isinstance(choice, dict) else choice
        self.rounds: list[Round] = []
        self.ids: list[str] = []
        self.usage: Any = None

    @property
    def request(self) -> bytes:
        """What the model is sent."""
        shown = replace(
            self.asked,
            messages=self._shown,
            tools=self.conversation.tools,
            choice=self._choice,
            known=self._known,
        )
        return JSON.encode(self.dialect.write(self.body, shown))

    @property
    def cut(self) -> bool:
        """Whether the model was answered by the layers once too often."""
        return bool(self.rounds) and self.rounds[-1].hidden

    @property
    def writes_calls(self) -> bool:
        """Whether the model's server has handed calls on as text, which cannot be shifted."""
        return any(
            not each.message.get("tool_calls") and has_marked_call(text_of(each.message))
            for each in self.rounds
        )

    def hears(self, answer: Answer) -> bool:
        """Takes the model's answer; whether it is the agent's turn now."""
        self.usage = added(self.usage, answer.usage)
        found = self.conversation.carry(answer.message)
        self.rounds.append(found)
        self.ids.append(answer.id)
        if not found.hidden or len(self.rounds) == MAX_ROUNDS or answer.reason == "length":
            return True  # a turn that was cut is the agent's to go on with, as without the proxy
        self._shown += [answer.message, *found.heard]
        return False

    def given(self, streamed: bool = False) -> Message:
        """The message for the agent, its calls under the agent's own names."""
        last = self.rounds[-1]
        given = {key: value for key, value in last.message.items() if key != "tool_calls"}
        if streamed:
            texts = [str(each.message.get("content") or "") for each in self.rounds]
            given["content"] = "".join(texts) or None
        return {**given, "tool_calls": list(last.carried)} if last.carried else given

    def keep(self, given: Message, name: str) -> None:
        """Remembers what stood behind the message for the agent, and behind its id."""
        self._said.keep(
            self.asked.messages, given, Turn(tuple(self.rounds), self.conversation.tools_id)
        )
        if name:
            self._answered.keep(name, self.ids[-1], (*self.asked.messages, given))

    def record(self) -> dict[str, Any]:
        """What a trace holds of this request."""
        return {
            "turn": sum(message.get("role") == "assistant" for message in self.asked.messages),
            "tools": [tool["function"].get("name") for tool in self.conversation.tools],
            "results": self.conversation.changed,
            "spoken": [_calls(each.message.get("tool_calls")) for each in self.rounds],
            "answered": [each.answers for each in self.rounds],
            "carried": _calls(self.rounds[-1].carried) if self.rounds else [],
            "text": self.rounds[-1].message.get("content") if self.rounds else None,
            "usage": self.usage,
            "nothing_changed_by": self.conversation.idle,
        }


def _choice(choice: dict[str, Any], conversation: Conversation) -> dict[str, Any]:
    """A demanded tool, or those that are allowed, under the names that they are shown with."""
    allowed = choice.get("allowed_tools")
    if not isinstance(allowed, dict) or not isinstance(allowed.get("tools"), list):
        found = _shown(choice, conversation)
        if len(found) > 1:
            raise UsageError(_not_one(choice, f"several tools together ({_names(found)})"))
        return found[0]
    those: list[Any] = []
    for one in allowed["tools"]:
        found = _shown(one, conversation) if isinstance(one, dict) else [one]
        those += [each for each in found if each not in those]
    return {**choice, "allowed_tools": {**allowed, "tools": those}}


def _shown(choice: dict[str, Any], conversation: Conversation) -> list[dict[str, Any]]:
    """A tool of a choice as it is shown: one, or those that the model calls in its place."""
    function = choice.get("function")
    if not isinstance(function, dict) or "name" not in function:
        return [choice]
    found = conversation.demanded(str(function["name"]))
    if not found:
        raise UsageError(_not_one(choice, "no tool"))
    return [{**choice, "function": {**function, "name": name}} for name in found]


def _names(choices: list[dict[str, Any]]) -> str:
    return ", ".join(one["function"]["name"] for one in choices)


def _not_one(choice: dict[str, Any], shown: str) -> str:
    """Why a choice cannot be said to the model."""
    return (
        f"the tool_choice names {choice['function']['name']}, for which the model is shown "
        f"{shown}: leave the tool_choice out, or the shift"
    )


def _after(asked: Asked, before: tuple[str, tuple[Message, ...]] | None) -> Asked:
    """A request that goes on from an answer, with the conversation before it."""
    if before is None:
        raise UsageError(
            f"the answer {asked.follows[:60]!r} is not known here, so what stands before it cannot "
            "be shifted. Send the whole conversation, or begin it through this proxy: it keeps "
            "the last 10,000 answers to requests with tools, in memory"
        )
    follows, history = before
    messages = [*history, *asked.messages]
    return replace(asked, messages=messages, follows=follows, known=len(history))


def _calls(calls: Any) -> list[dict[str, Any]]:
    return [{"id": call.get("id"), **(call.get("function") or {})} for call in calls or ()]


def _words(fault: Exception) -> str:
    """A fault of the model in words; httpx's own may hold its address, and are left out."""
    told = isinstance(fault, ValueError | ReplyTooLong | ReplyTooLarge)
    return f"{fault}" if told else type(fault).__name__


async def _read(got: httpx.Response) -> httpx.Response:
    """A reply, read whole within its limits."""
    try:
        pieces = [piece async for piece in ReplyLimits().apieces(got)]
    finally:
        await got.aclose()
    return whole(got, b"".join(pieces))


async def _all_of(got: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in ReplyLimits().apieces(got):
            yield piece
    finally:
        await got.aclose()


def _no_answer(dialect: Dialect, why: Exception) -> str:
    return (
        f"the model's answer is no {dialect.answers} ({described(why)}). "
        f"Does --upstream end before {dialect.path}?"
    )


def _back(got: httpx.Response, written: str = "") -> dict[str, str]:
    """The headers of an answer that go back: its id, and what is left of a rate.

    `written` is the type of an answer that was written anew, of which its server's sums say
    nothing any more.
    """
    back = {name: value for name, value in got.headers.items() if name not in _HOP}
    if not written:
        return back
    return {n: v for n, v in back.items() if n not in _OF_BYTES} | {"content-type": written}


def _refusal(status: int, why: str, dialect: Dialect = CHAT) -> Response:
    """An answer in the form in which the clients of a dialect read an error."""
    content = JSON.encode(dialect.error(status, why))
    return Response(content, status, media_type="application/json")


def _is_local(url: str) -> bool:
    return is_loopback(httpx.URL(url).host)
