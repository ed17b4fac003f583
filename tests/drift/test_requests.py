"""How an operation is requested is locked and compared; the calls of an agent are the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from running import Run

from toolshift.drift.lock import lock_side, read_lock, verify, write_lock
from toolshift.drift.requests import request_changes
from toolshift.interop.request import Request
from toolshift.shifts.release.inputs import read_side

Edit = Callable[[dict[str, Any]], Any]
TEXT = {"type": "string"}
TOKEN, XML = "https://me:secret@login.example.com/token?key=secret", "application/xml"
JSON_BODY, FORM = "application/json", "application/x-www-form-urlencoded"


def document() -> dict[str, Any]:
    """One operation with a parameter of each place."""
    schema = {"type": "object", "properties": {"id": TEXT}}
    operation = {
        "operationId": "order",
        "description": "Places an order.",
        "parameters": [
            {"name": "shop", "in": "path", "required": True, "schema": TEXT},
            {"name": "tags", "in": "query", "schema": {"type": "array", "items": TEXT}},
        ],
        "requestBody": {"required": True, "content": {JSON_BODY: {"schema": schema}}},
        "security": [{"key": [], "flow": []}],
        "responses": {"200": {"content": {XML: {"schema": schema}}}},
    }
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "token": {"type": "http", "scheme": "bearer"},
        "flow": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": TOKEN}}},
    }
    return {
        "openapi": "3.0.3",
        "servers": [{"url": "https://me:secret@api.example.com/v1?key=secret"}],
        "paths": {"/shops/{shop}/orders": {"post": operation}},
        "components": {"securitySchemes": schemes},
    }


def _operation(doc: dict[str, Any]) -> dict[str, Any]:
    ((_, item),) = doc["paths"].items()
    return item["post"]  # type: ignore[no-any-return]


def _path(path: str) -> Edit:
    return lambda doc: doc.update(paths={path: doc["paths"].popitem()[1]})


def _servers(*urls: str) -> Edit:
    return lambda doc: doc.update(servers=[{"url": url} for url in urls])


def _of_operation(**keys: Any) -> Edit:
    return lambda doc: _operation(doc).update(keys)


def _method(doc: dict[str, Any]) -> None:
    ((_, item),) = doc["paths"].items()
    item["put"] = item.pop("post")


def _content(*kinds: str) -> Edit:
    def edit(doc: dict[str, Any]) -> None:
        content = _operation(doc)["requestBody"]["content"]
        media = content.pop(JSON_BODY)
        content.update(dict.fromkeys(kinds, media))

    return edit


def _cookie(**keys: Any) -> Edit:
    cookie = {"name": "shop", "in": "cookie", "schema": TEXT, **keys}
    return lambda doc: _operation(doc)["parameters"].append(cookie)


def _flows(doc: dict[str, Any]) -> dict[str, Any]:
    return doc["components"]["securitySchemes"]["flow"]["flows"]  # type: ignore[no-any-return]


def _answers(*kinds: str, schema: dict[str, Any] | None = None) -> Edit:
    def edit(doc: dict[str, Any]) -> None:
        content = _operation(doc)["responses"]["200"]["content"]
        media = {"schema": schema} if schema else content.pop(XML)
        content.update(dict.fromkeys(kinds, media))

    return edit


def _param(place: int, **keys: Any) -> Edit:
    return lambda doc: _operation(doc)["parameters"][place].update(keys)


def _renamed(doc: dict[str, Any]) -> None:
    _param(0, name="store")(doc)
    _path("/shops/{store}/orders")(doc)


API = "https://api.example.com/v1"
NEW = "https://new.example.com/v1"
CASES: dict[str, tuple[Edit, list[tuple[str, str]]]] = {
    "method": (_method, [("method_changed", "breaking")]),
    "path": (_path("/admin/{shop}/orders"), [("path_changed", "breaking")]),
    "base path": (_servers("https://api.example.com/v2"), [("path_changed", "breaking")]),
    "the same address": (
        lambda doc: (
            _servers("https://api.example.com")(doc),
            _path("/v1/shops/{shop}/orders")(doc),
        ),
        [],
    ),
    "server": (_servers("https://evil.example.com/v1"), [("server_changed", "breaking")]),
    "one more server": (_servers(API, NEW), [("server_changed", "harmless")]),
    "another usual server": (_servers(NEW, API), [("server_changed", "maybe")]),
    "the same server": (_servers("HTTPS://API.example.com:443/v1"), []),
    "a server without a scheme": (
        _servers("//me:secret@[host]:80/v1#secret"),
        [("server_changed", "breaking")],
    ),
    "paths of two servers": (
        _servers(API, "https://api.example.com/v2"),
        [("path_changed", "harmless")],
    ),
    "no server": (lambda doc: doc.pop("servers"), [("server_changed", "maybe")]),
    "a secret of the address": (_servers("https://me:other@api.example.com/v1/?key=other"), []),
    "form": (_content(FORM), [("body_changed", "breaking")]),
    "a form too": (_content(JSON_BODY, FORM), [("body_changed", "harmless")]),
    "optional body": (
        lambda doc: _operation(doc)["requestBody"].pop("required"),
        [("body_changed", "harmless")],
    ),
    "place": (_param(1, **{"in": "header"}), [("place_changed", "breaking")]),
    "style": (_param(1, explode=False), [("place_changed", "breaking")]),
    "login": (_of_operation(security=[{"token": []}]), [("auth_changed", "breaking")]),
    "login or another": (
        _of_operation(security=[{"key": [], "flow": []}, {"token": []}]),
        [("auth_changed", "harmless")],
    ),
    "no login": (_of_operation(security=[]), [("auth_changed", "maybe")]),
    "a cookie": (_cookie(required=True), [("place_changed", "breaking")]),
    "a cookie that may be left out": (_cookie(), [("place_changed", "harmless")]),
    "other tokens": (
        lambda doc: _flows(doc)["clientCredentials"].update(tokenUrl="https://evil.example/token"),
        [("auth_changed", "breaking")],
    ),
    "a secret of the token's address": (
        lambda doc: _flows(doc)["clientCredentials"].update(tokenUrl=f"{TOKEN}?key=other"),
        [],
    ),
    "answers": (_answers("text/csv"), [("answers_changed", "breaking")]),
    "more answers": (_answers(XML, "text/csv"), [("answers_changed", "harmless")]),
    "answers of another schema": (_answers(XML, schema=TEXT), [("answers_changed", "maybe")]),
    "the name in the path": (_renamed, [("parameter_renamed", "breaking")]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_changes_in_a_request_is_drift(case: str, tmp_path: Path) -> None:
    edit, expected = CASES[case]
    new = copy.deepcopy(document())
    edit(new)
    for name, each in (("old.json", document()), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(each))
    write_lock(tmp_path / "a.lock", lock_side(read_side(str(tmp_path / "old.json"))))
    assert "secret" not in (tmp_path / "a.lock").read_text()
    lock, now = read_lock(tmp_path / "a.lock"), read_side(str(tmp_path / "new.json"))
    drift = verify(lock, now.tools, requests=now.requests)
    assert [(one.kind, one.severity) for one in drift.changes] == expected
    assert all("; the agent's calls are the same" in one.sentence
               for one in drift.changes if one.kind != "parameter_renamed")  # fmt: skip
    assert bool(drift.counter_examples) == (case == "the name in the path")


def test_answers_are_told_in_the_order_of_their_document() -> None:
    kinds = ["text/csv", XML, "text/plain", "image/png", "text/html"]
    was, now = (Request("get", "/a", answers=dict.fromkeys(kinds, each)) for each in ("1", "2"))
    told = [one.sentence for one in request_changes("a", "a", was, now)]
    assert [kind in sentence for kind, sentence in zip(kinds, told, strict=True)] == [True] * 5


def test_paths_are_compared_at_their_servers_and_where_no_server_is_named() -> None:
    ways = [
        ("https://a.example/v1", "https://b.example/v2"),
        ("https://b.example/v2", "https://a.example/v1"),
        ("https://a.example/v2", "https://b.example/v1"),
        (),
    ]
    one, turned, moved, unnamed = (Request("get", "/a", servers) for servers in ways)
    found = {
        name: [(c.kind, c.severity) for c in request_changes("a", "a", *pair)]
        for name, pair in {
            "turned": (one, turned), "moved": (one, moved), "none": (unnamed, unnamed),
        }.items()
    }  # fmt: skip
    assert found == {
        "turned": [("server_changed", "maybe")],
        "moved": [("path_changed", "breaking")],
        "none": [],
    }


def test_a_lock_by_hand_is_refused_and_an_older_one_is_read(toolshift: Run, tmp_path: Path) -> None:
    new = document()
    _path("/admin/{shop}/orders")(new)
    for name, each in (("old.json", document()), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(each))
    assert toolshift("lock", "old.json", "--out", "a.lock")[0] == 0
    raw = (tmp_path / "a.lock").read_text()
    (tmp_path / "hand.lock").write_text(raw.replace("/shops/", "/admin/"))
    code, _, said = toolshift("verify", "hand.lock", "new.json")
    assert (code, "order does not match its hash" in said) == (2, True)
    side = read_side(str(tmp_path / "old.json"))
    write_lock(tmp_path / "older.lock", lock_side(msgspec.structs.replace(side, requests=None)))
    assert '"format": 1' in (tmp_path / "older.lock").read_text()
    code, out, said = toolshift("verify", "older.lock", "new.json")
    assert (code, "No drift" in out, "lock the tools again" in said) == (0, True, True)


def test_verify_and_change_say_that_calls_of_an_agent_are_the_same(
    toolshift: Run, tmp_path: Path
) -> None:
    new = document()
    _servers("https://evil.example.com/v1")(new)
    for name, each in (("old.json", document()), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(each))
    toolshift("lock", "old.json", "--out", "a.lock")
    call = {"tool": "order", "arguments": {"shop": "s", "id": "1"}}
    (tmp_path / "calls.json").write_text(json.dumps([call]))
    words = ("verify", "a.lock", "new.json", "--calls", "calls.json")
    code, out, _ = toolshift(*words, "--fail-on", "breaking", "--sarif", "a.sarif")
    assert (code, "0 of 1 recorded calls break" in out) == (1, True)
    assert "the program that sends them must be changed" in out
    assert toolshift(*words, "--fail-on", "calls")[0] == 0
    (result,) = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("server_changed", "error")
    for old in ("old.json", "a.lock"):
        code, out, _ = toolshift("change", old, "new.json", "--junit", "a.xml")
        assert (code, "No change" in out) == (0, False)
        assert "its requests go to another server" in out
        assert "<failure" not in (tmp_path / "a.xml").read_text()


def test_an_operation_of_another_name_is_found_by_its_request(tmp_path: Path) -> None:
    later = document()
    _of_operation(operationId="basket_submission", description="Hands a basket in.")(later)
    _param(0, name="shop_id")(later)
    _path("/v2/shops/{shop_id}/orders")(later)
    old, new = (tmp_path / name for name in ("old.json", "new.json"))
    old.write_text(json.dumps(document()))
    new.write_text(json.dumps(later))
    before, after = read_side(str(old)), read_side(str(new))
    drift = verify(lock_side(before), after.tools, requests=after.requests)
    kinds = {(one.kind, one.old, one.new, one.where) for one in drift.changes if one.sure}
    assert ("tool_renamed", "order", "basket_submission", "") in kinds
    assert ("parameter_renamed", "order", "basket_submission", "shop") in kinds
    alone = verify(lock_side(before), after.tools)  # a list of tools says nothing of requests
    assert "tool_renamed" not in {one.kind for one in alone.changes if one.sure}
