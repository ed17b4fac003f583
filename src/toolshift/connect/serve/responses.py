"""Answers of the control API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from toolshift.core.tool import JSON

if TYPE_CHECKING:
    pass


def refusal(status: int, why: str) -> Response:
    """An answer that says what was wrong."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    response = _json({"error": {"code": status, "message": why}}, status)
    response.headers.update(headers)
    return response


def _json(value: Any, status: int = 200) -> Response:
    return Response(JSON.encode(value), status, media_type="application/json")
