"""What stands for a path: a file or folder of this machine, and an address only where it can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Run

from toolshift import UsageError, evaluate
from toolshift.cli.parameters import PATH, PLACE

GATE = ("gate", "--agent", "oracle", "--baseline", "old", "--margin", "5")
ELSEWHERE = "addresses work only with `toolshift run --out`"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*GATE, "--out", "s3://b/x"), f"--out s3://b/x: {ELSEWHERE}"),
        ((*GATE, "--out", "nosuch://x"), ELSEWHERE),
        ((*GATE, "--bundle", "gs://b/failed.zip"), "--bundle gs://b/failed.zip"),
        (("report", "s3://b/x"), "(`aws s3 cp --recursive s3://b/x FOLDER`)"),
        (("report", "file:///runs/first"), "On this machine it is /runs/first"),
        (("trace", "FILE:/runs/first"), "On this machine it is /runs/first"),
        (("run", "--agent", "oracle", "--out", "s3:/b/x"), "did you mean s3://b/x?"),
        (("run", "--agent", "oracle", "--out", "file:/b/x"), "did you mean file:///b/x?"),
        (("run", "--agent", "oracle", "--out", "GS:b/x"), "did you mean gs://b/x?"),
        (("run", "--agent", "oracle", "--out", "://b/x"), "has no kind before the colon"),
        ((*GATE, "--out", "s3:b/x"), f"--out s3:b/x: {ELSEWHERE}"),
        (("report", "file:runs/first"), "On this machine it is runs/first"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_an_address_makes_no_folder_of_its_name(
    words: tuple[str, ...], said: str, toolshift: Run
) -> None:
    before = set(Path().iterdir())
    code, _, err = toolshift(*words)
    assert (code, said in err) == (2, True), err
    assert set(Path().iterdir()) == before


def test_an_address_for_evaluate_makes_no_folder_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="out s3://b/x: addresses work only with"):
        evaluate("oracle", tasks=1, out="s3://b/x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["C:\\runs\\first", "c:/runs", "./s3:/b", "a:b", "runs/12:30/x", "run:1"]
)
def test_drives_and_folders_with_a_colon_are_paths(name: str) -> None:
    assert PATH.convert(name, None, None) == Path(name)
    assert PLACE.convert(name, None, None) == Path(name)
