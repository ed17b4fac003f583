"""OAuth 2.1 for servers over HTTP: the flows of the MCP SDK, on logins that are kept.

`log_in` is the only place where a person is asked. Everything else takes the login that is kept:
tokens that have ended are renewed, and where that is not possible the server's refusal is said
with the command that logs in again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
import webbrowser
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec.structs import replace
from pydantic import AnyUrl, BaseModel, ValidationError

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.loopback import is_loopback
from toolshift.core.terminal import say
from toolshift.core.text import one_line
from toolshift.interop.limited_http import limited_client
from toolshift.interop.logins import Login, keep_login, read_login
from toolshift.interop.redirect import Redirect
from toolshift.interop.server import Server, address_name

Flow = AsyncGenerator[httpx2.Request, httpx2.Response]
ENDED = 1.0
"""A time that is over."""
HIDDEN = "[secret]"
SHORTEST = 8
"""Characters of a value that is taken for a secret wherever it turns up."""
_CREDENTIAL = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)

for _name in ("mcp.client.auth.oauth2", "mcp.client.auth.utils"):
    # What it logs is raised or said here as well, and there it may quote a secret.
    logging.getLogger(_name).addFilter(lambda record: False)


class ServerAuth(httpx2.Auth):
    """What goes with each request to a server, and what the server says to it.

    Args:
        url: of the server.
        login: at it; None without one.
        asks: a person can be asked, by this redirect.
        scope: what is asked for beside what the server names.
        fresh: the login is made now, whatever was kept before.
        headers: that are sent as well.

    Attributes:
        refused: why the last request was not answered, and what to do; "" where it was.
    """

    def __init__(
        self,
        url: str,
        login: Login | None,
        asks: Redirect | None = None,
        scope: str = "",
        fresh: bool = False,
        headers: Mapping[str, str] = {},
    ) -> None:
        self.url, self.refused = url, ""
        self._told = tuple(_credentials(headers))
        self._asks, self._scope = asks, scope
        self._store = _Store(login, fresh) if login else None
        self._provider = _provider(self._store, self) if self._store else None

    @property
    def where(self) -> str:
        """In words, where the login is kept that was made or renewed; "" where none was."""
        return self._store.where if self._store else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the server is sent that nobody else may see."""
        return (*self._told, *(self._store.login.secrets if self._store else ()))

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Sends a request, once more with renewed tokens where the first ones had ended."""
        if self._provider is None:
            self._hear(request, (yield request))
            return
        # Without a person only this flow may go on after a refusal: it asks nobody.
        alone = isinstance(self._provider, ClientCredentialsOAuthProvider)
        for attempt in range(2):
            async with aclosing(self._provider.async_auth_flow(request)) as flow:
                try:
                    sent = await anext(flow)
                    while True:
                        response = yield sent
                        refuses = sent is request and response.status_code in (401, 403)
                        self._hear(request, response if sent is request else None)
                        if refuses and self._asks is None and not alone:
                            break
                        sent = await flow.asend(response)
                except StopAsyncIteration:
                    return
                except (OAuthFlowError, ValidationError, httpx2.HTTPError) as fault:
                    raise UsageError(self._failed(fault)) from None
            if attempt or response.status_code != 401 or not await self._renewable():
                return

    async def _renewable(self) -> bool:
        """Whether other tokens than the refused ones are to be had, which are then taken."""
        assert self._provider is not None
        assert self._store is not None
        context, refused = self._provider.context, self._provider.context.current_tokens
        kept = await self._store.get_tokens()
        if kept is not None and (refused is None or kept.access_token != refused.access_token):
            context.current_tokens = kept  # another process has renewed them
            return True
        context.token_expiry_time = ENDED  # whatever was promised
        return context.can_refresh_token()

    def _hear(self, request: httpx2.Request, response: httpx2.Response | None) -> None:
        """Notes what the server says to a request."""
        if response is None:
            return
        status, name = response.status_code, address_name(self.url)
        self.refused = ""
        if status == 401 and "authorization" in request.headers and self._provider is None:
            self.refused = f"HTTP 401: {name} does not take the Authorization header that is sent"
        elif status == 401:
            again = " again, for the login that is kept has ended" if self._provider else ""
            self.refused = (
                f"HTTP 401: {name} wants to know who asks: `{command('login', name)}`{again}; or "
                "give it a token by --header 'Authorization: Bearer ${TOKEN}'"
            )
        elif status == 403:
            scope = extract_field_from_www_auth(response, "scope")
            more = f": `{command('login', name, '--scope', scope)}`" if scope else ""
            self.refused = f"HTTP 403: {name} does not allow this with the rights given{more}"
        elif status >= 400:
            self.refused = f"HTTP {status} from {name}"

    def _failed(self, fault: Exception) -> str:
        """What went wrong in a login, without a secret."""
        said = one_line(str(fault))[:500] or type(fault).__name__
        if isinstance(fault, ValidationError):
            said = "the authorization server's answer is not as OAuth 2.1 has it"
        if "State parameter mismatch" in said:
            said = "the browser came back with the state of another login"
        if "Registration failed" in said:
            said += ". Where clients cannot register, name yours: --client-id ID"
        for secret in self.secrets:
            said = said.replace(secret, HIDDEN)
        return f"no login at {address_name(self.url)}: {said}"

    # -- a person ----------------------------------------------------------------------------------

    async def send_to(self, url: str) -> None:
        """Sends the user's browser to the authorization server."""
        parts = urlsplit(url)
        if self._scope:
            query = dict(parse_qsl(parts.query))
            asked = dict.fromkeys((*query.get("scope", "").split(), *self._scope.split()))
            parts = parts._replace(query=urlencode({**query, "scope": " ".join(asked)}))
        where = urlunsplit(parts)
        say(f"Log in in your browser. If none opens, go to:\n{where}", err=True)
        await anyio.to_thread.run_sync(webbrowser.open, where)

    async def come_back(self) -> AuthorizationCodeResult:
        """Waits for the browser to come back."""
        assert self._asks is not None
        heard = await anyio.to_thread.run_sync(self._asks.wait)
        return AuthorizationCodeResult(
            code=heard["code"], state=heard.get("state"), iss=heard.get("iss")
        )


def _credentials(headers: Mapping[str, str]) -> Iterator[str]:
    """The secrets in headers: their values, without a scheme such as Bearer before them."""
    for name, value in headers.items():
        last = value.split()[-1] if value.strip() else ""
        if _CREDENTIAL.search(name) and len(last) >= SHORTEST:
            yield last


class _Store:
    """A login as the SDK reads and keeps it."""

    provider: OAuthClientProvider

    def __init__(self, login: Login, fresh: bool) -> None:
        self.login, self.fresh, self.where = login, fresh, ""

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens as they are kept now, which another process may have renewed."""
        if self.where or not self.fresh:
            self.login = read_login(self.login.url) or self.login
        context = self.provider.context
        context.token_expiry_time = self.login.expires
        if self.login.authorization:
            context.oauth_metadata = OAuthMetadata.model_validate(self.login.authorization)
        if self.login.resource:
            context.protected_resource_metadata = found = ProtectedResourceMetadata.model_validate(
                self.login.resource
            )
            context.auth_server_url = str(found.authorization_servers[0])
        return OAuthToken.model_validate(self.login.tokens) if self.login.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keeps tokens, with what is needed to renew them."""
        context = self.provider.context
        self.login = replace(
            self.login,
            tokens=_plain(tokens),
            expires=None if tokens.expires_in is None else time.time() + tokens.expires_in,
            authorization=_plain(context.oauth_metadata),
            resource=_plain(context.protected_resource_metadata),
        )
        self.where = keep_login(self.login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client, with its secret."""
        if not self.login.client:
            return None
        secret = {"client_secret": secret_of(self.login)} if self.login.secret_in else {}
        return OAuthClientInformationFull.model_validate({**self.login.client, **secret})

    async def set_client_info(self, client: OAuthClientInformationFull) -> None:
        """Notes the client as it was registered; it is kept with its first tokens."""
        self.login = replace(self.login, client=_plain(client))


def _plain(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(mode="json", exclude_none=True)


def secret_of(login: Login) -> str:
    """The secret of a client, from the environment."""
    if login.secret_in not in os.environ:
        raise UsageError(
            f"the login at {address_name(login.url)} needs the secret of its client: the "
            f"environment variable {login.secret_in} is not set"
        )
    return os.environ[login.secret_in]


def _provider(store: _Store, auth: ServerAuth) -> OAuthClientProvider:
    login = store.login
    if login.grant == "client_credentials":
        store.provider = ClientCredentialsOAuthProvider(
            login.url,
            store,
            str(login.client["client_id"]),
            secret_of(login),
            issuer=login.issuer,
        )
        return store.provider
    asks = auth._asks
    told = OAuthClientMetadata(
        redirect_uris=[AnyUrl(asks.url)] if asks else login.client.get("redirect_uris"),
        client_name="ToolShift",
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",  # noqa: S106 - a public client has no secret
    )
    store.provider = OAuthClientProvider(login.url, told, store, auth.send_to, auth.come_back)
    return store.provider


def auth_of(url: str, headers: Mapping[str, str] = {}) -> ServerAuth:
    """What goes with requests to a server: the login at it, where no header takes its place."""
    given = any(name.lower() == "authorization" for name in headers)
    return ServerAuth(url, None if given else read_login(url), headers=headers)


def ask_again(url: str, method: str, path: str, **how: Any) -> httpx2.Response:
    """Sends a request with the login at a server that is no MCP server, its tokens renewed."""

    async def ask() -> httpx2.Response:
        async with limited_client(base_url=url, auth=auth_of(url)) as client:
            return await client.request(method, path, **how)

    with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
        return thread.submit(asyncio.run, ask()).result()


def log_in(
    server: Server,
    look: Callable[[ServerAuth], Any],
    *,
    scope: str = "",
    client_id: str = "",
    secret_in: str = "",
    issuer: str = "",
    port: int = 0,
) -> str:
    """Logs in at a server by asking it (`look`), and keeps the login; returns where, in words.

    It is "" where the server asked for none. `secret_in` is the variable that has the secret of the
    client; with `issuer`, the only place that the secret may go to, no person is asked.
    """
    parts = urlsplit(server.url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"{address_name(server.url)}: tokens are sent only over https, or on this machine"
        )
    with Redirect(port) as redirect:
        client: dict[str, Any] = {}
        if client_id:
            method = "client_secret_post" if secret_in else "none"
            client = {"client_id": client_id, "token_endpoint_auth_method": method}
            client["redirect_uris"] = [redirect.url]
        login = Login(
            server.url,
            "client_credentials" if issuer else "browser",
            client,
            issuer=issuer,
            secret_in=secret_in,
        )
        auth = ServerAuth(server.url, login, None if issuer else redirect, scope, fresh=True)
        look(auth)
        return auth.where
