"""Published MCP servers, unmodified, through the proxy; skipped where they are not installed.

`studies/proxy_real` has all shifts. Install the servers in a folder as said there, and name it in
TOOLSHIFT_MCP_SERVERS.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from connect.test_proxy_wire import program, visit
from mcp import Client, StdioServerParameters

FOLDER = Path(os.environ.get("TOOLSHIFT_MCP_SERVERS", "no-folder-is-named"))


def server(*parts: str) -> str:
    path = FOLDER.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"{path.name} is not installed: see studies/proxy_real, and TOOLSHIFT_MCP_SERVERS"
        )
    return str(path)


def test_the_filesystem_server(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha bravo")
    command = (server("node_modules", ".bin", "mcp-server-filesystem"), str(tmp_path))

    async def read(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        tool = next(t for t in tools if t.description.startswith("Read the complete contents of a"))
        (param, *_) = tool.input_schema["required"]
        given = {param: str(tmp_path / "a.txt")}
        return tool, param, await client.call_tool(tool.name, given)

    tool, param, result = visit(
        program(command, "identity_erasure:3+parameter_rename:3+format_drift:2"), read
    )
    assert not tool.name.startswith("read")
    assert param != "path"
    assert "alpha bravo" in result.content[0].text


def test_the_time_server_is_of_the_newer_era() -> None:
    command = (server("time", "bin", "mcp-server-time"),)
    given = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}

    async def convert(client: Client) -> Any:
        heard = [tool.model_dump() for tool in (await client.list_tools()).tools]
        result = await client.call_tool("convert_time", given)
        return client.protocol_version, heard, result.model_dump()

    direct = visit(StdioServerParameters(command=command[0]), convert)
    assert visit(program(command), convert) == direct
    _, _, drifted = visit(program(command, "format_drift:2"), convert)
    assert "Asia/Tokyo" in drifted["content"][0]["text"]
