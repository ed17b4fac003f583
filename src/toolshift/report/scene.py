"""One scene before and after its shifts, side by side; and one trace as a reader follows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from toolshift.core.message import ASK_USER
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.text import visible
from toolshift.core.tool import Param, Tool
from toolshift.core.values import as_json, as_text
from toolshift.interop.schema import choices_of, kind_of
from toolshift.measure.scored import is_empty, texts_beside
from toolshift.report.words import right_refusal
from toolshift.shifts.registry import find_shift

OLD, NEW = "red", "green"
CHANGED = "~"
"""Stands before a tool that is another in the shifted scene."""
LONGEST = 600
"""Characters of a result that are printed."""


def side_by_side(before: Scene, after: Scene) -> RenderableType:
    """What an agent meets in both scenes, with the differences coloured."""
    table = Table(expand=True)
    names = ", ".join(f"{a.shift}:{a.severity}" for a in after.shifts) or "no shift"
    for title in ("clean", f"shifted: {names}"):
        table.add_column(title, ratio=1, overflow="fold")
    _rows(table, "system", [before.system], [after.system])
    _rows(table, "user", _asks(before), _asks(after))
    _rows(table, "tools", *_matched(before, after))
    acts = ("\n".join(_transcript(scene)) for scene in (before, after))
    _rows(table, "oracle", *([text] for text in acts))
    _rows(table, "right end", [_end(before)], [_end(after)])
    return Group(*_about(after), table)


def as_data(before: Scene, after: Scene) -> dict[str, Any]:
    """The same as plain values."""
    return {
        name: {
            "system": scene.system,
            "user": _asks(scene),
            "tools": [_tool_line(tool) for tool in scene.tools],
            "oracle": list(_transcript(scene)),
            "right_end": _end(scene),
        }
        for name, scene in (("clean", before), ("shifted", after))
    }


def transcript(steps: Sequence[Step]) -> list[str]:
    """A trace as lines: the agent's acts after >, what came back after <."""
    return [line for step in steps for line in _lines(step)]


def as_call(step: Step) -> str:
    """A call as one line: the name of the tool, and the arguments as JSON."""
    spoken = step.arguments
    text = as_text(spoken)
    return f"{step.name} {text}"


def _about(scene: Scene) -> list[Text]:
    task = scene.task
    lines = [f"{task.world}/{task.kind}/{task.index}  (task {task.id})"]
    for applied in scene.shifts:
        found = find_shift(applied.shift)
        what = f": {found.summary}" if found.summary else ""
        lines.append(
            f"{applied.shift}, severity {applied.severity}{what} [{found.tier}, {found.dimension}]"
        )
        if found.imitates:
            lines.append(f'  as in: "{found.imitates}"')
    return [Text(visible(line)) for line in lines]


def _rows(table: Table, title: str, left: Sequence[str], right: Sequence[str]) -> None:
    """One section of the table, the parts of both scenes beside each other."""
    table.add_row(Text(title, style="bold"), Text(title, style="bold"))
    for number in range(max(len(left), len(right))):
        old = left[number] if number < len(left) else ""
        new = right[number] if number < len(right) else ""
        if title == "tools" and old != new:  # seen without colour as well
            old, new = (line.replace("-", CHANGED, 1) for line in (old, new))
        table.add_row(_coloured(old, new, OLD), _coloured(new, old, NEW))
    table.add_section()


def _coloured(line: str, against: str, colour: str) -> Text:
    """A line with the words that are not in the other one coloured."""
    line, against, text = visible(line), visible(against), Text()
    if line == against:
        return text.append(line)
    words, others = _split(line), _split(against)
    for tag, begin, end, _, _ in SequenceMatcher(a=words, b=others, autojunk=False).get_opcodes():
        text.append("".join(words[begin:end]), style=None if tag == "equal" else colour)
    return text


def _split(line: str) -> list[str]:
    return [part for word in line.split(" ") for part in (word, " ")][:-1]


def _asks(scene: Scene) -> list[str]:
    return [f"[{ask.notice}] {ask.text}" if ask.notice else ask.text for ask in scene.asks]


def _matched(before: Scene, after: Scene) -> tuple[list[str], list[str]]:
    """The tools of both scenes, those of the same origin beside each other."""
    left, right = [], []
    rest = list(after.tools)
    for tool in before.tools:
        partner = next((t for t in rest if set(t.origin) & set(tool.origin)), None)
        left.append(_tool_line(tool))
        right.append(_tool_line(partner) if partner else "")
        if partner:
            rest.remove(partner)
    right += [_tool_line(tool) for tool in rest]
    return left, right


def _tool_line(tool: Tool) -> str:
    params = ", ".join(map(_param, tool.params))
    return f"- {tool.name}( {params} ) {tool.description}".rstrip()


def _param(param: Param) -> str:
    """A parameter with its type, its choices and its default; `?` where it may be left out."""
    choices = choices_of(param.schema)
    kind = " | ".join(choices) if choices else kind_of(param.schema)
    default = param.schema.get("default")
    usual = "" if default is None else f" = {as_json(default)}"
    return f"{param.name}{'' if param.required else '?'}: {kind}{usual}"


def _transcript(scene: Scene) -> Iterable[str]:
    return transcript(scene.rehearsal)


def _lines(step: Step) -> list[str]:
    first, *rest = _told(step)
    return [f"{first}  (a stored answer)" if step.recalled else first, *rest]


def _told(step: Step) -> list[str]:
    if step.kind == "call":
        return [f"> {as_call(step)}", f"< {_short(step.text) or '(an empty result)'}"]
    if step.kind in ("failure", "budget"):
        return [f"! {step.kind}: {step.said}"]
    kind = "ask" if step.name == ASK_USER else "refuse" if step.name else step.kind
    act = {"ask": "asks", "answer": "answers", "refuse": f"refuses ({step.name})"}[kind]
    lines = [f"> {act}: {step.said}".rstrip(": ")]
    if is_empty(step):
        lines += [f"  only in {name}: {_short(text)}" for name, text in texts_beside(step).items()]
    if step.notice:
        lines.append(f"< system: {step.notice}")
    return [*lines, f"< user: {step.text}"] if step.text else lines


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _end(scene: Scene) -> str:
    if not scene.solvable:
        return right_refusal(scene.outcome)
    wanted = [ask.expected or "(any answer is accepted)" for ask in scene.asks]
    effects = "".join(f"; write {' '.join(map(str, each))}" for each in scene.outcome.effects)
    return f"answer: {', then '.join(wanted)}{effects}"
