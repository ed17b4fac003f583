"""Drift as SARIF 2.1.0, which code hosts show beside the lock file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolshift.core.intake import Intake, some_unread
from toolshift.core.text import visible
from toolshift.drift.changes import KINDS, OF_REQUESTS
from toolshift.drift.events import HASH_CHANGED, INSTRUCTIONS, DriftEvent, DriftReport

LEVELS = {"breaking": "error", "maybe": "warning", "harmless": "note"}
_OTHER_KINDS = {
    INSTRUCTIONS: "a text instructs the model",
    HASH_CHANGED: "something changed in a part of which only the hash is known",
}
_WITHOUT_CALL = OF_REQUESTS | {INSTRUCTIONS}
"""Kinds of events that break no call of an agent."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(
    report: DriftReport, path: str, content: str, version: str, unread: Iterable[Intake] = ()
) -> dict[str, Any]:
    """One SARIF run: a result for each event, a notification for each input read in part."""
    lines = _lines(content)
    kinds = list(dict.fromkeys(event.kind for event in report.events))
    rules = [
        {"id": kind, "shortDescription": {"text": ({**KINDS, **_OTHER_KINDS})[kind]}}
        for kind in kinds
    ]
    driver = {"name": "toolshift", "version": version, "rules": rules}
    results = [_result(event, report, path, lines) for event in report.events]
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    told = [visible(f"{each.source}: {each.missing()}") for each in some_unread(unread)]
    if told:
        notes = [{"level": "warning", "message": {"text": text}} for text in told]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _lines(content: str) -> Mapping[str, int]:
    """The line of each tool in a lock file: where its name stands."""
    lines: dict[str, int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        named = re.match(r'^ {4}"name": "([^"\\]+)"', line)
        if named:
            lines.setdefault(named[1], number)
    return lines


def _result(
    event: DriftEvent, report: DriftReport, path: str, lines: Mapping[str, int]
) -> dict[str, Any]:
    example = report.broken.get(event.tool)
    breaks = event.severity == "breaking" and event.kind not in _WITHOUT_CALL
    broken = breaks and example is not None
    more = (
        f" A call that breaks: {example.call.arguments} ({example.why})."
        if broken and example
        else ""
    )
    place: dict[str, Any] = {"artifactLocation": {"uri": path}}
    place["region"] = {"startLine": lines.get(event.tool, 1)}
    return {
        "ruleId": event.kind,
        "level": LEVELS[event.severity],
        "message": {"text": visible(f"{event.sentence}.{more}")},
        "locations": [{"physicalLocation": place}],
        "properties": {"tool": event.tool, "dimension": event.dimension},
        "partialFingerprints": {"change/v1": f"{event.kind}:{event.tool}:{event.sentence}"[:200]},
    }
