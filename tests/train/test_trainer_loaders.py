"""Rows in the real loaders of those who train on them: which tokens they learn."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest

from toolshift.data.augment import Recipe
from toolshift.data.files import Job, augment_file

pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

from data.trainer_rows import rows  # noqa: E402
from train.tiny import qwen_template, tokenizer  # noqa: E402


def wanted(text):
    """The marks of turns that are to be learned, and of those that are not."""
    return set(re.findall(r"YES\d+[ab]?", text)), set(re.findall(r"NOT\d+", text))


ALL = wanted(json.dumps(rows()))[0]


def written(tmp_path, trainer, suffix="jsonl"):
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    out = tmp_path / f"out.{suffix}"
    tally = augment_file(Job(source, out, Recipe(alpha=0.0, trainer=trainer)))
    assert not tally.faults
    return out, tally


def learned_of(fast, ids, labels):
    """The text that is learned."""
    kept = [i for i, label in zip(ids, labels, strict=True) if label != -100]
    return fast.decode(kept)


def check(texts, marks=ALL):
    """Each mark is learned once, and none of context."""
    found = [wanted(text) for text in texts]
    assert not set().union(*(never for _, never in found))
    assert sorted(mark for yes, _ in found for mark in yes) == sorted(marks)


def test_trl_learns_completions(tmp_path):
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import SFTConfig, SFTTrainer

    out, _ = written(tmp_path, "trl")
    fast = tokenizer(qwen_template())
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    trainer = SFTTrainer(
        Qwen2ForCausalLM(config),
        SFTConfig(str(tmp_path / "run"), use_cpu=True, report_to=[], max_length=None),
        train_dataset=datasets.load_dataset(
            "json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
        ),
        processing_class=fast,
    )
    learned, whole = [], []
    for row in trainer.train_dataset:
        labels = row.get("labels") or [
            token if learn else -100
            for token, learn in zip(row["input_ids"], row["completion_mask"], strict=True)
        ]
        learned.append(learned_of(fast, row["input_ids"], labels))
        whole.append(fast.decode(row["input_ids"]))
    check(learned)
    assert not any("null" in text or "None" in text for text in whole)  # no holes of a table
    assert any('"arguments": {"order_id": "YES2", "lang": "en"}' in text for text in learned)


def test_llama_factory_learns_last_turns(tmp_path, monkeypatch):
    if not find_spec("torchaudio"):
        monkeypatch.setitem(sys.modules, "torchaudio", ModuleType("torchaudio"))  # for sound alone
    monkeypatch.setenv("DISABLE_VERSION_CHECK", "1")  # of transformers, as its range is narrow
    converter = pytest.importorskip("llamafactory.data.converter")
    from llamafactory.data.parser import DatasetAttr
    from llamafactory.data.processor.supervised import SupervisedDatasetProcessor
    from llamafactory.data.template import get_template_and_fix_tokenizer
    from llamafactory.hparams import DataArguments

    out, _ = written(tmp_path, "llama-factory")
    fast = tokenizer(qwen_template())
    args = DataArguments(template="qwen", mask_history=True, cutoff_len=4096)
    attr = DatasetAttr("file", dataset_name="out", formatting="sharegpt", tools="tools")
    data = datasets.load_dataset(
        "json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    aligned = [converter.get_dataset_converter("sharegpt", attr, args)(row) for row in data]
    assert all(row["_response"] for row in aligned)  # none is skipped
    template = get_template_and_fix_tokenizer(fast, args)
    processor = SupervisedDatasetProcessor(template, fast, None, args)
    made = processor.preprocess_dataset({key: [row[key] for row in aligned] for key in aligned[0]})
    assert len(made["labels"]) == len(data)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    check([learned_of(fast, ids, labels) for ids, labels in pairs])
    text = "\n".join(map(fast.decode, made["input_ids"]))
    assert "Once more.<tool_call>" in text.replace("\n", "")
    assert '"arguments": "{' not in text


def test_axolotl_learns_what_is_flagged(tmp_path):
    strategies = pytest.importorskip("axolotl.prompt_strategies.chat_template")
    out, _ = written(tmp_path, "axolotl")
    fast = tokenizer(qwen_template())
    prompter = strategies.ChatTemplatePrompter(
        fast, fast.chat_template, message_field_training="train", max_length=4096
    )
    strategy = strategies.ChatTemplateStrategy(
        prompter,
        fast,
        train_on_inputs=False,
        sequence_len=4096,
        roles_to_train=["assistant"],
        train_on_eos="turn",
    )
    data = datasets.load_dataset(
        "json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    made = [strategy.tokenize_prompt(dict(row)) for row in data]
    check([learned_of(fast, row["input_ids"], row["labels"]) for row in made])
    assert '"arguments": "{' not in fast.decode(made[1]["input_ids"])


def test_verl_learns_all_of_what_is_left(tmp_path, monkeypatch):
    pytest.importorskip("verl")
    pytest.importorskip("omegaconf")
    pytest.importorskip("pandas")
    try:
        import verl.models.transformers.qwen2_vl  # noqa: F401
    except ImportError:  # of pictures alone, and not for every release of transformers
        stub = SimpleNamespace(get_rope_index=None)
        monkeypatch.setitem(sys.modules, "verl.models.transformers.qwen2_vl", stub)
    module = pytest.importorskip("verl.utils.dataset.multiturn_sft_dataset")
    out, tally = written(tmp_path, "verl", "parquet")
    fast = tokenizer(qwen_template())
    data = module.MultiTurnSFTDataset(
        [str(out)], fast, {"max_length": 8192, "pad_mode": "no_padding", "truncation": "error"}
    )
    made = [data[number] for number in range(len(data))]
    learned = [fast.decode(row["input_ids"][row["loss_mask"] == 1]) for row in made]
    # What comes after the first turn that is not to be learned is in no row, and is said.
    gone = {"YES2", "YES3", "YES4", "YES7", "YES8", "YES13"}
    check(learned, ALL - gone)
    assert sum(tally.left.values()) == len(gone)


def test_mistral_takes_the_rows(tmp_path):
    pytest.importorskip("mistral_common")
    from mistral_common.protocol.instruct.messages import FinetuningAssistantMessage
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import ValidationMode
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    out, _ = written(tmp_path, "mistral")
    # What is learned is decided by mistral-finetune, which is not on PyPI: of a row with tools the
    # last turn alone, of others each whose weight is not 0.
    model = MistralTokenizer._data_path() / "mistral_instruct_tokenizer_240323.model.v3"
    encoder = MistralTokenizer.from_file(str(model), mode=ValidationMode.finetuning)
    last = []
    for line in out.read_text().splitlines():
        row = json.loads(line)
        told = [one for one in row["messages"] if one["role"] == "assistant"]
        assert all(FinetuningAssistantMessage(**one).weight in (0, 1) for one in told)
        bare = [{k: v for k, v in one.items() if k != "weight"} for one in row["messages"]]
        request = ChatCompletionRequest(**{**row, "messages": bare})
        text = encoder.decode(
            encoder.encode_chat_completion(request).tokens, SpecialTokenPolicy.KEEP
        )
        learned = told[-1:] if row.get("tools") else [one for one in told if one["weight"]]
        assert all(wanted(json.dumps(one))[0] <= wanted(text)[0] for one in learned)
        last += [json.dumps(one) for one in learned]
    check(last)
