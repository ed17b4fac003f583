"""The control API: JSON over HTTP beside an episode's MCP server.

POST   /episodes            open one: {task, shifts?, seed?, pool?, size?, trial?, protocol?}
GET    /e/ID                what was said so far, and whether it is over
POST   /e/ID/ask            {question}
POST   /e/ID/finish         {answer}, {reason, explanation?} or {prose}
GET    /e/ID/grade          once it is over
GET    /e/ID/trace          once it is over
DELETE /e/ID                close it

An agent knows the address of its MCP server, and so the id. What would tell it how it is graded, or
give it the same task again (the first and the last three), asks for a token that it does not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio.to_thread
import msgspec
from starlette.responses import Response
from starlette.routing import Route

from toolshift.connect.serve.guard import bears
from toolshift.connect.serve.responses import _json, refusal
from toolshift.connect.serve.session import ActResult, AgentSession, SessionStore
from toolshift.core.errors import UsageError
from toolshift.core.message import REASONS
from toolshift.core.names import unknown
from toolshift.core.shift import NotApplicable
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.runs.cell import Cell, build
from toolshift.runs.suite import read_task

if TYPE_CHECKING:
    from starlette.requests import Request

Body = TypeVar("Body")
Tell = Callable[[str], Awaitable[None]]
"""Tells the MCP clients of an episode that its tools have changed."""


Answer = Callable[["Request"], Awaitable[Response]]
LARGEST_POOL = 10_000
"""Entities that a world may have where a client asks: each takes memory of the server."""
Short = Annotated[str, msgspec.Meta(max_length=1000)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Size = Annotated[int, msgspec.Meta(le=LARGEST_POOL)]


class Opening(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to open an episode; see `toolshift.runs.suite.read_task`."""

    task: Short
    shifts: Short = ""
    seed: Number = 0
    pool: Short = "dev"
    size: Size = 200
    trial: Number = 0
    protocol: bool = True


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to the user."""

    question: str


class Finish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a turn: an answer, a refusal for a reason, or prose that is read by rule."""

    answer: str | None = None
    reason: str | None = None
    explanation: str = ""
    prose: str | None = None


class Control:
    """The routes of the control API.

    Args:
        store: where the episodes are.
        tell: told of an episode whose tools have changed.
        own: episodes may be opened, closed and looked into; else only acted in, for the agent of
            a study must not see grades.
        protocol: whether the protocol's tools are among an episode's, where the opener is silent.
        token: without which no episode is opened, closed or looked into; "" asks for none.
    """

    def __init__(
        self,
        store: SessionStore,
        tell: Tell,
        own: bool = True,
        protocol: bool = True,
        token: str = "",
    ) -> None:
        self.store, self.tell, self.own, self.protocol = store, tell, own, protocol
        self._token = token

    def routes(self) -> list[Route]:
        """The routes, for an application."""
        acting = [
            Route("/e/{episode}", self._show, methods=["GET"]),
            Route("/e/{episode}/ask", self._ask, methods=["POST"]),
            Route("/e/{episode}/finish", self._finish, methods=["POST"]),
        ]
        if not self.own:
            return acting
        return [
            Route("/episodes", self._owned(self._open), methods=["POST"]),
            *acting,
            Route("/e/{episode}", self._owned(self._close), methods=["DELETE"]),
            Route("/e/{episode}/grade", self._owned(self._grade), methods=["GET"]),
            Route("/e/{episode}/trace", self._owned(self._trace), methods=["GET"]),
        ]

    def _owned(self, answer: Answer) -> Answer:
        """A route for whoever has started the server alone."""

        async def checked(request: Request) -> Response:
            if self._token and not bears(request.headers, self._token):
                return refusal(
                    401,
                    "this asks for the control token, which the server has said when it began: "
                    "Authorization: Bearer TOKEN",
                )
            return await answer(request)

        return checked

    # -- one route each ------------------------------------------------------------------------

    async def _open(self, request: Request) -> Response:
        asked = await _read(request, Opening)
        if isinstance(asked, Response):
            return asked
        try:
            cell = read_task(
                asked.task, asked.shifts, asked.seed, asked.pool, asked.size, asked.trial
            )
            episode = await anyio.to_thread.run_sync(partial(open_episode, cell))
        except UsageError as wrong:
            return refusal(400, str(wrong))
        name = self.store.open(AgentSession(episode, asked.protocol and self.protocol))
        if name is None:
            return refusal(503, f"{self.store.most} episodes are open: close some, or wait")
        base = str(request.base_url).rstrip("/")
        addresses = {"mcp_url": f"{base}/e/{name}/mcp", "control_url": f"{base}/e/{name}"}
        system, message = episode.scene.system, episode.ask_now.text
        return _json(
            {"episode": name, **addresses, "system": system, "message": message, "over": False}, 201
        )

    async def _show(self, request: Request) -> Response:
        seat = self._seat(request)
        if isinstance(seat, Response):
            return seat
        episode = seat.episode
        said = messages(episode.scene, episode.steps)
        return _json(
            {
                "system": episode.scene.system,
                "message": seat.message,
                "messages": said,
                "over": seat.over,
                "end": episode.end,
            }
        )

    async def _ask(self, request: Request) -> Response:
        seat, asked = self._seat(request), await _read(request, Question)
        if isinstance(seat, Response):
            return seat
        if isinstance(asked, Response):
            return asked
        return await self._tell(request, seat.ask(asked.question))

    async def _finish(self, request: Request) -> Response:
        seat, asked = self._seat(request), await _read(request, Finish)
        if isinstance(seat, Response):
            return seat
        if isinstance(asked, Response):
            return asked
        given = [each for each in (asked.answer, asked.reason, asked.prose) if each is not None]
        if len(given) != 1:
            return refusal(400, "finish with one of answer, reason and prose")
        if asked.reason is not None and asked.reason not in REASONS:
            return refusal(400, unknown("reason", asked.reason, REASONS))
        return await self._tell(request, _finished(seat, asked))

    async def _grade(self, request: Request) -> Response:
        seat = self._ended(request)
        return seat if isinstance(seat, Response) else _json(grade(seat.episode))

    async def _trace(self, request: Request) -> Response:
        seat = self._ended(request)
        return seat if isinstance(seat, Response) else _json(trace_of(seat.episode))

    async def _close(self, request: Request) -> Response:
        seat = self._seat(request)
        if isinstance(seat, Response):
            return seat
        self.store.close(request.path_params["episode"])
        return Response(status_code=204)

    # -- inside --------------------------------------------------------------------------------

    def _seat(self, request: Request) -> AgentSession | Response:
        seat = self.store.find(request.path_params["episode"])
        return seat or refusal(404, "there is no such episode: it was closed, or has expired")

    def _ended(self, request: Request) -> AgentSession | Response:
        seat = self._seat(request)
        if isinstance(seat, AgentSession) and not seat.over:
            return refusal(409, "the episode is not over yet: finish it, or spend its budget")
        return seat

    async def _tell(self, request: Request, heard: ActResult) -> Response:
        if heard.changed:
            await self.tell(request.path_params["episode"])
        if heard.over and not heard.ok:
            return refusal(409, heard.text)
        return _json(heard)


def open_episode(cell: Cell) -> Episode:
    """An episode in the scene of a cell."""
    try:
        return Episode(build(cell), trial=cell.trial)
    except NotApplicable as reason:
        raise UsageError(
            f"{cell.stack} is not applicable to {cell.world}/{cell.kind}/{cell.index}: {reason}. "
            "Try another task."
        ) from None


def trace_of(episode: Episode) -> dict[str, Any]:
    """A finished episode, as it is told to whoever has opened it."""
    task = episode.scene.task
    return {
        "task": task.lineage,
        "shifts": [f"{applied.shift}:{applied.severity}" for applied in episode.scene.shifts],
        "end": episode.end,
        "grade": grade(episode),
        "steps": episode.steps,
    }


def _finished(seat: AgentSession, asked: Finish) -> ActResult:
    if asked.answer is not None:
        return seat.answer(asked.answer)
    if asked.reason is not None:
        return seat.refuse(asked.reason, asked.explanation)
    return seat.say(asked.prose or "")


async def _read(request: Request, form: type[Body]) -> Body | Response:
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":  # any page may send the other kinds without asking
        return refusal(415, "send the body as JSON: content-type: application/json")
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as wrong:
        return refusal(400, f"the body cannot be read: {wrong}")
