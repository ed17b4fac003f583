"""Two episodes of one task step by step: which steps stand for the same act, and where they part.

The acts are compared through the shift: a call is what it truly does, so a renamed tool stands
beside its original, and a merged one beside the tools that it stands for. The alignment is that of
Needleman and Wunsch (1970), with a score for how alike two acts are and none for a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Tool
from toolshift.core.values import as_json
from toolshift.episode.grading_rules import answers_right

ENDINGS = ("answer", "refuse", "failure", "budget")
NEVER = -1.0
Row = tuple[int | None, int | None]


class Pair(msgspec.Struct, frozen=True):
    """A row of the alignment.

    Attributes:
        clean: the number of the step in the clean episode, from 0; None for a gap.
        shifted: likewise in the shifted episode.
        same: both do the same through the shift, with the same success.
        note: what is not the same, in words; "" where nothing is.
    """

    clean: int | None
    shifted: int | None
    same: bool
    note: str = ""


class Act(msgspec.Struct, frozen=True):
    """A step as the alignment sees it.

    Attributes:
        tools: the true tools behind a call.
        calls: the true calls, arguments included, as text.
        right: an answer is the right one.
    """

    kind: str
    name: str
    tools: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    ok: bool = True
    right: bool = False
    said: str = ""


def align(
    clean: Scene | None, before: Sequence[Step], shifted: Scene | None, after: Sequence[Step]
) -> list[Pair]:
    """Aligns the steps of a clean episode with those of a shifted one."""
    elsewhere = bool(clean and shifted and clean.world is not shifted.world)
    left = acts(before, (clean,))
    right = acts(after, (shifted, None if elsewhere else clean))
    rows = _best(left, right, elsewhere)
    return [_judged(rows, place, left, right, elsewhere) for place in range(len(rows))]


def first_divergence(pairs: Sequence[Pair]) -> int | None:
    """The first row in which the episodes do not do the same; None where they never part."""
    return next((place for place, pair in enumerate(pairs) if not pair.same), None)


def matched_tools(before: Sequence[Tool], after: Sequence[Tool]) -> list[Row]:
    """The tools of two scenes side by side, those that do the same in one row."""
    ones, others = list(map(_origin, before)), list(map(_origin, after))
    likeness = sorted(
        (-_overlap(one, other), left, right)
        for left, one in enumerate(ones)
        for right, other in enumerate(others)
        if one & other
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, left, right in likeness:
        if left not in partner and right not in taken:
            partner[left] = right
            taken.add(right)
    rows: list[Row] = [(n, partner.get(n)) for n in range(len(before))]
    return rows + [(None, n) for n in range(len(after)) if n not in taken]


def acts(steps: Sequence[Step], scenes: Sequence[Scene | None]) -> list[Act]:
    """The acts of a trace; names are looked up in the scenes, the first one first."""
    known: dict[str, frozenset[str]] = {}
    for scene in reversed(scenes):
        for tool in scene.tools if scene else ():
            known[tool.name] = _origin(tool)
    for step in steps:  # of tools that came in mid-episode
        if step.true and step.name not in known:
            known[step.name] = frozenset(name for name, _ in step.true)
    first = scenes[0]
    told = answers_right(first, steps) if first and first.solvable else []
    found, answers = [], 0
    for step in steps:
        right = step.kind == "answer" and any(told[answers : answers + 1])
        answers += step.kind == "answer"
        found.append(_act(step, known, right))
    return found


def _act(step: Step, known: dict[str, frozenset[str]], right: bool) -> Act:
    if step.kind != "call":
        return Act(step.kind, step.name or step.slot, ok=step.ok, right=right, said=step.said)
    true = frozenset(name for name, _ in step.true)
    calls = frozenset(f"{name}{as_json(made)}" for name, made in step.true)
    tools = true | known.get(step.name, frozenset()) or frozenset((step.name,))
    return Act("call", step.name, tools, calls, step.ok)


def _origin(tool: Tool) -> frozenset[str]:
    """The true tools behind one; a distractor is its own, whatever true name it has taken."""
    return frozenset(tool.origin or (f"{tool.name} (made up)",))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


# -- the alignment -------------------------------------------------------------------------------


def _best(left: Sequence[Act], right: Sequence[Act], elsewhere: bool) -> list[Row]:
    """The alignment of the highest score; of equal ones the one that pairs the earlier steps."""
    score = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    shared = _tools(left) & _tools(right)
    for i, one in enumerate(left):
        last_left = i + 1 == len(left)
        for j, other in enumerate(right):
            last = last_left and j + 1 == len(right)
            paired = score[i][j] + _alike(one, other, last, elsewhere, shared)
            score[i + 1][j + 1] = max(paired, score[i][j + 1], score[i + 1][j])
    rows: list[Row] = []
    i, j = len(left), len(right)
    while i or j:
        if i and j and score[i][j] > max(score[i - 1][j], score[i][j - 1]):
            i, j = i - 1, j - 1
            rows.append((i, j))
        elif j and (not i or score[i][j] == score[i][j - 1]):
            j -= 1
            rows.append((None, j))
        else:
            i -= 1
            rows.append((i, None))
    return rows[::-1]


def _tools(acts: Sequence[Act]) -> frozenset[str]:
    return frozenset(tool for act in acts for tool in act.tools)


def _alike(one: Act, other: Act, last: bool, elsewhere: bool, shared: frozenset[str]) -> float:
    """How alike two acts are; `last` says that both end their episode.

    Calls of different tools stand in one row only where neither has a place of its own, that is,
    where neither tool is `shared` by both episodes.
    """
    if one.kind == other.kind == "call":
        overlap = _overlap(one.tools, other.tools)
        if elsewhere:
            return 1.5
        if not overlap:
            return 0.5 if shared.isdisjoint(one.tools | other.tools) else NEVER
        return 2 + 2 * overlap + bool(one.calls & other.calls) + 0.5 * (one.ok == other.ok)
    if last and one.kind in ENDINGS and other.kind in ENDINGS:
        return 4.0
    if one.kind == other.kind:
        return 3.0 + (one.name == other.name)
    return NEVER


# -- what is not the same ------------------------------------------------------------------------


def _judged(
    rows: Sequence[Row],
    place: int,
    left: Sequence[Act],
    right: Sequence[Act],
    elsewhere: bool,
) -> Pair:
    i, j = rows[place]
    if i is not None and j is not None:
        note = _difference(left[i], right[j], elsewhere)
        return Pair(i, j, not note, note)
    gap, mine, other = (0, left, right) if j is None else (1, right, left)
    number = i if j is None else j
    assert number is not None
    act = mine[number]
    for row in _nearest_pairs(rows, place):
        if _part_of(act, mine[row[gap]], other[row[1 - gap]]):
            where = "shifted" if j is None else "clean"
            return Pair(
                i,
                j,
                True,
                f"Does a part of what the neighbouring call does in the {where} episode.",
            )
    if j is None:
        return Pair(i, j, False, "The shifted episode does not do this.")
    return Pair(i, j, False, _extra(act))


def _nearest_pairs(rows: Sequence[Row], place: int) -> list[tuple[int, int]]:
    """The nearest rows before and after that hold a step of both episodes."""
    found = []
    for part in (reversed(rows[:place]), iter(rows[place + 1 :])):
        nearest = next(((i, j) for i, j in part if i is not None and j is not None), None)
        if nearest is not None:
            found.append(nearest)
    return found


def _part_of(act: Act, sibling: Act, whole: Act) -> bool:
    """Whether a call and its sibling together do what one call does in the other episode."""
    calls = act.kind == sibling.kind == whole.kind == "call" and act.ok and whole.ok
    return calls and act.name != sibling.name and act.tools <= whole.tools


def _extra(act: Act) -> str:
    if act.kind == "call" and not act.ok:
        return "The clean episode has no such call; here it fails."
    return "The clean episode does not do this."


def _difference(one: Act, other: Act, elsewhere: bool) -> str:
    """What two paired acts do not have in common; "" where they do the same."""
    if one.kind != other.kind:
        does = {"answer": "answers", "refuse": "refuses", "failure": "breaks off"}
        words = [does.get(act.kind, "runs out of its budget") for act in (one, other)]
        return f"The clean episode {words[0]}; this one {words[1]}."
    if one.kind == "call":
        return _difference_of_calls(one, other, elsewhere)
    if one.kind == "answer":
        return _difference_of_answers(one, other)
    if one.kind in ("ask", "refuse") and one.name != other.name:
        return "Asks about something else." if one.kind == "ask" else "Refuses for another reason."
    return ""


def _difference_of_calls(one: Act, other: Act, elsewhere: bool) -> str:
    if not elsewhere and not one.tools & other.tools:
        return "Another tool is called."
    if one.ok != other.ok:
        return "The call fails here." if one.ok else "The call fails in the clean episode only."
    if one.calls and other.calls and not one.calls & other.calls and not elsewhere:
        return "The same tool is called with other values."
    return ""


def _difference_of_answers(one: Act, other: Act) -> str:
    if one.right != other.right:
        return "The answer is not right here." if one.right else "Only here the answer is right."
    return "" if one.right or one.said == other.said else "Another wrong answer."
