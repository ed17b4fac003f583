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
"""A shape is captured when it has been asked for so often: to capture takes some three steps."""

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

    def read(self, slots: Sequence[int], starts: Sequence[int], ids: NDArray[np.int32]) -> None:
        """Takes over what is asked for, filled up to the shape of the graph."""
        (rows, width), (most, widest) = ids.shape, self.ids.shape
        wide = np.pad(ids, ((0, 0), (0, widest - width)))
        self.ids.copy_(torch.from_numpy(np.pad(wide, ((0, most - rows), (0, 0)), "edge")))
        self.step.rows.copy_(torch.tensor([*slots, *[slots[-1]] * (most - rows)]))
        first = torch.tensor([*starts, *[starts[-1]] * (most - rows)])
        self.step.columns.copy_(first[:, None] + torch.arange(widest))


class _Captures:
    """Makes CUDA graphs, which share what memory they need within a step.

    Where all of them are gone, so is that memory: then it takes another maker.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], object]) -> Replay:
        stream = torch.cuda.current_stream()
        self._once(work, stream)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads, such as one that pins memory, may use the GPU meanwhile.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                work()
        except BaseException:
            torch.cuda.set_stream(stream)  # torch stays at its own where a capture fails
            raise
        return graph.replay

    def _once(self, work: Callable[[], object], stream: Any) -> None:
        """Runs once to warm up, so that lazy set-up is not captured.

        A model that waits for the GPU in mid-step, which no graph can hold, is refused here: after
        a capture that has failed the memory of torch is in disorder.
        """
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(stream)
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it does not detect everything
            torch.cuda.set_sync_debug_mode("error")
        try:
            with torch.cuda.stream(side):
                work()
        finally:
            torch.cuda.set_sync_debug_mode(before)
        stream.wait_stream(side)


class Graphs:
    """Steps that were captured, by their shape.

    Args:
        device: of the model.
        vocabulary: how many logits a token has.
        limit: the most tokens of one step, rows times width.
        captures: makes what captures a computation, and returns what does it again.

    Attributes:
        works: False from the first capture on that has failed.
        replayed: steps that were graphs.
    """

    def __init__(
        self,
        device: Any,
        vocabulary: int,
        limit: int,
        captures: Callable[[], Capture] = _Captures,
    ) -> None:
        self._device, self._vocabulary, self._limit = device, vocabulary, limit
        self._captures = captures
        self._asked: Counter[Shape] = Counter()
        self.works = True
        self.replayed = 0
        self.drop()

    def drop(self) -> None:
        """Drops all graphs, and gives their memory back."""
        self._known: dict[Shape, _Captured] = {}
        self._memory: torch.Tensor | None = None
        self._capture: Capture | None = None
        self._store: object = None

    def logits(
        self,
        compute: Compute,
        slots: Sequence[int],
        starts: Sequence[int],
        ids: NDArray[np.int32],
        store: object,
    ) -> torch.Tensor | None:
        """The logits of a step, in memory that the next one uses again."""
        rows, width = ids.shape
        shape = shape_of(rows, width, max(starts))
        if not self.works or shape is None or shape.rows * shape.width > self._limit:
            return None
        if store is not self._store:
            self.drop()
            self._store, self._capture = store, self._captures()
        self._asked[shape] += 1
        captured = self._known.get(shape)
        if captured is None:
            if self._asked[shape] < OFTEN:
                return None
            try:
                captured = self._made(compute, shape, (slots, starts, ids))
            except RuntimeError as fault:
                warnings.warn(f"decoding goes on without CUDA graphs: {fault}", stacklevel=2)
                self.drop()
                self.works = False
                return None
        captured.read(slots, starts, ids)
        captured.replay()
        self.replayed += 1
        return captured.logits[:rows, :width]

    def _made(self, compute: Compute, shape: Shape, asked: tuple[Any, Any, Any]) -> _Captured:
        """Captures a step, which is computed meanwhile: so it writes what is right to write."""
        rows, width, end = shape
        ids = torch.zeros((rows, width), dtype=torch.long, device=self._device)
        step = Step([0] * rows, [end - width] * rows, width, self._device)
        it = _Captured(ids, step, self._written(rows, width), bool)
        it.read(*asked)
        assert self._capture is not None
        replay = self._capture(lambda: it.logits.copy_(compute(it.ids, it.step)))
        self._known[shape] = it._replace(replay=replay)
        return self._known[shape]

    def _written(self, rows: int, width: int) -> torch.Tensor:
        """Where logits of [rows, width] are written: all graphs write to the same memory."""
        size = rows * width * self._vocabulary
        if self._memory is None or len(self._memory) < size:
            self._known.clear()  # which write to the memory there was
            self._capture = self._captures()
            room = min(self._limit, 1 << (rows * width - 1).bit_length())
            self._memory = torch.empty(room * self._vocabulary, device=self._device)
        return self._memory[:size].view(rows, width, -1)


def shape_of(rows: int, width: int, last: int) -> Shape | None:
    """The shape of the graph for a step."""
    fitting = next((each for each in ROWS if each >= rows), 0)
    wide = next((each for each in WIDTHS if each >= width), 0)
    end = -(-(last + wide) // ROUND) * ROUND
    return Shape(fitting, wide, end) if fitting and wide else None
