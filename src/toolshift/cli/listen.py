"""Where a server of ours listens, and who may talk to it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated

from toolshift.cli.parameters import option
from toolshift.core.loopback import is_loopback
from toolshift.core.terminal import say

PORT = option(help="Port; 0 takes a free one.")


@dataclass(frozen=True, kw_only=True)
class Listen:
    """An address and who may use it.

    Attributes:
        token: the bearer token that clients must send; "" makes one where others than this
            machine can connect.
        allowed: further names by which the server may be called.
    """

    host: Annotated[str, option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, PORT] = 8410
    token: Annotated[
        str,
        option(
            envvar="TOOLSHIFT_SERVE_TOKEN",
            help="Bearer token that clients must send; one is made and printed once where --host "
            "is not loopback.",
        ),
    ] = ""
    allowed: Annotated[
        tuple[str, ...],
        option("--allow-host", help="Further name by which this server may be called; repeat."),
    ] = ()

    def token_or_new(self, what: str) -> str:
        """The token; one is made, and said once, where the address is not of this machine alone."""
        if self.token or is_loopback(self.host):
            return self.token
        token = secrets.token_urlsafe(24)
        say(f"{what}: {token}", err=True)
        return token

    def url(self, port: int) -> str:
        """The address, with the port that was got."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"
