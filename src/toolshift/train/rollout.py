"""Episodes rolled out by a live model: many at once, no prefix computed twice, every token kept.

A policy-gradient step needs the tokens as they were sampled, so a conversation is one growing
sequence: the first prompt, the model's tokens word for word, what the environment adds, and so on.
Where the tools on offer change in mid-episode, the system message that lists them changes too, and
the sequence begins anew with the conversation written out under the new list. Only the last such
sequence is trained on, or each of them (`GrpoSettings.every_view`): what was said under an earlier
list is context in a later one, as it is in the rows of `toolshift.train.data`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from toolshift.core import seed as seeds
from toolshift.core.message import Reply, Turn, Usage
from toolshift.core.scene import Scene
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode
from toolshift.lm.parse_reply import parse_reply
from toolshift.lm.prompt import Layout, to_plain_messages

CUT_OFF = "the episode grew longer than the tokens allowed for it"


class Play(NamedTuple):
    """One episode to roll out: its scene, and the seed of all that is sampled in it."""

    scene: Scene
    seed: int


class Said(NamedTuple):
    """What a model said in one turn.

    Attributes:
        tokens: as sampled, with the stop token at the end where there is one.
        logprobs: of the tokens, at the temperature of the sampling.
        ended: whether the last token is a stop token; else the limit was reached.
    """

    tokens: list[int]
    logprobs: list[float]
    ended: bool


class Backend(Protocol):
    """What completes prompts: a torch model here, or an inference server."""

    def say(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        limit: int,
        temperature: float,
    ) -> list[Said]:
        """Completes each prompt by at most `limit` tokens, sampled with its own seed."""
        ...


@dataclass(frozen=True)
class Limits:
    """How long rollouts may grow.

    Attributes:
        turn: tokens of one reply.
        episode: tokens after the prompts, under all lists of tools together; an episode that grows
            beyond has failed.
        batch: episodes that are decoded together.
        repeats: how often the same call may have the same result before an episode ends; 0 for no
            such limit. While others go on, an episode in a loop keeps a batch nearly empty.
    """

    turn: int = 96
    episode: int = 1536
    batch: int = 32
    repeats: int = 0


class View(NamedTuple):
    """What was said under one list of tools, as in `Rollout`."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float]
    env_mask: list[int]


@dataclass(frozen=True)
class Rollout:
    """One finished episode with its tokens, as GRPO needs them.

    Attributes:
        prompt_ids: what the model was given at first (under the last list of tools).
        completion_ids: all that follows.
        logprobs: of the model's tokens in `completion_ids`; 0 elsewhere.
        env_mask: 1 where a token is the model's, 0 where it is the environment's.
        episode: as it was played.
        views: how many lists of tools the episode showed.
        earlier: the sequences under earlier lists in which the model spoke, in the order of the
            episode.
    """

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float]
    env_mask: list[int]
    episode: Episode
    views: int
    earlier: tuple[View, ...] = ()

    def whole(self) -> tuple[View, list[int]]:
        """All sequences one behind the other, and where each but the first begins."""
        first, *others = (*self.earlier, View(self.prompt_ids, *self._own))
        tokens, logprobs = list(first.completion_ids), list(first.logprobs)
        mask, borders = list(first.env_mask), []
        for view in others:
            borders.append(len(first.prompt_ids) + len(tokens))
            silent = len(view.prompt_ids)
            tokens += [*view.prompt_ids, *view.completion_ids]
            logprobs += [*[0.0] * silent, *view.logprobs]
            mask += [*[0] * silent, *view.env_mask]
        return View(first.prompt_ids, tokens, logprobs, mask), borders

    @property
    def _own(self) -> tuple[list[int], list[float], list[int]]:
        return self.completion_ids, self.logprobs, self.env_mask


@dataclass
class Clock:
    """Seconds of wall time that rollouts have taken, by what took them.

    Attributes:
        sandbox: scenes, episodes and grading.
        rendering: conversations to text to tokens and back.
        generation: the model.
    """

    sandbox: float = 0.0
    rendering: float = 0.0
    generation: float = 0.0
    _last: float = field(default=0.0, repr=False)

    def begin(self) -> None:
        """Starts the clock."""
        self._last = time.perf_counter()

    def on(self, what: Literal["sandbox", "rendering", "generation"]) -> None:
        """Adds the time since the last call to one account."""
        now = time.perf_counter()
        setattr(self, what, getattr(self, what) + now - self._last)
        self._last = now


class ConversationEncoder:
    """Writes conversations out as tokens, by the model's own chat template.

    Args:
        tokenizer: a fast transformers tokenizer with a chat template.
        layout: how tools are listed.
        tool_role: the role of results; see `agents.prompt.to_plain_messages`.
        stop: the tokens that end a reply; the first closes one that was cut off.
    """

    def __init__(
        self,
        tokenizer: Any,
        layout: Layout,
        tool_role: Literal["tool", "user"],
        stop: Sequence[int],
    ) -> None:
        self.tokenizer, self.layout, self.tool_role = tokenizer, layout, tool_role
        own = tokenizer.eos_token_id
        self.stop = tuple(sorted(stop, key=lambda token: token != own))
        self._ends = tuple(tokenizer.convert_ids_to_tokens(list(self.stop)))

    def messages(self, turn: Turn) -> list[dict[str, str]]:
        """The plain messages of a turn; the first holds the tools."""
        return to_plain_messages(turn, self.layout, self.tool_role)

    def opening(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens of a whole conversation, up to where the model speaks."""
        return self._tokens(self._text(messages, prompt=True))

    def following(self, messages: list[dict[str, str]]) -> list[int] | None:
        """The tokens after the stop token of the last reply, up to where the model speaks again."""
        last = max(n for n, message in enumerate(messages) if message["role"] == "assistant")
        before = self._text(messages[: last + 1], prompt=False)
        whole = self._text(messages, prompt=True)
        if not whole.startswith(before):
            return None
        end = max(
            (before.rfind(mark) + len(mark) for mark in self._ends if mark in before), default=0
        )
        return self._tokens(whole[end or len(before) :])

    def read(self, reply_text: Said) -> Reply:
        """The reply that a model's tokens are."""
        text = self.tokenizer.decode(reply_text.tokens, skip_special_tokens=True)
        return parse_reply(text, self.layout)

    def _text(self, messages: list[dict[str, str]], prompt: bool) -> str:
        return str(
            self.tokenizer.apply_chat_template(
                messages, add_generation_prompt=prompt, tokenize=False
            )
        )

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def roll_out(
    backend: Backend,
    scribe: ConversationEncoder,
    plays: Sequence[Play],
    temperature: float = 1.0,
    limits: Limits = Limits(),
    clock: Clock | None = None,
) -> list[Rollout]:
    """Plays every episode to its end, all of them at once.

    What is sampled in an episode depends on its own seed, never on what is decoded beside it;
    only the rounding of floats does.
    """
    clock = clock or Clock()
    clock.begin()
    tracks = [_Track(play, limits.repeats) for play in plays]
    clock.on("sandbox")
    for track in tracks:
        track.begin(scribe)
    clock.on("rendering")
    while going := [track for track in tracks if not track.episode.end]:
        going.sort(key=lambda track: len(track.tokens))
        for begin in range(0, len(going), limits.batch):
            _one_turn(
                backend, scribe, going[begin : begin + limits.batch], temperature, limits, clock
            )
    return [track.finished() for track in tracks]


def _one_turn(
    backend: Backend,
    scribe: ConversationEncoder,
    tracks: list[_Track],
    temperature: float,
    limits: Limits,
    clock: Clock,
) -> None:
    prompts = [track.tokens for track in tracks]
    drawn = [seeds.derive(track.play.seed, track.episode.turn) for track in tracks]
    spoken = backend.say(prompts, drawn, limits.turn, temperature)
    clock.on("generation")
    for track, reply_text in zip(tracks, spoken, strict=True):
        reply = scribe.read(reply_text)
        clock.on("rendering")
        turn = track.take(reply_text, reply, limits.episode)
        clock.on("sandbox")
        if turn is not None:
            track.hear(scribe, turn, reply_text.ended)
        clock.on("rendering")


class _Track:
    """One episode on its way, and its sequence of tokens."""

    def __init__(self, play: Play, repeats: int) -> None:
        self.play = play
        self.episode = Episode(play.scene, Budget.of(play.scene, repeats))
        self.first = self.episode.observation
        self.views = 0
        self.before = 0  # tokens under earlier lists of tools
        self.earlier: list[View] = []

    def begin(self, scribe: ConversationEncoder) -> None:
        self._open(scribe, scribe.messages(self.first))

    def take(self, reply_text: Said, reply: Reply, most: int) -> Turn | None:
        """Carries out what was said; returns what the model is to see next, None at the end."""
        usage = Usage(len(self.tokens), len(reply_text.tokens))
        self._add(reply_text.tokens, reply_text.logprobs, 1)
        self.episode.take(Reply(text=reply.text, calls=reply.calls, usage=usage))
        if not self.episode.end and self.before + len(self.tokens) - self.given > most:
            self.episode.crash(CUT_OFF)
        return None if self.episode.end else self.episode.observation

    def hear(self, scribe: ConversationEncoder, turn: Turn, ended: bool) -> None:
        """Adds what the environment has said, or begins anew under another list of tools."""
        messages = scribe.messages(turn)
        added = scribe.following(messages) if messages[0] == self.head else None
        if added is None:
            self.before += len(self.tokens) - self.given
            self.earlier.append(self._view())
            self._open(scribe, messages)
            return
        closed = added if ended else [scribe.stop[0], *added]
        self._add(closed, [0.0] * len(closed), 0)

    def finished(self) -> Rollout:
        """The tokens up to the last one that is the model's."""
        return Rollout(*self._view(), self.episode, self.views, tuple(self.earlier))

    def _view(self) -> View:
        given = self.given
        return View(self.tokens[:given], self.tokens[given:], self.logprobs, self.mask)

    def _open(self, scribe: ConversationEncoder, messages: list[dict[str, str]]) -> None:
        self.views += 1
        self.head = messages[0]
        self.tokens = scribe.opening(messages)
        self.given = len(self.tokens)
        self.logprobs: list[float] = []
        self.mask: list[int] = []

    def _add(self, tokens: list[int], logprobs: list[float], own: int) -> None:
        self.tokens = self.tokens + tokens
        self.logprobs += logprobs
        self.mask += [own] * len(tokens)
