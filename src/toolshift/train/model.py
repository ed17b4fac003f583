"""Models to train: found, checked before anything expensive, and loaded with LoRA or in full."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateSyntaxError

from toolshift.agents.local_kind import shipped_adapter
from toolshift.core.errors import UsageError
from toolshift.core.installation import extra
from toolshift.lm.bases import BASES, SMOL, base_directory, cache_folder, weights_hash
from toolshift.lm.checkpoint import check_base, load_tokenizer, tool_role, trained_layout
from toolshift.lm.dtype import computes_in
from toolshift.lm.weights import check_model, load_weights, quiet, readable, skeleton
from toolshift.train.settings import SCRATCH, TrainSettings, base_of, processes

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
EVERY_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Base:
    """A base model on disk, checked.

    Attributes:
        directory: the transformers model directory.
        tokenizer: with the chat template that an agent is run with.
        template: the chat template for training: the same text, with generation markers.
        tool_role: the role in which that template takes results.
        sha256: of the weights.
    """

    directory: Path
    tokenizer: Any
    template: str
    tool_role: Any
    sha256: str


def require_training() -> None:
    """Checks that the packages of the extra `train` are there."""
    for package in ("torch", "transformers", "peft", "accelerate", "trl", "datasets"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(
                f"training needs {package}, which is not installed; run: {extra('train')}"
            )


def require_one_gpu() -> None:
    """Checks that a process sees one GPU at most, which TRL does when the model is loaded."""
    import torch  # noqa: PLC0415 - heavy, and an extra

    if processes() == 1 and torch.cuda.device_count() > 1:
        raise UsageError(
            f"one process sees {torch.cuda.device_count()} GPUs, but can train on only one: "
            "start with `accelerate launch`, or show it one GPU with CUDA_VISIBLE_DEVICES=0"
        )


def find_base(settings: TrainSettings) -> Base:
    """Finds the base model and checks it and the first adapter, without loading weights."""
    require_training()
    directory = _directory(settings.model)
    check_model(directory)
    with quiet():
        tokenizer = load_tokenizer(directory, base_of(settings.model))
    if not tokenizer.is_fast:
        raise UsageError(f"the tokenizer in {directory} is not a fast one: it cannot mark spans")
    if settings.adapter:
        with readable(settings.adapter):
            check_adapter(Path(settings.adapter), directory)
    start = Path(settings.adapter) if settings.adapter else directory
    if (layout := trained_layout(start)) not in (None, settings.layout):
        raise UsageError(
            f"{start} was trained with the layout {layout}, and {settings.layout} was given: use "
            f'--layout {layout}, or layout="{layout}" in Python'
        )
    template = training_template(tokenizer, directory)
    return Base(directory, tokenizer, template, tool_role(tokenizer), weights_hash(directory))


def with_start(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings completed by what the run starts from.

    An adapter that ships with the package is named by its folder, and the layout is that which the
    start was trained with, where none is asked for.
    """
    given = dict(changes)
    if str(given.get("adapter", "")).startswith("smol:"):
        given["adapter"] = str(shipped_adapter(given["adapter"]))
    start = given.get("adapter") or given.get("model")
    layout = trained_layout(Path(start)) if start else None
    return {"layout": layout, **given} if layout else given


def training_template(tokenizer: Any, where: object = "the tokenizer") -> str:
    """The tokenizer's chat template with generation markers.

    Templates of well-known models that lack the markers are replaced by TRL's versions of them.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers  # noqa: PLC0415 - heavy, and an extra

    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template["default"]
    _check_syntax(tokenizer, where)
    if has_generation_markers(template):
        return str(template)
    try:
        return str(get_training_chat_template(tokenizer) or template)
    except Exception as fault:  # a template raises whatever it likes
        raise UsageError(
            f"the chat template of {where} does not mark the messages of the assistant. Write "
            "{% generation %} and {% endgeneration %} around the content of its messages, the "
            "end token included, in chat_template.jinja or tokenizer_config.json. (TRL has no "
            f"marked version of it: {str(fault).splitlines()[0]})"
        ) from None


def _check_syntax(tokenizer: Any, where: object) -> None:
    """Refuses a template that cannot be compiled, which is known only once it is used."""
    try:
        tokenizer.apply_chat_template([{"role": "user", "content": "hello"}], tokenize=False)
    except TemplateSyntaxError as fault:
        raise UsageError(
            f"the chat template of {where} is not a Jinja template: {fault.message}, line "
            f"{fault.lineno}"
        ) from None
    except Exception:
        return  # of the template's own making: what it asks of a conversation is not its syntax


def check_adapter(adapter: Path, directory: Path) -> None:
    """Checks an adapter against a base model, by its config and the shapes of its matrices."""
    from safetensors import safe_open  # noqa: PLC0415 - an extra

    check_base(adapter, directory)
    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    if config.get("lora_bias"):  # which `rounded` would leave out
        raise UsageError(
            f"the adapter {adapter} has its own biases (lora_bias), which are not supported: "
            "merge it into its base model, and give the result as the model"
        )
    weights = adapter / "adapter_model.safetensors"
    if not weights.exists():
        raise UsageError(f"no adapter in {adapter}: adapter_model.safetensors is missing")
    shapes = _linear_shapes(directory)
    with safe_open(weights, "np") as file:
        for name in file.keys():  # noqa: SIM118 (not a dict)
            inner, _, rest = name.removeprefix("base_model.model.").rpartition(".lora_")
            if not inner or not rest.startswith(("A.", "B.")):
                continue
            side = 1 if rest.startswith("A.") else 0
            found = file.get_slice(name).get_shape()[side]
            if inner not in shapes or shapes[inner][side] != found:
                has = f"{shapes[inner][side]} wide there" if inner in shapes else "not there"
                raise UsageError(
                    f"the adapter {adapter} fits another architecture than {directory}: {inner} "
                    f"is {found} wide in the adapter and {has}; give its own base model"
                )


def _linear_shapes(directory: Path) -> dict[str, tuple[int, int]]:
    """The (out, in) shapes of a model's linear layers, from its config alone."""
    import torch  # noqa: PLC0415 - heavy, and an extra

    return {
        name: (module.out_features, module.in_features)
        for name, module in skeleton(directory).named_modules()
        if isinstance(module, torch.nn.Linear)
    }


def load(settings: TrainSettings, base: Base) -> Any:
    """Loads the model that is trained.

    With LoRA the base is rounded to `settings.precision` and frozen. The adapter is kept in float32
    and rounded where it is used, so that the model computes in one type throughout, as it will
    when the rounded adapter is shipped. In full training all weights are in float32, and the
    trainer computes under autocast.
    """
    import torch  # noqa: PLC0415 - heavy, and an extra

    dtype = torch.float32 if settings.full else getattr(torch, settings.precision)
    model = load_weights(base.directory, dtype)
    with quiet(), readable(settings.adapter):
        if settings.full:
            return _merged(model, settings.adapter) if settings.adapter else model
        return _adapted(model.to(computes_in(settings.precision)), settings)


def _merged(model: Any, adapter: str) -> Any:
    from peft import PeftModel  # noqa: PLC0415 - heavy, and an extra

    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    return merged.requires_grad_(True)  # which peft had taken from the base


def _adapted(model: Any, settings: TrainSettings) -> Any:
    import torch  # noqa: PLC0415 - heavy, and an extra
    from peft import LoraConfig, PeftModel, get_peft_model  # noqa: PLC0415 - heavy, and an extra
    from peft.tuners.lora import LoraLayer  # noqa: PLC0415 - heavy, and an extra

    torch.manual_seed(settings.seed)
    if settings.adapter:
        adapted = PeftModel.from_pretrained(model, settings.adapter, is_trainable=True)
        # Else peft looks the base up on the hub, by the name under which the adapter knows it.
        adapted.peft_config["default"].base_model_name_or_path = model.name_or_path
    else:
        config = LoraConfig(
            r=settings.rank,
            lora_alpha=2 * settings.rank,
            target_modules=_targets(model),
            task_type="CAUSAL_LM",
        )
        adapted = get_peft_model(model, config)
    for module in adapted.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False
            for matrices in (module.lora_A, module.lora_B):
                for name, linear in matrices.items():
                    matrices[name] = rounded(linear, settings.precision)
    return adapted


def _targets(model: Any) -> list[str] | str:
    """The linear layers to adapt: those of the usual names, or else all but the head."""
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    usual = [name for name in EVERY_LINEAR if name in names]
    return usual if len(usual) >= 4 else "all-linear"


def rounded(linear: Any, precision: str) -> Any:
    """A linear layer whose float32 weights are rounded to `precision` where they are used."""
    import torch  # noqa: PLC0415 - heavy, and an extra

    kept = getattr(torch, precision)

    class Rounded(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(x, self.weight.to(kept).to(x.dtype))

    made = Rounded(linear.in_features, linear.out_features, bias=False, device="meta")
    made.weight = torch.nn.Parameter(linear.weight.detach().float(), linear.weight.requires_grad)
    return made


def _directory(model: str) -> Path:
    """The directory of a model that is named as `TrainSettings.model` is."""
    if model in BASES:
        return base_directory(model)
    if model.partition(":")[0] == SCRATCH and base_of(model):
        return scratch_directory(base_of(model))
    if (Path(model) / "config.json").exists():
        return Path(model)
    if Path(model).exists() or not _HUB_NAME.fullmatch(model):
        raise UsageError(
            f"no model in {model}: config.json is missing; give a model directory, a hub name "
            f"(organisation/model), {', '.join(BASES)} or {SCRATCH}"
        )
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra

    try:
        return Path(snapshot_download(model, ignore_patterns=["*.bin", "*.gguf", "original/*"]))
    except Exception as fault:
        raise UsageError(
            f"the model {model} cannot be fetched from the hub ({type(fault).__name__}): "
            "download it on a machine with a connection, and give its directory"
        ) from None


def scratch_directory(like: str = SMOL) -> Path:
    """A tiny model of a base model's classes and tokenizer with random weights, made once.

    It learns nothing of use: it is there to run the code path in seconds.
    """
    target = cache_folder() / ("scratch-1" if like == SMOL else f"scratch-1-{like}")
    if (target / "model.safetensors").exists():
        return target
    base = base_directory(like)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        write_scratch(base, made)
        try:
            made.rename(target)
        except OSError:  # another process was faster
            if not (target / "model.safetensors").exists():
                raise
    return target


def write_scratch(like: Path, target: Path, **changes: Any) -> None:
    """Writes a small model of another one's classes, with its tokenizer and random weights."""
    import torch  # noqa: PLC0415 - heavy, and an extra
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415 - heavy, and an extra

    small: dict[str, Any] = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    }  # fmt: skip
    with quiet():
        config = AutoConfig.from_pretrained(like)
        if getattr(config, "layer_types", None):  # one of each kind
            small["layer_types"] = sorted(set(config.layer_types), reverse=True)
            small["num_hidden_layers"] = len(small["layer_types"])
        for name, value in {**small, **changes}.items():
            setattr(config, name, value)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            auto: Any = AutoModelForCausalLM
            model = auto.from_config(config, dtype=torch.float32)
        model.save_pretrained(target)
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (like / file).exists():
            shutil.copyfile(like / file, target / file)
