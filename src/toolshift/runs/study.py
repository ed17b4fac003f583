"""Many episodes: agents over the cells of a plan, in threads, batches or processes.

Scripted agents play in plan order, so their results are the same bytes however many processes
take part. An agent whose own code raises has failed, and is scored so: what breaks it may be the
shift. Only on the very first turn of a run is it treated as a mistake in the set-up. An agent
reports a failure of its infrastructure by `Reply.failure`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from hashlib import blake2b
from itertools import islice
from typing import Any

from toolshift.agents.answer_cache import drawing
from toolshift.agents.catalog import make_agent
from toolshift.agents.contestant import Contestant
from toolshift.agents.own_code import Broken, keeping_folder, noting_interrupts, own_code
from toolshift.agents.separate import SeparateAgent
from toolshift.core.errors import UsageError, defined_at, described, place_of, placed
from toolshift.core.message import PROTOCOL_TOOLS
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON, as_openai
from toolshift.dialects import read_reply
from toolshift.episode.budget import Budget
from toolshift.episode.contract import (
    Agent,
    BatchAgent,
    CallableAgent,
    OutsideAgent,
    Releases,
    ScriptedAgent,
    finished,
)
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import regrade
from toolshift.reading.prose import ProseReader
from toolshift.runs.cell import Cell, build
from toolshift.runs.decisions import judged
from toolshift.runs.pool import Executor, in_pool
from toolshift.runs.run_folder import InMemoryStore, Reading, Record, RunFolder

CHUNK = 64
Store = RunFolder | InMemoryStore
Done = tuple[Record, float]
Watch = Callable[[int], None]


def episode_id(agent: str, cell: Cell) -> str:
    """The short name of an agent's episode in a cell."""
    return blake2b(f"{agent}\x1f{cell.id}".encode(), digest_size=5).hexdigest()


def run_cells(
    cells: Sequence[Cell],
    contestants: Sequence[Contestant],
    store: Store,
    workers: int = 1,
    watch: Watch = lambda episodes: None,
    executor: Executor = "process",
    first: bool = True,
) -> None:
    """Runs every episode that the store does not hold yet; `first` where these begin the run."""
    with noting_interrupts(), keeping_folder():
        _run_cells(cells, contestants, store, workers, watch, executor, first)


def _run_cells(
    cells: Sequence[Cell],
    contestants: Sequence[Contestant],
    store: Store,
    workers: int,
    watch: Watch,
    executor: Executor,
    first: bool,
) -> None:
    scripted = [c for c in contestants if isinstance(c.agent, ScriptedAgent)]
    for done in _scripted(cells, scripted, store.done, workers, executor):
        store.add([record for record, _ in done], [took for _, took in done])
        watch(len(done))
    for contestant in contestants:
        if contestant in scripted:
            continue
        left = [c for c in cells if episode_id(contestant.name, c) not in store.done]
        fresh = first and len(left) == len(cells)
        # A first episode alone would wait for a batch of one request at each of its turns.
        alone = first and getattr(contestant.agent, "batches", None) is None
        for record, seconds in _answering(contestant, left, fresh, alone):
            store.add([record], [seconds])
            watch(1)


def play(
    contestant: Contestant, cell: Cell, scene: Scene | None = None, fresh: bool = True
) -> Record:
    """Runs one episode; `fresh` says that the agent has not completed a turn yet."""
    agent = contestant.agent
    if isinstance(agent, ScriptedAgent):
        return play_scripted(agent, cell, scene, contestant.judge, contestant.max_repeats)[0]
    return _conversation(contestant, cell, scene, pilot=fresh).run()[0]


# -- scripted agents ---------------------------------------------------------------------------


def _scripted(
    cells: Sequence[Cell],
    contestants: list[Contestant],
    done: set[str],
    workers: int,
    executor: Executor,
) -> Iterator[list[Done]]:
    """Task by task and cell by cell, so that a scene is made once for all the agents."""
    tasks: dict[str, list[Cell]] = {}
    for cell in cells:
        tasks.setdefault(cell.lineage, []).append(cell)
    todo = (
        (cell, c) for cells_of_task in tasks.values() for cell in cells_of_task for c in contestants
    )
    left = (job for job in todo if episode_id(job[1].name, job[0]) not in done)
    chunks = iter(lambda: list(islice(left, CHUNK)), [])
    several = workers > 1 or executor != "process"
    if several and contestants and all(c.spec and not c.judge for c in contestants):
        jobs = ((c.spec, cell, c.max_repeats) for chunk in chunks for cell, c in chunk)
        yield from in_pool(_play_chunk, jobs, workers, executor)
        return
    for chunk in chunks:
        yield [play_scripted(c.agent, cell, None, c.judge, c.max_repeats) for cell, c in chunk]  # type: ignore[arg-type]


@cache
def agent_of(spec: str) -> Any:
    """The agent of a spec, made once in each process."""
    return make_agent(spec)


def _play_chunk(jobs: list[tuple[str, Cell, int]]) -> list[Done]:
    """Plays scripted agents, by spec, in another process."""
    return [play_scripted(agent_of(spec), cell, max_repeats=most) for spec, cell, most in jobs]


def play_scripted(
    agent: ScriptedAgent,
    cell: Cell,
    scene: Scene | None = None,
    judge: ProseReader | None = None,
    max_repeats: int = 0,
) -> Done:
    """Runs one episode of a scripted agent."""
    start = time.perf_counter()
    scene = scene or build(cell)
    episode = Episode(scene, Budget.of(scene, max_repeats), cell.trial, judge=judge)
    try:
        with own_code():
            agent.play(episode)
    except Broken as broken:
        if not episode.end:
            episode.crash(described(broken.fault))
    return _record(agent.name, cell, episode), time.perf_counter() - start


# -- agents that answer turns ------------------------------------------------------------------


class _Stopped(Exception):
    """The study was stopped during this episode."""


class _Conversation:
    """One episode of an agent that answers turns."""

    def __init__(
        self, contestant: Contestant, cell: Cell, scene: Scene | None = None, pilot: bool = False
    ) -> None:
        self.agent: Any = contestant.agent
        self.answering: Any = contestant.stored or contestant.agent
        self.cell, self.pilot = cell, pilot
        scene = scene or build(cell)
        budget = Budget.of(scene, contestant.max_repeats)
        self.episode = Episode(scene, budget, cell.trial, judge=contestant.judge)
        self.start = time.perf_counter()

    def run(self, stop: threading.Event | None = None) -> Done:
        with drawing(self.cell.lineage, self.cell.trial):
            while not self.episode.end:
                if stop is not None and stop.is_set():
                    raise _Stopped
                self.take(lambda: finished(self.answering.reply(self.episode.observation)))
        return self.finish()

    def take(self, reply: Callable[[], Any]) -> None:
        try:
            with own_code():
                read = read_reply(reply())
        except Broken as broken:
            if self.pilot and not self.episode.steps:
                raise UsageError(_first_turn(self.agent, broken.fault)) from broken.fault
            self.episode.crash(described(broken.fault))
            return
        self.episode.take(read)

    def finish(self) -> Done:
        took = time.perf_counter() - self.start
        return _record(self.agent.name, self.cell, self.episode, reading=True), took


class _Visit(_Conversation):
    """One episode of an agent in a program of its own."""

    def run(self, stop: threading.Event | None = None) -> Done:
        try:
            with own_code(), drawing(self.cell.lineage, self.cell.trial):
                self.agent.drive(self.episode, stop or threading.Event())
        except Broken as broken:  # between us and the program; it has no part in this
            if not self.episode.end:
                self.episode.fail(described(broken.fault))
        if not self.episode.end:
            raise _Stopped
        if self.pilot and self.episode.end == "crashed" and len(self.episode.steps) == 1:
            raise UsageError(f"agent {self.agent.name} did not work: {self.episode.steps[0].said}")
        took = time.perf_counter() - self.start
        return _record(self.agent.name, self.cell, self.episode), took


def _conversation(
    contestant: Contestant, cell: Cell, scene: Scene | None = None, pilot: bool = False
) -> _Conversation:
    if isinstance(contestant.agent, OutsideAgent):
        return _Visit(contestant, cell, scene, pilot)
    return _Conversation(contestant, cell, scene, pilot)


def _first_turn(agent: Any, fault: BaseException) -> str:
    """The message for an agent that fails on its very first turn: its set-up is wrong."""
    agent = agent.inner if isinstance(agent, SeparateAgent) else agent
    if isinstance(agent, CallableAgent):
        code, how = agent.function, "it is called with (messages, tools)"
    else:
        code, how = agent.reply, "its reply is called with (turn)"
    if isinstance(agent, BatchAgent):
        code = agent.reply_batch
        how = "its reply_batch is called with a list of turns and returns as many replies"
    message = f"agent {agent.name} raised on its first turn: {described(fault)}"
    place = "" if place_of(fault) else defined_at(code)
    return (
        f"{placed(message, place)}; {how}, and a reply is a string, an OpenAI assistant message or "
        "a toolshift.Reply"
    )


def _answering(
    contestant: Contestant, cells: list[Cell], fresh: bool, alone: bool
) -> Iterator[Done]:
    agent = contestant.agent
    assert isinstance(agent, Agent | OutsideAgent)
    if isinstance(agent, BatchAgent):
        return _lockstep(contestant, cells, fresh)
    return _threads(contestant, cells, fresh, alone)


def _threads(contestant: Contestant, cells: list[Cell], fresh: bool, alone: bool) -> Iterator[Done]:
    """The first episode `alone`, as it shows whether the agent works; then many at once."""
    concurrency = contestant.concurrency
    begun = int(alone and bool(cells))
    if begun:
        yield _conversation(contestant, cells[0], pilot=fresh).run()
    if concurrency == 1:
        yield from (_conversation(contestant, cell).run() for cell in cells[begun:])
        return
    todo: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Done | BaseException] = queue.SimpleQueue()
    stop = threading.Event()
    for cell in cells[begun:]:
        todo.put(cell)

    def work() -> None:
        while not stop.is_set():
            try:
                ended.put(_conversation(contestant, todo.get_nowait()).run(stop))
            except (queue.Empty, _Stopped):
                return
            except BaseException as fault:  # handed to the main thread, which raises it
                ended.put(fault)
                return

    # Daemons: one that waits for a slow server must not hold up the end of the program.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    yield from _collect(ended, len(cells) - begun, stop, threads)


def _collect(
    ended: queue.SimpleQueue[Done | BaseException],
    count: int,
    stop: threading.Event,
    threads: list[threading.Thread],
) -> Iterator[Done]:
    """Yields finished episodes; after a fault, waits for those that other threads are finishing."""
    fault: BaseException | None = None
    received = 0
    try:
        # What a thread has finished before it ended is taken too: first "alive", then "empty".
        while received < count and (
            fault is None or any(t.is_alive() for t in threads) or not ended.empty()
        ):
            try:
                item = ended.get(timeout=0.5)
            except queue.Empty:
                continue
            if isinstance(item, BaseException):
                fault = fault or item
                stop.set()
            else:
                received += 1
                yield item
    finally:
        stop.set()
    if fault is not None:
        raise fault


def _lockstep(contestant: Contestant, cells: list[Cell], fresh: bool) -> Iterator[Done]:
    """Steps as many episodes together as its `batch`; one that ends makes room for the next.

    After the last one the agent's `release()` is called, where it has one.
    """
    agent = contestant.agent
    assert isinstance(agent, BatchAgent)
    batch = max(1, int(getattr(agent, "batch", 8)))
    waiting = iter(cells)
    alive: list[_Conversation] = []
    while True:
        alive += [_Conversation(contestant, c) for c in islice(waiting, batch - len(alive))]
        if not alive:
            if isinstance(agent, Releases):
                agent.release()
            return
        for running, reply in zip(alive, _replies(agent, alive, fresh), strict=True):
            running.take(reply)
        fresh = False
        yield from (running.finish() for running in alive if running.episode.end)
        alive = [running for running in alive if not running.episode.end]


def _replies(agent: BatchAgent, alive: list[_Conversation], first: bool) -> list[Callable[[], Any]]:
    """A function for each turn, which returns its reply or raises what the agent raised."""
    turns = [running.episode.observation for running in alive]
    try:
        with own_code():
            replies = list(finished(agent.reply_batch(turns)))
            if len(replies) != len(alive):
                raise ValueError(f"{len(replies)} replies to {len(alive)} turns")
    except Broken as broken:
        if first:
            raise UsageError(_first_turn(agent, broken.fault)) from broken.fault
        if len(alive) > 1:  # one by one, for the others are not to blame
            return [reply for running in alive for reply in _replies(agent, [running], first=False)]
        return [partial(_raise, broken.fault)]
    return [partial(_same, reply) for reply in replies]


def _same(reply: Any) -> Any:
    return reply


def _raise(fault: BaseException) -> Any:
    raise fault


# -- what is recorded --------------------------------------------------------------------------


def _record(agent: str, cell: Cell, episode: Episode, reading: bool = False) -> Record:
    scene = episode.scene
    steps = judged(scene, episode.steps, episode.end, episode.judge)
    read = Reading()
    if reading:
        read = Reading(_bytes_read(scene, episode.steps), _bytes_read(scene, scene.rehearsal))
    return Record(
        episode=episode_id(agent, cell),
        agent=agent,
        cell=cell.id,
        end=episode.end,
        grade=regrade(scene, steps, episode.end),
        steps=steps,
        usage=episode.usage,
        reading=read,
    )


def _bytes_read(scene: Scene, steps: Sequence[Any]) -> int:
    """Bytes of all prompts of a conversation; every turn sends all of it again."""
    tools = len(JSON.encode([*map(as_openai, scene.tools), *PROTOCOL_TOOLS]))
    total = so_far = 0
    for message in messages(scene, steps):
        if message["role"] == "assistant":
            total += tools + so_far
        so_far += len(JSON.encode(message))
    return total
