"""The second base model, beside transformers' own implementation on the same weights.

Needs its weights (`toolshift list models`), which are not in the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gguf")

from toolshift.core.errors import UsageError
from toolshift.lm.bases import BASES, GEMMA, base_directory, check_there, is_there, weights_file

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not is_there(BASES[GEMMA]), reason="its weights are not here"),
]
PLACES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens", "output_norm": "model.norm",
}  # fmt: skip
TEXT = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is"


@pytest.fixture(scope="module")
def models() -> Any:
    """The model as it is run, and as transformers runs it with plain attention."""
    import torch
    from transformers import AutoTokenizer

    from toolshift.lm.weights import load_weights

    directory = base_directory(GEMMA)
    plain = load_weights(directory, torch.float32).eval()
    plain.set_attn_implementation("eager")
    ours = load_weights(directory, torch.float32).eval()
    return AutoTokenizer.from_pretrained(directory), ours, plain


def test_its_plan_names_the_layout_that_the_rule_derives() -> None:
    from toolshift_lab.planned import read_plan

    from toolshift.lm.checkpoint import load_tokenizer
    from toolshift.lm.layout_rule import derived_layout

    plan = Path(__file__).parents[2] / "studies" / "decisive" / "gemma.toml"
    tokenizer = load_tokenizer(base_directory(GEMMA), GEMMA)
    assert read_plan(plan).layout == derived_layout(tokenizer)


def test_another_reading_of_its_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a transformers that cuts words otherwise: nothing else would tell."""
    from toolshift.lm.checkpoint import load_tokenizer

    tokenizer = load_tokenizer(base_directory(GEMMA), GEMMA)
    pieces = {"input_ids": list(range(20))}
    monkeypatch.setattr(type(tokenizer), "__call__", lambda self, *text, **how: pieces)
    with pytest.raises(UsageError, match=r"reads the tokenizer of gemma3-270m wrongly: run pip"):
        BASES[GEMMA].check_tokenizer(tokenizer)


def test_every_weight_is_that_of_the_file(tmp_path: Path) -> None:
    import torch
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from safetensors import safe_open

    try:
        check_there(BASES[GEMMA])
    except UsageError:
        pytest.skip("what it was converted from is not here")
    file = GGUFReader(weights_file(BASES[GEMMA], tmp_path))
    (weights,) = base_directory(GEMMA).glob("*.safetensors")
    with safe_open(weights, "pt") as converted:
        left = set(converted.keys())
        for tensor in file.tensors:
            *layer, part, _ = tensor.name.split(".")
            inner = f"model.layers.{layer[1]}." if layer else ""
            name = f"{inner}{PLACES[part]}.weight"
            found = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
            found = found - 1 if "norm" in part else found  # the file has 1 added to these
            assert torch.equal(converted.get_tensor(name), found.bfloat16()), tensor.name
            left.remove(name)
    assert not left, "the head is the embedding, and nothing else is made up"


def test_the_config_is_that_of_gemma_3() -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(base_directory(GEMMA))
    kinds = ["full_attention" if n % 6 == 5 else "sliding_attention" for n in range(18)]
    assert config.layer_types == kinds
    assert config.sliding_window == 512
    assert config.tie_word_embeddings
    assert config.query_pre_attn_scalar == config.head_dim == 256
    rope = config.rope_parameters
    assert rope["full_attention"]["rope_theta"] == 1e6
    assert rope["sliding_attention"]["rope_theta"] == 1e4


def test_replies_are_those_of_transformers_beyond_the_window(models: Any) -> None:
    import torch

    from toolshift.lm.decode import Decoder

    tokenizer, ours, plain = models
    long = "".join(f"Line {n}: the word is w{n * 7 % 90}.\n" for n in range(56))
    texts = [f"{long}Line 3: the word is", TEXT]
    prompts = [tokenizer(text)["input_ids"] for text in texts]
    assert len(prompts[0]) > 512 + 50
    assert all(prompt[0] == tokenizer.bos_token_id for prompt in prompts)
    wanted = []
    with torch.inference_mode():
        for prompt in prompts:
            made = plain.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)
            wanted.append(made[0, len(prompt) :].tolist())
    assert Decoder.fits(ours)
    decoder = Decoder(ours, [-1])
    made = decoder.complete(prompts, 12)
    assert made == wanted
    assert "Madrid" in tokenizer.decode(made[1])
    again = [[*prompt, *reply] for prompt, reply in zip(prompts, made, strict=True)]
    with torch.inference_mode():
        logits = plain(torch.tensor([again[0]])).logits[0, -1]
    assert decoder.complete(again, 1)[0] == [int(logits.argmax())], "extended in place"
    assert decoder.prefilled < sum(map(len, prompts)) + 8


def test_a_conversation_is_written_in_its_template(models: Any) -> None:
    from toolshift.lm.checkpoint import load_tokenizer
    from toolshift.lm.inference import stop_tokens
    from toolshift.lm.layout_rule import alike, derived_layout

    tokenizer = load_tokenizer(base_directory(GEMMA), GEMMA)
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ids.count(tokenizer.bos_token_id) == 1
    assert ids[0] == tokenizer.bos_token_id
    assert text.endswith("<end_of_turn>\n<start_of_turn>model\n")
    assert stop_tokens(tokenizer, models[1]) == [1, 106]
    assert alike(tokenizer, derived_layout(tokenizer)) == 1
