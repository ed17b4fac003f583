"""How messages and locks name what tools were read from."""

from __future__ import annotations

import shlex

import pytest

from toolshift.interop.server import address_name, command_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @scope/my-server@1.2 --key abc", "mcp:npx @scope/my-server@1.2"),
        ("/usr/bin/python3 /srv/me/server.py --token abc", "mcp:python3 server.py"),
        (r"'C:\Users\me\python.exe' -m my_server", "mcp:python.exe my_server"),
        ("uvx --from /srv/me/wheels/my_server.whl serve", "mcp:uvx my_server.whl"),
        ("python tools/server.py", "mcp:python tools/server.py"),
        ("env TOKEN=abc npx my-server", "mcp:env"),
        ("npx --api-key abc my-server", "mcp:npx"),
        ("sh -c 'TOKEN=abc exec /srv/me/server'", "mcp:sh"),
        ("my-server", "mcp:my-server"),
    ],
)
def test_a_command_is_named_without_folders_and_secrets(command: str, name: str) -> None:
    assert command_name(shlex.split(command)) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://me:abc@example.com/a@b/mcp?key=abc", "https://example.com/a@b/mcp"),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
        ("https://example.com", "https://example.com"),
    ],
)
def test_an_address_is_named_without_secrets(url: str, name: str) -> None:
    assert address_name(url) == name
