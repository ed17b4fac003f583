"""An agent behind an endpoint that speaks a dialect, such as OpenAI's `/chat/completions`.

What the network, the server or the account does is kept apart from what the model does: a request
is tried again while that can help, then becomes a `Reply` with a `failure`. What would fail every
episode alike (a wrong key, a wrong address, spent money) is raised, before more is spent.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec

from toolshift.agents.answer_cache import Exchange, Exchanges, kept_elsewhere, named
from toolshift.agents.batches import CONCURRENCY, FORMS, PRICE, Batches, Refused, Unanswered
from toolshift.agents.cost import CostLimit
from toolshift.agents.kind import AgentKind
from toolshift.agents.pace import Pace
from toolshift.core.calls import ToolCall, is_json
from toolshift.core.errors import BudgetSpent, UsageError, described
from toolshift.core.message import Reply, Turn, Usage, protocol_tools, text_of
from toolshift.core.values import as_json
from toolshift.dialects import DIALECTS
from toolshift.dialects.anthropic import without_blanks
from toolshift.dialects.chat import CHAT
from toolshift.dialects.form import Answer, Body, Dialect, Request, named_model, version_of
from toolshift.dialects.gemini import unread_call
from toolshift.lm.bases import cache_folder
from toolshift.lm.parse_reply import has_marked_call, parse_reply
from toolshift.lm.prompt import Layout, to_plain_messages

if TYPE_CHECKING:
    from toolshift.core.http_clients import Clients

OPENAI_URL = CHAT.home
MORE_ROOM = 4  # how many times the limit, where a reply was cut off at it
MAX_WAIT = 60.0  # seconds between two attempts, where a server asks for none
LONGEST_ASKED = 300.0  # seconds that a server may ask for; more is a quota of hours or a day
AT_ONCE = 3  # refusals, or turns without a readable answer, before any goes well: the run stops

_RETRIED = frozenset((408, 409, 429))
_ADVICE = {
    401: "The key was not accepted: set OPENAI_API_KEY or TOOLSHIFT_API_KEY to a valid one.",
    403: "The key may not do this: ask for access, or name another model.",
    404: "Check the model's name, and the base url: what stands before /chat/completions.",
}
_ADVICE |= dict.fromkeys((301, 302, 307, 308), "It redirects: give the final base url (https?).")
# A key shorter than this is a stand-in ("EMPTY", "not-needed") that a model may well write.
_REAL_KEY = 16
# Cautious on purpose: English JSON has about four bytes a token, codes and names fewer.
_BYTES_PER_TOKEN = 3

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TRUNCATED = "truncated: "

_log = logging.getLogger(__name__)


class _Setback(Exception):
    """One attempt without a reply; `wait` is None if another attempt is of no use."""

    overflow = False
    """Whether the conversation is longer than the model's context."""

    def __init__(self, reason: str, wait: float | None = 0.0, billed: bool = False) -> None:
        super().__init__(reason)
        self.wait, self.billed = wait, billed


class ChatAgent:
    """A model behind an endpoint.

    One instance serves many threads: it shares a pool of connections and one total of spend.

    `max_cost` is kept before each request, by its worst case (the prompt at three bytes a token,
    and `max_tokens`). A reply without a usage record, and an attempt that broke after it was sent,
    are charged to the limit at that worst case, because they may have been billed.

    Args:
        model: the model's name at the endpoint.
        base_url: the address before the path of the dialect (`/chat/completions`); else
            TOOLSHIFT_BASE_URL, the dialect's own variable (OPENAI_BASE_URL) or its vendor's.
        api_key: else TOOLSHIFT_API_KEY or the dialect's own variable (OPENAI_API_KEY); a loopback
            address needs none.
        protocol: `native` passes tools and reads tool calls; `text` writes the tools into the
            prompt and reads the calls from the text (`toolshift.lm.prompt`).
        layout: how the text protocol writes a tool.
        temperature: None leaves it out, for models that refuse it; "default" is 0 for chat
            completions, and none for dialects whose models take none.
        max_tokens: the most tokens of one reply, its reasoning included. A reply without a whole
            call that is cut off there is asked for once more with four times as many; cut off
            again, it is reported as truncated: the infrastructure failed.
        timeout: seconds of silence after which an attempt is given up.
        retries: attempts after the first.
        concurrency: how many episodes a study runs at once; None for 8, in batches 256.
        price_in: dollars per million input tokens; give both prices or none.
        price_out: dollars per million output tokens.
        price_cached: dollars per million input tokens that the provider has cached; None for the
            price of the others.
        requests_per_minute: that may be sent to this model with this key, by all agents and
            processes of the user on this machine together; None for any number.
        tokens_per_minute: the same, of prompts (three bytes a token) and `max_tokens` together.
        max_cost: dollars that this instance may spend; needs prices.
        cost_limit: one that several agents share, instead of `max_cost` for this one alone.
        headers: extra headers.
        options: further fields of the request (`seed`, {"reasoning": {"effort": "high"}}); None
            removes one.
        batch: send requests in batches, at half of both prices (`toolshift.agents.batches`).
        batch_every: seconds between two looks at a batch.
        dialect: in which the endpoint is spoken to (`toolshift.dialects`).
        name: how reports call the agent; the model's name where None.
        backoff: seconds before the second attempt, doubled for each one after it.
        sleep: replaces `time.sleep` in tests.

    Raises:
        UsageError: for arguments that cannot work, and where a key is missing.
    """

    _answers_as = ""

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        protocol: Literal["native", "text"] = "native",
        layout: Layout = "description-first",
        temperature: float | Literal["default"] | None = "default",
        max_tokens: int = 4096,
        timeout: float = 60.0,
        retries: int = 5,
        concurrency: int | None = None,
        price_in: float | None = None,
        price_out: float | None = None,
        price_cached: float | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_cost: float | None = None,
        cost_limit: CostLimit | None = None,
        headers: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        batch: bool = False,
        batch_every: float = 30.0,
        dialect: str = "chat",
        name: str | None = None,
        backoff: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        spoken = self._dialect = DIALECTS.find(dialect)
        addresses, keys = spoken.variables
        base_url = base_url or _set("TOOLSHIFT_BASE_URL", *addresses) or spoken.home
        api_key = api_key or _set("TOOLSHIFT_API_KEY", *keys)
        self.model, self.name = model, name or model
        usual = CONCURRENCY if batch else 8
        self.concurrency = usual if concurrency is None else concurrency
        self.protocol, self.layout = protocol, layout
        self._write, self._parse = to_plain_messages, parse_reply
        self.retries, self._priced = retries, price_in is not None
        if protocol not in ("native", "text"):
            raise UsageError(f"protocol is 'native' or 'text', not {protocol!r}")
        if retries < 0 or self.concurrency < 1 or timeout <= 0:
            raise UsageError("retries must be at least 0, concurrency 1, timeout above 0 seconds")
        if None in (price_in, price_out) and {price_in, price_out, max_cost} != {None}:
            raise UsageError("give price_in and price_out together; max_cost needs them both")
        if protocol == "text" and dialect != "chat":
            raise UsageError(f"protocol='text' works only with the dialect 'chat', not {dialect!r}")
        share = PRICE if batch else 1.0
        self._prices = (share * (price_in or 0.0), share * (price_out or 0.0))
        saved = (price_in or 0.0) - price_cached if price_cached is not None else 0.0
        self._saved = share * saved
        self._url = endpoint_url(base_url, spoken, model)
        self._place = urlunsplit(urlsplit(self._url)._replace(query=""))
        self._address = self._read_address()
        self._temperature = spoken.temperature if temperature == "default" else temperature
        self._options = dict(options or {})
        self._max_tokens = max_tokens
        if ours := sorted(self._options.keys() & {*_written(spoken), "model", "stream"}):
            raise UsageError(
                f"the field `{ours[0]}` of a request is set by ToolShift and cannot be changed"
            )
        self.decoding = "constrained" if self._options.get("response_format") else ""
        self.cost_limit = cost_limit or CostLimit(max_cost)
        self._backoff, self._sleep = backoff, sleep
        self._reached = self._answered = False
        self._refusals = self._unread = 0
        self._heard = False  # whether any reply was read
        sent = headers_of(api_key, headers or {}, self._place, spoken)
        self._strike = striker(sent)
        self._pace = Pace(
            requests_per_minute, tokens_per_minute, _pace_file(self._url, model, sent), sleep=sleep
        )
        self.exchanges: Exchanges | None = None
        self.kept_elsewhere = kept_elsewhere(self._options)
        told = sorted(f"{k}: {v}" for k, v in sent.items() if not _SECRET_HEADER.search(k))
        self._who = "\n".join((self._url, model, *told))  # no secret is in it
        self._clients = self._connections(sent, timeout)
        self.batches = self._in_batches(batch_every) if batch else None

    def _read_address(self) -> Any:
        """The address, read once: a text would be read again at each request."""
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift

        try:
            return httpx.URL(self._url)
        except httpx.InvalidURL as wrong:
            raise UsageError(f"base url {self._place!r} is no address: {wrong}") from None

    def _connections(self, headers: Mapping[str, str], timeout: float) -> Clients:
        from toolshift.core.http import httpx  # noqa: PLC0415 - as above
        from toolshift.core.http_clients import Clients  # noqa: PLC0415 - it loads httpx

        return Clients(
            self.concurrency,
            verify=self._url.startswith("https"),  # 40 ms of certificates that http has no use for
            trust_env=not is_local(self._url),  # a proxy cannot reach loopback
            headers=headers,
            timeout=httpx.Timeout(timeout, pool=None),
        )

    def _in_batches(self, every: float) -> Batches:
        spoken = self._dialect
        if spoken.name not in FORMS:
            raise UsageError(
                f"--batch is for {', '.join(FORMS)} models; {spoken.name} models have no batches "
                "here: leave it out"
            )
        return Batches(
            self._clients.make(), self._address, spoken.path, FORMS[spoken.name](), every
        )

    def __repr__(self) -> str:
        return f"ChatAgent({self.model!r}, {self._place!r}, protocol={self.protocol!r})"

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the replies beside the model's name, without any secret: for a manifest."""
        how: dict[str, Any] = {"protocol": self.protocol, "layout": self.layout}
        how |= {"dialect": self._dialect.name} if self._dialect is not CHAT else {}
        fixed = {k: v for k, v in self._settings(1).items() if k != "model"}
        fixed |= {key: None for key, value in self._options.items() if value is None}
        return {"base_url": self._place.removesuffix(self._dialect.path), **how, **told(fixed)}

    @property
    def spent(self) -> float:
        """Dollars charged to the limit so far, all threads together."""
        return self.cost_limit.spent

    def close(self) -> None:
        """Closes the connections."""
        self._clients.close()

    def reply(self, turn: Turn) -> Reply:
        """Asks the model for its next message."""
        first = self._ask(turn)
        if not first.failure.startswith(_TRUNCATED):
            return first
        second = self._ask(turn, MORE_ROOM)
        used = first.usage + second.usage
        return msgspec.structs.replace(first if second.failure else second, usage=used)

    def _ask(self, turn: Turn, room: int = 1) -> Reply:
        """One request with `room` times the token limit; not sent where its answer is stored."""
        body = msgspec.json.encode(self._body(turn, room))
        if self.exchanges is None:
            return self._send(turn, body, room, Exchange())
        with self.exchanges.exchange(self._who, body) as exchange:
            reply = self._recalled(turn, exchange) or self._send(turn, body, room, exchange)
            self.exchanges.count(reply.usage)
            return reply

    def _recalled(self, turn: Turn, exchange: Exchange) -> Reply | None:
        """The reply of a stored answer; None where there is none that can be read."""
        if exchange.answer is None:
            return None
        try:
            answer = self._dialect.read_answer(_object(exchange.answer.decode()))
            if answer is None:
                return None
            return self._read(turn, answer, self._usage(answer).as_saved)
        except (_Setback, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None  # another version has stored it

    def _send(self, turn: Turn, body: bytes, room: int, exchange: Exchange) -> Reply:
        """Sends a request, again while that can help."""
        most = self._max_tokens * room
        worst = estimate(1, len(body) // _BYTES_PER_TOKEN, most, *self._prices)
        for attempt in range(self.retries + 1):
            self._pace.wait(len(body) // _BYTES_PER_TOKEN + most)
            self.cost_limit.hold(worst)
            cost = 0.0
            try:
                answer, text = self._attempt(body)
                usage = self._usage(answer)
                cost = usage.cost if usage.input_tokens or usage.cost else worst
                self._warn_of_lost_tools(turn, body, usage)
                if self.exchanges is not None:
                    usage = msgspec.structs.replace(usage, requests=1)
                reply = self._read(turn, answer, usage)
                self._heard = True
                self._warn_of_another_model(_object(text))
                if answer.reason != "content_filter":
                    exchange.keep(text.encode("utf-8", "surrogatepass"), named_model(_object(text)))
                return reply
            except _Setback as setback:
                cost = cost or (worst if setback.billed else 0.0)
                failure = setback
            finally:
                self.cost_limit.settle(worst, cost)
            if failure.wait is None or attempt == self.retries:
                break
            wait = self._wait(body, attempt, failure.wait)
            _log.info("attempt %d failed (%s); next in %.1f s", attempt + 1, failure, wait)
            self._sleep(wait)
        said = f"{failure} (attempt {attempt + 1} at {self._place})"
        if not self._reached:
            raise UsageError(
                f"{said}: no server answers there. Is the server running? Check the base url."
            )
        self._unread += failure.billed and not self._heard
        if not self._heard and self._unread >= AT_ONCE:
            raise UsageError(
                f"{said}. The first {self._unread} turns have no readable answer, and further "
                "requests would only cost more: check what the server sends. The same command "
                "continues where it stopped."
            )
        return Reply(failure=said, overflow=failure.overflow)

    def _body(self, turn: Turn, room: int) -> Body:
        settings = self._settings(room)
        if self.protocol == "text":
            return {**settings, "messages": self._write(turn, self.layout)}
        messages = [sendable(without_blanks(message)) for message in turn.messages]
        return self._dialect.write(settings, Request(messages, list(turn.tools)))

    def _settings(self, room: int) -> Body:
        """The fields of a request beside the conversation, with `room` times the token limit."""
        body = self._dialect.settings(self.model, self._temperature, self._max_tokens * room)
        if self._place.startswith(OPENAI_URL) and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        own = {k: v * room if k in _LIMITS and v else v for k, v in self._options.items()}
        return merged(body, own)

    def _attempt(self, body: bytes) -> tuple[Answer, str]:
        """Sends a request once; the answer, and its text."""
        said = self._batched(body) if self.batches is not None else self._alone(body)
        self._answered = True
        text = self._strike(said, shortest=_REAL_KEY)
        try:
            answer = self._dialect.read_answer(_object(text))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            quote = f"{described(error)}: {self._strike(text)[:200]!r}"
            raise _Setback(f"no {self._dialect.answers} came, {quote}", billed=True) from None
        if answer is None:
            quote = f"{self._strike(text)[:200]!r}"
            raise _Setback(f"no {self._dialect.answers} came, {quote}", billed=True)
        return answer, text

    def _alone(self, body: bytes) -> str:
        """The answer to a request that is sent by itself."""
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift
        from toolshift.core.http_limits import (  # noqa: PLC0415 - it loads httpx
            fetch_content,
            whole,
        )

        try:
            with self._clients.lent() as client:
                response, content = fetch_content(client, "POST", self._address, content=body)
        except httpx.HTTPError as error:
            # Nothing was sent where no connection came about; otherwise nobody can know.
            sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            self._reached |= sent
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            raise _Setback(self._strike(reason), billed=sent) from None
        self._reached = True
        if response.status_code != 200:
            said = whole(response, content).text
            raise self._refused(response.status_code, response.headers, said, body)
        try:
            return str(content, "utf-8")  # as JSON is; to read the header takes longer
        except UnicodeDecodeError:
            return str(whole(response, content).text)

    def _batched(self, body: bytes) -> str:
        """The answer to a request that is sent with others."""
        assert self.batches is not None
        try:
            text = self.batches.ask(named(self._who, body), body)
        except Refused as refused:
            self._reached = True
            raise self._refused(refused.status, refused.headers, refused.text, body) from None
        except Unanswered as ended:
            self._reached |= self.batches.met
            raise _Setback(str(ended)) from None
        self._reached = True
        return text

    def _refused(
        self, status: int, headers: Mapping[str, str], text: str, body: bytes
    ) -> Exception:
        what = f"HTTP {status}: {self._strike(' '.join(text.split()))[:300]}"
        where = f"at {self._place} for model {self.model!r}"
        if status == 402 or (status == 429 and "insufficient_quota" in text):
            return BudgetSpent(f"{what}, {where}. The account has no money left: add some.")
        if status in _ADVICE:
            return UsageError(f"{what}, {where}. {_ADVICE[status]}")
        refused = 400 <= status < 500 and status not in _RETRIED
        overflow = refused and _is_overflow(text)
        # Once any was answered, a conversation is too long, though the error names max_tokens.
        of_one = overflow and self._answered
        if refused and not of_one and (advice := self._advice(text, body)):
            return UsageError(f"{what}, {where}. {advice}")
        asked = _asked_wait(headers, text)
        if status in _RETRIED and asked > LONGEST_ASKED:
            when = f"{asked / 3600:.1f} hours" if asked > 3600 else f"{asked / 60:.0f} minutes"
            return BudgetSpent(f"{what}, {where}. It asks to wait for {when}: go on then.")
        retried = status in _RETRIED or status >= 500
        setback = _Setback(what, asked if retried else None)
        setback.overflow = overflow
        return setback

    def _advice(self, text: str, body: bytes) -> str:
        """What to do about a request that is refused for its form; "" where only it is.

        A setting that the model does not take would fail every episode alike, and so would
        whatever has the first requests refused before any is answered.
        """
        settings = _paths(self._settings(1))
        named = _named_field(text, settings, bare=not self._answered)
        if named:
            instead = [field for field in self._dialect.instead_of(named) if field in text]
            more = f", and perhaps --set {instead[0]}={settings[named]}" if instead else ""
            return (
                f"The model does not take `{named}` as it is sent: leave it out with --unset "
                f"{named}{more}, or give another value with --set {named}=VALUE."
            )
        self._refusals += not self._answered
        if self._answered or self._refusals < AT_ONCE:
            return ""
        toolless = self.protocol == "native" and re.search(r"(?i)\btools?\b|\bfunction", text)
        more = " If it takes no tools, --protocol text writes them into the prompt."
        return (
            f"The first {self._refusals} requests were refused and none was answered. Fields are "
            f"set with --set NAME=VALUE and left out with --unset NAME.{more if toolless else ''}"
        )

    def _wait(self, body: bytes, attempt: int, asked: float) -> float:
        """Seconds to pause; the jitter comes from the request, so that a re-run waits alike."""
        seed = blake2b(b"%d" % attempt + body, digest_size=8).digest()
        jitter = int.from_bytes(seed, "big") / 2**64
        later = 1 + jitter / 4
        return max(asked * later, min(MAX_WAIT, self._backoff * 2.0**attempt * later))

    def _usage(self, answer: Answer) -> Usage:
        read = self._dialect.tokens(answer.usage)
        if self._priced:
            cost = estimate(1, read.input_tokens, read.output_tokens, *self._prices)
            cost -= read.cached_tokens * self._saved / 1e6
            return msgspec.structs.replace(read, cost=cost)
        return read

    def _read(self, turn: Turn, answer: Answer, usage: Usage) -> Reply:
        message, text = answer.message, text_of(answer.message)
        if answer.reason == "broken":
            said = self._strike(answer.ended)[:200]
            raise _Setback(f"the endpoint broke the reply off: {said}", billed=True)
        if answer.ended:
            warnings.warn(
                f"{self.model} ends replies with {self._strike(answer.ended)[:200]}, which is not "
                "known here: they are taken as whole.",
                stacklevel=4,
            )
        if answer.reason == "content_filter":
            withheld = "the endpoint withheld the reply (content_filter)"
            reply = Reply.of(Reply(text=text, failure=withheld))
        elif answer.reason == "broken_call":
            reply = Reply.of(unread_call(text))
        elif self.protocol == "text" and not message.get("tool_calls"):  # some servers read them
            reply = Reply.of(self._parse(text, self.layout, turn.tools))
        else:
            try:
                for call in message.get("tool_calls") or ():
                    call["function"]["arguments"] = call["function"].get("arguments") or {}
                content = message.get("content")
                parts = content if isinstance(content, list) else text
                reply = Reply.of({**message, "content": parts})
            except (AttributeError, KeyError, TypeError) as odd:
                said = self._strike(f"tool calls of an unknown form: {odd!r}")[:300]
                raise _Setback(said, billed=True) from None
            reply = self._with_written_calls(turn, reply)
        if answer.reason == "length" and not reply.failure and is_cut_off(reply, turn.tools):
            why = "the reply was cut off at the token limit; raise --max-tokens"
            reply = msgspec.structs.replace(reply, failure=_TRUNCATED + why)
        return msgspec.structs.replace(reply, usage=usage)

    def _warn_of_lost_tools(self, turn: Turn, body: bytes, usage: Usage) -> None:
        # llama.cpp drops tools in silence where the model's chat template has no place for them.
        if self.protocol == "native" and turn.tools and 0 < usage.input_tokens * 16 < len(body):
            warnings.warn(
                f"{self.model} read far fewer tokens than the tools need: its chat template seems "
                "to leave them out. Use protocol='text', or a template that shows tools.",
                stacklevel=4,
            )

    def _warn_of_another_model(self, answer: Body) -> None:
        # A gateway, or a name without a date, may lead to another model in the middle of a run.
        name = version_of(answer)
        if name and self._answers_as and name != self._answers_as:
            warnings.warn(
                f"{self.model} answered as {self._strike(self._answers_as)[:100]} until now, and "
                f"now as {self._strike(name)[:100]}: the run is of more than one model.",
                stacklevel=4,
            )
        self._answers_as = name or self._answers_as

    def _with_written_calls(self, turn: Turn, reply: Reply) -> Reply:
        """The reply with the calls that its server has handed on as text, if it has no others."""
        if not turn.tools or reply.calls or not has_marked_call(reply.text):
            return reply
        warnings.warn(
            f"{self.model} writes its tool calls as text, and the server at {self._place} hands "
            "them on so: they are read here. Other clients need a server that is started with the "
            "parser of this model's tool calls.",
            stacklevel=5,
        )
        read = self._parse(reply.text, self.layout, turn.tools)
        return Reply.of(msgspec.structs.replace(reply, text=read.text, calls=read.calls))


class _Chat(AgentKind):
    forms = {
        "chat:MODEL": "a model behind an OpenAI-compatible endpoint",
        "responses:MODEL": "a model behind OpenAI's /v1/responses, or a server like it",
        "anthropic:MODEL": "a model behind Anthropic's Messages",
        "gemini:MODEL": "a model behind Google's generateContent",
    }
    takes = tuple(signature(ChatAgent).parameters)[1:]  # all but the model

    def make(self, spec: str, options: Mapping[str, Any]) -> ChatAgent:
        """Takes every option; the beginning of a spec is the dialect."""
        return ChatAgent(_model_of(spec), **{"dialect": spec.partition(":")[0], **options})

    def is_free(self, spec: str) -> bool:
        """It is taken to be paid, wherever it runs."""
        _model_of(spec)
        return False


KIND = _Chat()


def _model_of(spec: str) -> str:
    dialect, _, model = spec.partition(":")
    if not model:
        raise UsageError(f"{dialect}: give the name of a model, as in {dialect}:gpt-5.4-mini")
    name, _, rest = model.partition(",")
    if "=" in rest:  # as a `local:` agent has it; else it is part of a name, and OpenAI is asked
        raise UsageError(
            f"{dialect}:{name} takes no settings after a comma ({rest}): use options such as "
            "--base-url URL, or base_url=URL in Python"
        )
    return model


def _pace_file(url: str, model: str, headers: Mapping[str, str]) -> Path:
    """What all processes share that ask this model with this key."""
    account = "\0".join((url, model, *(f"{k}: {v}" for k, v in sorted(headers.items()))))
    return cache_folder() / "pace" / blake2b(account.encode(), digest_size=16).hexdigest()


def is_cut_off(reply: Reply, tools: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a reply that ended at the token limit has less than its model meant to say.

    Some servers give a call that was cut off before its arguments as one without any.
    """
    if not reply.calls or not all(isinstance(call, ToolCall) for call in reply.calls):
        return True
    last = reply.calls[-1]
    shown = (tool["function"] for tool in tools)
    schema = next((f.get("parameters") for f in shown if f.get("name") == last.name), None) or {}
    return not getattr(last, "arguments", None) and bool(schema.get("required"))


def estimate(
    turns: int, input_tokens: int, output_tokens: int, price_in: float, price_out: float
) -> float:
    """What `turns` requests of so many tokens each cost, in dollars.

    Prices are in dollars per million tokens.
    """
    return turns * (input_tokens * price_in + output_tokens * price_out) / 1e6


def sendable(message: dict[str, Any]) -> dict[str, Any]:
    """Makes sure that the arguments of past calls are JSON.

    A model's broken JSON goes back to it quoted: servers that parse the history refuse it, and
    the model's mistake would be counted as the infrastructure's.
    """
    calls = []
    for call in message.get("tool_calls") or ():
        text = call["function"]["arguments"] or "{}"
        if not is_json(text):
            text = as_json({"not_json": text})
        calls.append({**call, "function": {**call["function"], "arguments": text}})
    return {**message, "tool_calls": calls} if calls else message


def _object(text: str) -> Body:
    """Reads a JSON object whose texts may hold halves of characters, which msgspec refuses."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(text), dict[str, Any])


def merged(body: Mapping[str, Any], options: Mapping[str, Any]) -> Body:
    """The fields of a request with others over them; None removes one, at any depth."""
    out = dict(body)
    for key, value in options.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
            out[key] = merged(out[key], value)
        else:
            out[key] = value
    return out


def _written(dialect: Dialect) -> Body:
    """What a codec writes for a conversation."""
    said = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    return dialect.write({}, Request(said, protocol_tools()))


def _paths(body: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The fields of a request by their paths, such as `reasoning.effort`."""
    found: dict[str, Any] = {}
    for name, value in body.items():
        found[before + name] = value
        if isinstance(value, Mapping):
            found |= _paths(value, f"{before}{name}.")
    return found


_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long|"
    r"input token count .{0,40}exceeds|exceeds? the (?:available|model'?s?) (?:maximum )?context|"
    r"context (?:window|length|size|limit).{0,20}exceed|"
    r"exceed.{0,40}context (?:window|length|limit)",
    re.IGNORECASE,
)
"""How providers and servers say that a conversation is too long: OpenAI and what speaks like it
(a code), vLLM, llama.cpp, Anthropic and Gemini (words)."""


def _is_overflow(text: str) -> bool:
    """Whether a request was refused because it is longer than the model's context."""
    return _OVERFLOW.search(text) is not None


def _named_field(text: str, settings: Mapping[str, Any], bare: bool = False) -> str:
    """The setting that an error names: in its `param`, else in its words as it is written.

    The model's name is no setting. A word that English has as well must stand in quotes, but for
    `bare`, where no request was answered yet: there it is not of one conversation alone.
    """
    try:
        error = msgspec.json.decode(text)["error"]
        param = error.get("param")
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        param = None
    known = sorted((name for name in settings if name != "model"), key=len, reverse=True)
    if isinstance(param, str) and param:
        return param if param in known else ""
    for name in known:
        holder, _, last = name.rpartition(".")
        if _is_written(name, text) or (
            holder and re.search(rf"[\"'`]{last}\\?[\"'`]", text) and _is_written(holder, text)
        ):
            return name
    return next((name for name in known if bare and _is_written(name, text, True)), "")


def _is_written(name: str, text: str, any_word: bool = False) -> bool:
    """Whether a setting stands in an error; Google writes `generation_config` there."""
    snake = re.sub("(?<=[a-z])[A-Z]", lambda found: "_" + found[0].lower(), name)
    plain = any_word or "_" in name or "." in name or not name.islower()
    bare = "" if plain else r"[\"'`]"
    spelled = "|".join(map(re.escape, (name, snake)))
    return bool(re.search(rf"(?<![\w.]){bare}({spelled}){bare}(?![\w.]*\w)", text))


def _set(*names: str) -> str:
    """The first of these variables of the environment that is set."""
    return next(filter(None, map(os.environ.get, names)), "")


_DELAY = re.compile(r"\"retryDelay\"\s*:\s*\"(\d+(?:\.\d+)?)s\"")
_SECRET_HEADER = re.compile("key|token|auth|secret|cookie")


def endpoint_url(base_url: str, dialect: Dialect, model: str) -> str:
    """The address that requests go to."""
    try:
        parts = urlsplit(base_url.strip())
    except ValueError as wrong:
        why = "" if "@" in str(wrong) else f": {wrong}"  # it may quote a password
        raise UsageError(f"the base url is no address{why}") from None
    if parts.username or parts.password:
        raise UsageError("the base url contains a user or password: pass them as headers instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = base_url.partition("?")[0].rpartition("@")[2]
        raise UsageError(f"base url {shown!r} is no address: write http(s)://host[:port]/v1")
    path = dialect.address(parts.path.rstrip("/"), model)
    return urlunsplit(parts._replace(path=path, fragment=""))


def is_local(url: str) -> bool:
    """Whether it is an address of this machine."""
    host = urlsplit(url).hostname or ""
    return bool(re.fullmatch(r"(.+\.)?localhost|127(\.\d+){3}|::1|0\.0\.0\.0", host))


def headers_of(
    api_key: str, extra: Mapping[str, str], place: str, dialect: Dialect = CHAT
) -> dict[str, str]:
    """The headers to send, checked here because a client's own complaint would quote the key."""
    sent = {
        **dialect.headers(api_key.strip()),
        **{name.lower(): value.strip() for name, value in extra.items()},
    }
    if not is_local(place) and not any(map(_SECRET_HEADER.search, sent)):
        raise UsageError(
            f"no key for {place}: set {dialect.variables[1][0]} or TOOLSHIFT_API_KEY, or pass "
            "api_key (any word works if the server needs no key). Nothing was sent."
        )
    for name, value in sent.items():
        if not re.fullmatch(r"[!-~]+( [!-~]+)*", value):
            raise UsageError(
                f"header {name!r} has characters that a key cannot have: copy it again"
            )
    return {"content-type": "application/json", **sent}


def striker(headers: Mapping[str, str]) -> Callable[..., str]:
    """A function that removes secrets from texts; a closure, so that no repr can show them."""
    secrets = {
        value.split(" ")[-1] for name, value in headers.items() if _SECRET_HEADER.search(name)
    }

    def strike(text: str, shortest: int = 4) -> str:
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "[secret]") if len(secret) >= shortest else text
        return text

    return strike


def told(value: object, name: str = "") -> Any:
    """A setting as it may be stored: a text under the name of a secret is removed."""
    if isinstance(value, Mapping):
        return {key: told(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [told(inner, name) for inner in value]
    return "[secret]" if isinstance(value, str) and _SECRET_HEADER.search(name.lower()) else value


def _asked_wait(headers: Mapping[str, str], text: str) -> float:
    """Seconds that a refusal asks to wait: in its headers, or as Google writes it in its body."""
    finer, told = headers.get("retry-after-ms", ""), _DELAY.search(text)
    if re.fullmatch(r"\d+(\.\d+)?", finer):
        return float(finer) / 1000
    return retry_after(headers.get("retry-after") or (told[1] if told else None))


def retry_after(value: str | None) -> float:
    """Seconds that a Retry-After header asks for, as seconds or as an HTTP date; else 0."""
    if re.fullmatch(r"\d+(\.\d+)?", value or ""):
        return float(value or 0)
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
