"""The tests of `toolshift watch` beside the drift detectors of river, at an equal false-alarm rate.

    pip install river
    python studies/watch/detectors.py [--streams 40] [--nulls 40]

One signal at a time: whether a call failed, and how long it took, from the streams of `measure.py`.
Every detector has one number that says how easily it alarms. It is chosen on null streams of
independent calls, of their own seeds, as the most sensitive value of a grid with at most one false
alarm in 10,000 calls; then false alarms are counted on other null streams, and delays on streams in
which the signal moves at call 3,000. `ours, as shipped` is not tuned: its rate is stated. What is
counted is an alarm of any direction, for most of these detectors look for changes of both. KSWIN is
left out: it took 780 us a value, ours 3 us and ADWIN half a microsecond.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Protocol

from measure import AFTER, BEFORE, NULL, PLANTED, events
from river import drift
from river.drift import binary

from toolshift.drift.stream import Called
from toolshift.watch.sequential import LatencyMonitor, RateMonitor
from toolshift.watch.watch import EVERY, LEARN

HERE = Path(__file__).parent
FILE = HERE / "detectors.json"
START, END = "<!-- detectors -->", "<!-- end of detectors -->"
AIM = 1.0
"""False alarms in 10,000 calls that a detector may raise while it is chosen."""


class Detector(Protocol):
    """What takes one value after another, and says whether it sees a change."""

    def add(self, value: float) -> bool:
        """Whether it alarms at this value."""
        ...


class River:
    """A detector of river."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def add(self, value: float) -> bool:
        """Whether it alarms at this value."""
        self.inner.update(value)
        return bool(self.inner.drift_detected)


class Errors:
    """The test of `toolshift watch` for failed calls."""

    def __init__(self, run_length: float) -> None:
        self.inner = RateMonitor(LEARN, run_length)

    def add(self, value: float) -> bool:
        """Whether it alarms at this value."""
        return self.inner.add(bool(value)) is not None


class Latency:
    """The test of `toolshift watch` for slow calls."""

    def __init__(self, run_length: float) -> None:
        self.inner = LatencyMonitor(LEARN, run_length)

    def add(self, value: float) -> bool:
        """Whether it alarms at this value."""
        return self.inner.add(math.exp(value)) is not None


Make = Callable[[float], Detector]
POWERS = [10.0**-power for power in range(1, 13)]
RUNS = [10.0 ** (power / 2) for power in range(3, 11)]
ON_ERRORS: dict[str, tuple[Make, list[float]]] = {
    "ours": (Errors, RUNS),
    "ADWIN": (lambda x: River(drift.ADWIN(delta=x)), POWERS),
    "PageHinkley": (
        lambda x: River(drift.PageHinkley(min_instances=LEARN, threshold=x, mode="up")),
        [5, 7, 10, 14, 20, 28, 40, 56, 80, 112],
    ),
    "DDM": (
        lambda x: River(binary.DDM(warm_start=LEARN, drift_threshold=x)),
        [2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10],
    ),
    "HDDMA": (lambda x: River(binary.HDDMA(drift_confidence=x)), POWERS),
    "HDDMW": (lambda x: River(binary.HDDMW(drift_confidence=x)), POWERS),
}
ON_LATENCY: dict[str, tuple[Make, list[float]]] = {
    "ours": (Latency, RUNS),
    "ADWIN": (lambda x: River(drift.ADWIN(delta=x)), POWERS),
    "PageHinkley": (
        lambda x: River(drift.PageHinkley(min_instances=LEARN, threshold=x, mode="up")),
        [10, 14, 20, 28, 40, 56, 80, 112, 160, 224],
    ),
}
SIGNALS = {"errors_up": ON_ERRORS, "latency_up": ON_LATENCY}
"""Latency is the logarithm of milliseconds, for the detectors of river as for ours."""


def signal(kind: str, rng: Random, count: int, **moved: Any) -> list[float]:
    """The values of a stream."""
    calls = [event for event in events(rng, count, **moved) if isinstance(event, Called)]
    if kind == "errors_up":
        return [float(not call.ok) for call in calls]
    return [math.log(call.ms or 1.0) for call in calls]


def alarms(detector: Detector, values: list[float]) -> list[int]:
    """After how many values it alarmed."""
    return [number + 1 for number, value in enumerate(values) if detector.add(value)]


def rate(make: Callable[[], Detector], streams: list[list[float]]) -> float:
    """False alarms in 10,000 calls."""
    found = sum(len(alarms(make(), values)) for values in streams)
    return 1e4 * found / sum(map(len, streams))


def chosen(make: Make, grid: list[float], streams: list[list[float]]) -> tuple[float, float]:
    """The most sensitive value with at most the aimed rate, and its rate; grids rise in caution."""
    found = math.nan
    for value in grid:
        found = rate(lambda value=value: make(value), streams)  # type: ignore[misc]
        if found <= AIM:
            return value, found
    return grid[-1], found


def delays(make: Callable[[], Detector], kind: str, level: int, streams: int) -> dict[str, Any]:
    """How soon a planted change is told."""
    known = []
    for number in range(streams):
        rng = Random(f"detectors-{kind}-{level}-{number}")
        detector = make()
        alarms(detector, signal(kind, rng, BEFORE))
        known += alarms(detector, signal(kind, rng, AFTER, **PLANTED[kind][level]))[:1]
    return {
        "streams": streams,
        "detected": len(known),
        "delay_median": median(known) if known else None,
    }


def measured(streams: int, nulls: int) -> list[dict[str, Any]]:
    """Every detector on every signal."""
    rows = []
    for kind, detectors in SIGNALS.items():
        tuning, fresh, runs = (
            [signal(kind, Random(f"{use}-{number}"), NULL, **more) for number in range(nulls)]
            for use, more in (("tune", {}), ("fresh", {}), ("runs", {"bursts": 10.0}))
        )
        shipped: dict[str, tuple[Make, list[float]]] = {
            "ours, as shipped": (detectors["ours"][0], [6.0 * EVERY]),
            "ours, --every 10000": (detectors["ours"][0], [6.0 * 10_000]),
        }
        for name, (make, grid) in {**detectors, **shipped}.items():
            begun = time.process_time()
            value, tuned = chosen(make, grid, tuning)

            def fitted(make: Make = make, value: float = value) -> Detector:
                return make(value)

            rows.append(
                {
                    "signal": kind,
                    "detector": name,
                    "value": value,
                    "tuned": round(tuned, 3),
                    "false_alarms": round(rate(fitted, fresh), 3),
                    "false_alarms_in_runs": round(rate(fitted, runs), 3),
                    "delays": [delays(fitted, kind, level, streams) for level in range(3)],
                    "cpu_seconds": round(time.process_time() - begun, 1),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def tables(found: dict[str, Any]) -> str:
    """The tables of the page."""
    lines = []
    for kind in SIGNALS:
        moved = [next(iter(each.values())) for each in PLANTED[kind]]
        said = [f"{each:.0%}" if kind == "errors_up" else f"{each:g} times" for each in moved]
        lines += [
            f"### {kind}",
            "",
            f"| detector | its number | false alarms | in runs of ten | {' | '.join(said)} |",
            "|---" * 7 + "|",
        ]
        for row in found["rows"]:
            if row["signal"] != kind:
                continue
            cells = [
                f"{each['delay_median']:g} ({each['detected']} of {each['streams']})"
                if each["detected"]
                else f"none of {each['streams']}"
                for each in row["delays"]
            ]
            lines.append(
                f"| {row['detector']} | {row['value']:g} | {row['false_alarms']:.2f} "
                f"| {row['false_alarms_in_runs']:.2f} | {' | '.join(cells)} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--nulls", type=int, default=40)
    parser.add_argument("--pages", action="store_true", help="only the tables again")
    given = parser.parse_args()
    if given.pages:
        found = json.loads(FILE.read_text())
    else:
        begun = time.process_time()
        rows = measured(given.streams, given.nulls)
        found = {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "river": version("river"),
            "nulls": given.nulls,
            "cpu_seconds": round(time.process_time() - begun),
            "rows": rows,
        }
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    if START in text:
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{tables(found)}\n{text[after:]}", encoding="utf-8")
    print(tables(found))


if __name__ == "__main__":
    main()
