"""`toolshift watch` over files."""

from __future__ import annotations

import json
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
