"""How ToolShift was installed, and so how a further extra of it is installed."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "toolshift"


def extra(name: str) -> str:
    """The command that installs an extra, from where ToolShift itself was installed.

    pip notes the origin of what does not come from an index (PEP 610): a folder, a file, or an
    address. `pip install 'toolshift[...]'` would look on an index, which may hold nothing of ours.
    """
    return f"pip install '{requirement(name)}'"


def requirement(extra_name: str) -> str:
    """The requirement that names this installation with an extra."""
    named = f"{NAME}[{extra_name}]"
    origin = _origin()
    url = str(origin.get("url", ""))
    if not url:
        return named
    if "dir_info" in origin:
        return f"{unquote(urlsplit(url).path)}[{extra_name}]"
    if vcs := origin.get("vcs_info"):
        return f"{named} @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"{named} @ {url}"


def _origin() -> dict[str, Any]:
    """What pip has noted of where this distribution comes from; nothing for an index."""
    try:
        noted = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # its sources are on the path, and it is not installed
        return {}
    found: dict[str, Any] = json.loads(noted) if noted else {}
    return found
