"""The official TypeScript client takes what `proxy` and `serve` give; `make clients` installs it.

It checks the structured content of each result against the `outputSchema` that it was shown, as
the Python client does. TOOLSHIFT_NODE_MODULES names the folder where npm has put it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from connect.office_server import Office
from connect.shop_server import shop_server
from connect.test_contracts import LONGEST, SEEDS, Case, broken, cases, options
from mcp.client._memory import InMemoryTransport
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolshift.connect.mcp.proxy import in_process
from toolshift.interop.mcp_client import Target

HERE = Path(__file__).parent
MODULES = Path(os.environ.get("TOOLSHIFT_NODE_MODULES", HERE.parents[1] / "build/node_modules"))
SDK = MODULES / "@modelcontextprotocol" / "sdk"
LONGEST_LINE = 100_000_000
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not SDK.is_dir(), reason="needs node and the TypeScript SDK"
)


def _script(folder: Path) -> list[str]:
    script = folder / "client.mjs"
    script.write_text((HERE / "typescript_client.mjs").read_text())
    (folder / "node_modules").symlink_to(MODULES)
    return ["node", str(script)]


def _ran(tmp_path: Path, *command: str) -> list[dict[str, Any]]:
    """What the client has met: for each call the name, the result or the error."""
    ran = subprocess.run(
        [*_script(tmp_path), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


class _Node:
    """One process with the client, which meets one server after the other."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.input = process.stdin
        self.lines = BufferedByteReceiveStream(process.stdout)

    async def tell(self, told: dict[str, Any]) -> None:
        await self.input.send(json.dumps(told).encode() + b"\n")

    async def met(self, case: Case) -> list[dict[str, Any]]:
        """What the client meets in a case: its messages pass between the process and the proxy."""
        target = Target(transport=InMemoryTransport(shop_server(Office(case[2]))))
        async with (
            in_process(target, options(case)) as (read, write),
            anyio.create_task_group() as g,
        ):

            async def back() -> None:
                async for item in read:
                    assert isinstance(item, SessionMessage)
                    message = item.message.model_dump(
                        mode="json", by_alias=True, exclude_unset=True
                    )
                    await self.tell({"message": message})

            g.start_soon(back)
            await self.tell({"begin": list(case)})
            while True:
                told = json.loads(await self.lines.receive_until(b"\n", LONGEST_LINE))
                if "met" in told:
                    g.cancel_scope.cancel()
                    return list(told["met"])
                message = jsonrpc_message_adapter.validate_python(told["message"], by_name=False)
                await write.send(SessionMessage(message))
        raise AssertionError


def _check(folder: Path, taken: Iterable[Case]) -> None:
    async def go() -> list[Any]:
        async with await anyio.open_process(_script(folder), stderr=None) as process:
            node = _Node(process)
            faults = []
            for case in taken:
                with anyio.fail_after(LONGEST):
                    faults += broken(case, await node.met(case))
            process.terminate()
            return faults

    faults = asyncio.run(go())
    assert not faults, (len(faults), faults[:5])


def test_it_takes_every_result_under_all_shifts(tmp_path: Path) -> None:
    _check(tmp_path, cases())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_takes_every_result_under_all_shifts_and_seeds(tmp_path: Path, seed: int) -> None:
    _check(tmp_path, cases(seed))


def test_a_result_that_breaks_its_schema_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Office.__init__

    def broken_office(office: Office, seed: int) -> None:
        held(office, seed)
        for tool in office.tools:
            if "outputSchema" in tool:
                tool["outputSchema"]["required"] = ["never there"]

    monkeypatch.setattr(Office, "__init__", broken_office)
    with pytest.raises(AssertionError, match="never there"):
        _check(tmp_path, [("parameter_rename", 1, 3)])


@pytest.mark.parametrize("shift", ["", "format_drift:1"], ids=["none", "format_drift"])
def test_it_takes_every_result_of_the_proxy(tmp_path: Path, shift: str) -> None:
    server = f"{sys.executable} {HERE / 'office_server.py'} 1"
    shifted = ["--shift", shift, "--skip-inapplicable"] if shift else []
    met = _ran(tmp_path, sys.executable, "-m", "toolshift", "proxy", *shifted, f"mcp:{server}")
    assert len(met) > 30
    assert [one for one in met if "error" in one] == []
    assert shift or any("structuredContent" in one["result"] for one in met)


def test_it_takes_every_result_of_serve(tmp_path: Path) -> None:
    command = ["serve", "--stdio", "--task", "poi/visit", "--shift", "format_drift:2"]
    met = _ran(tmp_path, sys.executable, "-m", "toolshift", *command)
    assert met
    assert [one for one in met if "error" in one] == []
