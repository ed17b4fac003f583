"""Links that leave the documentation become the path of the file in the repository.

The pages are there as Markdown too, which `llms.txt` leads to.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)([^)]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Called by MkDocs when the pages are written."""
    for page in Path(config["docs_dir"]).glob("*.md"):
        shutil.copy(page, Path(config["site_dir"]) / page.name)
