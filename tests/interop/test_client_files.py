"""The files of MCP clients, read by the name of a server, as each client documents its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.documents import read_jsonc
from toolshift.core.errors import UsageError
from toolshift.interop.client_files import server_of
from toolshift.interop.server import Server

CODEX = """
model = "a-model"
[mcp_servers.shop]
command = "npx"
args = ["-y", "shop"]
env_vars = ["TOKEN"]
startup_timeout_sec = 20
[mcp_servers.shop.env]
MODE = "${TOKEN}"
[mcp_servers.far]
url = "https://example.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-Team" = "blue" }
env_http_headers = { "X-Key" = "TOKEN" }
"""
STDIO = {"command": "npx", "args": ["-y", "shop", "${TOKEN}"], "env": {"MODE": "${MODE:-dry}"}}


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    for gone in ("MODE", "NOWHERE"):
        monkeypatch.delenv(gone, raising=False)
    monkeypatch.chdir(tmp_path)


def named(path: str, content: Any, name: str = "shop") -> Server:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    found = server_of(f"{path}#{name}" if name else path)
    assert found is not None
    return found


def test_claude_code_puts_in_variables_and_defaults() -> None:
    for path in (".mcp.json", ".claude.json"):
        found = named(path, {"mcpServers": {"shop": STDIO}})
        assert found.command == ("npx", "-y", "shop", "s3cret")
        assert found.env == {"MODE": "dry"}
        assert found.origin == f"{path}#shop"
    far = {
        "type": "http",
        "url": "https://${NOWHERE:-example.com}/mcp",
        "headers": {"A": "${TOKEN}"},
    }
    found = named(".mcp.json", {"mcpServers": {"shop": far}})
    assert (found.url, found.headers, found.sse) == (
        "https://example.com/mcp",
        {"A": "s3cret"},
        False,
    )
    assert named(".mcp.json", {"mcpServers": {"shop": {**far, "type": "sse"}}}).sse
    assert named(".mcp.json", {"shop": far}).url == found.url  # as plugins write it


def test_the_servers_of_a_project_go_before_those_of_the_user() -> None:
    here = str(Path.cwd())
    document = {
        "mcpServers": {"shop": {"command": "user"}, "only": {"command": "user"}},
        "projects": {
            here: {"mcpServers": {"shop": {"command": "local"}}},
            "/elsewhere": {"mcpServers": {"shop": {"command": "other"}}},
        },
    }
    assert named(".claude.json", document).command == ("local",)
    assert named(".claude.json", document, "only").command == ("user",)


def test_claude_desktop_puts_in_nothing() -> None:
    found = named("claude_desktop_config.json", {"mcpServers": {"shop": STDIO}})
    assert found.command[-1] == "${TOKEN}"
    assert found.cwd == Path.cwd()


def test_cursor_and_vs_code_name_the_kind_of_a_variable() -> None:
    entry = {
        "command": "${workspaceFolder}${/}run",
        "args": ["${env:TOKEN}", "${userHome}"],
        "envFile": "${workspaceFolder}/.env",
    }
    Path(".env").write_text("# mine\nexport A='one'\nB=two words\n\n")
    for path, key in ((".cursor/mcp.json", "mcpServers"), (".vscode/mcp.json", "servers")):
        found = named(path, {key: {"shop": entry}})
        assert found.command == (f"{Path.cwd()}/run", "s3cret", str(Path.home()))
        assert (found.env, found.cwd) == ({"A": "one", "B": "two words"}, Path.cwd())


def test_what_vs_code_would_ask_for_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = """{
      // asked once
      "inputs": [
        {"type": "promptString", "id": "api-key", "description": "Key of the shop"},
        {"type": "pickString", "id": "region", "options": ["eu", "us"], "default": "eu"},
      ],
      "servers": {"shop": {"type": "http", "url": "https://${input:region}.example.com/mcp",
        "headers": {"Authorization": "Bearer ${input:api-key}"}, /* no more */}},
    }"""
    with pytest.raises(UsageError, match=r"TOOLSHIFT_INPUT_API_KEY .*Key of the shop"):
        named(".vscode/mcp.json", document)
    monkeypatch.setenv("TOOLSHIFT_INPUT_API_KEY", "k")
    found = named(".vscode/mcp.json", document)
    assert (found.url, found.headers) == (
        "https://eu.example.com/mcp",
        {"Authorization": "Bearer k"},
    )
    settings = {"mcp": {"servers": {"shop": {"command": "${env:TOKEN}"}}}}
    assert named("settings.json", settings).command == ("s3cret",)


def test_codex_names_the_variables_of_headers() -> None:
    found = named(".codex/config.toml", CODEX)
    assert (found.command, found.env) == (("npx", "-y", "shop"), {"MODE": "${TOKEN}"})
    far = named("config.toml", CODEX, "far")
    assert far.headers == {"X-Team": "blue", "X-Key": "s3cret", "Authorization": "Bearer s3cret"}


def test_opencode_has_one_list_for_a_command() -> None:
    Path("key.txt").write_text("from a file\n")
    document = {
        "$schema": "https://opencode.ai/config.json",
        "mcp": {
            "shop": {
                "type": "local",
                "command": ["npx", "-y", "shop"],
                "environment": {"A": "{env:TOKEN}", "B": "{file:./key.txt}", "C": "${TOKEN}"},
            },
            "far": {
                "type": "remote",
                "url": "https://example.com/mcp",
                "oauth": {"clientId": "me"},
            },
        },
    }
    found = named("opencode.json", document)
    assert found.command == ("npx", "-y", "shop")
    assert found.env == {"A": "s3cret", "B": "from a file", "C": "${TOKEN}"}
    assert named("opencode.jsonc", document, "far").client_id == "me"


def test_a_file_of_another_client_may_use_either_form() -> None:
    entry = {
        "serverUrl": "https://example.com/mcp",
        "headers": {"A": "${TOKEN}", "B": "${env:TOKEN}"},
    }
    found = named("mcp_config.json", {"mcpServers": {"shop": entry}})
    assert found.headers == {"A": "s3cret", "B": "s3cret"}


def test_a_value_is_put_in_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "${env:HOME} ${MODE:-x}")
    found = named("mcp.json", {"mcpServers": {"shop": STDIO}})
    assert found.command[-1] == "${env:HOME} ${MODE:-x}"


@pytest.mark.parametrize("variable", ["${NOWHERE}", "${env:NOWHERE}"])
def test_a_variable_that_is_not_there_is_named(variable: str) -> None:
    for key in ("command", "url"):
        entry = {key: f"https://{variable}", "headers": {}}
        with pytest.raises(UsageError, match="no variable NOWHERE"):
            named("mcp.json", {"mcpServers": {"shop": entry}})
    # One that another server needs is not missed.
    both = {"shop": {"command": "a"}, "far": {"command": variable}}
    assert named("mcp.json", {"mcpServers": both}).command == ("a",)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "neither a command nor a url"),
        ({"command": "a", "url": "https://b.example"}, "both"),
        ({"command": "a", "args": "b"}, "args must be a list"),
        ({"command": ["a", 3]}, "texts"),
        ({"command": ""}, "texts"),
        ({"url": "ftp://example.com"}, "must begin with http"),
        ({"command": "a", "env": ["B"]}, "env must be a table"),
        ({"command": "${command:pick}"}, "is not known"),
        ({"command": "a", "envFile": "gone.env"}, "gone.env cannot be read"),
        (["a"], "not a table"),
    ],
)
def test_an_entry_that_cannot_be_read_says_why(entry: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as said:
        named(".vscode/mcp.json", {"servers": {"shop": entry}})
    assert ".vscode/mcp.json#shop" in str(said.value)


def test_a_name_that_is_not_there_gets_the_nearest_and_none_gets_all() -> None:
    document = {"mcpServers": {"github": {"command": "a"}, "shop": {"command": "b"}}}
    with pytest.raises(UsageError, match="did you mean github"):
        named(".mcp.json", document, "gihub")
    with pytest.raises(UsageError, match=r"2 servers.*there are: github, shop"):
        named(".mcp.json", document, "")
    assert named(".mcp.json", {"mcpServers": {"one": {"command": "a"}}}, "").command == ("a",)
    for empty in ({"mcpServers": {}}, {"other": 1}):
        with pytest.raises(UsageError, match="it contains no MCP server"):
            named(".mcp.json", empty)


def test_what_is_not_read_of_an_entry_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"url": "https://example.com/mcp", "headersHelper": "./h", "timeout": 3, "tools": ["a"]}
    named(".mcp.json", {"mcpServers": {"shop": entry}})
    said = capsys.readouterr().err
    assert "headersHelper, tools" in said
    assert "timeout" not in said


def test_other_files_are_no_files_of_clients() -> None:
    Path("tools.json").write_text('[{"name": "a"}]')
    Path("api.json").write_text('{"openapi": "3.1.0", "servers": [{"url": "https://a"}]}')
    Path("odd#name.json").write_text("[]")
    for text in ("tools.json", "api.json", "odd#name.json", "gone.json#a", "gone", "tools.yaml#a"):
        assert server_of(text) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text('"\\/*,]} ab', max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=8,
    )
)
def test_comments_and_last_commas_change_no_value(value: Any) -> None:
    plain = json.dumps(value, indent=1)
    assert read_jsonc(plain.encode(), "f") == value
    lines = [f'{line} // it\'s "so", ]' for line in plain.splitlines()]
    assert read_jsonc("\n".join(["/* , } */", *lines]).encode(), "f") == value
    if isinstance(value, list | dict) and value:
        assert read_jsonc(f"{plain[:-1]}, /* last */ {plain[-1]}".encode(), "f") == value


def test_an_unfinished_text_is_read_in_linear_time() -> None:
    for part in ('\\"', "/*", ',"', ", "):
        with pytest.raises(UsageError):
            read_jsonc(f'["{part * 200_000}'.encode(), "f")
