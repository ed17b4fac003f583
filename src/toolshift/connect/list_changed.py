"""How MCP clients are told that the tools change: what stands in `_meta`, and since which era."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import PROTOCOL_VERSION_META_KEY

from toolshift.core.values import as_mapping

CHANGES = "toolshift/tools"
"""Of `_meta`: what has changed the tools, and how often they have changed."""
BY_CALLS = "may change with the calls that are made, for what is played here is a drift"
BY_DEPLOYMENT = "may change at a time that no call decides, as by a deployment"


def is_newer(params: Mapping[str, Any] | None) -> bool:
    """Whether a request is of the era in which tools do not change by calls."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and isinstance(meta.get(PROTOCOL_VERSION_META_KEY), str)


def labelled(answer: Mapping[str, Any], said: Any) -> dict[str, Any]:
    """A result that says in its `_meta` how the tools change."""
    meta = answer.get("_meta")
    return {**answer, "_meta": {**as_mapping(meta), CHANGES: said}}
