"""Tests whose packages are not installed here are left out; `run.py` runs them where they are."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("inspect_ai") else ["test_inspect_tasks.py"]
