"""Documents of others: read within limits, or refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolshift.core.documents import read_json, read_toml, read_yaml
from toolshift.core.errors import UsageError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (read_json, "[" * 100_000, "levels deep"),
        (read_json, '{"a":' * 300 + "1" + "}" * 300, "levels deep"),
        (read_json, "caf\udce9", "is not JSON"),
        (read_json, "", "is not JSON"),
        (read_yaml, "[" * 100_000, "levels deep"),
        (read_yaml, "- " * 100_000 + "a", "levels deep"),
        (read_yaml, BOMB, "aliases stand for more than"),
        (read_yaml, "a: &a [*a]", "refers to itself"),
        (read_yaml, "a: caf\udce9", "is not YAML"),
        (read_yaml, "a: !!float x", "is not YAML"),
        (read_yaml, "a: " + "9" * 5000, "is not YAML"),
        (read_yaml, "a: !!python/object:os.system x", "is not YAML"),
        (read_toml, "a = " + "[" * 5000 + "]" * 5000, "levels deep"),
        (read_toml, "a = " + "[" * 300 + "]" * 300, "levels deep"),
        (read_toml, "a = " + "9" * 5000, "is not TOML"),
        (read_toml, "a = 'caf\udce9'", "is not TOML"),
    ],
    ids=range(16),
)
def test_what_cannot_be_read_is_said(read: Callable[..., Any], text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as wrong:
        read(text.encode(errors="surrogateescape"), "file")
    assert str(wrong.value).startswith("file")
    assert len(str(wrong.value)) < 500


def test_what_can_be_read_is_read() -> None:
    assert read_json(b'{"a": [1]}', "file") == {"a": [1]}
    assert read_yaml(b"a: &x [1]\nb: *x\nc: *x", "file") == {"a": [1], "b": [1], "c": [1]}
    assert read_toml(b"[a]\nb = 1", "file") == {"a": {"b": 1}}


def test_yaml_has_the_dates_and_the_keys_that_json_would_have() -> None:
    text = b"x: {day: 2026-01-31, at: 2026-01-31 09:30:00, from: 9:30, 200: {no: 1, on: 2.5}}"
    days = {"day": "2026-01-31", "at": "2026-01-31 09:30:00", "from": "9:30"}
    assert read_yaml(text, "it") == {"x": {**days, "200": {"no": 1, "on": 2.5}}}
    assert read_yaml(b"a: &a {1: x, 2: y}\nb: {<<: *a, 2: z}", "it")["b"] == {"1": "x", "2": "z"}
    assert read_yaml(b"", "it") is None


TWICE = {
    "json": b'{"tools": [], "tools": [1]}',
    "json inside": b'[{"a": {"b": 1, "c": [], "b": {}}}]',
    "yaml": b"tools: []\ntools: [1]\n",
    "yaml inside": b"a:\n- b: 1\n  c: {d: 1}\n  b: 2\n",
    "yaml flow": b"a: {b: 1, b: 2}\n",
}


@pytest.mark.parametrize("form", TWICE)
def test_a_key_that_stands_twice_is_said(form: str) -> None:
    read = read_json if form.startswith("json") else read_yaml
    with pytest.raises(UsageError, match=r"has the key '(tools|b)' twice in one object"):
        read(TWICE[form], "it")


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: 1}\nc: {b: 1}\n",
        "- b: 1\n- b: 2\n",
        "x: &x {b: 1}\ny: &y {c: 1}\nz:\n  <<: *x\n  b: 2\n",
        "a: b\nb: a\n",
        "k: [a, a]\na: {k: k}\n",
        "a: &q k\nk: *q\n",
    ],
)
def test_other_documents_have_each_key_once(text: str) -> None:
    assert read_yaml(text.encode(), "it")
