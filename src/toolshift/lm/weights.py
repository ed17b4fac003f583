"""A model directory whose weights are not those of its config is refused, not filled up at random.

transformers initialises what a checkpoint lacks and leaves out what its config has no place for,
with a warning. Here either is an error, by the headers of the files, before anything is loaded.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolshift.core.errors import UsageError

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]
_LAYER = re.compile(r"\.\d+\.")


def check_model(directory: Path) -> None:
    """Checks that a config is of a known class, and that the weights are whole and fit it.

    Weights that are quantized, or in older formats than safetensors, are not compared.
    """
    from safetensors import safe_open  # noqa: PLC0415 - an extra

    with readable(directory / "config.json"):
        model = skeleton(directory)
    found: dict[str, Shape] = {}
    for path in sorted(directory.glob("*.safetensors")):
        with readable(path), safe_open(path, "np") as file:  # the header, and the size of the file
            found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    quantized = getattr(model.config, "quantization_config", None)
    if found and not quantized and (fault := _misfit(model, found)):
        raise UsageError(
            f"the weights in {directory} are of another architecture than its config.json: {fault}"
        )


def load_weights(directory: Path, dtype: torch.dtype) -> Any:
    """Loads a causal language model, all of whose weights are in the files."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - heavy, and an extra

    auto: Any = AutoModelForCausalLM
    check_model(directory)
    with readable(directory), quiet():
        model, told = auto.from_pretrained(directory, dtype=dtype, output_loading_info=True)
    if missing := sorted(told["missing_keys"]):
        raise UsageError(
            f"the weights in {directory} are of another architecture than its config.json: "
            f"{missing[0]} is missing"
        )
    return model


def skeleton(directory: Path) -> Any:
    """The model that a directory's config describes, without weights."""
    import torch  # noqa: PLC0415 - heavy, and an extra
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415 - heavy, and an extra
    from transformers.initialization import no_init_weights  # noqa: PLC0415 - heavy, and an extra

    auto: Any = AutoModelForCausalLM
    # To draw values that nobody has takes most of the time, on this device too.
    with quiet(), no_init_weights(), torch.device("meta"):
        model = auto.from_config(AutoConfig.from_pretrained(directory))
    model.tie_weights()  # which is left out with the values
    return model


def _misfit(model: Any, found: dict[str, Shape]) -> str:
    """What of the weights does not fit a model; "" where nothing does.

    Some architectures are stored under other names than they have in memory, which transformers
    converts. So a name that is missing tells only where all others are known.
    """
    known = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    for name in sorted(known.keys() & found.keys()):
        if known[name] != found[name]:
            return f"{name} is {_said(found[name])} there, and not {_said(known[name])}"
    modules = {_module(name) for name in known}
    more = found.keys() - known.keys()
    if beyond := sorted(name for name in more if _module(name) in modules):
        return f"there is no place for {beyond[0]}"
    missing = dict(model.named_parameters()).keys() - found.keys()  # of tied ones, it has one
    return f"{min(missing)} is missing" if missing and not more else ""


def _module(name: str) -> str:
    """What a weight belongs to, whichever layer that is in."""
    return _LAYER.sub(".0.", name).rpartition(".")[0]


def _said(shape: Shape) -> str:
    return " x ".join(map(str, shape))


@contextmanager
def readable(folder: object) -> Iterator[None]:
    """Says which folder it is that a library cannot read, whatever it raises."""
    try:
        yield
    except (UsageError, RuntimeError, MemoryError):  # too little memory is another matter
        raise
    except Exception as fault:
        said = [line for line in str(fault).splitlines() if line.strip()]
        why = said[0].strip().rstrip(".") if said else type(fault).__name__
        raise UsageError(f"{folder} cannot be read: {why}") from fault


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers' bars and the warnings about its own old names away."""
    from transformers.utils import logging  # noqa: PLC0415 - heavy, and an extra

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
