"""Whose code a fault comes from."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from toolshift.core.errors import outside


@pytest.mark.parametrize("installed", [True, False])
def test_packages_are_known_wherever_they_are_installed(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `pip install --target`, or the package folders of a distribution."""
    name = f"leaves_{installed}".lower()
    (tmp_path / f"{name}.py").write_text("def leave():\n    raise SystemExit(0)\n")
    if installed:
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(name)
    with pytest.raises(SystemExit) as left:
        module.leave()
    fault = left.value
    fault.__traceback__ = fault.__traceback__.tb_next  # without the line of this test
    assert outside(fault) == ("" if installed else f"{name}.py, line 2")
