"""How fast a stream is watched and a lock is verified, and what memory that takes.

    python benchmarks/watch_speed.py [--events 200000] [--json FILE]

The stream has calls of 50 tools as the proxy's trace has them, with results. Given are events a
CPU second (reading, parsing and testing), and the memory of Python objects after 20,000 and after
60,000 events. The lock has 1,000 tools, of which one is renamed and ten are described otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from toolshift.drift.events import drift_report
from toolshift.drift.lock import lock_tools
from toolshift.drift.stream import Reader
from toolshift.watch.watch import Watcher

SUBJECTS = ("order", "page", "user", "ticket", "file", "branch", "invoice", "event", "note", "chat")
VERBS = ("find", "get", "list", "create", "delete", "update", "merge", "export", "lock", "count")


def lines(count: int, rng: Random) -> Iterator[bytes]:
    for number in range(count):
        record = {
            "order_ref": f"R-{rng.randrange(9999)}",
            "total": 3.5,
            "lines": [{"sku": "a", "n": 1}],
        }
        answer = {
            "content": [{"type": "text", "text": json.dumps(record)}],
            "structuredContent": record,
        }
        call = {"n": number, "tool": f"tool_{rng.randrange(50)}", "arguments": {"order_ref": "R-1"}}
        rest = {"ok": rng.random() > 0.02, "ms": rng.lognormvariate(3, 0.5), "answers": [answer]}
        yield json.dumps({**call, **rest}).encode()


def stream(count: int) -> dict[str, Any]:
    watcher, reader, rng = Watcher(), Reader(), Random(0)
    spent, alarms, sizes = 0.0, 0, []
    for _ in range(10):
        batch = list(lines(count // 10, rng))
        begun = time.process_time()
        for line in batch:
            for event in reader.read(line):
                alarms += len(watcher.observe(event))
        spent += time.process_time() - begun
    tracemalloc.start()
    watcher, reader = Watcher(), Reader()
    for number, line in enumerate(lines(60_000, rng)):
        for event in reader.read(line):
            watcher.observe(event)
        if number in (19_999, 59_999):
            sizes.append(round(tracemalloc.get_traced_memory()[0] / 1024))
    tracemalloc.stop()
    return {
        "events": count,
        "events_a_cpu_second": round(count / spent),
        "alarms": alarms,
        "kib_after_20000_events": sizes[0],
        "kib_after_60000_events": sizes[1],
    }


def verified(count: int) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"ref": {"type": "string"}, "limit": {"type": "integer"}},
    }
    tools = [
        {
            "name": f"{VERBS[n % 10]}_{SUBJECTS[n // 10 % 10]}_{n // 100}",
            "description": f"{VERBS[n % 10].title()} {SUBJECTS[n // 10 % 10]}s of area {n // 100}.",
            "inputSchema": schema,
        }
        for n in range(count)
    ]
    lock = lock_tools(tools)
    now = [dict(tool) for tool in tools]
    now[0] = {**now[0], "name": "v2_find_order_0"}
    for tool in now[1:11]:
        tool["description"] += " It is quick."
    found = {"tools": count}
    for name, listed in (("same", tools), ("moved", now)):
        begun = time.perf_counter()
        report = drift_report(lock, listed)
        found[f"seconds_{name}"] = round(time.perf_counter() - begun, 3)
        found[f"changes_{name}"] = len(report.events)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    where = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    found = {**where, "stream": stream(given.events), "verify": verified(1000)}
    said = json.dumps(found, indent=1)
    print(said)
    if given.json:
        given.json.write_text(f"{said}\n")


if __name__ == "__main__":
    main()
