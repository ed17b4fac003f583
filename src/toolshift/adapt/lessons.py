"""A small memory across conversations: which call failed, and what then worked in its place.

    lessons = Lessons()
    agent = toolshift.adapt(my_agent, lock=lock, lessons=lessons)
    print(lessons.text(tools))       # what the agent is told at the start of the next conversation

A lesson is drawn from calls and results alone. It holds names of tools and of parameters and the
words of the error, never a value: values of arguments and all words with digits are left out of
the error, and an error that instructs the model is not quoted. It is told only while the tools that
it speaks of are word for word what they were when it was learned, so nothing that was learned of
one tool is said of another that now has its name.

Lessons of a conversation are shown from the next one on. The same conversations in the same order
give the same lessons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from toolshift.adapt.conversation import MadeCall
from toolshift.adapt.notes import Fact
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.drift.calls import RecordedCall
from toolshift.drift.poisoning import instructions_in

MAX_LESSONS = 12
MAX_NOTES = 1000
"""Of how many notes it is remembered what followed; the oldest are forgotten."""
GIVEN_UP = 2
"""How often a guess may be followed by a failure alone until it is said no more."""
_MAX_WORDS = 120
_TITLE = "What failed in earlier conversations with these tools, and what then worked:"
Tools = Mapping[str, Mapping[str, Any]]


class Followed(msgspec.Struct, frozen=True):
    """How often the calls that followed a note worked, and failed."""

    worked: int = 0
    failed: int = 0

    def __add__(self, other: Followed) -> Followed:
        return Followed(self.worked + other.worked, self.failed + other.failed)


class Lesson(msgspec.Struct, frozen=True):
    """One thing learned.

    Attributes:
        failed: the tool whose call failed.
        failed_arguments: the names of what it was passed.
        said: the words of the error, without values.
        worked: the tool whose call then worked with the same values.
        arguments: the names of what that was passed.
        known_by: what both tools said of themselves, as a hash; "" for one that was not on offer.
        times: how often it was seen.
    """

    failed: str
    failed_arguments: tuple[str, ...]
    said: str
    worked: str
    arguments: tuple[str, ...]
    known_by: tuple[str, str]
    times: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of a lesson."""
        names = (self.failed, self.failed_arguments, self.worked, self.arguments)
        return (*names, self.known_by)

    @property
    def sentence(self) -> str:
        """The lesson in words."""
        failed = f'{_spoken(self.failed, self.failed_arguments)} failed ("{self.said}")'
        if (self.failed, self.failed_arguments) == (self.worked, self.arguments):
            then = "the same call worked when it was made again"
        else:
            then = f"{_spoken(self.worked, self.arguments)} worked"
        return f"{failed}; {then} (seen {self.times} times)"


class _File(msgspec.Struct, frozen=True):
    """What a file holds."""

    lessons: list[Lesson] = []
    notes: dict[str, Followed] = {}


def _spoken(tool: str, arguments: Sequence[str]) -> str:
    return f"{tool}({', '.join(arguments)})"


class Lessons:
    """The memory: at most so many lessons, the oldest forgotten first.

    Args:
        most: how many are kept.
        lessons: that are known already.
        notes: what followed notes until now, by the note.
    """

    def __init__(
        self,
        most: int = MAX_LESSONS,
        lessons: Iterable[Lesson] = (),
        notes: Mapping[str, Followed] | None = None,
    ) -> None:
        self.most = most
        self.notes = dict(notes or {})
        self._followed: dict[str, Followed] = {}
        self._kept: dict[tuple[Any, ...], Lesson] = {lesson.key: lesson for lesson in lessons}
        self._fresh: tuple[Lesson, ...] = ()

    def __iter__(self) -> Iterator[Lesson]:
        return iter(self._kept.values())

    def begin(self) -> None:
        """Starts a conversation: keeps the lessons of the last one."""
        for lesson in self._fresh:
            known = self._kept.pop(lesson.key, None)
            times = known.times + 1 if known else 1
            self._kept[lesson.key] = msgspec.structs.replace(lesson, times=times)
        self._fresh = ()
        for key in list(self._kept)[: max(len(self._kept) - self.most, 0)]:
            del self._kept[key]
        for note, followed in self._followed.items():
            self.notes[note] = self.notes.pop(note, Followed()) + followed
        self._followed = {}
        for note in list(self.notes)[: max(len(self.notes) - MAX_NOTES, 0)]:
            del self.notes[note]

    def learn(self, made: Sequence[MadeCall], tools: Tools, told: Sequence[Fact] = ()) -> None:
        """Draws the lessons of a conversation so far; they replace those drawn earlier from it.

        Args:
            made: its calls, in their order.
            tools: on offer now, by name.
            told: the notes that the agent was told.
        """
        self.follow(made, tools, told)
        drawn = {lesson.key: lesson for lesson in _lessons_of(made, tools)}
        self._fresh = tuple(drawn.values())

    def follow(self, made: Sequence[MadeCall], tools: Tools, told: Sequence[Fact]) -> None:
        """Remembers what followed the notes of a conversation so far, and no lesson.

        Args:
            made: its calls, in their order.
            tools: on offer now, by name.
            told: the notes that the agent was told.
        """
        self._followed = outcomes(told, made, tools)

    def text(self, tools: Tools) -> str:
        """The text that an agent is shown before a conversation.

        Args:
            tools: on offer, by name.

        Returns:
            The lessons that hold for these tools, the latest first; "" where there is none.
        """
        lines = [
            f"- {lesson.sentence}"
            for lesson in reversed(self._kept.values())
            if lesson.known_by == (_known_by(lesson.failed, tools), _known_by(lesson.worked, tools))
        ]
        return "\n".join([_TITLE, *lines]) if lines else ""

    def write(self, file: Path) -> None:
        """Writes the lessons to a file, those of the last conversation included.

        Args:
            file: to write.
        """
        self.begin()
        kept = _File(list(self._kept.values()), self.notes)
        write(file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")


def read_lessons(file: Path, most: int = MAX_LESSONS) -> Lessons:
    """Reads lessons that `Lessons.write` wrote.

    Args:
        file: to read; where it is not there, nothing is known yet.
        most: how many are kept.

    Returns:
        The memory.

    Raises:
        UsageError: where the file is something else.
    """
    try:
        held = msgspec.json.decode(file.read_bytes(), type=_File | list[Lesson])
        kept = _File(held) if isinstance(held, list) else held  # a list was all there was before
        return Lessons(most, kept.lessons, kept.notes)
    except FileNotFoundError:
        return Lessons(most)
    except (OSError, ValueError, RecursionError) as fault:  # msgspec's own errors, and not UTF-8
        raise UsageError(f"{file} contains no lessons: {fault}") from None


def outcomes(told: Sequence[Fact], made: Sequence[MadeCall], tools: Tools) -> dict[str, Followed]:
    """What followed notes in a conversation: calls as a note says them, that worked or failed."""
    found: dict[str, Followed] = {}
    for fact in told:
        mine = [call for call in made if _follows(call, fact)]
        if mine:
            failed = sum(bool(call.failure) for call in mine)
            found[_note_key(fact, tools)] = Followed(len(mine) - failed, failed)
    return found


def ranked(
    told: Sequence[Fact], tools: Tools, *followed: Mapping[str, Followed]
) -> tuple[Fact, ...]:
    """Notes, those that helped first, without the guesses that never did."""
    known: dict[str, Followed] = {}
    for each in followed:
        for key, one in each.items():
            known[key] = known.get(key, Followed()) + one
    if not known:
        return tuple(told)
    scored = [(known.get(_note_key(fact, tools), Followed()), fact) for fact in told]
    kept = [
        (one, fact)
        for one, fact in scored
        if not (fact.guessed and not one.worked and one.failed >= GIVEN_UP)
    ]
    return tuple(fact for _, fact in sorted(kept, key=lambda each: -each[0].worked))


def _follows(call: MadeCall, fact: Fact) -> bool:
    """Whether a call is made as a note says that it is made now."""
    became = fact.whole and fact.old and fact.tool != fact.old
    if not fact.tool or call.made.tool != fact.tool or not (became or fact.argument):
        return False
    return not fact.argument or fact.argument in call.made.arguments


def _note_key(fact: Fact, tools: Tools) -> str:
    """The identity of a note: what it says, of the tool as it is now."""
    written = msgspec.json.encode(
        [fact.old, fact.sentence, tools.get(fact.tool)], order="deterministic"
    )
    return sha256(written).hexdigest()[:16]


def _lessons_of(made: Sequence[MadeCall], tools: Tools) -> Iterator[Lesson]:
    for place, call in enumerate(made):
        if not call.failure:
            continue
        then = next((one for one in made[place + 1 :] if _makes_good(one, call)), None)
        if then is not None:
            yield Lesson(
                call.made.tool,
                tuple(sorted(call.made.arguments)),
                _without_values(call.failure, call.made, tools),
                then.made.tool,
                tuple(sorted(then.made.arguments)),
                (_known_by(call.made.tool, tools), _known_by(then.made.tool, tools)),
            )


def _makes_good(later: MadeCall, failed: MadeCall) -> bool:
    """Whether a call that worked passed all the values of one that had failed."""
    if later.failure:
        return False
    if later.made == failed.made:
        return True
    values, given = (
        {str(value) for value in call.made.arguments.values()} for call in (failed, later)
    )
    return bool(values) and values <= given


def _without_values(failure: str, call: RecordedCall, tools: Tools) -> str:
    """The words of an error, without anything specific to one conversation.

    They will stand in the system prompt, so an error that instructs the model is not quoted.
    """
    if instructions_in([failure]):
        return "..."
    for name, value in call.arguments.items():
        if len(str(value)) > 1:
            failure = failure.replace(str(value), f"<{name}>")
    kept = [
        word if not re.search(r"\d", word) or word.strip(".,:;!?`'\"()") in tools else "..."
        for word in failure.split()
    ]
    return " ".join(kept)[:_MAX_WORDS]


def _known_by(name: str, tools: Tools) -> str:
    if name not in tools:
        return ""
    return sha256(msgspec.json.encode(tools[name], order="deterministic")).hexdigest()
