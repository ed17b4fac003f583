"""Augmented data: what is promised of every row."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from conversations import openai, question
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolshift.core.errors import UsageError
from toolshift.core.files import opened
from toolshift.core.message import PROTOCOL_NAMES, protocol_tools
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.data.augment import COLUMN, DEFAULT, Made, Recipe, augmented, check_recipe
from toolshift.data.augment_quick import Quick
from toolshift.data.card import write_card
from toolshift.data.conversation import Call, Conversation, Message, RowFault
from toolshift.data.files import Job, augment_file
from toolshift.data.formats import FORMATS
from toolshift.data.parquet import without_holes
from toolshift.data.prepared import Prepared, called, prepared
from toolshift.data.replay import check, replay, undone
from toolshift.data.tools import Lent, ToolIndex
from toolshift.shifts.surface import Surface
from toolshift.shifts.training_families import TRAINING_FAMILIES
from toolshift.shifts.wording import opaque
from toolshift.train.data import make_rows
from toolshift.train.scenes import Mix

SEEDS = st.integers(0, 10**6)
OPENAI = FORMATS.find("openai")
NAMES_ONLY = [*TRAINING_FAMILIES.find("SBP"), "description_paraphrase", "schema_noise"]


def index() -> Lent:
    found = ToolIndex()
    for seed in range(30):
        found.add(tool["function"] for tool in openai(seed)["tools"])
    return found.functions


FUNCTIONS = index()


def made(row: dict[str, Any], **recipe: Any) -> Made:
    return augmented(row, json.dumps(row).encode(), Recipe(**{"alpha": 1.0, **recipe}), FUNCTIONS)


@pytest.mark.parametrize("entry", DEFAULT)
def test_the_tools_of_the_conversation_itself_are_never_shifted(entry: str) -> None:
    own = protocol_tools()
    shifted = 0
    for row in make_rows(Mix(kinds=("listing", "hours"), size=40), 4):
        plain = {"messages": row["messages"], "tools": row["tools"]}
        for seed in range(3):
            done = made(plain, shifts=(entry,), seed=seed)
            for each in done.rows:
                assert each["tools"][-len(own) :] == own
            if done.rows:
                shifted += 1
                (last,) = done.rows[-1]["messages"][-1]["tool_calls"]
                assert last["function"]["name"] in PROTOCOL_NAMES
    assert shifted


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.sampled_from([(name,) for name in DEFAULT]))
def test_every_learned_call_fits_the_tools_beside_it(seed: int, shifts: tuple[str, ...]) -> None:
    for row in (openai(seed), question(seed)):
        done = made(row, shifts=shifts)
        for each in done.rows:
            form = FORMATS.find("openai" if "messages" in row else "xlam")
            after = form.read(each)
            check(after)
            assert all(not m.learned or "error" not in m.text for m in after.messages if m.calls)
            assert json.loads(each[COLUMN])["shifts"] == done.shifts
            assert {k: v for k, v in row.items() if k in ("id", "note")}.items() <= each.items()


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    row = openai(seed)
    one, other = (msgspec.json.encode(made(row, seed=3)) for _ in range(2))
    assert one == other


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.sampled_from(NAMES_ONLY), st.sampled_from([1, 2, 3]), st.integers(0, 15))
def test_names_that_are_undone_give_the_original_back(
    seed: int, name: str, severity: int, draw: int
) -> None:
    before = OPENAI.read(openai(seed))
    try:
        ready = prepared(before.tools, (Applied(name, severity),), called(before), draw)
    except NotApplicable:
        assume(False)
    (after,) = replay(before, ready)
    assert undone(after, ready, before) == before


def test_results_and_what_users_say_are_not_renamed() -> None:
    changed = 0
    for seed in range(40):
        row = openai(seed)
        done = made(row, shifts=("identity_erasure:3",))
        for each in done.rows:
            changed += 1
            before, after = OPENAI.read(row), OPENAI.read(each)
            for one, other in zip(before.messages, after.messages, strict=True):
                if one.role in ("user", "tool"):
                    assert one.text == other.text
                assert [list(c.arguments.values()) for c in one.calls] == [
                    list(c.arguments.values()) for c in other.calls
                ]
    assert changed > 30


def test_an_argument_that_no_schema_names_is_not_lost() -> None:
    row = openai(3)
    (name, *_) = [tool["function"]["name"] for tool in row["tools"]]
    said = Message("assistant", calls=(Call(name, {"city": "Rome", "place": "kept"}),))
    ready = Prepared(None, None)  # type: ignore[arg-type]
    ready.__dict__["plain"] = True
    ready.__dict__["surfaces"] = (Surface(params={name: {"city": "place"}}),)
    ready.__dict__["shown"] = ()
    with pytest.raises(NotApplicable, match=r"two arguments of .* would have one name"):
        replay(Conversation((), (said,)), ready)


def test_prose_speaks_of_the_new_names_and_of_no_others() -> None:
    row = openai(5)
    named = row["messages"][0]["content"].split()[1]
    (each,) = made(row, shifts=("identity_erasure:3",)).rows
    shown = [tool["function"]["name"] for tool in each["tools"]]
    old = [tool["function"]["name"] for tool in row["tools"]]
    assert each["messages"][0]["content"] == f"Use {shown[old.index(named)]} when in doubt."
    assert each["messages"][1] == row["messages"][1]


def test_an_answer_keeps_the_keys_that_were_asked_for() -> None:
    answer = '{"query": "tea"}, https://x.org/?query=tea, SELECT 1 WHERE query=\'tea\''
    said = f"As find_place(query='find_place') has it:\n{answer}"
    row = {
        "messages": [
            {"role": "user", "content": "Answer with JSON, a link and SQL."},
            *_called("1", "find_place", {"query": "tea"}, "A-17"),
            {"role": "assistant", "content": said},
        ],
        "tools": [_function("find_place", "Finds a place by what it has.", "query")],
    }
    for shift in ("parameter_rename:3", "identity_erasure:3"):
        (each,) = made(row, shifts=(shift,)).rows
        tool = each["tools"][0]
        (key,) = tool["parameters"]["properties"]
        said, kept = each["messages"][-1]["content"].split("\n")
        assert said == f"As {tool['name']}({key}='find_place') has it:"
        assert kept == answer
        quick = Quick(Recipe(alpha=1.0, shifts=(shift,))).line(json.dumps(row).encode())
        assert quick is not None
        assert json.loads(quick[0])["messages"][-1] == each["messages"][-1]


def test_what_is_said_and_learned_names_no_tool_that_has_gone_midway() -> None:
    row = {
        "messages": [
            {"role": "user", "content": "Book a table where they have tea."},
            *_called("1", "find_place", {"query": "tea"}, "A-17"),
            *_called("2", "book_table", {"place_id": "A-17"}, "ok"),
            {"role": "assistant", "content": "Done with book_table."},
        ],
        "tools": [
            _function("find_place", "Finds a place by what it has.", "query"),
            _function("book_table", "Books a table at a place.", "place_id"),
        ],
    }
    shift = "tool_migrated:1"
    found = made(row, shifts=(shift,))
    assert "names a tool that is gone" in found.reasons["tool_migrated"]
    row["messages"][-1]["content"] = "Done."
    assert len(made(row, shifts=(shift,)).rows) == 2


def test_a_tool_that_is_left_speaks_of_none_that_has_gone_midway() -> None:
    row = {
        "messages": [
            {"role": "user", "content": "Book a table where they have tea."},
            *_called("1", "find_place", {"query": "tea"}, "A-17"),
            *_called("2", "book_table", {"place_id": "A-17"}, "ok"),
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [
            _function("find_place", "Finds a place by what it has.", "query"),
            _function("book_table", "Books a table at a place.", "place_id"),
        ],
    }
    shift = "tool_removed_midway:2"
    assert made(row, shifts=(shift,)).rows
    row["tools"][1]["description"] = "Books a table at a place of find_place."
    found = made(row, shifts=(shift,))
    assert "a tool that is left speaks of one that is gone" in found.reasons["tool_removed_midway"]


def _ended(said: str, told: str) -> tuple[set[str], set[str]]:
    """The endings that a conversation gets, and why it gets no others."""
    row = {
        "messages": [
            {"role": "user", "content": "Book a table where they have tea."},
            *_called("1", "find_place", {"query": "tea"}, "A-17"),
            *_called("2", "send_mail", {"text": "A-17"}, "ok"),
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [
            _function("find_place", "Finds a place by what it has.", "query"),
            _function("send_mail", "Writes a letter to the guest.", "text"),
            _function("cancel_taxi", told, "number"),
        ],
    }
    row["messages"][1]["content"] = said
    row["tools"][2]["parameters"]["properties"]["number"]["type"] = "integer"  # no text does more
    found = [made(row, shifts=("endings",), seed=seed) for seed in range(12)]
    return {each.shifts for each in found}, {why for each in found for why in each.reasons.values()}


def test_an_ending_takes_no_tool_that_is_spoken_of() -> None:
    taxi, gone = "Calls a car off.", "what is said names a tool that is gone by then"
    both = {"tool_gone", "tool_gone_lookalike"}
    assert _ended("I look for it.", taxi) == (both, set())
    assert _ended("I look, then use send_mail.", taxi) == (both - {"tool_gone"} | {""}, {gone})
    assert _ended("Not with cancel_taxi.", taxi) == (both - {"tool_gone_lookalike"} | {""}, {gone})
    _, why = _ended("I look for it.", "Calls a car off; see send_mail.")
    assert why == {"a tool that is left speaks of one that is gone by then"}


def test_an_argument_that_is_null_is_passed_on_to_a_successor() -> None:
    tool = _function("pay_rent", "Pays the rent of a flat.", "flat")
    tool["parameters"]["properties"]["day"] = {"type": ["string", "null"]}
    row = {
        "messages": [
            {"role": "user", "content": "Pay the rent."},
            *_called("1", "pay_rent", {"flat": "F-1", "day": None}, "ok"),
        ],
        "tools": [tool],
    }
    done = made(row, shifts=("redirect:3",))
    assert done.rows, done.reasons
    (last,) = done.rows[-1]["messages"][-2]["tool_calls"]
    assert None in json.loads(last["function"]["arguments"]).values()


def _called(own: str, name: str, given: dict[str, Any], result: str) -> list[dict[str, Any]]:
    call = {"id": own, "function": {"name": name, "arguments": json.dumps(given)}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": own, "content": json.dumps({"place_id": result})},
    ]


def _function(name: str, told: str, param: str) -> dict[str, Any]:
    known = {param: {"type": "string", "description": f"The {param}."}}
    schema = {"type": "object", "properties": known, "required": [param]}
    return {"name": name, "description": told, "parameters": schema}


def test_a_provoked_failure_is_not_learned_and_is_put_right() -> None:
    (each,) = made(openai(3), shifts=("transient_error:1",)).rows
    calls = [m for m in each["messages"] if m.get("tool_calls")]
    failed = [m for m in calls if m.get("weight") == 0]
    assert len(failed) == 1
    place = each["messages"].index(failed[0])
    retried = each["messages"][place + 2]
    one, other = (OPENAI.read({"messages": [m]}).messages[0].calls[0] for m in (retried, failed[0]))
    assert (one.name, one.arguments) == (other.name, other.arguments)
    assert "weight" not in retried


def opaque_names(pool: str) -> set[str]:
    """Words out of which a pool makes names that say nothing."""
    rng = Random(0)
    return {re.sub(r"[\W\d_]", "", opaque(pool, rng)).lower() for _ in range(400)}


# -- which tools -----------------------------------------------------------------------------------

OF_TOOLS = [*NAMES_ONLY, "opaque_parameters", "semantic_trap", "type_change"]
"""Shifts of which severity 1 is of one needed tool."""


def of_called(row: dict[str, Any]) -> list[Any]:
    """What a row calls and how, with the tools of these calls."""
    shown = {tool["function"]["name"]: tool["function"] for tool in row["tools"]}
    calls = [call["function"] for said in row["messages"] for call in said.get("tool_calls") or ()]
    return [(call["name"], json.loads(call["arguments"]), shown[call["name"]]) for call in calls]


@pytest.mark.parametrize("severity", [1, 2, 3])
@pytest.mark.parametrize("name", OF_TOOLS)
def test_a_shifted_row_calls_a_tool_that_changes(name: str, severity: int) -> None:
    shifted = 0
    for seed in range(30):
        row = openai(seed)
        for each in made(row, shifts=(f"{name}:{severity}",)).rows:
            shifted += 1
            assert of_called(each) != of_called(row)
    assert shifted > 12


def test_one_of_the_called_tools_changes_and_which_one_is_drawn() -> None:
    changed, source = (
        set(),
        next(
            row
            for row in map(openai, range(99))
            if len({name for name, _, _ in of_called(row)}) > 1
        ),
    )
    for number in range(20):
        row = source | {"number": number}
        (each,) = made(row, shifts=("identity_erasure:1",)).rows
        before, after = ([tool["function"]["name"] for tool in r["tools"]] for r in (row, each))
        (name,) = set(before) - set(after)
        changed.add(name)
    assert changed == {name for name, _, _ in of_called(source)}


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_where_no_tool_that_is_called_can_be_changed_nothing_is_shifted(severity: int) -> None:
    row = openai(3)
    for tool in row["tools"][1:]:
        tool["function"]["description"] = ""
    called_only = row["tools"][1]["function"]["name"]
    row["tools"][1]["function"]["parameters"] = {"type": "object", "properties": {}}
    for said in row["messages"]:
        for call in said.get("tool_calls") or ():
            call["function"] |= {"name": called_only, "arguments": "{}"}
    for name in ("identity_erasure", "parameter_rename", "description_paraphrase"):
        done = made(row, shifts=(f"{name}:{severity}",))
        assert not done.rows
        assert "called" in done.reasons[name] or "needs" in done.reasons[name]
        assert Quick(Recipe(1.0, (f"{name}:{severity}",))).line(json.dumps(row).encode()) is None


def test_a_row_that_only_refuses_is_shifted_like_those_that_work() -> None:
    row = openai(3)
    row["tools"] += protocol_tools()
    for said in row["messages"]:
        for call in said.get("tool_calls") or ():
            call["function"] |= {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    assert made(row, shifts=("identity_erasure:1",)).rows


def test_names_of_the_evaluation_never_appear() -> None:
    names = [
        re.sub(r"[\W\d_]", "", tool["function"]["name"]).lower()
        for seed in range(60)
        for row in made(openai(seed), shifts=("identity_erasure:3",)).rows
        for tool in row["tools"]
    ]
    train, other = opaque_names("train"), opaque_names("dev") | opaque_names("test")
    assert set(names) & train
    assert not set(names) & (other - train)


def test_the_index_is_the_same_in_any_order() -> None:
    lists = [[tool["function"] for tool in openai(seed)["tools"]] for seed in range(40)]
    one, other = ToolIndex(20), ToolIndex(20)
    for each in lists:
        one.add(each)
    for each in reversed(lists):
        other.add(each)
    assert one.functions == other.functions
    assert sum(map(len, one.functions.values())) == 20


def in_text(row: dict[str, Any]) -> None:
    row["tools"] = json.dumps(row["tools"])


def without_content(row: dict[str, Any]) -> None:
    for said in row["messages"]:
        if said.get("tool_calls"):
            del said["content"]


def with_nothing_in_it(row: dict[str, Any]) -> None:
    for said in row["messages"]:
        said.setdefault("tool_calls", None)
        said.setdefault("function_call", None)
        said.setdefault("name", None)
        said["content"] = said["content"] or None
    row["tool_calls"], row["when"] = [], {"at": [1.0, None]}


def with_objects(row: dict[str, Any]) -> None:
    for said in row["messages"]:
        for call in said.get("tool_calls") or ():
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])


def with_thoughts(row: dict[str, Any]) -> None:
    name = row["tools"][0]["function"]["name"]
    for said in row["messages"]:
        if said["role"] == "assistant":
            said["reasoning_content"] = f"I call `{name}`."


def schemas(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [tool["function"]["parameters"] for tool in row["tools"]]


def closed(row: dict[str, Any]) -> None:
    for schema in schemas(row):
        schema["additionalProperties"] = False


def with_demands(row: dict[str, Any]) -> None:
    for schema in schemas(row):
        first, *_, last = [*schema["properties"]] * 2
        schema["dependentRequired"] = {first: [last]}


def with_references(row: dict[str, Any]) -> None:
    for schema in schemas(row):
        first, *_, last = [*schema["properties"]] * 2
        if first != last:
            schema["properties"][last] = {"$ref": f"#/properties/{first}"}


def with_undeclared_arguments(row: dict[str, Any]) -> None:
    for said in row["messages"]:
        for place, call in enumerate(said.get("tool_calls") or ()):
            given = json.loads(call["function"]["arguments"])
            # Names that parameters of other tools, or of draws of the shifts, have.
            more = {"a": 1, "id": 2, "param_1": [place], "order": None, "arg_1": 3}
            call["function"]["arguments"] = json.dumps({**more, **given})


def without_arguments(row: dict[str, Any]) -> None:
    for schema in schemas(row):
        schema["required"] = []
    for said in row["messages"]:
        for call in said.get("tool_calls") or ():
            call["function"]["arguments"] = "{}"


ODD = [dict, in_text, without_content, with_nothing_in_it, with_objects, with_thoughts]
ODD_SCHEMAS = [
    closed,
    with_demands,
    with_references,
    with_undeclared_arguments,
    without_arguments,
]


@settings(max_examples=200, deadline=None)
@given(
    SEEDS,
    st.sampled_from(["SBP", "SRP", "identity_erasure:3", "EFP"]),
    st.sampled_from([*ODD, *ODD_SCHEMAS]),
)
def test_the_quick_way_says_the_same(
    seed: int, entry: str, change: Callable[[dict[str, Any]], object]
) -> None:
    row = openai(seed)
    change(row)
    content = json.dumps(row).encode()
    recipe = Recipe(alpha=0.7, shifts=(entry,), seed=4)
    quick = Quick(recipe).line(content)
    if quick is None:
        return  # left to the other
    slow = augmented(row, content, recipe)
    line, shifts = quick
    assert shifts == slow.shifts
    # In the same order too, for that is what a trainer's template writes.
    assert json.dumps(json.loads(line)) == json.dumps(slow.rows[0] if slow.rows else row)


def test_calls_fit_what_is_shown_also_where_schemas_are_odd() -> None:
    shifted, faults = 0, 0
    for change in ODD_SCHEMAS:
        quick = Quick(Recipe(alpha=1.0, shifts=("parameter_rename:3",)))
        for seed in range(60):
            row = openai(seed)
            change(row)
            found = quick.line(json.dumps(row).encode())
            if found is None or not found[1]:
                faults += 1
                continue
            shifted += 1
            check(OPENAI.read(json.loads(found[0])))
    assert min(shifted, faults) > 20


@pytest.mark.parametrize("change", ODD, ids=lambda change: change.__name__)
def test_most_lines_take_the_quick_way(change: Callable[[dict[str, Any]], object]) -> None:
    quick = Quick(Recipe(alpha=1.0, shifts=("identity_erasure:3",)))
    for seed in range(20):
        row = openai(seed)
        change(row)
        assert quick.line(json.dumps(row).encode())


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [openai(seed) if seed % 3 else question(seed) for seed in range(700)]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_untouched_rows_are_the_same_bytes_whatever_the_workers(source: Path) -> None:
    recipe = Recipe(alpha=0.3)
    alone, several = source.with_name("a.jsonl"), source.with_name("b.jsonl")
    tally = augment_file(Job(source, alone, recipe))
    augment_file(Job(source, several, recipe, workers=2))
    assert alone.read_bytes() == several.read_bytes()
    kept = [line for line in lines(alone) if COLUMN.encode() not in line]
    assert len(kept) == tally.same
    assert set(kept) <= set(lines(source))
    assert 0.2 < sum(tally.shifted.values()) / tally.rows < 0.4
    assert not list(source.parent.glob(".*"))


def test_the_order_of_rows_decides_nothing(source: Path) -> None:
    turned = source.with_name("turned.jsonl")
    turned.write_bytes(b"".join(reversed(lines(source))))
    outs = [path.with_suffix(".out.jsonl") for path in (source, turned)]
    for path, out in zip((source, turned), outs, strict=True):
        augment_file(Job(path, out, Recipe(seed=1)))
    one, other = (sorted(lines(out)) for out in outs)
    assert one == other


def test_an_interrupted_run_goes_on(source: Path) -> None:
    whole, out = source.with_name("whole.jsonl"), source.with_name("out.jsonl")
    augment_file(Job(source, whole, Recipe()))

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        augment_file(Job(source, out, Recipe()), stop)
    assert not out.exists()
    seen: list[int] = []
    augment_file(Job(source, out, Recipe()), lambda done, total: seen.append(done))
    assert seen == [700], "the first rows were not done again"
    assert out.read_bytes() == whole.read_bytes()


def test_bad_rows_are_named_and_the_rest_goes_on(source: Path) -> None:
    undeclared = openai(1)
    undeclared["messages"][2]["tool_calls"][0]["function"]["name"] = "nobody"
    with source.open("ab") as file:
        file.write(b"{broken\n")
        file.write(json.dumps(undeclared).encode() + b"\n")
    out = source.with_name("out.jsonl")
    tally = augment_file(Job(source, out, Recipe()))
    assert [line for line, _ in tally.faults] == [701, 702]
    assert "not JSON" in tally.faults[0][1]
    assert "nobody is called, and is no tool on offer" in tally.faults[1][1]
    assert tally.rows == 700
    with pytest.raises(UsageError, match=r"in\.jsonl, line 701: not JSON"):
        augment_file(Job(source, source.with_name("strict.jsonl"), Recipe(), strict=True))
    assert not list(source.parent.glob("*strict*"))


def test_a_killed_run_goes_on_to_the_same_bytes(source: Path) -> None:
    whole, out = source.with_name("whole.jsonl"), source.with_name("out.jsonl")
    augment_file(Job(source, whole, Recipe()))
    killed = (
        "import os, signal, sys; from pathlib import Path; "
        "from toolshift.data.augment import Recipe; "
        "from toolshift.data.files import Job, augment_file; "
        "augment_file(Job(Path(sys.argv[1]), Path(sys.argv[2]), Recipe()), "
        "lambda done, total: os.kill(os.getpid(), signal.SIGKILL))"
    )
    code = subprocess.run([sys.executable, "-c", killed, source, out], check=False).returncode
    assert code == -signal.SIGKILL
    assert not out.exists()
    seen: list[int] = []
    augment_file(Job(source, out, Recipe()), lambda done, total: seen.append(done))
    assert seen == [700]
    assert out.read_bytes() == whole.read_bytes()


def test_the_card_is_one_of_hugging_face(source: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    job = Job(source, source.with_name("out.jsonl"), Recipe())
    path = write_card(job, augment_file(job), "toolshift augment in.jsonl --out out.jsonl")
    card = hub.DatasetCard.load(path)
    assert card.data.to_dict()["task_categories"] == ["text-generation"]
    assert card.content.count("## Example") == 3


def test_each_output_has_a_card_of_its_own(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(openai(0)) + "\n")
    names = {"mine.v1.jsonl": "mine.v1.README.md", "mine.v2.jsonl.gz": "mine.v2.README.md"}
    for out, card in names.items():
        job = Job(source, tmp_path / out, Recipe(alpha=0))
        assert write_card(job, augment_file(job), "").name == card


def test_of_a_file_that_cannot_be_read_nothing_is_left(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("[1]\n{broken\n")
    with pytest.raises(UsageError, match=r"none of its rows could be read; line 1: no JSON object"):
        augment_file(Job(source, tmp_path / "out.jsonl", Recipe()))
    assert [each.name for each in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.parquet"])
def test_compressed_and_parquet(source: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    out = source.with_name(name)
    tally = augment_file(Job(source, out, Recipe(to="openai")))
    again = augment_file(Job(out, source.with_name("again.jsonl"), Recipe(alpha=0.0)))
    assert again.rows == tally.written
    assert again.wrong == 0


def test_json_lines_become_columns_with_their_types(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {
            **openai(seed),
            "n": seed,
            "score": seed if seed % 2 else seed / 4,
            "ok": seed % 3 == 0,
            "tags": ["a"] if seed > 5 else None,
            "same": {"x": seed, "y": [1]},
            "other": {"x": 1} if seed > 30 else {"y": 2},
            "mixed": seed if seed > 30 else "none",
            "late": {"deep": True},
        }
        for seed in range(40)
    ]
    del rows[0]["late"]
    source, out = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tally = augment_file(Job(source, out, Recipe(alpha=0.0)))
    assert tally.as_text == ["tools", "other", "mixed"]
    types = {field.name: field.type for field in parquet.read_schema(out)}
    kinds = [types[name] for name in ("n", "score", "ok", "tags", "other")]
    text = pyarrow.string()
    assert kinds == [pyarrow.int64(), pyarrow.float64(), pyarrow.bool_(), pyarrow.list_(text), text]
    made = [without_holes(row) for row in parquet.read_table(out).to_pylist()]
    for row, back in zip(rows, made, strict=True):
        back |= {name: json.loads(back[name]) for name in ("tools", "other")}
        assert {**back, "mixed": str(back["mixed"])} == without_holes(
            {**row, "mixed": str(row["mixed"])}
        )


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_a_json_file_is_one_list(source: Path, name: str) -> None:
    given = source.with_name("in.json")
    rows = [json.loads(line) for line in lines(source)[:40]]
    given.write_text(json.dumps(rows, indent=1))
    plain, out = source.with_name("plain.jsonl"), source.with_name(name)
    tally = augment_file(Job(given, out, Recipe(alpha=0.5)))
    with opened(out) as file:
        made = json.load(file)
    augment_file(Job(given, plain, Recipe(alpha=0.5)))
    assert made == [json.loads(line) for line in lines(plain)]
    assert augment_file(Job(out, plain, Recipe(alpha=0.0))).rows == tally.written


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_column_of_the_users_is_not_overwritten(tmp_path: Path, alpha: float) -> None:
    source, out, again = (tmp_path / f"{name}.jsonl" for name in ("in", "out", "again"))
    rows = [openai(1), {**openai(2), COLUMN: "mine"}, {**openai(3), COLUMN: ""}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tally = augment_file(Job(source, out, Recipe(alpha=alpha, shifts=("SBP",))))
    ((line, why),) = tally.faults
    assert line == 2
    assert "give that column another name" in why
    assert not augment_file(Job(out, again, Recipe(alpha=alpha))).faults, "ours may stand there"


def in_columns(seed: int) -> dict[str, Any]:
    """A row with columns of many types, and with messages that have more than we know of."""
    said = [
        {**each, "at": datetime(2026, 1, 1), "raw": b"\x00\xff"} for each in openai(3)["messages"]
    ]
    return {
        "messages": said,
        "tools": json.dumps(openai(3)["tools"]),
        "id": f"row {seed}",
        "n": seed,
        "score": float("nan") if seed % 5 else 0.5,
        "ok": seed % 2 == 0,
        "when": datetime(2026, 1, 1),
        "tags": ["a", None] if seed > 30 else None,
        "blob": b"\x00\xff",
        "meta": {"by": None, "deep": [{"x": 1}]},
    }


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_columns_of_parquet_keep_their_types(tmp_path: Path, unit: str) -> None:
    datasets = pytest.importorskip("datasets")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pyarrow.Table.from_pylist([in_columns(seed) for seed in range(60)])
    place = table.schema.get_field_index("when")
    table = table.set_column(place, "when", table["when"].cast(pyarrow.timestamp(unit)))
    datasets.Dataset(table).to_parquet(source)
    tally = augment_file(Job(source, out, Recipe(alpha=0.4, shifts=("SBP", "EFP"))))
    assert tally.as_text == []
    before, after = parquet.read_table(source), parquet.read_table(out)
    now = {field.name: field.type for field in after.schema}
    item = now.pop("messages").value_type
    assert item.field("weight").type == pyarrow.int64()
    assert now.pop(COLUMN) == pyarrow.string()
    assert now == {f.name: f.type for f in before.schema if f.name != "messages"}
    was = {row["id"]: row for row in before.to_pylist()}
    shifted = 0
    for row in after.to_pylist():
        old = was[row["id"]]
        shifted += bool(row[COLUMN])
        same = old.keys() - ({"messages", "tools"} if row[COLUMN] else {"messages"})
        assert repr([row[key] for key in same]) == repr(
            [old[key] for key in same]
        )  # NaN is not NaN
        assert row["messages"][1]["at"] == datetime(2026, 1, 1)
        if not row[COLUMN]:
            assert without_holes(row["messages"]) == without_holes(old["messages"])
    assert 10 < shifted < 50
    assert len(datasets.Dataset.from_parquet(str(out), cache_dir=str(tmp_path / "c"))) == 60


def test_a_column_of_parquet_is_json_where_its_type_holds_no_shift(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    rows = [{**openai(3), "tools": json.dumps(openai(3)["tools"]), "n": n} for n in range(40)]
    for row in rows:
        row["messages"] = [{**each, "weight": "full"} for each in row["messages"]]
    parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    tally = augment_file(Job(source, out, Recipe(alpha=0.6, shifts=("EFP",))))
    assert tally.as_text == ["messages"]
    made = parquet.read_table(out)
    assert made.schema.field("n").type == pyarrow.int64()
    assert all(isinstance(json.loads(text), list) for text in made["messages"].to_pylist())


def test_a_recipe_is_checked_before_the_work() -> None:
    for recipe, why in (
        (Recipe(alpha=2), "from 0 to 1"),
        (Recipe(shifts=("redirct",)), "redirect"),
        (Recipe(to="xlm"), "xlam"),
        (Recipe(severities=(4,)), "from 1 to 3"),
        (Recipe(shifts=("distractors:4",)), "from 1 to 3"),
        (Recipe(shifts=("endings:1",)), "endings knows no severity: write endings"),
        (Recipe(shifts=("redirect:2+distractors:2",)), "distractors in .* stands alone"),
    ):
        with pytest.raises(UsageError, match=why):
            check_recipe(recipe)


@pytest.mark.parametrize("shift", ["distractors", "distractors:2", "endings"])
def test_what_a_row_went_through_can_be_asked_for(shift: str) -> None:
    went = {made(openai(seed), shifts=(shift,)).shifts for seed in range(12)} - {""}
    assert went
    for name in went - {"tool_gone_lookalike"}:
        again = {made(openai(seed), shifts=(name,)).shifts for seed in range(12)} - {""}
        assert again == {name}


def test_a_severity_of_distractors_is_how_many_there_are(tmp_path: Path) -> None:
    row = openai(3)
    for severity, count in ((1, 1), (2, 3), (3, 8)):
        (each,) = made(row, shifts=(f"distractors:{severity}",), severities=(1,)).rows
        assert len(each["tools"]) == len(row["tools"]) + count
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(openai(seed))}\n" for seed in range(30)))
    tally = augment_file(Job(source, out, Recipe(alpha=1.0, shifts=("distractors:2",))))
    assert tally.shifted.keys() == {"distractors:2"}


def test_a_format_that_cannot_say_it_is_told() -> None:
    with pytest.raises(RowFault, match="xlam holds one question"):
        made(openai(1), to="xlam")


def added_to(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a row with distractors in it."""
    (each,) = made(row, shifts=("distractors",), severities=(1,)).rows
    listed: list[dict[str, Any]] = json.loads(each["tools"])
    return listed


def test_a_distractor_is_written_as_the_other_tools_are() -> None:
    """How it is wrapped, and which words it has for types, would tell it apart."""
    row = openai(3)
    bare = json.dumps([tool["function"] for tool in row["tools"]])
    assert not any("function" in tool for tool in added_to({**row, "tools": bare}))
    flat = json.dumps([{"type": "function", **tool["function"]} for tool in row["tools"]])
    assert all(tool["type"] == "function" for tool in added_to({**row, "tools": flat}))
    asked = {"query": "Go.", "tools": bare, "answers": "[]"}
    calls = [call["function"] for said in row["messages"] for call in said.get("tool_calls", ())]
    said = [{"name": one["name"], "arguments": json.loads(one["arguments"])} for one in calls]
    for tool in added_to({**asked, "answers": json.dumps(said)}):
        assert tool["parameters"]["type"] == "object"


def test_a_distractor_speaks_the_types_of_the_list() -> None:
    of_int = {"type": "dict", "properties": {"n": {"type": "int"}}, "required": ["n"]}
    raws = [{"name": "f", "description": "F.", "parameters": of_int, "required": None}]
    said = [{"from": "user", "value": "Go."}, {"from": "assistant", "value": "[f(n=1)]"}]
    row = {"system": f"Use these: {json.dumps(raws)}", "conversations": said}
    (each,) = made(row, shifts=("distractors",), severities=(1,)).rows
    listed = json.loads(each["system"].removeprefix("Use these: "))
    assert len(listed) == 2
    for tool in listed:
        assert tool["parameters"]["type"] == "dict"
        assert tool["required"] is None
        kinds = [one["type"] for one in tool["parameters"]["properties"].values()]
        assert "integer" not in kinds


@pytest.mark.parametrize("key", ["inputSchema", "input_schema"])
def test_a_schema_may_stand_where_others_have_it(key: str) -> None:
    """As lists of MCP and of Anthropic do."""
    row = openai(3)
    functions = [tool["function"] for tool in row["tools"]]
    row["tools"] = [
        {"name": tool["name"], "description": tool["description"], key: tool["parameters"]}
        for tool in functions
    ]
    for shifts in (("parameter_rename:3",), ("schema_noise:3",)):
        (each,) = made(row, shifts=shifts).rows
        assert [tool.keys() for tool in each["tools"]] == [tool.keys() for tool in row["tools"]]
        now = [tool[key]["properties"].keys() for tool in each["tools"]]
        assert now != [tool["parameters"]["properties"].keys() for tool in functions]
        check(OPENAI.read(each))
    broken = json.loads(json.dumps(row).replace('"required"', '"maxProperties": 0, "required"'))
    with pytest.raises(RowFault):
        made(broken)


def test_arguments_in_a_string_stay_in_a_string() -> None:
    """Of a row that is shifted as of one that is not, or a model learns both."""
    said = {"name": "find", "arguments": json.dumps({"query": "tea"})}
    row = {
        "conversations": [
            {"from": "human", "value": "Find tea."},
            {"from": "function_call", "value": json.dumps(said)},
            {"from": "observation", "value": "tea"},
        ],
        "tools": [{"name": "find", "description": "Finds things in the shop.", "parameters": {}}],
    }
    (each,) = made(row, shifts=("identity_erasure:3",)).rows
    call = json.loads(each["conversations"][1]["value"])
    assert call["name"] != "find"
    assert json.loads(call["arguments"]) == {"query": "tea"}


# -- a shifted row is written as its row was -------------------------------------------------------


def _shop(dumps: Callable[[Any], str], form: str) -> dict[str, Any]:
    """A conversation in which all JSON in texts is written in one way."""
    call = {"name": "find_item", "arguments": {"query": "thé", "max_price": 4}}
    found = {"item": "thé", "price": 3}
    function = {
        "name": "find_item",
        "description": "Finds an item.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What is wanted."},
                "max_price": {"type": "integer", "description": "The most it may cost."},
            },
        },
    }
    if form == "openai":
        inner = {"name": "find_item", "arguments": dumps(call["arguments"])}
        messages = [
            {"role": "user", "content": "Tea?"},
            {"role": "assistant", "tool_calls": [{"id": "1", "function": inner}]},
            {"role": "tool", "tool_call_id": "1", "content": dumps(found)},
            {"role": "assistant", "content": "Yes."},
        ]
        return {"messages": messages, "tools": dumps([function])}
    if form == "xlam":
        return {"query": "Tea?", "tools": dumps([function]), "answers": dumps([call])}
    if form == "sharegpt":
        turns = [("human", "Tea?"), ("function_call", dumps(call)), ("observation", dumps(found))]
        head: dict[str, Any] = {"tools": dumps([function])}
    elif form == "toolace":
        said = '[find_item(query="thé", max_price=4)]'
        result = dumps([{"name": "find_item", "results": found}])
        turns, head = [("user", "Tea?"), ("assistant", said), ("tool", result)], {}
        head["system"] = f"You have: {dumps([function])}"
    else:
        system = f"You have <tools>{dumps([function])}</tools>."
        said, result = f"<tool_call>{dumps(call)}</tool_call>", dumps(found)
        turns = [("system", system), ("human", "Tea?"), ("gpt", said), ("tool", result)]
        head = {}
    return {**head, "conversations": [{"from": who, "value": what} for who, what in turns]}


WRITERS: dict[str, Callable[[Any], str]] = {
    "spaced": partial(json.dumps, ensure_ascii=False),
    "escaped": json.dumps,
    "lines": partial(json.dumps, ensure_ascii=False, indent=2),
    "compact": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
}


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [text for each in inner for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _holds(text: str, how: str) -> set[str]:
    """The ways in which JSON is written in a text, other than the one that is meant."""
    signs = {
        "spaced": r'(?<!\\)": (?![\[{]\n)',
        "escaped": r"\\u00e9",
        "lines": r"[\[{,]\n +",
        "compact": r'(?<!\\)":\S',
    }
    meant = {"lines": {"spaced"}, "escaped": {"spaced"}}.get(how, set()) | {how}
    return {name for name, sign in signs.items() if re.search(sign, text)} - meant


@pytest.mark.parametrize(
    ("form", "how"),
    [
        (form, how)
        for form in ("openai", "hermes", "sharegpt", "toolace", "xlam")
        for how in WRITERS
        if (form, how) != ("toolace", "lines")  # a list that no row of it has
    ],
)
def test_a_shifted_row_has_the_json_of_its_row(form: str, how: str) -> None:
    """Or a model could tell by the spaces alone that something has been shifted."""
    row = _shop(WRITERS[how], form)
    assert not any(_holds(text, how) for text in _texts(row))
    for shift in ("parameter_rename:3", "transient_error:2", "permanent_error:2"):
        found = made(row, shifts=(shift,))
        for each in found.rows:
            texts = _texts({**each, COLUMN: ""})
            assert not any(_holds(text, how) for text in texts), texts
        assert found.rows or (form == "xlam" and shift != "parameter_rename:3"), found.reasons


def test_literals_of_python_and_results_without_tags_stay_so() -> None:
    row = _shop(repr, "hermes")
    for shift in ("parameter_rename:3", "transient_error:2"):
        (each,) = made(row, shifts=(shift,)).rows
        for turn in each["conversations"]:
            if turn["from"] == "gpt":
                assert turn["value"].startswith("<tool_call>{'name': 'find_item', 'arguments': {'")
        assert not any("<tool_response>" in turn["value"] for turn in each["conversations"])
        assert each["conversations"][-1]["value"] == row["conversations"][-1]["value"]


def test_contents_in_parts_stay_in_parts() -> None:
    """A column of a data set holds texts or lists; with both, the file cannot be loaded."""
    row = _shop(json.dumps, "openai")
    row["messages"][1]["content"] = "I call find_item."
    for said in row["messages"]:
        said["content"] = [{"type": "text", "text": said["content"]}]
    for shift in ("identity_erasure:3", "transient_error:2"):
        (each,) = made(row, shifts=(shift,)).rows
        assert all(isinstance(said["content"], list) for said in each["messages"])


def test_a_row_of_xlam_gets_the_ending_that_it_has_a_place_for() -> None:
    """A refusal is prose; `--to openai` has a place for it."""
    seen: dict[str, set[str]] = {"": set(), "openai": set()}
    for seed in range(30):
        row = question(seed)
        answer, tools = json.loads(row["answers"])[0], json.loads(row["tools"])
        for tool in tools:  # those that take texts may do the work of the one that is gone
            if tool["name"] != answer["name"]:
                for param in tool["parameters"].values():
                    param["type"] = param["type"].replace("str", "int")
        row["answers"], row["tools"] = json.dumps([answer]), json.dumps(tools)
        for to, found in seen.items():
            found.add(made(row, shifts=("endings",), to=to).shifts)
    assert seen[""] == {"tool_gone_lookalike", ""}
    assert {"tool_gone", "tool_gone_lookalike"} <= seen["openai"]


def _again_and_again(at_once):
    """A conversation that calls one tool three times, in one message or in three."""
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "get_order", "arguments": json.dumps({"order_id": f"A-{n}"})},
        }
        for n in range(3)
    ]
    results = [
        {
            "role": "tool",
            "tool_call_id": f"c{n}",
            "content": json.dumps({"order_id": f"A-{n}", "status": "open"}),
        }
        for n in range(3)
    ]
    said = [{"role": "user", "content": "Are A-0, A-1 and A-2 open?"}]
    if at_once:
        said += [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
    else:
        for call, result in zip(calls, results, strict=True):
            said += [{"role": "assistant", "content": "", "tool_calls": [call]}, result]
    said.append({"role": "assistant", "content": "All are open."})
    schema = {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
    }
    function = {"name": "get_order", "description": "Gets an order.", "parameters": schema}
    return {"messages": said, "tools": [{"type": "function", "function": function}]}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("shift", ["permanent_error", "redirect", "tool_migrated"])
def test_whoever_was_told_that_a_tool_is_gone_does_not_call_it_again(shift, at_once):
    met = 0
    for number in range(12):
        row = {**_again_and_again(at_once), "n": number}
        recipe = Recipe(alpha=1.0, shifts=(shift,))
        for made in augmented(row, json.dumps(row).encode(), recipe).rows:
            names = {}
            for message in made["messages"]:
                for call in message.get("tool_calls") or ():
                    names[call["id"]] = call["function"]["name"]
            # A tool that is gone is asked for once.
            answers = [
                (names[m["tool_call_id"]], m["content"])
                for m in made["messages"]
                if m["role"] == "tool"
            ]
            gone = [name for name, text in answers if "error" in text]
            met += bool(gone)
            assert len(gone) == len(set(gone)), answers
    assert met or shift == "tool_migrated"


def _asked_twice(thought: str, answer: str) -> dict[str, Any]:
    row = _again_and_again(at_once=False)
    for message in row["messages"]:
        if message.get("tool_calls"):
            message["reasoning_content"] = thought
    row["messages"][-1]["content"] = answer
    return row


@pytest.mark.parametrize("shift", ["permanent_error", "redirect"])
def test_nothing_learned_names_a_tool_that_failed_for_good(shift: str) -> None:
    named = "what is said names a tool that failed for good by then"
    for seed in range(6):
        plain = made(_asked_twice("I look.", "All are open."), shifts=(shift,), seed=seed)
        assert plain.rows, plain.reasons
        for thought, answer in (
            ("Now get_order again.", "All are open."),
            ("I look.", "So says get_order."),
        ):
            row = _asked_twice(thought, answer)
            done = made(row, shifts=(shift,), seed=seed)
            assert not done.rows
            assert done.reasons == {shift: named}
            row["messages"][-1]["weight"] = 0
            assert bool(made(row, shifts=(shift,), seed=seed).rows) == (thought == "I look.")
            assert made(row, shifts=("transient_error",), seed=seed).rows
