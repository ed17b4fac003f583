"""What checks the arguments of calls, by the schema of their tool."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.interop.schema import checkable


def validator_of(schema: Any) -> Any:
    """What checks arguments; None where a schema takes anything, or cannot be used."""
    return _validator(msgspec.json.encode(schema)) if schema else None


@lru_cache(maxsize=8192)
def _validator(schema: bytes) -> Any:
    try:
        return jsonschema_rs.validator_for(checkable(msgspec.json.decode(schema)))
    except (ValueError, jsonschema_rs.ReferencingError):
        return None
