"""An isolated program sees no other process and no run folder, and cannot undo that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.connect import isolation
from toolshift.connect.isolation import check_isolation, isolated
from toolshift.core.errors import UsageError

NOSY = """
import json, os, subprocess, sys, urllib.request
from pathlib import Path

undone = [
    subprocess.run(words, capture_output=True).returncode
    for words in (["umount", sys.argv[1]], ["mount", "-t", "tmpfs", "none", "/mnt"])
    if len(sys.argv) > 2
]
seen = {
    "folder": os.listdir(sys.argv[1]),
    "others": [n for n in os.listdir("/proc") if n.isdigit() and
               Path(f"/proc/{n}/cmdline").read_bytes() == b"sleep\\x00271.828\\x00"],
    "undone": undone,
    "reached": urllib.request.urlopen(os.environ["TOOLSHIFT_CONTROL_URL"]).status,
    "here": os.getcwd(),
}
print("I cannot do that. " + json.dumps(seen))
"""
SMALL = ("--tasks", "1", "--no-placebo", "--shift", "fatal_error", "--out", "out")


def allowed() -> bool:
    try:
        check_isolation()
    except UsageError:
        return False
    return True


@pytest.mark.skipif(not allowed(), reason="this system gives no namespaces to users")
@pytest.mark.parametrize("apart", [True, False], ids=["isolated", "not"])
def test_a_program_sees_nothing_of_the_run(toolshift: Run, tmp_path: Path, apart: bool) -> None:
    (tmp_path / "nosy.py").write_text(NOSY)
    more = ("--isolate",) if apart else ()
    command = f"{sys.executable} nosy.py out {'undo' if apart else ''}"
    with subprocess.Popen(["sleep", "271.828"]) as other:
        code, _, err = toolshift("run", "--agent-command", command, *SMALL, *more)
        other.kill()
    assert code == 0, err
    lines = (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()
    said = [json.loads(line)["steps"][-1]["said"] for line in lines]
    seen: list[dict[str, Any]] = [json.loads(each[each.index("{") :]) for each in said]
    assert {each["reached"] for each in seen} == {200}
    assert {each["here"] for each in seen} == {str(tmp_path)}
    if apart:
        assert [each["folder"] for each in seen] == [[], []]
        assert all(all(each["undone"]) for each in seen)
        assert not any(each["others"] for each in seen)
    else:
        assert "plan.jsonl" in seen[0]["folder"]
        assert all(each["others"] for each in seen)
    (about,) = json.loads((tmp_path / "out" / "manifest.json").read_text())["agents"]
    assert about["settings"].get("isolated", False) is apart


def test_a_system_without_namespaces_is_said(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ["sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1", "--"]
    monkeypatch.setattr(isolation, "_ENTER", refused)
    words = ("run", "--agent-command", f"{sys.executable} x.py", *SMALL, "--isolate")
    code, _, err = toolshift(*words)
    assert code == 2
    assert "--isolate needs Linux namespaces" in err
    monkeypatch.setattr(isolation, "_NEEDED", ("no-such-program",))
    with pytest.raises(UsageError, match="there is no no-such-program"):
        check_isolation()


def test_only_folders_that_are_there_are_hidden(tmp_path: Path) -> None:
    words = isolated(["agent", "x"], [tmp_path, tmp_path / "absent"])
    assert words[-4:] == ["1", str(tmp_path), "agent", "x"]
