"""The file of a coming change, written into one's own conversations, in every format."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from toolshift.adapt.release_note import release_note
from toolshift.cli.group import toolshift
from toolshift.core.message import PROTOCOL_TOOLS
from toolshift.data.augment import Recipe, augmented, converted, open_questions
from toolshift.data.conversation import Conversation
from toolshift.data.files import Job, augment_file
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.shifts.release.describe import counts_of, rows_of
from toolshift.shifts.release.file import FORMAT, ShiftFile, read_shift_file
from toolshift.shifts.release.inputs import side_of
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import settle
from toolshift.train.own_data import check_shifted, own_rows

Schema = dict[str, Any]
Tools = dict[str, Schema]
WRITABLE = ("openai", "responses", "anthropic", "gemini", "hermes", "sharegpt", "toolace", "adp")


def _tool(
    description: str, properties: Schema, required: tuple[str, ...] = (), **more: Any
) -> Schema:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"description": description, "inputSchema": schema, **more}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
REASONS = {"type": "string", "enum": ["damaged", "late"]}
OLD: Tools = {
    "get_order": _tool("Reads an order.", {"order_id": TEXT}, ("order_id",)),
    "refund_order": _tool(
        "Refunds an order.", {"order_id": TEXT, "reason": REASONS}, ("order_id", "reason")
    ),
    "ship_order": _tool("Ships an order.", {"order_id": TEXT, "speed": TEXT}, ("order_id",)),
    "close_ticket": _tool("Closes a support ticket.", {"ticket": TEXT}, ("ticket",)),
    "open_ticket": _tool("Opens a support ticket.", {"subject": TEXT}, ("subject",)),
}


def release_of(new: Tools, old: Tools = OLD, **answers: Any) -> ShiftFile:
    """The file of a change between two lists."""
    sides = [
        side_of("mcp", side, [{"name": name, **tool} for name, tool in tools.items()])
        for side, tools in (("old", old), ("new", new))
    ]
    before, after = sides
    settled = settle(before, after, msgspec.convert(answers, Answers), accept=True)
    return ShiftFile(FORMAT, "monday", before, after, settled.answers)


def talk(*turns: tuple[str, Any], tools: Tools = OLD, asked: str = "Please help.") -> Schema:
    """A row of OpenAI messages: calls with their results, and the words at its end."""
    messages: list[Schema] = [{"role": "user", "content": asked}]
    for place, (name, said) in enumerate(turns):
        if name == "says":
            messages.append({"role": "assistant", "content": said})
            continue
        arguments, result = said
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{place}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{place}", "content": json.dumps(result)}
        )
    listed = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": tool["description"],
                "parameters": tool["inputSchema"],
            },
        }
        for name, tool in tools.items()
    ]
    return {"messages": messages, "tools": listed}


def after(row: Schema, file: ShiftFile, tmp_path: Path, to: str = "openai") -> Conversation:
    """The conversation that a row of a format becomes."""
    path = tmp_path / "monday.json"
    path.write_bytes(file.encode())
    made = made_of(row, path, to)
    assert made.rows, made.reasons or made.untried
    (out,) = made.rows
    return read_as(recognised(out), out)


def made_of(row: Schema, path: Path, to: str = "openai") -> Any:
    """What becomes of a row under the file of a change."""
    form = FORMATS.find(to)
    if form.name != "openai":
        row = converted(row, recognised(row), form)
    content = json.dumps(row).encode()
    return augmented(row, content, Recipe(alpha=1.0, shifts=(str(path),)))


def calls(conversation: Conversation) -> list[tuple[str, Schema]]:
    """The calls of a conversation."""
    return [(c.name, c.arguments) for message in conversation.messages for c in message.calls]


def changed(name: str, new_name: str = "", **changes: Any) -> Tools:
    """The old tools with one of them changed, and renamed where a name is given."""
    return {
        (new_name or name if one == name else one): {**tool, **changes} if one == name else tool
        for one, tool in OLD.items()
    }


UPPER = {"type": "string", "enum": ["DAMAGED_GOODS", "LATE"]}
REFUND = ("refund_order", ({"order_id": "O-17", "reason": "damaged"}, {"refund": "R-5"}))
SHIP = ("ship_order", ({"order_id": "O-17"}, {"shipment": "S-9"}))
GET = ("get_order", ({"order_id": "O-17"}, {"order_id": "O-17", "status": "open"}))
CLOSE = ("close_ticket", ({"ticket": "T-4"}, {"closed": True}))
DONE = ("says", "It is done.")


def _schema(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


CASES: dict[str, tuple[Tools, dict[str, Any], tuple[Any, ...], str, list[tuple[str, Schema]]]] = {
    "a choice is called otherwise": (
        changed(
            "refund_order", inputSchema=_schema("order_id", "reason", order_id=TEXT, reason=UPPER)
        ),
        {"values": {"refund_order": {"reason": {"damaged": "DAMAGED_GOODS", "late": "LATE"}}}},
        (REFUND,),
        "",
        [("refund_order", {"order_id": "O-17", "reason": "DAMAGED_GOODS"})],
    ),
    "a tool and a parameter are renamed": (
        changed("get_order", "fetch_order", inputSchema=_schema("order", order=TEXT)),
        {"renamed": {"get_order": "fetch_order"}, "params": {"get_order": {"order_id": "order"}}},
        (GET,),
        "",
        [("fetch_order", {"order": "O-17"})],
    ),
    "a parameter is of another type": (
        changed(
            "close_ticket", inputSchema=_schema("ticket", ticket={"type": "array", "items": TEXT})
        ),
        {},
        (CLOSE,),
        "",
        [("close_ticket", {"ticket": ["T-4"]})],
    ),
    "a required parameter is new, with a default": (
        changed(
            "ship_order",
            inputSchema=_schema(
                "order_id",
                "from",
                order_id=TEXT,
                speed=TEXT,
                **{"from": {**TEXT, "default": "main"}},
            ),
        ),
        {},
        (SHIP,),
        "",
        [("ship_order", {"order_id": "O-17", "from": "main"})],
    ),
    "a required parameter is new, and the user states it": (
        changed(
            "ship_order",
            inputSchema=_schema("order_id", "warehouse", order_id=TEXT, speed=TEXT, warehouse=TEXT),
        ),
        {"given": {"ship_order": {"warehouse": "W-2"}}},
        (SHIP,),
        "Use W-2 as warehouse.",
        [("ship_order", {"order_id": "O-17", "warehouse": "W-2"})],
    ),
    "an option is required": (
        changed(
            "ship_order",
            inputSchema=_schema(
                "order_id", "speed", order_id=TEXT, speed={**TEXT, "default": "slow"}
            ),
        ),
        {},
        (SHIP,),
        "",
        [("ship_order", {"order_id": "O-17", "speed": "slow"})],
    ),
    "two tools are one": (
        {
            **{k: v for k, v in OLD.items() if "ticket" not in k},
            "ticket_action": _tool(
                "Opens or closes a ticket.",
                {
                    "action": {"type": "string", "enum": ["open", "close"]},
                    "ticket": TEXT,
                    "subject": TEXT,
                },
                ("action",),
            ),
        },
        {
            "merged": {
                "ticket_action": {
                    "by": "action",
                    "tools": {"open": "open_ticket", "close": "close_ticket"},
                }
            }
        },
        (CLOSE,),
        "",
        [("ticket_action", {"action": "close", "ticket": "T-4"})],
    ),
    "a dispatcher": (
        {
            **{k: v for k, v in OLD.items() if "ticket" not in k},
            "execute": _tool(
                "Runs a tool.", {"tool": TEXT, "params": {"type": "object"}}, ("tool",)
            ),
        },
        {
            "merged": {
                "execute": {
                    "by": "tool",
                    "tools": {"close_ticket": "close_ticket", "open_ticket": "open_ticket"},
                    "arguments": "params",
                }
            }
        },
        (CLOSE,),
        "",
        [("execute", {"tool": "close_ticket", "params": {"ticket": "T-4"}})],
    ),
    "one tool is two": (
        {
            **{k: v for k, v in OLD.items() if k != "refund_order"},
            "refund_damaged": _tool("Refunds damaged goods.", {"order_id": TEXT}, ("order_id",)),
            "refund_late": _tool("Refunds late goods.", {"order_id": TEXT}, ("order_id",)),
        },
        {
            "split": {
                "refund_order": {
                    "by": "reason",
                    "tools": {"refund_damaged": "damaged", "refund_late": "late"},
                }
            }
        },
        (REFUND,),
        "",
        [("refund_damaged", {"order_id": "O-17"})],
    ),
    "a tool is new": (
        {**OLD, "ping": _tool("Pings.", {})},
        {},
        (GET,),
        "",
        [("get_order", {"order_id": "O-17"})],
    ),
}


@pytest.mark.parametrize("form", WRITABLE)
@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_change_is_written_in_each_format(
    case: str, form: str, tmp_path: Path
) -> None:
    new, answers, turns, sentence, expected = CASES[case]
    file = release_of(new, **answers)
    made = after(talk(*turns, DONE), file, tmp_path, form)
    assert calls(made) == expected
    assert [tool.function["name"] for tool in made.tools] == list(new)
    for tool in made.tools:
        assert tool.function["description"] == new[tool.function["name"]]["description"]
    user = next(m for m in made.messages if m.role == "user")
    assert user.text.strip() == " ".join(filter(None, ["Please help.", sentence]))
    results = [json.loads(m.text) for m in made.messages if m.role == "tool"]
    assert results == [said[1] for name, said in turns]


def test_a_call_whose_tool_is_gone_becomes_a_refusal(tmp_path: Path) -> None:
    new = {name: tool for name, tool in OLD.items() if name != "refund_order"}
    made = after(talk(GET, REFUND, DONE), release_of(new), tmp_path)
    assert calls(made) == [("get_order", {"order_id": "O-17"})]
    assert made.messages[-1].role == "assistant"
    assert "tool" in made.messages[-1].text
    assert all(tool.function["name"] != "refund_order" for tool in made.tools)


READS = {"annotations": {"readOnlyHint": True}}


@pytest.mark.parametrize(
    ("last", "is_needed"), [("It is open.", True), ("Thanks for waiting.", False)]
)
def test_a_tool_that_reads_is_needed_where_its_result_is_used(
    last: str, is_needed: bool, tmp_path: Path
) -> None:
    old = {**OLD, "get_order": {**OLD["get_order"], **READS}}
    new = {name: tool for name, tool in old.items() if name != "get_order"}
    file = release_of(new, old)
    row = talk(GET, ("says", last))
    if is_needed:
        assert calls(after(row, file, tmp_path)) == []
        return
    path = tmp_path / "monday.json"
    path.write_bytes(file.encode())
    (why,) = made_of(row, path).reasons.values()
    assert "get_order is gone" in why


def test_results_move_as_the_mapping_says(tmp_path: Path) -> None:
    file = release_of(OLD, fields={"get_order": {"status": "state"}})
    made = after(talk(GET, ("says", "It is open.")), file, tmp_path)
    (result,) = (json.loads(m.text) for m in made.messages if m.role == "tool")
    assert result == {"order_id": "O-17", "state": "open"}


def test_calls_at_once_stay_at_once(tmp_path: Path) -> None:
    new, answers, *_ = CASES["a choice is called otherwise"]
    row = talk(REFUND, DONE)
    first, second = (dict(row["messages"][place]) for place in (1, 2))
    other = json.loads(json.dumps(first["tool_calls"][0]).replace("call_0", "call_b"))
    first["tool_calls"] = [*first["tool_calls"], other]
    third = {**second, "tool_call_id": "call_b"}
    row["messages"] = [row["messages"][0], first, second, third, row["messages"][-1]]
    made = after(row, release_of(new, **answers), tmp_path)
    assert [len(message.calls) for message in made.messages] == [0, 2, 0, 0, 0]
    assert {arguments["reason"] for _, arguments in calls(made)} == {"DAMAGED_GOODS"}


def test_texts_speak_of_the_new_names_and_users_do_not(tmp_path: Path) -> None:
    new, answers, *_ = CASES["a tool and a parameter are renamed"]
    row = talk(GET, ("says", "get_order says it is open."), asked="What does get_order say?")
    row["messages"].insert(0, {"role": "system", "content": "Use get_order to look up."})
    made = after(row, release_of(new, **answers), tmp_path)
    assert made.messages[0].text == "Use fetch_order to look up."
    assert made.messages[1].text == "What does get_order say?"
    assert made.messages[-1].text == "fetch_order says it is open."


RECORD = {"type": "object", "properties": {"id": TEXT, "total": WHOLE}, "required": ["id", "total"]}


@pytest.mark.parametrize(
    "results",
    [
        {"type": "object", "properties": {"result": TEXT}, "required": ["result"]},
        RECORD,
        {
            "type": "object",
            "properties": {"items": {"type": "array", "items": RECORD}},
            "required": ["items"],
        },
        {"type": "object", "properties": {"content": TEXT, "lines": WHOLE}},
        {"type": "object", "additionalProperties": TEXT},
    ],
    ids=["a text in an object", "a record", "a list", "two values", "a map"],
)
@pytest.mark.parametrize("name", ["get_order", "read_order"])
def test_a_call_without_a_result_is_carried_whatever_results_are_declared_now(
    results: Schema, name: str, tmp_path: Path
) -> None:
    new = {name: {**OLD["get_order"], "outputSchema": results}, "close_ticket": OLD["close_ticket"]}
    file = release_of(new, renamed={} if name == "get_order" else {"get_order": name})
    row = talk(("get_order", ({"order_id": "O-17"}, "")), asked="Look up O-17.")
    row["messages"].pop()
    assert calls(after(row, file, tmp_path)) == [(name, {"order_id": "O-17"})]


def test_a_row_without_results_is_carried(tmp_path: Path) -> None:
    new, answers, *_ = CASES["a choice is called otherwise"]
    row = {
        "query": "Refund O-17.",
        "tools": json.dumps(
            [
                {
                    "name": name,
                    "description": tool["description"],
                    "parameters": tool["inputSchema"]["properties"],
                }
                for name, tool in OLD.items()
            ]
        ),
        "answers": json.dumps([{"name": "refund_order", "arguments": REFUND[1][0]}]),
    }
    old = {
        name: {**tool, "inputSchema": read_as(recognised(row), row).tools[n].function["parameters"]}
        for n, (name, tool) in enumerate(OLD.items())
    }
    path = tmp_path / "monday.json"
    path.write_bytes(release_of(new, old, **answers).encode())
    made = augmented(row, b"x", Recipe(alpha=1.0, shifts=(str(path),)))
    assert made.rows, made.reasons
    assert json.loads(made.rows[0]["answers"])[0]["arguments"]["reason"] == "DAMAGED_GOODS"


NOT_SAID = {
    "nothing says a required parameter": (
        changed(
            "ship_order",
            inputSchema=_schema("order_id", "warehouse", order_id=TEXT, speed=TEXT, warehouse=TEXT),
        ),
        SHIP,
        "[given.ship_order]",
    ),
    "a parameter is gone": (
        changed("refund_order", inputSchema=_schema("order_id", order_id=TEXT)),
        REFUND,
        "reason",
    ),
    "a choice is gone": (
        changed(
            "refund_order",
            inputSchema=_schema(
                "order_id",
                "reason",
                order_id=TEXT,
                reason={"type": "string", "enum": ["late", "other"]},
            ),
        ),
        REFUND,
        "damaged",
    ),
    "the row has other tools": (OLD | {"ping": _tool("Pings.", {})}, SHIP, "it has no get_order"),
}


@pytest.mark.parametrize("case", NOT_SAID)
def test_what_cannot_be_written_is_said(case: str, tmp_path: Path) -> None:
    new, turn, word = NOT_SAID[case]
    path = tmp_path / "monday.json"
    path.write_bytes(release_of(new).encode())
    row = talk(turn, DONE)
    if "tools" in case:
        row["tools"] = [one for one in row["tools"] if one["function"]["name"] != "get_order"]
    made = made_of(row, path)
    assert not made.rows
    (why,) = made.reasons.values()
    assert word in why


@pytest.mark.parametrize(
    "written",
    [
        {"enum": ["late", "damaged"]},
        {"type": "string", "enum": ["late", "damaged"], "title": "Reason"},
        {"enum": ["damaged", "late"], "default": "late"},
    ],
)
def test_choices_may_be_written_otherwise_in_the_rows(written: Schema, tmp_path: Path) -> None:
    new, answers, *_, expected = CASES["a choice is called otherwise"]
    listed = _schema("order_id", "reason", order_id=TEXT, reason=written)
    row = talk(REFUND, DONE, tools=changed("refund_order", inputSchema=listed))
    assert calls(after(row, release_of(new, **answers), tmp_path)) == expected


WITHOUT_REFUND = {name: tool for name, tool in OLD.items() if name != "refund_order"}
OPEN_TOOL = "what has become of refund_order is open: [renamed] refund_order = ..."


def open_file(path: Path, new: Tools, **answers: Any) -> Path:
    """The file of a change between the old tools and new ones, with answers that are open."""
    file = release_of(new)
    mapping = msgspec.convert(answers, Answers)
    path.write_bytes(msgspec.structs.replace(file, mapping=mapping).encode())
    return path


@pytest.mark.parametrize("turns", [(REFUND, DONE), (GET, REFUND, DONE)], ids=["first", "second"])
@pytest.mark.parametrize("new", [WITHOUT_REFUND, WITHOUT_REFUND | {"pay_back": OLD["get_order"]}])
def test_a_call_of_a_tool_that_is_open_is_no_refusal(
    new: Tools, turns: tuple[Any, ...], tmp_path: Path
) -> None:
    path = open_file(tmp_path / "monday.json", new, renamed={"refund_order": "?"})
    made = made_of(talk(*turns), path)
    assert not made.rows
    assert list(made.reasons.values()) == [OPEN_TOOL]
    assert open_questions(Recipe(shifts=(str(path),))) == (OPEN_TOOL,)
    other = made_of(talk(GET, DONE), path)  # one that needs nothing which is open
    assert calls(read_as(recognised(other.rows[0]), other.rows[0])) == [GET_CALL]


GET_CALL = ("get_order", {"order_id": "O-17"})


def test_a_parameter_that_is_open_is_not_carried(tmp_path: Path) -> None:
    new = changed("ship_order", inputSchema=_schema("order_id", order_id=TEXT, pace=TEXT))
    path = open_file(tmp_path / "monday.json", new, params={"ship_order": {"speed": "?"}})
    question = "what has become of speed of ship_order is open: [params.ship_order] speed = ..."
    fast = ("ship_order", ({"order_id": "O-17", "speed": "fast"}, {"shipment": "S-9"}))
    assert list(made_of(talk(fast, DONE), path).reasons.values()) == [question]
    assert made_of(talk(SHIP, DONE), path).rows
    assert open_questions(Recipe(shifts=(str(path),))) == (question,)


def test_tools_that_no_change_touches_are_never_open(tmp_path: Path) -> None:
    path = open_file(tmp_path / "monday.json", WITHOUT_REFUND, renamed={"refund_order": "?"})
    row = talk(GET, ("final_answer", ({"answer": "It is open."}, "")), DONE)
    row["tools"] += PROTOCOL_TOOLS
    assert made_of(row, path).rows


@pytest.mark.parametrize("way", ["table", "json", "preview"])
def test_the_command_says_what_is_open(way: str, tmp_path: Path) -> None:
    path = open_file(tmp_path / "monday.json", WITHOUT_REFUND, renamed={"refund_order": "?"})
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = (talk(REFUND, DONE), talk(GET, DONE))
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    more = {"table": (), "json": ("--json",), "preview": ("--preview",)}[way]
    words = ["augment", str(source), "--shift", str(path), "--out", str(out), *more]
    done = CliRunner().invoke(toolshift, words)
    assert done.exit_code == 0
    if way == "json":
        assert json.loads(done.stdout)["open"] == [OPEN_TOOL]
    else:
        assert f"Open: {OPEN_TOOL} (rows that need the answer are not shifted)" in done.stderr
    if way != "preview":
        assert f"- {OPEN_TOOL}" in (tmp_path / "out.README.md").read_text()


def test_only_rows_that_are_not_shifted_say_why_not(tmp_path: Path) -> None:
    path = open_file(tmp_path / "monday.json", WITHOUT_REFUND, renamed={"refund_order": "?"})
    source = tmp_path / "in.jsonl"
    rows = [talk(REFUND, DONE, asked=f"Refund it, please: {place}.") for place in range(12)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    recipe = Recipe(alpha=1.0, shifts=(str(path), "transient_error:1"))
    tally = augment_file(Job(source, tmp_path / "out.jsonl", recipe))
    assert sum(tally.shifted.values()) == 12
    assert (sum(tally.skipped.values()) > 0, tally.unshifted) == (True, {})


def test_the_rows_to_train_on_say_what_is_open(tmp_path: Path) -> None:
    path = open_file(tmp_path / "monday.json", WITHOUT_REFUND, renamed={"refund_order": "?"})
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f"{json.dumps(talk(one, DONE))}\n" for one in (REFUND, GET)))
    recipe = Recipe(alpha=1.0, shifts=(str(path),))
    own = own_rows(source, recipe)
    assert sum(own.shifted.values()) == 1
    assert check_shifted(own, recipe).startswith(f"Open: {OPEN_TOOL} (conversations that need it")


def test_what_is_open_is_shown_as_open(tmp_path: Path) -> None:
    path = open_file(tmp_path / "monday.json", WITHOUT_REFUND, renamed={"refund_order": "?"})
    release = read_shift_file(path).release()
    assert ([*release.open], [*release.lost]) == (["refund_order"], [])
    assert [row.old for row in rows_of(release) if row.what == "open"] == ["refund_order"]
    assert counts_of(rows_of(release)) == {"same": 4, "open": 1}
    assert "refund_order is gone, and it is not known what takes its place" in release_note(release)


def _answering(name: str, outputs: Schema) -> Tools:
    return {**OLD, name: {**OLD[name], "outputSchema": outputs}}


STATED = _answering("get_order", _schema("order_id", order_id=TEXT, status=TEXT, carrier=TEXT))
SPARE = _answering("get_order", _schema("order_id", order_id=TEXT))
READ = ("get_order", ({"order_id": "O-17"}, {"order_id": "O-17", "status": "sent", "carrier": "X"}))


@pytest.mark.parametrize(
    ("turns", "asked", "place"),
    [
        ((READ, ("says", "It is sent.")), "", "get_order.status"),
        ((READ, ("says", "Carrier: X.")), "", "get_order.carrier"),
        ((READ, ("close_ticket", ({"ticket": "sent"}, {})), DONE), "", "get_order.status"),
        ((READ, ("says", "O-17 is there.")), "", ""),
        ((READ, ("says", "It is sent.")), "Is it sent?", ""),
        ((("says", "It is sent."), READ, DONE), "", ""),
        ((READ, ("close_ticket", ({"ticket": "T-4"}, {"as": "sent"})), ("says", "sent")), "", ""),
    ],
    ids=["said", "short", "passed", "kept", "asked", "before", "elsewhere"],
)
def test_what_results_have_no_more_is_not_read(
    turns: tuple[Any, ...], asked: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "monday.json"
    gone = {"get_order": {"status": "", "carrier": ""}}
    path.write_bytes(release_of(SPARE, STATED, fields=gone).encode())
    made = made_of(talk(*turns, tools=STATED, asked=asked or "Please help."), path)
    assert bool(made.rows) == (not place)
    assert [why[: len(place) + 9] for why in made.reasons.values()] == (
        [f"it reads {place}"] if place else []
    )
