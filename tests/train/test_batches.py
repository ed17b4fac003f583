"""Rows as tokens and weights, and which of them go together."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train import tiny  # noqa: E402

from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.core.message import Turn  # noqa: E402
from toolshift.lm.bases import chat_template  # noqa: E402
from toolshift.lm.checkpoint import tool_role  # noqa: E402
from toolshift.lm.prompt import to_plain_messages  # noqa: E402
from toolshift.train.batches import (  # noqa: E402
    Batches,
    Encoder,
    Example,
    collate,
    common_opening,
    encode_rows,
    show_mask,
)
from toolshift.train.model import training_template  # noqa: E402
from toolshift.train.rows import checked  # noqa: E402


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.tokenizer(chat_template())


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return Encoder(tokenizer, chat_template(), "description-first", "tool")


def weighed(row, *weights):
    changed = copy.deepcopy(row)
    said = [message for message in changed["messages"] if message["role"] == "assistant"]
    for message, weight in zip(said, weights, strict=False):
        message["weight"] = weight
    return changed


def learned(example, tokenizer):
    """The texts that carry weight, in order."""
    edges = np.flatnonzero(np.diff(example.weights, prepend=0, append=0))
    spans = zip(edges[::2], edges[1::2], strict=True)
    return [tokenizer.decode(example.tokens[begin:end]) for begin, end in spans]


def test_exactly_what_the_assistant_says_is_learned(encoder, tokenizer):
    row = tiny.rows()[0]
    plain = to_plain_messages(Turn(row["messages"], row["tools"]), "description-first", "tool")
    said = [f"{each['content']}<|im_end|>" for each in plain if each["role"] == "assistant"]
    assert learned(encoder.encode(row), tokenizer) == said


def test_the_tokens_are_those_that_an_agent_is_prompted_with(encoder, tokenizer):
    row = tiny.rows()[0]
    first = next(i for i, each in enumerate(row["messages"]) if each["role"] == "assistant")
    turn = Turn(row["messages"][:first], row["tools"])
    prompt = tokenizer.apply_chat_template(
        to_plain_messages(turn, "description-first", "tool"),
        add_generation_prompt=True,
        tokenize=False,
    )
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    example = encoder.encode(row)
    assert example.tokens[: len(ids)].tolist() == ids
    assert (example.weights != 0).argmax() == len(ids)


def test_weights_of_messages_mask_and_scale(encoder, tokenizer):
    row = tiny.rows()[0]
    full, part = encoder.encode(row), encoder.encode(weighed(row, 0, 0.5))
    assert part.tokens.tolist() == full.tokens.tolist()
    assert learned(part, tokenizer) == learned(full, tokenizer)[1:]
    spans = learned(full, tokenizer)
    second = len(tokenizer(spans[1], add_special_tokens=False)["input_ids"])
    assert part.weights.tolist().count(0.5) == second


def test_a_function_may_weigh_tokens(tokenizer):
    def last_token_twice(row, tokens, weights):
        ends = np.flatnonzero(np.diff(weights, append=0) < 0)
        weights[ends] = 2
        return weights

    encoder = Encoder(tokenizer, chat_template(), "description-first", "tool", last_token_twice)
    example = encoder.encode(tiny.rows()[0])
    said = sum(each["role"] == "assistant" for each in tiny.rows()[0]["messages"])
    assert example.weights.tolist().count(2.0) == said
    assert set(example.tokens[example.weights == 2].tolist()) == {tokenizer.eos_token_id}


def test_the_shown_mask_is_the_mask(encoder, tokenizer):
    example = encoder.encode(weighed(tiny.rows()[0], 0))
    shown = show_mask(example, tokenizer, ("\x01", "\x02"))
    assert [part.split("\x02")[0] for part in shown.split("\x01")[1:]] == learned(
        example, tokenizer
    )
    plain = shown.replace("\x01", "").replace("\x02", "")
    assert plain == tokenizer.decode(example.tokens)


def test_the_template_of_qwen_is_marked_and_says_the_same():
    tokenizer = tiny.tokenizer(tiny.qwen_template())
    template = training_template(tokenizer)
    row = tiny.rows()[0]
    plain = to_plain_messages(Turn(row["messages"], row["tools"]), "json", tool_role(tokenizer))
    assert tokenizer.apply_chat_template(plain, tokenize=False) == tokenizer.apply_chat_template(
        plain, chat_template=template, tokenize=False
    )
    example = Encoder(tokenizer, template, "json", "tool").encode(row)
    said = [each["content"] for each in plain if each["role"] == "assistant"]
    assert [text.split("<|im_end|>")[0] for text in learned(example, tokenizer)] == said
    assert all("<|im_end|>" in text for text in learned(example, tokenizer))


def test_a_template_without_markers_is_refused():
    bare = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
    with pytest.raises(UsageError, match="does not mark the messages of the assistant"):
        training_template(tiny.tokenizer(bare))


def test_markers_that_miss_a_message_are_noticed(tokenizer):
    marked = (
        "{% for m in messages %}{% if m.role == 'assistant' and loop.last %}{% generation %}"
        "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    encoder = Encoder(tokenizer, marked, "description-first", "tool")
    with pytest.raises(UsageError, match=r"marks 1 spans for \d messages"):
        encoder.encode(tiny.rows()[0])


def test_what_asks_the_model_to_speak_is_never_learned(tokenizer):
    """Also where a template marks all of it."""
    template = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
        "{{ '<|im_start|>assistant\n' + m.content + '<|im_end|>' }}{% endgeneration %}"
        "{% else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    encoder = Encoder(tokenizer, template, "description-first", "tool")
    example = encoder.encode(tiny.rows()[0])
    spoken = learned(example, tokenizer)
    assert len(spoken) > 1
    assert not any("assistant" in text for text in spoken)


def test_rows_that_cannot_be_learned_from(encoder):
    row = tiny.rows()[0]
    silent, length = weighed(row, *[0] * 9), len(encoder.encode(row).tokens)
    assert len(encode_rows([row, silent], encoder)) == 1
    assert len(encode_rows([row], encoder, most=length)) == 1
    with pytest.raises(UsageError, match="none of the 1 rows"):
        encode_rows([row], encoder, most=length - 1)
    with pytest.raises(
        UsageError, match=r"row 2: the column 'messages' is missing .* mean message\?"
    ):
        checked([row, {"message": []}])
    with pytest.raises(UsageError, match="row 1, message 3: the weight of a message is -1"):
        checked([weighed(row, -1)])


def examples(lengths, openings=1):
    made = []
    for number, length in enumerate(lengths):
        tokens = np.arange(length, dtype=np.int32)
        weights = np.zeros(length, np.float32)
        weights[length // 2 :] = 1
        made.append(Example(tokens, weights, number % openings))
    return made


@pytest.mark.parametrize(("count", "batch"), [(1, 4), (7, 4), (64, 4), (131, 4), (130, 8)])
def test_an_epoch_holds_each_row_once(count, batch):
    order = Batches(examples([20 + n % 13 for n in range(count)]), batch, seed=1)
    assert sorted(order) == list(range(count))
    sizes = [len(each) for each in order.batches()]
    assert set(sizes[:-1]) <= {batch}


def test_the_order_hangs_on_seed_and_epoch_alone():
    made = examples([20 + n % 13 for n in range(131)])
    orders = set()
    for seed in (0, 1):
        for epoch in (0, 1):
            one, other = Batches(made, 4, seed), Batches(made, 4, seed)
            one.set_epoch(epoch)
            other.set_epoch(epoch)
            assert list(one) == list(other)
            orders.add(tuple(one))
    assert len(orders) == 4


def test_batches_are_alike_in_opening_and_length():
    made = examples([20 + 7 * n % 50 for n in range(128)], openings=2)
    batches = Batches(made, 4, seed=0).batches()
    assert all(len({made[index].opening for index in batch}) == 1 for batch in batches)
    padding = sum(
        max(len(made[i].tokens) for i in batch) * len(batch)
        - sum(len(made[i].tokens) for i in batch)
        for batch in batches
    )
    assert padding < 0.1 * sum(len(each.tokens) for each in made)


def test_few_rows_of_one_opening_stay_together():
    made = examples([20 + 7 * n % 50 for n in range(96)], openings=48)  # two rows of each
    batches = Batches(made, 4, seed=0).batches()
    together = sum(len({made[index].opening for index in batch}) == 2 for batch in batches)
    assert together >= 20  # of 24; a pool's edge may cut a pair


def test_the_common_opening_ends_before_what_is_predicted(encoder):
    batch = [encoder.encode(row) for row in tiny.rows()[:4]]
    shared = common_opening(batch)
    columns = zip(*(each.tokens.tolist() for each in batch), strict=False)
    equal = next(place for place, column in enumerate(columns) if len(set(column)) > 1)
    first = min(int((each.weights != 0).argmax()) for each in batch)
    assert shared == min(equal, first - 1) > 50
    assert common_opening(batch[:1]) == 0
    assert common_opening([batch[0], batch[0]]) == (batch[0].weights != 0).argmax() - 1


def test_padding_is_on_the_right_and_weighs_nothing(encoder):
    batch = [encoder.encode(row) for row in tiny.rows()[:3]]
    made = collate(batch)
    for place, each in enumerate(batch):
        length = len(each.tokens)
        assert made["input_ids"][place, :length].tolist() == each.tokens.tolist()
        assert made["weights"][place, length:].sum() == 0
    assert made["tokens"] == sum(len(each.tokens) for each in batch)
