"""Steps of decoding as CUDA graphs: launched as one, where they would be hundreds of kernels.

A step of a small model takes a GPU less time than it takes to launch its kernels. A graph is of
fixed shapes, so rows, width and the keys that are seen are rounded up: what is added is another
copy of the last row, tokens that nobody reads, and keys that are masked.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from toolshift.lm.attention import Step
from toolshift.lm.slots import ROUND

ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
WIDTHS = (1, 2, 4, 9)
OFTEN = 3
"""A shape is captured when it is asked for so often: to capture takes some three steps."""

Compute = Callable[[torch.Tensor, Step], torch.Tensor]
Replay = Callable[[], object]
Capture = Callable[[Callable[[], object]], Replay]


class Shape(NamedTuple):
    """What the steps of one graph have in common: rows, tokens of each, and positions seen."""

    rows: int
    width: int
    end: int


class _Captured(NamedTuple):
    """A step that was captured: what it reads, what it writes, and what does it again."""

    ids: torch.Tensor
    step: Step
    logits: torch.Tensor
    replay: Replay


class _Captures:
    """Makes CUDA graphs, which share what memory they need within a step."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], object]) -> Replay:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # once before: what is set up at first use is not captured
            work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Other threads, such as one that pins memory, may use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            work()
        return graph.replay


class Graphs:
    """Steps that were captured, by their shape.

    Args:
        compute: logits of token ids, [rows, width], at a step's positions.
        device: of the model.
        vocabulary: how many logits a token has.
        limit: the most tokens of one step, rows times width.
        captures: makes what captures a computation, and returns what does it again.

    Attributes:
        replayed: steps that were graphs.
    """

    def __init__(
        self,
        compute: Compute,
        device: Any,
        vocabulary: int,
        limit: int,
        captures: Callable[[], Capture] = _Captures,
    ) -> None:
        self._compute, self._device, self._limit = compute, device, limit
        self._vocabulary, self._captures = vocabulary, captures
        self._asked: Counter[Shape] = Counter()
        self._known: dict[Shape, _Captured] = {}
        self._store: object = None
        self._memory: torch.Tensor | None = None
        self.replayed = 0

    def logits(
        self, slots: Sequence[int], starts: Sequence[int], ids: NDArray[np.int32], store: object
    ) -> torch.Tensor | None:
        """The logits of a step, in memory that the next one uses again.

        Args:
            slots: of the rows.
            starts: the position of each row's first token.
            ids: tokens, [rows, width].
            store: where keys and values are; graphs of another store are dropped.

        Returns:
            Of shape [rows, width, vocabulary]; None where there is no graph of such a step.
        """
        rows, width = ids.shape
        shape = shape_of(rows, width, max(starts))
        if shape is None or shape.rows * shape.width > self._limit:
            return None
        if store is not self._store:
            self._store, self._capture = store, self._captures()
            self._known.clear()
        self._asked[shape] += 1
        known = self._known.get(shape)
        if known is None and self._asked[shape] < OFTEN:
            return None
        captured = known or self._buffers(shape)
        more = shape.rows - rows
        wide = np.pad(ids, ((0, 0), (0, shape.width - width)))
        padded = np.pad(wide, ((0, more), (0, 0)), "edge")
        captured.ids.copy_(torch.from_numpy(padded))
        captured.step.rows.copy_(torch.tensor([*slots, *[slots[-1]] * more]))
        first = torch.tensor([*starts, *[starts[-1]] * more])
        captured.step.columns.copy_(first[:, None] + torch.arange(shape.width))
        if known is None:
            try:
                self._known[shape] = captured = self._made(captured)
            except RuntimeError as fault:
                warnings.warn(f"decoding goes on without CUDA graphs: {fault}", stacklevel=2)
                self._limit = 0
                return None
        captured.replay()
        self.replayed += 1
        return captured.logits[:rows, :width]

    def _buffers(self, shape: Shape) -> _Captured:
        """What a step of a shape reads and writes; all graphs write to the same memory."""
        rows, width, end = shape
        if self._memory is None:
            self._memory = torch.empty(self._limit * self._vocabulary, device=self._device)
        logits = self._memory[: rows * width * self._vocabulary].view(rows, width, -1)
        ids = torch.zeros((rows, width), dtype=torch.long, device=self._device)
        step = Step([0] * rows, [end - width] * rows, width, self._device)
        return _Captured(ids, step, logits, bool)

    def _made(self, it: _Captured) -> _Captured:
        return it._replace(
            replay=self._capture(lambda: it.logits.copy_(self._compute(it.ids, it.step)))
        )


def shape_of(rows: int, width: int, last: int) -> Shape | None:
    """The shape of the graph for a step.

    Args:
        rows: of the step.
        width: tokens of each row.
        last: the greatest position of a row's first token.

    Returns:
        The next greater one; None where there is none so great.
    """
    fitting = next((each for each in ROWS if each >= rows), 0)
    wide = next((each for each in WIDTHS if each >= width), 0)
    end = -(-(last + wide) // ROUND) * ROUND
    return Shape(fitting, wide, end) if fitting and wide else None
