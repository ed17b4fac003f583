"""Weights that are in the history only: listed, brought back, asked for where needed."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from running import Run
from toolshift_lab.artifacts import check_weights, read_artifacts

from toolshift.core.errors import UsageError

ROOT = Path(__file__).parents[2]
PATH = "studies/stages/one/model/adapter_model.safetensors"


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository that has removed its one file of weights."""
    root = tmp_path / "clone"
    file = root / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00weights")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "weights")
    commit = git(root, "rev-parse", "HEAD")
    file.unlink()
    digest = hashlib.sha256(b"\x00weights").hexdigest()
    (root / "studies" / "artifacts.toml").write_text(
        f'[[artifact]]\npath = "{PATH}"\ncommit = "{commit}"\nsha256 = "{digest}"\nbytes = 8\n'
        'command = "toolshift reproduce one"\n'
    )
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "no weights")
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("name", [PATH, "studies/stages/one", "studies/stages/one/", "all"])
def test_weights_are_brought_back(toolshift: Run, clone: Path, name: str) -> None:
    assert "1 of 1 absent" in toolshift("artifacts")[1]
    code, _, err = toolshift("artifacts", "get", name)
    assert code == 0, err
    assert (clone / PATH).read_bytes() == b"\x00weights"
    assert "0 of 1 absent" in toolshift("artifacts")[1]
    assert toolshift("artifacts", "get", name)[0] == 0, "again does no harm"


def test_a_path_that_is_not_listed_is_answered_with_the_nearest(
    toolshift: Run, clone: Path
) -> None:
    code, _, err = toolshift("artifacts", "get", "studies/stages/on")
    assert code == 2
    assert "did you mean studies/stages/one?" in err


def test_a_shallow_clone_says_what_to_fetch(
    toolshift: Run, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = read_artifacts(clone)[0].commit
    git(clone, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{clone}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    code, _, err = toolshift("artifacts", "get", "all")
    assert code == 2
    command = f"git fetch --depth 1 origin {commit}"
    assert command in err
    git(tmp_path / "shallow", *command.split()[1:])
    assert toolshift("artifacts", "get", "all")[0] == 0
    assert Path(PATH).read_bytes() == b"\x00weights"


def test_what_is_not_as_listed_is_not_written(toolshift: Run, clone: Path) -> None:
    listed = clone / "studies" / "artifacts.toml"
    listed.write_text(listed.read_text().replace('sha256 = "', 'sha256 = "0'))
    code, _, err = toolshift("artifacts", "get", "all")
    assert code == 2
    assert "is not what studies/artifacts.toml lists" in err
    assert not (clone / PATH).exists()


def test_another_file_is_not_overwritten(toolshift: Run, clone: Path) -> None:
    (clone / PATH).parent.mkdir(parents=True, exist_ok=True)
    (clone / PATH).write_bytes(b"mine")
    code, _, err = toolshift("artifacts", "get", "all")
    assert code == 2
    assert "move it away first" in err
    assert (clone / PATH).read_bytes() == b"mine"


def test_outside_a_clone_it_says_where_to_run_it(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = toolshift("artifacts")
    assert code == 2
    assert "run this in a clone" in err


def test_weights_that_are_needed_are_asked_for(clone: Path, tmp_path: Path) -> None:
    model = (clone / PATH).parent
    (clone / PATH).unlink(missing_ok=True)
    with pytest.raises(UsageError, match=f"toolshift artifacts get {model.parent}.* from the hist"):
        check_weights(model)
    for other in (clone / "studies" / "stages" / "x" / "model", tmp_path / "elsewhere" / "model"):
        other.mkdir(parents=True)
        with pytest.raises(UsageError, match=r"no commit has them: .*--work again"):
            check_weights(other)
        (other / "model.safetensors").write_bytes(b"")
        check_weights(other)


def test_every_file_of_weights_in_the_tree_of_studies_is_listed() -> None:
    listed = {each.path: each for each in read_artifacts(ROOT)}
    there = {str(file.relative_to(ROOT)) for file in ROOT.glob("studies/**/*.safetensors")}
    assert there <= set(listed)
    for path in sorted(there)[:3]:
        digest = hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
        assert listed[path].sha256 == digest
