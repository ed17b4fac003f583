"""How soon a watched stream tells what moved, how often it is wrong, and by which name it tells.

    python studies/watch/measure.py [--streams 60] [--nulls 150] [--rows FILE]
    python studies/watch/measure.py --pages       # the tables of README.md again

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

from scipy.stats import chi2

from toolshift.drift.stream import Called, Ended, Event, Shown
from toolshift.measure.statistics import wilson
from toolshift.watch.watch import Alarm, Watcher

HERE = Path(__file__).parent
START, END = "<!-- tables -->", "<!-- end of tables -->"
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


# -- the page --------------------------------------------------------------------------------------

MOVES = {
    "errors_up": ("2% to 6% fail", "15%", "40%"),
    "latency_up": ("1.25 times as slow", "1.5", "2.5"),
    "result_format": ("5% of another form", "30%", "all"),
    "refusals_up": ("5% to 15% refused", "30%", "60%"),
    "query_mix": (
        "topics 60/30/10% to 40/40/20%",
        "to 20/40/40%",
        "half ask about a new topic, in known forms",
    ),
    "tools_changed": ("description", "required to optional", "renamed"),
}
"""What `PLANTED` does, in words."""


def in_percent(hits: int, count: int) -> str:
    """A share with its Wilson interval at 95%, in percent."""
    found = wilson(hits, count)
    return f"{100 * found.estimate:.0f} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def per_10000(hits: int, calls: int) -> str:
    """A count by calls, with the exact interval of Poisson at 95% (Garwood 1936)."""
    low = chi2.ppf(0.025, 2 * hits) / 2 if hits else 0.0
    high = chi2.ppf(0.975, 2 * hits + 2) / 2
    return " ".join(
        [f"{1e4 * hits / calls:.2f}", f"[{1e4 * low / calls:.2f}, {1e4 * high / calls:.2f}]"]
    )


def tables(found: dict[str, Any]) -> list[str]:
    """The tables of the page."""
    lines = [
        "| type | what moves | detected | %, 95% interval | delay, median | delay, 90% | before |",
        "|---" * 7 + "|",
    ]
    for row in found["planted"]:
        hits, count = row["detected"], row["streams"]
        delays = [f"{row[key]:g}" if hits else "" for key in ("delay_median", "delay_90")]
        lines.append(
            f"| {row['kind']} | {MOVES[row['kind']][row['severity'] - 1]} | {hits} of {count} "
            f"| {in_percent(hits, count)} | {' | '.join(delays)} | {row['alarms_before']} |"
        )
    lines += ["", "Streams with an alarm of a type, in percent, by what was planted:", ""]
    lines += [f"| planted | streams | {' | '.join(PLANTED)} |", "|---" * (len(PLANTED) + 2) + "|"]
    for kind in PLANTED:
        rows = [row for row in found["planted"] if row["kind"] == kind]
        count = sum(row["streams"] for row in rows)
        told = sum((Counter(row["told_as"]) for row in rows), Counter())
        cells = [in_percent(told[each], count) if told[each] else "0" for each in PLANTED]
        lines.append(f"| {kind} | {count} | {' | '.join(cells)} |")
    lines += [
        "",
        "| nothing moves | calls | of rates | per 10,000 calls | of the mix | per 10,000 calls |",
        "|---" * 6 + "|",
    ]
    before = sum(row["alarms_before"] for row in found["planted"])
    calls = BEFORE * sum(row["streams"] for row in found["planted"])
    counted = [("before the change, above", calls, before, None)]
    for row in found["nulls"]:
        runs = f"in runs of {row['bursts']} on average" if row["bursts"] > 1 else "independent"
        mixed = row["kinds"].get("query_mix", 0)
        counted.append((runs, row["calls"], row["false_alarms"] - mixed, mixed))
    for name, calls, rates, mixed in counted:
        cells = [str(rates), per_10000(rates, calls)]
        cells += ["", ""] if mixed is None else [str(mixed), per_10000(mixed, calls)]
        lines.append(f"| {name} | {calls:,} | {' | '.join(cells)} |")
    return lines


def write_page(found: dict[str, Any]) -> None:
    """Writes the tables into the page."""
    said = "\n".join(tables(found))
    page = HERE / "README.md"
    text = page.read_text()
    before, after = text.index(START) + len(START), text.index(END)
    page.write_text(f"{text[:before]}\n\n{said}\n\n{text[after:]}")
    print(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--nulls", type=int, default=150)
    parser.add_argument("--rows", type=Path, default=Path("build/watch-study.jsonl"))
    parser.add_argument("--pages", action="store_true")
    given = parser.parse_args()
    if not given.pages:
        measure(given.streams, given.nulls, given.rows)
    write_page(json.loads((HERE / "results.json").read_text()))


def measure(streams: int, count: int, file: Path) -> None:
    """Measures what the file of rows has not yet, and keeps all of it."""
    kept = Kept(file)
    rows = [kept.row(planted, kind, level, streams) for kind in PLANTED for level in range(3)]
    few = count // 2
    nulls = [kept.row(null, *each) for each in ((count, 1), (few, 5), (few, 10), (few, 20))]
    where = {"machine": platform.machine(), "python": platform.python_version()}
    spent = round(sum(row.pop("cpu_seconds") for row in (*rows, *nulls)))
    found = {**where, "cpu_seconds": spent, "every": EVERY, "planted": rows, "nulls": nulls}
    (HERE / "results.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
