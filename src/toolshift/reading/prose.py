"""Reads messages that an agent writes outside the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Literal, Protocol

import msgspec

from toolshift.core.message import CODE, REASONS
from toolshift.reading.prose_signs import Message

Kind = Literal["question", "refusal", "answer", "none"]
FAILED = " failed"
"""Appended to a judge's name if it gave no reading and the shipped one was used."""


class ProseReading(msgspec.Struct, frozen=True):
    """How a message in prose was read.

    Attributes:
        kind: of the message.
        reason: of a refusal; "" where none of the four can be read.
        judge: the model that was asked; "" for the shipped reading.
    """

    kind: Kind
    reason: str = ""
    judge: str = ""


class ProseReader(Protocol):
    """Anything that can read prose instead of the shipped reader."""

    @property
    def name(self) -> str:
        """The name in results."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide its readings, for a manifest."""
        ...

    def read(self, text: str, shown: str, request: str) -> ProseReading:
        """Reads a message beside the results that were shown and what the user said."""
        ...

    def decide(self, request: str, wanted: str, answer: str) -> str:
        """Whether an answer says what is wanted: "right" or "wrong"; "" where it cannot tell."""
        ...


class LinearModel(msgspec.Struct, frozen=True):
    """A linear model: each sign speaks for or against each class, in whole numbers.

    Attributes:
        classes: what is decided between.
        weights: of each sign, one a class; a sign that is not there says nothing.
    """

    classes: Sequence[str]
    weights: Mapping[str, Sequence[int]]

    def best(self, signs: Iterable[str], barred: str = "") -> str:
        """The highest-scoring class; ties go to the first."""
        held = [self.weights[sign] for sign in ("", *signs) if sign in self.weights]
        sums = [sum(column) for column in zip(*held, strict=True)]
        open_ = [n for n, name in enumerate(self.classes) if name != barred]
        return self.classes[max(open_, key=lambda n: sums[n])]


class LinearModels(msgspec.Struct, frozen=True):
    """The two models: the kind of a message, and the reason of a refusal."""

    kind: LinearModel
    reason: LinearModel


@cache
def linear_models() -> LinearModels:
    """The models that are shipped; `studies/strangers/finishes/train.py` makes them."""
    text = resources.files("toolshift.reading").joinpath("prose_weights.json").read_bytes()
    return msgspec.json.decode(text, type=LinearModels)


def read_prose(text: str, shown: str = "", request: str = "") -> tuple[Kind, str]:
    """Reads a message that ends a turn in prose instead of through the protocol.

    Structure comes first: a message that states no code and no identifier is no answer, and a
    reason that is named as the protocol names it is the reason. Otherwise a linear model decides by
    signs of structure (which codes are stated and where, whether a sentence asks, what came to
    light) and by its words. The right answer is not used, and the same message is read in the same
    way on every machine, since weights are integers. `studies/strangers/finishes` measures the
    reading.
    """
    message = Message(text, shown, request)
    kind = linear_models().kind.best(message.kind_signs(), "" if message.states else "answer")
    if kind != "refusal":
        return kind, ""  # type: ignore[return-value]
    named = [reason for reason in REASONS if reason in message.text]
    reason = named[0] if len(named) == 1 else linear_models().reason.best(message.reason_signs())
    return "refusal", reason if reason != "other" else message.reason_in_evidence


def says_why(text: str) -> bool:
    """Whether a refusal gives its reason in its own words, and holds no code that may be an answer.

    "It is not BCDF-GHJK.", "none" and "I do not know." say nothing of what stands in the way.
    """
    message = Message(text)
    if CODE.search(message.text) or len(message.text.split()) < _FEWEST_WORDS:
        return False
    return read_prose(text)[1] != ""


_FEWEST_WORDS = 3
