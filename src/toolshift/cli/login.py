"""`toolshift login`: a login at a server that asks for one, kept for the other commands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import click

from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.errors import UsageError, cause_of
from toolshift.core.terminal import say
from toolshift.interop.client_files import server_of
from toolshift.interop.logins import forget_login
from toolshift.interop.mcp_auth import ServerAuth, log_in
from toolshift.interop.mcp_client import Target, list_tools
from toolshift.interop.server import Server, address_name


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    """What `toolshift login` is asked for.

    Attributes:
        server: its http address, or `FILE#NAME`.
        scope: what is asked for beside what the server names.
        client_id: of a client that is registered already.
        secret_in: the variable of the environment that has its secret.
        issuer: the authorization server that the secret may go to, for client credentials.
        port: of the redirect; 0 for a free one.
        forget: delete the login that is kept.
    """

    server: Annotated[str, argument(metavar="SERVER")]
    scope: Annotated[
        str, option(metavar="'A B'", help="More scopes than those that the server names.")
    ] = ""
    client_id: Annotated[
        str,
        option(help="A client that is already registered; without it, a new client is registered."),
    ] = ""
    secret_in: Annotated[
        str,
        option(
            "--client-secret-env",
            metavar="NAME",
            help="Environment variable with the secret of --client-id. The secret is not stored.",
        ),
    ] = ""
    issuer: Annotated[
        str,
        option(
            "--client-credentials",
            metavar="ISSUER",
            help="Log in as the client itself, without a person. ISSUER is the address of the "
            "authorization server; the secret is sent only there.",
        ),
    ] = ""
    port: Annotated[
        int,
        option(
            type=click.IntRange(0, 65535),
            help="Port of the redirect http://127.0.0.1:PORT/callback; 0 takes a free one.",
        ),
    ] = 0
    forget: Annotated[bool, option(help="Delete the stored login.")] = False


@click.command()
@options_struct(LoginOptions)
def login(options: LoginOptions) -> None:
    """Log in to an MCP or HTTP server with OAuth, and store the login for other commands.

    SERVER is its http address, or FILE#NAME for one in the file of an MCP client. The command opens
    your browser; with --client-credentials it needs no person. `lock`, `verify`, `proxy`, `world`
    and `run` then use the login automatically, and renew its tokens. It is stored in the keyring of
    the operating system (with the package `keyring`), or in a file that only you can read.

    \b
    toolshift login https://example.com/mcp
    toolshift login https://example.com/mcp --client-id ci --client-secret-env CI_SECRET \\
        --client-credentials https://auth.example.com
    """
    server = _server(options)
    name = address_name(server.url)
    if options.forget:
        found = forget_login(server.url)
        say(f"The login at {name} is deleted." if found else f"There is no login at {name}.")
        return
    if options.secret_in and not options.client_id:
        raise UsageError("--client-secret-env needs --client-id")
    if options.issuer and not options.secret_in:
        raise UsageError("--client-credentials needs --client-id and --client-secret-env")
    where = log_in(
        server,
        partial(_look, server),
        scope=options.scope,
        client_id=options.client_id or server.client_id,
        secret_in=options.secret_in,
        issuer=options.issuer,
        port=options.port,
    )
    if not where:
        say(f"{name} did not ask for a login: nothing was stored.")
        return
    say(f"Logged in at {name}. The login is stored in {where}.")


def _server(options: LoginOptions) -> Server:
    server = server_of(options.server)
    if server is None or not server.url:
        raise UsageError(f"{options.server!r}: name the http address of a server, or FILE#NAME")
    return server


def _look(server: Server, auth: ServerAuth) -> None:
    """Asks a server for its tools; what is no MCP server asks for a login all the same."""
    target = Target.of(server)
    plain = {name: text for name, text in target.headers.items() if name.lower() != "authorization"}
    try:
        given = Target(url=target.url, headers=plain, sse=target.sse, auth=auth)
        asyncio.run(list_tools(given, waits=True))
    except BaseExceptionGroup as several:
        fault = cause_of(several)
        if auth.where:
            return
        if isinstance(fault, UsageError | KeyboardInterrupt):
            raise fault from None
        raise UsageError(f"{target.name}: {type(fault).__name__}") from None
