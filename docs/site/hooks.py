"""Links that leave the documentation become the path of the file in the repository."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)([^)]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return OUTSIDE.sub(r"\1 (`\2`)", markdown)
