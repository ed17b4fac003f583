"""The sample that code runs in: the one thing for which Inspect has no public name.

Here alone a private name of another package is imported. `inspect_ai` is tested in an environment
of its own, at the version of `requirements/inspect.txt`; a version without the name is refused with
a sentence.
"""

from __future__ import annotations

from inspect_ai.solver import TaskState

from toolshift.core.errors import UsageError


def sample_state() -> TaskState | None:
    """The state of the sample that this code runs in; None outside of one."""
    try:
        from inspect_ai.solver._task_state import sample_state as current  # noqa: PLC0415
    except ImportError as fault:
        raise UsageError(
            f"this version of inspect_ai does not tell which sample is running ({fault}): "
            "install 'inspect_ai==0.3.285'"
        ) from None
    state: TaskState | None = current()
    return state
