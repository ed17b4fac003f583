"""When an answer is right, and when evidence is decisive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

import msgspec

from toolshift.core.ask import Ask
from toolshift.core.codecs import leaves
from toolshift.core.message import CODE
from toolshift.core.render import FORMS
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.values import as_json
from toolshift.reading.answers.by_type import Verdict, judge
from toolshift.reading.answers.by_words import (
    UNKNOWN,
    data_values,
    is_pattern,
    matches,
    offers_several,
    passage,
    says_text,
)
from toolshift.reading.answers.kinds import AnswerKind
from toolshift.reading.code_roles import FILLERS, Mention, read_roles
from toolshift.reading.quantity import RequestContext
from toolshift.reading.text import fold, imitated_codes

Fields = Mapping[str, frozenset[str]]
"""Shown codes with the fields that they came from; empty if that is not known."""

Results = Sequence[frozenset[str]]
"""The codes of each result that showed some."""

_WORD = re.compile(r"[^\W\d_]+")


def answers_right(scene: Scene, steps: Sequence[Step]) -> list[bool]:
    """Whether each answer of a trace is right, in order; one that is unclear is not."""
    return [verdict == "right" for verdict in answer_verdicts(scene, steps)]


def answer_verdicts(scene: Scene, steps: Sequence[Step]) -> list[Verdict]:
    """What each answer of a trace is, in order; unclear only where a check says its type."""
    said = [step for step in steps if step.kind == "answer"]
    answers = [step.said for step in said]
    plain = [is_plain(ask) for ask in scene.asks]
    codes = [
        ask.expected
        for ask, words in zip(scene.asks, plain, strict=True)
        if not words and ask.expected is not None
    ]
    bare = not codes or all(CODE.fullmatch(answer.strip().upper()) for answer in answers)
    fields = {} if bare else shown_fields(scene, steps)
    results = codes_of_results(steps) if fields else ()
    shown = _all_shown(scene, steps) if any(plain) else ""
    data = _shown_as_data(steps) if any(plain) else ""
    return [
        _verdict_in(
            _wordings(scene, place), ask, step, own_words(step.said, steps), f"{shown}\n{data}"
        )
        if words
        else _told(is_right(ask, step.said, fields, results))
        for place, (ask, step, words) in enumerate(zip(scene.asks, said, plain, strict=False))
    ]


def _wordings(scene: Scene, place: int) -> list[str]:
    """A request as it is said, and as it was before a shift where it wants the same."""
    ask = scene.asks[place]
    before = [
        each.text
        for each in scene.clean.asks[place : place + 1]
        if (each.pattern, each.expected, each.kind) == (ask.pattern, ask.expected, ask.kind)
    ]
    return list(dict.fromkeys((ask.text, *before)))


def _verdict_in(wordings: list[str], ask: Ask, step: Step, answer: str, shown: str) -> Verdict:
    """The verdict by the words of a request; one that is misspelt makes no right answer wrong."""
    verdicts = [_verdict_on(ask, words, step, answer, shown) for words in wordings]
    return "right" if "right" in verdicts else verdicts[0]


def _verdict_on(ask: Ask, request: str, step: Step, answer: str, shown: str) -> Verdict:
    """What a plain answer is: by its type where the check says one, else by the words."""
    context = RequestContext(request, shown)
    if not (ask.pattern and ask.kind):
        return _told(is_right(ask, answer, {}, (), context))
    verdict = judge(answer, ask.pattern, cast(AnswerKind, ask.kind), context)
    return _told(step.told == "right") if verdict == "unclear" and step.told else verdict


def _told(right: bool) -> Verdict:
    return "right" if right else "wrong"


def _all_shown(scene: Scene, steps: Sequence[Step]) -> str:
    """The text that the agent has read beside the requests: tool descriptions and results."""
    descriptions = [(tool.name, tool.description) for tool in scene.tools]
    descriptions += [
        (p.name, p.schema.get("description", "")) for t in scene.tools for p in t.params
    ]
    return "\n".join(
        (*(step.text for step in steps), *(f"{name} {text}" for name, text in descriptions))
    )


def _shown_as_data(steps: Sequence[Step]) -> str:
    """What results in other forms than JSON say, as JSON: the form changes no verdict."""
    texts = [step.text for step in steps if step.kind == "call" and step.ok]
    found = [_read_back(text) for text in dict.fromkeys(texts) if _as_json(text) is None]
    return "\n".join(as_json(data) for data in found if data)


@lru_cache(maxsize=256)
def _read_back(text: str) -> Any:
    """The data of a text in one of the forms of results; None where it is in none of them."""
    for form in FORMS.values():
        with suppress(Exception):  # each form rejects a text of another one in its own way
            data = form.read(text)
            if isinstance(data, dict | list) and form.write(data) == text:
                return data
    return None


def is_plain(ask: Ask) -> bool:
    """Whether the answer to a request is a plain value or words, not one of our codes."""
    return bool(ask.pattern) or not (ask.expected is None or CODE.fullmatch(ask.expected))


def leaves_choice(ask: Ask, answer: str) -> bool:
    """Whether an answer says the expected plain value, and another one in case it is that."""
    wanted = ask.pattern or ask.expected
    return isinstance(wanted, str) and not is_pattern(wanted) and offers_several(answer, wanted)


def own_words(answer: str, steps: Sequence[Step]) -> str:
    """Removes results that an answer only copies as they were shown.

    One record is handed on with the name of each value, which is an answer. A list of records, and
    two results or more, leave it to the reader what the answer is.
    """
    rest = fold(answer)
    texts = [fold(step.text).strip() for step in steps if step.kind == "call" and step.ok]
    results = [text for text in dict.fromkeys(texts) if _is_data(text)]
    given = _as_json(rest)
    handed_on = [text for text in results if text in rest or _as_json(text) == given is not None]
    if not any(map(_is_list, handed_on)) and len(handed_on) < 2:
        return answer
    if given is not None:
        return ""
    for text in handed_on:
        rest = rest.replace(text, " ")
    return rest


def _is_data(text: str) -> bool:
    """Whether a text is data, or several lines: a sentence may be handed on."""
    return _as_json(text) is not None or text.count("\n") > 1


def _is_list(text: str) -> bool:
    data = _as_json(text)
    return isinstance(data, list) and len(data) > 1


def _as_json(text: str) -> Any:
    """The object or list that a text is; None for any other."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return data if isinstance(data, dict | list) else None


def codes_of_results(steps: Sequence[Step]) -> Results:
    """The codes that each result of a trace has shown, of those that have any."""
    by_result = (frozenset(CODE.findall(fold(step.text))) for step in steps if step.kind == "call")
    return tuple(codes for codes in by_result if codes)


def _is_dump(stated: set[str], expected: str, results: Results, in_data: bool) -> bool:
    """Whether an answer copies every code of a result, or every code there is.

    Three codes of a result are a dump whichever result it is, and so are two that stand in data.
    """
    fewest = 2 if in_data else 3
    if any(len(codes) >= fewest and codes <= stated for codes in results):
        return True
    sources = [codes for codes in results if expected in codes]
    whole = frozenset[str]().union(*results)
    return any(len(codes) >= 2 and codes <= stated for codes in (*sources, whole))


def is_right(
    ask: Ask, answer: str, fields: Fields, results: Results = (), context: RequestContext = UNKNOWN
) -> bool:
    """Whether an answer is right, if one is expected."""
    if ask.pattern:
        return matches(answer, ask.pattern, context)
    if is_plain(ask):
        return says_text(answer, ask.expected or "", context)
    return ask.expected is None or states(answer, ask.expected, fields, results)


def shown_fields(scene: Scene, steps: Sequence[Step]) -> Fields:
    """The codes that the agent was shown, with their fields: the true calls are made again."""
    calls = [step for step in steps if step.kind == "call"]
    fields: dict[str, frozenset[str]] = {
        code: frozenset() for step in calls for code in CODE.findall(fold(step.text))
    }
    if not fields:
        return fields
    session = scene.truth.open()
    for name, arguments in (made for step in calls for made in step.true):
        data = session.call(name, arguments).data
        for record in data if isinstance(data, list) else [data]:
            for path, value in leaves(record) if isinstance(record, dict) else ():
                if isinstance(value, str) and value in fields:
                    fields[value] |= {path[-1]}
    return fields | _added_by_layers(calls, fields)


def _added_by_layers(calls: Sequence[Step], fields: Fields) -> dict[str, frozenset[str]]:
    """The fields of codes that the truth does not have, such as a handle: the keys that show them.

    A key by which a code of the truth was shown too names none: that is a source that contradicts.
    """
    keys: dict[str, set[str]] = {code: set() for code in fields}
    for step in calls:
        data = _as_json(step.text)
        for record in data if isinstance(data, list) else [data]:
            for path, value in leaves(record) if isinstance(record, dict) else ():
                if isinstance(value, str) and value in keys:
                    keys[value].add(path[-1])
    true = {key for code, known in fields.items() if known for key in keys[code]}
    true |= {name for known in fields.values() for name in known}
    return {
        code: frozenset(keys[code])
        for code, known in fields.items()
        if not known and not keys[code] & true
    }


def is_shown(wanted: str | Sequence[str], steps: Sequence[Step]) -> bool:
    """Whether results of a trace say each thing that a check wants of an answer."""
    items = (wanted,) if isinstance(wanted, str) else wanted
    texts = [step.text for step in steps if step.kind == "call" and step.ok]
    return all(
        any(
            passage(text, item) or any(matches(v, item) for v in data_values(text))
            for text in texts
        )
        for item in items
        if item
    )


def is_decisive(scene: Scene, step: Step) -> bool:
    """Whether the reason for refusing came to light in a step; a lookup of anything else won't."""
    if not scene.outcome.refusal:
        return False
    if scene.outcome.witness:
        shown = any(name in scene.outcome.witness for name, _ in step.true)
    else:
        shown = step.evidence == scene.outcome.refusal
    return shown and scene.looks_up(step.true)


def states(answer: str, expected: str, fields: Fields, results: Results = ()) -> bool:
    """Whether an answer states the expected code as the thing that was asked for.

    A code that is said not to be it, or no longer, or to be made up, is not offered. Beside another
    code the expected one has to be stated in words, and words have to say what the other one is.
    It is a list of guesses where one is offered in case that another fails, where another code is
    of the same field or of none that is known, is called what was asked for, or is a word that
    letters of other scripts make look like a code, and where the codes of a result are handed on
    and none is singled out. A code that was shown may be spelt letter by letter.
    """
    if not CODE.fullmatch(expected):
        return says_text(answer, expected)
    if answer == expected:  # the code alone
        return True
    roles = read_roles(answer, fields)
    disowned = {mention.code for mention in roles.mentions if mention.disowned}
    offered = [mention for mention in roles.mentions if not mention.disowned]
    others = [mention for mention in offered if mention.code != expected]
    mine = [mention for mention in offered if mention.code == expected]
    if not mine or expected in disowned or imitated_codes(answer):
        return False
    if not others:
        return True
    wanted_words = {field.split("_")[0] for field in fields.get(expected, ())}
    if roles.leaves_choice or any(mention.is_guess for mention in offered):
        return False
    marked = any(mention.is_asked_for for mention in mine)
    if not all(
        _is_told_apart(mention, fields, expected, wanted_words, marked) for mention in others
    ):
        return False
    stated = _is_stated(mine, offered, wanted_words)
    in_data = bool(re.search(r"[{<]", answer))
    codes = {mention.code for mention in roles.mentions}
    dumped = _is_dump(codes, expected, results, in_data)
    return stated and (not dumped or _is_singled_out(mine, others, in_data))


def guesses_among(answer: str, fields: Fields) -> bool:
    """Whether an answer offers several codes, so that a reader has to guess which is meant."""
    roles = read_roles(answer, fields)
    offered = [mention for mention in roles.mentions if not mention.disowned]
    if len({mention.code for mention in offered}) < 2:
        return False
    main = {mention.code for mention in offered if mention.is_asked_for and not mention.is_aside}
    main = main or {mention.code for mention in offered if not mention.is_aside}
    return roles.leaves_choice or any(mention.is_guess for mention in offered) or len(main) != 1


def _is_told_apart(
    mention: Mention, fields: Fields, expected: str, wanted_words: set[str], marked: bool
) -> bool:
    """Whether the words around another code say that it is something else.

    It has the name of its own field, or is beside the point; where the expected code is called what
    was asked for (`marked`), any words do.
    """
    own = fields.get(mention.code, frozenset())
    if not own or mention.is_asked_for:
        return False
    if own & fields.get(expected, frozenset()):
        return marked or mention.is_compared
    names = {field.split("_")[0] for field in own}
    names |= {w for field in own if field.count("_") > 1 for w in field.split("_")} - {
        "ref",
        "code",
    }
    called = [word for word in _words(mention.name) if word in names | wanted_words]
    if called and called[-1 if mention.is_named_before else 0] in wanted_words - names:
        return mention.is_compared
    around = {*_words((*mention.lead[-8:], *mention.tail[:8]))}
    return (
        bool(names & around or (marked and around - FILLERS))
        or mention.is_compared
        or mention.is_extra
    )


def _is_stated(mine: Sequence[Mention], offered: Sequence[Mention], wanted_words: set[str]) -> bool:
    """Whether the expected code is stated: under the requested name, or as the first code."""
    main = [
        mention
        for mention in mine
        if not (mention.is_compared or mention.is_extra or mention.is_listed)
    ]
    named = any(
        mention.is_asked_for or wanted_words & {*_words((*mention.name, *mention.tail))}
        for mention in main
    )
    first = next((mention for mention in offered if not mention.is_aside), None)
    return bool(main) and (named or first in main)


def _is_singled_out(mine: Sequence[Mention], others: Sequence[Mention], in_data: bool) -> bool:
    """Whether only the expected code has the requested name, or all others are incidental."""
    rivals = [mention for mention in others if not mention.is_aside]
    if not rivals:
        return not in_data or any(mention.is_asked_for for mention in mine)
    marked = any(mention.is_asked_for or (mention.is_yours and not in_data) for mention in mine)
    return marked and not any(mention.is_yours for mention in rivals)


def _words(tokens: Sequence[str]) -> list[str]:
    """The plain words of tokens; joined words ("map_ref") are split."""
    return [word for token in tokens for word in _WORD.findall(token)]


def effects_of(steps: Sequence[Step]) -> list[Any]:
    """The writes of a trace."""
    return [effect for step in steps for effect in step.effects]


def calls_not_made(scene: Scene, steps: Sequence[Step]) -> list[Step]:
    """The calls of the oracle that are missing in a trace."""
    made = [call for step in steps if step.ok for call in step.true]
    written = effects_of(steps)
    return [
        step
        for step in scene.calls
        if step.ok
        and not all(call in made for call in step.true)
        and not (step.effects and all(effect in written for effect in step.effects))
    ]


def due_by_turn(scene: Scene) -> list[list[Step]]:
    """The oracle's calls, by the user's turns."""
    turns: list[list[Step]] = [[]]
    for step in scene.rehearsal:
        if step.kind == "call":
            turns[-1].append(step)
        elif step.kind == "answer":
            turns.append([])
    return turns
