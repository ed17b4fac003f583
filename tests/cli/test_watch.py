"""`toolshift watch` over files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from running import Run


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
