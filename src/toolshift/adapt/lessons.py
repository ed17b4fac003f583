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
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.drift.calls import RecordedCall
from toolshift.drift.instructions import instructions_in

MAX_LESSONS = 12
_MAX_WORDS = 120
_TITLE = "What failed in earlier conversations with these tools, and what then worked:"
Tools = Mapping[str, Mapping[str, Any]]


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


def _spoken(tool: str, arguments: Sequence[str]) -> str:
    return f"{tool}({', '.join(arguments)})"


class Lessons:
    """The memory: at most so many lessons, the oldest forgotten first.

    Args:
        most: how many are kept.
        lessons: that are known already.
    """

    def __init__(self, most: int = MAX_LESSONS, lessons: Iterable[Lesson] = ()) -> None:
        self.most = most
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

    def learn(self, made: Sequence[MadeCall], tools: Tools) -> None:
        """Draws the lessons of a conversation so far; they replace those drawn earlier from it.

        Args:
            made: its calls, in their order.
            tools: on offer now, by name.
        """
        drawn = {lesson.key: lesson for lesson in _lessons_of(made, tools)}
        self._fresh = tuple(drawn.values())

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
        write(file, msgspec.json.format(msgspec.json.encode(list(self._kept.values()))) + b"\n")


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
        return Lessons(most, msgspec.json.decode(file.read_bytes(), type=list[Lesson]))
    except FileNotFoundError:
        return Lessons(most)
    except (OSError, ValueError, RecursionError) as fault:  # msgspec's own errors, and not UTF-8
        raise UsageError(f"{file} holds no lessons: {fault}") from None


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
