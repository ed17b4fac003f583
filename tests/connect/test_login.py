"""Logins and headers for servers over HTTP, against servers built from the documented protocol."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from connect.oauth_server import SECRET, Secured, secured
from running import Run

from toolshift.core.http import httpx
from toolshift.interop import redirect
from toolshift.interop.logins import FOLDER, read_login
from toolshift.worlds.own import load


@pytest.fixture(autouse=True)
def _browser(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A browser whose user agrees to everything; logins go to a folder outside the test's own."""

    def go(url: str) -> bool:
        visit = httpx.Client(follow_redirects=True, trust_env=False).get
        threading.Thread(target=visit, args=(url,), daemon=True).start()
        return True

    monkeypatch.setattr(webbrowser, "open", go)
    monkeypatch.setenv(FOLDER, str(tmp_path_factory.mktemp("home") / "logins"))


@pytest.fixture
def server() -> Iterator[Secured]:
    with secured() as found:
        yield found


def address(server: Secured) -> str:
    return f"{server.url}/mcp"


def check_nothing_leaks(server: Secured, *said: str) -> None:
    """No token and no secret in what was said, or in any file of the working directory."""
    files = [
        path.read_bytes().decode(errors="replace") for path in Path().rglob("*.*") if path.is_file()
    ]
    for secret in (*server.issued, SECRET):
        assert not any(secret in text for text in (*files, *said)), secret


def test_without_a_login_the_command_for_one_is_named(toolshift: Run, server: Secured) -> None:
    for words in (["lock"], ["proxy", "--dry-run"], ["world", "init", "--out", "t.yaml"]):
        code, _, said = toolshift(*words, address(server))
        assert (code, f"toolshift login {address(server)}" in said) == (2, True), said


def test_every_command_uses_a_login(toolshift: Run, server: Secured, tmp_path: Path) -> None:
    url = address(server)
    said = [*toolshift("login", url)[1:]]
    assert "mode 600" in said[0]
    (kept,) = Path(os.environ[FOLDER]).iterdir()
    assert (stat.S_IMODE(kept.stat().st_mode), stat.S_IMODE(kept.parent.stat().st_mode)) == (
        0o600,
        0o700,
    )
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"far": {"url": url}}}))
    for words in (
        ("lock", url),
        ("verify", "toolshift.lock"),
        ("lock", f"{url}?view=all", "--out", "query.lock"),
        ("lock", ".mcp.json#far", "--out", "named.lock"),
        ("verify", "named.lock"),
        ("proxy", "--dry-run", url),
        ("world", "init", url, "--out", "t.yaml"),
        ("world", "init", ".mcp.json#far", "--out", "named.yaml"),
    ):
        code, *heard = toolshift(*words)
        assert code == 0, (words, heard)
        said += heard
    assert server.log.count("GET /authorize") == 1
    assert json.loads((tmp_path / "named.lock").read_text())["origin"] == ".mcp.json#far"
    assert 'tools: {"mcp_config":".mcp.json#far"}' in (tmp_path / "named.yaml").read_text()
    check_nothing_leaks(server, *said)
    assert toolshift("login", url, "--forget")[0] == 0
    assert toolshift("lock", url)[0] == 2


def test_a_login_that_others_can_read_is_not_used(toolshift: Run, server: Secured) -> None:
    toolshift("login", address(server))
    (kept,) = Path(os.environ[FOLDER]).iterdir()
    kept.chmod(0o640)
    code, _, said = toolshift("lock", address(server))
    assert (code, "chmod 600" in said) == (2, True)


@pytest.mark.parametrize("says", [True, False])
def test_a_token_that_has_ended_is_renewed(toolshift: Run, says: bool) -> None:
    with secured(says_lasts=says) as server:
        url = address(server)
        toolshift("login", url)
        for _ in range(2):  # a refresh token is good for one use, so the new one must be kept
            server.access.clear()
            assert toolshift("lock", url)[0] == 0
        assert server.log.count("POST /token refresh_token") == 2
        assert server.log.count("GET /authorize") == 1
        server.access.clear()
        server.refresh.clear()
        code, _, said = toolshift("lock", url)
        assert (code, "the login that is kept has ended" in said) == (2, True)
        assert server.log.count("GET /authorize") == 1  # nobody was asked
        assert toolshift("login", url)[0] == 0
        assert toolshift("lock", url)[0] == 0


def test_an_old_token_is_renewed_before_it_is_sent(toolshift: Run, server: Secured) -> None:
    url = address(server)
    server.lasts = 0
    toolshift("login", url)  # the server grants nothing that lasts, and refuses it
    server.lasts, server.log[:] = 60, []
    assert toolshift("lock", url)[0] == 0
    assert server.log[0] == "POST /token refresh_token"


def test_a_scope_that_is_missing_is_named_and_asked_for(toolshift: Run, server: Secured) -> None:
    url = address(server)
    toolshift("login", url)
    server.needs = "admin"
    code, _, said = toolshift("lock", url)
    assert (code, f"toolshift login {url} --scope admin" in said) == (2, True), said
    server.needs = "tools"  # the login itself is not asked for more
    assert toolshift("login", url, "--scope", "admin")[0] == 0
    server.needs = "admin"
    assert toolshift("lock", url)[0] == 0


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"state": "of-another-login"}, "the state of another login"),
        ({"deny": True}, "access_denied"),
        ({"registers": False}, "--client-id"),
        ({"metadata": False, "registers": False}, "--client-id"),
    ],
)
def test_a_login_that_fails_keeps_nothing(toolshift: Run, how: dict[str, Any], why: str) -> None:
    with secured(**how) as server:
        code, out, said = toolshift("login", address(server))
        assert (code, why in said) == (2, True), said
        assert read_login(address(server)) is None
        check_nothing_leaks(server, out, said)


def test_a_redirect_that_is_not_registered_never_comes_back(
    toolshift: Run, server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redirect, "PATIENCE", 0.5)
    server.clients["mine"] = {"redirect_uris": ["http://127.0.0.1:1/callback"]}
    code, _, said = toolshift("login", address(server), "--client-id", "mine")
    assert (code, "nobody logged in" in said) == (2, True)
    assert read_login(address(server)) is None
    assert not any(line.startswith("POST /token") for line in server.log)


def test_only_the_redirect_itself_counts() -> None:
    with redirect.Redirect() as listens:
        for path in ("/favicon.ico", "/callback", "/callback?state=a", "/?code=b"):
            base = listens.url.removesuffix(redirect.PATH)
            assert httpx.get(base + path, trust_env=False).status_code == 404
        assert httpx.get(f"{listens.url}?code=c&state=d", trust_env=False).status_code == 200
        assert listens.wait() == {"code": "c", "state": "d"}


def test_a_service_logs_in_for_itself(
    toolshift: Run, server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", SECRET)
    how = ("--client-id", "service", "--client-secret-env", "CI_SECRET")
    said = [*toolshift("login", address(server), *how, "--client-credentials", server.url)[1:]]
    assert toolshift("lock", address(server))[0] == 0
    server.access.clear()
    code, *heard = toolshift("lock", address(server))
    assert code == 0, heard
    assert server.log.count("POST /token client_credentials") == 2
    (kept,) = Path(os.environ[FOLDER]).iterdir()
    check_nothing_leaks(server, *said, *heard)
    assert SECRET not in kept.read_text()
    monkeypatch.delenv("CI_SECRET")
    code, _, told = toolshift("lock", address(server))
    assert (code, "variable CI_SECRET is not set" in told) == (2, True)


def test_a_secret_goes_to_its_issuer_only_and_is_never_said(
    toolshift: Run, server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_SECRET", SECRET)
    how = ("--client-id", "service", "--client-secret-env", "CI_SECRET", "--client-credentials")
    code, _, said = toolshift("login", address(server), *how, "https://auth.example.com")
    assert code == 2
    assert not any(line.startswith("POST /token") for line in server.log)
    monkeypatch.setenv("CI_SECRET", f"{SECRET}-of-before")
    code, out, said = toolshift("login", address(server), *how, server.url)
    assert (code, "invalid_client" in said) == (2, True)
    check_nothing_leaks(server, out, said)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("http://example.com/mcp",), "only over https"),
        (("mcp:npx server",), "http address"),
        (("https://example.com/mcp", "--client-secret-env", "A"), "needs --client-id"),
        (("https://example.com/mcp", "--client-credentials", "https://a"), "--client-secret-env"),
    ],
)
def test_what_cannot_be_a_login_is_said(toolshift: Run, words: tuple[str, ...], why: str) -> None:
    code, _, said = toolshift("login", *words)
    assert (code, why in said) == (2, True)


def test_the_keyring_is_used_where_there_is_one(
    toolshift: Run, server: Secured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: dict[tuple[str, str], str] = {}
    ring = SimpleNamespace(
        get_keyring=lambda: SimpleNamespace(priority=5),
        get_password=lambda service, name: kept.get((service, name)),
        set_password=lambda service, name, value: kept.update({(service, name): value}),
        delete_password=lambda service, name: kept.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)  # the interface of the package, in memory
    monkeypatch.delenv(FOLDER)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert "the keyring of the operating system" in toolshift("login", address(server))[1]
    assert list(kept) == [("toolshift", address(server))]
    assert not (tmp_path / "config").exists()
    assert toolshift("lock", address(server))[0] == 0
    assert toolshift("login", address(server), "--forget")[0] == 0
    assert not kept
    ring.get_keyring = lambda: SimpleNamespace(priority=0)  # as without a desktop
    assert "mode 600" in toolshift("login", address(server))[1]


# -- headers ---------------------------------------------------------------------------------------

KEY = "a-key-of-mine"


def test_headers_go_to_the_server(toolshift: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", KEY)
    with secured(header=("Authorization", f"Bearer {KEY}")) as server:
        url, header = address(server), ("--header", "Authorization: Bearer ${KEY}")
        said = []
        for words in (
            ("lock", url),
            ("verify", "toolshift.lock"),
            ("proxy", "--dry-run", url),
            ("world", "init", url, "--out", "t.yaml"),
        ):
            code, *heard = toolshift(*words, *header)
            assert code == 0, (words, heard)
            said += heard
        assert '"headers":{"Authorization":"Bearer ${KEY}"}' in Path("t.yaml").read_text()
        files = [path.read_text() for path in Path().rglob("*.*") if path.is_file()]
        assert not any(KEY in text for text in (*files, *said))
        code, _, told = toolshift("lock", url, "--header", "Authorization: Bearer x")
        assert (code, "does not take the Authorization header" in told) == (2, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("lock", "https://a.example", "--header", "A: ${NOWHERE}"), "no NOWHERE"),
        (("lock", "https://a.example", "--header", "A"), "'Name: value'"),
        (("lock", "mcp:npx server", "--header", "A: b"), "there is none"),
        (("lock", "https://a.example", "https://b.example", "--header", "A: b"), "one address"),
        (("proxy", "mcp:npx server", "--header", "A: b"), "is a command"),
        (("world", "init", "https://a.example", "--out", "t", "--header", "A: b"), "variable"),
        (("world", "init", "python:mine", "--out", "t", "--header", "A: $B"), "not with python"),
    ],
)
def test_headers_that_have_no_place_are_said(
    toolshift: Run, words: tuple[str, ...], why: str
) -> None:
    code, _, said = toolshift(*words)
    assert (code, why in said) == (2, True), said


# -- no MCP ----------------------------------------------------------------------------------------

API = """
openapi: 3.1.0
info: {title: items, version: "1"}
paths:
  /items:
    get:
      operationId: list_items
      responses: {"200": {description: items}}
"""
TASKS = """
world: items
tools: {openapi: api.yaml, base_url: URL}
tasks:
  - id: first
    ask: Which items are there?
    calls: [{name: list_items, arguments: {}}]
    check: {calls: true}
"""


def test_an_openapi_server_takes_the_login_at_its_address(
    toolshift: Run, server: Secured, tmp_path: Path
) -> None:
    assert toolshift("login", server.url)[0] == 0
    server.access.clear()
    (tmp_path / "api.yaml").write_text(API)
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("URL", server.url))
    source = load(tmp_path / "tasks.yaml").source
    assert source is not None
    opened = source.open()
    assert opened.call("list_items", {}).data == [{"id": 1}]
    assert server.log.count("POST /token refresh_token") == 1
    assert opened.call("list_items", {}).data == [{"id": 1}]
    assert server.log.count("POST /token refresh_token") == 1
    opened.close()


def test_what_a_server_is_started_as_comes_from_the_file(toolshift: Run, tmp_path: Path) -> None:
    shop = Path(__file__).with_name("shop_server.py")
    entry = {"command": sys.executable, "args": ["${SHOP_SERVER}"]}
    far = {"command": "no-such-program-is-there"}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry, "far": far}}))
    os.environ["SHOP_SERVER"] = str(shop)
    try:
        code, out, said = toolshift("lock", ".mcp.json#shop")
        assert code == 0, said
        assert "tools of .mcp.json#shop" in out
        assert toolshift("verify", "toolshift.lock")[0] == 0
        assert toolshift("proxy", "--dry-run", ".mcp.json#shop")[0] == 0
        assert toolshift("world", "init", ".mcp.json#shop", "--out", "w.yaml")[0] == 0
        assert "find_orders" in Path("w.yaml").read_text()
    finally:
        del os.environ["SHOP_SERVER"]
    code, _, said = toolshift("lock", ".mcp.json#shpo")
    assert (code, "did you mean shop" in said) == (2, True)
    code, _, said = toolshift("lock", ".mcp.json")
    assert (code, "there are: shop, far" in said) == (2, True)
