"""What a schema asks of some arguments beside others, where their values are written otherwise.

A condition (`if`, `not`, `anyOf`, `dependentSchemas`, ...) that went on naming the former values
would never hold again, or always. One that cannot be said of the new values is an error, for to
leave it out would let in what the tool refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolshift.core.shift import NotApplicable
from toolshift.interop.parts import listed_in
from toolshift.interop.schema import JSONSchema

Ways = Mapping[str, Callable[[Any], Any]]
_LISTS = ("allOf", "anyOf", "oneOf")
_ONE = ("not", "if", "then", "else")
_DEPENDING = ("dependentSchemas", "dependencies")
_TEXTS = ("description", "title", "$comment", "deprecated", "readOnly", "writeOnly")
_SAYABLE = frozenset((*_LISTS, *_ONE, *_TEXTS, "const", "default", "enum", "examples", "type"))


def restated(root: Mapping[str, Any], ways: Ways) -> JSONSchema:
    """A schema of arguments whose conditions speak of values as they are written now.

    What it declares of each argument (`properties`) is left as it is.
    """
    out = dict(root)
    for key in (key for key in _LISTS if isinstance(root.get(key), list)):
        out[key] = [_condition(part, ways) for part in root[key]]
    for key in (key for key in _ONE if key in root):
        out[key] = _condition(root[key], ways)
    for key in (key for key in _DEPENDING if isinstance(root.get(key), Mapping)):
        out[key] = {name: _condition(part, ways) for name, part in root[key].items()}
    return out


def _condition(node: Any, ways: Ways) -> Any:
    """A condition on arguments, and those inside of it."""
    if not isinstance(node, Mapping):
        return node
    out = restated(node, ways)
    declared = node.get("properties")
    if isinstance(declared, Mapping):
        out["properties"] = {
            name: _asked(name, one, ways[name]) if name in ways else one
            for name, one in declared.items()
        }
    return out


def restated_value(name: str, schema: Mapping[str, Any], write: Callable[[Any], Any]) -> JSONSchema:
    """A schema of one argument that lists its values, in those that it takes now."""
    out = dict(schema)
    for key, value in schema.items():
        if key in _LISTS and isinstance(value, list):
            out[key] = [_asked(name, part, write) for part in value]
        elif key in _ONE:
            out[key] = _asked(name, value, write)
        elif key in ("enum", "examples") and isinstance(value, list):
            out[key] = [write(one) for one in value]
        elif key in ("const", "default"):
            out[key] = write(value)
    return out


def _asked(name: str, schema: Any, write: Callable[[Any], Any]) -> Any:
    """What a condition asks of one argument, in the values that it takes now."""
    if not isinstance(schema, Mapping):
        return schema
    out = restated_value(name, schema, write)
    for key in sorted(schema.keys() - _SAYABLE):
        raise NotApplicable(f"a condition on {name} ({key}) cannot be said of its new values")
    if "type" in schema and not _has_the_types(schema, out):
        del out["type"]
    return out


def _has_the_types(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the values that a condition lists are of the types that they were of."""
    was, now = listed_in(before), listed_in(after)
    if not was or not now:
        raise NotApplicable("a condition on the type of an argument cannot be said of another type")
    return all(type(one) is type(other) for one, other in zip(was, now, strict=True))
