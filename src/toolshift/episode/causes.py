"""Why an episode failed, by rule from its trace and the two interfaces.

The rules see what was shown (clean and shifted tools, results, the user) and what the agent did.
They never see a shift's name, tier or dimension. In a failed episode they look for slips, the
agent's own deviations, in the order in which they were made; the first slip that was not made
good is the root cause. Where there is none, the ending itself is the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from toolshift.core.ask import Ask
from toolshift.core.message import PROTOCOL_NAMES, REASONS
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.episode.call_watch import (
    CallWatch,
    differing,
    is_told,
    origins_of,
    since_an_answer,
    until_an_answer,
    values_in,
)
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
from toolshift.reading.shown_values import is_shown
from toolshift.reading.text import fold

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
_PAGE_ARGUMENTS = 2  # arguments in which the calls for two pages may differ
_STATES = re.compile(r"\d|\b[A-Z]{2}")  # a number or a code, without which nothing is stated


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
    if end == "answered" and _said_nothing(scene, steps):
        return BROKE_DOWN
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


def _said_nothing(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether the first wrong answer is empty; the last answer, where none is wrong."""
    answers = [step for step in steps if step.kind == "answer"]
    right = answers_right(scene, steps)
    wrong = [step for step, fine in zip(answers, right, strict=False) if not fine]
    judged = (wrong or answers[-1:])[:1]
    return any(not step.said.strip() and step.name not in REASONS for step in judged)


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
    unlike = [
        str(value)
        for both in (_wrong_values(one, other), _wrong_values(other, one))
        for value, _ in both
    ]
    return any(all(is_shown(value, text) for value in unlike) for text in results)


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
    since = [call for s in since_an_answer(steps[:number]) if s.ok for call in s.true]
    if any(call in due and call not in since for call in step.true):
        return []
    made = [call for s in (*steps[:number], *until_an_answer(steps[number:])) for call in s.true]
    name, arguments = step.true[-1]
    seen = "\n".join(_told_before(scene, steps[:number]))
    return [
        call
        for call in due
        if call[0] == name
        and call not in made
        and all(is_told(value, seen) for value, _ in _wrong_values(call[1], arguments))
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
            f"{brought}\n{[value for _, given in steps[picked].true for value in values_in(given)]}"
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
    by_user = not scene.outcome.calls_alone and all(is_told(value, said) for value, _ in wrong)
    if not wrong or by_user:
        return False
    told = all(is_told(value, seen) for value, _ in wrong)
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


def _slips(scene: Scene, steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """The agent's mistakes that were not corrected: step number and cause."""
    watch = CallWatch(scene)
    right = answers_right(scene, steps) if len(scene.asks) > 1 else []
    for number, step in enumerate(steps):
        if step.kind == "call":
            after = steps[number + 1 :]
            answered_wrong = not all(right[watch.turn : watch.turn + 1])
            in_time = until_an_answer(after) if answered_wrong else after
            cause = (
                watch.judge_wish(step, after)
                or watch.judge(step)
                or watch.judge_write(step, steps[:number], after)
                or _wrote_another(scene, steps, number)
                or _left_unread(scene, step, after)
                or _passed_over(scene, step, after)
            )
            wrote = _writes_unasked(scene, step)
            asked = (*scene.outcome.effects, *scene.outcome.forgiven)
            in_place = bool(asked) and not _went_on(scene, steps[:number], after)
            if cause == "wrong_tool" and wrote and not in_place:  # of a write, or of another step
                cause = "surplus_write"
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
    around = (*since_an_answer(before), *until_an_answer(steps[number + 1 :]))
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


def _came_to_nothing(watch: CallWatch, step: Step, after: Sequence[Step]) -> bool:
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
        differing(call, later)
        for n, call in enumerate(scene.calls)
        for later in scene.calls[n + 1 :]
        if call.name == later.name == step.name and offers_more(call.text)
    ]
    varied = [keys for keys in turns if 0 < len(keys) <= _PAGE_ARGUMENTS]
    if _is_unread(_next_call(after)) or any(_asked_on(scene, step, s, varied) for s in after):
        return False
    return bool(varied) and not any(
        later.name == step.name and later.ok and differing(step, later) in varied for later in after
    )


def _asked_on(scene: Scene, step: Step, later: Step, varied: Sequence[frozenset[str]]) -> bool:
    """Whether a call was to read on, and was refused for the page that it names: its own mistake.

    The page may stand in an argument that the tool has not, such as a cursor.
    """
    if later.name != step.name or later.error != "invalid_arguments":
        return False
    tool = next((tool for tool in scene.reachable if tool.name == step.name), None)
    known = {param.name for param in tool.params} if tool else set()
    unlike = differing(step, later)
    return bool(unlike) and any(unlike & known <= keys for keys in varied)


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
    stands_for = origins_of(scene, following.name)
    came = not stands_for and following.name not in {tool.name for tool in scene.reachable}
    if _is_unread(following) or came:  # no tool at all, or one that has come since
        return ""
    same = origins_of(scene, step.name) & stands_for
    return "" if same else "no_recovery"


def _made_good(after: Sequence[Step], slip: Step, scene: Scene) -> bool:
    """Whether a later call of the same tool, or of the intended tool, succeeded."""
    if slip.name in PROTOCOL_NAMES:
        return any(step.kind in ("ask", "answer", "refuse") for step in after)
    stood_for = origins_of(scene, slip.name)
    right = [(step.name, step.given) for step in scene.calls]
    return any(
        step.kind == "call"
        and (step.ok or (step.hint in WAY_ON and (step.name, step.given) in right))
        and step != slip
        and (step.name == slip.name or stood_for & {name for name, _ in step.true})
        for step in after
    )
