"""Why an episode failed, by rule from its trace and the two interfaces.

The rules see what was shown (clean and shifted tools, results, the user) and what the agent did.
They never see a shift's name, tier or dimension. In a failed episode they look for slips, the
agent's own deviations, in the order in which they were made; the first slip that was not made
good is the root cause. Where there is none, the ending itself is the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from typing import TypeGuard

from toolshift.core.message import PROTOCOL_NAMES, REASONS
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Param, Tool, validator
from toolshift.core.user import Ask
from toolshift.episode.episode import REPEATS, End
from toolshift.episode.grading_rules import (
    answers_right,
    guesses_among,
    is_decisive,
    is_plain,
    shown_fields,
)
from toolshift.reading.answer_check import passage
from toolshift.reading.pages import offers_more
from toolshift.reading.shown_values import is_shown, is_shown_number
from toolshift.reading.text import fold

CAUSES = (
    "memorised_name",
    "wrong_tool",
    "bad_arguments",
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
    "budget",
    "infrastructure",
    "simulator",
    "unrecorded",
    "broken_shift",
    "own_outage",
)
"""Every cause, with its meaning:

- memorised_name: called a tool by (nearly) a name of the clean interface that is not on offer.
- wrong_tool: called a tool that never was on offer, or that has no part in the task.
- bad_arguments: an argument that nothing shown supports, that misses what was shown narrowly, or
  that the schema shown does not allow, or another than the task needs; or a required one that was
  missing.
- filled_option: passed an optional parameter that the task does not need, with a value that the
  schema shown does not allow; without it the call was right in form.
- ignored_result: had been told the value, the answer, or all that it depends on, and used another.
- ignored_update: kept to what had been replaced: a rule, a value, or the user's earlier request.
- missed_page: left a part of a result unread that the task needs: further pages, or what comes only
  where it is asked for.
- surplus_write: made a write twice, or one that nobody had asked for.
- no_recovery: stopped at a failure or a notice that offered a way on.
- wrong_order: called a tool before the one that yields what it needs.
- repetition: made the same call again although nothing had asked for it, or until a limit on that.
- guessed_among_codes: offered several codes and left it open which is meant.
- answered_without_evidence: answered although the request could not be, or was not, fulfilled.
- wrong_refusal: refused a request that could be fulfilled, or before there was a reason to.
- malformed_output: a call that could not be read, or an agent that broke down.
- budget: ran out of calls or turns.
- infrastructure, simulator: not the agent's failure, but its endpoint's or the simulated user's.
- unrecorded: made a call that the recording does not know; neither a pass nor a failure.
- broken_shift: the code of the shift raised; neither a pass nor a failure.
- own_outage: its own program said that what it needs is out of order; neither a pass nor a failure.
"""

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
_LONG = 100  # letters of a value from which on it is compared roughly: exactly is not linear
_MAX_TRIED = 300  # places with the letters of a value that are compared exactly


def current_name(cause: str) -> str:
    """The current name of a cause; files of format 1 have other names for two causes."""
    return FORMER_NAMES.get(cause, cause)


def cause_of(scene: Scene, steps: Sequence[Step], end: End) -> str:
    """The root cause of a failed episode; one of `CAUSES`."""
    if end == "infrastructure":
        return "infrastructure"
    if end == "crashed":
        return "malformed_output"
    slips = list(_slips(scene, steps))
    if end == "budget":
        in_a_loop = bool(steps) and steps[-1].said == REPEATS
        return _most(slips) or ("repetition" if in_a_loop else "budget")
    evidence = any(is_decisive(scene, step) for step in steps)
    if not scene.solvable and evidence and end == "answered":
        return "answered_without_evidence"
    if slips:
        return slips[0][1]
    if end == "refused" or _refused_a_turn(scene, steps):
        return "no_recovery" if _stopped_short(scene, steps) else "wrong_refusal"
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
    slips = (number for number, named in _slips(scene, steps) if named == cause)
    return next(slips, _wrong_ending(scene, steps, cause))


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
    if any(ask.expected for ask in scene.asks) and _kept_to_an_earlier_turn(steps, answers):
        return "ignored_update"
    if _was_told_the_answer(scene, steps, answers) or _was_told_all(scene, steps):
        return "ignored_result"
    picked = _picked_another(scene, steps)
    if picked is not None:
        return "ignored_result" if _was_told_better(scene, steps, picked) else "bad_arguments"
    return "no_recovery" if _stopped_short(scene, steps) else "answered_without_evidence"


def _was_told_the_answer(scene: Scene, steps: Sequence[Step], answers: Sequence[str]) -> bool:
    """Whether an answer is wrong although results had shown the right one."""
    shown = "\n".join(step.text for step in steps if step.kind == "call")
    right = (*answers_right(scene, steps), *(False for _ in scene.asks))
    missed = [
        ask
        for ask, is_right in zip(scene.asks, right, strict=False)
        if ask.expected and not (is_right if is_plain(ask) else _is_given(ask.expected, answers))
    ]
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
    """Whether a wrong answer offers several codes instead of stating one."""
    fields = shown_fields(scene, steps)
    answers = [step.said for step in steps if step.kind == "answer"]
    right = answers_right(scene, steps)
    return any(
        not is_right and ask.expected is not None and guesses_among(answer, fields)
        for ask, answer, is_right in zip(scene.asks, answers, right, strict=False)
    )


def _kept_to_an_earlier_turn(steps: Sequence[Step], answers: Sequence[str]) -> bool:
    """Whether the last answer repeats an answer from before the user's last turn."""
    return len(answers) > 1 and answers[-1] in answers[:-1]


def _was_told_all(scene: Scene, steps: Sequence[Step]) -> bool:
    """Whether an answer is wrong although every right call was made."""
    right = [call for step in scene.calls for call in step.true]
    made = [call for step in steps if step.ok for call in step.true]
    wrong = not all(answers_right(scene, steps)) and not scene.outcome.calls_alone
    return wrong and bool(right) and all(call in made for call in right)


def _picked_another(scene: Scene, steps: Sequence[Step]) -> int | None:
    """The first call of a tool of the task that is not a right call; None if there is none."""
    right = [call for step in scene.calls for call in step.true]
    names = {name for name, _ in right}
    wanted = scene.outcome.effects
    others = (
        number
        for number, step in enumerate(steps)
        if step.ok
        and any(call[0] in names and call not in right for call in step.true)
        and not (step.effects and all(effect in wanted for effect in step.effects))
    )
    return next(others, None)


def _was_told_better(scene: Scene, steps: Sequence[Step], number: int) -> bool:
    """Whether the right values for the wrong arguments of a call had been shown before it.

    The right call is that of the same tool which has most of the arguments. The same value in
    another form is no other value. Where the calls alone count, only results tell: the request is
    what they are made from.
    """
    if not (scene.outcome.calls_alone or any(map(is_plain, scene.asks))):
        return True  # every value of a task whose answers are codes is told, in some unit or form
    right = [call for step in scene.calls for call in step.true]
    name, made = next(call for call in steps[number].true if call not in right)
    rivals = [arguments for other, arguments in right if other == name]
    wrong = min((list(_wrong_values(other, made)) for other in rivals), key=len, default=[])
    seen = "\n".join(_told_before(scene, steps[:number]))
    return bool(wrong) and all(
        _is_told(value, seen) and not is_shown(str(other), str(value)) for value, other in wrong
    )


def _told_before(scene: Scene, steps: Sequence[Step]) -> Iterator[str]:
    """The text of results, and the user's words if more than the calls counts."""
    alone = scene.outcome.calls_alone
    if not alone:
        yield scene.asks[0].text
    for step in steps:
        if step.kind == "call" or not alone:
            yield f"{step.text}\n{step.notice}"


def _wrong_values(right: object, made: object) -> Iterator[tuple[object, object]]:
    """The right values that are missing or different in the passed arguments."""
    if isinstance(right, dict) and isinstance(made, dict):
        for key, value in right.items():
            yield from _wrong_values(value, made.get(key))
    elif right != made:
        yield right, made


def _is_told(value: object, shown: str) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return all(_is_told(part, shown) for part in inner)
    if _is_number(value):
        return is_shown_number(value, shown)
    return is_shown(str(value), shown)


def _slips(scene: Scene, steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """The agent's mistakes that were not corrected: step number and cause."""
    watch = _Watch(scene)
    for number, step in enumerate(steps):
        if step.kind == "call":
            after = steps[number + 1 :]
            cause = (
                watch.judge(step)
                or watch.judge_write(step)
                or _left_unread(scene, step, after)
                or _passed_over(scene, step, after)
            )
            harmless = cause == "wrong_tool" and _came_to_nothing(watch, step, after)
            lasting = cause in LASTING or not _made_good(after, step, scene)
            if cause and not harmless and lasting:
                yield number, cause
        watch.hear(step)


def _came_to_nothing(watch: _Watch, step: Step, after: Sequence[Step]) -> bool:
    """Whether a call of an unrelated tool did no harm."""
    went_on = any(s.kind == "call" and s.ok and s.name in watch.useful for s in after)
    return went_on and not _made_use_of(step, after)


def _left_unread(scene: Scene, step: Step, after: Sequence[Step]) -> str:
    """Whether a part of a result was left unread that the oracle reads."""
    if _never_asked_for(scene, step, after) or _stopped_at_a_page(scene, step, after):
        return "missed_page"
    if step.hint != "page" or any(s.kind == "call" and s.name == step.name for s in after):
        return ""
    walk = scene.calls
    read_on = any(
        call.hint == "page"
        and call.name == step.name
        and step.name in {s.name for s in walk[n + 1 :]}
        for n, call in enumerate(walk)
    )
    return "missed_page" if read_on else ""


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


def _made_use_of(step: Step, after: Sequence[Step]) -> bool:
    """Whether a call wrote something, or what it returned was said or passed on later."""
    messages = [later.said for later in after]
    passed = [v for s in after for v in s.given.values()]
    values = [value for value in (*messages, *passed) if isinstance(value, str) and len(value) > 3]
    before = str(step.arguments)
    return bool(step.effects) or any(v in step.text and v not in before for v in values)


def _passed_over(scene: Scene, step: Step, after: Sequence[Step]) -> str:
    """Whether the agent ignored a failure that offered a way on and used another tool."""
    following = next((later for later in after if later.kind == "call"), None)
    if step.ok or step.hint not in WAY_ON or following is None or following.name == step.name:
        return ""
    same = _origins(scene, step.name) & _origins(scene, following.name)
    return "" if same else "no_recovery"


def _made_good(after: Sequence[Step], slip: Step, scene: Scene) -> bool:
    """Whether a later call of the same tool, or of the intended tool, succeeded."""
    if slip.name in PROTOCOL_NAMES:
        return any(step.kind in ("ask", "answer", "refuse") for step in after)
    stood_for = _origins(scene, slip.name)
    return any(
        step.kind == "call"
        and step.ok
        and step != slip
        and (step.name == slip.name or stood_for & {name for name, _ in step.true})
        for step in after
    )


def _origins(scene: Scene, name: str) -> set[str]:
    tools = (*scene.reachable, *scene.clean.reachable)
    return {origin for tool in tools if tool.name == name for origin in tool.origin}


class _Watch:
    """Follows an episode and judges each call by what was shown before it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.tools = {tool.name: tool for tool in scene.reachable}
        self.clean = {tool.name: tool for tool in scene.clean.reachable}
        self.offered = {tool.name for tool in scene.tools}
        self.once = set(self.offered)
        self.heard = f"{scene.system}\n{scene.asks[0].text}".lower()
        self.results = ""
        self.made: list[Step] = []
        self.useful = _useful(scene)
        self.wanted = _writes_by_name(scene.outcome.effects + scene.outcome.forgiven)
        self.written: Counter[str] = Counter()

    def hear(self, step: Step) -> None:
        """Records what a step has shown."""
        self.heard += f"\n{step.text}\n{step.notice}".lower()
        if step.kind == "call":
            self.results += "\n" + step.text
            self.made.append(step)
        if step.tools:
            self.offered = set(step.tools)
            self.once |= self.offered

    def judge(self, step: Step) -> str:
        """The mistake in a call; "" if it is correct."""
        if step.error == "malformed_arguments" or step.name in PROTOCOL_NAMES:
            return "malformed_output"
        if self._repeats(step):  # of one that is refused for its options, that is still the mistake
            return "filled_option" if self._refused_for_options(step) else "repetition"
        if step.name not in self.offered:
            gone = (self.clean.keys() | self.once) - self.offered
            near = step.name in gone or get_close_matches(step.name, gone, cutoff=_ALIKE)
            return "memorised_name" if near else "wrong_tool"
        return self._judge_choice(step) or self._judge_arguments(step)

    def judge_write(self, step: Step) -> str:
        """Whether a call wrote more often, or something else, than was requested."""
        before = self.written.copy()
        self.written += _writes_by_name(step.effects)
        over = [name for name, count in self.written.items() if count > self.wanted[name]]
        return "surplus_write" if any(self.written[n] > before[n] for n in over) else ""

    def _repeats(self, step: Step) -> bool:
        same = [s for s in self.made if s.name == step.name and s.arguments == step.arguments]
        return bool(same) and same[-1].hint != "retry" and not same[-1].ok

    def _judge_choice(self, step: Step) -> str:
        tool = self.tools.get(step.name)
        if tool is None or step.name in self.useful:
            return ""
        meant = self.clean.get(step.name)
        moved = meant is not None and meant.origin != tool.origin
        return "memorised_name" if moved else "wrong_tool"

    def _judge_arguments(self, step: Step) -> str:
        tool, given = self.tools.get(step.name), step.given
        if step.malformed:
            return "malformed_output"
        if step.error == "invalid_arguments" and tool is not None:
            if self._refused_for_options(step):
                return "filled_option"
            return "wrong_order" if self._out_of_order(tool, given) else "bad_arguments"
        for param, value in self._texts(tool, given):
            if not (is_shown(value, self.heard) or self._documented(tool, value)):
                return self._unsupported(param, value)
        if not step.ok and not step.provoked and self._outdated(tool, given):
            return "ignored_update"
        if self._invented_number(tool, given):
            return "bad_arguments"
        if step.ok or step.provoked or step.error == "gone":
            return ""
        return "bad_arguments"

    def _refused_for_options(self, step: Step) -> bool:
        """Whether a call was refused for optional parameters alone, which the oracle leaves out."""
        tool, arguments = self.tools.get(step.name), step.given
        if step.error != "invalid_arguments" or tool is None:
            return False
        used = {name for name, _ in self._right_values(tool)}
        spare = {p.name for p in tool.params if not p.required and p.name not in used}
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
        """Whether a value was passed that a later word of a result or the user had replaced."""
        return any(
            name in arguments
            and arguments[name] != right
            and -1
            < self.heard.rfind(str(arguments[name]).lower())
            < self.heard.rfind(str(right).lower())
            for name, right in self._right_values(tool)
            if isinstance(right, str)
        )

    def _invented_number(self, tool: Tool | None, arguments: dict[str, object]) -> bool:
        """Whether a number was passed that was never stated, although the right one was."""
        right = {
            name: value
            for name, value in self._right_values(tool)
            if _is_number(value) and is_shown_number(value, self.heard)
        }
        return any(
            _is_number(value) and value != right[name] and not is_shown_number(value, self.heard)
            for name, value in arguments.items()
            if name in right
        )

    def _out_of_order(self, tool: Tool, arguments: dict[str, object]) -> bool:
        """Whether a call comes before what it needs, or stands where the tool used to stand.

        That is: a required argument is missing that another tool on offer yields, or the call
        passes what other tools yield and this one took in the clean interface, but no longer.
        """
        missing = [p.fact for p in tool.params if p.required and p.name not in arguments]
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

    def _texts(
        self, tool: Tool | None, arguments: dict[str, object]
    ) -> Iterator[tuple[Param | None, str]]:
        """The texts that a call passes, each with its parameter, before a shape was given to them.

        Words of a search are left out, for they need not have been shown.
        """
        params = {param.name: param for param in tool.params} if tool else {}
        if tool and tool.operations is not None:  # what it takes is what its parts took before
            parts = (t for t in self.clean.values() if set(t.origin) <= set(tool.origin))
            params = {p.name: p for part in parts for p in part.params} | params
        for name, value in arguments.items():
            param = params.get(name)
            plain = param.read(value) if param else value
            if isinstance(plain, str) and not (param and param.free):
                yield param, plain
            elif isinstance(plain, dict):
                yield from (
                    (params.get(k, param), v) for k, v in plain.items() if isinstance(v, str)
                )

    def _documented(self, tool: Tool | None, value: str) -> bool:
        return tool is not None and any(
            value in p.schema.get("enum", ()) or value == p.given for p in tool.params
        )

    def _unsupported(self, param: Param | None, value: str) -> str:
        """The mistake behind a value that was never shown."""
        if self._near(value):
            return "bad_arguments"
        fact = param.fact if param else ""
        was_shown = any(
            self.tools[step.name].yields(fact)
            for step in self.made
            if step.ok and step.name in self.tools
        )
        return "ignored_result" if was_shown else "bad_arguments"

    def _near(self, value: str) -> bool:
        """Whether a value is a miscopy: nearly the same as a value that was shown."""
        lowered = value.lower()
        matcher = SequenceMatcher(None, "", lowered, autojunk=False)
        if len(lowered) > _LONG:
            places = range(0, len(self.heard) - len(lowered) + 1, len(lowered) // 8)
            windows = (self.heard[start : start + len(lowered)] for start in places)
            return any(_alike(matcher, window) for window in windows)
        alike = (window for window in self._windows(lowered) if _alike(matcher, window))
        return any(matcher.ratio() >= _NEAR for _ in islice(alike, _MAX_TRIED))

    def _windows(self, value: str) -> Iterator[str]:
        """The places of about the length of a value that begin and end as it does."""
        for size in range(max(2, len(value) - 1), len(value) + 2):
            for start in range(max(0, len(self.heard) - size + 1)):
                window = self.heard[start : start + size]
                if window[0] == value[0] and window[-1] == value[-1]:
                    yield window


def _alike(matcher: SequenceMatcher[str], window: str) -> bool:
    """Whether the letters of a long text are mostly those of another, whatever their order."""
    matcher.set_seq1(window)
    return matcher.quick_ratio() >= _NEAR


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
