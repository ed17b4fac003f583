"""`toolshift watch` over files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from running import Run
from watch.receiver import receiving


def rows(rng: Random, count: int, errors: float) -> list[dict[str, object]]:
    return [
        {"n": n, "tool": "get", "arguments": {}, "ok": rng.random() >= errors, "ms": 1.0}
        for n in range(count)
    ]


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_exit_codes_and_lines(toolshift: Run, tmp_path: Path) -> None:
    rng = Random(0)
    calm = rows(rng, 600, 0.01)
    write(tmp_path / "calm.jsonl", calm)
    code, said, told = toolshift("watch", "calm.jsonl")
    assert (code, said) == (0, "")
    assert "600 events, 600 calls of 1 tools, 0 endings: 0 alarms." in told
    write(tmp_path / "moved.jsonl", [*calm, *rows(rng, 100, 0.4)])
    code, said, _ = toolshift("watch", "moved.jsonl", "--json")
    assert code == 1
    first = json.loads(said.splitlines()[0])
    assert (first["kind"], first["tool"]) == ("errors_up", "get")
    write(tmp_path / "later.jsonl", rows(rng, 100, 0.4))
    code, said, _ = toolshift("watch", "later.jsonl", "--baseline", "calm.jsonl")
    assert (code, "calls that fail" in said) == (1, True)


def test_what_cannot_be_watched_is_said(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("nothing\n")
    assert toolshift("watch", "bad.jsonl")[0] == 2
    assert toolshift("watch", "gone.jsonl")[0] == 2
    assert toolshift("watch", "bad.jsonl", "--learn", "1")[0] == 2


def test_alarms_are_posted_without_secrets_and_a_dead_server_stops_nothing(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(0)
    write(tmp_path / "moved.jsonl", [*rows(rng, 600, 0.01), *rows(rng, 100, 0.4)])
    monkeypatch.setenv("HOOK_TOKEN", "abcdef123456")
    with receiving() as server:
        monkeypatch.setenv("HOOK_URL", server.url)
        words = ("watch", "moved.jsonl", "--webhook", "$HOOK_URL")
        code, _, said = toolshift(*words, "--webhook-header", "Authorization: Bearer $HOOK_TOKEN")
        assert code == 1
        assert server.bodies[0]["alarm"]["kind"] == "errors_up"
        assert server.bodies[0]["text"].startswith("toolshift watch, moved.jsonl: errors_up: get:")
        assert server.headers_seen[0]["authorization"] == "Bearer abcdef123456"
        server.statuses[:] = [404] * 20
        code, told, said = toolshift(*words)
        assert (code, "calls that fail" in told) == (1, True)
        assert "messages did not reach http://127.0.0.1 (HTTP 404)" in said
        assert "SECRET" not in said + told
    monkeypatch.delenv("HOOK_URL")
    code, _, said = toolshift(*words)
    assert (code, "has no HOOK_URL" in said) == (2, True)


def test_metrics_are_answered_while_the_watch_runs(toolshift: Run, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    write(tmp_path / "calm.jsonl", rows(Random(0), 300, 0.01))
    code, _, said = toolshift("watch", "calm.jsonl", "--metrics-port", "0")
    assert code == 0
    assert "Metrics: http://127.0.0.1:" in said


def test_a_baseline_does_not_hide_drift_from_the_lock(toolshift: Run, tmp_path: Path) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("get", "put")]
    write(tmp_path / "old.jsonl", [{"listed": tools[:1]}])
    assert toolshift("lock", "old.jsonl", "--out", "old.lock")[0] == 0
    call = {"tool": "odd", "arguments": {}, "ok": True}
    write(tmp_path / "new.jsonl", [{"listed": tools}, call, {"listed": tools}, call])
    code, alone, _ = toolshift("watch", "new.jsonl", "--lock", "old.lock")
    assert (code, len(alone.splitlines())) == (1, 2)
    words = ("watch", "new.jsonl", "--baseline", "new.jsonl")
    code, said, _ = toolshift(*words, "--lock", "old.lock")
    kinds = [line.split()[2:] for line in said.splitlines()]
    assert (code, kinds) == (1, [line.split()[2:] for line in alone.splitlines()])
    assert toolshift(*words)[0] == 0  # without a lock the baseline says what was well


def failing(count: int) -> list[dict[str, object]]:
    return [{"tool": "get", "arguments": {}, "ok": False, "ms": 1.0} for _ in range(count)]


def test_a_tool_that_always_fails_is_told_within_twenty_calls_without_a_baseline(
    toolshift: Run, tmp_path: Path
) -> None:
    write(tmp_path / "out.jsonl", failing(19))
    code, said, told = toolshift("watch", "out.jsonl")
    assert code == 1
    assert "calls that fail: 16 of the last 16 calls, at most 30.0% in any case" in said
    assert "At the end, every call of these tools fails: get." in told
    write(tmp_path / "few.jsonl", failing(10))  # too few for an alarm
    code, said, _ = toolshift("watch", "few.jsonl", "--json")
    assert (code, said) == (1, '{"out":["get"]}\n')
    write(tmp_path / "fewer.jsonl", failing(9))
    code, said, told = toolshift("watch", "fewer.jsonl")
    assert (code, said) == (0, "")
    assert "Every call of these tools failed, but there were only few: get (9)." in told
    write(tmp_path / "some.jsonl", rows(Random(3), 250, 0.7))  # a norm that is none
    code, said, _ = toolshift("watch", "some.jsonl")
    assert (code, said.count("calls that fail")) == (1, 1)
    code, said, _ = toolshift("watch", "some.jsonl", "--baseline", "some.jsonl")
    assert (code, said) == (0, "")  # a baseline says that it is a norm


def test_a_baseline_with_runs_of_failures_allows_longer_ones(
    toolshift: Run, tmp_path: Path
) -> None:
    calm = [*rows(Random(0), 100, 0.0), *failing(10)]
    write(tmp_path / "calm.jsonl", calm * 4 + rows(Random(1), 20, 0.0))
    write(tmp_path / "run.jsonl", [*rows(Random(2), 50, 0.0), *failing(18)])
    assert toolshift("watch", "run.jsonl")[0] == 1
    assert toolshift("watch", "run.jsonl", "--baseline", "calm.jsonl")[0] == 0


def test_what_was_learned_and_told_is_kept_over_restarts(toolshift: Run, tmp_path: Path) -> None:
    stream, words = tmp_path / "s.jsonl", ("watch", "s.jsonl", "--state", "kept.json")
    rng = Random(0)
    first = [{"listed": [{"name": "get", "inputSchema": {"type": "object"}}]}]
    write(stream, [*first, *rows(rng, 300, 0.01)])
    assert toolshift(*words)[0] == 0
    code, _, told = toolshift(*words)
    assert (code, "nothing was added since kept.json was saved" in told) == (2, True)
    with stream.open("a") as file:
        file.write("".join(f"{json.dumps(row)}\n" for row in failing(20)))
        file.write('{"tool": "ge')  # still being written
    code, said, told = toolshift(*words)
    assert (code, said.count("\n")) == (1, 1)
    assert "at most" in said
    assert "when learned (" in said
    assert "not understood" not in told
    with stream.open("a") as file:
        file.write('t", "arguments": {}, "ok": false}\n')
    code, said, told = toolshift(*words)
    assert (code, said) == (1, "")  # told already, and it goes on
    assert "322 events" in told
    assert "At the end, every call" in told
    write(stream, [*first, *rows(rng, 5, 0.0)])  # another file under the name
    code, _, told = toolshift(*words)
    assert (code, "328 events" in told) == (0, True)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is damaged"),
        ("{}", "is damaged"),
        ('{"format": 9, "options": {}, "place": null, "spans": [false, false], "watcher": 1}',
         "has format 9"),
        ('{"format": 1, "options": {}, "place": null, "spans": [false, false], '
         '"watcher": {"os.system": "x"}}', "is damaged"),
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_taken_up_is_refused_and_kept(
    toolshift: Run, tmp_path: Path, content: str, why: str
) -> None:
    write(tmp_path / "s.jsonl", rows(Random(0), 30, 0.0))
    (tmp_path / "kept.json").write_text(content)
    code, _, told = toolshift("watch", "s.jsonl", "--state", "kept.json")
    assert (code, why in told) == (2, True)
    assert (tmp_path / "kept.json").read_text() == content


def test_a_state_goes_on_under_the_same_options_only(toolshift: Run, tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", rows(Random(0), 30, 0.0))
    assert toolshift("watch", "s.jsonl", "--state", "kept.json")[0] == 0
    code, _, told = toolshift("watch", "s.jsonl", "--state", "kept.json", "--every", "9")
    assert (code, "was saved with another every" in told) == (2, True)


@pytest.mark.parametrize(
    ("sent", "code"), [(failing(16), 1), (rows(Random(0), 5, 0.0), 0), ([], 2)]
)
def test_sigterm_ends_the_watch_like_the_end_of_the_stream(
    tmp_path: Path, sent: list[dict[str, object]], code: int
) -> None:
    words = [sys.executable, "-m", "toolshift", "watch", "-", "--state", "kept.json"]
    reader, writer = os.pipe()
    with subprocess.Popen(
        words, cwd=tmp_path, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.write(writer, "".join(f"{json.dumps(row)}\n" for row in sent).encode())
        kept = tmp_path / "kept.json"
        if code == 1:  # the alarm says that all was read
            assert process.stdout is not None
            assert "calls that fail" in process.stdout.readline()
        else:
            deadline = time.monotonic() + 60
            while not _follows(process.pid) and time.monotonic() < deadline:
                time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
        os.close(writer)
        os.close(reader)
    assert process.returncode == code, told
    assert kept.exists()
    assert f"{len(sent)} events" in told or "nothing was read" in told


def _follows(pid: int) -> bool:
    """Whether the process waits for more of the pipe: it sleeps in a read."""
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text()
