"""A checkpoint's tokenizer, base and record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.lm.bases import BASES, chat_template, weights_hash
from toolshift.lm.prompt import LAYOUTS, Layout
from toolshift.lm.weights import readable

RECORD = "training.json"
"""What training leaves beside a model or an adapter: settings, hashes, what it took."""


def check_base(adapter: Path, directory: Path) -> None:
    """Checks that an adapter is there and was trained on the weights in `directory`."""
    if not (adapter / "adapter_config.json").exists():
        raise UsageError(f"no adapter in {adapter}: adapter_config.json is missing")
    if not any(adapter.glob("adapter_model.*")):  # else peft looks for it on the hub
        raise UsageError(
            f"no adapter in {adapter}: adapter_model.safetensors is missing; if it is of the "
            f"studies here, `{command('artifacts', 'get', adapter)}` brings it back"
        )
    expected = training_record(adapter).get("base_sha256")
    if expected and expected != weights_hash(directory):
        raise UsageError(
            f"the adapter {adapter} was trained on other weights than those in {directory}; "
            "load it with its own base model, or train it again"
        )


def trained_layout(folder: Path) -> Layout | None:
    """The layout that an adapter or a model was trained with, where its record says so."""
    said = training_record(folder).get("settings", {}).get("layout")
    return next((layout for layout in LAYOUTS if layout == said), None)


def training_record(folder: Path) -> dict[str, Any]:
    """The record that training left beside a model or an adapter; empty where there is none."""
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}  # not there, or nobody's record
    return found if isinstance(found, dict) and "base_sha256" in found else {}


def load_tokenizer(directory: Path, base: str = "") -> Any:
    """Loads a model's tokenizer; a base model of ours has the chat template that ships with us."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - heavy, and an extra

    with readable(directory):
        tokenizer: Any = AutoTokenizer.from_pretrained(directory)
    if base in BASES:  # the one shipped now, whatever the cache folder was written with
        tokenizer.chat_template = chat_template(base)
        BASES[base].check_tokenizer(tokenizer)
    if not tokenizer.chat_template:
        raise UsageError(
            f"the tokenizer in {directory} has no chat template; choose an instruction-tuned model"
        )
    return tokenizer


def tool_role(tokenizer: Any) -> Literal["tool", "user"]:
    """Whether the chat template renders a plain message of the role "tool"."""
    probe = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "tool", "content": "probe-7"},
    ]
    try:
        return (
            "tool" if "probe-7" in tokenizer.apply_chat_template(probe, tokenize=False) else "user"
        )
    except Exception:  # a template raises whatever it likes
        return "user"
