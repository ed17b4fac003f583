"""A coming change in worlds of the user's own: what a task needs, and what it states."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import as_openai
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade, regrade
from toolshift.episode.oracle import OracleAgent
from toolshift.report.words import right_refusal
from toolshift.shifts.registry import apply, compose, find_shift
from toolshift.shifts.release.describe import rows_of
from toolshift.shifts.release.file import FORMAT, ShiftFile, read_shift_file
from toolshift.shifts.release.inputs import read_side
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import settle
from toolshift.worlds.own import OwnWorld, load

TOOLS = '''
"""A small shop."""
ORDERS = {
    "O-1": {"order_id": "O-1", "customer_id": "C-1", "item": "kettle", "status": "shipped"},
    "O-2": {"order_id": "O-2", "customer_id": "C-1", "item": "lamp", "status": "packed"},
    "O-3": {"order_id": "O-3", "customer_id": "C-2", "item": "chair", "status": "shipped"},
}
SENT = []


def find_customer(email: str) -> dict:
    """Look a customer up.

    Args:
        email: The address.
    """
    return {"customer_id": {"mara@example.com": "C-1", "jon@example.com": "C-2"}[email]}


def list_orders(customer_id: str) -> list[dict]:
    """List the orders of a customer.

    Args:
        customer_id: The customer.
    """
    return [order for order in ORDERS.values() if order["customer_id"] == customer_id]


def get_order(order_id: str) -> dict:
    """Get one order.

    Args:
        order_id: The order.
    """
    return ORDERS[order_id]


def history(order_id: str) -> list[dict]:
    """What happened to an order.

    Args:
        order_id: The order.
    """
    return [{"event": "paid"}, {"event": ORDERS[order_id]["status"]}]


def remind(order_id: str, channel: str = "mail", urgent: bool = False) -> dict:
    """Remind somebody of an order.

    Args:
        order_id: The order.
        channel: By which way.
        urgent: At once.
    """
    SENT.append((order_id, channel, urgent))
    return {"reference": f"RM-{order_id}-{channel}"}
'''
CHECKS = """
def reminded(shop):
    return shop.SENT == [("O-1", "mail", False)]
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


Task = Callable[..., Scene]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """The clean scene of a task of its own in a world of this shop."""
    (tmp_path / "release_shop.py").write_text(TOOLS)
    (tmp_path / "release_checks.py").write_text(CHECKS)

    def made(
        ask: str | list[str],
        calls: list[dict[str, Any]],
        check: dict[str, Any] | None = None,
        writes: list[str] | None = None,
    ) -> Scene:
        content = {
            "world": "shop",
            "tools": {"python": "release_shop"},
            **({} if writes == ["unknown"] else {"writes": writes or ["remind"]}),
            "tasks": [
                {"id": "t", "ask": ask, "calls": calls, **({"check": check} if check else {})}
            ],
        }
        number = len(list(tmp_path.glob("t*.yaml")))
        file = tmp_path / f"t{number}.yaml"
        file.write_text(json.dumps(content))
        return make_scene(load(file), "task", 0)

    return made


def released(
    folder: Path,
    scene: Scene,
    change: Callable[[dict[str, Any]], Any],
    answers: Answers | None = None,
) -> Scene:
    """The scene under a change of its tools; `change` edits their functions by name."""
    assert isinstance(scene.world, OwnWorld)
    old = [as_openai(tool) for tool in scene.world.tools]
    new = copy.deepcopy(old)
    functions = {tool["function"]["name"]: tool["function"] for tool in new}
    change(functions)
    new = [tool for tool in new if tool["function"]["name"] in functions]
    sides = []
    for name, listed in (("old", old), ("new", new)):
        (folder / f"{name}.json").write_text(json.dumps(listed))
        sides.append(read_side(str(folder / f"{name}.json")))
    settled = settle(*sides, answers or Answers(), accept=True).answers
    file = folder / "monday.json"
    file.write_bytes(ShiftFile(FORMAT, "monday", *sides, settled).encode())
    return compose(scene, [Applied(find_shift(str(file)).name, 2)])


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(functions: dict[str, Any]) -> None:
        for name in names:
            del functions[name]

    return change


def gone(*names: str) -> Answers:
    return Answers(removed=list(names))


def proved(scene: Scene) -> bool:
    episode = Episode(scene)
    OracleAgent().play(episode)
    verdict = grade(episode)
    return verdict.passed and (verdict.solvable or verdict.right_reason)


def played(scene: Scene, *calls: dict[str, Any], answer: str = "", refuse: str = "") -> Grade:
    episode = Episode(scene)
    for each in calls:
        episode.call(each["name"], each["arguments"])
    if refuse:
        episode.refuse(refuse)
    else:
        episode.answer(answer)
    verdict = grade(episode)
    assert regrade(scene, episode.steps, episode.end) == verdict
    return verdict


LAMP = "What is the status of order O-2 of customer C-1?"

# -- what a task needs -----------------------------------------------------------------------------

UNNEEDED = {
    "nothing depends on it": (
        LAMP,
        [call("find_customer", email="mara@example.com"), call("get_order", order_id="O-2")],
        {"answer": "packed"},
        "find_customer",
    ),
    "the user states what it returns": (
        LAMP,
        [
            call("find_customer", email="mara@example.com"),
            call("list_orders", customer_id="{{calls[0].customer_id}}"),
        ],
        {"answer": "packed"},
        "find_customer",
    ),
    "an earlier result states what it returns": (
        "What happened to the order O-1 of mara@example.com, and what else did its customer order?",
        [
            call("get_order", order_id="O-1"),
            call("find_customer", email="mara@example.com"),
            call("list_orders", customer_id="{{calls[1].customer_id}}"),
        ],
        {"answer": "lamp"},
        "find_customer",
    ),
    "another result says the answer of the same order": (
        LAMP,
        [call("list_orders", customer_id="C-1"), call("get_order", order_id="O-2")],
        {"answer": "packed"},
        "get_order",
    ),
    "a later result says it": (
        LAMP,
        [call("get_order", order_id="O-2"), call("list_orders", customer_id="C-1")],
        {"answer": "packed"},
        "get_order",
    ),
    "the check names other calls": (
        "Remind the customer of order O-1.",
        [call("get_order", order_id="O-1"), call("remind", order_id="O-1")],
        {"calls": [call("remind", order_id="O-1")]},
        "get_order",
    ),
    "the check is about the state": (
        "Remind the customer of order O-1.",
        [call("history", order_id="O-1"), call("remind", order_id="O-1")],
        {"state": "release_checks:reminded"},
        "history",
    ),
}


@pytest.mark.parametrize("case", UNNEEDED)
def test_a_tool_that_a_task_can_do_without_leaves_it_solvable(
    tmp_path: Path, task: Task, case: str
) -> None:
    ask, calls, check, lost = UNNEEDED[case]
    clean = task(ask, calls, check)
    after = released(tmp_path, clean, without(lost), gone(lost))
    assert after.solvable
    assert lost not in [step.name for step in after.rehearsal]
    assert proved(after)
    assert not played(after, refuse="tool_unavailable").passed


NEEDED = {
    "the answer": (
        "What is the status of order O-3?",
        [call("get_order", order_id="O-3")],
        {"answer": "shipped"},
        "get_order",
    ),
    "the answer, which another order has too": (
        "What is the status of order O-1? I am C-2.",
        [call("list_orders", customer_id="C-2"), call("get_order", order_id="O-1")],
        {"answer": "shipped"},
        "get_order",
    ),
    "an argument of a later call": (
        "What did mara@example.com order?",
        [
            call("find_customer", email="mara@example.com"),
            call("list_orders", customer_id="{{calls[0].customer_id}}"),
        ],
        {"answer": "lamp"},
        "find_customer",
    ),
    "a call that the check names": (
        LAMP,
        [call("find_customer", email="mara@example.com"), call("get_order", order_id="O-2")],
        {"calls": True},
        "find_customer",
    ),
    "a write": (
        "Remind the customer of order O-1. What is its status?",
        [call("remind", order_id="O-1"), call("get_order", order_id="O-1")],
        {"answer": "shipped"},
        "remind",
    ),
    "an answer that no result has": (
        "How many orders did C-1 make?",
        [call("list_orders", customer_id="C-1"), call("get_order", order_id="O-1")],
        {"answer": "two orders", "example": "two orders"},
        "list_orders",
    ),
    "what is answered in an earlier turn": (
        ["What is the status of order O-2?", "And which item is order O-1?"],
        [
            call("history", order_id="O-2"),
            {**call("get_order", order_id="O-1"), "turn": 2},
        ],
        {"answer": "kettle"},
        "history",
    ),
}


@pytest.mark.parametrize("case", NEEDED)
def test_a_tool_that_a_task_needs_makes_a_refusal_right(
    tmp_path: Path, task: Task, case: str
) -> None:
    ask, calls, check, lost = NEEDED[case]
    after = released(tmp_path, task(ask, calls, check), without(lost), gone(lost))
    assert after.outcome.refusal == "tool_unavailable"
    assert after.outcome.presumed
    assert "judged only by the task's expected calls" in right_refusal(after.outcome)
    assert proved(after)


def test_a_call_that_may_write_is_needed(tmp_path: Path, task: Task) -> None:
    """Nobody has said which tools write, so what a call leaves behind is not known."""
    calls = [call("find_customer", email="mara@example.com"), call("get_order", order_id="O-2")]
    clean = task(LAMP, calls, {"answer": "packed"}, writes=["unknown"])
    after = released(tmp_path, clean, without("find_customer"), gone("find_customer"))
    assert after.outcome.refusal == "tool_unavailable"


def test_a_refusal_that_was_right_before_needs_its_lookup_alone(tmp_path: Path, task: Task) -> None:
    calls = [call("find_customer", email="mara@example.com"), call("get_order", order_id="O-9")]
    clean = task("What is the status of order O-9?", calls, {"refuse": "not_found"})
    after = released(tmp_path, clean, without("find_customer"), gone("find_customer"))
    assert after.outcome == clean.outcome
    assert proved(after)
    with pytest.raises(NotApplicable, match="need get_order, which is gone"):
        released(tmp_path, clean, without("get_order"), gone("get_order"))


def test_a_loss_is_no_reason_where_something_else_is_in_the_way(tmp_path: Path, task: Task) -> None:
    calls = [call("find_customer", email="mara@example.com"), call("get_order", order_id="O-2")]
    clean = task(LAMP, calls, {"answer": "packed"})

    def change(functions: dict[str, Any]) -> None:
        del functions["find_customer"]
        parameters = functions["get_order"]["parameters"]
        parameters["properties"]["tenant"] = {"type": "string"}
        parameters["required"].append("tenant")

    with pytest.raises(NotApplicable, match=r"nothing says tenant.*\[given\.get_order\]"):
        released(tmp_path, clean, change, gone("find_customer"))


def test_an_agent_that_finds_another_way_passes_and_a_guess_does_not(
    tmp_path: Path, task: Task
) -> None:
    clean = task(LAMP, [call("get_order", order_id="O-2")], {"answer": "packed"})
    after = released(tmp_path, clean, without("get_order"), gone("get_order"))
    assert played(after, refuse="tool_unavailable").passed
    other = call("list_orders", customer_id="C-1")
    verdict = played(after, other, answer="It is packed.")
    assert (verdict.passed, verdict.solvable, verdict.cause) == (True, True, "")
    for guess in (
        played(after, answer="It is packed."),
        played(after, call("find_customer", email="mara@example.com"), answer="It is packed."),
        played(after, other, answer="It is shipped."),
        played(after, other, call("remind", order_id="O-2"), answer="It is packed."),
    ):
        assert (guess.passed, guess.solvable) == (False, False)
    assert not played(after, answer="I cannot look that up.").passed


def test_another_way_to_a_state_passes(tmp_path: Path, task: Task) -> None:
    """A state is its own proof; a write that nobody expected is none."""
    check = {"state": "release_checks:reminded"}
    clean = task("Remind the customer of order O-1.", [call("remind", order_id="O-1")], check)
    after = released(tmp_path, clean, without("remind"), gone("remind"))
    assert after.outcome.presumed
    assert not played(after, answer="Done.").passed


def test_a_tool_that_is_withdrawn_is_judged_alike(task: Task) -> None:
    """`tool_gone` and `fatal_error` take a tool that the task cannot do without."""
    calls = [
        call("list_orders", customer_id="C-1"),
        call("find_customer", email="mara@example.com"),
    ]
    clean = task(LAMP, calls, {"answer": "packed"})
    with pytest.raises(NotApplicable):
        apply(clean, "tool_gone", 2)
    fatal = apply(clean, "fatal_error", 2)
    assert next(step.name for step in fatal.rehearsal if not step.ok) == "list_orders"


# -- what a task states ----------------------------------------------------------------------------


def requires(param: str, **schema: Any) -> Callable[[dict[str, Any]], None]:
    """`remind` requires a parameter, with these changes of its schema."""

    def change(functions: dict[str, Any]) -> None:
        parameters = functions["remind"]["parameters"]
        known = parameters["properties"].get(param, {"type": "string"})
        parameters["properties"][param] = {
            **{key: value for key, value in known.items() if key != "default"},
            **schema,
        }
        parameters["required"] = [*parameters["required"], param]

    return change


def reminding(task: Task, ask: str = "Remind the customer of order O-1.", **more: Any) -> Scene:
    return task(ask, [call("remind", order_id="O-1", **more)], {"calls": True})


@pytest.mark.parametrize("param", ["channel", "urgent"])
def test_an_option_that_is_required_now_is_named(tmp_path: Path, task: Task, param: str) -> None:
    with pytest.raises(
        NotApplicable,
        match=rf"remind requires {param} now, and the task's call of remind leaves {param} out "
        rf"\(it took (mail|false) for it\)\. .*\[given\.remind\]",
    ):
        released(tmp_path, reminding(task), requires(param))


def test_several_that_are_required_now_are_all_named(tmp_path: Path, task: Task) -> None:
    def change(functions: dict[str, Any]) -> None:
        for param in ("channel", "urgent", "tenant"):
            requires(param)(functions)

    with pytest.raises(NotApplicable, match=r"channel.*urgent.*nothing says tenant"):
        released(tmp_path, reminding(task), change)


@pytest.mark.parametrize(
    ("param", "value", "said"),
    [
        ("channel", "post", "Use post as channel."),
        ("channel", "mail", "Use mail as channel."),
        ("urgent", True, "Use true as urgent."),
        ("tenant", "T-9", "Use T-9 as tenant."),
        ("tenant", 7, "Use 7 as tenant."),
    ],
)
def test_what_the_mapping_gives_for_it_carries_the_task_over(
    tmp_path: Path, task: Task, param: str, value: Any, said: str
) -> None:
    kind = {"type": "integer"} if value == 7 else {}
    answers = Answers(given={"remind": {param: value}})
    after = released(tmp_path, reminding(task), requires(param, **kind), answers)
    assert after.asks[0].text == f"Remind the customer of order O-1. {said}"
    assert dict(after.rehearsal[0].arguments)[param] == value
    assert after.rehearsal[0].true == (("remind", {"order_id": "O-1"}),)
    assert proved(after)
    right = {"order_id": "O-1", param: value}
    assert played(after, call("remind", **right), answer="Done.").passed
    assert not played(after, call("remind", order_id="O-1"), answer="Done.").passed


def test_a_default_or_a_lone_choice_of_the_new_schema_carries_it_over(
    tmp_path: Path, task: Task
) -> None:
    for schema in ({"default": "post"}, {"enum": ["post"]}, {"const": "post"}):
        after = released(tmp_path, reminding(task), requires("channel", **schema))
        assert dict(after.rehearsal[0].arguments)["channel"] == "post"
        assert proved(after)


def test_another_value_than_the_given_one_reaches_the_old_tool(tmp_path: Path, task: Task) -> None:
    answers = Answers(given={"remind": {"channel": "post"}})
    after = released(tmp_path, reminding(task), requires("channel"), answers)
    wrong = call("remind", order_id="O-1", channel="phone")
    assert not played(after, wrong, answer="Done.").passed


STATED = {
    "its call passes it": ("Remind the customer of order O-1 by phone.", {"channel": "phone"}),
    "its call passes the given value": ("Remind them of order O-1 by post.", {"channel": "post"}),
}


@pytest.mark.parametrize("case", STATED)
def test_a_value_is_not_given_to_a_task_that_has_its_own(
    tmp_path: Path, task: Task, case: str
) -> None:
    ask, more = STATED[case]
    answers = Answers(given={"remind": {"channel": "post"}})
    after = released(tmp_path, reminding(task, ask, **more), requires("channel"), answers)
    assert after.asks[0].text == ask
    assert dict(after.rehearsal[0].arguments)["channel"] == more["channel"]
    assert after.rehearsal[0].true == (("remind", {"order_id": "O-1", **more}),)
    assert proved(after)


@pytest.mark.parametrize(
    ("ask", "value"),
    [
        ("Remind the customer of order O-1 for tenant T-44.", "T-44"),
        ("Remind the customer of order O-1 (tenant: north of town).", "north of town"),
        ('Remind the customer of order O-1, tenant is "blue".', "blue"),
        ("Remind the customer of order O-1. Tenant EUROPE.", "EUROPE"),
        ("As T-9, remind the customer of order O-1.", "T-9"),
    ],
)
def test_a_value_is_not_given_where_the_words_of_the_task_state_one(
    tmp_path: Path, task: Task, ask: str, value: str
) -> None:
    answers = Answers(given={"remind": {"tenant": "T-9"}})
    after = released(tmp_path, reminding(task, ask), requires("tenant"), answers)
    assert after.asks[0].text == ask
    assert dict(after.rehearsal[0].arguments)["tenant"] == value
    assert proved(after)


@pytest.mark.parametrize(
    "more", ["They asked for their tenant to be told.", "Their tenant is unhappy."]
)
def test_a_value_is_given_where_only_the_name_stands(tmp_path: Path, task: Task, more: str) -> None:
    ask = f"Remind the customer of order O-1. {more}"
    answers = Answers(given={"remind": {"tenant": "T-9"}})
    after = released(tmp_path, reminding(task, ask), requires("tenant"), answers)
    assert after.asks[0].text == f"{ask} Use T-9 as tenant."


def test_a_value_that_a_later_turn_states_is_not_given(tmp_path: Path, task: Task) -> None:
    asks = ["What is the status of order O-1?", "Then remind the customer of O-1 by phone."]
    calls = [
        call("get_order", order_id="O-1"),
        {**call("remind", order_id="O-1", channel="phone"), "turn": 2},
    ]
    answers = Answers(given={"remind": {"channel": "post"}})
    after = released(tmp_path, task(asks, calls), requires("channel"), answers)
    assert [ask.text for ask in after.asks] == asks
    assert proved(after)


def test_what_is_not_passed_on_is_said(tmp_path: Path, task: Task) -> None:
    answers = Answers(given={"remind": {"channel": "post"}})
    released(tmp_path, reminding(task), requires("channel"), answers)
    file = read_shift_file(tmp_path / "monday.json")
    (row,) = [row for row in rows_of(file.release()) if row.new == "remind"]
    assert row.partly == ["channel = post: not passed on for tasks that leave it out"]
