"""Writes the tables of `studies/shipped/README.md` from the two runs.

    python studies/shipped/page.py RUNS

Prints them as Markdown; the sentences around them are written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from toolshift.api import report_of
from toolshift.runs.run_folder import RunFolder


def told(rate: Any) -> str:
    """A share as percent with its interval."""
    return f"{100 * rate.estimate:.0f} [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"


def main(folder: Path) -> None:
    """Prints both tables."""
    for name in ("severities", "realistic"):
        report = report_of(RunFolder.read(folder / name))
        rows: dict[str, list[str]] = {}
        for agent in report.agents:
            cells = agent.severities if name == "severities" else agent.tiers
            for group in (agent.clean, agent.placebo, *cells):
                if group is not None and group.episodes:
                    rows.setdefault(group.label, []).append(told(group.accuracy))
        print(f"\n| {name} | " + " | ".join(agent.name for agent in report.agents) + " |")
        print("|---|" + "---:|" * len(report.agents))
        for label, figures in rows.items():
            print(f"| {label} | " + " | ".join(figures) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
