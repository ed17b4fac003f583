"""How many model calls and tokens a verdict takes, and how often it is wrong.

    python benchmarks/cost_to_verdict.py [--tasks 12] [--latency 0.02] [--studies 1000]

Behind the endpoint stands no model but an agent of known truth: it has played each scene before,
and says there what it said then. The requests are those of `ChatAgent`, and each takes `--latency`
seconds. `varies` and `worse by N points` fail at a request by chance, drawn anew at every request,
as a model that samples does. What is sent is billed by the longest prefix that was sent before, in
blocks of 128 tokens from 1,024 on, tools first, as OpenAI documents its prompt cache; a token is
four bytes.

`each sent` is the design as it was: every request is sent. `sent once` shares answers within the
run; `again` is the same run once more with the answers of the first. `run` is the quick suite,
`gate` three of its shifts on three times the tasks, against the run of a baseline, and `change` the
clean tasks and one shift without a placebo, the design of `toolshift change`.

`sequential` is the run that stops when it has decided, with every request sent and with those sent
once. Its verdict is beside that of the fixed design: the shifts that break, the tasks that are
lost, or the gate's.

The error rates of the fixed design are of simulated studies (tasks of unequal hardness, three
trials, four requests an episode, of which the clean and the shifted episode share the first two).
False "breaks" are `significant` at a true drop of 0, false "holds" `gate_of_5_passes` at 5, and
`bias_points` is the mean of the estimates less the truth. Those of the sequential design
(`stopped`) are of studies that are played by `runs.sequential` itself. A `noisy` agent passes each
episode by its own draw, a `steady` one fails the same tasks clean and shifted, and loses some for
good; `one kind` has all of the loss in one of four kinds; `list` draws a steady agent's tasks
without replacement, and the truth is that of the list.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from machine import versions

from toolshift.agents.answer_cache import Exchanges
from toolshift.agents.catalog import make_agent
from toolshift.agents.chat import ChatAgent, sendable
from toolshift.agents.contestant import Contestant
from toolshift.api import report_of
from toolshift.core.http import httpx
from toolshift.core.message import Reply
from toolshift.core.scene import Applied
from toolshift.core.tool import JSON
from toolshift.drift.task_claims import task_claims
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode, messages
from toolshift.measure.claims import (
    claim_of,
    families_by,
    gate_claims,
    gate_rule,
    shift_claims,
    shift_rule,
)
from toolshift.measure.gate import Rules, judge, sequential_gate
from toolshift.measure.gate_statistics import decide
from toolshift.measure.statistics import drop_of_means
from toolshift.runs.cell import Cell, build
from toolshift.runs.execute import RunSpec, execute
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.sequential import Claims, Course, Outcome, Pair, name_of
from toolshift.runs.suite import Selection, select

PLANTED = ("oracle", "memorises_names", "ignores_results", "gives_up", "never_refuses")
POINTS = (2, 5, 10)
BLOCK, SMALLEST = 512, 4096  # bytes: 128 and 1,024 tokens


class Part:
    """What a scripted agent says to each request, over all scenes of a plan."""

    def __init__(self, spec: str, plan: Plan) -> None:
        self.lines: dict[bytes, dict[str, Any]] = {}
        self.conflicts = 0
        agent: Any = make_agent(spec)
        for cell in plan.cells:
            played = Episode(build(cell), Budget.of(build(cell)), cell.trial)
            agent.play(played)
            said = messages(played.scene, played.steps)
            episode = Episode(build(cell), Budget.of(build(cell)), cell.trial)
            for line in (message for message in said if message["role"] == "assistant"):
                if episode.end:
                    break
                turn = episode.observation
                key = _key([sendable(each) for each in turn.messages], list(turn.tools))
                kept = self.lines.setdefault(key, line)
                self.conflicts += kept != line
                episode.take(Reply.of(kept))


def _key(said: list[Any], tools: list[Any]) -> bytes:
    return blake2b(JSON.encode([said, tools]), digest_size=16).digest()


class Stub:
    """An endpoint that says what an agent has said, and counts and bills what it is sent."""

    def __init__(self, part: Part, latency: float, fails: float, seed: int) -> None:
        self.part, self.latency, self.fails = part, latency, fails
        self.rng, self.lock = random.Random(seed), threading.Lock()
        self.calls = self.tokens = self.cached = 0
        self.seen: set[bytes] = set()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        tools = body.get("tools", [])
        line = self.part.lines.get(_key(body["messages"], tools))
        with self.lock:
            self.calls += 1
            cached, every = self._bill(JSON.encode([tools, *body["messages"]]))
            failed = self.rng.random() < self.fails
        time.sleep(self.latency)
        if failed or line is None:
            line = {"role": "assistant", "content": "I cannot help with that today."}
        used = {
            "prompt_tokens": every,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        return httpx.Response(200, json={"model": "stub", "choices": [{"message": line}],
                                         "usage": used})  # fmt: skip

    def _bill(self, prompt: bytes) -> tuple[int, int]:
        ends = range(BLOCK, len(prompt) + 1, BLOCK)
        digest, hit, known = blake2b(digest_size=16), 0, True
        for end in ends:
            digest.update(prompt[end - BLOCK : end])
            name = digest.digest()
            known &= name in self.seen
            hit = end if known else hit
            self.seen.add(name)
        hit = hit if hit >= SMALLEST else 0
        self.tokens += len(prompt) // 4
        self.cached += hit // 4
        return hit // 4, len(prompt) // 4


def played(
    part: Part, plan: Plan, folder: Path, exchanges: Exchanges, how: argparse.Namespace,
    fails: float = 0.0, seed: int = 0, model: str = "stub", claims: Claims | None = None,
) -> tuple[dict[str, Any], RunFolder]:  # fmt: skip
    """One run through the stub: what it took, and its folder."""
    stub = Stub(part, how.latency, fails, seed)
    agent = ChatAgent(model, "http://127.0.0.1:9/v1", concurrency=8, temperature=1.0)
    agent._client.close()
    agent._client = httpx.Client(transport=httpx.MockTransport(stub))
    begun = time.perf_counter()
    execute(RunSpec(plan, [Contestant(agent, "", 8)], folder, exchanges=exchanges, claims=claims))
    took = {
        "calls": stub.calls,
        "prompt_tokens": stub.tokens,
        "of_these_in_the_providers_cache": stub.cached,
        "wall_s": round(time.perf_counter() - begun, 2),
    }
    return took, RunFolder.read(folder)


def modes(base: Path) -> Iterator[tuple[str, Exchanges]]:
    yield "each sent", Exchanges("off")
    yield "sent once", Exchanges(base / "answers")
    yield "again", Exchanges(base / "answers")


def costs(how: argparse.Namespace) -> list[dict[str, Any]]:
    quick = make_plan(select(Selection(suite="quick", tasks=how.tasks)))
    one = Selection(suite="quick", tasks=how.tasks, shifts=("parameter_rename",), placebo=False)
    plans = {"run": quick, "change": make_plan(select(one))}
    rows = []
    for command, plan in plans.items():
        for spec in PLANTED:
            part = Part(spec, plan)
            with tempfile.TemporaryDirectory() as folder:
                base, grades = Path(folder), {}
                row = {"command": command, "agent": spec, "episodes": len(plan.cells)}
                for mode, exchanges in modes(base):
                    row[mode], run = played(part, plan, base / mode, exchanges, how)
                    grades[mode] = {one.episode: one.grade for one in run.records()}
                row["verdict"] = verdict_of(run)
                claims = shift_claims() if command == "run" else task_claims()
                for mode, exchanges in list(modes(base / "own"))[:2]:
                    name = f"sequential, {mode}"
                    row[name], run = played(part, plan, base / name, exchanges, how, claims=claims)
                    row[name]["verdict"] = verdict_of(run)
            row["same_verdicts"] = grades["each sent"] == grades["sent once"] == grades["again"]
            row["conflicts"] = part.conflicts
            rows.append(_told(row))
    three = ("redirect", "merged_tools", "semantic_trap")
    some = Selection(suite="quick", tasks=3 * how.tasks, shifts=three, placebo=False)
    rows += gates(make_plan(select(some)), how)
    return rows


def verdict_of(run: RunFolder) -> list[str]:
    """The shifts that break; without an arm to compare, the tasks that are lost."""
    agent = report_of(run).agents[0]
    design = run.manifest.design
    if run.plan.selection.placebo:
        return sorted(
            row.label for row in agent.shifts if row.significant and row.drop.estimate > 0
        )
    passed = {bool(one.shifts): set() for one in run.plan.cells}
    asked = {bool(one.shifts): set() for one in run.plan.cells}
    for record in run.records():
        cell = run.cell(record)
        asked[bool(cell.shifts)].add(cell.lineage)
        if record.grade.passed:
            passed[bool(cell.shifts)].add(cell.lineage)
    assert design is not None
    return sorted(passed[False] & asked[True] - passed[True])


def gates(plan: Plan, how: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Gates of candidates behind the baseline by so many points; 0 is the very same agent."""
    part = Part("oracle", plan)
    turns = sum(len({step.turn for step in one.steps}) for one in _traces(part, plan, how))
    each = turns / len(plan.cells)
    for points in (0, *POINTS):
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            row = {"command": "gate", "agent": f"worse by {points} points" if points else "varies",
                   "episodes": len(plan.cells)}  # fmt: skip
            before, after = (1 - rate ** (1 / each) for rate in (0.9, 0.9 - points / 100))
            for mode, store in modes(base):
                exchanges, name = store, "stub" if not points else "worse"
                if mode != "again":
                    _, old = played(part, plan, base / f"{mode} old", store, how, before, 1)
                    if not points and mode == "sent once":
                        exchanges = Exchanges(base / "answers")  # the gate is a command of its own
                row[mode], new = played(
                    part, plan, base / mode, exchanges, how, after, 2 + points, name
                )
                row[mode]["verdict"] = judge(old, new, Rules(5.0)).verdict
            for mode, exchanges in list(modes(base / "own"))[:2]:
                name = f"sequential, {mode}"
                claims = sequential_gate(old, Rules(5.0), "worse", baseline_agent="stub")
                row[name], new = played(
                    part, plan, base / name, exchanges, how, after, 2 + points, "worse", claims
                )
                row[name]["verdict"] = judge(old, new, Rules(5.0), baseline_agent="stub").verdict
            yield _told(row)


def _traces(part: Part, plan: Plan, how: argparse.Namespace) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        how = argparse.Namespace(**{**vars(how), "latency": 0.0})
        return list(played(part, plan, Path(folder) / "run", Exchanges(), how)[1].records())


def _told(row: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(row), flush=True)
    return row


def simulated(studies: int, trials: int = 3) -> list[dict[str, Any]]:
    """Error rates of studies with shared draws, and without."""
    rows = []
    for tasks, points in product((60, 200), (0, *POINTS)):
        for shares in (False, True):
            rng = np.random.default_rng([points, shares])
            found = [_study(rng, points / 100, shares, tasks, trials) for _ in range(studies)]
            drops = [drop_of_means(clean, shifted) for clean, shifted in found]
            errors = np.array([np.mean(clean - shifted) - points / 100 for clean, shifted in found])
            verdicts = [decide(shifted - clean, 0.05) for clean, shifted in found]
            rows.append(_told({
                "tasks": tasks,
                "true_drop_points": points,
                "draws": "shared" if shares else "apart",
                "bias_points": round(100 * float(errors.mean()), 3),
                "its_standard_error": round(100 * float(errors.std() / studies**0.5), 3),
                "covered": float(np.mean([d.low <= points / 100 <= d.high for d in drops])),
                "significant": float(np.mean([not d.low <= 0 <= d.high for d in drops])),
                "half_width_points": round(
                    50 * float(np.mean([d.high - d.low for d in drops])), 2),
                "gate_of_5_passes": verdicts.count("pass") / studies,
                "gate_of_5_fails": verdicts.count("fail") / studies,
            }))  # fmt: skip
    return rows


def _study(
    rng: np.random.Generator, drop: float, shares: bool, tasks: int, trials: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means by task, clean and shifted: four requests, the last two of which differ."""
    hard = rng.beta(16, 4, tasks)[:, None]  # 80% on average
    step = np.broadcast_to(hard**0.25, (tasks, trials))

    def passes(chance: np.ndarray, requests: int) -> np.ndarray:
        return (rng.random((requests, tasks, trials)) < chance).all(axis=0)

    begun = passes(step, 2)
    again = begun if shares else passes(step, 2)
    worse = step * np.sqrt((0.8 - drop) / 0.8)  # two requests: the mean falls by the drop
    return (begun & passes(step, 2)).mean(axis=1), (again & passes(worse, 2)).mean(axis=1)


SIMULATED = (  # command, tasks, agent, true change in points
    *product(("run",), (20, 60), ("noisy", "steady"), (0, -10)),
    *product(("run",), (200,), ("noisy",), (0, -10)),
    ("run", 60, "one kind", -10),
    *product(("run",), (40,), ("list",), (0, -10)),
    *product(("gate",), (60, 200), ("noisy", "steady"), (-5,)),
    *product(("gate",), (200,), ("noisy", "steady"), (0,)),
)


def stopped(studies: int) -> list[dict[str, Any]]:
    """Error rates, and episodes asked, of studies that stop when they have decided."""
    return [_told(_stopped(*cell, studies)) for cell in SIMULATED]


def _stopped(command: str, tasks: int, agent: str, points: int, studies: int) -> dict[str, Any]:
    rng = np.random.default_rng([tasks, -points, len(agent)])
    cells = [Cell("poi", f"kind {n % 4}", n // 4, 0, "dev", 200) for n in range(tasks)]
    shifted = [msgspec.structs.replace(c, shifts=(Applied("redirect", 2),)) for c in cells]
    margin = 10.0 if command == "run" else 5.0
    rule = shift_rule(margin) if command == "run" else gate_rule(margin)
    counts, episodes = {"breaks": 0, "holds": 0, "open": 0}, []
    for _ in range(studies):
        clean, after = _outcomes(rng, agent, tasks, points / 100)
        known = {
            name_of(c): Outcome(float(x), float(x), 1) for c, x in zip(shifted, after, strict=True)
        }
        before = {
            name_of(c): Outcome(float(x), float(x), 1) for c, x in zip(cells, clean, strict=True)
        }
        if command == "run":
            pairs = [Pair(*pair) for pair in zip(shifted, cells, strict=True)]
            known |= before
            claims = shift_claims(margin)
        else:
            pairs = [Pair(s, before[name_of(c)]) for s, c in zip(shifted, cells, strict=True)]
            claims = gate_claims({}, lambda _: {}, margin)
        families = families_by(pairs, lambda _: "all")
        seen: dict[str, Outcome] = {}
        for part in Course(claims, families, known, listed=agent == "list").rounds():
            seen |= {name_of(c): known[name_of(c)] for c in part}
        counts[claim_of(families[0], seen, rule, agent == "list").verdict] += 1
        episodes.append(len(seen))
    every = tasks * (2 if command == "run" else 1)
    return {
        "command": command, "tasks": tasks, "agent": agent, "true_change_points": points,
        **{name: count / studies for name, count in counts.items()},
        "episodes_asked": round(float(np.mean(episodes)) / every, 3),
    }  # fmt: skip


def _outcomes(
    rng: np.random.Generator, agent: str, tasks: int, change: float
) -> tuple[np.ndarray, np.ndarray]:
    """Passes of each task before and after."""
    hard = rng.beta(16, 4, tasks)  # 80% on average
    if agent == "noisy":
        return rng.random(tasks) < hard, rng.random(tasks) < hard * (0.8 + change) / 0.8
    clean = rng.random(tasks) < hard
    if agent == "list":
        lost = np.zeros(tasks, bool)
        lost[rng.permutation(np.flatnonzero(clean))[: round(-change * tasks)]] = True
        return clean, clean & ~lost
    rate = np.full(tasks, -change / 0.8)
    if agent == "one kind":
        rate = np.where(np.arange(tasks) % 4 == 0, 4 * rate, 0.0)
    return clean, clean & ~(rng.random(tasks) < rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds of each request")
    parser.add_argument("--studies", type=int, default=1000, help="simulated, of each cell")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", choices=("stopped", "simulated", "costs"), help="one part")
    how = parser.parse_args()
    parts = {
        "stopped": lambda: stopped(how.studies),
        "simulated": lambda: simulated(how.studies),
        "costs": lambda: costs(how),
    }
    found: dict[str, Any] = {
        name: make() for name, make in parts.items() if how.only in (None, name)
    }
    found["how"] = {name: value for name, value in vars(how).items() if name != "json"}
    found["versions"] = versions()
    if how.json:
        how.json.write_bytes(msgspec.json.format(JSON.encode(found), indent=1) + b"\n")


if __name__ == "__main__":
    main()
