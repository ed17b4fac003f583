"""Fields and headers of requests to a model, as the command line gives them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from toolshift.core.errors import UsageError

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def request_fields(given: Sequence[str], left_out: Sequence[str]) -> dict[str, Any]:
    """The fields of `--set NAME=VALUE` and `--unset NAME`; None for one that is left out.

    A dot in a name goes one level down. A value is JSON where it is that, else a text.
    """
    fields: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--set {text}: write NAME=VALUE, as in --set reasoning_effort=high")
        _put(fields, name, _value(value))
    for name in left_out:
        if "=" in name:
            raise UsageError(f"--unset {name}: write the name alone, as in --unset temperature")
        _put(fields, name, None)
    return fields


def _put(fields: dict[str, Any], name: str, value: Any) -> None:
    *way, last = name.split(".")
    for step in way:
        fields = fields.setdefault(step, {})
        if not isinstance(fields, dict):
            raise UsageError(f"{name}: {step} is already set to a value")
    fields[last] = value


def _value(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if value is None else value  # `--unset` leaves out


def request_headers(given: Sequence[str]) -> dict[str, str]:
    """The headers of `--model-header`; the environment has what ${VARIABLE} stands for."""
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not (name.strip() and colon):
            shown = name if colon else text[:20]
            raise UsageError(f"--model-header {shown}...: write 'NAME: VALUE'")
        headers[name.strip()] = _VARIABLE.sub(_of_environment, value.strip())
    return headers


def _of_environment(found: re.Match[str]) -> str:
    value = os.environ.get(found[1])
    if value is None:
        raise UsageError(f"--model-header: the variable {found[1]} is not set")
    return value
