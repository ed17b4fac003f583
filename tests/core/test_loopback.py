"""Which hosts only this machine can reach."""

from __future__ import annotations

import pytest

from toolshift.core.loopback import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LocalHost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.evil.example", "127.0.0.1.evil.example", "127.", "0.0.0.0", "10.0.0.1", "::", ""]
)
def test_all_else(host: str) -> None:
    assert not is_loopback(host)
