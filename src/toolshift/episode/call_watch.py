"""Judges each call of an episode by what was shown before it: is it a slip, and of which kind?

Slips have the names of causes; `causes.CAUSES` says what each means, and that module which slip
was the root of a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice, takewhile

from toolshift.core.message import PROTOCOL_NAMES
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Param, Tool, validator
from toolshift.core.values import is_number
from toolshift.episode.grading_rules import due_by_turn
from toolshift.reading.shown_values import is_shown, is_shown_number
from toolshift.reading.values import Value, value_of

_ALIKE = 0.85  # similarity from which a name counts as the memory of another
_NEAR = 0.8  # similarity from which a wrong value counts as a miscopy of one that was shown
_WORDS = 5  # spaces from which on a value is a text, and no name or choice
_SHORT = 5  # letters of a value from which on one other sign makes a miscopy of it
_LONG = 100  # letters of a value from which on it is compared roughly: exactly is not linear
_MAX_TRIED = 300  # places with the letters of a value that are compared exactly


class CallWatch:
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
        rest = until_an_answer(after)
        nearest = min(due, key=lambda call: len(differing(step, call)))
        around = (*since_an_answer(self.steps), *rest)
        if any(s.name == step.name and not differing(s, nearest) for s in around):
            return ""
        taken_back = self.scene.asks[self.turn].expected is None
        if taken_back and len(rest) < len(after) and not self._writes_too_much((step, *rest)):
            return ""
        keys = differing(step, nearest)
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
        around = (*since_an_answer(before_it), *until_an_answer(after))
        elsewhere = [tuple(e) for s in around for e in s.effects]
        in_addition = any(
            all(other in elsewhere for other in wanted if other[0] == effect[0])
            for effect in strange
        )
        return "surplus_write" if in_addition else ""

    def _repeats(self, step: Step) -> bool:
        attempts = since_an_answer(self.steps)[::-1]  # another request may need it again
        same = [s for s in attempts if s.name == step.name and s.arguments == step.arguments]
        if not same or (step.error == "unknown_tool" != same[-1].error):  # it has gone since
            return False
        return same[-1].hint != "retry" and not same[-1].ok

    def _repeats_a_write(self, step: Step) -> bool:
        """Whether a write that has been made was tried again, and only the world prevented it."""
        made = (s for s in since_an_answer(self.steps) if s.effects)
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
        right = [value for call in step.true if call in self.right for value in values_in(call[1])]
        for _, value in self._texts(tool, given):
            if value not in right and (mistake := self._unsupported(like, value)):
                return mistake
        if not step.ok and not step.provoked and self._outdated(tool, given):
            return "ignored_update"
        if self._invented_number(tool, given):
            return "bad_arguments"
        if step.ok or step.provoked or step.error == "gone":
            return ""
        return "wrong_order" if self._too_early(step) else "bad_arguments"

    def _too_early(self, step: Step) -> bool:
        """Whether a call is as the task needs it, and stands before one that has to go before it.

        What it passes is right, even where nothing has told it yet: only its place is wrong.
        """
        done = [call for made in self.made if made.ok for call in made.true]
        walk = [call for call in self.scene.rehearsal if call.kind == "call" and call.ok]
        before = takewhile(lambda call: call.name != step.name or differing(call, step), walk)
        needed = list(before)
        return len(needed) < len(walk) and any(
            call not in done for each in needed for call in each.true
        )

    def _stood_for(self, name: str) -> Tool | None:
        """The clean tool in the place of which one has come since the tools were listed."""
        origins = origins_of(self.scene, name)
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
        made = [step.given for step in self.made if step.ok and step.name == tool.name]
        alike = [given for given in alike if given not in made] or alike  # what is still to come
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
            is_told(right, new)
            and is_told(made, before)
            and not is_told(right, before.replace(old, " ") if within else before)
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
            if is_told(value, self.heard) or self._documented(tool, value)
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


def is_told(value: object, shown: str) -> bool:
    """Whether what was shown states a value, with all that is inside of it."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return all(is_told(part, shown) for part in inner)
    if is_number(value):
        return is_shown_number(value, shown)
    return is_shown(str(value), shown)


def until_an_answer(steps: Iterable[Step]) -> list[Step]:
    """The first steps, up to an answer."""
    return list(takewhile(lambda step: step.kind != "answer", steps))


def since_an_answer(steps: Sequence[Step]) -> list[Step]:
    """The last steps, back to an answer, the last one first."""
    return until_an_answer(reversed(steps))


def differing(one: Step, other: Step) -> frozenset[str]:
    """The arguments in which two calls differ."""
    before, now = one.given, other.given
    missing = object()
    return frozenset(
        key
        for key in before.keys() | now.keys()
        if before.get(key, missing) != now.get(key, missing)
    )


def origins_of(scene: Scene, name: str) -> set[str]:
    """The true tools behind a name: of a tool that was shown, or that the oracle came to call."""
    tools = (*scene.reachable, *scene.clean.reachable)
    shown = {origin for tool in tools if tool.name == name for origin in tool.origin}
    return shown or {true for step in scene.calls if step.name == name for true, _ in step.true}


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


def values_in(arguments: dict[str, object]) -> Iterator[object]:
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
