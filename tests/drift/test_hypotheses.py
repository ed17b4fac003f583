"""Who became whom: a hypothesis with its evidence, and never a write for a read."""

from __future__ import annotations

from typing import Any

import pytest
from drift.test_changes import FIND, SAVE, tool
from hypothesis import given
from hypothesis import strategies as st

from toolshift.drift.changes import changes_between, worst_severity
from toolshift.drift.hypotheses import Hypothesis, judged
from toolshift.interop.tools import from_mcp
from toolshift.shifts.release.mapping import Answers

LABEL = {"type": "string", "description": "The name of a label."}
LOOK = tool("look_up", "Looks a word up in the index.")
WRITES = ("reset_labels", "purge_labels", "etiketten_leeren", "vaciar_etiquetas", "labels_x")


def hypotheses_between(
    old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> tuple[Hypothesis, ...]:
    before, after = from_mcp(old), from_mcp(new)
    return tuple(judged(before, after, Answers()).hypotheses.values())


def labels(name: str, about: str, **hints: bool) -> dict[str, Any]:
    made = tool(name, about, name=LABEL)
    return {**made, "annotations": hints} if hints else made


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("about", ["Resets the labels.", "Etiketten.", ""])
def test_a_write_is_never_proposed_for_a_read(write: str, about: str) -> None:
    old, new = labels("list_labels", "Lists the labels."), labels(write, about)
    assert hypotheses_between([old, FIND], [new, FIND]) == ()
    gone, come = changes_between([old, FIND], [new, FIND])
    assert (gone.kind, come.kind) == ("tool_removed", "tool_added")
    assert gone.sentence == "list_labels: a tool is gone, and no successor was found"
    hinted = labels(write, about, readOnlyHint=True)
    told = [h.kind for h in hypotheses_between([old, FIND], [hinted, FIND])]
    assert told in ([], ["tool_renamed"])


@given(st.text(alphabet="abcdefghijäöü_", min_size=1, max_size=12))
def test_whatever_it_is_called_a_tool_that_says_that_it_writes_stands_for_no_read(
    name: str,
) -> None:
    old = labels("list_labels", "Lists the labels.", readOnlyHint=True)
    new = labels(f"x{name}", "Lists the labels.", readOnlyHint=False)
    assert hypotheses_between([old], [new]) == ()


@pytest.mark.parametrize(
    ("old", "new", "standing"),
    [
        ("find_page", "find-page", "certain"),
        ("findPage", "find_page", "certain"),
        ("ページ検索", "ページ検索_", "certain"),
        ("save_page", "save_leaf", "likely"),
        ("delete_page", "erase_page", "likely"),
        ("page_of_leaf", "page_leaf", "likely"),
        ("archive_page", "store_page", "likely"),
        ("quarantine_page", "shred_page", "question"),
        ("страница_карантин", "страница_удалить", "question"),
        ("approve_page", "reject_page", "question"),
        ("grant_page", "revoke_page", "question"),
        ("preview_page", "send_page", "question"),
        ("page_approve", "page_hold", "question"),
        ("consultar_pagina", "cancelar_pagina", "question"),
        ("读页面", "删页面", "question"),
    ],
)
def test_only_the_same_words_are_certain_and_another_act_is_asked(
    old: str, new: str, standing: str
) -> None:
    before, after = ({**SAVE, "name": name} for name in (old, new))
    (found,) = hypotheses_between([before, LOOK], [after, LOOK])
    assert (found.old, found.new, found.standing) == (old, new, standing)
    assert "the description is the same" in found.evidence
    change, *others = changes_between([before, LOOK], [after, LOOK])
    if standing == "question":
        assert [change.kind, *(other.kind for other in others)] == ["tool_removed", "tool_added"]
        assert change.perhaps == new
    else:
        assert (change.sure, others) == (standing == "certain", [])
        assert ("(likely: " in change.sentence) == (standing == "likely")


@pytest.mark.parametrize(
    ("old", "new", "standing"),
    [
        (("go_back", "Go back to the page."), ("navigate_back", "Go back to the page."), "likely"),
        (("get_page", "Returns the page."), ("fetch_page", "Returns the page."), "likely"),
        (("save_page", "Saves the page."), ("save_purge_page", "Saves the page."), "question"),
        (("run_code", "Run the code."), ("run_code_unsafe", "Run any code."), "likely"),
        (("order_hold", "Order of a page."), ("order_ship", "Order of a page."), "question"),
        (("api_make_page", "Api | Make it"), ("api_build_page", "Api | Make it"), "likely"),
    ],
)
def test_an_act_is_known_by_verbs_and_by_what_both_texts_begin_with(
    old: tuple[str, str], new: tuple[str, str], standing: str
) -> None:
    (found,) = hypotheses_between([tool(*old, page=LABEL)], [tool(*new, page=LABEL)])
    assert found.standing == standing


READ = "The labels of a page."


@pytest.mark.parametrize(
    ("old", "new", "standing"),
    [
        ("get_labels", "labels", "likely"),
        ("search_page_labels", "page_labels", "likely"),
        ("getLabels", "labels", "likely"),
        ("get_labels", "labels_now", "question"),
        ("get_labels", "current_labels", "question"),
        ("get_labels", "label_overview", "question"),
        ("getLabels", "labelsNow", "question"),
        ("list_labels", "etiketten_leeren", "question"),
        ("list_labels", "purge_labels", ""),
        ("list_labels", "list_and_purge_labels", ""),
        ("list_labels", "labels_deleted", ""),
    ],
)
def test_a_name_that_says_no_act_contradicts_no_read_of_the_same_text(
    old: str, new: str, standing: str
) -> None:
    before, after = labels(old, READ), labels(new, READ)
    for rest in ([], [FIND], [FIND, LOOK]):
        found = hypotheses_between([before, *rest], [after, *rest])
        assert [one.standing for one in found] == ([standing] if standing else [])
        told = judged(from_mcp([before, *rest]), from_mcp([after, *rest]), Answers())
        assert [q.guess for q in told.questions] == ([new] if standing == "question" else [])
        assert told.answers.renamed == ({old: new} if standing == "likely" else {})


@pytest.mark.parametrize(
    "new",
    [
        tool("labels", READ, page=LABEL),
        {**labels("labels", READ), "outputSchema": {"type": "object"}},
        {**labels("labels", READ), "annotations": {"openWorldHint": True}},
    ],
    ids=["parameters", "results", "hints"],
)
def test_whatever_else_differs_of_such_a_tool_makes_it_a_question(new: dict[str, Any]) -> None:
    (found,) = hypotheses_between([labels("get_labels", READ)], [new])
    assert found.standing == "question"


def test_of_tools_that_say_that_they_only_read_the_act_is_known() -> None:
    old, new = (
        labels(name, "Etiketten der Liste.", readOnlyHint=True)
        for name in ("etiketten_lesen", "etiketten_zeigen")
    )
    (found,) = hypotheses_between([old], [new])
    assert found.standing == "likely"


def test_a_parameter_of_the_opposite_name_is_asked() -> None:
    account = {"type": "string", "description": "The account"}
    old = tool("move_money", "Moves money.", from_account=account, amount=LABEL)
    new = tool("move_money", "Moves money.", to_account=account, amount=LABEL)
    gone, come = changes_between([old], [new])
    assert (gone.kind, gone.perhaps) == ("parameter_removed", "to_account")
    assert come.kind == "required_parameter_added"
    told = judged(from_mcp([old]), from_mcp([new]), Answers(params={"move_money": RENAMED}))
    assert told.answers.params == {"move_money": RENAMED}


RENAMED = {"from_account": "to_account"}


def test_names_in_another_script_are_alike_by_their_letters() -> None:
    phone, account = ({"type": "string", "description": text} for text in ("電話番号", "口座番号"))
    old = tool("残高", "口座の残高を返す", 口座=account)
    new = tool("残高", "口座の残高を返す", 電話=phone)
    assert [c.kind for c in changes_between([old], [new])] == [
        "parameter_removed",
        "required_parameter_added",
    ]


def test_below_nine_in_ten_it_is_a_question() -> None:
    old = tool("start_job", "Begins a job in the queue of the night.", job=LABEL)
    new = tool("begin_task", "Puts a new task to the front.", job=LABEL)
    (found,) = hypotheses_between([old], [new])
    assert found.standing == "question"
    gone, come = changes_between([old], [new])
    assert (gone.kind, gone.perhaps, come.kind) == ("tool_removed", "begin_task", "tool_added")
    assert "start_job: a tool is gone. Is it begin_task now? (" in gone.sentence
    assert worst_severity([gone, come]) == "breaking"


def test_merges_are_readings_with_evidence() -> None:
    olds = [tool(f"tab_{what}", f"{what} a tab.", index=LABEL) for what in ("list", "new", "close")]
    action = {"type": "string", "enum": ["list", "new", "close"]}
    new = tool("tabs", "Tabs.", action=action, index=LABEL)
    found = hypotheses_between(olds, [new])
    assert {(h.kind, h.new, h.standing) for h in found} == {("tool_merged", "tabs", "likely")}
    assert "the choice new of action is what the name said" in found[1].evidence
    assert all("(likely: the choice" in c.sentence for c in changes_between(olds, [new]))


def _taken(*olds: dict[str, Any], news: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    return judged(from_mcp([*olds]), from_mcp(news), Answers()).answers.params


def test_what_a_parameter_became_in_one_tool_it_became_in_another() -> None:
    bare = {"type": "string"}
    get = tool("get_orders", "Gets the orders of a customer.", customer_id=bare)
    bill = tool("bill", "Makes a bill for a customer.", customer_id=bare, total=bare)
    now = [
        tool("get_orders", "Gets the orders of a customer.", account_id=bare),
        tool("bill", "Makes a bill for a customer.", account_id=bare, sum_of_it=bare),
    ]
    assert _taken(bill, news=now[1:]) == {}  # two that are required have gone, and two have come
    assert _taken(get, bill, news=now) == {
        "get_orders": {"customer_id": "account_id"},
        "bill": {"customer_id": "account_id"},
    }


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        ("addComment", "comments_create", True),
        ("deleteTicket", "tickets.archive", True),
        ("kunde_suchen", "kunden_suche", True),
        ("ticket_peek", "tickets_show", False),  # of which the one verb is none that is known
        ("createTicket", "tickets_retrieve", False),
        ("open_door", "doors_close", False),
        ("add_label", "remove_label", False),
        ("add_comment", "add_label", False),
    ],
)
def test_a_tool_of_the_same_things_with_another_verb_is_asked(
    old: str, new: str, asked: bool
) -> None:
    was, now = tool(old, "", a={"type": "string"}), tool(new, "", b={"type": "integer"})
    found = hypotheses_between([was], [now])
    assert [(one.old, one.new, one.standing) for one in found] == [(old, new, "question")] * asked
