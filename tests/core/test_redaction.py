"""No secret of the environment is shown or kept, whoever has said it."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Run

from toolshift.core.errors import described
from toolshift.core.redaction import GONE, secrets_of_environment, stored_without_secrets

NAMES = ("OPENAI_API_KEY", "DB_PASSWORD", "MY_KEY_2", "GITHUB_TOKEN", "AWS_CREDENTIALS", "X_SECRET")
SECRET = 'Hunter2 "quoted" \\ and é'
AGENT = """
import os
SECRET = os.environ["{name}"]

def raises(messages, tools):
    raise RuntimeError("bad key " + SECRET)

def raises_later(messages, tools):
    if messages[-1]["role"] == "tool":
        raise RuntimeError("bad key " + SECRET)
    name = tools[0]["function"]["name"]
    return {{"tool_calls": [{{"name": name, "arguments": {{"q": SECRET}}}}]}}

def says(messages, tools):
    return "It is " + SECRET
"""


@pytest.mark.parametrize("name", NAMES)
def test_what_a_function_raises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SECRET)
    assert SECRET not in described(RuntimeError(f"bad {SECRET}"))
    assert described(RuntimeError("bad")) == "RuntimeError: bad"


@pytest.mark.parametrize(("does", "code"), [("raises", 2), ("raises_later", 0), ("says", 0)])
def test_of_a_run(does: str, code: int, toolshift: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"leaks_{does}"
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with open(f"{name}.py", "w") as file:
        file.write(AGENT.format(name="OPENAI_API_KEY"))
    words = ("--world", "poi", "--kind", "listing", "--tasks", "1", "--no-placebo", "--out", "run")
    ended, out, err = toolshift(
        "run", "--agent", f"{name}:{does}", *words, "--shift", "identity_erasure:2"
    )
    assert ended in (code, 1), err
    kept = out + err
    if ended != 2:
        with open("run/episodes.jsonl") as file:
            kept += file.read()
        kept += "".join(toolshift("trace", "run")[1:]) + "".join(toolshift("report", "run")[1:])
        with open("run/report.html") as file:
            kept += file.read()
    once = json.dumps(SECRET, ensure_ascii=False)[1:-1]
    for written in (SECRET, once, json.dumps(once, ensure_ascii=False)[1:-1]):
        assert written not in kept
    assert GONE in kept


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("AUTH_METHOD", "client_credentials", False),
        ("KEYCLOAK_REALM", "production", False),
        ("TOKENIZERS_PARALLELISM", "automatic", False),
        ("GIT_AUTHOR_NAME", "Ada Lovelace", False),
        ("SSH_AUTH_SOCK", "/tmp/agent.17", False),
        ("MY_TOKEN", "short", False),
        ("DB_PASSWORD", "correcthorsebattery", True),
        ("SECRETS_OF_CI", "a81c-77f0-9e", True),
        ("STRIPE_KEY_2", "production", True),
    ],
)
def test_a_setting_is_no_secret(
    name: str, value: str, secret: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert (value in secrets_of_environment()) == secret


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=40), max_size=4))
def test_what_is_kept_is_what_it_was_where_no_secret_is_in_it(said: dict[str, str]) -> None:
    line = msgspec.json.encode(said)
    assert not any(
        secret in value for secret in secrets_of_environment() for value in said.values()
    )
    assert stored_without_secrets([line]) == [line]


@given(st.text(min_size=8, max_size=40).filter(lambda text: text[0] != "/"), st.text(max_size=20))
def test_a_line_without_its_secret_is_json_still(secret: str, around: str) -> None:
    with pytest.MonkeyPatch.context() as changed:
        try:
            changed.setenv("MADE_UP_TOKEN", secret)
        except (ValueError, UnicodeEncodeError):  # a sign that no variable can hold
            return
        line = msgspec.json.encode({"a": f"{around}{secret}{around}"})
        kept = msgspec.json.decode(stored_without_secrets([line])[0])
        assert secret not in kept["a"] or secret in GONE + around
