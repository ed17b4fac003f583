"""Weights that are not those of their config are refused before anything is loaded."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file

from toolshift.core.errors import UsageError
from toolshift.lm.inference import load_model
from toolshift.lm.weights import check_model, load_weights

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "moe_intermediate_size": 16}
KNOWN = {
    "Llama": {"tie_word_embeddings": True},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Phi3": {},
    "Mixtral": EXPERTS,
    "Qwen2Moe": {**EXPERTS, "shared_expert_intermediate_size": 16},
    "GPTNeoX": {},
}


def write(folder, name, **changes):
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **KNOWN[name], **changes})
    getattr(transformers, f"{name}ForCausalLM")(config).save_pretrained(folder)
    return folder


def change(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return folder


@pytest.mark.parametrize("name", KNOWN)
def test_what_transformers_has_saved_is_whole(name, tmp_path):
    model = load_weights(write(tmp_path, name), torch.float32)
    assert type(model).__name__ == f"{name}ForCausalLM"


QWEN = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("Llama", QWEN, r"layers.0.self_attn.k_proj.bias is missing"),
        ("Qwen2", LLAMA, r"there is no place for model.layers.0.self_attn.k_proj.bias"),
        ("Llama", {"num_hidden_layers": 4}, r"model.layers.2.\S+ is missing"),
        (
            "Llama",
            {"num_hidden_layers": 1},
            r"there is no place for model.layers.1.input_layernorm",
        ),
        ("Llama", {"hidden_size": 64}, r"embed_tokens.weight is 96 x 32 there, and not 96 x 64"),
        ("Qwen2", {"tie_word_embeddings": True, "vocab_size": 90}, r"96 x 32 there, and not 90 x"),
    ],
)
def test_another_architecture_is_refused_by_the_first_weight_that_does_not_fit(
    name, changes, said, tmp_path
):
    folder = change(write(tmp_path, name), **changes)
    with pytest.raises(
        UsageError, match=rf"of another architecture than its config.json: .*{said}"
    ):
        check_model(folder)
    with pytest.raises(UsageError, match="of another architecture"):
        load_model(folder)


def test_a_config_of_no_causal_language_model_is_refused(tmp_path):
    folder = change(write(tmp_path, "Llama"), model_type="t5", architectures=["T5Model"])
    with pytest.raises(UsageError, match=r"config.json cannot be read: .*T5Config"):
        check_model(folder)


def test_what_only_loading_tells_is_refused_then(tmp_path):
    folder = write(tmp_path, "Mixtral")
    file = folder / "model.safetensors"
    weights = load_file(file)
    del weights["model.norm.weight"]  # beside experts, which are stored under other names
    save_file(weights, file, {"format": "pt"})
    with pytest.raises(UsageError, match=r"model.norm.weight is missing"):
        load_weights(folder, torch.float32)
