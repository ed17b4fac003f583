"""A world that changes three times: an agent alone, in the layer, retrained, and with both.

    python studies/adapt/stream.py --scripted
    python studies/adapt/stream.py --model FOLDER     # of `toolshift retrain`, with its runs
    python studies/adapt/stream.py --whole 4          # smol:static through all changes
    python studies/adapt/stream.py --pages            # tables and picture again

Tasks of `poi` follow one another, four kinds in turn. The tools are those of version 1, then of
version 2, then of version 3 (`studies/retrain/releases.py`), and at last calls of version 3 are
throttled too, so that each needs a second try. `toolshift.watch.watch` reads each arm's own stream
and decides when something is told. Its rates are learned from clean tasks of the scripted agent.

alone     the agent that knows version 1
adapt     the same agent in the layer, with the lock of version 1
retrain   `LAG` tasks after an alarm says that the tools have changed, the agent that was retrained
          for them takes over
both      as `retrain`, in the layer; the lock is of the tools that the agent was trained for

The scripted agent is `reader` (`agents.py`); what takes over knows the tools of the new version
perfectly, so its arms `retrain` and `both` say what an ideal training would win. The model is
`smol:static`, and what takes over is what `toolshift retrain` has made. Its stream has one change,
to version 2: the tasks that the retraining measured, with the old tools and then with the new ones.
With `--whole` this model plays all four phases, alone and in the layer; nothing is retrained.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agents import ByHeart, memory_of
from released import release_files
from toolshift_lab.plots import slim

from toolshift.adapt.layer import ASKING, REWRITING, adapt
from toolshift.agents.catalog import make_agent
from toolshift.core.files import pack
from toolshift.core.message import Usage
from toolshift.core.scene import Applied, Scene
from toolshift.core.step import Step
from toolshift.core.terminal import progress
from toolshift.drift.lock import lock_shown
from toolshift.drift.stream import Called, Ended, Event, Shown
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.measure.statistics import wilson
from toolshift.runs.cell import build
from toolshift.runs.run_folder import RunFolder
from toolshift.shifts.registry import compose, find_shift
from toolshift.watch.watch import Watcher
from toolshift.worlds.registry import find_world

HERE = Path(__file__).parent
FILE, PICTURE = HERE / "stream.json.gz", HERE / "stream.svg"
START, END = "<!-- stream -->", "<!-- end of stream -->"
KINDS = ("listing", "hours", "route", "visit")
PHASES = (
    "version 1",
    "version 2: other names",
    "version 3: other names and words",
    "and throttled",
)
ARMS = ("alone", "adapt", "retrain", "both")
SHOWN = "adapt, as known"
MEASURED = (*REWRITING, *ASKING)
"""The parts of the layer."""
MODEL_ARMS = ("alone", "adapt", SHOWN, "retrain")
WHOLE_ARMS = ("alone", SHOWN)
WHOLE = "smol:static, all changes"
NOT_PLAYED = "-"
VERSIONS = ("v1", "v2", "v3", "v3")
LAG, LEARNED, SEED = 4, 400, 7
Row = dict[str, Any]


class Stream:
    """The tasks of a stream.

    Args:
        releases: version 2 and 3 as the names of shifts.
        each: tasks in each phase.
        seed: of the entities.
    """

    def __init__(self, releases: dict[str, str], each: int, seed: int) -> None:
        self.each, self.seed, self.world = each, seed, find_world("poi")
        two, three = (Applied(releases[version], 1) for version in ("v2", "v3"))
        throttled = Applied("transient_error", 1)
        self.stacks = ((), (two,), (three,), (three, throttled))
        self.known = {"v1": (), "v2": (two,), "v3": (three,)}

    def __len__(self) -> int:
        return self.each * len(self.stacks)

    def clean(self, number: int) -> Scene:
        """A task before anything moved; those of negative numbers came before the stream."""
        kind, index = KINDS[number % len(KINDS)], (number + LEARNED) // len(KINDS)
        return make_scene(self.world, kind, index, seed=self.seed)

    def scene(self, number: int) -> Scene:
        """The task as it is met; a change is the same for all tasks."""
        stack = self.stacks[max(number, 0) // self.each]
        return compose(self.clean(number), stack, draw=f"stream-{self.seed}")

    def as_known(self, number: int, version: str) -> Scene:
        """The task with the tools of a version."""
        return compose(self.clean(number), self.known[version])


def reader(scene: Scene) -> ByHeart:
    """The scripted agent that knows a task with the tools of this scene."""
    return ByHeart("reader", memory_of(scene.rehearsal, True))


def events_of(scene: Scene, row: Row) -> list[Event]:
    """What a watcher sees of an episode."""
    called = [Called(name, given, ok, None, result) for name, given, ok, result in row["calls"]]
    ended = Ended(row["refused"], scene.asks[0].text)
    return [Shown(list(lock_shown(scene.tools).documents)), *called, ended]


def result_of(text: str) -> Any:
    """A result as data, where it is JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def row_of(steps: Sequence[Step], found: Grade, usage: Usage) -> Row:
    """What is kept of an episode: whether it was passed, its calls, and the tokens of a model."""
    calls = [
        (step.name, step.given, step.ok, result_of(step.text))
        for step in steps
        if step.kind == "call"
    ]
    tokens = usage.input_tokens + usage.output_tokens
    return {"passed": found.passed, "refused": found.refused, "calls": calls, "tokens": tokens}


def played(agent: Any, scene: Scene) -> Row:
    """One episode."""
    begun = time.process_time()
    episode = Episode(scene)
    converse(agent, episode)
    spent = time.process_time() - begun
    return {**row_of(episode.steps, grade(episode), episode.usage), "seconds": spent}


class Scripted:
    """The rows of the scripted agent: each task is played once for all arms.

    Args:
        stream: of tasks.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.rows: dict[tuple[int, str, bool], Row] = {}

    def row(self, number: int, version: str, arm: str) -> Row:
        """The episode of a task, served by what knows a version, in an arm."""
        layered = arm in ("adapt", "both")
        key = (number, version, layered)
        if key not in self.rows:
            known = self.stream.as_known(number, version)
            agent: Any = reader(known)
            if layered:
                agent = adapt(agent, lock_shown(known.tools), MEASURED, rewrite=True)
            self.rows[key] = played(agent, self.stream.scene(number))
        return self.rows[key]


class Whole:
    """The rows of a model that plays a whole stream; each is kept as it comes.

    Args:
        stream: of tasks.
        file: of the rows, so that a run that was broken off goes on.
    """

    def __init__(self, stream: Stream, file: Path) -> None:
        self.stream, self.file = stream, file
        lines = file.read_text().splitlines() if file.exists() else []
        self.rows = {row["key"]: row for row in map(json.loads, lines)}
        self.agent: Any = None

    def row(self, number: int, version: str, arm: str) -> Row:
        """The episode of a task in an arm. Prompts begin alike, so what is kept of them stays."""
        key = f"{arm}/{self.stream.each}/{number}"
        if key not in self.rows:
            self.agent = self.agent or make_agent("smol:static")
            inner = self.agent
            if arm != "alone":
                known = lock_shown(self.stream.clean(number).tools)
                inner = adapt(self.agent, known, MEASURED, as_known=arm == SHOWN, rewrite=True)
            self.rows[key] = {"key": key, **played(inner, self.stream.scene(number))}
            with self.file.open("a") as out:
                out.write(json.dumps(self.rows[key]) + "\n")
        return self.rows[key]


class Retrained:
    """The stream of a model, and its rows: what `toolshift retrain` measured, and the layer.

    Args:
        folder: of `toolshift retrain`.
        file: keeps what the layer played, so that a run that was broken off goes on.
        limits: how many tasks after the change are played in each arm with the layer.
    """

    def __init__(self, folder: Path, file: Path, limits: dict[str, int]) -> None:
        find_shift(str(folder / "release.json"))
        runs = {"v1": RunFolder.read(folder / "before"), "v2": RunFolder.read(folder / "after")}
        cells = runs["v1"].plan.cells
        self.cells = sorted(cells, key=lambda cell: bool(cell.shifts))
        self.each = sum(not cell.shifts for cell in cells)
        self.records = {
            (version, record.cell): record
            for version, run in runs.items()
            for record in run.records()
        }
        self.file, self.limits = file, limits
        lines = file.read_text().splitlines() if file.exists() else []
        self.rows = {row["key"]: row for row in map(json.loads, lines)}
        self.agent: Any = None

    def __len__(self) -> int:
        return len(self.cells)

    def scene(self, number: int) -> Scene:
        """The task as it is met."""
        return build(self.cells[number])

    def row(self, number: int, version: str, arm: str) -> Row | None:
        """The episode of a task, served by what knows a version, in an arm; None for none."""
        cell = self.cells[number]
        if arm not in self.limits:
            record = self.records[version, cell.id]
            return row_of(record.steps, record.grade, record.usage)
        key = f"{arm}/{cell.id}"
        if not 0 <= number - self.each < self.limits[arm]:
            return None
        if key not in self.rows:
            self.agent = self.agent or make_agent("smol:static")
            scene = self.scene(number)
            lock = lock_shown(scene.clean.tools)
            agent = adapt(self.agent, lock, MEASURED, as_known=arm == SHOWN, rewrite=True)
            row = played(agent, scene)
            self.agent.release()
            self.rows[key] = {"key": key, **row}
            with self.file.open("a") as out:
                out.write(json.dumps(self.rows[key]) + "\n")
        return self.rows[key]


def learned(releases: dict[str, str], seed: int) -> Watcher:
    """A watcher that has seen clean tasks of the scripted agent."""
    watcher, stream = Watcher(every=10_000), Stream(releases, 1, seed)
    for number in range(-LEARNED, 0):
        scene = stream.clean(number)
        for event in events_of(scene, played(reader(scene), scene)):
            watcher.observe(event)
    return watcher


def arm(stream: Any, rows: Any, name: str, watcher: Watcher) -> dict[str, Any]:
    """Plays a stream in one arm; its watcher decides when a retraining starts.

    Args:
        stream: of tasks.
        rows: the episodes of whoever serves.
        name: of the arm.
        watcher: that has learned what is usual.
    """
    version, due = "v1", dict[int, str]()
    found: dict[str, Any] = {"passed": "", "alarms": [], "served": {}}
    spent: Counter[str] = Counter()
    with progress(name) as watch:
        for number in range(len(stream)):
            if number in due:
                version = due[number]
                found["served"][number] = version
            row = rows.row(number, version, name)
            if row is None:
                found["passed"] += NOT_PLAYED
                continue
            kinds: Counter[str] = Counter()
            for event in events_of(stream.scene(number), row):
                kinds.update(alarm.kind for alarm in watcher.observe(event))
            found["alarms"] += [[number, kind, count] for kind, count in sorted(kinds.items())]
            if kinds["tools_changed"] and name in ("retrain", "both"):
                due[number + LAG] = VERSIONS[number // stream.each]
            found["passed"] += "01"[row["passed"]]
            spent.update(calls=len(row["calls"]), tokens=row["tokens"])
            spent["ms"] += round(1000 * row.get("seconds", 0))
            watch(number + 1, len(stream))
    return {**found, **spent}


def scripted(releases: dict[str, str], each: int, streams: int) -> dict[str, Any]:
    """The scripted agent in several streams."""
    found = []
    for seed in range(SEED, SEED + streams):
        stream = Stream(releases, each, seed)
        rows = Scripted(stream)
        found.append({name: arm(stream, rows, name, learned(releases, seed)) for name in ARMS})
    return {"each": each, "streams": found}


def model(
    releases: dict[str, str], folder: Path, rows: Path, limits: dict[str, int]
) -> dict[str, Any]:
    """`smol:static`, the layer around it, and what `toolshift retrain` made of it."""
    rows.parent.mkdir(parents=True, exist_ok=True)
    stream = Retrained(folder, rows, limits)
    found = {name: arm(stream, stream, name, learned(releases, SEED)) for name in MODEL_ARMS}
    return {"each": stream.each, "streams": [found]}


def whole(releases: dict[str, str], each: int, file: Path) -> dict[str, Any]:
    """`smol:static` through all changes, alone and in the layer."""
    file.parent.mkdir(parents=True, exist_ok=True)
    stream = Stream(releases, each, SEED)
    rows = Whole(stream, file)
    found = {name: arm(stream, rows, name, learned(releases, SEED)) for name in WHOLE_ARMS}
    return {"each": each, "streams": [found]}


# -- figures ---------------------------------------------------------------------------------------


def share(passed: str) -> str:
    """The share of what was passed, with its interval, in percent."""
    count = len(passed) - passed.count(NOT_PLAYED)
    if not count:
        return ""
    found = wilson(passed.count("1"), count)
    low, high = (100 * end for end in (found.low, found.high))
    few = f" ({count})" if count < len(passed) else ""
    return f"{100 * found.estimate:.0f} [{low:.0f}, {high:.0f}]{few}"


def first_alarms(part: dict[str, Any], name: str) -> list[str]:
    """In each phase: the tasks from its start to the first alarms, by kind."""
    each, told = part["each"], []
    for phase in phases(part):
        delays: dict[str, list[int]] = {}
        for stream in part["streams"]:
            first: dict[str, int] = {}
            for number, kind, _ in stream[name]["alarms"]:
                if number // each == phase:
                    first.setdefault(kind, number - phase * each)
            for kind, delay in first.items():
                delays.setdefault(kind, []).append(delay)
        total = len(part["streams"])
        words = [
            f"{kind} {median(some):g}" + (f" ({len(some)} of {total})" if total > 1 else "")
            for kind, some in sorted(delays.items(), key=lambda item: median(item[1]))
        ]
        told.append(", ".join(words) or "none")
    return told


def phases(part: dict[str, Any]) -> range:
    """The phases of a stream."""
    return range(len(part["streams"][0]["alone"]["passed"]) // part["each"])


def table_of(title: str, part: dict[str, Any]) -> list[str]:
    """The tables of one agent."""
    each, streams = part["each"], part["streams"]
    names = [PHASES[phase] for phase in phases(part)]
    many = "s" if len(streams) > 1 else ""
    lines = [
        f"### {title}: {len(streams)} stream{many} of {each * len(names)} tasks",
        "",
        "Passed in percent with 95% Wilson intervals, and in brackets how many tasks were played "
        "where not all; for each task its calls, tokens read and written, and CPU ms where they "
        "were taken.",
        "",
        f"| arm | {' | '.join(names)} | calls | tokens | CPU ms |",
        "|---" * (len(names) + 4) + "|",
    ]
    for name in streams[0]:
        cells = []
        for phase in phases(part):
            some = [one[name]["passed"][phase * each : (phase + 1) * each] for one in streams]
            cells.append(share("".join(some)))
        tasks = sum(len(one[name]["passed"].replace(NOT_PLAYED, "")) for one in streams)
        calls, tokens, spent = (
            sum(one[name][key] for one in streams) / tasks for key in ("calls", "tokens", "ms")
        )
        cells += [f"{calls:.1f}", f"{tokens:,.0f}", f"{spent:,.0f}" if spent else ""]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    after = ", median (and in how many streams)" if many else ""
    lines += [
        "",
        f"Alarms: tasks from the change to the first one of a kind{after}.",
        "",
        f"| arm | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    lines += [f"| {name} | {' | '.join(first_alarms(part, name))} |" for name in streams[0]]
    return [*lines, ""]


def tables(results: dict[str, Any]) -> str:
    """The tables of the page."""
    return "\n".join(line for title, part in results.items() for line in table_of(title, part))


def picture(results: dict[str, Any]) -> str:
    """Accuracy over time, the changes, the alarms and who serves, as SVG."""
    from vl_convert import vegalite_to_svg

    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "vconcat": [panel(title, part) for title, part in results.items()],
        "config": {"axis": {"grid": False}},
    }
    return slim(vegalite_to_svg(chart))


def panel(title: str, part: dict[str, Any]) -> dict[str, Any]:
    """One agent: accuracy of each arm over time, and below it what each arm's watcher told."""
    each, streams = part["each"], part["streams"]
    arms, total = [*streams[0]], each * len(phases(part))
    block = len(KINDS) * (3 if each % 12 == 0 else 2)
    points = []
    for name in arms:
        for at in range(0, total, block):
            some = "".join(one[name]["passed"][at : at + block] for one in streams)
            played = some.replace(NOT_PLAYED, "")
            if played:
                rate = 100 * played.count("1") / len(played)
                points.append({"task": at + block / 2, "arm": name, "passed": rate})
    told = [
        {"task": number, "arm": name, "what": "tools_changed" if told else "another alarm"}
        for name in arms
        for number, told in sorted(
            {
                number: kind == "tools_changed" for number, kind, _ in streams[0][name]["alarms"]
            }.items()
        )
    ]
    takes = "retrained agent takes over"
    told += [
        {"task": int(at), "arm": name, "what": takes}
        for name in arms
        for at in streams[0][name]["served"]
    ]
    x = {"field": "task", "type": "quantitative", "title": None, "scale": {"domain": [0, total]}}
    colour = {"field": "arm", "type": "nominal", "sort": arms, "title": None}
    shape = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": ["tools_changed", "another alarm", takes],
            "range": ["triangle-right", "circle", "diamond"],
        },
    }
    changes = [{"task": phase * each} for phase in phases(part)[1:]]
    bare = {**x, "axis": None}
    x = {**x, "axis": {"tickCount": 5}}
    rules = {
        "data": {"values": changes},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": "grey"},
    }
    y = {"field": "passed", "type": "quantitative", "title": "passed, %", "axis": {"tickCount": 3}}
    over_time = {
        "data": {"values": points},
        "mark": {
            "type": "line",
            "strokeWidth": 2,
            "interpolate": "step",
        },
        "encoding": {
            "x": bare,
            "y": y,
            "color": colour,
            "strokeDash": {
                **colour,
                "legend": None,
                "scale": {"range": [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]]},
            },
        },
    }
    blocks = Counter(point["arm"] for point in points)
    few = {  # an arm of which few tasks were played is no line
        "data": {"values": [point for point in points if blocks[point["arm"]] == 1]},
        "mark": {"type": "point", "filled": True, "opacity": 1},
        "encoding": {"x": bare, "y": y, "color": colour},
    }
    alarms = {
        "data": {"values": told},
        "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
        "encoding": {
            "x": x,
            "y": {"field": "arm", "type": "nominal", "sort": arms, "title": None},
            "shape": shape,
            "color": colour,
        },
    }
    return {
        "vconcat": [
            {
                "title": title,
                "width": 480,
                "height": 130,
                "layer": [{**rules, "encoding": {"x": bare}}, over_time, few],
            },
            {
                "width": 480,
                "height": {"step": 14},
                "layer": [{**rules, "encoding": {"x": x}}, alarms],
            },
        ]
    }


def read() -> dict[str, Any]:
    """What was measured so far."""
    found: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() else {}
    return found


def write_pages(results: dict[str, Any]) -> None:
    """Writes the figures, the tables and the picture."""
    FILE.write_bytes(pack(json.dumps(results).encode()))
    PICTURE.write_text(picture(results), encoding="utf-8")
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    if START in text:
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{tables(results)}\n{text[after:]}", encoding="utf-8")
    print(tables(results))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--model", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--layered",
        type=int,
        nargs=2,
        default=(40, 40),
        metavar="N",
        help="tasks of the model after the change in the layer, and with the tools as known",
    )
    parser.add_argument("--each", type=int, default=60, help="scripted tasks in each phase")
    parser.add_argument("--streams", type=int, default=5)
    parser.add_argument("--rows", type=Path, default=Path("build/stream.jsonl"))
    parser.add_argument("--whole", type=int, metavar="N", help="tasks of the model in each phase")
    parser.add_argument("--pages", action="store_true")
    options = parser.parse_args()
    results = read()
    with TemporaryDirectory() as folder:
        releases = release_files(Path(folder))
        if options.scripted:
            results["scripted reader"] = scripted(releases, options.each, options.streams)
        if options.model:
            limits = dict(zip(("adapt", SHOWN), options.layered, strict=True))
            results["smol:static"] = model(releases, options.model, options.rows, limits)
        if options.whole:
            results[WHOLE] = whole(releases, options.whole, options.rows)
    write_pages(results)


if __name__ == "__main__":
    main()
