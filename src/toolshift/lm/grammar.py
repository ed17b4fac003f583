"""Constrained decoding: a reply must be one call that the tools on offer accept.

The call syntax of `toolshift.lm.prompt` becomes a grammar, each value under its own JSON
Schema, and llguidance says which tokens may come next. A model that cannot yet follow a format is
measured on its choices alone; results made this way are labelled.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolshift.core.errors import UsageError
from toolshift.lm.prompt import Layout, render_call

_STRICT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
_ENDINGS = (")", '")')


def call_grammar(tools: Sequence[Mapping[str, Any]], layout: Layout = "description-first") -> str:
    """The calls of these tools, as a Lark grammar: arguments in the order of the schema."""
    if not tools:
        raise UsageError(
            "constrained decoding needs at least one tool on offer; use decoding='free'"
        )
    rules = []
    for index, tool in enumerate(tools):
        function = tool.get("function", tool)
        opening = render_call(function["name"], {}, layout).removesuffix(")")
        rules += _tool_rules(f"t{index}", opening, function.get("parameters") or {})
    starts = " | ".join(f"t{index}" for index in range(len(tools)))
    return "\n".join([f"start: {starts}", *rules])


def _tool_rules(rule: str, opening: str, schema: Mapping[str, Any]) -> list[str]:
    """The rules of one tool: `_k` is parameter k with all after it, `_kn` where some precede it."""
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    rules = [f'{rule}: {json.dumps(opening)} {rule}_0 ")"']
    for index, (key, param) in enumerate(properties.items()):
        label = render_call("f", {key: 0}).removeprefix("f(").removesuffix("0)")
        value = json.dumps({**param, **shared, "x-guidance": _STRICT})
        rules.append(f"{rule}_{index}v: {json.dumps(label)} %json {value}")
        first, after = f"{rule}_{index + 1}", f"{rule}_{index + 1}n"
        optional = key not in required
        skip, skip_after = (f" | {first}", f" | {after}") if optional else ("", "")
        rules.append(f"{rule}_{index}: {rule}_{index}v {after}{skip}")
        rules.append(f'{rule}_{index}n: ", " {rule}_{index}v {after}{skip_after}')
    rules += [f'{rule}_{len(properties)}: ""', f'{rule}_{len(properties)}n: ""']
    return rules


class Vocabulary:
    """A tokenizer as llguidance sees it.

    Args:
        tokenizer: a fast transformers tokenizer.
        size: the number of logits of the model.
        layout: as calls are written.

    Raises:
        UsageError: where llguidance is missing.
    """

    def __init__(self, tokenizer: Any, size: int, layout: Layout = "description-first") -> None:
        if importlib.util.find_spec("llguidance") is None:
            raise UsageError(
                "constrained decoding needs llguidance, which is not installed; "
                "run: pip install llguidance"
            )
        from llguidance import LLMatcher  # noqa: PLC0415 - an extra
        from llguidance.hf import from_tokenizer  # noqa: PLC0415 - an extra

        self.size, self.layout = size, layout
        self._tokens = from_tokenizer(tokenizer, n_vocab=size)
        self._matcher: Any = LLMatcher
        self._start = lru_cache(maxsize=256)(self._compile)

    def constrain(self, tools: Sequence[Mapping[str, Any]]) -> CallConstraint:
        """The constraint for one reply."""
        matcher = self._start(call_grammar(tools, self.layout)).deep_copy()
        return CallConstraint(matcher, self._tokens, self.size)

    def _compile(self, grammar: str) -> Any:
        matcher = self._matcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            raise UsageError(
                f"the schemas of the tools cannot be made into a grammar: {matcher.get_error()}; "
                "use decoding='free'"
            )
        return matcher


class CallConstraint:
    """What may still follow in one reply."""

    def __init__(self, matcher: Any, tokens: Any, size: int) -> None:
        self._matcher = matcher
        self._tokens = tokens
        self._mask = np.zeros((size + 31) // 32, dtype=np.int32)
        self._size = size

    def allowed(self) -> NDArray[np.bool_]:
        """One boolean a token of the vocabulary."""
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")
        return bits[: self._size].view(np.bool_)

    def accept(self, token: int) -> None:
        """Moves on by the token that was chosen."""
        self._matcher.consume_token(token)

    def ending(self) -> str:
        """What closes a call that was cut off by the limit; "" where nothing short does."""
        for ending in _ENDINGS:
            ahead = self._matcher.deep_copy()
            if ahead.consume_tokens(self._tokens.tokenize_str(ending)) and ahead.is_accepting():
                return ending
        return ""
