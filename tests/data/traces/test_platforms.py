"""The lines of docs/traces.md, with the platforms' own clients, before servers of the documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from data.traces.platform_servers import KEYS, platform
from running import Run

PAGE = Path(__file__).parents[3] / "docs" / "traces.md"


def written(name: str) -> str:
    """The program of a platform on the page, with pages of four rows."""
    (program,) = re.findall(rf"```python\n(# {name}\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert "=1000" in program
    return str(program).replace("=1000", "=4")


@pytest.mark.parametrize("name", ["Langfuse", "LangSmith"])
def test_what_a_platforms_client_gives_is_watched_and_made_into_a_world(
    name: str, toolshift: Run, tmp_path: Path
) -> None:
    pytest.importorskip(name.lower())
    with platform() as (address, asked):
        env = {
            "LANGFUSE_PUBLIC_KEY": KEYS["public"], "LANGFUSE_SECRET_KEY": KEYS["secret"],
            "LANGFUSE_HOST": address, "LANGFUSE_TRACING_ENABLED": "false",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            "LANGSMITH_API_KEY": KEYS["api"], "LANGSMITH_ENDPOINT": address,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", written(name)], check=False, env={**os.environ, **env},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert (done.returncode, len(asked)) == (0, 4), done.stderr
    rows = tmp_path / "rows.jsonl"
    rows.write_text(done.stdout, encoding="utf-8")
    code, out, err = toolshift("watch", str(rows))
    assert (code, "5 calls of 2 tools, 3 endings" in out + err) == (0, True), err
    tasks = str(tmp_path / "tasks.yaml")
    code, out, err = toolshift(
        "world", "from-traces", str(rows), "--writes", "refund_order", "--out", tasks
    )
    assert (code, "2 tasks of 2 kinds, from 3 conversations" in out + err) == (0, True), err
