"""Whose code a fault comes from."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
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


def test_a_package_around_ours_has_not_ended_the_program(tmp_path: Path) -> None:
    """As where a package was copied, without the record that it is one."""
    shutil.copytree(Path(click.__file__).parent, tmp_path / "click")
    spans = Path(__file__).parents[1] / "data" / "traces" / "files" / "langsmith.jsonl.xz"
    paths = [str(tmp_path), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", "watch", str(spans)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
