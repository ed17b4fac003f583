"""`litellm:MODEL`: any provider that the library litellm speaks to, for those without a door here.

It is spoken to in chat completions; what it gives beside a message goes back as it came. Keys and
addresses are read from the environment by litellm itself, as its documentation names them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import msgspec

from toolshift.agents.answer_cache import Exchange, Exchanges, kept_elsewhere
from toolshift.agents.chat import AT_ONCE, is_cut_off, merged, sendable
from toolshift.agents.kind import AgentKind
from toolshift.core.errors import BudgetSpent, UsageError, described
from toolshift.core.installation import extra
from toolshift.core.message import Reply, Turn
from toolshift.dialects import as_request, read_reply
from toolshift.dialects.chat import ending
from toolshift.dialects.form import Body, named_model

MISSING = f"litellm:MODEL needs the library litellm: {extra('litellm')}"


class LitellmAgent:
    """A model behind litellm.

    Args:
        model: as litellm names it, with its provider: `bedrock/amazon.nova-pro-v1:0`.
        base_url: passed on where it is given.
        api_key: passed on where it is given.
        temperature: None leaves it out, for many models refuse it.
        max_tokens: the most tokens of one reply, its reasoning included.
        timeout: seconds for one request.
        retries: attempts after the first, which litellm makes.
        concurrency: how many episodes a study runs at once.
        options: further fields of the request; None removes one.
        name: how reports call the agent; the model's name where None.

    Raises:
        UsageError: where litellm is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int = 4096,
        timeout: float = 60.0,
        retries: int = 5,
        concurrency: int = 8,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches one
        try:
            import litellm  # noqa: PLC0415 - an extra, which takes seconds to load
        except ImportError:
            raise UsageError(MISSING) from None
        litellm.telemetry, litellm.suppress_debug_info = False, True
        self._litellm: Any = litellm
        self.model, self.name, self.concurrency = model, name or model, concurrency
        self._temperature, self._max_tokens = temperature, max_tokens
        self._options = dict(options or {})
        how = {"base_url": base_url, "api_key": api_key}
        self._how: dict[str, Any] = {key: value for key, value in how.items() if value}
        self._how |= {"timeout": timeout, "num_retries": retries}
        self._answered = self._heard = False
        self._unread = 0
        self.exchanges: Exchanges | None = None
        self.kept_elsewhere = kept_elsewhere(self._options)

    def __repr__(self) -> str:
        return f"LitellmAgent({self.model!r})"

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the replies beside the model's name: for a manifest."""
        fixed = {"temperature": self._temperature, "max_tokens": self._max_tokens}
        return {"litellm": self._version, **fixed, **self._options}

    @property
    def _version(self) -> str:
        from importlib.metadata import version  # noqa: PLC0415 - rarely asked for

        return version("litellm")

    def reply(self, turn: Turn) -> Reply:
        """Asks the model for its next message."""
        turn = Turn([sendable(message) for message in turn.messages], turn.tools)
        asked = as_request(turn, "chat", self.model, self._temperature, self._max_tokens)
        body = merged(asked, self._options)
        reply = self._asked(body)
        self._unread += not self._heard
        if self._unread >= AT_ONCE and not self._heard:
            raise UsageError(
                f"{reply.failure}. The first {self._unread} turns have no readable reply. The "
                "same command continues where it stopped."
            )
        return reply

    def _asked(self, body: Body) -> Reply:
        """The reply to a request; not sent where its answer is stored."""
        if self.exchanges is None:
            return self._send(body, Exchange())
        who = f"litellm {self._version} {self._how.get('base_url', '')}\n{self.model}"
        with self.exchanges.exchange(who, msgspec.json.encode(body)) as exchange:
            reply = self._recalled(body, exchange) or self._send(body, exchange)
            self.exchanges.count(reply.usage)
            return reply

    def _recalled(self, body: Body, exchange: Exchange) -> Reply | None:
        """The reply of a stored answer; None where there is none that can be read."""
        if exchange.answer is None:
            return None
        try:
            answer = self._litellm.ModelResponse(**msgspec.json.decode(exchange.answer))
            reply = self._read(answer, body.get("tools", ()))
        except Exception:  # another version of litellm has stored it
            return None
        return msgspec.structs.replace(reply, usage=reply.usage.as_saved)

    def _send(self, body: Body, exchange: Exchange) -> Reply:
        """Asks the model."""
        faults = self._litellm.exceptions
        try:
            answer = self._litellm.completion(**body, **self._how)
        except faults.BudgetExceededError as spent:
            raise BudgetSpent(f"litellm: {described(spent)}") from None
        except (faults.ContextWindowExceededError, faults.ContentPolicyViolationError) as fault:
            overflow = isinstance(fault, faults.ContextWindowExceededError)
            return Reply(failure=self._told(fault), overflow=overflow)
        except (
            faults.AuthenticationError,
            faults.PermissionDeniedError,
            faults.NotFoundError,
            faults.BadRequestError,
            faults.UnprocessableEntityError,
        ) as fault:
            if self._answered and isinstance(fault, faults.BadRequestError):
                return Reply(failure=self._told(fault))
            raise UsageError(
                f"{self._told(fault)}. Use --set NAME=VALUE to set a field and --unset NAME to "
                "leave it out; litellm reads keys from the environment under its own names"
            ) from None
        except Exception as fault:  # its kinds of errors are many, and more with each provider
            return Reply(failure=self._told(fault))
        self._answered = True
        reply = self._read(answer, body.get("tools", ()))
        if self.exchanges is not None:
            usage = msgspec.structs.replace(reply.usage, requests=1)
            reply = msgspec.structs.replace(reply, usage=usage)
        if answer.choices[0].finish_reason != "content_filter":
            text = answer.model_dump_json()
            exchange.keep(text.encode(), named_model(msgspec.json.decode(text)))
        return reply

    def _told(self, fault: Exception) -> str:
        key = self._how.get("api_key")
        said = f"litellm for model {self.model!r}: {described(fault)}"[:500]
        return said.replace(key, "[secret]") if key else said

    def _read(self, answer: Any, tools: Sequence[Mapping[str, Any]]) -> Reply:
        reply = read_reply(answer)
        try:
            cost = float(self._litellm.completion_cost(completion_response=answer) or 0.0)
        except Exception:  # it knows no price of this model
            cost = 0.0
        usage = msgspec.structs.replace(reply.usage, cost=reply.usage.cost or cost)
        choice = answer.choices[0]
        reason, failure = choice.finish_reason, reply.failure
        own = getattr(choice, "provider_specific_fields", None) or {}
        ended, told = ending(own.get("native_finish_reason"))  # litellm makes "stop" of most
        self._heard = self._heard or ended != "broken"
        if ended == "broken":
            failure = f"the endpoint broke the reply off: {told}"
        elif reason == "content_filter":
            failure = "the endpoint withheld the reply (content_filter)"
        elif reason == "length" and is_cut_off(reply, tools):
            failure = "truncated: the reply was cut off at the token limit; raise --max-tokens"
        return msgspec.structs.replace(reply, usage=usage, failure=failure)


class _Litellm(AgentKind):
    forms = {"litellm:MODEL": "a model of any provider that the library litellm speaks to"}
    takes = tuple(signature(LitellmAgent).parameters)[1:]  # all but the model

    def make(self, spec: str, options: Mapping[str, Any]) -> LitellmAgent:
        """Takes the options that it has; litellm keeps no limit of cost that runs share."""
        own = {name: value for name, value in options.items() if name in self.takes}
        return LitellmAgent(_model_of(spec), **own)

    def is_free(self, spec: str) -> bool:
        """It is taken to be paid, wherever it runs."""
        _model_of(spec)
        return False


KIND = _Litellm()


def _model_of(spec: str) -> str:
    model = spec.partition(":")[2]
    if not model:
        raise UsageError("litellm: give the name of a model, as in litellm:groq/llama-4-scout")
    return model
