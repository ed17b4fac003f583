"""The official TypeScript client takes what `proxy` and `serve` give; `make clients` installs it.

It checks the structured content of each result against the `outputSchema` that it was shown, as
the Python client does. TOOLSHIFT_NODE_MODULES names the folder where npm has put it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MODULES = Path(os.environ.get("TOOLSHIFT_NODE_MODULES", HERE.parents[1] / "build/node_modules"))
SDK = MODULES / "@modelcontextprotocol" / "sdk"
SHIFTS = (
    "",
    "format_drift:1",
    "csv_results:2",
    "truncation:2",
    "tool_migrated:2",
    "merged_tools:2",
)
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not SDK.is_dir(), reason="needs node and the TypeScript SDK"
)


def _ran(tmp_path: Path, *command: str) -> list[dict[str, Any]]:
    """What the client has met: for each call the name, the result or the error."""
    script = tmp_path / "client.mjs"
    script.write_text((HERE / "typescript_client.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(MODULES)
    ran = subprocess.run(
        ["node", str(script), *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: shift or "none")
@pytest.mark.parametrize("seed", [0, 1])
def test_it_takes_every_result_of_the_proxy(tmp_path: Path, shift: str, seed: int) -> None:
    server = f"{sys.executable} {HERE / 'office_server.py'} {seed}"
    shifted = ["--shift", shift, "--skip-inapplicable"] if shift else []
    met = _ran(tmp_path, sys.executable, "-m", "toolshift", "proxy", *shifted, f"mcp:{server}")
    assert len(met) > 30
    assert [one for one in met if "error" in one] == []
    assert any("structuredContent" in one["result"] for one in met) or shift in SHIFTS[1:3]


def test_it_takes_every_result_of_serve(tmp_path: Path) -> None:
    command = ["serve", "--stdio", "--task", "poi/visit", "--shift", "format_drift:2"]
    met = _ran(tmp_path, sys.executable, "-m", "toolshift", *command)
    assert met
    assert [one for one in met if "error" in one] == []
