"""Fixtures of several tests."""

from __future__ import annotations

import gc
import os
import signal
import threading
from pathlib import Path

import hypothesis
import pytest
from running import Run, runner, write_agent
from scenes import Share, some_of

# A job in the background ignores Ctrl-C, and its children inherit that; the tests send it to them.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run beside each other, and so do the processes that they start: more threads only wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tables are as wide as COLUMNS says, which differs from shell to shell.
os.environ.pop("COLUMNS", None)

# How long a case takes says more of the machine than of the code. The same cases at each run, so
# that a change is judged by what it changed; `make test-all` looks for new ones.
hypothesis.settings.register_profile("toolshift", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile("toolshift")


# Thousands of cases and all modules stay until the end. To look through them again and again for
# garbage took a third of the time of a short training run, which collects at its end.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)  # scenes that tests keep are looked through less often, too
    gc.enable()


@pytest.fixture(scope="session")
def share(pytestconfig: pytest.Config) -> Share:
    """Takes some cases of a product; all of them where the slow tests run too."""
    slow = "not slow" not in pytestconfig.option.markexpr
    return (lambda cases, count, *names: list(cases)) if slow else some_of


@pytest.fixture
def toolshift(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """The command line, in an empty working directory with a module `mine` of agents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_agent(tmp_path)
    return runner(capsys, monkeypatch)
