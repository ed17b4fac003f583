"""Where a chat agent may send what, decided before anything is sent."""

from __future__ import annotations

import pytest

from toolshift.agents.chat import ChatAgent
from toolshift.core.errors import UsageError

KEY = "sk-test-4f9c1d7b2e8a6053"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "TOOLSHIFT_API_KEY", "OPENAI_BASE_URL", "TOOLSHIFT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("url", [None, "http://10.0.0.7:8000/v1", "https://localhost.example/v1"])
def test_a_missing_key_is_said_before_anything_is_sent(url: str | None) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        ChatAgent("tiny", url)


@pytest.mark.parametrize(
    "url", ["http://localhost:1/v1", "http://127.9.0.1", "http://[::1]:8/v1", "http://0.0.0.0:8"]
)
def test_loopback_needs_no_key(url: str) -> None:
    assert ChatAgent("tiny", url)
    assert ChatAgent("tiny", "https://api.example/v1", headers={"api-key": KEY})  # a key as well


@pytest.mark.parametrize("url", ["api.example/v1", "ftp://api.example", f"https://me:{KEY}@a.b/v1"])
def test_an_address_that_cannot_be_used(url: str) -> None:
    with pytest.raises(UsageError, match="base url") as caught:
        ChatAgent("tiny", url, KEY)
    assert KEY not in str(caught.value)
