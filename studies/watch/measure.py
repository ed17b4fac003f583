"""How soon a watched stream tells what moved, how often it is wrong, and by which name it tells.

    python studies/watch/measure.py [--streams 100] [--nulls 300] [--rows FILE]

Streams are simulated: calls of one tool (2% fail, log-normal times, three forms of results), an
ending after every fourth (5% refused), of which the user asked about one of three topics, with
words and a form of arguments of its own; a list of tools at the start and where it changes.
`Watcher(every=10_000)` learns from 200 observations. In a stream with drift one thing moves at call
3,000; looked at are 5,000 calls more. Null streams of 10,000 calls move nothing; in the bursty ones
errors, slow calls, refusals and topics come in runs (of that mean length, at the same rates).
What is slow in a run is so only on the whole, for each time is drawn. `delay_90` is the 90%
quantile of the calls up to the alarm, of the streams with one. Each row is kept as it comes: the
same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from toolshift.adapt.stream import Called, Ended, Event, Shown
from toolshift.adapt.watch import Alarm, Watcher

HERE = Path(__file__).parent
EVERY, BEFORE, AFTER, NULL = 10_000, 3_000, 5_000, 10_000
TOOL = {
    "name": "get_order",
    "description": "Get one order.",
    "inputSchema": {
        "type": "object",
        "properties": {"ref": {"type": "string"}},
        "required": ["ref"],
    },
}
FORMS: list[Any] = [{"ref": "a", "total": 1}, {"ref": "a", "total": 1, "note": "n"}, {"ref": "a"}]
MOVED = {"order": {"ref": "a", "total": 1}}
TOPICS = (0.6, 0.3, 0.1, 0.0)
"""How often each topic is asked about; the last one is new."""
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"ref": "a"},
    {"ref": "a", "fields": ["total"]},
    {"ref": "a", "at": "2026-01-01"},
    {"ref": "a"},
)
WORDS = ("order delivery late", "invoice total price", "address change street", "phone contract")
COMMON = ("please", "could", "tell", "about", "today", "account", "thanks", "number", "want")
PLANTED: dict[str, list[dict[str, Any]]] = {
    "errors_up": [{"errors": 0.06}, {"errors": 0.15}, {"errors": 0.4}],
    "latency_up": [{"slower": 1.25}, {"slower": 1.5}, {"slower": 2.5}],
    "result_format": [{"moved": 0.05}, {"moved": 0.3}, {"moved": 1.0}],
    "refusals_up": [{"refused": 0.15}, {"refused": 0.3}, {"refused": 0.6}],
    "query_mix": [
        {"topics": (0.4, 0.4, 0.2, 0.0)},
        {"topics": (0.2, 0.4, 0.4, 0.0)},
        {"topics": (0.3, 0.15, 0.05, 0.5)},
    ],
    "tools_changed": [
        {"tool": {**TOOL, "description": "Get one order of a customer."}},
        {"tool": {**TOOL, "inputSchema": {**TOOL["inputSchema"], "required": []}}},
        {"tool": {**TOOL, "name": "fetch_order"}},
    ],
}
"""What is planted, by type, at three severities."""


def events(
    rng: Random,
    count: int,
    errors: float = 0.02,
    slower: float = 1.0,
    moved: float = 0.0,
    refused: float = 0.05,
    tool: dict[str, Any] = TOOL,
    topics: tuple[float, ...] = TOPICS,
    bursts: float = 1.0,
) -> Iterator[Event]:
    """A stream; `bursts` is the mean length of a run of bad calls, at the same rate of them."""
    yield Shown([tool])
    bad = slow = refuses = False
    topic = 0
    for number in range(count):
        if number % 4 == 0 and rng.random() < 1 / bursts:
            topic = rng.choices(range(len(topics)), topics)[0]
        bad = _next(rng, bad, errors, bursts)
        slow = _next(rng, slow, 0.1, bursts)
        form = MOVED if rng.random() < moved else FORMS[int(rng.random() ** 2 * 3)]
        ms = slower * rng.lognormvariate(3, 0.5) * (2 if slow and bursts > 1 else 1)
        yield Called(str(tool["name"]), ARGUMENTS[topic], not bad, ms, form)
        if number % 4 == 3:
            refuses = _next(rng, refuses, refused, bursts)
            words = [*WORDS[topic].split()[: rng.randint(1, 3)], *rng.sample(COMMON, 4)]
            yield Ended(refuses, " ".join(words))


def _next(rng: Random, now: bool, rate: float, bursts: float) -> bool:
    """The next of a chain whose runs of True have this mean length and whose rate is `rate`."""
    if bursts <= 1:
        return rng.random() < rate
    leave = 1 / bursts
    return rng.random() >= leave if now else rng.random() < leave * rate / (1 - rate)


def watched(watcher: Watcher, stream: Iterator[Event]) -> list[tuple[int, Alarm]]:
    """Each alarm with the number of calls in this stream before it."""
    found, calls = [], 0
    for event in stream:
        calls += isinstance(event, Called)
        found += [(calls, alarm) for alarm in watcher.observe(event)]
    return found


def planted(kind: str, level: int, streams: int) -> dict[str, Any]:
    delays, told, early = [], Counter(), 0
    for number in range(streams):
        rng = Random(f"{kind}-{level}-{number}")
        watcher = Watcher(EVERY)
        early += len(watched(watcher, events(rng, BEFORE)))
        found = watched(watcher, events(rng, AFTER, **PLANTED[kind][level]))
        told.update({alarm.kind for _, alarm in found})
        right = [calls for calls, alarm in found if alarm.kind == kind]
        delays.append(right[0] if right else None)
    known = sorted(each for each in delays if each is not None)
    return {
        "kind": kind,
        "severity": level + 1,
        "streams": streams,
        "detected": len(known),
        "delay_median": median(known) if known else None,
        "delay_90": known[ceil(0.9 * len(known)) - 1] if known else None,
        "told_as": dict(told),
        "alarms_before": early,
    }


def null(streams: int, bursts: float) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    for number in range(streams):
        stream = events(Random(f"null-{bursts}-{number}"), NULL, bursts=bursts)
        kinds.update(alarm.kind for _, alarm in watched(Watcher(EVERY), stream))
    calls = streams * NULL
    return {
        "bursts": bursts,
        "calls": calls,
        "stated_per_10000_events": 1.0,
        "false_alarms": sum(kinds.values()),
        "per_10000_calls": round(1e4 * sum(kinds.values()) / calls, 4),
        "kinds": dict(kinds),
    }


class Kept:
    """Rows in a file of lines: what is there is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self.rows.update(json.loads(line))

    def row(self, measured: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
        key = " ".join(map(str, (measured.__name__, *given)))
        if key not in self.rows:
            begun = time.process_time()
            row = measured(*given)
            self.rows[key] = {**row, "cpu_seconds": time.process_time() - begun}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as out:
                out.write(json.dumps({key: self.rows[key]}) + "\n")
        print(json.dumps(self.rows[key]), flush=True)
        return dict(self.rows[key])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--nulls", type=int, default=300)
    parser.add_argument("--rows", type=Path, default=Path("build/watch-study.jsonl"))
    given = parser.parse_args()
    kept = Kept(given.rows)
    rows = [kept.row(planted, kind, level, given.streams) for kind in PLANTED for level in range(3)]
    few = given.nulls // 2
    nulls = [kept.row(null, *each) for each in ((given.nulls, 1), (few, 5), (few, 10), (few, 20))]
    where = {"machine": platform.machine(), "python": platform.python_version()}
    spent = round(sum(row.pop("cpu_seconds") for row in (*rows, *nulls)))
    found = {**where, "cpu_seconds": spent, "every": EVERY, "planted": rows, "nulls": nulls}
    (HERE / "results.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
