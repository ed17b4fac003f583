"""Posts alarms to a webhook as JSON, without stopping or slowing the watch.

    with Webhook("https://example.com/hook") as hook:
        hook.send({"text": "find_page: calls that fail: ..."})
    hook.sent, hook.lost

A thread posts what was sent, in its order. What does not arrive (no connection, a time-out, 429 or
5xx) is posted again, up to `retries` times, after a wait that doubles; any other answer is final.
Of an address only the host is ever named, for paths of webhooks are secrets.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON

TIMEOUT = 5.0
"""Seconds for one post."""
RETRIES = 3
WAIT = 0.5
"""Seconds before the first repetition."""
LONGEST_WAIT = 30.0
WAITING = 1_000
"""The most waiting messages; the oldest is dropped if more come."""
PATIENCE = 15.0
"""Seconds that the end of the watch waits for what has not been posted."""


class Webhook:
    """Posts messages to one address.

    Args:
        url: of the receiver.
        headers: sent with each message.
        timeout: seconds for one post.
        retries: attempts after the first.
        wait: seconds before the first repetition.

    Raises:
        UsageError: where the address is none.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] = {},
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        wait: float = WAIT,
    ) -> None:
        from toolshift.core.http import httpx  # noqa: PLC0415 - takes longer to load than all of ToolShift

        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, UnicodeError):
            address = httpx.URL("")
        if address.scheme not in ("http", "https") or not address.host:
            raise UsageError("--webhook: the address must begin with http:// or https://")
        self.name = f"{address.scheme}://{address.host}"
        self.sent = self.lost = 0
        self.fault = ""
        self._retries, self._wait = retries, wait
        self._url = url
        self._client = httpx.Client(
            timeout=timeout,
            headers={**headers, "content-type": "application/json"},
            follow_redirects=False,
        )
        self._queue: deque[bytes] = deque()
        self._told = threading.Condition()
        self._open = True
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Queues a message to be posted."""
        with self._told:
            if len(self._queue) >= WAITING:
                self._queue.popleft()
                self.lost += 1
            self._queue.append(JSON.encode(message))
            self._told.notify()

    def close(self, patience: float = PATIENCE) -> None:
        """Waits for what has not been posted, and gives up on the rest."""
        with self._told:
            self._open = False
            self._told.notify()
        self._thread.join(patience)
        if self._thread.is_alive():
            self._ended.set()
            self.fault = self.fault or "no answer in time"
            with self._told:
                self.lost += len(self._queue) + 1
                self._queue.clear()
        else:
            self._client.close()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        while (body := self._next()) is not None:
            why = self._deliver(body)
            if self._ended.is_set():
                return
            if why:
                self.lost, self.fault = self.lost + 1, why
            else:
                self.sent += 1

    def _next(self) -> bytes | None:
        """The next message; None at the end."""
        with self._told:
            while not self._queue and self._open:
                self._told.wait()
            return self._queue.popleft() if self._queue else None

    def _deliver(self, body: bytes) -> str:
        """Posts a message; returns why it did not arrive, or ""."""
        why, wait = "", self._wait
        for attempt in range(self._retries + 1):
            if attempt and self._ended.wait(wait):
                break
            why, delay = self._post(body)
            if not why or delay is None:
                break
            wait = min(max(self._wait * 2.0**attempt, delay), LONGEST_WAIT)
        return why

    def _post(self, body: bytes) -> tuple[str, float | None]:
        """Posts once."""
        try:
            answer = self._client.post(self._url, content=body)
        except Exception as fault:  # whatever a client may raise: it costs this message alone
            return type(fault).__name__, 0.0
        if answer.is_success:
            return "", None
        again = answer.status_code == 429 or answer.status_code >= 500
        retry_after = answer.headers.get("retry-after", "")
        least = float(retry_after) if retry_after.isdigit() else 0.0
        return f"HTTP {answer.status_code}", least if again else None
