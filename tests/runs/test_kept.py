"""What earlier versions wrote is read, with the lab installed and without it.

`kept/kept.tar.xz` was made by `kept/make.sh` with commit 2303d6b4, before the lab was a package
of its own. Whoever looks at a run needs no code of its shifts, so looking gives the same without
the lab. To play a former version needs the lab, which is said.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from toolshift.core.shift import split_version
from toolshift.shifts import facts
from toolshift.shifts.registry import as_stored, find_shift, has_code, know_versions, why_no_code

KEPT = Path(__file__).with_name("kept")
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_tools"
RUNS = ("quick_today", "quick_former", "today", "former", "own", "judged")
MISSING = "pip install ./lab"
SETTINGS = "--agent always_refuses --agent oracle --world retail --tasks 2"
SHIFTS = {
    "today": "--shift semantic_rename --shift merged_tools+query_paraphrase --shift tool_gone",
    "former": "--shift semantic_rename@1 --shift merged_tools@1+query_paraphrase@1 "
    "--shift tool_gone@1",
}
Results = list[tuple[int, str, str]]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The files of before, and beside them the user's own code that some runs were made with."""
    with tarfile.open(KEPT / "kept.tar.xz") as file:
        file.extractall(tmp_path, filter="data")
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    agent = "def mumbles(messages, tools):\n    return 'Hmm. It is what it is.'\n"
    (tmp_path / "mumbles.py").write_text(agent)
    return tmp_path


def commands(folder: Path, lab: str, *lines: str) -> Results:
    """The exit code, output and errors of commands; `lab` is "beside" or "alone"."""
    done = subprocess.run(
        [sys.executable, str(KEPT / "commands.py"), lab],
        input=json.dumps([line.split() for line in lines]),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: Results = [tuple(each) for each in json.loads(done.stdout)]
    return found


LOOKS = [
    *(f"report {run} --json" for run in RUNS),
    *(f"trace {run} --json" for run in ("former", "own", "judged")),
    "regrade today --json",
    "regrade former --json",
    "compare former former --agent oracle --agent always_refuses --json",
    "gate former --baseline former --agent oracle --margin 50 --json",
    "lock former --out former.lock",
    "leaderboard quick_today quick_former today former --out board",
    "verify tools.lock tools.json",
    "verify run.lock today",
]


@pytest.mark.slow
def test_looking_is_the_same_without_the_lab(kept: Path) -> None:
    with_lab, alone = (commands(kept, lab, *LOOKS) for lab in ("beside", "alone"))
    for line, beside, by_itself in zip(LOOKS, with_lab, alone, strict=True):
        assert beside[0] in ((3,) if line.startswith("gate") else (0,)), (line, beside)
        if line == "regrade former --json":
            assert json.loads(by_itself[1])["changed"] == []
            assert MISSING in by_itself[1]
            continue
        assert by_itself == beside, line


@pytest.mark.parametrize("run", RUNS)
def test_a_report_has_the_figures_of_before(kept: Path, run: str) -> None:
    before = json.loads((kept / run / "report.json").read_text())
    [(code, text, _)] = commands(kept, "alone", f"report {run} --json")
    assert code == 0
    now = json.loads(text)
    assert [each["everything"] for each in now["agents"]] == [
        each["everything"] for each in before["agents"]
    ]
    assert [each["shifts"] for each in now["agents"]] == [
        each["shifts"] for each in before["agents"]
    ]


@pytest.mark.parametrize("lab", ["beside", "alone"])
def test_each_kind_of_episode_can_be_traced(kept: Path, lab: str) -> None:
    [(_, text, _)] = commands(kept, lab, "trace former --json")
    rows = list({(row["shifts"], row["agent"]): row for row in json.loads(text)}.values())
    traced = commands(kept, lab, *(f"trace former {row['episode']}" for row in rows))
    for row, (code, said, fault) in zip(rows, traced, strict=True):
        assert code == 0, fault
        assert row["shifts"] in said
        assert (MISSING in said) == (lab == "alone" and "@1" in row["shifts"]), said


@pytest.mark.parametrize("lab", ["beside", "alone"])
def test_stopped_runs_go_on(kept: Path, lab: str) -> None:
    """A former version is not played without the lab, and what is there stays."""
    for run, shifts in SHIFTS.items():
        stopped = kept / f"{run}_stopped"
        before = (stopped / "episodes.jsonl").read_bytes()
        line = f"run {SETTINGS} {shifts} --shift redirect:2 --out {run}_stopped"
        [(code, said, fault)] = commands(kept, lab, line)
        if run == "former" and lab == "alone":
            assert (code, said) == (2, "")
            assert MISSING in fault
            assert (stopped / "episodes.jsonl").read_bytes() == before
            continue
        assert code == 0, fault
        whole = (kept / run / "episodes.jsonl").read_bytes()
        now = (stopped / "episodes.jsonl").read_bytes()
        assert sorted(map(plain, now.splitlines())) == sorted(map(plain, whole.splitlines()))


def plain(line: bytes) -> str:
    """An episode as text; counts of 0 tokens, which were written once, say nothing."""
    record = json.loads(line)
    record["usage"] = {name: count for name, count in record.get("usage", {}).items() if count}
    return json.dumps(record, sort_keys=True)


@pytest.mark.parametrize("lab", ["beside", "alone"])
def test_finished_runs_with_the_users_own_are_taken_up(kept: Path, lab: str) -> None:
    """No tool is called for it, and no judge asked: its verdicts are kept, and nobody listens."""
    before = {run: (kept / run / "episodes.jsonl").read_bytes() for run in ("own", "judged")}
    [agent] = json.loads((kept / "judged" / "manifest.json").read_text())["agents"]
    judge = f"--judge chat:tiny --judge-url {agent['judge']['judge_base_url']}"
    results = commands(
        kept,
        lab,
        "run --agent oracle --world tasks.yaml --shift semantic_rename --shift redirect --out own",
        "run --agent mumbles:mumbles --world poi --kind listing --tasks 2 --shift redirect "
        f"{judge} --out judged",
    )
    assert [code for code, _, _ in results] == [0, 0], results
    assert {run: (kept / run / "episodes.jsonl").read_bytes() for run in before} == before


@pytest.mark.slow
def test_playing_again_needs_the_lab_for_former_versions_alone(kept: Path) -> None:
    lines = (
        "replay today.zip",
        "recheck today --sample 4",
        "gate --agent always_refuses --plan sealed.json --baseline today --out gated",
        "replay former.zip",
        "recheck former --sample 4",
        "run --agent oracle --suite quick@1 --tasks 1",
        "run --agent oracle --shift semantic_rename@1 --tasks 1",
        "reproduce",
        "artifacts",
    )
    beside, alone = (commands(kept, lab, *lines[:5]) for lab in ("beside", "alone"))
    alone += commands(kept, "alone", *lines[5:])
    assert [code for code, _, _ in beside] == [0, 0, 3, 0, 0], beside
    assert [code for code, _, _ in alone] == [0, 0, 3] + [2] * 6, alone
    for line, (_, _, fault) in zip(lines[3:], alone[3:], strict=True):
        assert MISSING in fault, line
        assert "Traceback" not in fault


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run has been read in this process."""
    monkeypatch.setattr(facts, "known", {})


@pytest.mark.usefixtures("nothing_known")
@pytest.mark.parametrize("name", ["redirect", "redirect@7", "query_typos"])
def test_any_version_that_is_not_here_declares_what_that_of_today_does(name: str) -> None:
    base = split_version(name)[0]
    know_versions({name: 7})
    found, today = find_shift(f"{base}@7"), find_shift(base)
    assert (found.name, found.version) == (f"{base}@7", 7)
    for declared in ("tier", "dimension", "level", "preserves", "order", "imitates"):
        assert getattr(found, declared) == getattr(today, declared)
    assert not has_code(f"{base}@7")
    assert has_code(base)
    assert as_stored(base, 7) == f"{base}@7"
    assert as_stored(base, today.version) == base
    assert "of a newer ToolShift: upgrade" in why_no_code(f"{base}@7")


@pytest.mark.usefixtures("nothing_known")
def test_what_is_here_or_nowhere_is_left_alone() -> None:
    know_versions({"redirect": find_shift("redirect").version, "monday@1f2e3d4c": 1, "no_such": 2})
    know_versions({"semantic_rename": 0, "semantic_rename@1": 1})
    assert not facts.known
