"""Steps as graphs of fixed shapes: tokens are the same, and no other sequence is written over.

A CPU has no CUDA graphs, so a "capture" here is the computation itself, done again in the same
buffers. What it cannot show is that the kernels of a model can be captured.
"""

from __future__ import annotations

import gc
from random import Random
from typing import Any
from weakref import ref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

from toolshift.lm import decode  # noqa: E402
from toolshift.lm.attention import all_at_once  # noqa: E402
from toolshift.lm.decode import Decoder  # noqa: E402
from toolshift.lm.graphs import Graphs, Shape, shape_of  # noqa: E402
from toolshift.train.generation import Sampler  # noqa: E402

torch.set_num_threads(1)


def at_once(
    module: object, query: Any, key: Any, value: Any, mask: object, scaling: float, **_: Any
) -> Any:
    return all_at_once(query, key, scaling, 0), None


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(decode, "grouped_attention", at_once)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    made = LlamaForCausalLM(config)
    made.train(False)
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
    made.set_attn_implementation("sdpa")
    return made


def captured(decoder: Decoder, limit: int = 200) -> list[int]:
    """Gives a decoder graphs; returns what notes each capture."""
    made: list[int] = []

    def captures() -> Any:
        replays: list[Any] = []

        def capture(work: Any) -> Any:
            # As CUDA's: with the last graph of a pool the pool is gone.
            assert not replays or any(each() for each in replays)
            made.append(1)
            replays.append(ref(work))
            work()
            return work

        return capture

    decoder.graphs = Graphs("cpu", 60, limit, captures)
    decoder.memory.at_once = 32
    return made


def talks(rng: Random, rows: int) -> list[list[int]]:
    begins = [rng.randrange(3, 60) for _ in range(70)]
    return [
        begins + [rng.randrange(3, 60) for _ in range(rng.randrange(1, 300))] for _ in range(rows)
    ]


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_the_tokens_are_the_same_over_turns(model: Any, rows: int) -> None:
    said = talks(Random(rows), rows)
    plain, graphs = Decoder(model, [2], 3000), Decoder(model, [2], 3000)
    captures = captured(graphs)
    for _ in range(3):
        replies = plain.complete(said, 30)
        assert graphs.complete(said, 30) == replies
        said = [[*talk, *reply, 5, 7] for talk, reply in zip(said, replies, strict=True)]
    assert graphs.graphs is not None
    assert graphs.graphs.replayed > len(captures) > 0


def test_what_is_sampled_is_the_same(model: Any) -> None:
    said = talks(Random(5), 5)
    plain, graphs = Sampler(model, [2], 3000), Sampler(model, [2], 3000)
    captured(graphs)
    for turn in range(2):
        seeds = [turn * 10 + n for n in range(5)]
        wanted = plain.say(said, seeds, 25, 1.0)
        found = graphs.say(said, seeds, 25, 1.0)
        assert [each.tokens for each in found] == [each.tokens for each in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        plain.forget()
        room = graphs.memory.cells
        graphs.forget(keep_room=True)  # where the graphs write
        assert graphs.memory.cells is room
        assert not graphs.memory.held
    assert graphs.graphs is not None
    assert graphs.graphs.replayed
    assert graphs.graphs._known


def test_to_forget_gives_everything_back(model: Any) -> None:
    decoder = Decoder(model, [2], 3000)
    captured(decoder)
    said = talks(Random(3), 3)
    wanted = decoder.complete(said, 20)
    assert decoder.graphs is not None
    assert decoder.graphs._known
    store, graphs = ref(decoder.memory.cells[0]), decoder.graphs
    decoder.forget()
    assert store() is None
    assert not graphs._known
    assert graphs._memory is None
    assert decoder.complete(said, 20) == wanted


def test_no_cycle_keeps_a_decoder_that_has_graphs(model: Any) -> None:
    decoder = Decoder(model, [2], 3000)
    decoder.graphs = Graphs("cpu", 60, 200, lambda: lambda work: (work(), bool)[1])
    decoder.complete(talks(Random(3), 3), 20)
    assert decoder.graphs._known
    there = ref(decoder.memory.cells[0])
    gc.disable()
    try:
        del decoder
        assert there() is None
    finally:
        gc.enable()


def test_logits_take_no_more_memory_than_a_step_needs(model: Any) -> None:
    decoder = Decoder(model, [2], 3000)
    decoder.guesses = False  # type: ignore[misc]
    captured(decoder, limit=1000)
    decoder.complete([[5, 6, 7]], 12)
    assert decoder.graphs is not None
    assert decoder.graphs._memory is not None
    assert len(decoder.graphs._memory) == 60
    said = talks(Random(6), 7)
    found = decoder.complete(said, 20)
    assert len(decoder.graphs._memory) == 8 * 60
    assert found == Decoder(model, [2], 3000).complete(said, 20)


def test_graphs_are_made_anew_where_the_keys_have_moved(model: Any) -> None:
    decoder = Decoder(model, [2], 8000)
    captures = captured(decoder)
    for _ in range(3):
        decoder.complete([[5, 6, 7]], 30)
    before = len(captures)
    assert before
    decoder.complete([[5, 6, 7]], 30)
    assert len(captures) == before
    decoder.complete([[9] * 600, [8] * 500], 12)  # the store grows, and its tensors are new
    wanted = Decoder(model, [2], 0).complete([[5, 6, 7, 8]], 30)
    assert decoder.complete([[5, 6, 7, 8]], 30) == wanted
    assert len(captures) > before


def test_where_nothing_can_be_captured_decoding_goes_on(model: Any) -> None:
    decoder = Decoder(model, [2], 3000)

    def captures() -> Any:
        def refuse(work: Any) -> Any:
            raise RuntimeError("operation not permitted when stream is capturing")

        return refuse

    decoder.graphs = Graphs("cpu", 60, 200, captures)
    said = talks(Random(2), 2)
    with pytest.warns(UserWarning, match="goes on without CUDA graphs: operation not permitted"):
        found = decoder.complete(said, 30)
    assert found == Decoder(model, [2], 3000).complete(said, 30)
    assert not decoder.graphs.replayed
    assert not decoder.graphs.works
    decoder.forget(keep_room=True)  # for nobody
    assert not decoder.memory.cells[0].numel()


def test_steps_beyond_the_limit_are_no_graphs(model: Any) -> None:
    decoder = Decoder(model, [2], 3000)
    assert not captured(decoder, limit=1)
    said = talks(Random(4), 4)
    assert decoder.complete(said, 20) == Decoder(model, [2], 3000).complete(said, 20)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((1, 1, 0), Shape(1, 1, 256)),
        ((5, 3, 250), Shape(8, 4, 256)),
        ((5, 3, 253), Shape(8, 4, 512)),  # four tokens from there on
        ((128, 9, 1000), Shape(128, 9, 1024)),
        ((129, 1, 0), None),
        ((1, 10, 0), None),
    ],
)
def test_shapes_are_rounded_up(asked: tuple[int, int, int], found: Shape | None) -> None:
    assert shape_of(*asked) == found
