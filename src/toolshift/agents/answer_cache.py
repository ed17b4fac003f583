"""Exchanges with models that need not be asked again: one request, one answer.

An episode under a shift repeats the clean one word for word up to the first thing that differs, so
its first requests have been answered already. An answer is found by a hash of all that decides it:
the address, the bytes of the request (model and settings are in them), the task, the trial, and
how often this episode has sent these bytes. Episodes of other trials and tasks never share one, so
that they stay independent; the clean and the shifted episode of one trial share their draws until
their requests differ. The expectation of each is as before, and so is that of their difference.

The answers are in one file of SQLite, which is in the standard library, survives a killed process
and may be written by several at once. (`diskcache` is built on it too; it pickles what it keeps,
and its last version is of 2023.) Without a folder the file is a temporary one of SQLite's own.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Protocol, runtime_checkable

import msgspec

from toolshift.core.calls import MalformedCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn, Usage, as_tool_call
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.dialects import read_reply
from toolshift.episode.contract import Agent, finished

FILE = "exchanges.sqlite3"
OFF = "off"
"""In the place of a folder: every request is sent."""
_FORMAT = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, round INTEGER NOT NULL, answer BLOB NOT NULL
) WITHOUT ROWID
"""


@dataclass
class Draw:
    """Whose requests those of this thread are.

    Attributes:
        episode: the task and the trial: episodes that may share answers have the same.
        sent: how often this episode has sent the same bytes.
        named: how often `named` has named them.
    """

    episode: str
    sent: Counter[bytes] = field(default_factory=Counter)
    named: Counter[bytes] = field(default_factory=Counter)


_DRAW: ContextVar[Draw | None] = ContextVar("draw", default=None)


@contextmanager
def drawing(task: str, trial: int) -> Iterator[None]:
    """Says for which task and trial the requests of this thread are."""
    token = _DRAW.set(Draw(f"{task}\x1f{trial}"))
    try:
        yield
    finally:
        _DRAW.reset(token)


def named(who: str, request: bytes) -> str:
    """A name for a request: in every process the same for the same request of the same task."""
    draw = _DRAW.get()
    if draw is None:
        return token_hex(16)
    bare = blake2b(request, digest_size=16).digest()
    draw.named[bare] += 1
    said = f"{who}\x1f{draw.episode}\x1f{draw.named[bare]}\x1f".encode() + bare
    return blake2b(said, digest_size=16).hexdigest()


class Figures(msgspec.Struct, frozen=True):
    """What became of the requests of a run.

    Attributes:
        asked: that were sent and answered.
        recalled: whose answer was there already.
        saved_input_tokens: of prompts that were not sent.
        saved_output_tokens: of answers that were not asked for again.
        saved_cost: dollars.
        other_model: stored answers that were not used, because they come from a model that has
            named itself otherwise than the one that answers now.
    """

    asked: int = 0
    recalled: int = 0
    saved_input_tokens: int = 0
    saved_output_tokens: int = 0
    saved_cost: float = 0.0
    other_model: int = 0

    @property
    def text(self) -> str:
        """One line, or two."""
        every = self.asked + self.recalled
        saved = f"{self.saved_input_tokens:,} tokens in and {self.saved_output_tokens:,} out"
        saved += f", ${self.saved_cost:.4f}" if self.saved_cost else ""
        said = f"Requests: {every:,}; {self.asked:,} asked, {self.recalled:,} from the cache"
        said += f" ({saved} saved)." if self.recalled else "."
        if self.other_model:
            said += (
                f"\n{self.other_model:,} stored answers were not used: the model has changed at "
                "its provider since, as its name or fingerprint in the answers says."
            )
        return said


@runtime_checkable
class Recalling(Protocol):
    """An agent whose exchanges may be stored.

    Attributes:
        name: how results call it.
        exchanges: the store, while a run lends it one.
        kept_elsewhere: what of its requests may decide an answer and does not stand in them; "" for
            nothing, and only then is an answer stored.
    """

    name: str
    exchanges: Exchanges | None
    kept_elsewhere: str


class Exchange:
    """One request, while it is decided whether it is sent.

    Args:
        store: where its answer is kept; None for nowhere.
        key: by which it is found there.
        who: the address that is asked, and what else decides an answer.

    Attributes:
        answer: as it is stored; None where the request is to be sent.
    """

    def __init__(self, store: Exchanges | None = None, key: bytes = b"", who: str = "") -> None:
        self.answer: bytes | None = None
        self._store, self._key, self._who = store, key, who

    def keep(self, answer: bytes, model: str) -> None:
        """Stores an answer that has come, and the name and fingerprint that the model gave."""
        if self._store is not None:
            self._store._keep(self._key, self._who, answer, model)


class Exchanges:
    """A store of exchanges; many threads and processes may share it.

    Args:
        folder: where answers are kept for further runs; None for this run alone, "off" for none.
        fresh: answers of earlier runs are not used; those of this run take their place.
        own: replies of the user's own functions are stored too.
    """

    def __init__(
        self, folder: Path | str | None = None, fresh: bool = False, own: bool = False
    ) -> None:
        self.own = own
        self.on = str(folder) != OFF
        self.folder = Path(folder).absolute() if folder is not None and self.on else None
        if fresh and self.folder is None:
            raise UsageError("--fresh needs --cache FOLDER: name the folder with the old answers")
        if own and not self.on:
            raise UsageError(
                "--cache-own stores replies, but --cache off stores none: leave one of them out"
            )
        self.fresh = fresh
        self.figures = Figures()
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._flights: dict[bytes, tuple[threading.Lock, int]] = {}
        self._live: dict[str, set[str]] = {}
        self._base: sqlite3.Connection | None = None
        self._claims: BinaryIO | None = None
        self._round = self._since = 0

    @property
    def lines(self) -> list[str]:
        """What is to be said of a run; nothing where no request was sent for it."""
        asked = self.figures.asked or self.figures.recalled
        return [*([self.figures.text] if asked else []), *self.notes]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Holds the file open."""
        try:
            self._open()
            yield
        finally:
            if self._base is not None:
                self._base.close()
            if self._claims is not None:
                self._claims.close()
            self._base = self._claims = None

    def count(self, usage: Usage) -> None:
        """Counts what an answer took, and what it saved."""
        with self._lock:
            seen = self.figures
            self.figures = Figures(
                seen.asked + usage.requests,
                seen.recalled + usage.recalled,
                seen.saved_input_tokens + usage.saved_input_tokens,
                seen.saved_output_tokens + usage.saved_output_tokens,
                seen.saved_cost + usage.saved_cost,
                seen.other_model,
            )

    @contextmanager
    def exchange(self, who: str, request: bytes) -> Iterator[Exchange]:
        """Holds one request until it has an answer; who asks the same meanwhile waits for it.

        `who` is the address and whatever else decides an answer beside the bytes of the request.
        """
        draw = _DRAW.get()
        if self._base is None or draw is None:
            yield Exchange()
            return
        bare = blake2b(request, digest_size=16).digest()
        draw.sent[bare] += 1
        said = f"{who}\x1f{draw.episode}\x1f{draw.sent[bare]}\x1f".encode() + bare
        key = blake2b(said, digest_size=16).digest()
        with self._alone(key), self._claimed(key):
            found = Exchange(self, key, who)
            found.answer = self._find(key, who)
            yield found

    # -- inside --------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self.on or self._base is not None:
            return
        path = self.folder / FILE if self.folder else None
        try:
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
            # "" is a temporary file of SQLite's own, which holds more than memory would.
            base = sqlite3.connect(path or "", timeout=60, check_same_thread=False,
                                   isolation_level=None)  # fmt: skip
            self._begin(base, path)
        except OSError as fault:
            raise UsageError(f"--cache {self.folder}: {fault.strerror or fault}") from None
        except sqlite3.Error as fault:
            raise UsageError(
                f"--cache: {path} cannot be used ({fault}): name another folder, or move the file "
                "away"
            ) from None
        self._base = base
        self._claims = path.with_suffix(".lock").open("ab") if path else None

    def _begin(self, base: sqlite3.Connection, path: Path | None) -> None:
        (form,) = base.execute("PRAGMA user_version").fetchone()
        if form > _FORMAT:
            raise UsageError(f"{path} was written by a newer ToolShift: upgrade to use it")
        if path:
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=NORMAL")
        base.execute(_TABLE)
        base.execute(f"PRAGMA user_version={_FORMAT}")
        (last,) = base.execute("SELECT coalesce(max(round), 0) FROM answers").fetchone()
        self._round = last + 1
        self._since = self._round if self.fresh else 0

    def _find(self, key: bytes, who: str) -> bytes | None:
        """A stored answer, of a model that has answered in this run under the same name."""
        with self._lock:
            if self._base is None:  # the run has ended meanwhile
                return None
            found = self._base.execute(
                "SELECT model, answer FROM answers WHERE key = ? AND round >= ?",
                (key, self._since),
            ).fetchone()
            live = self._live.get(who)
            if found is None or live is None:  # the first request of a run shows who answers now
                return None
            if found[0] not in live:
                self.figures = msgspec.structs.replace(
                    self.figures, other_model=self.figures.other_model + 1
                )
                return None
        return zlib.decompress(found[1])

    def _keep(self, key: bytes, who: str, answer: bytes, model: str) -> None:
        row = (key, model, self._round, zlib.compress(answer))
        with self._lock:
            self._live.setdefault(who, set()).add(model)
            if self._base is None:  # the run has ended meanwhile
                return
            try:
                self._base.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)
            except sqlite3.Error as fault:
                raise UsageError(
                    f"--cache {self.folder or 'of this run'}: cannot write ({fault}). Finished "
                    "episodes are kept; free some space and run the same command again"
                ) from None

    @contextmanager
    def _alone(self, key: bytes) -> Iterator[None]:
        """One thread at a time for each key."""
        with self._lock:
            lock, waiting = self._flights.get(key) or (threading.Lock(), 0)
            self._flights[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._flights[key]
                if waiting == 1:
                    del self._flights[key]
                else:
                    self._flights[key] = lock, waiting - 1

    @contextmanager
    def _claimed(self, key: bytes) -> Iterator[None]:
        """One process at a time for each key, by a lock that the system drops with the process.

        Where there are no such locks, and where the system takes the waiting threads of two
        processes for a deadlock, both ask, and the later answer stays.
        """
        if self._claims is None:
            yield
            return
        place = int.from_bytes(key[:7], "big")
        locks = _file_locks()
        with suppress(OSError, AttributeError):
            locks.lockf(self._claims, locks.LOCK_EX, 1, place)
        try:
            yield
        finally:
            with suppress(OSError, AttributeError, ValueError):
                locks.lockf(self._claims, locks.LOCK_UN, 1, place)


STATELESS = frozenset(
    """
    temperature top_p top_k min_p typical_p seed logprobs top_logprobs logit_bias
    presence_penalty frequency_penalty repetition_penalty repeat_penalty stop stop_sequences
    max_tokens max_completion_tokens max_output_tokens
    reasoning reasoning_effort thinking verbosity effort output_config enable_thinking
    response_format text guided_json guided_regex guided_grammar chat_template_kwargs
    tool_choice parallel_tool_calls function_call
    generationConfig generation_config safetySettings toolConfig tool_config
    store include user safety_identifier metadata service_tier truncation
    prompt_cache_key prompt_cache_retention prompt_cache_options cache_control keep_alive
    """.split()  # noqa: SIM905 - a list to be read
)
"""Fields of requests that vendors document as settings of one answer: with any other field set,
nobody here can know whether the provider keeps something between requests."""


def kept_elsewhere(options: Mapping[str, object]) -> str:
    """Which of the fields that a user has set may refer to what a provider keeps; "" for none."""
    other = sorted(name for name, value in options.items() if value is not None)
    unknown = [name for name in other if name not in STATELESS]
    return f"`{unknown[0]}` may refer to what the provider keeps" if unknown else ""


def _file_locks() -> Any:
    """The module of file locks; None on systems without."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return fcntl


class OwnReplies:
    """The replies of a user's own agent, whose author says that each follows from its turn alone.

    Args:
        agent: one that answers turns.
        about: what decides its replies: its name, the hash of its source, its settings.
    """

    kept_elsewhere = ""

    def __init__(self, agent: Agent, about: object) -> None:
        self.agent, self.name, self.exchanges = agent, agent.name, None
        self._who = f"own {as_json(about)}"

    exchanges: Exchanges | None

    def reply(self, turn: Turn) -> Reply:
        """Asks the agent, where no reply to this turn is stored."""
        if self.exchanges is None:
            return read_reply(finished(self.agent.reply(turn)))
        with self.exchanges.exchange(self._who, JSON.encode(turn)) as exchange:
            if exchange.answer is not None:
                kept = msgspec.json.decode(exchange.answer, type=_Kept)
                reply = Reply.of(kept.message)
                usage = kept.usage.as_saved
            else:
                reply = read_reply(finished(self.agent.reply(turn)))
                usage = msgspec.structs.replace(reply.usage, requests=1)
                if not reply.failure:
                    exchange.keep(JSON.encode(_Kept(_message(reply), reply.usage)), "")
            self.exchanges.count(usage)
            return msgspec.structs.replace(reply, usage=usage)


class _Kept(msgspec.Struct):
    message: dict[str, Any]
    usage: Usage


def _message(reply: Reply) -> dict[str, Any]:
    """A reply as an assistant message, from which `Reply.of` reads it again."""
    calls = [
        as_tool_call(
            call.name,
            call.text if isinstance(call, MalformedCall) else call.arguments,
            call.id,
            call.extra,
        )
        for call in reply.calls
    ]
    said = {"role": "assistant", "content": reply.text, **reply.extra}
    return {**said, "tool_calls": calls} if calls else said


def recalling(agent: object) -> Recalling | None:
    """The agent, or the one inside it, whose exchanges may be stored."""
    for each in (agent, getattr(agent, "inner", None)):
        if isinstance(each, Recalling):
            return each
    return None


@contextmanager
def lent(exchanges: Exchanges, agents: Iterable[object]) -> Iterator[None]:
    """Gives a store to the agents that can use it, until the block ends."""
    able = [found for found in map(recalling, agents) if found is not None]
    if not able or not exchanges.on:
        yield
        return
    with exchanges.opened():
        for agent in able:
            if agent.kept_elsewhere:
                exchanges.notes.append(
                    f"Every request of {agent.name} is sent: {agent.kept_elsewhere}."
                )
            else:
                agent.exchanges = exchanges
        try:
            yield
        finally:
            for agent in able:
                agent.exchanges = None
