"""Writes the packages of exported scenes, from templates."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolshift.core.errors import UsageError
from toolshift.core.files import write, writing
from toolshift.train.environment import environments
from toolshift.train.export.scenes import FILE, LOOKED_AT, Exported, carried_files

KINDS = {
    "verifiers": {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "{package}/__init__.py": "init.py",
    },
    "openenv": {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "openenv.yaml": "openenv.yaml",
        "__init__.py": "init.py",
        "models.py": "models.py",
        "client.py": "client.py",
        "server/__init__.py": "server_init.py",
        "server/app.py": "app.py",
        "server/Dockerfile": "Dockerfile",
    },
    "trl": {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "{package}/__init__.py": "init.py",
    },
}
"""The files of a package for each trainer, and their templates."""

_UNSAFE = re.compile(r"[^\w ,.%@:+-]")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def write_package(kind: str, exported: Exported, out: Path, name: str, about: str) -> list[Path]:
    """Writes a package."""
    check_name(name)
    if kind == "trl":  # its tools are methods of a class, so not every name can be one
        environments(exported.scene(number) for number in range(LOOKED_AT))
    package = name.replace("-", "_")
    words = {
        "name": name,
        "package": package,
        "title": "".join(part.capitalize() for part in name.split("-")),
        "version": exported.toolshift,
        "about": _UNSAFE.sub("_", about),
    }
    files = {
        out / path.format(package=package): _template(f"{kind}/{template}.j2", words)
        for path, template in KINDS[kind].items()
    }
    inner = out if kind == "openenv" else out / package
    files[inner / FILE] = exported.encoded()
    for own, content in carried_files(exported).items():
        if inner / own in files:
            raise UsageError(f"{own} has the name of a file of the package: rename it")
        files[inner / own] = content
    _check_folder(out, files)
    with writing(out):
        for file, content in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, content)
    return list(files)


def check_name(name: str) -> None:
    """Checks the name of a package."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r}: use lower-case words joined by hyphens, as in toolshift-quick"
        )


def _template(name: str, words: dict[str, str]) -> bytes:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python, TOML and Markdown, of words that are made safe
    )
    return made.get_template(name).render(words).encode()


def _check_folder(out: Path, files: dict[Path, bytes]) -> None:
    """A folder with other things in it is not mixed with a package."""
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not any(file.exists() for file in files)):
        raise UsageError(f"{out} is not empty and contains no such package: name another folder")
