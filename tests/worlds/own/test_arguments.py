"""Optional arguments at their default, lookups of the very subject, surplus writes, async tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds.own.test_own import called, played, scenes

from toolshift.cli.world import world
from toolshift.core.errors import UsageError
from toolshift.core.tool import Param, Tool
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, Over
from toolshift.episode.grade import grade
from toolshift.shifts.registry import apply
from toolshift.worlds.own import OwnWorld, load
from toolshift.worlds.own.arguments import without_defaults

TOOLS = '''
from typing import TypedDict


class Line(TypedDict):
    sku: str
    amount: int


SENT = []


async def search(text: str, limit: int = 10, region: str | None = None) -> dict[str, int]:
    """Search the stock.

    Args:
        text: What to look for.
        limit: How many at most.
        region: Only there.
    """
    return {"found": 3 if text == "tea" else 0}


def product(sku: str, shop: str, detail: str = "short") -> dict[str, str]:
    """Describe a product of a shop.

    Args:
        sku: Its number.
        shop: The shop.
        detail: How much of it.
    """
    if sku != "K-1":
        raise LookupError(f"{shop} has no {sku}")
    return {"name": "tea"}


async def send(sku: str, amount: int = 1, note: str = "") -> dict[str, str]:
    """Send a product.

    Args:
        sku: Its number.
        amount: How many.
        note: For the parcel.
    """
    SENT.append((sku, amount))
    return {"parcel": f"P-{len(SENT)}"}
'''
CHECKS = """
async def sent_once(module):
    return module.SENT == [("K-1", 1)]
"""
TASKS = """
world: stock
tools: {python: stock_tools}
writes: [send]
tasks:
  - id: count
    ask: How many kinds of tea are there? Ten at most.
    calls: [{name: search, arguments: {text: tea, limit: 10}}]
    check: {answer: "3", calls: true}
  - id: send
    ask: Send one K-1 and tell me the parcel.
    calls: [{name: send, arguments: {sku: K-1}}]
    check: {answer: 'P-\\d', calls: true, state: "stock_checks:sent_once"}
  - id: none
    ask: What is K-9 of the shop North?
    calls: [{name: product, arguments: {sku: K-9, shop: North, detail: long}}]
    check: {refuse: not_found}
"""


@pytest.fixture
def stock(tmp_path: Path) -> OwnWorld:
    return written(tmp_path, TASKS)


def written(folder: Path, tasks: str) -> OwnWorld:
    (folder / "stock_tools.py").write_text(TOOLS)
    (folder / "stock_checks.py").write_text(CHECKS)
    (folder / "tasks.yaml").write_text(tasks)
    return load(folder / "tasks.yaml")


COUNT, SEND, NONE = 0, 1, 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "tea"},
        {"text": "tea", "limit": 10},
        {"text": "tea", "limit": 10, "region": None},
        {"text": "tea", "region": None},
    ],
)
def test_an_optional_argument_at_its_default_is_the_same_as_none(
    stock: OwnWorld, arguments: dict[str, Any]
) -> None:
    assert called(make_scene(stock, "task", COUNT), ("search", arguments), answer="3").passed


@pytest.mark.parametrize("more", [{"limit": 3}, {"region": "north"}, {"limit": 1, "region": None}])
def test_another_value_than_the_default_is_another_call(
    stock: OwnWorld, more: dict[str, Any]
) -> None:
    made = ("search", {"text": "tea", **more})
    assert not called(make_scene(stock, "task", COUNT), made, answer="3").passed


def test_defaults_inside_of_objects_and_lists_count_and_an_undeclared_null_does_not() -> None:
    inner = {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "integer", "default": 1}, "b": {"type": "string", "default": "x"},
    }}  # fmt: skip
    tool = Tool(
        "t", "", (
            Param("one", "one", inner),
            Param("many", "many", {"type": "array", "items": inner}, required=False),
            Param("note", "note", {"type": ["string", "null"]}, required=False),
        ), (),
    )  # fmt: skip
    given = {"one": {"a": 1, "b": "x", "c": 2}, "many": [{"a": 2, "b": "x"}], "note": None}
    assert without_defaults(tool, given) == {
        "one": {"a": 1, "c": 2}, "many": [{"a": 2}], "note": None
    }  # fmt: skip


def test_a_recording_knows_a_call_with_and_without_its_defaults(
    stock: OwnWorld, tmp_path: Path
) -> None:
    words = ["record", str(tmp_path / "tasks.yaml"), "--out", str(tmp_path / "kept.jsonl")]
    world.main(words, standalone_mode=False)
    offline = TASKS.replace("{python: stock_tools}", "{recording: kept.jsonl}")
    (tmp_path / "offline.yaml").write_text(offline)
    scene = make_scene(load(tmp_path / "offline.yaml"), "task", SEND)
    for more in ({}, {"amount": 1}, {"amount": 1, "note": ""}):
        assert called(scene, ("send", {"sku": "K-1", **more}), answer="P-1").passed
    episode = Episode(scene)
    with pytest.raises(Over):
        episode.call("send", {"sku": "K-1", "amount": 2})
    assert grade(episode).cause == "unrecorded"


# -- not_found ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("product", {"sku": "K-8", "shop": "North"}),
        ("product", {"sku": "K-9", "shop": "South"}),
        ("product", {"sku": "K-1", "shop": "North", "detail": "long"}),
        ("search", {"text": "K-9"}),
    ],
)
def test_a_lookup_of_something_else_is_no_evidence(
    stock: OwnWorld, name: str, arguments: dict[str, Any]
) -> None:
    assert not called(make_scene(stock, "task", NONE), (name, arguments)).passed


@pytest.mark.parametrize("more", [{}, {"detail": "long"}, {"detail": "short"}, {"sku": "k-9"}])
def test_a_lookup_of_the_subject_is_evidence_however_it_is_made(
    stock: OwnWorld, more: dict[str, Any]
) -> None:
    scene = make_scene(stock, "task", NONE)
    made = {"sku": "K-9", "shop": "North", **more}
    assert called(scene, ("product", made)).passed
    for shift in ("parameter_rename", "identity_erasure"):
        shifted = apply(scene, shift, 2)
        assert played(shifted).passed
        assert not called(shifted).passed


def test_not_found_without_a_lookup_is_refused_when_the_file_is_read(tmp_path: Path) -> None:
    calls = "    calls: [{name: product, arguments: {sku: K-9, shop: North, detail: long}}]\n"
    with pytest.raises(UsageError, match=r"check.refuse: not_found needs the lookup"):
        written(tmp_path, TASKS.replace(calls, ""))


# -- writes ------------------------------------------------------------------------------------

RIGHT = ("send", {"sku": "K-1"})


@pytest.mark.parametrize(
    "more",
    [
        [RIGHT],
        [("send", {"sku": "K-1", "note": "gift"})],
        [("send", {"sku": "K-2"})],
        [("send", {"sku": "K-2"}), ("send", {"sku": "K-3"})],
    ],
)
def test_a_surplus_write_fails_whatever_else_is_right(
    stock: OwnWorld, more: list[tuple[str, dict[str, Any]]]
) -> None:
    scene = make_scene(stock, "task", SEND)
    assert called(scene, RIGHT, answer="P-1").passed
    assert not called(scene, RIGHT, *more, answer="P-1").passed
    assert not called(scene, *more, RIGHT, answer="P-1").passed
    read, lookup = (make_scene(stock, "task", place) for place in (COUNT, NONE))
    assert not called(read, ("search", {"text": "tea"}), *more, answer="3").passed
    about = ("product", {"sku": "K-9", "shop": "North"})
    assert not called(lookup, about, *more).passed


def test_a_surplus_write_is_named_as_the_cause(stock: OwnWorld) -> None:
    scene = make_scene(stock, "task", SEND)
    assert called(scene, RIGHT, RIGHT, answer="P-2").cause == "surplus_write"


# -- asynchronous tools ------------------------------------------------------------------------


def test_tools_and_checks_may_be_asynchronous(stock: OwnWorld) -> None:
    for scene in scenes(stock):
        assert played(scene).passed
    scene = make_scene(stock, "task", SEND)
    assert not called(scene, ("send", {"sku": "K-2"}), answer="P-1").passed


def test_a_default_inside_of_an_object_that_may_be_null_is_one() -> None:
    """`options: Options | None = None`, as Python's annotations become."""
    options = {"type": "object", "properties": {"limit": {"type": "integer", "default": 10}}}
    null = {"type": "null"}
    for schema in (
        {"anyOf": [options, null]},
        {"oneOf": [null, options]},
        {"anyOf": [{"type": "array", "items": options}, null]},
    ):
        tool = Tool("find", "", (Param("options", "options", schema, False),), ())
        given = {"limit": 10} if "items" not in str(schema) else [{"limit": 10}]
        empty: Any = {} if isinstance(given, dict) else [{}]
        assert without_defaults(tool, {"options": given}) == {"options": empty}
