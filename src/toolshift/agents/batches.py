"""Requests that are sent in batches, at half the price, for runs that can wait.

The providers' batch endpoints take many requests at once and answer them within a day, most within
an hour. Here the requests of all episodes in flight are gathered until no more come, sent as one
batch, and asked for until it has ended; each episode then takes its next turn. A run of 300
episodes of six turns each is some six batches.

Which requests are in which batch is kept in a file of the run folder. What a killed run had asked
is not asked again: the same command finds its answers at the provider, which keeps them for about
a month.

OpenAI: https://platform.openai.com/docs/guides/batch
Anthropic: https://docs.anthropic.com/en/docs/build-with-claude/batch-processing
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from toolshift.core.errors import UsageError, described

if TYPE_CHECKING:
    from toolshift.core.http import httpx

PRICE = 0.5
"""What a request of a batch costs, as a share of one that is sent alone, at both providers."""
CONCURRENCY = 256
"""Episodes at once where nothing else is said: the more there are, the fewer batches."""
QUIET = 1.0  # seconds without a new request after which a batch is sent
MOST, LARGEST = 10_000, 100 * 2**20  # requests and bytes of one batch; both providers take more
DAY = 86_400.0  # seconds; what is older is said with its date
PATIENCE = 3600.0  # seconds without any answer of the server after which a run is given up

_log = logging.getLogger(__name__)


class Refused(Exception):
    """A request, or a whole batch, that the server refused: as it would have come alone."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.text, self.headers = status, text, headers or {}


class Unanswered(Exception):
    """A request that its batch ended without an answer to, such as one that expired."""


@dataclass
class _Asked:
    """One request, and the thread that waits for its answer."""

    body: bytes
    done: threading.Event = field(default_factory=threading.Event)
    text: str = ""
    fault: Exception | None = None


class Batches:
    """Gathers the requests of many threads, sends them in batches, and hands the answers back.

    `found` counts requests that an earlier process had sent; `met` says whether the server has ever
    answered. `told` is called with a line whenever a batch was sent or has come back.
    """

    def __init__(
        self,
        client: httpx.Client,
        address: httpx.URL,
        path: str,
        form: Form,
        every: float = 30.0,
    ) -> None:
        self._server = _Server(client, address, path)
        self._form, self._every = form, every
        self._lock = threading.Condition()
        self._new: dict[str, _Asked] = {}
        self._open: dict[str, dict[str, _Asked]] = {}
        self._sent: dict[str, str] = {}
        self._names: Counter[str] = Counter()
        self._file: Path | None = None
        self._last = self._reached = 0.0
        self._thread: threading.Thread | None = None
        self.batches = self.requests = self.found = self.back = 0
        self.met = False
        self.told: Callable[[str], None] = _log.info
        self._times: dict[str, float] = {}
        self._said = ""

    def remember(self, file: Path) -> None:
        """Keeps what is sent in a file, and takes up what one before has sent."""
        self._file = file
        if not file.exists():
            return
        for line in file.read_bytes().splitlines():
            with suppress(msgspec.DecodeError, msgspec.ValidationError):  # a line was cut off
                sent = msgspec.json.decode(line, type=_Sent)
                self._sent |= dict.fromkeys(sent.requests, sent.batch)
                self._times[sent.batch] = sent.at

    def ask(self, name: str, body: bytes) -> str:
        """The text of the answer to a request, as it would have come to one that is sent alone.

        It comes minutes or hours later. By `name` it is found again in another process.
        """
        asked = _Asked(body)
        with self._lock:
            self._names[name] += 1
            name += f"-{self._names[name]}" if self._names[name] > 1 else ""
            if name in self._sent:
                self._open.setdefault(self._sent[name], {})[name] = asked
                self.found += 1
            else:
                self._new[name] = asked
                self._last = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._lock.notify()
        asked.done.wait()
        if asked.fault is not None:
            raise asked.fault
        return asked.text

    @property
    def line(self) -> str:
        """How many batches are back, and since when the others are waited for."""
        with self._lock:
            out = {batch: len(asked) for batch, asked in self._open.items()}
        said = f"Batches: {self.back} of {self.back + len(out)} back"
        if not out:
            return f"{said}."
        since = min((at for batch in out if (at := self._times.get(batch))), default=None)
        form = "%H:%M" if since and time.time() - since < DAY else "%Y-%m-%d %H:%M"
        when = f" since {time.strftime(form, time.localtime(since))}" if since else ""
        count = sum(out.values())
        return f"{said}; {count:,} {'requests wait' if count > 1 else 'request waits'}{when}."

    # -- in a thread of its own, while anybody waits -------------------------------------------

    def _work(self) -> None:
        looked, self._reached = -self._every, time.monotonic()
        while True:
            with self._lock:
                if not self._new and not self._open:
                    self._thread = None
                    return
                ready = self._ready(time.monotonic())
                due = self._open and time.monotonic() - looked >= self._every
                if not ready and not due:
                    self._lock.wait(min(QUIET, self._every))
                    continue
            looked = looked if ready else time.monotonic()
            try:
                self._step(ready)
            except (Refused, Unanswered, UsageError) as fault:
                self._fail(ready, fault)
            except Exception as fault:
                self._fail(ready, Unanswered(f"the batches cannot be read: {described(fault)}"))

    def _step(self, ready: dict[str, _Asked]) -> None:
        """Sends the next batch, or looks at those that are open where there is none."""
        try:
            if ready:
                self._send(ready)
            else:
                for batch in list(self._open):
                    self._look(batch)
            if (line := self.line) != self._said:
                self._said = line
                self.told(line)
            self.met, self._reached = True, time.monotonic()
        except Refused:
            self.met = True
            raise
        except _Away as away:
            if not self.met:
                raise Unanswered(str(away)) from None
            self._again(ready)
            _log.info("the batches cannot be reached (%s)", away)
            if time.monotonic() - self._reached > PATIENCE:
                self._fail({}, _gone(away))
            time.sleep(min(self._every, 60.0))

    def _ready(self, now: float) -> dict[str, _Asked]:
        """The requests of the next batch; none while more are coming."""
        if not self._new or (now - self._last < QUIET and len(self._new) < MOST):
            return {}
        ready: dict[str, _Asked] = {}
        size = 0
        for name, asked in list(self._new.items()):
            size += len(asked.body)
            if ready and (size > LARGEST or len(ready) == MOST):
                break
            ready[name] = self._new.pop(name)
        return ready

    def _send(self, ready: dict[str, _Asked]) -> None:
        try:
            batch = self._form.send(self._server, {name: one.body for name, one in ready.items()})
        except Refused as refused:
            if refused.status not in (404, 405, 501):
                raise
            raise UsageError(
                f"the server does not accept batches (HTTP {refused.status}): leave --batch out, "
                "or name another base url"
            ) from None
        with self._lock:
            self._sent |= dict.fromkeys(ready, batch)
            self._open[batch] = dict(ready)
            self._times[batch] = round(time.time(), 1)
            self.batches, self.requests = self.batches + 1, self.requests + len(ready)
        try:
            if self._file is not None:
                with self._file.open("ab") as file:
                    file.write(
                        msgspec.json.encode(_Sent(batch, list(ready), self._times[batch])) + b"\n"
                    )
        except OSError as fault:
            raise UsageError(f"{self._file}: cannot write ({fault.strerror})") from None

    def _look(self, batch: str) -> None:
        """Hands the answers of a batch back where it has ended."""
        try:
            answers = self._form.answers(self._server, batch)
        except Refused as refused:
            if refused.status not in (400, 404, 410):
                raise
            with self._lock:
                lost = self._open.pop(batch, {})
                self._sent = {name: of for name, of in self._sent.items() if of != batch}
            if refused.status == 400:  # the provider has not taken it
                self._fail(lost, refused)
            else:  # the provider keeps it no more
                self._again(lost)
            return
        if answers is None:
            return
        found = dict(answers)
        with self._lock:
            waiting = self._open.pop(batch, {})
            self.back += 1
        for name, asked in waiting.items():
            status, text = found.get(name, (0, "it ended without an answer"))
            if status == 200:
                asked.text = text
            else:
                asked.fault = Refused(status, text) if status else Unanswered(f"batch: {text}")
            asked.done.set()

    def _again(self, lost: Mapping[str, _Asked]) -> None:
        with self._lock:
            self._new |= lost

    def _fail(self, asked: Mapping[str, _Asked], fault: Exception) -> None:
        """Tells those who wait for some requests; for none, those who wait for any."""
        groups = [asked]
        if not asked:
            with self._lock:
                groups = [self._new, *self._open.values()]
                self._new, self._open = {}, {}
        for group in groups:
            for one in group.values():
                one.fault = fault
                one.done.set()


class _Sent(msgspec.Struct, frozen=True):
    """A line of the file: a batch, the names of its requests, and when it was sent."""

    batch: str
    requests: list[str]
    at: float = 0.0


class _Away(Exception):
    """The server was not reached, or was not in order."""


def _gone(away: _Away) -> UsageError:
    return UsageError(
        f"the server of the batches gave no answer for {PATIENCE / 60:.0f} minutes ({away}). What "
        "was sent goes on there: run the same command again later, and its answers are fetched"
    )


class _Server:
    """The addresses beside the one of single requests."""

    def __init__(self, client: httpx.Client, address: httpx.URL, path: str) -> None:
        self._client, self._address = client, address
        self.path = path
        self._base = address.path.removesuffix(path)

    @property
    def endpoint(self) -> str:
        """The path of single requests, with its version alone: `/v1/chat/completions`."""
        return f"/v1{self.path}"

    def send(self, method: str, path: str, **how: Any) -> str:
        """The text of an answer; `Refused` with its status, `_Away` where another try may help."""
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift
        from toolshift.core.http_limits import fetch  # noqa: PLC0415 - it loads httpx

        url = self._address.copy_with(path=self._base + path)
        try:
            reply = fetch(self._client, method, url, **how)
        except httpx.HTTPError as error:
            raise _Away(f"{type(error).__name__}: {error}".rstrip(": ")) from None
        if reply.status_code in (408, 409, 425) or reply.status_code >= 500:
            raise _Away(f"HTTP {reply.status_code}")
        if reply.status_code >= 300:
            raise Refused(reply.status_code, reply.text, reply.headers)
        return reply.content.decode("utf-8", "replace")

    def object(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        """An answer that is a JSON object."""
        text = self.send(method, path, **how)
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            raise Refused(404, f"no batches are there: {text[:200]!r}") from None


class Form(Protocol):
    """How a provider has batches."""

    def send(self, server: _Server, requests: Mapping[str, bytes]) -> str:
        """Sends requests by name; the id of their batch."""
        ...

    def answers(self, server: _Server, batch: str) -> Iterator[tuple[str, tuple[int, str]]] | None:
        """The names, statuses and texts of a batch that has ended; None while it goes on.

        Status 0 is a request that was not answered, with the reason as its text.
        """
        ...


class _OpenAI:
    """A file of requests is sent, a batch made of it, and the files of its answers fetched."""

    def send(self, server: _Server, requests: Mapping[str, bytes]) -> str:
        lines = (
            b'{"custom_id":%s,"method":"POST","url":%s,"body":%s}\n'
            % (msgspec.json.encode(name), msgspec.json.encode(server.endpoint), body)
            for name, body in requests.items()
        )
        mark = token_hex(16)
        file = server.object(
            "POST",
            "/files",
            data={"purpose": "batch"},
            files={"file": ("requests.jsonl", b"".join(lines), "application/jsonl")},
            headers={"content-type": f"multipart/form-data; boundary={mark}"},
        )
        asked = {"input_file_id": file["id"], "endpoint": server.endpoint,
                 "completion_window": "24h"}  # fmt: skip
        return str(server.object("POST", "/batches", json=asked)["id"])

    def answers(self, server: _Server, batch: str) -> Iterator[tuple[str, tuple[int, str]]] | None:
        found = server.object("GET", f"/batches/{batch}")
        status = found.get("status")
        if status == "failed":
            told = (found.get("errors") or {}).get("data") or [{}]
            raise Refused(400, json.dumps({"error": told[0]}))
        if status not in ("completed", "expired", "cancelled"):
            return None
        files = filter(None, (found.get("output_file_id"), found.get("error_file_id")))
        texts = [server.send("GET", f"/files/{file}/content") for file in files]
        return self._read(texts, str(status))

    def _read(self, texts: list[str], ended: str) -> Iterator[tuple[str, tuple[int, str]]]:
        for row in _rows("\n".join(texts)):
            reply, error = row.get("response") or {}, row.get("error") or {}
            if reply.get("status_code"):
                yield row["custom_id"], (int(reply["status_code"]), json.dumps(reply.get("body")))
            else:
                yield row["custom_id"], (0, str(error.get("message") or error or ended))


class _Anthropic:
    """Requests are sent in one body; their answers are lines at an address of their own."""

    _STATUS = {"invalid_request_error": 400, "authentication_error": 401, "permission_error": 403,
               "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429,
               "api_error": 500, "timeout_error": 504, "overloaded_error": 529}  # fmt: skip

    def send(self, server: _Server, requests: Mapping[str, bytes]) -> str:
        rows = (
            b'{"custom_id":%s,"params":%s}' % (msgspec.json.encode(name), body)
            for name, body in requests.items()
        )
        body = b'{"requests":[' + b",".join(rows) + b"]}"
        return str(server.object("POST", f"{server.path}/batches", content=body)["id"])

    def answers(self, server: _Server, batch: str) -> Iterator[tuple[str, tuple[int, str]]] | None:
        at = f"{server.path}/batches/{batch}"
        if server.object("GET", at).get("processing_status") != "ended":
            return None
        return self._read(server.send("GET", f"{at}/results"))

    def _read(self, text: str) -> Iterator[tuple[str, tuple[int, str]]]:
        for row in _rows(text):
            result = row.get("result") or {"type": "lost"}
            if result["type"] == "succeeded":
                yield row["custom_id"], (200, json.dumps(result["message"]))
            elif result["type"] == "errored":
                error = result.get("error") or {}
                kind = str((error.get("error") or error).get("type"))
                yield row["custom_id"], (self._STATUS.get(kind, 400), json.dumps(error))
            else:
                yield row["custom_id"], (0, f"it is {result['type']}")


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """The answers in lines of JSON; a line that is none is an answer that did not come."""
    for line in text.split("\n"):
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
                yield row


FORMS: dict[str, Callable[[], Form]] = {
    "chat": _OpenAI, "responses": _OpenAI, "anthropic": _Anthropic
}  # fmt: skip
"""Dialects whose providers have batches."""
