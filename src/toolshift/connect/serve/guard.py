"""Who may talk to a server: known hosts and origins, the token where one is asked for, and no
body larger than an honest request can be.

A web page that the user has open must not reach a server on his machine: its requests carry the
page's origin, and after DNS rebinding the page's host.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolshift.connect.serve.responses import refusal
from toolshift.core.calls import LARGEST
from toolshift.core.errors import UsageError
from toolshift.core.loopback import LOOPBACK, is_loopback
from toolshift.core.text import is_count


class Guard:
    """Refuses what it must before an application sees it.

    Args:
        app: what is guarded.
        hosts: names by which the server may be called.
        token: the bearer token that clients must send; "" asks for none.
        largest: bytes that a request may have.
        further: another token that is as good.
        advice: ends the sentence that refuses a Host; "" where no option admits further ones.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Iterable[str],
        token: str = "",
        largest: int = LARGEST,
        further: str = "",
        advice: str = "; see --allow-host",
    ) -> None:
        self.app = RequestBodyLimitMiddleware(app, largest)
        self.hosts, self.largest = frozenset(hosts), largest
        self._tokens = (token, further) if token else ()
        self._advice = advice

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the reason why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, why = self._wrong(Headers(scope=scope))
        if status:
            await refusal(status, why)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _wrong(self, headers: Headers) -> tuple[int, str]:
        """The status and the reason of a refusal; 0 where there is none."""
        named = headers.getlist("host")
        called = f"//{named[0]}" if len(named) == 1 else ""
        if _host(called) not in self.hosts:
            return 421, f"this server does not answer to that Host{self._advice}"
        if not all(self._admits(origin, called) for origin in headers.getlist("origin")):
            return 403, "requests from that Origin are refused"
        if self._tokens and not any(bears(headers, token) for token in self._tokens):
            return 401, "this server asks for its token: Authorization: Bearer TOKEN"
        size = headers.get("content-length", "0")
        if size.isdigit() and (not is_count(size) or int(size) > self.largest):
            return 413, f"a request may have {self.largest} bytes, not {size[:20]}"
        return 0, ""

    def _admits(self, origin: str, called: str) -> bool:
        """Whether a page may send requests. One of this machine must come from this server: what
        listens at another port may be anybody's."""
        name = _host(origin)
        return name in self.hosts and (not is_loopback(name) or _port(origin) == _port(called))


_OF_KEYS = ("x-api-key", "x-goog-api-key")
"""Headers in which clients of Anthropic and of Google send a key."""


def bears(headers: Headers, token: str) -> bool:
    """Whether a request bears a token."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    sent = [given.strip()] if scheme.lower() == "bearer" else []
    sent += [headers[name] for name in _OF_KEYS if name in headers]
    same = [secrets.compare_digest(one.encode(), token.encode()) for one in sent]
    return bool(token) and any(same)


def _host(address: str) -> str:
    """The host of an address in lower case; "" where it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _port(address: str) -> int:
    """The port of an address, that of its scheme where it names none; -1 for what is no port."""
    try:
        parts = urlsplit(address)
        return parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return -1


def hosts_of(host: str, allowed: Iterable[str] = ()) -> list[str]:
    """The names by which a server that listens on `host` may be called."""
    for name in allowed:
        if "*" in name or not name or _host(f"//{name}") != name.lower():
            raise UsageError(f"--allow-host takes a host name without scheme or port, not {name!r}")
    own = [] if is_loopback(host) else [socket.gethostname().lower()]
    return [*LOOPBACK, host.lower(), *own, *(name.lower() for name in allowed)]
