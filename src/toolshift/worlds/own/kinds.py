"""Annotations of the user's functions: what they say of a value as a schema, and how one is read.

msgspec reads what it knows: dataclasses, typed dicts, enums, dates. Pydantic, where it is
installed, reads its own models and fields, and what msgspec does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Annotated, Any, get_args, get_origin

import msgspec

from toolshift.interop.schema import inlined

JSONSchema = dict[str, Any]
_JSON: tuple[Any, ...] = ("", 0, 0.5, True, [], {})
_ANYTHING = {"$comment": "anything"}
"""An empty schema, for msgspec takes one that is empty for none."""
_MARKS = ("pydantic", "pydantic_core", "annotated_types")


@dataclass(frozen=True, slots=True)
class Kind:
    """What an annotation says of a value.

    Attributes:
        read: makes of JSON what the function is given; raises a ValueError or TypeError.
        schema: None where no JSON can be read as such a value.
        shown: the schema of a result that is such a value.
    """

    read: Callable[[Any], Any]
    schema: JSONSchema | None
    shown: JSONSchema | None


def kind_of(annotation: Any) -> Kind:
    """How values of an annotation are read and described."""
    if _is_pydantics(annotation) and (found := _by_pydantic(annotation)):
        return found
    schema = _by_msgspec(annotation)
    if schema is None and (found := _by_pydantic(annotation)):
        return found

    def read(value: Any) -> Any:
        # Keys of JSON are texts, whatever keys the function takes.
        return msgspec.convert(value, annotation, str_keys=True, dec_hook=_read_custom)

    return Kind(read, schema, schema)


def plain(value: Any) -> Any:
    """A value of Python as JSON has it."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_write_custom)


# -- msgspec, and what it does not know ----------------------------------------------------------


def _by_msgspec(annotation: Any) -> JSONSchema | None:
    """The schema of an annotation; None where msgspec cannot read such values."""
    try:
        schema = msgspec.json.schema(annotation, schema_hook=_schema_of_custom)
    except (TypeError, ValueError, NotImplementedError):
        return None
    found: JSONSchema = _without_marks(_whole(schema))
    return found


def _without_marks(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_marks(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {} if schema == _ANYTHING else {k: _without_marks(v) for k, v in schema.items()}


def _whole(schema: JSONSchema) -> JSONSchema:
    """A schema with its definitions written out."""
    return {k: v for k, v in inlined(schema, schema).items() if k not in ("$defs", "title")}


def _schema_of_custom(kind: Any) -> JSONSchema:
    origin = get_origin(kind) or kind
    if _is_path(origin):
        return {"type": "string", "format": "path"}
    if _is_any(origin):
        return _ANYTHING
    found = _by_pydantic(kind) if _is_pydantics(kind) else None
    if found is None or found.schema is None:
        raise NotImplementedError
    return found.schema or _ANYTHING


def _read_custom(kind: Any, value: Any) -> Any:
    origin = get_origin(kind) or kind
    if _is_path(origin) and isinstance(value, str):
        return origin(value)
    if _is_any(origin) and isinstance(value, origin):
        return value
    found = _by_pydantic(kind) if _is_pydantics(kind) else None
    if found is None:
        raise ValueError(f"Expected `{getattr(origin, '__name__', origin)}`")
    return found.read(value)


def _write_custom(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    kind = type(value)
    if hasattr(kind, "model_dump") and _is_pydantics(kind):
        return value.model_dump(mode="json", by_alias=True)
    if _is_pydantics(kind) and (adapter := _adapter(kind)):
        return adapter.dump_python(value, mode="json", by_alias=True)
    raise TypeError(f"Encoding objects of type {kind.__name__} is unsupported")


def _is_path(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath)


def _is_any(kind: Any) -> bool:
    """Whether a value of JSON can be of a class as it is: `object`, a protocol, `Iterable`."""
    with suppress(TypeError):
        return any(isinstance(value, kind) for value in _JSON)
    return False


# -- pydantic ------------------------------------------------------------------------------------


def _is_pydantics(annotation: Any) -> bool:
    """Whether an annotation says something that only pydantic reads."""
    if get_origin(annotation) is Annotated:
        marks = (type(mark).__module__.partition(".")[0] for mark in annotation.__metadata__)
        if any(mark in _MARKS for mark in marks):
            return True
    own = ("__pydantic_core_schema__", "__get_pydantic_core_schema__")
    if isinstance(annotation, type) and any(hasattr(annotation, name) for name in own):
        return True
    return any(map(_is_pydantics, get_args(annotation)))


def _adapter(annotation: Any) -> Any:
    """What pydantic makes of an annotation; None where it is not there, or cannot."""
    try:
        return import_module("pydantic").TypeAdapter(annotation)
    except Exception:  # it has many, and older versions have no adapter
        return None


def _by_pydantic(annotation: Any) -> Kind | None:
    adapter = _adapter(annotation)
    if adapter is None:
        return None
    try:
        schema = _whole(adapter.json_schema())
    except Exception:  # of a value that JSON cannot hold
        return None
    shown = None
    with suppress(Exception):
        shown = _whole(adapter.json_schema(mode="serialization"))

    def read(value: Any) -> Any:
        try:
            return adapter.validate_json(msgspec.json.encode(value))
        except ValueError as fault:
            raise ValueError(_in_words(fault)) from None

    return Kind(read, schema, shown)


def _in_words(fault: Any) -> str:
    """What pydantic has against a value, in one line."""
    errors = getattr(fault, "errors", None)
    if errors is None:
        return str(fault)
    said = []
    for each in errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        said.append(f"{place}: {each['msg']}" if place else each["msg"])
    return "; ".join(said)
