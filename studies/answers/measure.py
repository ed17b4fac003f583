"""Measures three ways to read the answers of own worlds on labelled finishes.

    python studies/answers/measure.py        # writes results.json and disagreements.jsonl.xz

- **today**: the rule that reads English (`reading/answers/by_words.py`);
- **types**: the comparison by type (`reading/answers/`), which may say "unclear";
- **types, judged**: the same, with what is unclear decided by a script that knows the truth. No
  model is asked: it is a ceiling, not a measurement of a judge.

The finishes: `made.jsonl.xz` (see `made.py`) and those of the tests of today's rule, which was
mended until it read all of them, so it is at its best there.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from toolshift.core.files import pack, read_bytes
from toolshift.reading.answers.by_type import judge
from toolshift.reading.answers.by_words import matches
from toolshift.reading.quantity import RequestContext

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "reading"


def module(name: str) -> ModuleType:
    """A file of tests below `tests/reading`, as a module."""
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


def cases(found: ModuleType, test: str) -> list[tuple[Any, ...]]:
    """The cases of a parametrised test."""
    mark = next(m for m in getattr(found, test).pytestmark if m.name == "parametrize")
    return [c if isinstance(c, tuple) else (c,) for c in mark.args[1]]


def row(
    answer: str, wanted: Any, right: bool, request: str = "", shown: str = ""
) -> dict[str, Any]:
    """One labelled finish."""
    return {"answer": answer, "wanted": wanted, "right": right, "request": request, "shown": shown}


def labelled() -> Iterator[dict[str, Any]]:
    """The labelled finishes of the tests of today's rule, in their order."""
    check = module("answers/test_by_words")
    yield from (row(a, w, True) for w, a in check.HONEST)
    yield from (row(a, w, False) for w, a in check.WRONG)
    for test in ("test_bounds_hedges_and_duties", "test_more_that_people_write", "test_yes_and_no"):
        yield from (row(a, w, r) for a, w, r in cases(check, test))
    for answer, wanted, asked, right in cases(check, "test_a_number_of_something_else"):
        yield row(answer, wanted, right, asked.request, asked.shown)
    lists = {
        "test_a_list_is_said_in_any_order": True,
        "test_a_list_is_not_said_where_an_item_is_missing_denied_or_too_much": False,
    }
    for test, right in lists.items():
        yield from (row(a, check.LIST, right) for (a,) in cases(check, test))
    yield from (row(a, check.BOOKS, r) for a, r in cases(check, "test_a_column_is_a_list"))
    for name in ("test_former", "test_quantity"):
        found = module(name)
        for test, right in (("test_it_is_said", True), ("test_it_is_not_said", False)):
            for request, shown, wanted, answer in cases(found, test):
                yield row(answer, wanted, right, request, shown)
    choice = module("test_choice")
    yield from (row(a, w, True, q) for q, w, a in choice.RIGHT)
    yield from (row(a, w, False, q) for q, w, a in choice.WRONG)
    for request, wanted, right_ones, wrong_ones in choice.OTHERS:
        yield from (row(a, wanted, True, request) for a in right_ones)
        yield from (row(a, wanted, False, request) for a in wrong_ones)
    absence = module("answers/test_none")
    yield from (row(a, "nobody", True, c.request, c.shown) for c, a in absence.NONE)
    yield from (row(a, "nobody", False, c.request, c.shown) for c, a in absence.NOT_NONE)


def made(name: str) -> list[dict[str, Any]]:
    """The finishes of a file."""
    return [json.loads(line) for line in read_bytes(HERE / name).splitlines()]


def read(one: dict[str, Any]) -> tuple[str, str]:
    """What today's rule and the types say of a finish."""
    context = RequestContext(one["request"], one["shown"])
    today = "right" if matches(one["answer"], one["wanted"], context) else "wrong"
    return today, judge(one["answer"], one["wanted"], one.get("as"), context)


def counted(rows: list[tuple[bool, str]]) -> dict[str, int]:
    """How many are passed wrongly, failed wrongly, and unclear."""
    seen = Counter(rows)
    return {
        "right": sum(right for right, _ in rows),
        "wrong": sum(not right for right, _ in rows),
        "wrongly_passed": seen[False, "right"],
        "wrongly_failed": seen[True, "wrong"],
        "unclear": seen[True, "unclear"] + seen[False, "unclear"],
        "unclear_right": seen[True, "unclear"],
    }


def main() -> None:
    """Reads all finishes in three ways."""
    results: dict[str, dict[str, dict[str, int]]] = {}
    differing = []
    packed = sorted(HERE.glob("made*.jsonl.xz"))
    sources = {path.name.partition(".")[0]: made(path.name) for path in packed}
    for source, rows in (*sources.items(), ("tests of today's rule", list(labelled()))):
        read_rows = [(one, *read(one)) for one in rows]
        judged = [
            (one["right"], typed if typed != "unclear" else "right" if one["right"] else "wrong")
            for one, _, typed in read_rows
        ]
        results[source] = {
            "today": counted([(one["right"], today) for one, today, _ in read_rows]),
            "types": counted([(one["right"], typed) for one, _, typed in read_rows]),
            "types, judged by a script that knows the truth": counted(judged),
        }
        differing += [
            {"source": source, "today": today, "types": typed, **one}
            for one, today, typed in read_rows
            if today != typed or (typed == "right") != one["right"]
        ]
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in differing)
    (HERE / "disagreements.jsonl.xz").write_bytes(pack(text.encode(), ".xz"))
    for source, arms in results.items():
        print(source)
        for arm, figures in arms.items():
            print("  ", arm, figures)


if __name__ == "__main__":
    main()
