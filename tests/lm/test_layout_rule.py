"""The layout is that in which a tokenizer cuts names alike where they are read and written."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from toolshift.lm.layout_rule import CANDIDATES, NAMES, TEXTS, alike, derived_layout


def tokenizer(joins_spaces: bool) -> PreTrainedTokenizerFast:
    """Cuts at spaces and brackets; a space belongs to the word after it, or is one of its own."""
    words = {word for text in (*NAMES, *TEXTS) for word in text.split()}
    vocabulary = ["?", *words, *(f"Ġ{word}" for word in words)]
    made = Tokenizer(models.WordLevel({w: n for n, w in enumerate(vocabulary)}, unk_token="?"))
    pattern = r" ?[\w]+|[^\w\s]+|\s" if joins_spaces else r"\w+|[^\w\s]+|\s"
    steps = [pre_tokenizers.Split(Regex(pattern), "removed", True)]
    if joins_spaces:
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    made.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="?")


def test_where_spaces_join_words_calls_and_texts_need_them() -> None:
    shares = [alike(tokenizer(joins_spaces=True), layout) for layout in CANDIDATES]
    assert shares == sorted(shares)
    assert shares[0] < shares[1] < shares[2] == 1
    assert derived_layout(tokenizer(joins_spaces=True)) == "spaced-texts"


def test_where_they_do_not_the_plainest_layout_is_taken() -> None:
    assert derived_layout(tokenizer(joins_spaces=False)) == "description-first"


@pytest.mark.model
def test_the_bundled_model_asks_for_spaces() -> None:
    from toolshift.lm.bases import base_directory
    from toolshift.lm.checkpoint import load_tokenizer

    assert derived_layout(load_tokenizer(base_directory(), "smol")) == "spaced-texts"
