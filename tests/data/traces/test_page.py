"""The commands of the page on traces run as they stand, on its example."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from running import Run

ROOT = Path(__file__).parents[3]


def test_the_commands_of_the_page_run(toolshift: Run, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "traces" / "spans.json", tmp_path)
    page = (ROOT / "docs" / "traces.md").read_text()
    commands = re.findall(r"^\$ toolshift (.*)$", page, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        code, _, said = toolshift(*command.split())
        assert code == 0, f"{command}: {said}"
