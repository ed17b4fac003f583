"""Whether a result is an error, and its words."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from toolshift.core.render import NOTICE

_ERROR = re.compile(
    r"\s*error(?!\s+(rate|code|log|count|budget|message|report)s?\b)(\s+[\w.'\"`()-]+){0,6}\s*:",
    re.IGNORECASE,
)
"""How a text begins that is an error: "Error: ...", "Error 503: ...", "Error calling x: ..."."""


def failure_of(text: str) -> str:
    """The error text of a failed call."""
    body = text.partition(NOTICE)[0]
    if _ERROR.match(body):
        return body.strip()
    if '"error"' not in text[:200] and '"isError"' not in body:
        return ""
    try:
        data = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    fault = data.get("error") or (data.get("isError") is True and data.get("content", body))
    return " ".join(_words(fault)) if fault else ""


def _words(fault: Any) -> list[str]:
    """The texts of an error; of a part of a result of MCP, the text alone."""
    if isinstance(fault, dict):
        inner = (
            [fault["text"]] if fault.get("type") == "text" and "text" in fault else fault.values()
        )
        return [word for value in inner for word in _words(value)]
    if isinstance(fault, list):
        return [word for value in fault for word in _words(value)]
    return [str(fault)]
