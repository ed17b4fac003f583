"""Why an episode failed, by rule from its trace and the two interfaces.

The rules see what was shown (clean and shifted tools, results, the user) and what the agent did.
They never see a shift's name, tier or dimension. In a failed episode they look for slips, the
agent's own deviations, in the order in which they were made; the first slip that was not made
good is the root cause. Where there is none, the ending itself is the cause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice, takewhile

from toolshift.core.ask import Ask
from toolshift.core.message import PROTOCOL_NAMES, REASONS
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Param, Tool, validator
from toolshift.core.values import is_number
from toolshift.episode.episode import REPEATS, End
from toolshift.episode.grading_rules import (
    answers_right,
    due_by_turn,
    guesses_among,
    is_decisive,
    is_plain,
    leaves_choice,
    shown_fields,
)
from toolshift.reading.answers.by_words import passage
from toolshift.reading.pages import offers_more
from toolshift.reading.shown_values import is_shown, is_shown_number
from toolshift.reading.text import fold
from toolshift.reading.values import Value, value_of

CAUSES = (
    "memorised_name",
    "wrong_tool",
    "invented_tool",
    "bad_arguments",
    "invented_value",
    "filled_option",
    "ignored_result",
    "ignored_update",
    "missed_page",
    "surplus_write",
    "no_recovery",
    "wrong_order",
    "repetition",
    "guessed_among_codes",
    "answered_without_evidence",
    "wrong_refusal",
    "malformed_output",
    "broke_down",
    "budget",
    "infrastructure",
    "simulator",
    "unrecorded",
    "broken_shift",
    "own_outage",
    "dropped_connection",
    "unclear_answer",
)
"""Every cause, with its meaning:

- memorised_name: called a tool by (nearly) a name of the clean interface that is not on offer.
- wrong_tool: called a tool on offer that has no part in the task.
- invented_tool: called a tool that never was on offer, under no name that it could remember.
- bad_arguments: an argument that misses what was shown narrowly (a miscopy, a part of it), that the
  schema shown does not allow, or another than the task needs where no result told the right one
  (the user may have); or a required one that was missing.
- invented_value: passed an id, a name or a choice that nothing shown supports.
- filled_option: passed an optional parameter that the task does not need, with a value that the
  schema shown does not allow; without it the call was right in form.
- ignored_result: results had told the value, the answer, or all that it depends on, and it used
  another; or it answered from a part of a list that a result had shown.
- ignored_update: kept to what had been replaced: a rule, a value, or the user's earlier request.
- missed_page: left a part of a result unread that the task needs: further pages, or what comes only
  where it is asked for.
- surplus_write: made a write twice, or tried to and stopped there; or made one that nobody had
  asked for.
- no_recovery: stopped at a failure or a notice that offered a way on.
- wrong_order: called a tool before the one that yields what it needs.
- repetition: made the same call again although nothing had asked for it, or until a limit on that.
- guessed_among_codes: offered several codes or values and left it open which is meant.
- answered_without_evidence: answered although the request could not be, or was not, fulfilled.
- wrong_refusal: refused a request that could be fulfilled, or before there was a reason to.
- malformed_output: a call that could not be read.
- broke_down: its own code raised, took longer than it may, or ended or replied without an answer.
- budget: ran out of calls or turns.
- infrastructure, simulator: not the agent's failure, but its endpoint's or the simulated user's.
- unrecorded: made a call that the recording does not know; neither a pass nor a failure.
- broken_shift: the code of the shift raised; neither a pass nor a failure.
- own_outage: its own program said that what it needs is out of order; neither a pass nor a failure.
- dropped_connection: a server broke off the connection in a call; neither a pass nor a failure.
"""

BROKE_DOWN = "broke_down"
LASTING = ("surplus_write", "missed_page")
"""Mistakes that no later call of the same tool corrects."""
FORMER_NAMES = {
    "forced_completion": "answered_without_evidence",
    "over_refusal": "wrong_refusal",
}
"""Names of causes in files of format 1, and their current names."""

WAY_ON = ("retry", "use", "page", "value", "refresh")  # hints that a failure can be got over
_ALIKE = 0.85  # similarity from which a name counts as the memory of another
_NEAR = 0.8  # similarity from which a wrong value counts as a miscopy of one that was shown
_PAGE_ARGUMENTS = 2  # arguments in which the calls for two pages may differ
_STATES = re.compile(r"\d|\b[A-Z]{2}")  # a number or a code, without which nothing is stated
_WORDS = 5  # spaces from which on a value is a text, and no name or choice
_SHORT = 5  # letters of a value from which on one other sign makes a miscopy of it
_LONG = 100  # letters of a value from which on it is compared roughly: exactly is not linear
_MAX_TRIED = 300  # places with the letters of a value that are compared exactly


def current_name(cause: str, end: str = "") -> str:
    """The current name of a stored cause; files of format 1 have other names for two causes.

    An agent that broke down was `malformed_output` once, which calls that cannot be read still are.
    """
    if cause == "malformed_output" and end == "crashed":
        return BROKE_DOWN
    return FORMER_NAMES.get(cause, cause)


def cause_of(scene: Scene, steps: Sequence[Step], end: End) -> str:
    """The root cause of a failed episode; one of `CAUSES`."""
    if end == "infrastructure":
        return "infrastructure"
    if end == "crashed":
        return BROKE_DOWN
    slips = list(_slips(scene, steps))
    if end == "budget":
        in_a_loop = bool(steps) and steps[-1].said == REPEATS
        return _most(_as_first_made(steps, slips)) or ("repetition" if in_a_loop else "budget")
    evidence = any(is_decisive(scene, step) for step in steps)
    if not scene.solvable and evidence and end == "answered":
        wrote = (cause for number, cause in slips if _writes_unasked(scene, steps[number]))
        return next(wrote, "answered_without_evidence")
    if slips:
        _, cause = slips[0]
        root = _root_of(scene, steps, slips)
        return cause if root is None else _cause_of_picking(scene, steps, root)
    if end == "refused" or _refused_a_turn(scene, steps):
        if _stopped_short(scene, steps):
            return "no_recovery"
        picked = _picked_another(scene, steps) if scene.solvable else None
        if picked is None or _made_right_later(scene, steps, picked):
            return "wrong_refusal"
        return _cause_of_picking(scene, steps, picked)
    return _wrong_answer(scene, steps)


def guilty_step(scene: Scene, steps: Sequence[Step], cause: str) -> int | None:
    """The step at which a failed episode went wrong: the first mistake of its cause, or the end.

    Where no slip and no wrong answer explains the failure, it is the call that is none of the right
    ones.
    """
    if not cause or not steps:
        return None
    last = len(steps) - 1
    if cause == "simulator" or steps[last].kind == "failure":
        return max(0, last - (cause == "simulator"))
    slips = list(_slips(scene, steps))
    root = _root_of(scene, steps, slips)
    if root is not None and _cause_of_picking(scene, steps, root) == cause:
        return root
    named = (number for number, mistake in slips if mistake == cause)
    return next(named, _wrong_ending(scene, steps, cause))


def _wrong_ending(scene: Scene, steps: Sequence[Step], cause: str) -> int:
    """The first wrong answer; otherwise the call that was picked, or the last step."""
    picked = _picked_another(scene, steps) if cause in ("bad_arguments", "ignored_result") else None
    if picked is not None and cause == "bad_arguments":
        return picked
    answers = [number for number, step in enumerate(steps) if step.kind == "answer"]
    for number, right in zip(answers, answers_right(scene, steps), strict=False):
        if not right:
            return number
    return len(steps) - 1 if picked is None else picked


def _refused_a_turn(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether a solvable turn of a scripted user was refused."""
    answers = (step for step in steps if step.kind == "answer")
    return any(
        step.name in REASONS and not ask.blocked
        for ask, step in zip(scene.asks, answers, strict=False)
    )


def _as_first_made(
    steps: Sequence[Step], slips: Sequence[tuple[int, str]]
) -> list[tuple[int, str]]:
    """The slips, in which a repeated call that no tool took is the mistake that it was at first."""
    first: dict[tuple[str, str], str] = {}
    traced = []
    for number, cause in slips:
        step = steps[number]
        made = (step.name, repr(step.given))
        untaken = step.error in ("unknown_tool", "invalid_arguments")
        traced.append((number, first.setdefault(made, cause) if untaken else cause))
    return traced


def _most(slips: list[tuple[int, str]]) -> str:
    causes = [cause for _, cause in slips]
    return max(dict.fromkeys(causes), key=causes.count) if causes else ""


def _stopped_short(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether the last step before the end was a failure or a notice that offered a way on."""
    calls = [step for step in steps if step.kind == "call"]
    if not calls:
        return False
    before = {tool.name for tool in scene.tools}.union(*(step.tools for step in calls[:-1]))
    searched = any(tool.lists and tool.name == calls[-1].name for tool in scene.tools)
    successor = not searched and not before.issuperset(calls[-1].tools)
    return calls[-1].hint in WAY_ON or successor


def _wrong_answer(scene: Scene, steps: Sequence[Step]) -> str:
    """The cause of a wrong answer after correct calls."""
    if _offers_several(scene, steps):
        return "guessed_among_codes"
    answers = [step.said for step in steps if step.kind == "answer"]
    if any(ask.expected for ask in scene.asks) and _kept_to_an_earlier_turn(scene, steps, answers):
        return "ignored_update"
    before = _until_the_last_wrong_answer(scene, steps)
    if (
        _was_told_the_answer(scene, steps, before)
        or _was_told_all(scene, before)
        or _left_some_out(scene, before)
    ):
        return "ignored_result"
    picked = _picked_another(scene, steps)
    if picked is not None:
        return _cause_of_picking(scene, steps, picked)
    stopped = _stopped_short(scene, steps) and not _went_well(steps)
    return "no_recovery" if stopped else "answered_without_evidence"


def _went_well(steps: Sequence[Step]) -> bool:
    """Whether the last call succeeded and asked for nothing: what stopped then is the agent."""
    last = next((step for step in reversed(steps) if step.kind == "call"), None)
    return last is not None and last.ok and not last.hint


def _until_the_last_wrong_answer(scene: Scene, steps: Sequence[Step]) -> Sequence[Step]:
    """What was known when it was given; all steps where no answer is wrong."""
    answers = [number for number, step in enumerate(steps) if step.kind == "answer"]
    right = answers_right(scene, steps)
    wrong = [number for number, fine in zip(answers, right, strict=False) if not fine]
    return steps[: wrong[-1] + 1] if wrong else steps


def _was_told_the_answer(scene: Scene, steps: Sequence[Step], before: Sequence[Step]) -> bool:
    """Whether an answer is wrong although results had shown the right one.

    An answer that states nothing at all, before all calls were made, used nothing in its place.
    """
    answers = [step.said for step in steps if step.kind == "answer"]
    shown = "\n".join(step.text for step in before if step.kind == "call")
    right = (*answers_right(scene, steps), *(False for _ in scene.asks))
    missed = [
        ask
        for ask, is_right in zip(scene.asks, right, strict=False)
        if ask.expected and not (is_right if is_plain(ask) else _is_given(ask.expected, answers))
    ]
    wrong = [answer for answer, is_right in zip(answers, right, strict=False) if not is_right]
    silent = bool(wrong) and not any(map(_STATES.search, wrong))
    if silent and not any(map(is_plain, scene.asks)) and not _was_told_all(scene, before):
        return False
    return bool(missed) and all(_shows(shown, ask) for ask in missed)


def _is_given(code: str, answers: Sequence[str]) -> bool:
    return any(code in answer for answer in answers)


def _shows(shown: str, ask: Ask) -> bool:
    """Whether results have shown the right answer to a request; list items count one by one."""
    if ask.expected and ask.expected in shown:
        return True
    wanted = ask.pattern or (ask.expected or "")
    items = (wanted,) if isinstance(wanted, str) else wanted
    return is_plain(ask) and all(passage(fold(shown), item) for item in items)


def _offers_several(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether a wrong answer offers several codes or values instead of stating one."""
    fields = shown_fields(scene, steps)
    answers = [step.said for step in steps if step.kind == "answer"]
    right = answers_right(scene, steps)
    return any(
        not is_right
        and ask.expected is not None
        and (guesses_among(answer, fields) or (is_plain(ask) and leaves_choice(ask, answer)))
        for ask, answer, is_right in zip(scene.asks, answers, right, strict=False)
    )


def _kept_to_an_earlier_turn(scene: Scene, steps: Sequence[Step], answers: Sequence[str]) -> bool:
    """Whether a wrong answer repeats one of an earlier turn: the last, or one that was right."""
    right = answers_right(scene, steps)
    settled = [
        answer
        for ask, answer, is_right in zip(scene.asks, answers, right, strict=False)
        if is_right or ask.expected is None
    ]
    repeated = any(
        answer in settled and answer in answers[:number]
        for number, (answer, is_right) in enumerate(zip(answers, right, strict=False))
        if not is_right
    )
    return repeated or (len(answers) > 1 and answers[-1] in answers[:-1])


def _was_told_all(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether an answer is wrong although every right call up to it was made."""
    answered = sum(step.kind == "answer" for step in steps)
    due = due_by_turn(scene)[: answered or None]
    right = [call for turn in due for step in turn for call in step.true]
    made = [call for step in steps if step.ok for call in step.true]
    wrong = not all(answers_right(scene, steps)) and not scene.outcome.calls_alone
    if not scene.solvable and answered == len(scene.asks):
        return False  # no result has what an answer to such a request could be
    return wrong and bool(right) and all(call in made for call in right)


def _left_some_out(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether the last answer states something after a part of a list only was looked at.

    So it is where a tool was to be called for several things of one result, and was called for some
    of them. An answer that states nothing is not taken from that part.
    """
    answered = sum(step.kind == "answer" for step in steps)
    if not answered or scene.outcome.calls_alone or not _STATES.search(steps[-1].said):
        return False
    turns = due_by_turn(scene)
    due = [call for step in turns[answered - 1] for call in step.true] if turns[answered:] else []
    return _looked_at_a_part(due, steps)


def _looked_at_a_part(due: Sequence[tuple[str, dict[str, object]]], steps: Sequence[Step]) -> bool:
    """Whether of due calls of a tool for things of one result some were made, and some were not."""
    made = [call for step in steps if step.ok for call in step.true]
    lists = list(_whole_results(steps))
    left = [call for call in due if call not in made]
    return any(
        name == other and _are_of_one_list(arguments, looked_at, lists)
        for name, arguments in left
        for other, looked_at in due
        if (other, looked_at) in made
    )


def _whole_results(steps: Sequence[Step]) -> Iterator[str]:
    """The texts of results; pages of one result are joined."""
    pages: list[str] = []
    last: Step | None = None
    for step in (step for step in steps if step.kind == "call"):
        goes_on = last is not None and (last.hint == "page" or offers_more(last.text))
        if not (last and goes_on and last.name == step.name):
            yield "\n".join(pages)
            pages = []
        pages.append(step.text)
        last = step
    yield "\n".join(pages)


def _are_of_one_list(
    one: dict[str, object], other: dict[str, object], results: Sequence[str]
) -> bool:
    """Whether all in which the arguments of two calls differ stands in one result."""
    differing = [
        str(value)
        for both in (_wrong_values(one, other), _wrong_values(other, one))
        for value, _ in both
    ]
    return any(all(is_shown(value, text) for value in differing) for text in results)


def _picked_another(scene: Scene, steps: Sequence[Step]) -> int | None:
    """The first call of a tool of the task in place of a right call; None if there is none."""
    right = [call for step in scene.calls for call in step.true]
    names = {name for name, _ in right}
    wanted = scene.outcome.effects
    others = (
        number
        for number, step in enumerate(steps)
        if step.ok
        and (
            any(call[0] in names and call not in right for call in step.true)
            or _due_instead(scene, steps, number)
        )
        and not (step.effects and all(effect in wanted for effect in step.effects))
    )
    return next(others, None)


def _due_instead(
    scene: Scene, steps: Sequence[Step], number: int
) -> list[tuple[str, dict[str, object]]]:
    """The calls of the same tool that were due when a call was only made again, and never made.

    So it is where the same thing is looked at twice in place of the next one, which was told.
    """
    step = steps[number]
    earlier = [s for s in steps[:number] if (s.name, s.arguments) == (step.name, step.arguments)]
    if scene.outcome.calls_alone or not step.true or not any(s.ok for s in earlier):
        return []
    turn = sum(s.kind == "answer" for s in steps[:number])
    due = [call for s in (due_by_turn(scene)[turn : turn + 1] or [[]])[0] for call in s.true]
    since = [call for s in _since_an_answer(steps[:number]) if s.ok for call in s.true]
    if any(call in due and call not in since for call in step.true):
        return []
    made = [call for s in (*steps[:number], *_until_an_answer(steps[number:])) for call in s.true]
    name, arguments = step.true[-1]
    seen = "\n".join(_told_before(scene, steps[:number]))
    return [
        call
        for call in due
        if call[0] == name
        and call not in made
        and all(_is_told(value, seen) for value, _ in _wrong_values(call[1], arguments))
    ]


def _writes_unasked(scene: Scene, step: Step) -> bool:
    """Whether a call wrote what the task neither wants nor forgives."""
    if scene.outcome.calls_alone:  # there each call is an effect, and no write for that
        return False
    allowed = [tuple(effect) for effect in (*scene.outcome.effects, *scene.outcome.forgiven)]
    return any(tuple(effect) not in allowed for effect in step.effects)


def _root_of(scene: Scene, steps: Sequence[Step], slips: Sequence[tuple[int, str]]) -> int | None:
    """The call of another thing that the first slip only goes on with; None if it stands alone."""
    alone = not slips or (slips[0][1] == "surplus_write" and steps[slips[0][0]].ok)
    return None if alone else _picked_before(scene, steps, slips[0][0])


def _picked_before(scene: Scene, steps: Sequence[Step], number: int) -> int | None:
    """The call of another thing that a failed call or a wrong write only goes on with, if any."""
    picked = _picked_another(scene, steps[:number]) if scene.solvable else None
    true = steps[number].true
    wrote = bool(true) and _writes_unasked(scene, steps[number])  # no later call makes that good
    made_good = picked is not None and _made_right_later(
        scene, steps[:number] if wrote else steps, picked
    )
    if picked is None or made_good or (steps[number].ok and not wrote):
        return None
    brought = steps[picked].text
    if wrote:  # of the same thing, or of what the call had brought
        of_it = (
            f"{brought}\n{[value for _, given in steps[picked].true for value in _inside(given)]}"
        )
        _, wrong = _nearest(scene, steps, number)
        return picked if any(is_shown(str(other), of_it) for _, other in wrong) else None
    others = (s.text for s in steps[:picked] if s.text != brought)
    before = "\n".join((scene.system, scene.asks[0].text, *others))
    passed = [str(value) for value in steps[number].given.values()]
    goes_on = any(is_shown(v, brought) and not is_shown(v, before) for v in passed)
    return picked if goes_on else None


def _cause_of_picking(scene: Scene, steps: Sequence[Step], number: int) -> str:
    """The cause of a call of the right tool that is none of the right calls."""
    return "ignored_result" if _was_told_better(scene, steps, number) else "bad_arguments"


def _made_right_later(scene: Scene, steps: Sequence[Step], number: int) -> bool:
    """Whether a right call of the same tools followed on another one."""
    names = {name for name, _ in steps[number].true}
    right = [call for step in scene.calls for call in step.true if call[0] in names]
    return any(call in right for step in steps[number + 1 :] for call in step.true)


def _was_told_better(scene: Scene, steps: Sequence[Step], number: int) -> bool:
    """Whether results had shown the right values for the wrong arguments of a call before it.

    The right call is that of the same tool which has most of the arguments. The same value in
    another form is no other value. Where the calls alone count, only results tell: the request is
    what they are made from. Where the user has stated all that is right, no result had to tell it.
    """
    rivals, wrong = _nearest(scene, steps, number)
    seen = "\n".join(_told_before(scene, steps[:number]))
    said = "\n".join(_said_by_the_user(scene, steps[:number]))
    by_user = not scene.outcome.calls_alone and all(_is_told(value, said) for value, _ in wrong)
    if not wrong or by_user:
        return False
    told = all(_is_told(value, seen) for value, _ in wrong)
    if scene.outcome.calls_alone or any(map(is_plain, scene.asks)):
        return told and not any(is_shown(str(other), str(value)) for value, other in wrong)
    # what the calls before the right one bring is told, in some unit or form
    told = told or _were_all_made(scene, steps[:number], rivals)
    return told and not any(_is_part(str(other), str(value), seen) for value, other in wrong)


def _nearest(
    scene: Scene, steps: Sequence[Step], number: int
) -> tuple[list[tuple[str, dict[str, object]]], list[tuple[object, object]]]:
    """The right calls of the tool that a call is of, and its wrong values beside the nearest."""
    right = [call for step in scene.calls for call in step.true]
    last = steps[number].true[-1]
    name, made = next((call for call in steps[number].true if call not in right), last)
    due = _due_instead(scene, steps, number) or right
    rivals = [call for call in due if call[0] == name]
    wrong = (list(_wrong_values(other, made)) for _, other in rivals)
    return rivals, min(wrong, key=len, default=[])


def _were_all_made(
    scene: Scene, steps: Sequence[Step], calls: Sequence[tuple[str, dict[str, object]]]
) -> bool:
    """Whether all right calls before the first of these were made in these steps."""
    made = [call for step in steps if step.ok for call in step.true]
    walk = [call for step in scene.calls for call in step.true]
    return all(call in made for call in takewhile(lambda call: call not in calls, walk))


def _is_part(value: str, whole: str, shown: str) -> bool:
    """Whether a value is only a part of the right one, and was not shown for itself."""
    part, right = value.casefold(), whole.casefold()
    return part != right and part in right and part not in shown.casefold().replace(right, " ")


def _told_before(scene: Scene, steps: Sequence[Step]) -> Iterator[str]:
    """The text of results, and the user's words if more than the calls counts."""
    alone = scene.outcome.calls_alone
    if not alone:
        yield scene.asks[0].text
    for step in steps:
        if step.kind == "call" or not alone:
            yield f"{step.text}\n{step.notice}"


def _said_by_the_user(scene: Scene, steps: Sequence[Step]) -> Iterator[str]:
    """The requests, replies and notices so far."""
    yield f"{scene.system}\n{scene.asks[0].text}"
    for step in steps:
        if step.kind != "call":
            yield f"{step.text}\n{step.notice}"


def _wrong_values(right: object, made: object) -> Iterator[tuple[object, object]]:
    """The right values that are missing or different in the passed arguments."""
    if isinstance(right, dict) and isinstance(made, dict):
        for key, value in right.items():
            yield from _wrong_values(value, made.get(key))
    elif isinstance(right, list) and isinstance(made, list) and len(right) == len(made):
        for value, other in zip(right, made, strict=True):
            yield from _wrong_values(value, other)
    elif right != made:
        yield right, made


def _is_told(value: object, shown: str) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_told(part, shown) for part in inner)
    if is_number(value):
        return is_shown_number(value, shown)
    return is_shown(str(value), shown)


def _slips(scene: Scene, steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """The agent's mistakes that were not corrected: step number and cause."""
    watch = _Watch(scene)
    right = answers_right(scene, steps) if len(scene.asks) > 1 else []
    for number, step in enumerate(steps):
        if step.kind == "call":
            after = steps[number + 1 :]
            answered_wrong = not all(right[watch.turn : watch.turn + 1])
            in_time = _until_an_answer(after) if answered_wrong else after
            cause = (
                watch.judge_wish(step, after)
                or watch.judge(step)
                or watch.judge_write(step, steps[:number], after)
                or _wrote_another(scene, steps, number)
                or _left_unread(scene, step, after)
                or _passed_over(scene, step, after)
            )
            wrote = _writes_unasked(scene, step)
            if cause == "wrong_tool" and wrote and _went_on(scene, steps[:number], after):
                cause = "surplus_write"  # in place of nothing
            harmless = (
                (cause == "wrong_tool" and _came_to_nothing(watch, step, after))
                or (cause == "invented_tool" and _went_on(scene, steps[:number], after))
                or (cause == "surplus_write" and not step.ok and _got_over(after))
            )
            kept = cause == "ignored_update" and step.ok  # what follows has been looked at
            lasting = kept or wrote or cause in LASTING or not _made_good(in_time, step, scene)
            if cause and not harmless and lasting:
                yield number, cause
        watch.hear(step)


def _wrote_another(scene: Scene, steps: Sequence[Step], number: int) -> str:
    """The mistake in a write that was made in place of the one that the task wants; "" if none."""
    step, before = steps[number], steps[:number]
    right = [call for each in scene.calls for call in each.true]
    if not _writes_unasked(scene, step) or all(call in right for call in step.true):
        return ""
    turn = sum(each.kind == "answer" for each in before)
    names = {name for name, _ in step.true}
    now = [
        call for due in due_by_turn(scene)[turn : turn + 1] for each in due for call in each.true
    ]
    wanted, due = ([c for c in now if (c[0] in names) == same] for same in (True, False))
    around = (*_since_an_answer(before), *_until_an_answer(steps[number + 1 :]))
    made = [call for each in around if each.ok for call in each.true]
    if wanted and all(call in made for call in wanted):
        return "surplus_write"
    in_part = _looked_at_a_part(due, before)  # of a list, from which it is made
    return "ignored_result" if in_part else _cause_of_picking(scene, steps, number)


def _went_on(scene: Scene, before: Sequence[Step], after: Sequence[Step]) -> bool:
    """Whether what the scene expected in place of a call was done after it, or before."""
    done = [call for step in before if step.ok for call in step.true]
    right = (call for step in scene.calls for call in step.true)
    expected = next((call for call in right if call not in done), None)
    return expected is None or any(expected in step.true for step in after if step.ok)


def _came_to_nothing(watch: _Watch, step: Step, after: Sequence[Step]) -> bool:
    """Whether a call of an unrelated tool did no harm."""
    went_on = any(s.kind == "call" and s.ok and s.name in watch.useful for s in after)
    return went_on and not _made_use_of(watch.scene, step, after)


def _got_over(after: Sequence[Step]) -> bool:
    """Whether the agent went on to an answer or to another call that went well."""
    return any(step.kind == "answer" or (step.kind == "call" and step.ok) for step in after)


def _left_unread(scene: Scene, step: Step, after: Sequence[Step]) -> str:
    """Whether a part of a result was left unread that the oracle reads."""
    if _never_asked_for(scene, step, after) or _stopped_at_a_page(scene, step, after):
        return "missed_page"
    if step.hint != "page" or any(s.kind == "call" and s.name == step.name for s in after):
        return ""
    if _is_unread(_next_call(after)) or _had_no_need(scene, step, after):
        return ""
    walk = scene.calls
    read_on = any(
        call.hint == "page"
        and call.name == step.name
        and step.name in {s.name for s in walk[n + 1 :]}
        for n, call in enumerate(walk)
    )
    return "missed_page" if read_on else ""


def _until_an_answer(steps: Iterable[Step]) -> list[Step]:
    return list(takewhile(lambda step: step.kind != "answer", steps))


def _since_an_answer(steps: Sequence[Step]) -> list[Step]:
    return _until_an_answer(reversed(steps))


def _next_call(after: Sequence[Step]) -> Step | None:
    return next((later for later in after if later.kind == "call"), None)


def _is_unread(step: Step | None) -> bool:
    """Whether a call reached no tool: what it tried to be is not known, and it is a slip itself."""
    return step is not None and (step.malformed or step.error == "unknown_tool")


def _had_no_need(scene: Scene, step: Step, after: Sequence[Step]) -> bool:
    """Whether all that the oracle does with a result was done without its further pages."""
    right = [c for s in scene.calls if s.name != step.name for c in s.true]
    own = {name for name, _ in step.true}
    left = [call for call in right if call[0] not in own]
    made = [call for later in after if later.ok for call in later.true]
    return bool(left) and all(call in made for call in left)


def _stopped_at_a_page(scene: Scene, step: Step, after: Sequence[Step]) -> bool:
    """Whether a result of the tool itself said that it goes on, and the agent did not read on.

    So it is only where the oracle reads on: it calls the tool again with another value of some
    arguments, and with the same values of all others. Such a call counts as reading on.
    """
    if not step.ok or step.hint or not offers_more(step.text):
        return False
    turns = [
        _differing(call, later)
        for n, call in enumerate(scene.calls)
        for later in scene.calls[n + 1 :]
        if call.name == later.name == step.name and offers_more(call.text)
    ]
    varied = [keys for keys in turns if 0 < len(keys) <= _PAGE_ARGUMENTS]
    if _is_unread(_next_call(after)):
        return False
    return bool(varied) and not any(
        later.name == step.name and later.ok and _differing(step, later) in varied
        for later in after
    )


def _differing(one: Step, other: Step) -> frozenset[str]:
    """The arguments in which two calls differ."""
    before, now = one.given, other.given
    missing = object()
    return frozenset(
        key
        for key in before.keys() | now.keys()
        if before.get(key, missing) != now.get(key, missing)
    )


def _never_asked_for(scene: Scene, step: Step, after: Sequence[Step]) -> bool:
    """Whether a call did without an optional argument that its documentation says to pass.

    It does so only where the oracle passes it in its calls, and no later call of the tool does.
    """
    tool = next((tool for tool in scene.tools if tool.name == step.name), None)
    advised = (
        {p.name for p in tool.params if p.given is not None and not p.required} if tool else ()
    )
    return any(
        step.ok
        and any(s.name == step.name and name in s.given for s in scene.calls)
        and not any(name in s.given for s in (step, *after) if s.name == step.name)
        for name in advised
    )


def _made_use_of(scene: Scene, step: Step, after: Sequence[Step]) -> bool:
    """Whether a call wrote something, or a wrong value from it was said or passed on later.

    What is right was no worse for having been read there: that is a detour.
    """
    messages = [later.said for later in after]
    passed = [v for s in after for v in s.given.values()]
    right = [v for s in scene.calls for v in s.given.values()]
    right += [ask.expected for ask in scene.asks]
    values = [
        value
        for value in (*messages, *passed)
        if isinstance(value, str) and len(value) > 3 and value not in right
    ]
    before = str(step.arguments)
    return bool(step.effects) or any(v in step.text and v not in before for v in values)


def _passed_over(scene: Scene, step: Step, after: Sequence[Step]) -> str:
    """Whether the agent ignored a failure that offered a way on and used another tool."""
    following = _next_call(after)
    if step.ok or step.hint not in WAY_ON or following is None or following.name == step.name:
        return ""
    stands_for = _origins(scene, following.name)
    came = not stands_for and following.name not in {tool.name for tool in scene.reachable}
    if _is_unread(following) or came:  # no tool at all, or one that has come since
        return ""
    same = _origins(scene, step.name) & stands_for
    return "" if same else "no_recovery"


def _made_good(after: Sequence[Step], slip: Step, scene: Scene) -> bool:
    """Whether a later call of the same tool, or of the intended tool, succeeded."""
    if slip.name in PROTOCOL_NAMES:
        return any(step.kind in ("ask", "answer", "refuse") for step in after)
    stood_for = _origins(scene, slip.name)
    right = [(step.name, step.given) for step in scene.calls]
    return any(
        step.kind == "call"
        and (step.ok or (step.hint in WAY_ON and (step.name, step.given) in right))
        and step != slip
        and (step.name == slip.name or stood_for & {name for name, _ in step.true})
        for step in after
    )


def _origins(scene: Scene, name: str) -> set[str]:
    """The true tools behind a name: of a tool that was shown, or that the oracle came to call."""
    tools = (*scene.reachable, *scene.clean.reachable)
    shown = {origin for tool in tools if tool.name == name for origin in tool.origin}
    return shown or {true for step in scene.calls if step.name == name for true, _ in step.true}


class _Watch:
    """Follows an episode and judges each call by what was shown before it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.tools = {tool.name: tool for tool in scene.reachable}
        self.clean = {tool.name: tool for tool in scene.clean.reachable}
        self.offered = {tool.name for tool in scene.tools}
        self.once = set(self.offered)
        self.heard = f"{scene.system}\n{scene.asks[0].text}".lower()
        self.replacing: list[tuple[str, str]] = []
        self.made: list[Step] = []
        self.steps: list[Step] = []
        self.useful = _useful(scene)
        outcome = scene.outcome
        self.allowed = [tuple(effect) for effect in (*outcome.effects, *outcome.forgiven)]
        self.wanted = _writes_by_name(scene.outcome.effects + scene.outcome.forgiven)
        self.written: Counter[str] = Counter()
        self.due = due_by_turn(scene)
        self.right = [call for step in scene.calls for call in step.true]
        self.turn = 0

    def hear(self, step: Step) -> None:
        """Records what a step has shown."""
        new = f"\n{step.text}\n{step.notice}".lower()
        settled = step.kind == "ask" and step.evidence  # which of two things the user means
        if step.hint == "value" or step.kind == "answer" or step.notice or settled:
            self.replacing.append((self.heard, new))
        self.heard += new
        self.turn += step.kind == "answer"
        self.steps.append(step)
        if step.kind == "call":
            self.made.append(step)
        if step.tools:
            self.offered = set(step.tools)
            self.once |= self.offered

    def judge(self, step: Step) -> str:
        """The mistake in a call; "" if it is correct."""
        if step.error == "malformed_arguments" or step.name in PROTOCOL_NAMES:
            return "malformed_output"
        if self._repeats_a_write(step):
            return "surplus_write"
        if self._repeats(step):  # of one that is refused for its options, that is still the mistake
            return "filled_option" if self._refused_for_options(step) else "repetition"
        gone = (self.clean.keys() | self.once) - self.offered
        came = step.error != "unknown_tool" and step.name not in gone  # since the tools were listed
        if step.name not in self.offered and not came:
            near = step.name in gone or get_close_matches(step.name, gone, cutoff=_ALIKE)
            return "memorised_name" if near else "invented_tool"
        return self._judge_choice(step) or self._judge_arguments(step)

    def judge_wish(self, step: Step, after: Sequence[Step]) -> str:
        """Whether a call that went well keeps a value which the user or a notice has replaced.

        It is judged by the nearest of the calls that this turn needs, and no mistake where that one
        is made too, or where nothing came of it: whatever is said to a request that is taken
        back later is forgiven.
        """
        turn = self.due[self.turn] if self.turn < len(self.due) else []
        due = [call for call in turn if call.name == step.name]
        if not step.ok or not self.replacing or not due:
            return ""
        rest = _until_an_answer(after)
        nearest = min(due, key=lambda call: len(_differing(step, call)))
        around = (*_since_an_answer(self.steps), *rest)
        if any(s.name == step.name and not _differing(s, nearest) for s in around):
            return ""
        taken_back = self.scene.asks[self.turn].expected is None
        if taken_back and len(rest) < len(after) and not self._writes_too_much((step, *rest)):
            return ""
        keys = _differing(step, nearest)
        kept = any(self._replaced(step.given.get(k), nearest.given.get(k)) for k in keys)
        return "ignored_update" if kept else ""

    def _writes_too_much(self, steps: Sequence[Step]) -> bool:
        """Whether one of these writes is none that may be made, or is made too often."""
        now = Counter(tuple(effect) for step in steps for effect in step.effects)
        before = Counter(tuple(effect) for step in self.steps for effect in step.effects)
        return any(before[e] + now[e] > self.allowed.count(e) for e in now)

    def judge_write(self, step: Step, before_it: Sequence[Step], after: Sequence[Step]) -> str:
        """Whether a call wrote more often, or something else, than was requested.

        Another write than the wanted one is surplus where the wanted one was made too; where it was
        made in its place, an argument was wrong.
        """
        before = self.written.copy()
        self.written += _writes_by_name(step.effects)
        over = [name for name, count in self.written.items() if count > self.wanted[name]]
        again = self._writes_too_much([step]) and all(
            tuple(e) in self.allowed for e in step.effects
        )
        if again or any(self.written[n] > before[n] for n in over):
            return "surplus_write"
        wanted = [tuple(effect) for effect in self.scene.outcome.effects]
        strange = [tuple(e) for e in step.effects if tuple(e) not in self.allowed]
        around = (*_since_an_answer(before_it), *_until_an_answer(after))
        elsewhere = [tuple(e) for s in around for e in s.effects]
        in_addition = any(
            all(other in elsewhere for other in wanted if other[0] == effect[0])
            for effect in strange
        )
        return "surplus_write" if in_addition else ""

    def _repeats(self, step: Step) -> bool:
        attempts = _since_an_answer(self.steps)[::-1]  # another request may need it again
        same = [s for s in attempts if s.name == step.name and s.arguments == step.arguments]
        if not same or (step.error == "unknown_tool" != same[-1].error):  # it has gone since
            return False
        return same[-1].hint != "retry" and not same[-1].ok

    def _repeats_a_write(self, step: Step) -> bool:
        """Whether a write that has been made was tried again, and only the world prevented it."""
        made = (s for s in _since_an_answer(self.steps) if s.effects)
        again = any(s.name == step.name and s.arguments == step.arguments for s in made)
        return again and not step.ok and not step.provoked

    def _judge_choice(self, step: Step) -> str:
        tool = self.tools.get(step.name)
        if tool is None or step.name in self.useful:
            return ""
        meant = self.clean.get(step.name)
        moved = meant is not None and meant.origin != tool.origin
        return "memorised_name" if moved else "wrong_tool"

    def _judge_arguments(self, step: Step) -> str:
        tool, given = self.tools.get(step.name), step.given
        like = tool or self._stood_for(step.name)
        if step.malformed:
            return "malformed_output"
        if step.error == "invalid_arguments":
            if self._refused_for_options(step):
                return "filled_option"
            if tool is not None and self._out_of_order(tool, given):
                return "wrong_order"
            texts = [value for fits, value in self._texts(like, given) if fits]
            invented = any(self._unsupported(like, value) == "invented_value" for value in texts)
            return "invented_value" if invented else "bad_arguments"
        right = [value for call in step.true if call in self.right for value in _inside(call[1])]
        for _, value in self._texts(tool, given):
            if value not in right and (mistake := self._unsupported(like, value)):
                return mistake
        if not step.ok and not step.provoked and self._outdated(tool, given):
            return "ignored_update"
        if self._invented_number(tool, given):
            return "bad_arguments"
        if step.ok or step.provoked or step.error == "gone":
            return ""
        return "bad_arguments"

    def _stood_for(self, name: str) -> Tool | None:
        """The clean tool in the place of which one has come since the tools were listed."""
        origins = _origins(self.scene, name)
        return next((tool for tool in self.clean.values() if origins & set(tool.origin)), None)

    def _refused_for_options(self, step: Step) -> bool:
        """Whether a call was refused for optional parameters alone, which the oracle leaves out."""
        tool, arguments = self.tools.get(step.name), step.given
        if step.error != "invalid_arguments" or tool is None:
            return False
        needed = {p.name for p in tool.params if p.required}
        alike = [
            call.given
            for call in self.scene.calls
            if call.name == tool.name
            and all(call.given.get(name) == arguments.get(name) for name in needed)
        ]
        used = {name for name, _ in self._right_values(tool)}
        without = {name for name in used if any(name not in given for given in alike)}
        spare = {p.name for p in tool.params if not p.required} - (used - without)
        rest = {name: value for name, value in arguments.items() if name not in spare}
        allows = validator(tool).is_valid
        return bool(allows(rest)) and not allows(arguments)

    def _right_values(self, tool: Tool | None) -> Iterator[tuple[str, object]]:
        """The arguments that the oracle gives to a tool or its equals, by name."""
        for call in self.scene.calls:
            same = tool is not None and (call.name == tool.name)
            if same and isinstance(call.arguments, dict):
                yield from call.arguments.items()

    def _outdated(self, tool: Tool | None, arguments: dict[str, object]) -> bool:
        """Whether a value was passed in place of one that had been told to replace others.

        That is what a failure names as the new value, and what the user or a notice says later on.
        """
        return any(
            name in arguments
            and arguments[name] != right
            and self._replaced(arguments[name], right)
            for name, right in self._right_values(tool)
        )

    def _replaced(self, made: object, right: object) -> bool:
        """Whether one value had been told before another one, which was told in its place."""
        if not all(isinstance(value, str) or is_number(value) for value in (made, right)):
            return False
        old = str(made).lower()
        within = str(right).lower() in old  # "Kelmaar" was not told by "Kelmaar 2"
        return any(
            _is_told(right, new)
            and _is_told(made, before)
            and not _is_told(right, before.replace(old, " ") if within else before)
            for before, new in self.replacing
        )

    def _invented_number(self, tool: Tool | None, arguments: dict[str, object]) -> bool:
        """Whether a number was passed that was never stated, although the right one was."""
        right = list(self._right_values(tool))
        shown = {
            name for name, value in right if is_number(value) and is_shown_number(value, self.heard)
        }
        return any(
            is_number(value)
            and (name, value) not in right
            and not is_shown_number(value, self.heard)
            for name, value in arguments.items()
            if name in shown
        )

    def _out_of_order(self, tool: Tool, arguments: dict[str, object]) -> bool:
        """Whether a call comes before what it needs, or stands where the tool used to stand.

        That is: a required argument is missing that another tool on offer yields and that nothing
        has told yet, or the call
        passes what other tools yield and this one took in the clean interface, but no longer.
        """
        told = {
            name
            for name, value in self._right_values(tool)
            if _is_told(value, self.heard) or self._documented(tool, value)
        }
        missing = [
            p.fact
            for p in tool.params
            if p.required and p.name not in arguments and p.name not in told
        ]
        done = {step.name for step in self.made if step.ok}
        if any(self._source(fact, tool, without=done) for fact in missing):
            return True
        facts, names = {p.fact for p in tool.params}, {p.name for p in tool.params}
        clean = next((t for t in self.clean.values() if t.origin == tool.origin), tool)
        dropped = [p.fact for p in clean.params if p.name in arguments and p.name not in names]
        return any(self._source(fact, tool) for fact in dropped if fact not in facts)

    def _source(
        self, fact: str, tool: Tool, without: set[str] | frozenset[str] = frozenset()
    ) -> bool:
        """Whether another tool on offer yields a fact."""
        return any(
            source.yields(fact)
            for source in self.tools.values()
            if source.name != tool.name and source.name in self.offered - without
        )

    def _texts(self, tool: Tool | None, arguments: dict[str, object]) -> Iterator[tuple[bool, str]]:
        """The texts of a call that must have been shown, and whether the schema takes texts there.

        They stand at any depth; words of a search and what the task expects there are left out.
        """
        params = {param.name: param for param in tool.params} if tool else {}
        if tool and tool.operations is not None:  # what it takes is what its parts took before
            parts = (t for t in self.clean.values() if set(t.origin) <= set(tool.origin))
            params = {p.name: p for part in parts for p in part.params} | params
        right = [
            (path, value)
            for name, given in self._right_values(tool)
            for path, value in _places(name, _read(params.get(name), given))
        ]
        for name, given in arguments.items():
            param = params.get(name)
            for path, value in _places(name, _read(param, given)):
                named = params.get(path[-1])
                inner, rest = (named, ()) if named else (param, path[1:])
                free = inner is not None and inner.free
                expected = any(path == p and _is_same(value, v) for p, v in right)
                if isinstance(value, str) and not free and not expected:
                    yield inner is not None and _takes_text(inner.schema, rest), value

    def _documented(self, tool: Tool | None, value: object) -> bool:
        return tool is not None and any(
            value == p.given or value in _choices(p.schema) for p in tool.params
        )

    def _unsupported(self, tool: Tool | None, value: str) -> str:
        """The mistake in a text that a call passes: made up, or a miscopy; "" where it was shown.

        A value that the tool documented before it changed is none that was made up.
        """
        if is_shown(value, self.heard) or self._documented(tool, value):
            return ""
        before = (t for t in self.clean.values() if tool and t.origin == tool.origin)
        former = any(self._documented(clean, value) for clean in before)
        composed = value.count(" ") >= _WORDS  # a text of its own, such as a note
        return "bad_arguments" if former or composed or self._near(value) else "invented_value"

    def _near(self, value: str) -> bool:
        """Whether a value is a miscopy: nearly the same as a value that was shown."""
        lowered = value.lower()
        if self._off_by_one(lowered):
            return True
        matcher = SequenceMatcher(None, "", lowered, autojunk=False)
        if len(lowered) > _LONG:
            places = range(0, len(self.heard) - len(lowered) + 1, len(lowered) // 8)
            windows = (self.heard[start : start + len(lowered)] for start in places)
            return any(_alike(matcher, window) for window in windows)
        alike = (window for window in self._windows(lowered) if _alike(matcher, window))
        return any(matcher.ratio() >= _NEAR for _ in islice(alike, _MAX_TRIED))

    def _off_by_one(self, value: str) -> bool:
        """Whether a shown value differs in one sign: another, missing or added; by chance if short.

        Only whole values are compared, no part of one.
        """
        if not _SHORT <= len(value) <= _LONG:
            return False
        cuts = [(re.escape(value[:n]), re.escape(value[n + 1 :])) for n in range(len(value))]
        other = [f"{before}.?{after}" for before, after in cuts]
        missing = [f"{re.escape(value[:n])}.{re.escape(value[n:])}" for n in range(1, len(value))]
        return re.search(rf"(?<!\w)(?:{'|'.join(other + missing)})(?!\w)", self.heard) is not None

    def _windows(self, value: str) -> Iterator[str]:
        """The places of about the length of a value that begin and end as it does."""
        for size in range(max(2, len(value) - 1), len(value) + 2):
            start = self.heard.find(value[0])
            while 0 <= start <= len(self.heard) - size:
                if self.heard[start + size - 1] == value[-1]:
                    yield self.heard[start : start + size]
                start = self.heard.find(value[0], start + 1)


def _alike(matcher: SequenceMatcher[str], window: str) -> bool:
    """Whether the letters of a long text are mostly those of another, whatever their order."""
    matcher.set_seq1(window)
    return matcher.quick_ratio() >= _NEAR


def _read(param: Param | None, given: object) -> object:
    """An argument before a shape was given to it."""
    return param.read(given) if param else given


def _places(name: str, value: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """The single values in an argument, each with the keys that lead to it; lists have none."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from (((name, *path), one) for path, one in _places(str(key), part))
    elif isinstance(value, list):
        for part in value:
            yield from _places(name, part)
    else:
        yield (name,), value


def _inside(arguments: dict[str, object]) -> Iterator[object]:
    """The single values in the arguments of a call."""
    for name, given in arguments.items():
        yield from (value for _, value in _places(name, given))


def _is_same(value: object, right: object) -> bool:
    """Whether two single values are the same, in whatever form."""
    one, other = str(value), str(right)
    if one.casefold() == other.casefold():
        return True
    read, wanted = value_of(one), value_of(other)
    return bool(read) and len(read) == len(wanted) and all(map(Value.same, read, wanted))


def _choices(schema: object) -> Iterator[object]:
    """The values that a schema names at any depth: choices, constants, defaults and examples."""
    if isinstance(schema, list):
        for part in schema:
            yield from _choices(part)
    elif isinstance(schema, dict):
        for key, part in schema.items():
            if key in ("enum", "const", "default", "examples") and not isinstance(part, dict):
                yield from part if isinstance(part, list) else [part]
            else:
                yield from _choices(part)


def _takes_text(schema: object, path: Sequence[str]) -> bool:
    """Whether a schema takes texts or choices at a place, which `_places` names."""
    if not isinstance(schema, dict):
        return False
    parts = [schema[key] for key in ("anyOf", "oneOf", "allOf", "items") if key in schema]
    options = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    inner = schema.get("properties")
    if any(_takes_text(option, path) for option in options):
        return True
    if path:
        return isinstance(inner, dict) and _takes_text(inner.get(path[0]), path[1:])
    if options and "type" not in schema:
        return False
    kinds = schema.get("type", "string")
    return "string" in ([kinds] if isinstance(kinds, str) else kinds)


def _writes_by_name(effects: Iterable[Sequence[object]]) -> Counter[str]:
    return Counter(str(effect[0]) for effect in effects)


def _useful(scene: Scene) -> set[str]:
    """The tools of the task: those that the oracle calls, and their equals."""
    called = {step.name for step in scene.calls}
    origins = {o for tool in scene.reachable if tool.name in called for o in tool.origin}
    clean = {name for step in scene.clean.calls for name, _ in step.true}
    return called | {
        tool.name
        for tool in scene.reachable
        if set(tool.origin) & (origins | clean) and tool.authority >= 0
    }
