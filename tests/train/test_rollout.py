"""Rollouts: every token kept as sampled, nothing computed twice, the batch without influence."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from train import tiny  # noqa: E402

from toolshift.core.message import Turn  # noqa: E402
from toolshift.episode.draw import make_scene  # noqa: E402
from toolshift.episode.episode import messages  # noqa: E402
from toolshift.episode.grade import grade  # noqa: E402
from toolshift.lm.checkpoint import load_tokenizer, tool_role  # noqa: E402
from toolshift.lm.inference import load_model, stop_tokens  # noqa: E402
from toolshift.lm.prompt import render_call, to_plain_messages  # noqa: E402
from toolshift.shifts.registry import apply  # noqa: E402
from toolshift.train.generation import PolicySampler, Sampler, copy_weights, speaking_copy  # noqa: E402
from toolshift.train.model import training_template  # noqa: E402
from toolshift.train.rollout import (  # noqa: E402
    CUT_OFF,
    Clock,
    ConversationEncoder,
    Limits,
    Play,
    Said,
    roll_out,
)
from toolshift.worlds.registry import find_world  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


@pytest.fixture(scope="module", params=["llama", "qwen"])
def directory(request, tmp_path_factory):
    return getattr(tiny, request.param)(tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tiny.llama(tmp_path_factory.mktemp("models") / "llama")


def sampler(directory, memory_tokens=80_000):
    model = load_model(directory, "float32")
    return Sampler(model, stop_tokens(load_tokenizer(directory), model), memory_tokens)


def scribe_for(directory):
    tokenizer = load_tokenizer(directory)
    stop = (tokenizer.eos_token_id,)
    return ConversationEncoder(tokenizer, "description-first", tool_role(tokenizer), stop)


def scene(kind="hours", index=0):
    return make_scene(find_world("poi"), kind, index)


class Reciter:
    """Says the oracle's lines of one scene, one at each turn; `ended` says how they end."""

    def __init__(self, lines, tokenizer, ended=True):
        self.tokenizer, self.ended = tokenizer, ended
        self.lines = iter(lines)

    def say(self, prompts, seeds, limit, temperature):
        end = [self.tokenizer.eos_token_id] if self.ended else []
        tokens = self.tokenizer(next(self.lines), add_special_tokens=False)["input_ids"] + end
        return [Said(tokens, [-0.5] * len(tokens), self.ended) for _ in prompts]


def lines_of(scene):
    names = {"answer": "answer", "ask": "question", "refuse": "reason"}
    protocol = {"answer": "final_answer", "ask": "ask_user", "refuse": "refuse"}
    for step in scene.rehearsal:
        if step.kind == "call":
            yield render_call(step.name, step.arguments)
        else:
            said = step.name if step.kind == "refuse" else step.said
            yield render_call(protocol[step.kind], {names[step.kind]: said})


def written_whole(scribe, episode, tools):
    """The conversation tokenized at once, and the mask of the template's own markers."""
    plain = to_plain_messages(Turn(messages(episode.scene, episode.steps), tools),
                              scribe.layout, scribe.tool_role)  # fmt: skip
    encoded = scribe.tokenizer.apply_chat_template(
        plain,
        chat_template=training_template(scribe.tokenizer),
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    return encoded["input_ids"], encoded["assistant_masks"]


# --- tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hours", "look_then_book"])
def test_the_tokens_are_those_of_the_whole_conversation(directory, kind):
    scribe, one = scribe_for(directory), scene(kind)
    reciter = Reciter(lines_of(one), scribe.tokenizer)
    (rollout,) = roll_out(reciter, scribe, [Play(one, 0)])
    assert grade(rollout.episode).passed
    ids, mask = written_whole(scribe, rollout.episode, _tools(one))
    tokens = rollout.prompt_ids + rollout.completion_ids
    assert ids[: len(tokens)] == tokens
    assert len(ids) - len(tokens) <= 2  # the line break after the last reply
    # TRL's template for Qwen marks the line breaks around a reply too; no model gets to say them.
    (line_break,) = scribe.tokenizer("\n", add_special_tokens=False)["input_ids"]
    mask = [own * (token != line_break) for own, token in zip(mask, ids, strict=True)]
    assert mask[: len(tokens)] == [0] * len(rollout.prompt_ids) + rollout.env_mask
    assert [p != 0 for p in rollout.logprobs] == [own == 1 for own in rollout.env_mask]


def _tools(scene):
    from toolshift.episode.episode import Episode

    return Episode(scene).observation.tools


def test_another_list_of_tools_begins_the_sequence_anew(llama):
    scribe, one = scribe_for(llama), apply(scene(), "tool_gone", 2)
    reciter = Reciter(lines_of(one), scribe.tokenizer)
    (rollout,) = roll_out(reciter, scribe, [Play(one, 0)])
    assert grade(rollout.episode).passed
    assert rollout.views == 2
    before = scribe.opening(scribe.messages(Turn(messages(one, ()), _tools(one))))
    assert rollout.prompt_ids[: len(before)] != before
    # What was said under the first list is context; only the refusal is the model's own here.
    own = [t for t, own in zip(rollout.completion_ids, rollout.env_mask, strict=True) if own]
    assert scribe.tokenizer.decode(own).startswith("refuse(")
    # Under the first list it made calls, which stand in a sequence of their own.
    (first,) = rollout.earlier
    said = [t for t, own in zip(first.completion_ids, first.env_mask, strict=True) if own]
    assert scribe.tokenizer.decode(said).startswith("find_place(")
    whole, (border,) = rollout.whole()
    tokens = [*whole.prompt_ids, *whole.completion_ids]
    assert tokens[border : border + len(rollout.prompt_ids)] == rollout.prompt_ids
    assert sum(whole.env_mask) == len(said) + len(own)
    assert len(whole.completion_ids) == len(whole.env_mask) == len(whole.logprobs)
    assert "find_place(" in scribe.tokenizer.decode(rollout.prompt_ids).rpartition("assistant")[0]


def test_a_reply_that_was_cut_off_is_closed_by_the_environment(llama):
    scribe, one = scribe_for(llama), scene()
    reciter = Reciter(lines_of(one), scribe.tokenizer, ended=False)
    (rollout,) = roll_out(reciter, scribe, [Play(one, 0)])
    tokens = zip(rollout.completion_ids, rollout.env_mask, strict=True)
    ends = [own for token, own in tokens if token == scribe.stop[0]]
    assert ends
    assert not any(rollout.env_mask[i] for i, t in enumerate(rollout.completion_ids)
                   if t == scribe.stop[0])  # fmt: skip
    assert grade(rollout.episode).passed


def test_an_episode_that_grows_too_long_has_failed(llama):
    scribe, one = scribe_for(llama), scene()
    (rollout,) = roll_out(
        Reciter(lines_of(one), scribe.tokenizer), scribe, [Play(one, 0)], limits=Limits(96, 8)
    )
    assert rollout.episode.end == "crashed"
    assert rollout.episode.steps[-1].said == CUT_OFF
    assert rollout.env_mask[-1] == 1


@pytest.mark.parametrize(("repeats", "calls"), [(0, 12), (3, 3)])
def test_an_episode_in_a_loop_ends_where_repeats_are_limited(llama, repeats, calls):
    scribe, one = scribe_for(llama), scene()
    again = itertools.repeat(render_call("get_hours", {"place_id": "PL-0"}))
    (rollout,) = roll_out(
        Reciter(again, scribe.tokenizer),
        scribe,
        [Play(one, 0)],
        limits=Limits(96, 4096, repeats=repeats),
    )
    assert sum(step.kind == "call" for step in rollout.episode.steps) == calls
    assert not grade(rollout.episode).passed


def test_a_new_list_of_tools_gives_no_new_allowance(llama):
    scribe, one = scribe_for(llama), apply(scene(), "tool_gone_lookalike", 2)
    said = [len(scribe.tokenizer(line)["input_ids"]) + 1 for line in lines_of(one)]
    assert len(said) == 3

    def played(most):
        reciter = Reciter(lines_of(one), scribe.tokenizer)
        return roll_out(reciter, scribe, [Play(one, 0)], 1.0, Limits(96, most))[0]

    whole = played(9999)
    assert whole.views == 2
    assert grade(whole.episode).passed
    assert played(said[0] + said[1] - 1).episode.steps[-1].said == CUT_OFF


def test_the_time_is_accounted_for(llama):
    scribe, one, clock = scribe_for(llama), scene(), Clock()
    roll_out(sampler(llama), scribe, [Play(one, 0)], 1.0, Limits(turn=4), clock)
    assert clock.generation > 0
    assert clock.rendering > 0
    assert clock.sandbox > 0


# --- sampling --------------------------------------------------------------------------------


def prompts(llama):
    scribe = scribe_for(llama)
    scenes = [scene(kind, index) for kind in ("hours", "listing") for index in range(3)]
    return [scribe.opening(scribe.messages(Turn(messages(s, ()), _tools(s)))) for s in scenes]


def test_what_is_decoded_beside_a_row_has_no_part_in_it(llama):
    asked = prompts(llama)
    together = sampler(llama).say(asked, range(6), 24, 1.0)
    alone = [sampler(llama).say([p], [n], 24, 1.0)[0] for n, p in enumerate(asked)]
    assert [said.tokens for said in together] == [said.tokens for said in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    assert len({tuple(said.tokens) for said in together}) == 6
    other_seeds = sampler(llama).say(asked, range(6, 12), 24, 1.0)
    assert [s.tokens for s in other_seeds] != [s.tokens for s in together]


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_logprobs_are_those_of_one_plain_forward_pass(llama, temperature):
    asked = prompts(llama)[0]
    (said,) = sampler(llama).say([asked], [5], 24, temperature)
    logits = load_model(llama, "float32")(torch.tensor([asked + said.tokens])).logits[0]
    expected = (logits / temperature).log_softmax(-1)[len(asked) - 1 : -1]
    wanted = expected.gather(1, torch.tensor(said.tokens)[:, None])[:, 0]
    assert said.logprobs == pytest.approx(wanted.tolist(), abs=1e-4)


def sharper(model):
    """A head by which a few tokens stand out, as random weights have none."""
    with torch.no_grad():
        model.model.lm_head.weight *= 60
    return model


def test_tokens_are_drawn_as_often_as_they_are_likely(llama):
    """Each first token, and each two of them: a thousand rows that are alike, until they part."""
    asked, model = [1, 40, 50, 60], sharper(sampler(llama))
    plain = load_model(llama, "float32")
    copy_weights(model.model, plain)
    chances = plain(torch.tensor([asked])).logits[0, -1].softmax(-1)
    said = [tuple(s.tokens) for s in model.say([asked] * 1000, range(1000), 2, 1.0)]
    drawn = [tokens[0] for tokens in said]
    for token in chances.topk(3).indices.tolist():
        assert drawn.count(token) / 1000 == pytest.approx(chances[token].item(), abs=0.05)
        after = plain(torch.tensor([[*asked, token]])).logits[0, -1].softmax(-1)
        for second in after.topk(2).indices.tolist():
            both = (chances[token] * after[second]).item()
            assert said.count((token, second)) / 1000 == pytest.approx(both, abs=0.05)
    greedy = model.say([asked], [0], 1, 0.0)[0]
    assert greedy.tokens == [int(chances.argmax())]


@pytest.mark.parametrize("memory", [300, 80_000])
@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.5])
def test_guesses_and_rows_that_are_read_once_change_nothing_that_is_sampled(
    llama, temperature, memory
):
    """Turn after turn, and with so little room that slots are taken from what ended."""
    quick, plain = sharper(sampler(llama, memory)), sharper(sampler(llama, memory))
    plain.guesses = plain.merges = False
    asked = [[5, 6, 7, 8] * 9] * 6 + [[9, 10, 11] * 8] * 3 + [[5, 6, 7, 8] * 8 + [9]]
    seeds = range(len(asked))
    parted = 0
    for turn in range(3):
        found, wanted = (
            each.say(asked, [10 * n + turn for n in seeds], 30, temperature)
            for each in (quick, plain)
        )
        assert [said.tokens for said in found] == [said.tokens for said in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
            assert one.ended == other.ended
        parted += len({tuple(said.tokens) for said in found}) > 3
        asked = [prompt + said.tokens + [12, 13] for prompt, said in zip(asked, found, strict=True)]
    assert quick.steps < plain.steps or temperature > 1  # the slowest row decides
    assert quick.prefilled < plain.prefilled
    assert parted or not temperature


def test_a_turn_computes_only_what_is_new(llama):
    asked, model = prompts(llama)[0], sampler(llama)
    (first,) = model.say([asked], [1], 16, 1.0)
    before = model.prefilled
    longer = asked + first.tokens + [7, 8, 9]
    (second,) = model.say([longer], [2], 16, 1.0)
    assert model.prefilled - before <= 5  # the three, and the last token that was never fed
    (anew,) = sampler(llama, memory_tokens=0).say([longer], [2], 16, 1.0)
    assert second.tokens == anew.tokens


# --- the speaking copy -----------------------------------------------------------------------


def test_the_voice_speaks_with_the_merged_adapter_of_now(llama):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    adapted = get_peft_model(
        load_model(llama, "float32"), LoraConfig(r=4, target_modules="all-linear")
    )
    voice = PolicySampler(adapted, "float32", [2])
    asked = prompts(llama)[0]
    at_first = voice.say([asked], [4], 8, 1.0)[0]
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.3)
    voice.refresh(adapted)
    spoken = voice.say([asked], [4], 8, 1.0)[0]
    logits = adapted(torch.tensor([asked + spoken.tokens])).logits[0].log_softmax(-1)
    wanted = logits[len(asked) - 1 : -1].gather(1, torch.tensor(spoken.tokens)[:, None])[:, 0]
    assert spoken.logprobs == pytest.approx(wanted.tolist(), abs=1e-3)
    assert at_first.logprobs != pytest.approx(spoken.logprobs, abs=1e-2)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_copy_has_the_weights_of_its_source(llama, precision):
    model = load_model(llama, "float32")
    copy = speaking_copy(model, precision)
    copy_weights(model, copy, precision)
    for name, weight in copy.named_parameters():
        wanted = model.get_parameter(name).to(getattr(torch, precision))
        assert torch.equal(weight, wanted.to(weight.dtype)), name
