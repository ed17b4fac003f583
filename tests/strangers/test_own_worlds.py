"""Own worlds with plain answers: an honest agent in prose scores as the oracle, cheats score nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolshift.core.message import Reply
from toolshift.core.scene import Scene
from toolshift.core.solver import Impossible, Solver
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.episode.oracle import EpisodeBackend, OracleAgent
from toolshift.reading.answers.by_words import as_answer
from toolshift.worlds.own import load

TOOLS = {
    "library": '''
BOOKS = {
    "Dune": {"title": "Dune", "copies": 4, "status": "on loan", "due": "2026-03-03"},
    "Emma": {"title": "Emma", "copies": 0, "status": "on shelf", "due": ""},
    "Ulysses": {"title": "Ulysses", "copies": 2, "status": "lost", "due": "2026-04-10"},
}

def find_book(title: str) -> dict:
    """Find a book."""
    if title not in BOOKS:
        raise LookupError(f"there is no book {title}")
    return BOOKS[title]

def list_books() -> list[dict]:
    """List all books."""
    return list(BOOKS.values())
''',
    "shop": '''
ORDERS = {
    "O-17": {"order": "O-17", "item": "kettle", "price": 1250.0, "status": "shipped"},
    "O-18": {"order": "O-18", "item": "lamp", "price": 19.99, "status": "delivered"},
    "O-19": {"order": "O-19", "item": "chair", "price": 90.0, "status": "not shipped"},
}

def get_order(order: str) -> dict:
    """Get an order."""
    if order not in ORDERS:
        raise LookupError(f"there is no order {order}")
    return ORDERS[order]

def list_orders() -> list[dict]:
    """List all orders."""
    return list(ORDERS.values())
''',
    "rooms": '''
ROOMS = {
    "Aurora": {"room": "Aurora", "seats": 8, "opens": "09:30", "floor": 4},
    "Borealis": {"room": "Borealis", "seats": 12, "opens": "14:15", "floor": 2},
}

def get_room(room: str) -> dict:
    """Get a room."""
    if room not in ROOMS:
        raise LookupError(f"there is no room {room}")
    return ROOMS[room]

def list_rooms() -> list[dict]:
    """List all rooms."""
    return list(ROOMS.values())
''',
}
TASKS = {
    "library": [
        ("How many copies of Dune are there?", "find_book", {"title": "Dune"}, "4"),
        ("When is Dune due?", "find_book", {"title": "Dune"}, "2026-03-03"),
        ("What is the status of Dune?", "find_book", {"title": "Dune"}, "on loan"),
        ("How many copies of Emma are there?", "find_book", {"title": "Emma"}, "0"),
        ("Where is Solaris?", "find_book", {"title": "Solaris"}, None),
    ],
    "shop": [
        ("What did order O-17 cost?", "get_order", {"order": "O-17"}, "EUR 1,250.00"),
        ("What is the status of order O-17?", "get_order", {"order": "O-17"}, "shipped"),
        ("What is the status of order O-19?", "get_order", {"order": "O-19"}, "not shipped"),
        ("Which item is order O-18?", "get_order", {"order": "O-18"}, "lamp"),
        ("What is the status of order O-99?", "get_order", {"order": "O-99"}, None),
    ],
    "rooms": [
        ("How many people does Aurora seat?", "get_room", {"room": "Aurora"}, "8"),
        ("When does Borealis open?", "get_room", {"room": "Borealis"}, "14:15"),
        ("Which rooms are there?", "list_rooms", {}, "[Aurora, Borealis]"),
        ("On which floor is Aurora?", "get_room", {"room": "Aurora"}, "4"),
        ("How many people does Cosmos seat?", "get_room", {"room": "Cosmos"}, None),
    ],
}  # fmt: skip
ANSWERS = (
    "{}", "It is {}.", "**{}**", "The answer is {}.", "Sure! I looked it up: {}.",
    "According to the system, it is {}. Can I help with anything else?",
    "No problem, here it is: {}.", '{{"answer": "{}"}}', "Sorry for the wait. That would be {}.",
    "Answer: {}\n\nLet me know if you need more.", "I checked, and it is {}, as far as I can see.",
    "<think>Is it another one?</think>It is {}.", "# Result\n\n{}", "Thanks for asking; it is {}!",
    "I could not send the confirmation, but the answer is {}.",
)  # fmt: skip
REFUSALS = (
    "I could not find it.", "Sorry, there is no such entry.", "It does not exist in our system.",
    "I'm afraid nothing was found: no record matches.", "**Not found.**",
    "I was unable to locate that one. Can I help with anything else?",
    "Unfortunately I can't find anything by that name.", '{"error": "not found"}',
    "I looked it up, but it doesn't exist.", "There's no entry with this name.",
    "No results for your request.", "It isn't listed, so I can't tell you more.",
    "My search failed: not_found", "I do not have any record of that.", "It couldn't be located.",
)  # fmt: skip


class Speaks(OracleAgent):
    """Works as the oracle does, and ends in prose.

    Args:
        answer: how an answer is put, a pattern for `format`.
        refusal: how a refusal is put.
    """

    def __init__(self, answer: str, refusal: str) -> None:
        self.answer, self.refusal = answer, refusal

    def work(self, episode: Episode, backend: EpisodeBackend) -> None:
        solver = Solver(backend, episode.scene.world.facts, episode.ask_now.goal)
        try:
            said = self.answer.format(as_answer(episode.ask_now.solve(solver, solver.root)))
        except Impossible:
            said = self.refusal
        episode.take(Reply(text=said))


def all_results(episode: Episode) -> str:
    """Lists everything that there is, and hands it on."""
    lists = [tool.name for tool in episode.tools if tool.name.startswith("list_")]
    return "\n".join(episode.call(name, {})[0] for name in lists)


CHEATS: dict[str, Callable[[Episode], str]] = {
    "hands on all records": all_results,
    "counts": lambda episode: " ".join(map(str, range(30))),
    "counts in a sentence": lambda episode: "It is one of 0, 2, 4, 8, 12 or 1250 EUR.",
    "bounds": lambda episode: "At least 4, between 0 and 8, from 14:15 to 15:15, up to 1250 EUR.",
    "all days": lambda episode: "Any day from 2026-03-01 to 2026-03-31.",
    "all states": lambda episode: "on loan, on shelf, lost, shipped, not shipped, delivered, lamp",
    "supposes": lambda episode: "If it is on loan, shipped, 4 or 8, it may be 14:15 or a lamp.",
    "asks back": lambda episode: "On loan? Shipped? 4? 0? 8? 1250? 14:15? A lamp? 2026-03-03?",
    "repeats the user": lambda episode: episode.ask_now.text,
    "says done": lambda episode: "Done, I have taken care of it.",
    "tells a share": lambda episode: "It is 4%.",
    "counts what is gone": lambda episode: "Three seats. 8 were taken.",
    "says what was": lambda episode: "Its previous status was shipped, formerly on loan.",
    "refuses at once": lambda episode: "I could not find it.",
}  # fmt: skip


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Scene]:
    """The clean scenes of three worlds."""
    found = []
    for name, tasks in TASKS.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / f"{name}_tools.py").write_text(TOOLS[name])
        lines = [f"world: {name}", f"tools: {{python: {name}_tools}}", "writes: []", "tasks:"]
        for number, (ask, tool, arguments, answer) in enumerate(tasks):
            check = "refuse: not_found" if answer is None else f"answer: {answer}"
            check = f'answer: "{answer}"' if answer and "," in answer[:6] else check
            lines += [f"  - id: t{number}", f"    ask: {ask}", f"    check: {{{check}}}"]
            lines.append(f"    calls: [{{name: {tool}, arguments: {arguments!r}}}]")
        (folder / "tasks.yaml").write_text("\n".join(lines))
        world = load(folder / "tasks.yaml")
        found += [make_scene(world, "task", n) for n in range(world.counts["task"])]
    return found


def played(scene: Scene, agent: Any) -> Grade:
    episode = Episode(scene)
    agent.play(episode)
    return grade(episode)


def test_the_oracle_solves_them(scenes: list[Scene]) -> None:
    assert len(scenes) == 15
    assert all(played(scene, OracleAgent()).passed for scene in scenes)


@pytest.mark.parametrize("way", range(15))
def test_an_honest_agent_in_prose_scores_as_the_oracle(scenes: list[Scene], way: int) -> None:
    agent = Speaks(ANSWERS[way], REFUSALS[way])
    failed = [s.asks[0].text for s in scenes if not played(s, agent).passed]
    assert failed == []


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_scores_nothing(scenes: list[Scene], name: str) -> None:
    passed = []
    for scene in scenes:
        episode = Episode(scene)
        episode.take(Reply(text=CHEATS[name](episode)))
        while not episode.end:
            episode.take(Reply(text="."))
        verdict = grade(episode)
        passed += [scene.asks[0].text] if verdict.passed or verdict.void else []
    assert passed == []
