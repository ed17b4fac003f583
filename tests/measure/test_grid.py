"""The grid of tasks by changes: what counts as a failure in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from surfing import run_into

from toolshift.episode.grade import AT_WILL
from toolshift.measure.grid import make_grid, task_names
from toolshift.measure.scored import Episodes, Scored
from toolshift.runs.run_folder import RunFolder


@pytest.mark.parametrize("cause", [*AT_WILL, "infrastructure", "unrecorded"])
def test_a_void_that_an_agent_can_bring_about_is_a_failure(tmp_path: Path, cause: str) -> None:
    """As in the headline; any other void is no verdict."""
    run_into(tmp_path, "oracle", tasks=2, shifts=("redirect",), placebo=False)
    folder = RunFolder.read(tmp_path)
    scored = [Scored.of(record, folder.cell(record)) for record in folder.records()]
    place = next(n for n, one in enumerate(scored) if one.cell.shifts)
    grade = replace(scored[place].grade, passed=False, void=True, cause=cause)
    scored[place] = replace(scored[place], grade=grade)
    grid = make_grid(folder.plan, task_names(folder.plan, {}), Episodes.of(scored))
    assert grid is not None
    (row,) = grid.changes
    states = [spot.state for spot in row.spots]
    assert states.count("passes") == len(states) - 1
    if cause in AT_WILL:
        assert "fails" in states
        assert [loss.cause for loss in grid.losses] == [cause]
        assert not grid.voids
    else:
        assert "void" in states
        assert not grid.losses
        assert [void.cause for void in grid.voids] == [cause]
