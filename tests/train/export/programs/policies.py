"""Scripted policies: what the oracle says turn by turn in a scene, and a wrong answer at once."""

from __future__ import annotations

from typing import Any

WRONG = "BCDF-GHJK"
DONE: dict[str, Any] = {"content": "Done."}


def turn_of(step: Any) -> tuple[str, dict[str, Any]]:
    """The call with which a step of a trace is spoken."""
    if step.kind == "answer":
        return "final_answer", {"answer": step.said}
    if step.kind == "ask":
        return "ask_user", {"question": step.said}
    if step.kind == "refuse":
        return "refuse", {"reason": step.name}
    return step.name, step.arguments


def says(policy: str, scene: Any, turn: int) -> tuple[str, dict[str, Any]] | str:
    """A policy's call in a turn, or its words where it makes none."""
    if policy == "wrong":
        return ("final_answer", {"answer": WRONG}) if turn == 0 else "Done."
    if turn >= len(scene.rehearsal):
        return "Done."
    step = scene.rehearsal[turn]
    if policy == "prose" and step is scene.rehearsal[-1] and step.kind == "answer":
        return str(step.said)
    return turn_of(step)
