"""A server, as it is started or reached, and how messages and locks call it.

`interop.client_files.server_of` reads which one a text means.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath

from toolshift.core.errors import UsageError

COMMAND = "mcp:"
ADDRESS = ("http://", "https://")


@dataclass(frozen=True)
class Server:
    """A server, and what it is given.

    Attributes:
        origin: how messages and locks call it; never with arguments, which may hold secrets.
        command: program and arguments; empty for one that runs at `url`.
        url: its address; "" for one that is started.
        headers: sent with every request to `url`.
        env: variables beside, or in place of, those that a command inherits.
        cwd: the folder in which the command runs; None for the current one.
        sse: it speaks the older transport, HTTP with server-sent events.
        client_id: under which its authorization server knows this client; "" where it is unknown.
    """

    origin: str
    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    sse: bool = False
    client_id: str = ""

    def given(self, headers: Mapping[str, str]) -> Server:
        """The same with further headers, which replace its own of the same name."""
        if not headers:
            return self
        if not self.url:
            raise UsageError(
                f"--header works only with the http address of a server; {self.origin} is a "
                "command, which reads its settings from its environment"
            )
        ours = {name.lower() for name in headers}
        kept = {name: text for name, text in self.headers.items() if name.lower() not in ours}
        return replace(self, headers={**kept, **headers})


def only_address(servers: Iterable[Server | None]) -> None:
    """Checks that headers have one server to go to: what is secret for one is not for another."""
    found = [server for server in servers if server is not None and server.url]
    if not found:
        raise UsageError("--header works only with the http address of a server, and there is none")
    if len({server.url for server in found}) > 1:
        origins = " and ".join(server.origin for server in found)
        raise UsageError(f"--header: it would be sent to {origins}; name one address only")


def command_of(text: str) -> tuple[str, ...]:
    """The program and its arguments of a server that is named as `mcp:COMMAND`."""
    try:
        command = tuple(shlex.split(text.removeprefix(COMMAND)))
    except ValueError as fault:
        raise UsageError(f"{text!r}: the command cannot be read ({fault})") from None
    if not command:
        raise UsageError(f"{text!r}: the command of the server is missing after mcp:")
    return command


_NO_VALUE = ("-y", "--yes", "-q", "--quiet", "-m", "-u")
"""Flags of npx, uvx and python after which the package may stand."""


def command_name(command: Sequence[str]) -> str:
    """How messages and locks name the command of a server."""
    return f"{COMMAND}{without_folder(command[0])} {_package(command)}".strip()


def address_name(url: str) -> str:
    """How messages and locks name the address of a server: without user, query and fragment."""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    begins = re.match(r"(?:[a-zA-Z][\w+.-]*:)?//", bare)
    lead = begins[0] if begins else ""
    host, slash, path = bare[len(lead) :].partition("/")
    return f"{lead}{host.rpartition('@')[2]}{slash}{path}"


def _package(command: Sequence[str]) -> str:
    """The package of a command, or the file; "" where what stands there may be something else."""
    named = [p for flag, p in pairwise(command) if flag in ("-p", "--package", "--from")]
    if named:
        return without_folder(named[-1])
    rest = [part for part in command[1:] if part not in _NO_VALUE]
    first = rest[0] if rest else ""
    if first.startswith("-") or "=" in first or any(sign.isspace() for sign in first):
        return ""
    return without_folder(first)


def without_folder(part: str) -> str:
    """The last part of an absolute path; anything else as it is."""
    for kind in (PurePosixPath, PureWindowsPath):
        if kind(part).is_absolute():
            return kind(part).name
    return part
