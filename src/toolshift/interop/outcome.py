"""Whether a tool's result says that the call failed, told from its structure.

has_failed({"isError": true, "content": [...]})          True     MCP; `is_error` of Anthropic
has_failed({"success": false, "reason": "..."})          True     `ok` and `successful` too
has_failed({"error": null, "refund": "RF-1"})            False
has_failed({"errors": [{"message": "..."}]})             True     GraphQL
has_failed({"status": 404, "title": "Not Found"})        True     HTTP, and problem documents
has_failed('{"content": [{"type": "text", "text": "{\\"ok\\": false}"}]}')   True
has_failed("ValueError: no such order")                  True
has_failed("503 Service Unavailable")                    True     and a page of HTML with that title
has_failed("Error budgets: 99.9%")                       False

What is read are the fields by which protocols say it, in the result itself and in the envelopes
that stand around one. No word of a text is read but the name of an error at its beginning, and
the sentences with which frameworks tell a model of an exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

LONGEST_JSON = 2_000_000
"""Characters of a text that are still read as JSON."""
_DEEPEST = 16
_FLAGS = {"isError": True, "is_error": True, "success": False, "ok": False, "successful": False}
"""Fields that are true or false, with the value that says that the call failed."""
_STATUS = ("status", "statusCode", "status_code", "httpStatus", "http_status")
_ENVELOPES = ("structuredContent", "content", "result", "output", "value", "data", "response")
"""Where a protocol has a result inside of another; read where nothing else says how it went."""
_AROUND = frozenset((*_ENVELOPES, "type", "id", "name", "role", "mimeType", "annotations", "_meta",
    "tool_call_id", "toolCallId", "tool_use_id", "toolName", "isError", "is_error", "artifact",
    "text", "status", "jsonrpc"))  # fmt: skip
"""Fields beside a result in its envelope; one with another field is a record of the tool."""
_BESIDE_ERRORS = frozenset((*_AROUND, "errors", "extensions", "message", "title", "detail", "code"))
_ERROR_OUTPUTS = ("error-text", "error-json", "execution-denied")
"""Types of an output of a tool that failed, in the AI SDK."""
_NAMED = re.compile(r"\s*([\w.]*[a-z](Error|Exception):|Traceback \(most recent call last\))")
_WORD = re.compile(
    r"\s*error(\s*([:.!,;(\[\u2013\u2014]|-\s|$)|\s+(\w+ing|while|when|occurred|code|\d{3})\b)",
    re.IGNORECASE,
)
_FRAMEWORK = re.compile(  # OpenAI Agents SDK, CrewAI, LlamaIndex, Claude Code
    r"\s*(an error (has )?occurred while|i encountered an error while|encountered error:|"
    r"<tool_use_error>)",
    re.IGNORECASE,
)
_CODES = "|".join(
    rf"{each.value}[:,]?(\s+error\b)?[\s:\u2013-]*{re.escape(each.phrase)}"
    for each in HTTPStatus
    if each >= 400
)
_STATUS_LINE = rf"\s*(http(/[\d.]+)?\s+)?(status:?\s+)?({_CODES})\s*($|[\n.,:;<{{(\u2013-])"
_HTTP = re.compile(rf"({_STATUS_LINE}|\s*<.*?<title>{_STATUS_LINE})", re.IGNORECASE | re.DOTALL)
"""The status line of an answer by HTTP, also as the title of a page of HTML."""
_BEGINNING = 1000
"""Characters of a text in which such a beginning is looked for."""


def has_failed(result: Any) -> bool:
    """Whether a result says that the call failed; False where it says nothing of that."""
    return _failed(result, 0)


def _failed(result: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(result, str):
        return _says_failure(result, depth)
    if isinstance(result, list):
        blocks = [each for each in result if _is_block(each)]
        return (
            bool(blocks)
            and len(blocks) == len(result)
            and any(_failed(each, depth + 1) for each in blocks)
        )
    return isinstance(result, Mapping) and _object_failed(result, depth)


def _object_failed(result: Mapping[str, Any], depth: int) -> bool:
    flags = {key: _as_flag(result.get(key)) for key in _FLAGS}
    told = [flags[key] is bad for key, bad in _FLAGS.items() if flags[key] is not None]
    if any(told):
        return True
    if _is_error(result.get("error")) or _are_errors(result):
        return True
    if result.get("type") in _ERROR_OUTPUTS or _says_status(result):
        return True
    if told and not _is_block(result) and "content" not in result:
        return False  # it says that all went well
    if not result.keys() <= _AROUND:
        return False
    if _is_block(result):
        return _failed(result["text"], depth + 1)
    return any(_failed(result[key], depth + 1) for key in _ENVELOPES if key in result)


def _is_block(value: Any) -> bool:
    """Whether this is a text as one of the parts of a content."""
    return isinstance(value, Mapping) and isinstance(value.get("text"), str) and "type" in value


def _is_error(error: Any) -> bool:
    """Whether the value of `error` is an error: a message, an object of it, a code, or true.

    A fraction is a measure of how wrong something is, and what is empty is no error.
    """
    return bool(error) and not isinstance(error, float)


def _are_errors(result: Mapping[str, Any]) -> bool:
    """Whether `errors` are those of GraphQL, or of a form: no count, and no report of some rows."""
    errors = result.get("errors")
    if not result.keys() <= _BESIDE_ERRORS:
        return False
    if isinstance(errors, Mapping):
        return bool(errors)
    if not isinstance(errors, list) or not errors:
        return False
    return all(isinstance(e, str) or (isinstance(e, Mapping) and "message" in e) for e in errors)


def _says_status(result: Mapping[str, Any]) -> bool:
    """Whether an HTTP status says it, or the status of JSend, which has a message beside it."""
    for key in _STATUS:
        status = result.get(key)
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status < 600:
            return True
    jsend = result.get("status") in ("fail", "error")
    return jsend and result.keys() <= {"status", "message", "data", "code", *_AROUND}


def _says_failure(text: str, depth: int) -> bool:
    if len(text) <= LONGEST_JSON and text.lstrip()[:1] in ("{", "[", '"'):
        try:
            return _failed(msgspec.json.decode(text), depth + 1)
        except (ValueError, RecursionError):
            return False
    return any(form.match(text[:_BEGINNING]) for form in (_WORD, _NAMED, _FRAMEWORK, _HTTP))


def _as_flag(value: Any) -> bool | None:
    """A field that is true or false, also where it is written as a text."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None
