"""Sequences as one tree: the states and gradients of the sequences one by one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from toolshift.train import tree as trees  # noqa: E402
from toolshift.train.tree import tree_attention, tree_of  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other

TOKENS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(TOKENS, st.integers(1, 7))
def test_each_node_sees_its_ancestors_and_nothing_else(sequences, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "BLOCK", block)
        tree = tree_of(sequences)
    prefixes = {tuple(s[: n + 1]) for s in sequences for n in range(len(s))}
    assert len(tree.ids) == len(prefixes)  # what is shared is there once
    sees = torch.full((len(tree.ids), len(tree.ids)), -torch.inf)
    for each in tree.blocks:
        sees[each.begin : each.end, each.seen] = each.barred
    for sequence, path in zip(sequences, tree.paths, strict=True):
        assert tree.ids[path].tolist() == sequence
        assert tree.depth[path].tolist() == list(range(len(sequence)))
        for place, node in enumerate(path):
            seen = (sees[node] == 0).nonzero()[:, 0].tolist()
            assert seen == sorted(path[: place + 1].tolist())


def test_attention_and_its_gradients_are_those_of_each_sequence(monkeypatch):
    monkeypatch.setattr(trees, "BLOCK", 4)
    sequences = [[1, 2, 3, 4, 5], [1, 2, 3, 9], [1, 2, 3, 4, 5, 6, 7], [8, 2]]
    tree = tree_of(sequences)
    generator = torch.Generator().manual_seed(0)
    made = [
        torch.randn(1, heads, len(tree.ids), 8, generator=generator, dtype=torch.double)
        for heads in (6, 2, 2)
    ]
    gradients = []
    for whole in (True, False):
        query, key, value = (each.clone().requires_grad_() for each in made)
        if whole:
            mixed = tree_attention(query, key, value, 0.3, tree)[0]
            found = [mixed[path] for path in tree.paths]
        else:
            found = [
                torch.nn.functional.scaled_dot_product_attention(
                    query[:, :, path], key[:, :, path], value[:, :, path],
                    is_causal=True, scale=0.3, enable_gqa=True,
                )[0].transpose(0, 1)
                for path in tree.paths
            ]  # fmt: skip
        sum(one.pow(2).sum() for one in found).backward()
        gradients.append([*found, query.grad, key.grad, value.grad])
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


def test_attention_has_the_type_of_the_model():
    """Where the processor has bfloat16, all but the adapters is in it."""
    tree = tree_of([[1, 2, 3, 4, 5], [1, 2, 9]])
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(1, heads, len(tree.ids), 8, generator=generator) for heads in (6, 2, 2)]
    exact = tree_attention(*made, 0.3, tree)
    rounded = tree_attention(*(each.bfloat16() for each in made), 0.3, tree)
    assert rounded.dtype == torch.bfloat16
    assert torch.allclose(rounded.float(), exact, atol=0.03)
