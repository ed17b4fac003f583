"""Small untrained models of real architectures, with real chat templates, and rows to train on."""

from __future__ import annotations

import json
import socket
import sys
from functools import lru_cache
from pathlib import Path

import msgspec
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    set_seed,
)

from toolshift.lm.bases import chat_template
from toolshift.train.curves import read_curves
from toolshift.train.data import make_rows
from toolshift.train.presets import Settings
from toolshift.train.scenes import Mix

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
KINDS = ("listing", "hours")


@lru_cache
def rows(count=12, alpha=0.0):
    return make_rows(Mix(kinds=KINDS, alpha=alpha, shifts=("SBP",), size=200), count)


def tokenizer(template):
    """A byte-level BPE of 600 tokens with the special tokens of SmolLM2 and of Qwen2."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    learner = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([json.dumps(row) for row in rows()], learner)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = template
    return fast


def save(folder, model, template):
    made = tokenizer(template)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def llama(folder, template=None, **changes):
    set_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=600, **SIZES, **changes))
    return save(folder, model, template or chat_template())


def qwen_template():
    """The public chat template of Qwen2.5, as TRL ships it: without generation markers."""
    return (Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja").read_text("utf-8")


def qwen(folder, template=None):
    set_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=600, **SIZES))
    return save(folder, model, template or qwen_template())


def gemma(folder):
    """Of which every other layer sees no further than a window that is shorter than a row."""
    set_seed(0)
    kinds = ["sliding_attention", "full_attention"]
    shape = {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 50, "layer_types": kinds}
    model = Gemma3ForCausalLM(Gemma3TextConfig(vocab_size=600, **SIZES, **shape))
    return save(folder, model, chat_template())


def two_processes():
    """The beginning of a command that runs a script in two processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Without GPUs, --multi_gpu means several processes on the CPU; --cpu would start only one.
    return [
        *(sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"),
        *("--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"),
        *("--dynamo_backend", "no", "--main_process_port", str(port)),
    ]


def lora(model, **changes):
    settings = Settings(model=str(model), rank=4, lr=0.02, batch=4, save_every=0, threads=1)
    return msgspec.structs.replace(settings, **changes)


def full(model, **changes):
    return lora(model, full=True, lr=0.01, **changes)


def losses(out):
    return [line["loss"] for line in read_curves(out / "curves.jsonl") if "loss" in line]
