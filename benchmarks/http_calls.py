"""What a model call over HTTP costs beside bare httpx, and 1,000 episodes at once.

    python benchmarks/http_calls.py [--episodes 200] [--at-once 1000] [--run 10000] [--json FILE]

A server in a process of its own answers at once: tool calls for some turns, then an answer. The
requests that `ChatAgent` has sent in one thread are then sent again, the very same bytes, by a bare
`httpx.Client` which reads the JSON of the answers. Both are processor time of this process, in
turns of 20 episodes, so that other work on the machine falls on both. Then as many episodes as
`--at-once` are in flight, in turns with as many threads that send such bytes through bare clients:
one for all of them, and one for each. Memory is read as episodes add up. `--run` plays so many
episodes of the quick suite into a run folder, 8 at once, and reads memory on the way; its model
calls one tool.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import multiprocessing
import pstats
import resource
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from machine import machine, versions

from toolshift.agents.chat import ChatAgent
from toolshift.agents.contestant import Contestant
from toolshift.api import run_spec
from toolshift.core.http import httpx
from toolshift.runs.execute import RunSpec
from toolshift.runs.run_folder import InMemoryStore
from toolshift.runs.study import play, run_cells
from toolshift.runs.suite import Selection, read_task, select

CALLS = 6
"""Tool calls of an episode, one a turn, before its answer."""
TURN = 20


def reply_to(body: bytes) -> bytes:
    said = body.count(b'"role":"assistant"')
    calls = 1 if b'"model":"brief"' in body else CALLS
    name, given = (
        ("find_place", {"name": f"x{said}"}) if said < calls else ("final_answer", {"answer": "x"})
    )
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": f"c{said}", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "1", "choices": [choice], "usage": usage}).encode()


class Instant(asyncio.Protocol):
    """As much of HTTP/1.1 as the client needs."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.data = transport, b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (at := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:at].lower()
            size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self.data) < at + 4 + size:
                return
            body, self.data = self.data[at + 4 : at + 4 + size], self.data[at + 4 + size :]
            answer = reply_to(body)
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                + str(len(answer)).encode()
                + b"\r\n\r\n"
                + answer
            )


def serve(ports: Any) -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Instant, "127.0.0.1", 0, backlog=2048)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(go())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="how often so many at once")
    parser.add_argument("--run", type=int, default=0, help="about how many episodes of a run")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    ports: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=serve, args=(ports,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{ports.get()}/v1"
    found = {
        "one_thread": compared(url, asked.episodes) if asked.episodes else {},
        "in_flight": in_flight(url, asked.at_once, asked.rounds) if asked.rounds else {},
        "run": many(url, asked.run) if asked.run else {},
        "versions": versions(),
        "machine": machine(),
    }
    print(json.dumps(found, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    process.kill()


def bodies(agent: ChatAgent) -> list[bytes]:
    """What the agent sends in so many episodes."""
    sent: list[bytes] = []
    attempt = agent._attempt

    def noted(body: bytes) -> tuple[Any, str]:
        sent.append(body)
        return attempt(body)

    agent._attempt = noted  # type: ignore[method-assign]
    for number in range(TURN):
        play(Contestant(agent), read_task(f"poi/visit/{number}"))
    agent._attempt = attempt  # type: ignore[method-assign]
    return sent


def compared(url: str, episodes: int) -> dict[str, Any]:
    """Processor time a call, of the agent with its episodes and of the bare client."""
    agent = ChatAgent("m", url)
    contestant = Contestant(agent)
    cells = [read_task(f"poi/visit/{number}") for number in range(TURN)]
    sent = bodies(agent)
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    ours, bare = [], []
    with httpx.Client(trust_env=False, verify=False, headers=headers) as client:
        for _ in range(max(1, episodes // TURN)):
            begun = time.process_time()
            for cell in cells:
                play(contestant, cell)
            ours.append((time.process_time() - begun) / len(sent))
            begun = time.process_time()
            for body in sent:
                client.post(f"{url}/chat/completions", content=body).json()
            bare.append((time.process_time() - begun) / len(sent))
    profile = cProfile.Profile(time.process_time)
    profile.runcall(lambda: [play(contestant, cell) for cell in cells])
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(each[2] for each in stats.values())
    spent = {name: each[3] for (_, _, name), each in stats.items()}
    shares = {
        "messages of the conversation": spent.get("messages", 0.0),
        "tools as OpenAI has them": spent.get("as_openai", 0.0),
        "sending and receiving": spent.get("fetch_content", 0.0),
        "carrying out": spent.get("take", 0.0),
        "scene": spent.get("build", 0.0),
    }
    mine, other = statistics.median(ours), statistics.median(bare)
    return {
        "calls": len(sent),
        "calls_a_cpu_second": round(1 / mine),
        "bare_calls_a_cpu_second": round(1 / other),
        "times_bare": round(mine / other, 2),
        "shares_by_profile": {name: round(one / total, 3) for name, one in shares.items()},
    }


def in_flight(url: str, at_once: int, rounds: int) -> dict[str, Any]:
    """So many episodes at once, several times, in turns with bare clients."""
    agent = ChatAgent("m", url, concurrency=at_once)
    contestant = Contestant(agent, concurrency=at_once)
    memory, took = [], []
    bare: dict[str, list[float]] = {"one_client": [], "a_client_a_thread": []}
    sent = bodies(agent)
    episodes = [sent[start : start + CALLS + 1] for start in range(0, len(sent), CALLS + 1)]
    for part in range(rounds):
        store = InMemoryStore()
        cells = [read_task(f"poi/visit/{number}", seed=part) for number in range(at_once)]
        begun = time.process_time()
        run_cells(cells, [contestant], store)
        took.append(time.process_time() - begun)
        for own, spent in zip((False, True), bare.values(), strict=True):
            spent.append(bare_in_flight(url, episodes, at_once, own))
        ends = {record.end for record in store.kept}
        assert len(store.kept) == at_once
        assert "infrastructure" not in ends
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    mine = statistics.median(took)
    other = {name: statistics.median(spent) for name, spent in bare.items()}
    return {
        "episodes_at_once": at_once,
        "calls_a_cpu_second": round(at_once * (CALLS + 1) / mine),
        "times_bare": {name: round(mine / spent, 2) for name, spent in other.items()},
        "peak_MiB_after_each_round": memory,
    }


def bare_in_flight(url: str, episodes: list[list[bytes]], at_once: int, own: bool) -> float:
    """Processor time of as many threads, each of which sends what an episode has sent."""
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    made = partial(
        httpx.Client,
        trust_env=False,
        verify=False,
        headers=headers,
        timeout=httpx.Timeout(60, pool=None),
        limits=httpx.Limits(max_connections=at_once),
    )
    clients = [made() for _ in range(at_once if own else 1)]

    def send(number: int) -> None:
        for body in episodes[number % len(episodes)]:
            clients[number % len(clients)].post(f"{url}/chat/completions", content=body).json()

    begun = time.process_time()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(send, range(at_once)))
    spent = time.process_time() - begun
    for client in clients:
        client.close()
    return spent


def many(url: str, count: int) -> dict[str, Any]:
    """A run of so many episodes: memory as they add up, before the report is made."""
    selection = select(Selection.of(suite="quick", worlds=("poi",), tasks=max(1, count // 9)))
    steps = [count * part // 6 for part in range(1, 7)]
    resident: dict[str, int] = {}
    begun = time.process_time()
    spent: dict[str, float] = {}

    def watch(done: int, total: int) -> None:
        while steps and done >= min(steps[0], total):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            name = str(min(steps.pop(0), total))
            resident[name] = pages * resource.getpagesize() // 2**20
            spent[name] = round(time.process_time() - begun, 1)

    agent = Contestant(ChatAgent("brief", url), concurrency=8)
    with tempfile.TemporaryDirectory() as folder:
        run_spec(RunSpec(selection, [agent], Path(folder) / "run"), watch)
    return {"MiB_after_episodes": resident, "cpu_seconds_after_episodes": spent}


if __name__ == "__main__":
    main()
