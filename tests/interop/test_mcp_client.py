"""What a server writes beside its messages is said in one line, and not as a traceback."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp.client import stdio

from toolshift.interop.mcp_client import Mended


class One:
    """A stream of one item."""

    def __init__(self, item: Any) -> None:
        self.item = item

    async def receive(self) -> Any:
        return self.item


def test_a_banner_of_a_server_is_named_without_a_traceback(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    fault = stdio._parse_line("Listening on port 80\x1b[0m")
    assert anyio.run(Mended(One(fault)).receive) is fault
    assert not caplog.records
    said = capsys.readouterr().err
    assert "sent 'Listening on port 80[ESC][0m', which is no MCP message" in said
    assert said.count("\n") == 1


def test_other_faults_of_the_library_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise OSError("broken")
    except OSError:
        stdio.logger.exception("Reading from the MCP server's stdout failed mid-session")
    (record,) = caplog.records
    assert record.exc_info is None
