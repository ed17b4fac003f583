"""What a release asks: at most ten questions, those first that decide most, and each is carried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.core.errors import UsageError
from toolshift.drift.hypotheses import settled_likely
from toolshift.drift.questions import MOST_QUESTIONS
from toolshift.drift.release import Settling, read_release
from toolshift.shifts.release.inputs import side_of
from toolshift.shifts.release.mapping import EVERY, UNDECIDED, Answers, read_mapping, write_mapping
from toolshift.shifts.release.resolve import Question, answered

TEXT: dict[str, Any] = {"type": "string"}
NAMES = ("list_labels", "create_label", "delete_label", "rename_label", "count_labels")


def tool(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """A tool with required texts, and other parameters by their schemas."""
    options = {key: schema for key, schema in more.items() if key not in ("text", "results")}
    inputs = {
        "type": "object",
        "properties": {**dict.fromkeys(needs, TEXT), **options},
        "required": [*needs],
    }
    made = {"name": name, "description": more.get("text", name), "inputSchema": inputs}
    return {**made, "outputSchema": more["results"]} if "results" in more else made


def read(old: list[Any], new: list[Any], answers: Answers | None = None, **more: Any) -> Settling:
    sides = side_of("mcp", "old", old), side_of("mcp", "new", new)
    return read_release(*sides, answers or Answers(), **more)


def rows(settling: Settling) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in settling.reading.rows:
        if row.change is not None:
            found.setdefault(row.change.kind, set()).add(row.carriage)
    return found


def asked(settling: Settling) -> list[str]:
    return [".".join(one.path) for one in settling.open]


# -- one question for several tools ----------------------------------------------------------------


def test_the_same_value_of_several_tools_is_asked_once_and_carried_to_all() -> None:
    old = [tool(name, "label") for name in NAMES]
    new = [tool(name, "label", "connection") for name in NAMES]
    settling = read(old, new)
    assert asked(settling) == ["given.*.connection"]
    assert set(settling.open[0].tools) == set(NAMES)
    assert rows(settling) == {"required_parameter_added": {"asked"}}
    assert settling.draft.given == {EVERY: {"connection": UNDECIDED}}
    after = read(old, new, answered(settling.draft, settling.open[0], "c-1"))
    assert (asked(after), rows(after)) == ([], {"required_parameter_added": {"carried"}})
    assert after.shift.mapping.given == {name: {"connection": "c-1"} for name in NAMES}


def test_values_of_one_name_and_other_types_are_asked_apart() -> None:
    old = [tool("list_labels"), tool("count_labels")]
    new = [tool("list_labels", "page"), tool("count_labels")]
    new[1]["inputSchema"] = {
        "type": "object",
        "properties": {"page": {"type": "integer"}},
        "required": ["page"],
    }
    assert sorted(asked(read(old, new))) == ["given.count_labels.page", "given.list_labels.page"]


def test_two_meanings_of_one_name_are_never_one_question() -> None:
    old, new = [tool(name) for name in NAMES], []
    for name, text in zip(NAMES, ("A desk.",) * 2 + ("A name.",) * 3, strict=True):
        made = tool(name, "name")
        made["inputSchema"]["properties"]["name"] = {**TEXT, "description": text}
        new.append(made)
    assert sorted(asked(read(old, new))) == sorted(f"given.{name}.name" for name in NAMES)


@pytest.mark.parametrize(
    ("texts", "questions"),
    [(("", ""), 2), (("A desk.", "A desk."), 1), (("A desk.", "A name."), 2)],
)
def test_what_two_tools_have_by_name_alone_is_asked_apart(texts: Any, questions: int) -> None:
    old, new = [tool(name) for name in NAMES[:2]], []
    for name, text in zip(NAMES, texts, strict=False):
        made = tool(name, "name")
        made["inputSchema"]["properties"]["name"] = {
            **TEXT,
            **({"description": text} if text else {}),
        }
        new.append(made)
    assert len(read(old, new).open) == questions


def test_the_same_parameter_of_several_tools_is_asked_once_and_carried_to_all() -> None:
    old = [tool(name, "label_sku", "amount", "reason") for name in NAMES]
    new = [tool(name, "unit_label_number_text", "amount") for name in NAMES]
    settling = read(old, new)
    question, left = settling.open
    assert question.path == ("params", EVERY, "label_sku")
    assert left.path == ("defaults", EVERY, "reason"), "today's tools want it still"
    assert set(question.tools) == set(NAMES)
    assert settling.shift.mapping.params == {n: {"label_sku": UNDECIDED} for n in NAMES}
    whole = read(old, new, answered(settling.draft, question, question.guess))
    assert whole.shift.mapping.params == {n: {"label_sku": question.guess} for n in NAMES}
    told = read(old, new, answered(settling.draft, left, "none"))
    assert told.shift.mapping.defaults == {name: {"reason": "none"} for name in NAMES}
    assert "defaults.*.reason" not in asked(told)
    gone = read(old, new, answered(settling.draft, question, ""))
    assert "params.*.label_sku" not in asked(gone)


def test_what_is_asked_of_all_survives_its_file(tmp_path: Any) -> None:
    old = [tool(name, "label") for name in NAMES]
    new = [tool(name, "label", "connection") for name in NAMES]
    settling = read(old, new)
    notes = {".".join(one.path): one.note for one in settling.open}
    file = tmp_path / "change.mapping.toml"
    file.write_text(write_mapping(settling.draft, notes))
    assert 'connection = "?"  # what do users say for it?' in file.read_text()
    assert asked(read(old, new, read_mapping(file))) == ["given.*.connection"]
    file.write_text(file.read_text().replace('"?"', '"c-1"'))
    assert asked(read(old, new, read_mapping(file))) == []


# -- at most ten -----------------------------------------------------------------------------------


def many(count: int) -> tuple[list[Any], list[Any]]:
    """Tools that each want another value."""
    old = [tool(f"list_{n}", "label") for n in range(count)]
    return old, [tool(f"list_{n}", "label", f"value_{n}") for n in range(count)]


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 25), st.integers(0, 24))
def test_at_most_ten_are_asked_and_the_rest_is_said(count: int, met: int) -> None:
    old, new = many(count)
    name = f"list_{met % count}"
    settling = read(old, new, calls=lambda: [("task", name, frozenset())])
    first = min(count, MOST_QUESTIONS)
    states = [row.carriage for row in settling.reading.rows]
    assert (len(settling.open), states.count("asked")) == (first, first)
    assert states.count("said") == count - first
    told = [row.note for row in settling.reading.rows if row.carriage == "said"]
    assert all("one of too many questions" in note for note in told)
    if count > MOST_QUESTIONS:  # the tool that a task calls is asked first
        assert settling.open[0].path[1] == name


def test_what_more_tools_need_is_asked_before_what_one_needs() -> None:
    old, new = many(12)
    old += [tool(name, "label") for name in NAMES]
    new += [tool(name, "label", "connection") for name in NAMES]
    assert asked(read(old, new))[0] == "given.*.connection"


# -- a question counts where its answer is carried -------------------------------------------------

ONE = {"type": "object", "properties": {"id": TEXT}, "required": ["id"]}
ITEMS = {"items": {"type": "array", "items": ONE}}
LIST: dict[str, Any] = {"type": "object", "properties": ITEMS, "required": ["items"]}
MORE = {"type": "object", "properties": {"id": TEXT, "zone": TEXT}, "required": ["id", "zone"]}
OTHER = {"type": "object", "properties": {"code_id_text": TEXT}, "required": ["code_id_text"]}
NUMBER = {"type": "integer"}
FLAG = {"type": "boolean"}
LEVEL = {"type": "string", "enum": ["error", "info", "debug"]}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, Any]] = {
    "a tool": (
        tool("get_hours", "place", "day", text="Opening hours of a place on a day."),
        tool("show_schedule", "place", "day", text="Opening times."),
        "renamed.get_hours",
        "show_schedule",
    ),
    "a parameter": (
        tool("list_labels", "sku", "a"),
        tool("list_labels", "unit_sku_number_text", "b_c_d"),
        "params.list_labels.sku",
        "unit_sku_number_text",
    ),
    "a choice": (
        tool("list_labels", order={"type": "string", "enum": ["created_at", "x"]}),
        tool("list_labels", order={"type": "string", "enum": ["made_at", "x"]}),
        "values.list_labels.order.created_at",
        "made_at",
    ),
    "a value of users": (
        tool("list_labels"),
        tool("list_labels", "zone"),
        "given.list_labels.zone",
        "Z-1",
    ),
    "a place of results": (
        tool("get_label", results=ONE),
        tool("get_label", results=MORE),
        "returned.get_label.zone",
        "Z-1",
    ),
    "the size of a page": (
        tool("list_labels", results=LIST),
        tool("list_labels", results=LIST, cursor=TEXT),
        "pages.list_labels.size",
        2,
    ),
    "what is left out": (
        tool("list_labels", "zone"),
        tool("list_labels", zone=TEXT),
        "defaults.list_labels.zone",
        "Z-1",
    ),
    "what today's tool wants and nobody can say": (
        tool("list_labels", "zone", "label"),
        tool("list_labels", "label"),
        "defaults.list_labels.zone",
        "Z-1",
    ),
    "a default that is gone": (
        tool("list_labels", limit={**NUMBER, "default": 5}),
        tool("list_labels", limit=NUMBER),
        "defaults.list_labels.limit",
        7,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_answer_turns_what_is_asked_into_what_is_carried(case: str) -> None:
    old, new, path, answer = CASES[case]
    settling = read([old], [new])
    question: Question = next(one for one in settling.open if ".".join(one.path) == path)
    notes = [row.note for row in settling.reading.rows if row.carriage == "asked"]
    assert notes
    assert all(notes), "what is asked is said beside the change"
    after = read([old], [new], answered(settling.draft, question, answer))
    assert path not in asked(after)
    for row in after.reading.rows:
        assert question.note not in row.note
        if row.change is not None and row.change.kind != "tool_added":
            assert row.carriage in ("carried", "asked"), row


@pytest.mark.parametrize("case", [*CASES, "a value in another unit"])
def test_a_file_that_nobody_has_answered_answers_nothing(case: str, tmp_path: Path) -> None:
    """So the second run of a command says what the first one did, whatever it left behind."""
    euros, cents = ({**NUMBER, "description": f"Amount in {unit}."} for unit in ("euros", "cents"))
    unit = tool("pay", amount=euros), tool("pay", amount=cents)
    old, new = unit if case not in CASES else CASES[case][:2]
    first = read([old], [new])
    file = tmp_path / "mapping.toml"
    file.write_text(write_mapping(first.draft, {}, first.given))
    second = read([old], [new], read_mapping(file))
    assert asked(first)
    assert (asked(second), rows(second)) == (asked(first), rows(first))
    assert second.shift.mapping == first.shift.mapping
    assert second.reading.rows == first.reading.rows


def test_what_was_inferred_is_a_comment_and_an_answer_stays(tmp_path: Path) -> None:
    old = [tool("get_label", "sku"), tool("list_labels", "a"), tool("drop_label", "a")]
    new = [tool("fetch_label", "sku", text="get_label"), tool("list_labels", "a", "zone")]
    given = Answers(removed=["drop_label"])
    first = read(old, new, given)
    file = tmp_path / "mapping.toml"
    file.write_text(write_mapping(first.draft, {}, first.given))
    said = file.read_text()
    assert '\nremoved = ["drop_label"]' in said
    assert '\n# get_label = "fetch_label"' in said
    assert read_mapping(file) == Answers(
        removed=["drop_label"], given={"list_labels": {"zone": UNDECIDED}}
    )


def flag(name: str, text: str) -> dict[str, Any]:
    """A tool with a boolean; "" for one without a text."""
    return tool("set_flag", **{name: {**FLAG, **({"description": text} if text else {})}})


@pytest.mark.parametrize(
    ("old", "new", "is_asked"),
    [
        (("enabled", "Whether it is on."), ("disabled", "Whether it is off."), True),
        (("enabled", ""), ("disabled", ""), True),
        (("archived_too", "With archived ones."), ("archived_too2", "No archived ones."), True),
        (("enabled", "Whether it is on."), ("is_enabled", "Whether it is on."), False),
        (("isEnabled", ""), ("is_enabled", ""), False),
        (("is_archived", ""), ("archived", ""), False),
        (("is_active", "Only active ones."), ("active", "Only the active ones."), False),
    ],
)
def test_a_boolean_that_may_say_the_reverse_is_asked(
    old: tuple[str, str], new: tuple[str, str], is_asked: bool
) -> None:
    settling = read([flag(*old)], [flag(*new)])
    path = f"params.set_flag.{old[0]}"
    assert (path in asked(settling)) == is_asked
    if is_asked:
        assert "reverse" in settling.reading.questions[0]["asked"]
        assert f"[values.set_flag.{old[0]}]" in settling.open[0].note
        assert settling.shift.mapping.params == {"set_flag": {old[0]: UNDECIDED}}


def test_a_boolean_inside_of_an_object_that_may_say_the_reverse_is_asked() -> None:
    sides = [
        tool(
            "set_alarm",
            options={"type": "object", "properties": {name: {**FLAG, "description": said}}},
        )
        for name, said in (("muted", "Ob der Alarm stumm ist."), ("unmuted", "Ob er laut ist."))
    ]
    settling = read([sides[0]], [sides[1]])
    assert asked(settling) == ["params.set_alarm.options.muted"]
    assert "reverse" in settling.reading.questions[0]["asked"]


@pytest.mark.parametrize(
    ("olds", "news", "taken"),
    [
        (
            ("source", "target"),
            ("from_env", "to_env"),
            dict.fromkeys(("source", "target"), UNDECIDED),
        ),
        (
            ("from_env", "to_env"),
            ("from_stage", "to_stage"),
            {"from_env": "from_stage", "to_env": "to_stage"},
        ),
        (
            ("start_date", "end_date"),
            ("startDate", "until_date"),
            {"start_date": "startDate", "end_date": "until_date"},
        ),
    ],
)
def test_parameters_of_one_text_are_paired_by_their_names_alone(
    olds: tuple[str, str], news: tuple[str, str], taken: dict[str, str]
) -> None:
    said = {**TEXT, "description": "Environment of the copy."}
    sides = [[tool("copy_flag", **dict.fromkeys(names, said))] for names in (olds, news)]
    assert read(*sides).shift.mapping.params.get("copy_flag", {}) == taken
    inside = [
        tool("copy_flag", how={"type": "object", "properties": dict.fromkeys(names, said)})
        for names in (olds, news)
    ]
    found = read([inside[0]], [inside[1]]).shift.mapping.params.get("copy_flag", {})
    assert found == {f"how.{old}": new for old, new in taken.items()}


@pytest.mark.parametrize("answer", [None, {"kind": "type"}])
def test_what_one_alternative_requires_is_said_with_its_value(
    answer: dict[str, str] | None,
) -> None:
    name = "type" if answer else "kind"
    kinds = {"type": "string", "enum": ["vacation", "sick"]}
    old = tool("request_leave", kind=kinds, doctor=TEXT)
    needs = {"vacation": [name], "sick": [name, "doctor"]}
    parts = [
        {
            "type": "object",
            "properties": {name: {"const": value}, "doctor": TEXT},
            "required": required,
        }
        for value, required in needs.items()
    ]
    new = {**old, "inputSchema": {"type": "object", "oneOf": parts}}
    settling = read([old], [new], Answers(params={"request_leave": answer}) if answer else None)
    (row,) = (
        r for r in settling.reading.rows if r.change and r.change.kind == "parameter_required"
    )
    assert row.severity == "breaking"
    assert f"where {name} is sick" in row.sentence


@pytest.mark.parametrize("case", CASES)
def test_what_is_only_a_question_of_a_tool_or_parameter_is_not_taken(case: str) -> None:
    old, new, path, _ = CASES[case]
    settled = settled_likely(side_of("mcp", "old", [old]), side_of("mcp", "new", [new]))
    if path.startswith(("renamed", "params")):
        assert not settled.answers.renamed
        assert not settled.answers.params


@pytest.mark.parametrize(
    ("successor", "carried"), [("fetch_label", True), ("purge_label", False), ("etikett_x", False)]
)
def test_a_successor_stands_beside_a_deprecated_tool_and_never_writes_for_a_read(
    successor: str, carried: bool
) -> None:
    old = tool("get_label", "label")
    now = {**old, "description": f"Deprecated, use {successor}."}
    settling = read([old], [now, tool(successor, "label")])
    assert ("tool_superseded" in rows(settling)) == carried
    assert settling.shift.mapping.beside == ({successor: "get_label"} if carried else {})
    assert rows(settling).get("tool_added", set()) == (set() if carried else {"said"})


def test_a_tool_that_only_names_another_is_not_deprecated() -> None:
    old = tool("get_label", "label")
    now = {**old, "description": "See also fetch_label."}
    assert "tool_superseded" not in rows(read([old], [now, tool("fetch_label", "label")]))


@pytest.mark.parametrize(
    ("told", "state"), [({"next_cursor": TEXT}, "carried"), ({}, "said"), ({"zone": TEXT}, "said")]
)
def test_pages_that_only_a_header_leads_on_from_are_said(told: Any, state: str) -> None:
    """A Link header is no part of a result, so nobody can fetch the other pages by it."""
    paged = {**LIST, "properties": {**LIST["properties"], **told}}
    old = tool("list_labels", results=paged, cursor=TEXT)
    assert rows(read([old], [tool("list_labels", results=LIST)]))["parameter_removed"] == {state}


def test_one_of_several_that_became_one_is_asked_and_may_be_gone() -> None:
    page = tool("open_page", "url", text="Opens a page of the browser at an address.")
    back = tool("open_page_back", "steps", text="Opens a page of the browser that was before.")
    more = {"url": TEXT, "back": {"type": "integer"}}
    now = {**page, "inputSchema": {"type": "object", "properties": more}}
    settling = read([page, back], [now])
    assert "renamed.open_page_back" in asked(settling)
    (row,) = (r for r in settling.reading.rows if r.change and r.change.kind == "tool_removed")
    assert (row.carriage, "Is it open_page now?" in row.sentence) == ("asked", True)
    question = next(one for one in settling.open if one.path[0] == "renamed")
    gone = read([page, back], [now], answered(settling.draft, question, ""))
    assert "renamed.open_page_back" not in asked(gone)
    assert rows(gone)["tool_removed"] == {"carried"}
    with pytest.raises(UsageError, match="say both as `merged`"):
        read([page, back], [now], answered(settling.draft, question, "open_page"))


# -- an evening with a maintenance desk ------------------------------------------------------------


def test_the_only_parameter_of_a_successor_is_that_of_the_deprecated_tool() -> None:
    old = tool("find_machine", "name", text="Find a machine by its name.")
    said = "Find a machine by its name. Deprecated: use search_machines."
    later = tool("search_machines", "query", text="Search for a machine by name.")
    settling = read([old], [{**old, "description": said}, later])
    assert asked(settling) == []
    assert settling.shift.mapping.params == {"find_machine": {"name": "query"}}


@pytest.mark.parametrize("back", [False, True])
def test_choices_that_become_numbers_are_asked_and_carried(back: bool) -> None:
    words, numbers = {"enum": ["low", "high"]}, {"type": "integer", "enum": [1, 2]}
    old, new = (numbers, words) if back else (words, numbers)
    settling = read([tool("read", level=old)], [tool("read", level=new)])
    assert len(settling.open) == 2
    answers = Answers()
    for question, word in zip(settling.open, ["low", "high"] if back else ["1", "2"], strict=True):
        assert word in question.choices
        answers = answered(answers, question, word)
    settling = read([tool("read", level=old)], [tool("read", level=new)], answers)
    assert settling.open == ()
    (route,) = settling.shift.release().routes["read"]
    source = settling.shift.release().before.sources["read"]
    pairs = dict(
        zip(
            [q.path[-1] for q in read([tool("read", level=old)], [tool("read", level=new)]).open],
            ["low", "high"] if back else [1, 2],
            strict=True,
        )
    )
    for was, now in pairs.items():
        mine = int(was) if back else was
        assert route.inward({"level": now}, source) == {"level": mine}
        assert route.restated["level"].outward(mine) == now


@given(st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=16, deadline=None)
def test_choices_that_are_like_none_are_asked_as_long_as_one_has_come_that_is(
    gone: int, come: int
) -> None:
    old = ["psi", "xyz", "qqq", "wvu"][:gone]
    new = ["heat", "loam", "dent", "fork"][:come]
    was, now = ({"type": "string", "enum": each} for each in (old, new))
    settling = read([tool("read", sensor=was)], [tool("read", sensor=now)])
    asks = [one for one in settling.open if one.path[0] == "values"]
    assert len(asks) == min(gone, come)
    answers = Answers()
    for question, word in zip(asks, new, strict=False):
        answers = answered(answers, question, word)
    later = read([tool("read", sensor=was)], [tool("read", sensor=now)], answers)
    assert [one for one in later.open if one.path[0] == "values"] == []
    kinds = rows(later)
    assert gone > come or kinds["choice_replaced"] == {"carried"}


@pytest.mark.parametrize("answer", ["weight_kg", ""])
def test_a_value_of_a_record_that_several_tools_return_is_asked_once(answer: str) -> None:
    def both(key: str) -> list[dict[str, Any]]:
        record = {"type": "object", "properties": {"id": TEXT, key: {"type": "number"}}}
        some = {"type": "object", "properties": {"result": {"type": "array", "items": record}}}
        return [tool("get", "id", results=record), tool("list", "shelf", results=some)]

    settling = read(both("weight_g"), both("weight_kg"))
    assert asked(settling) == ["fields.get.weight_g", "units.get.weight_g"]
    assert rows(settling)["output_schema_changed"] == {"asked"}
    assert "list" not in settling.draft.fields
    answers = Answers(fields={"get": {"weight_g": answer}}, units={"get": {"weight_g": "g -> kg"}})
    if answer:
        settling = read(both("weight_g"), both("weight_kg"), answers)
        assert settling.open == ()
        assert settling.shift.mapping.fields["list"] == {"result.weight_g": "result.weight_kg"}
        assert settling.shift.mapping.units["list"] == {"result.weight_g": "g -> kg"}
    else:
        settling = read(both("weight_g"), both("weight_kg"), Answers(fields=answers.fields))
        assert [one.path[0] for one in settling.open if one.path[0] == "fields"] == []
        assert settling.shift.mapping.fields["list"] == {"result.weight_g": ""}


# -- what neither names nor texts pair -------------------------------------------------------------


def lines(name: str) -> dict[str, Any]:
    """A list of objects with a member that is required."""
    record = {"type": "object", "properties": {name: TEXT, "count": TEXT}, "required": [name]}
    return {"type": "array", "items": record}


def test_the_one_that_is_gone_is_asked_beside_the_one_that_has_come() -> None:
    body = read(
        [tool("add_note", "body", title=TEXT)], [tool("add_note", "Idempotency-Key", title=TEXT)]
    )
    assert asked(body) == ["params.add_note.body"]
    old, new = [tool("place_order", lines=lines("sku"))], [tool("place_order", lines=lines("item"))]
    member = read(old, new)
    assert asked(member) == ["params.place_order.lines[].sku"]
    for answer in ("item", "lines[].item"):
        after = read(old, new, answered(member.draft, member.open[0], answer))
        assert asked(after) == []
        assert after.shift.mapping.params["place_order"] == {"lines[].sku": "item"}
    with pytest.raises(UsageError, match=r"unknown part of place_order 'itm': did you mean item"):
        read(old, new, answered(member.draft, member.open[0], "itm"))


def test_of_a_parameter_in_another_unit_only_the_conversion_is_asked() -> None:
    old, new = (tool("log_downtime", "machine", name) for name in ("hours", "minutes"))
    for each, text in ((old, "Hours of standstill."), (new, "Minutes it stood still.")):
        (_, name) = each["inputSchema"]["required"]
        number = {"type": "number", "description": text}
        each["inputSchema"]["properties"][name] = number
    assert asked(read([old], [new])) == ["param_units.log_downtime.hours"]


def ordered(lines: dict[str, Any], **others: Any) -> list[dict[str, Any]]:
    """A tool with a list of lines that have these members."""
    record = {"type": "object", "properties": {"count": TEXT, **lines}}
    return [tool("place_order", lines={"type": "array", "items": record}, **others)]


DEEP = {"type": "object", "properties": {"deep": TEXT}}


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("lines[].sku", "deep", "unknown member there 'deep': there are: count, item"),
        ("lines[].sku", "lines[].meta.deep", "unknown part of place_order"),
        ("note", "lines[].item", r"unknown parameter of place_order 'lines\[\].item'"),
        ("note", "lable", "unknown parameter of place_order 'lable': did you mean label"),
    ],
)
def test_an_answer_names_what_is_at_its_place(path: str, answer: str, said: str) -> None:
    old, new = ordered({"sku": TEXT}, note=TEXT), ordered({"item": TEXT}, label=TEXT, more=DEEP)
    with pytest.raises(UsageError, match=said):
        read(old, new, Answers(params={"place_order": {path: answer}}))


@pytest.mark.parametrize("answer", ["gift.wrap", "lines[].gift.wrap"])
def test_the_name_of_a_member_may_have_a_dot(answer: str) -> None:
    old, new = ordered({"wrap": TEXT}), ordered({"gift.wrap": TEXT})
    settling = read(old, new, Answers(params={"place_order": {"lines[].wrap": answer}}))
    assert settling.shift.mapping.params["place_order"] == {"lines[].wrap": "gift.wrap"}


def test_a_member_may_become_one_that_was_there_and_is_found_among_thousands() -> None:
    many = {f"m{number}": TEXT for number in range(2500)}
    old, new = ordered({"sku": TEXT, "item": TEXT, **many}), ordered({"item": TEXT, **many})
    settling = read(old, new, Answers(params={"place_order": {"lines[].sku": "item"}}))
    assert settling.shift.mapping.params["place_order"] == {"lines[].sku": "item"}


def test_a_result_that_gains_a_unit_is_asked_for_its_conversion() -> None:
    old, new = (
        {"type": "object", "properties": {name: {"type": kind}}}
        for name, kind in (("total", "number"), ("total_cents", "integer"))
    )
    settling = read([tool("get_order", results=old)], [tool("get_order", results=new)])
    assert asked(settling) == ["fields.get_order.total", "units.get_order.total"]
