"""Agents that are programs of their own: one started for each episode, or one that runs already.

Both reach the episode over MCP (`toolshift.connect.serve`), so a study asks nothing of them but
that they speak it. `docs/connect.md` has the contract with a program: its environment, its
standard input and output, its exit code.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolshift.connect.isolation import check_isolation, isolated
from toolshift.connect.process import Process
from toolshift.connect.serve.background import Background
from toolshift.connect.serve.session import ActResult, AgentSession
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.core.http_limits import ReplyTooLarge, fetch
from toolshift.core.message import REASONS
from toolshift.core.redaction import secrets_of_environment
from toolshift.episode.episode import Episode

TIMEOUT = 300.0
"""Seconds that a program has for one episode."""
OUT_OF_ORDER = 75
"""The exit code by which a program says that its model, or what else it needs, is out of order.

EX_TEMPFAIL of sysexits.h: "temporary failure, try again later". No shell, signal or language ends a
program with it by itself, so nothing else is taken for it.
"""
_READ = ("answer", "refusal", "question", "prose")
PLACEHOLDERS = ("mcp_url", "control_url", "task", "system")
_CAN_PASS = frozenset((408, 429, 502, 503, 504))
"""What a server says that is out of order for a while; anything else is the agent's answer."""


class CommandAgent:
    """A program that is started for each episode, and again for each turn that it has not seen.

    Args:
        command: the program and its arguments, without a shell; `{mcp_url}`, `{control_url}`,
            `{task}` and `{system}` are filled in.
        timeout: seconds that it has for an episode.
        concurrency: how many episodes a study runs at once.
        isolate: start it in namespaces of its own (`connect.isolation`).

    Raises:
        UsageError: where there is no such program, or it cannot be isolated.
    """

    def __init__(
        self,
        command: str,
        timeout: float = TIMEOUT,
        concurrency: int = 1,
        isolate: bool = False,
    ) -> None:
        self._words = _read_command(command)
        self._isolate, self._hidden = isolate, list[Path]()
        if isolate:
            check_isolation()
        self.name = _short_name(self._words)
        self.timeout, self.concurrency = timeout, concurrency
        _check_timeout(timeout)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides how it acts, for a manifest: hashes, for a command line may hold keys."""
        return {
            "timeout": self.timeout,
            "command_sha256": sha256("\x1f".join(self._words).encode()).hexdigest()[:16],
            "files_sha256": _hash_files(self._words),
            **({"isolated": True} if self._isolate else {}),
        }

    def hide(self, folder: Path) -> None:
        """Empties a folder for the program, where it is isolated."""
        self._hidden.append(folder)

    def drive(self, episode: Episode, stop: threading.Event) -> None:
        """Lets the program act until the episode is over, or `stop` is set."""
        with _seated(episode) as visit:
            deadline = time.monotonic() + self.timeout
            while not visit.seat.over and not stop.is_set():
                self._live(visit, deadline, stop)

    def _live(self, visit: _Visit, deadline: float, stop: threading.Event) -> None:
        """One life of the program: from a message of the user's to its end."""
        seat, before = visit.seat, len(visit.episode.steps)
        process = Process(*self._made(visit))
        seat.watch = lambda heard: visit.hear(heard, process)
        try:
            while not stop.is_set():
                if time.monotonic() > deadline:
                    visit.crash(f"it took more than {self.timeout:g} seconds", process)
                    break
                if said := process.next_turn(0.1):
                    visit.say(said, process)
                if process.ended or (seat.over and process.has_had_time_to_leave()):
                    break
        finally:
            process.end()
        if not seat.over and not stop.is_set():
            _conclude(visit, process, before)

    def _made(self, visit: _Visit) -> tuple[list[str], dict[str, str]]:
        """The command line and the environment of a life."""
        told = {
            "mcp_url": visit.mcp_url,
            "control_url": visit.control_url,
            "task": visit.message,
            "system": visit.episode.scene.system,
        }
        words = [_fill(word, told) for word in self._words]
        if self._isolate:
            words = isolated(words, self._hidden)
        own = {f"TOOLSHIFT_{name.upper()}": text for name, text in told.items()}
        return words, {**os.environ, **own, "TOOLSHIFT_TURN": str(visit.episode.asked + 1)}


class UrlAgent:
    """An agent that runs already: each of the user's messages is posted to it as JSON.

    Args:
        url: where it takes them.
        timeout: seconds that it has for one message.
        concurrency: how many episodes a study runs at once.

    Raises:
        UsageError: for what is no address.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT, concurrency: int = 1) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise UsageError(
                f"{url!r} is not the address of an agent: write http://host:port/path, without a "
                "user or password"
            )
        _check_timeout(timeout)
        self._url, self.timeout, self.concurrency = url, timeout, concurrency
        self.name = urlunsplit(parts._replace(query="", fragment=""))
        limits = httpx.Timeout(timeout, connect=10.0, pool=None)
        self._client = httpx.Client(timeout=limits, trust_env=False)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides how it acts, for a manifest."""
        return {"timeout": self.timeout}

    def drive(self, episode: Episode, stop: threading.Event) -> None:
        """Posts the user's messages until the episode is over, or `stop` is set."""
        with _seated(episode) as visit:
            while not visit.seat.over and not stop.is_set():
                asked = episode.asked
                answer = self._post(visit)
                heard = None if answer is None else _take(visit, answer)
                if heard is None and episode.asked == asked:
                    visit.crash(f"it replied without an answer, and had not finished{_has(answer)}")

    def _post(self, visit: _Visit) -> Any:
        """Posts the user's message; returns the reply, None where it has ended the episode."""
        body = {
            "mcp_url": visit.mcp_url,
            "control_url": visit.control_url,
            "system": visit.episode.scene.system,
            "message": visit.message,
            "turn": visit.episode.asked + 1,
        }
        try:
            response = fetch(self._client, "POST", self._url, self.timeout, json=body)
        except ReplyTooLarge as fault:
            visit.crash(f"{fault}")
            return None
        except (httpx.ReadTimeout, httpx.WriteTimeout):
            visit.crash(f"it did not reply within {self.timeout:g} seconds")
            return None
        except httpx.HTTPError as fault:
            visit.fail(f"{type(fault).__name__}: {fault}".rstrip(": "))
            return None
        if response.status_code == 200:
            return _decoded(visit, response)
        self._refused(visit, response)
        return None

    def _refused(self, visit: _Visit, response: httpx.Response) -> None:
        """An answer that is none: out of order, wrongly addressed, or the agent broke down."""
        status = response.status_code
        what = f"HTTP {status}: {' '.join(response.text.split())[:300]}"
        if status in _CAN_PASS:
            visit.fail(what)
        elif status < 500:
            raise UsageError(
                f"{visit.strike(what)}, from {self.name}. Check the address: JSON is posted to it."
            )
        else:
            visit.crash(what)


class _Visit:
    """An episode as it stands open to a program."""

    def __init__(self, episode: Episode, background: Background) -> None:
        self.episode = episode
        self.background = background
        self.seat = AgentSession(episode, watch=self.hear)
        self.id = background.open(self.seat)
        self.control_url = f"{background.url}/e/{self.id}"
        self.mcp_url = f"{self.control_url}/mcp"
        self.message = self.seat.message
        self._secrets = secrets_of_environment()

    def hear(self, heard: ActResult, process: Process | None = None) -> None:
        """Passes on what an act has brought about: changed tools, the user's next turn, the end."""
        if heard.changed:
            self.background.tell(self.id)
        if heard.message:
            notice = f"[System notice: {heard.notice}] " if heard.notice else ""
            self.message = notice + heard.message
        if process and heard.message:
            process.tell(self.message)
        if process and heard.over:
            process.close_input()

    def say(self, prose: str, process: Process | None = None) -> ActResult:
        """Ends the program's turn in prose; it hears what the user replies."""
        heard = self.seat.say(self.strike(prose))
        if not heard.over and not heard.message:  # it was a question
            self.message = heard.text
            if process:
                process.tell(self.message)
        return heard

    def crash(self, why: str, process: Process | None = None) -> None:
        """Ends the episode because the program broke down, with the end of what it complained."""
        told = f"{why}: {process.complaint}" if process and process.complaint else why
        self.seat.crash(self.strike(told))

    def fail(self, why: str, process: Process | None = None) -> None:
        """Ends the episode because the program is out of order, by its own word or its silence."""
        told = f"{why}: {process.complaint}" if process and process.complaint else why
        self.seat.fail(self.strike(told))

    def strike(self, text: str) -> str:
        """A text without the id of the episode, and without the secrets of the environment."""
        for secret in (self.id, *self._secrets):
            text = text.replace(secret, "[secret]")
        return text


@cache
def _background() -> Background:
    return Background()


@contextmanager
def _seated(episode: Episode) -> Iterator[_Visit]:
    visit = _Visit(episode, _background())
    try:
        yield visit
    finally:
        visit.background.store.close(visit.id)


def _conclude(visit: _Visit, process: Process, before: int) -> None:
    """Reads what a program has left behind that ended before its episode did.

    What it printed last is what it says to the user, unless a protocol tool has answered him: then
    the program is started again for his next turn.
    """
    if process.code == OUT_OF_ORDER:
        visit.fail(f"exit code {process.code}, a temporary failure", process)
        return
    if process.code != 0:
        visit.crash(f"exit code {process.code}", process)
        return
    steps = visit.episode.steps
    if len(steps) > before and steps[-1].kind == "answer" and not steps[-1].prose:
        return
    if process.remainder:
        visit.say(process.remainder)
    elif len(steps) == before or steps[-1].kind != "answer":
        visit.crash("it ended without an answer", process)


def _take(visit: _Visit, answer: Any) -> ActResult | None:
    """Does what a posted reply says; None where it says nothing, or nothing that can be read."""
    seat = visit.seat
    told = _with_text(answer) if isinstance(answer, dict) else {}
    texts = {name: visit.strike(value) for name, value in told.items() if isinstance(value, str)}
    text = {name: value for name, value in texts.items() if value} or texts  # "" is left out
    if "question" in text:
        heard = seat.ask(text["question"])
        visit.message = heard.text
        return heard
    if "refusal" in text:
        if text.get("reason") in REASONS:
            return seat.refuse(text["reason"], text["refusal"])
        return visit.say(text["refusal"])
    if "answer" in text:
        return seat.answer(text["answer"])
    return visit.say(text["prose"]) if "prose" in text else None


def _with_text(told: dict[str, Any]) -> dict[str, Any]:
    """A reply whose answer is a text: a number, a truth value or data is written as JSON."""
    value = told.get("answer")
    if value is None or isinstance(value, str):
        return told
    return {**told, "answer": json.dumps(value, ensure_ascii=False)}


def _has(answer: Any) -> str:
    """What a reply has instead of what is read, for the agent's author."""
    if answer in (None, {}):
        return ""
    keys = ", ".join(map(str, answer)) if isinstance(answer, dict) else type(answer).__name__
    return f": its reply has {keys[:200]}; what is read is {', '.join(_READ)}"


def _decoded(visit: _Visit, response: httpx.Response) -> Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        visit.crash(f"its reply is not JSON: {response.text[:200]!r}")
        return None


# -- command lines -----------------------------------------------------------------------------


def _read_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"the command {command!r} cannot be read: {fault}") from None
    if not words:
        raise UsageError("name a program, as in --agent-command 'python my_agent.py'")
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no program {words[0]!r} here or on the PATH: nothing was run")
    return words


def _fill(word: str, told: dict[str, str]) -> str:
    """Fills in placeholders in one pass, so that no value can bring in another."""
    names = "|".join(PLACEHOLDERS)
    return re.sub(rf"\{{({names})\}}", lambda found: told[found.group(1)], word)


def _short_name(words: list[str]) -> str:
    """The program and its script, for reports; what follows an option may be private."""
    kept = [Path(words[0]).name]
    for word in words[1:4]:
        if word == "-m":
            continue
        if word.startswith("-") or not re.fullmatch(r"[\w./@-]+", word):
            break
        kept.append(Path(word).name)
    return " ".join(kept)


def _hash_files(words: list[str]) -> str:
    """A hash of the files that a command line names: a resumed run notices a change."""
    digest = sha256()
    for word in words[1:]:
        path = Path(word)
        if len(word) < 1000 and path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _check_timeout(timeout: float) -> None:
    if timeout <= 0:
        raise UsageError("a program needs a timeout above 0 seconds")
