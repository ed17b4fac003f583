"""BFCL's single-turn sets: nothing stands behind the functions, so the calls alone are checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolshift.core.tool import Result, Tool, error
from toolshift.core.world import Truth
from toolshift.worlds.bfcl import wheel
from toolshift.worlds.bfcl.multi_turn import EXPECTED
from toolshift.worlds.bfcl.schemas import KINDS, as_schema, is_valid, shown_name

DONE = "The call was accepted. This function returns nothing."
Made = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class CallsTruth(Truth):
    """The functions of an entry, of which only the calls count.

    Attributes:
        entry: of the data set.
        answers: calls with the values that each argument may have; None where no call is right.
    """

    entry: Mapping[str, Any]
    answers: list[dict[str, Any]] | None

    def open(self) -> Any:
        """Nothing called yet."""
        return CallsUpstream(self)


class CallsUpstream:
    """The calls of one episode; BFCL's checker judges all of them together at its end.

    Args:
        truth: of the entry.
    """

    def __init__(self, truth: CallsTruth) -> None:
        self.truth = truth
        self.effects: list[tuple[Any, ...]] = []
        self._made: Made = []
        self._over = False

    def tools(self) -> tuple[Tool, ...]:
        """The functions as they are documented."""
        return self.truth.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Takes a call down."""
        if name not in self.truth.by_name:
            return error("unknown_tool", f"There is no tool named {name}.")
        self._made.append((name, arguments))
        if self.truth.answers is None:
            self.effects.append((name, "no call was right"))
        return Result(True, DONE, form="text")

    def request_over(self, attempts: int) -> None:
        """Judges the calls."""
        self._over = True
        if self.truth.answers is None and attempts > len(self._made):
            self.effects.append(("calls", "no call was right"))
        if self.truth.answers is not None:
            wrong = verdict(self.truth.entry, self._made, self.truth.answers)
            self.effects.append(("calls", wrong or EXPECTED))

    def close(self) -> None:
        """Ends the episode; where it was broken off, the calls so far must be expected ones."""
        answers = self.truth.answers
        if self._over or answers is None:
            return
        for made in self._made:
            if all(verdict(self.truth.entry, [made], [answer], "simple") for answer in answers):
                self.effects.append(("calls", "another call was made"))


def verdict(
    entry: Mapping[str, Any], made: Made, answers: list[dict[str, Any]], category: str = ""
) -> str:
    """What BFCL's checker finds wrong with the calls for an entry; "" for nothing."""
    checker, functions = wheel.ast_checker(), entry["function"]
    if category:
        name = next(iter(answers[0]))
        functions = [function for function in functions if function["name"] == name]
    try:
        report = checker.ast_checker(
            functions,
            [{name: arguments} for name, arguments in made],
            answers,
            language_of(entry),
            category or category_of(entry),
            wheel.CHECKED_AS,
        )
    except Exception as fault:  # the checker itself stumbles over some values
        return f"the checker raised {type(fault).__name__}"
    return "" if report["valid"] else str(report["error_type"])


def category_of(entry: Mapping[str, Any]) -> str:
    """The category of an entry, from its id."""
    return str(entry["id"]).rpartition("_")[0]


def language_of(entry: Mapping[str, Any]) -> Any:
    """The language in which the functions of an entry are written."""
    category, languages = category_of(entry), wheel.languages()
    if "javascript" in category:
        return languages.JAVASCRIPT
    return languages.JAVA if "java" in category else languages.PYTHON


# -- calls that meet the ground truth --------------------------------------------------------------


def expected_calls(entry: Mapping[str, Any], answers: list[dict[str, Any]]) -> Made:
    """Calls that meet the ground truth.

    An argument has the first of its values that its schema allows; where there is none, it is left
    out if that is right too, and else has the first.
    """
    language = language_of(entry).value
    documents = {function["name"]: function for function in entry["function"]}
    calls: Made = []
    for answer in answers:
        for name, possible in answer.items():
            schemas = documents.get(name, {}).get("parameters", {}).get("properties", {})
            calls.append((shown_name(name), _chosen(possible, schemas, language)))
    return calls


def _chosen(
    possible: Mapping[str, list[Any]], schemas: Mapping[str, Any], language: str
) -> dict[str, Any]:
    """One choice of the arguments of a call."""
    if language == "python":
        return {k: v for k, values in possible.items() for v in _first(values, schemas.get(k))}
    return {
        key: as_source(value, schemas.get(key, {}), language)
        for key, values in possible.items()
        for value in _first(values)
    }


def _first(values: list[Any], declared: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """One value of several, the choices inside it settled; nothing for an omission."""
    settled = [_settled(value) for value in values if value != ""]
    schema = as_schema(declared) if declared else {}
    allowed = [value for value in settled if value is not None and is_valid(schema, value)]
    if allowed or (settled and "" not in values):
        yield (allowed or settled)[0]


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: chosen
            for key, inner in value.items()
            for chosen in (_first(inner) if isinstance(inner, list) else [inner])
        }
    return [_settled(item) for item in value] if isinstance(value, list) else value


def as_source(value: Any, declared: Mapping[str, Any], language: str) -> str:
    """A value as Java or JavaScript source, as BFCL reads it back."""
    kind = str(declared.get("type", "any"))
    items = declared.get("items", {})
    if isinstance(value, str) or KINDS.get(kind) == "string":
        return str(value)
    if isinstance(value, list):
        inner = [_literal(item, str(items.get("type", "any")), language) for item in value]
        text = ", ".join(inner)
        if language == "javascript":
            return f"[{text}]"
        array = f"new {items.get('type', 'Object')}[]{{{text}}}"
        return array if kind == "Array" else f"new ArrayList<>(Arrays.asList({text}))"
    if isinstance(value, dict):
        if language == "javascript":
            return json.dumps(value)
        puts = " ".join(f'put("{k}", {_literal(v, "any", language)});' for k, v in value.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}"
    return _literal(value, kind, language)


def _literal(value: Any, kind: str, language: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    suffix = {"long": "L", "float": "f"} if language == "java" else {"Bigint": "n"}
    return f"{value}{suffix.get(kind, '')}"
