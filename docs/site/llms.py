"""Writes docs/llms.txt, the index of the documentation for language models.

    python docs/site/llms.py

The pages are those of mkdocs.yml, each with its title and the first sentence of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "llms.txt"
LONGEST = 220
MORE = """## Beside the documentation

- [A skill for coding agents](../skills/toolshift/SKILL.md): to run ToolShift on a repository.
- [The changelog](../CHANGELOG.md): what changed, and which scores with it.
"""


def written() -> str:
    """The text of the file."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    found = [f"# ToolShift\n\n> {_summary('index.md')}\n"]
    pages: list[str] = []
    for entry in nav:
        ((title, below),) = entry.items()
        if isinstance(below, str):
            pages += _line(title, below)
        else:
            found.append(f"## {title}\n\n" + "".join(_lines(below)))
    found.insert(1, "## Overview\n\n" + "".join(pages))
    return "\n".join([*found, MORE])


def _lines(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for title, page in entry.items():
            yield from _line(title, page)


def _line(title: str, page: str) -> list[str]:
    return [f"- [{title}]({page}): {_summary(page)}\n"]


def _summary(page: str) -> str:
    """The first sentence of the first paragraph of a page, without marks of links."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n")
    prose = (block.strip("\n") for block in blocks)
    first = " ".join(next(block for block in prose if re.match(r"\w|`", block)).split())
    first = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", first)
    sentence = re.split(r"(?<=[.:]) (?=[A-Z`])", first)[0].rstrip(":").strip()
    return sentence if len(sentence) <= LONGEST else sentence[:LONGEST].rpartition(" ")[0] + " ..."


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
