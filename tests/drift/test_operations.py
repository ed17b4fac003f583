"""Operations are found again by how they are requested."""

from __future__ import annotations

import pytest

from toolshift.drift.operations import with_same_operations
from toolshift.interop.request import Request
from toolshift.shifts.release.mapping import UNDECIDED, Answers


def asked(method: str, path: str, **places: str) -> Request:
    return Request(method, path, places=places)


OLD = {
    "getTicket": asked("get", "/v1/tickets/{id}", id="path"),
    "closeTicket": asked("post", "/v1/tickets/{id}/close", id="path"),
    "listTickets": asked("get", "/v1/tickets"),
}
NEW = {
    "tickets_retrieve": asked("get", "/api/v2/tickets/{ticket_id}", ticket_id="path"),
    "tickets_reopen": asked("post", "/api/v2/tickets/{ticket_id}/reopen", ticket_id="path"),
    "listTickets": asked("get", "/api/v2/tickets"),
}


def test_one_method_and_path_are_one_operation_and_what_braces_hold_one_parameter() -> None:
    found = with_same_operations(Answers(), OLD, NEW)
    assert found.renamed == {"getTicket": "tickets_retrieve"}
    assert found.params == {"getTicket": {"id": "ticket_id"}}


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("/tickets", "/v1beta2/tickets", True),
        ("/2024-01-01/tickets", "/2025-06/tickets", True),
        ("/v1/ticket-types", "/v2/ticket_types", True),
        ("/v1/tickets/{a}/notes/{b}", "/v2/tickets/{x}/notes/{y}", True),
        ("/v1/tickets/{a}", "/v1/tickets", False),
        ("/v1/tickets", "/v1/ticket", False),
        ("/v1/vault", "/v1/v2ault", False),
        ("/rates/latest", "/v2/rates", False),
        ("/keys/api", "/keys", False),
        ("/v1/x", "/x/v2", False),
    ],
)
def test_a_version_in_a_path_tells_nothing_and_the_rest_does(
    old: str, new: str, same: bool
) -> None:
    found = with_same_operations(Answers(), {"a": asked("get", old)}, {"b": asked("get", new)})
    assert found.renamed == ({"a": "b"} if same else {})


def test_another_method_is_another_operation() -> None:
    olds, news = {"a": asked("get", "/x")}, {"b": asked("post", "/x")}
    assert with_same_operations(Answers(), olds, news) == Answers()


@pytest.mark.parametrize("kept", ["b", "x"])
def test_what_several_share_tells_nothing(kept: str) -> None:
    news = {name: asked("get", "/v2/x") for name in (kept, "c")}
    olds = {"a": asked("get", "/v1/x"), **({"x": asked("get", "/v1/y")} if kept == "x" else {})}
    assert with_same_operations(Answers(), olds, news) == Answers()


def test_opposites_are_never_one_operation() -> None:
    olds, news = {"open_door": asked("post", "/door")}, {"close_door": asked("post", "/door")}
    assert with_same_operations(Answers(), olds, news) == Answers()


@pytest.mark.parametrize(
    ("old", "new"), [("id", "email"), ("from_account", "to_account"), ("uid", "id")]
)
def test_another_thing_in_the_same_place_of_a_path_is_not_the_same(old: str, new: str) -> None:
    olds = {"get": asked("get", f"/users/{{{old}}}", **{old: "path"})}
    news = {"get": asked("get", f"/users/{{{new}}}", **{new: "path"})}
    assert with_same_operations(Answers(), olds, news).params == {}


def test_no_two_parameters_become_one() -> None:
    olds = {"get": asked("get", "/users/{id}", id="path", uid="query")}
    news = {"get": asked("get", "/users/{user_id}", user_id="path")}
    given = Answers(params={"get": {"uid": "user_id"}})
    assert with_same_operations(given, olds, news).params == given.params


@pytest.mark.parametrize(
    "given",
    [
        Answers(removed=["getTicket"]),
        Answers(added=["tickets_retrieve"]),
        Answers(renamed={"getTicket": "tickets_reopen"}),
        Answers(renamed={"closeTicket": "tickets_retrieve"}),
    ],
    ids=["removed", "added", "another successor", "another predecessor"],
)
def test_what_is_answered_stays(given: Answers) -> None:
    assert with_same_operations(given, OLD, NEW).renamed == given.renamed


def test_an_open_answer_is_none() -> None:
    given = Answers(renamed={"getTicket": UNDECIDED})
    assert with_same_operations(given, OLD, NEW).renamed == {"getTicket": "tickets_retrieve"}


def test_a_tool_that_keeps_its_name_has_its_renamed_parameter_too() -> None:
    olds = {"get": asked("get", "/v1/t/{id}", id="path")}
    news = {"get": asked("get", "/v2/t/{the_id}", the_id="path", id="query")}
    assert with_same_operations(Answers(), olds, news).params == {}
    del news["get"].places["id"]
    assert with_same_operations(Answers(), olds, news).params == {"get": {"id": "the_id"}}


def test_lists_that_are_no_documents_have_no_operations() -> None:
    assert with_same_operations(Answers(), None, NEW) == Answers()
