"""Weights of studies that are in the repository's history, and how one is brought back.

`studies/artifacts.toml` names each: the commit that has it, its path, its hash and size, and the
command that trains it again. Those that are no longer in the tree are read from that commit.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes, save
from toolshift.core.names import unknown

LISTED = Path("studies") / "artifacts.toml"


class Artifact(msgspec.Struct, frozen=True):
    """One file of weights.

    Attributes:
        path: from the root of the repository.
        commit: that has it.
        sha256: of its content.
        bytes: its size.
        command: that trains it again, at that commit where it is an older one's.
    """

    path: str
    commit: str
    sha256: str
    bytes: int
    command: str


class _Listed(msgspec.Struct):
    artifact: list[Artifact]


def repository(here: Path) -> Path:
    """The root of the clone that a folder is in."""
    for folder in (here.resolve(), *here.resolve().parents):
        if (folder / LISTED).is_file():
            return folder
    raise UsageError(
        f"no {LISTED} in {here.resolve()} or above it: run this in a clone of ToolShift's "
        "repository"
    )


def read_artifacts(root: Path) -> list[Artifact]:
    """All weights that the repository has or had, but for the adapters that ship."""
    file = root / LISTED
    try:
        return msgspec.toml.decode(read_bytes(file), type=_Listed).artifact
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            f"{file} is damaged ({fault}): restore it with `git checkout -- {LISTED}`"
        ) from None


def choose(listed: list[Artifact], name: str, root: Path) -> list[Artifact]:
    """Those at a path, or in a folder; all of them for "all"."""
    asked = name.rstrip("/").removeprefix("./")
    here = Path(name).resolve()
    found = [
        each
        for each in listed
        if asked == "all"
        or f"{each.path}/".startswith(f"{asked}/")
        or (root / each.path).is_relative_to(here)
    ]
    if not found:
        folders = {str(Path(each.path).parent.parent) for each in listed}
        raise UsageError(unknown("artifact", asked, sorted(folders)))
    return found


def present(artifact: Artifact, root: Path) -> bool:
    """Whether its file is in the tree, with its content as it was."""
    file = root / artifact.path
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == artifact.sha256


def bring_back(artifact: Artifact, root: Path) -> None:
    """Writes a file of weights into the tree, as the repository's history has it."""
    file = root / artifact.path
    if file.exists():
        if present(artifact, root):
            return
        raise UsageError(f"{file} is there with other content: move it away first")
    content = _shown(artifact, root)
    if hashlib.sha256(content).hexdigest() != artifact.sha256:
        raise UsageError(
            f"{artifact.path} at commit {artifact.commit} is not what {LISTED} lists (sha256): "
            "check both against the published repository"
        )
    save(file, content, make_folder=True)


def check_weights(model: Path) -> None:
    """Checks that what training has left in a folder still has its weights."""
    if any(model.glob("*.safetensors")):
        return
    if _in_history(model):
        way = f"`{command('artifacts', 'get', model.parent)}` brings them back from the history"
    else:
        way = "no commit has them: name another folder of stages, to train it again (--work again)"
    raise UsageError(f"the weights in {model} are needed and are not there: {way}")


def _in_history(model: Path) -> bool:
    """Whether the list of the clone that a folder is in names weights of it."""
    try:
        root = repository(model.parent)
    except UsageError:
        return False
    here = model.resolve()
    return any((root / each.path).is_relative_to(here) for each in read_artifacts(root))


def _shown(artifact: Artifact, root: Path) -> bytes:
    """The content of the file at its commit."""
    try:
        shown = subprocess.run(
            ["git", "-C", str(root), "show", f"{artifact.commit}:{artifact.path}"],  # noqa: S607 - the user's git
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError(
            "git is not installed, and the weights are in the history: install it"
        ) from None
    if shown.returncode:
        raise UsageError(
            f"{artifact.path} is not in the history of this clone, as where it is shallow: run "
            f"`git fetch --depth 1 origin {artifact.commit}` and then the same command again"
        )
    return shown.stdout
