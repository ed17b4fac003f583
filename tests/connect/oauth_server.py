"""An MCP server behind OAuth, with its authorization server, built from the documented protocol.

It is no product of anybody's: it follows the MCP authorization specification (protected-resource
metadata RFC 9728, server metadata RFC 8414, dynamic registration RFC 7591, PKCE RFC 7636, `iss` RFC
9207), and is stricter than many: a redirect that is not registered, a verifier that does not fit, a
code, a refresh token used twice, and a foreign `resource` are refused.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

TOOL = {
    "name": "greet",
    "description": "Greet somebody.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
SECRET = "the-secret-of-a-service"


@dataclass
class Secured:
    """What the servers know, and how they behave.

    Attributes:
        header: a name and a value that let a request in without a token.
        lasts: seconds that a token is good for.
        says_lasts: whether it says so.
        needs: the scope of a call.
        offers: the scope that is asked for in a challenge.
        state: what replaces the state in the redirect; "" leaves it.
        deny: the user says no.
        registers: whether clients may register.
        metadata: whether the resource names its authorization server.
    """

    url: str = ""
    header: tuple[str, str] = ("", "")
    lasts: float = 3600
    says_lasts: bool = True
    needs: str = "tools"
    offers: str = "tools"
    state: str = ""
    deny: bool = False
    registers: bool = True
    metadata: bool = True
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, tuple[str, float]] = field(default_factory=dict)
    refresh: dict[str, str] = field(default_factory=dict)
    issued: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def tokens(self, scope: str, renews: bool = True) -> dict[str, Any]:
        access, renewal = f"at-{secrets.token_hex(12)}", f"rt-{secrets.token_hex(12)}"
        self.access[access] = (scope, time.time() + self.lasts)
        self.issued += [access, renewal]
        given = {"access_token": access, "token_type": "Bearer", "scope": scope}
        if self.says_lasts:
            given["expires_in"] = int(self.lasts)
        if renews:
            self.refresh[renewal] = scope
            given["refresh_token"] = renewal
        return given


def handler(state: Secured) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def send(self, status: int, body: Any = None, **headers: str) -> None:
            raw = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if raw:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            state.log.append(f"GET {path}")
            if path.startswith("/.well-known/oauth-protected-resource") and state.metadata:
                whole = path.endswith("/mcp")
                known = {
                    "resource": f"{state.url}{'/mcp' if whole else '/'}",
                    "authorization_servers": [state.url],
                }
                self.send(200, known)
            elif path == "/.well-known/oauth-authorization-server" and state.metadata:
                self.send(200, self.about())
            elif path == "/authorize":
                self.authorize(dict(parse_qs(urlsplit(self.path).query)))
            elif path == "/items" and self.let_in():
                self.send(200, [{"id": 1}])
            elif path != "/items":
                self.send(405 if path == "/mcp" else 404)

        def do_DELETE(self) -> None:
            self.send(200)

        def about(self) -> dict[str, Any]:
            found = {
                "issuer": state.url,
                "authorization_endpoint": f"{state.url}/authorize",
                "token_endpoint": f"{state.url}/token",
                "response_types_supported": ["code"],
                "grant_types_supported": [
                    *("authorization_code", "refresh_token", "client_credentials"),
                ],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
            if state.registers:
                found["registration_endpoint"] = f"{state.url}/register"
            return found

        def authorize(self, query: dict[str, list[str]]) -> None:
            asked = {name: values[0] for name, values in query.items()}
            client = state.clients.get(asked.get("client_id", ""))
            redirect = asked.get("redirect_uri", "")
            if client is None or redirect not in client["redirect_uris"]:
                return self.send(400, {"error": "invalid_request", "why": "redirect_uri"})
            back = {"state": state.state or asked["state"], "iss": state.url}
            if asked.get("code_challenge_method") != "S256" or state.deny:
                back["error"] = "access_denied"
            else:
                back["code"] = f"code-{secrets.token_hex(8)}"
                state.codes[back["code"]] = asked
            return self.send(302, Location=f"{redirect}?{urlencode(back)}")

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path
            state.log.append(f"POST {path}")
            if path == "/register" and state.registers:
                asked = json.loads(raw)
                name = f"client-{len(state.clients)}"
                state.clients[name] = asked
                return self.send(201, {**asked, "client_id": name})
            if path == "/token":
                return self.token({k: v[0] for k, v in parse_qs(raw.decode()).items()})
            if path == "/mcp":
                return self.speak(json.loads(raw))
            if self.let_in():
                self.send(404, {"error": "not found"})
            return None

        def token(self, form: dict[str, str]) -> None:
            state.log[-1] += f" {form.get('grant_type')}"
            if form.get("resource") not in (f"{state.url}/mcp", f"{state.url}/"):
                return self.send(400, {"error": "invalid_target"})
            if form["grant_type"] == "client_credentials":
                word = self.headers.get("Authorization", "").removeprefix("Basic ")
                pair = base64.b64decode(word).decode().partition(":")
                if (unquote(pair[0]), unquote(pair[2])) != ("service", SECRET):
                    said = f"{unquote(pair[2])} is not the secret"  # servers do say such things
                    return self.send(401, {"error": "invalid_client", "error_description": said})
                return self.send(200, state.tokens(form.get("scope", ""), renews=False))
            if form["grant_type"] == "refresh_token":
                scope = state.refresh.pop(form["refresh_token"], None)  # good for one use
                if scope is None:
                    return self.send(400, {"error": "invalid_grant"})
                return self.send(200, state.tokens(scope))
            asked = state.codes.pop(form.get("code", ""), {})
            hashed = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")
            if (asked.get("code_challenge"), asked.get("redirect_uri")) != (
                challenge,
                form.get("redirect_uri"),
            ):
                return self.send(400, {"error": "invalid_grant"})
            return self.send(200, state.tokens(asked.get("scope", "")))

        def let_in(self, needs: str = "") -> bool:
            name, value = state.header
            if name and self.headers.get(name) == value:
                return True
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            scope, until = state.access.get(token, ("", 0.0))
            below = "/mcp" if self.path.startswith("/mcp") else ""
            about = f'resource_metadata="{state.url}/.well-known/oauth-protected-resource{below}"'
            if time.time() >= until:
                challenge = (
                    f'Bearer {about}, scope="{state.offers}"' if state.metadata else "Bearer"
                )
                self.send(401, {"error": "invalid_token"}, WWW_Authenticate=challenge)
                return False
            if needs not in ("", *scope.split()):
                challenge = f'Bearer error="insufficient_scope", scope="{needs}", {about}'
                self.send(403, {"error": "insufficient_scope"}, WWW_Authenticate=challenge)
                return False
            return True

        def speak(self, message: dict[str, Any]) -> None:
            method = message["method"]
            if not self.let_in(state.needs if method.startswith("tools/") else ""):
                return None
            if "id" not in message:
                return self.send(202)
            about = {"name": "secured", "version": "1"}
            token = self.headers.get("Authorization", "")
            results: dict[str, Any] = {
                "initialize": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                },
                "tools/list": {"tools": [TOOL]},
                # A tool that tells what it was called with.
                "tools/call": {"content": [{"type": "text", "text": f"You came with {token}"}]},
            }
            return self.send(
                200, {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
            )

    return Handler


@contextlib.contextmanager
def secured(**how: Any) -> Iterator[Secured]:
    """Serves on a free port until the block ends."""
    state = Secured(**how)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(state))
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
