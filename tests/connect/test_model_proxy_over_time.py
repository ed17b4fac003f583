"""The model proxy under shifts of behaviour over time: what a layer answers by itself."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest
from connect.proxying import proxied, work
from connect.scripted_model import Reader, alike_params, scripted_model

from toolshift.connect.callables import start_episode
from toolshift.episode.grade import grade

TASK = "poi/booking/0"
OVER_TIME = (
    "transient_error:1",
    "transient_error:3",
    "permanent_error:2",
    "redirect:3",
    "tool_removed_midway:2",
    "tool_added:2",
    "tool_migrated:1",
    "identity_erasure:3+redirect:1+format_drift:1",
)


class _Patient(Reader):
    """Does what an error asks: tries again, or takes the tool that is named there."""

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        shown = {tool["function"]["name"]: tool["function"] for tool in request["tools"]}
        heard = [m["content"] for m in request["messages"] if m["role"] == "tool"]
        done = sum('{"error"' not in text for text in heard)
        line = self.lines[done]
        said = request["messages"]
        refused = heard[-1] if heard and '{"error"' in heard[-1] else ""
        tried = {c["function"]["name"] for m in said for c in m.get("tool_calls") or ()}
        named = [name for name in shown if name in refused and name not in tried]
        if named:
            shown = {name: shown[name] for name in named[:1]}
        return {**line, "tool_calls": self._fresh(line, shown, len(heard))}, []

    def _fresh(self, line: dict[str, Any], shown: dict[str, Any], count: int) -> list[Any]:
        try:
            calls = self._again(line, shown)["tool_calls"]
        except AssertionError:  # one tool is left, and has another description
            (only,) = shown.values()
            known = self.known[line["tool_calls"][0]["function"]["name"]]
            names = alike_params(known, only)
            told = json.loads(line["tool_calls"][0]["function"]["arguments"])
            said = {names[name]: value for name, value in told.items()}
            calls = [{"function": {"name": only["name"], "arguments": json.dumps(said)}}]
        return [{**call, "id": f"call_{count}", "type": "function"} for call in calls]


@pytest.mark.parametrize(
    ("shifts", "stream"), [*zip(OVER_TIME, cycle((True, False)), strict=False)]
)
def test_what_a_layer_answers_by_itself_never_reaches_the_agent(shifts: str, stream: bool) -> None:
    seat = start_episode(TASK)
    needed = tuple(step.name for step in seat.episode.scene.calls)
    with (
        scripted_model(_Patient(TASK)) as model,
        proxied(model.url, shifts, needed=needed) as (url, records),
    ):
        said = work(url, seat, stream)
    verdict = grade(seat.episode)
    assert verdict.passed
    assert (verdict.calls, verdict.errors) == (3, 0)
    assert "error" not in json.dumps([m for m in said if m["role"] == "tool"])
    assert any(answers for record in records for answers in record["answered"]) or (
        model.requests[0]["tools"] != model.requests[-1]["tools"]
    )
