"""Verdicts and measures are values: nobody can change one after it was made."""

from __future__ import annotations

import importlib

import msgspec
import pytest

MODULES = (
    "episode.grade", "reading.prose", "measure.statistics", "measure.metrics", "measure.compare",
    "measure.gate", "measure.diagnosis", "measure.report", "measure.two_runs",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_data_is_frozen(name: str) -> None:
    module = importlib.import_module(f"toolshift.{name}")
    own = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, msgspec.Struct)
        and each.__module__ == module.__name__
    ]
    assert own
    assert all(each.__struct_config__.frozen for each in own)
