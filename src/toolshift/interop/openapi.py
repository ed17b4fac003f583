"""Tools from an OpenAPI document: an operation is a tool, called over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolshift.core.canonical import canonical_hash
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, NotRead
from toolshift.core.values import as_list, as_mapping
from toolshift.interop.media import BODY, FORM, TEXT, Media, is_json, media_in, read_media
from toolshift.interop.normal import modern
from toolshift.interop.parameter_styles import Style, style_of
from toolshift.interop.references import with_files
from toolshift.interop.request import COOKIE, Request, media_of, place_in_words, servers_of
from toolshift.interop.schema import (
    each_description,
    flattened,
    inlined,
    leaves_of,
    look_up,
    properties_of,
    renamed,
    tag_of,
    tag_values,
)
from toolshift.interop.server import address_name
from toolshift.interop.swagger import as_openapi_3

METHODS = ("get", "put", "post", "delete", "patch")
_BESIDE_A_BODY = ("path", "query", "header")
_DATA = ("enum", "const", "default", "example", "examples", "required", "$ref")


@dataclass(frozen=True)
class Operation:
    """How a tool is called: `places` says for each argument whether it is path, query, header,
    a property of a JSON body ("body") or the whole of it ("whole"), or a field of a form ("form",
    or "parts" where it is sent as multipart), and its name there. `styles` says how it is written,
    `request` what of a request a lock keeps. `errors` has the values that bodies of errors have, by
    their paths; () where none is declared. `media` is the type of a body that is a text, no JSON.
    """

    method: str
    path: str
    places: Mapping[str, tuple[str, str]]
    shown: dict[str, Any]
    request: Request
    styles: Mapping[str, Style] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    media: str = ""


def read_openapi(document: object, path: Path | None = None) -> list[Operation]:
    """The operations of an OpenAPI 2 or 3 document, each with its tool as MCP would list it."""
    if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
        held = as_mapping(document)
        rest = [key for key in ("webhooks", "components") if held.get(key)]
        only = f", only {' and '.join(rest)}, which no agent calls" if rest else ""
        raise UsageError(f"the OpenAPI document has no `paths`{only}: it offers no tool")
    if str(document.get("swagger", "")).startswith("2."):
        _check_parameters(document["paths"])
        document = as_openapi_3(document)
    if not str(document.get("openapi", "")).startswith("3."):
        raise UsageError(
            "this is not an OpenAPI document: neither `openapi` is 3.x nor `swagger` 2.0"
        )
    whole = with_files(document, path)
    if not isinstance(whole["paths"], Mapping):
        raise UsageError("this is not an OpenAPI 3 document: its `paths` do not lead to an object")
    _check_parameters(whole["paths"])
    if str(document["openapi"]).startswith("3.0"):
        try:
            whole = _as_json_schema(whole, {})
        except RecursionError:
            raise UsageError("the OpenAPI document is nested too deeply") from None
    found = list(_operations(whole))
    if not found:
        intake = paths_read(document, path)
        why = f": {intake.first}" if intake.first else ""
        raise NotRead(f"the OpenAPI document has no operation{why}", intake)
    known: dict[str, str] = {}
    for each in found:
        name, place = each.shown["name"], f"{each.method.upper()} {each.path}"
        if known.setdefault(name, place) != place:
            raise UsageError(
                f"{known[name]} and {place} would both be a tool named {name}: give each its own "
                "`operationId`"
            )
    return found


def _check_parameters(paths: Mapping[str, Any]) -> None:
    """Checks that parameters stand in lists: otherwise a tool would lose all of them."""
    for path, item in paths.items():
        for name, held in _with_parameters(item):
            if not isinstance(held.get("parameters") or [], list):
                place = f"{name.upper()} {path}".strip()
                raise UsageError(
                    f"{place}: its `parameters` are not a list: write one item for each"
                )


def _with_parameters(item: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A path and its operations by their methods, where they are objects; "" for the path."""
    methods = as_mapping(item)
    yield "", methods
    yield from ((one, methods[one]) for one in METHODS if isinstance(methods.get(one), Mapping))


def paths_read(document: Mapping[str, Any], path: Path | None = None) -> Intake:
    """Which paths of an OpenAPI document could be read."""
    intake = Intake("the OpenAPI document", "path")
    whole = with_files(document, path)
    for address, item in whole["paths"].items():
        if str(address).startswith("x-"):  # an extension
            continue
        methods = _resolved(item, whole)
        wrong = _why_unread(item, methods) or _lost_in(methods, whole)
        if wrong:
            intake = intake.missed(f"path {address}", wrong)
        elif any(method in methods for method in METHODS):
            intake = intake.took()
        else:
            intake = intake.passed()
    return intake


def _why_unread(item: Any, methods: Mapping[str, Any]) -> str:
    """Why a path, or an operation of it, cannot be read; "" where it can."""
    if not isinstance(item, Mapping):
        return "it is no object"
    if "$ref" in item and (not methods or "$ref" in methods):
        return f"its `$ref` {item['$ref']!r} leads to nothing in this document"
    wrong = [method for method in METHODS if not isinstance(methods.get(method, {}), Mapping)]
    return f"its operation `{wrong[0]}` is no object" if wrong else ""


def _lost_in(methods: Mapping[str, Any], document: Any) -> str:
    """The first parameter or body of a path that cannot be read; "" where there is none."""
    for name, held in _with_parameters(methods):
        place = f" of its operation `{name}`" if name else ""
        listed = held.get("parameters")
        for number, raw in enumerate(as_list(listed), 1):
            param = _resolved(raw, document)
            missing = [key for key in ("name", "in") if not isinstance(param.get(key), str)]
            if missing:
                return f"parameter {number}{place} has no `{missing[0]}`"
        body = held.get("requestBody")
        if body is not None and not isinstance(_resolved(body, document).get("content"), Mapping):
            return f"the body{place} has no `content`"
    return ""


def _as_json_schema(node: Any, known: dict[int, Any]) -> Any:
    """What holds schemas of OpenAPI 3.0, with JSON Schemas: null is a type, a limit is a number.

    `known` has what was made of each part, for YAML can have one part in many places.
    """
    if not isinstance(node, Mapping | list):
        return node
    if id(node) not in known:
        known[id(node)] = _converted(node, known)
    return known[id(node)]


def _converted(node: Mapping[str, Any] | list[Any], known: dict[int, Any]) -> Any:
    if isinstance(node, list):
        return [_as_json_schema(one, known) for one in node]
    out = {k: one if k in _DATA else _as_json_schema(one, known) for k, one in node.items()}
    return modern(out)


def _operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        beside = item if isinstance(item, Mapping) and "$ref" in item else {}
        methods = {**_resolved(item, document), **beside}
        for method in METHODS:
            if isinstance(methods.get(method), Mapping):
                yield _operation(str(path), method, methods, document)


def _resolved(node: Any, document: Any) -> Mapping[str, Any]:
    seen: set[str] = set()
    while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
        reference = node["$ref"]
        if reference in seen:
            raise UsageError(f"the reference {reference!r} leads only back to itself")
        seen.add(reference)
        node = look_up(document, reference)
    return as_mapping(node)


@dataclass
class _Inputs:
    """The arguments of an operation, as its parameters and its body name them one after another."""

    document: Mapping[str, Any]
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    styles: dict[str, Style] = field(default_factory=dict)
    conditions: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self, key: str, place: str, schema: Any, told: Any, needed: bool, style: Style | None = None
    ) -> None:
        """Adds one; a name that is taken is led by its place."""
        own = key if key not in self.properties else f"{place}_{key}"
        schema = dict(inlined(as_mapping(schema), self.document))
        self.properties[own] = {**schema, "description": str(told)} if told else schema
        self.places[own] = (place, key)
        if style is not None:
            self.styles[own] = style
        if needed:
            self.required.append(own)

    def add_body(self, body: Mapping[str, Any]) -> None:
        """Adds the properties of a body, or the whole of one that has none."""
        media = read_media(body)
        if media is None:
            return
        place = media.place
        laid = laid_open(as_mapping(media.schema), self.document)
        for key, inner in laid.properties.items():
            how = style_of(as_mapping(media.encoding.get(key)), place) if place == FORM else None
            self.add(key, place, inner, None, key in laid.required, how)
        if not laid.properties and place in (BODY, TEXT):
            self.add(BODY, "whole", media.schema, None, bool(body.get("required")))
        shown_as = {key: own for own, (where, key) in self.places.items() if where == place}
        self.conditions = [renamed(one, {**shown_as}) for one in laid.conditions]

    @property
    def schema(self) -> dict[str, Any]:
        """All of them as one object."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            **({"anyOf": self.conditions} if self.conditions else {}),
        }


def _operation(
    path: str, method: str, item: Mapping[str, Any], document: Mapping[str, Any]
) -> Operation:
    said = item[method]
    name = said.get("operationId") or f"{method}_{path}"
    name = re.sub(r"\W+", "_", str(name)).strip("_")
    inputs = _Inputs(document)
    for param in _parameters(item, said, document):
        needed = bool(param.get("required")) or param["in"] == "path"
        style, told = style_of(param, param["in"]), param.get("description")
        inputs.add(param["name"], param["in"], _schema_of(param), told, needed, style)
    body = _resolved(said.get("requestBody"), document)
    inputs.add_body(body)
    told = "\n".join(str(text) for key in ("summary", "description") if (text := said.get(key)))
    shown: dict[str, Any] = {
        "name": name,
        "description": told,
        "inputSchema": inputs.schema,
        "annotations": {"readOnlyHint": method == "get"},
    }
    answers = _good_answers(said.get("responses"), document)
    outputs = _outputs(answers, document)
    shown |= {"outputSchema": outputs} if outputs else {}
    shown |= {"deprecated": True} if said.get("deprecated") is True else {}
    errors = _errors(said.get("responses"), document)
    sent = {
        own: place_in_words(
            place if place in _BESIDE_A_BODY else BODY,
            inputs.styles.get(own),
            inputs.properties[own],
        )
        for own, (place, _) in inputs.places.items()
    }
    sent |= _cookies(item, said, document)
    servers = servers_of(said, item, document)
    request = Request(
        method,
        path,
        servers,
        media_of(body),
        sent,
        _login_of(said, document),
        _login_addresses(said, document),
        _answers(answers, document),
    )
    media = read_media(body)
    kind = media.kind if media is not None and media.place == TEXT else ""
    return Operation(method, path, inputs.places, shown, request, inputs.styles, errors, kind)


def _login_of(said: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, ...]:
    """The ways to log in that an operation takes, whatever its document calls them."""
    ways = [
        " and ".join(sorted(_scheme(scheme, scopes) for scheme, scopes in way)) or "none"
        for way in _ways(said, document)
    ]
    return tuple(sorted({*ways})) if set(ways) != {"none"} else ()


def _ways(
    said: Mapping[str, Any], document: Mapping[str, Any]
) -> Iterator[list[tuple[Mapping[str, Any], Any]]]:
    """The ways to log in, each as its schemes with the scopes that are asked."""
    components = as_mapping(document.get("components"))
    known = as_mapping(components.get("securitySchemes"))
    for way in as_list(said.get("security", document.get("security"))):
        schemes = as_mapping(way).items()
        yield [(_resolved(known.get(name), document), scopes) for name, scopes in schemes]


def _login_addresses(said: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[str, ...]:
    """Where tokens come from: the addresses of OAuth and of OpenID Connect."""
    schemes = [scheme for way in _ways(said, document) for scheme, _ in way]
    flows = [one for each in schemes for one in (each, *as_mapping(each.get("flows")).values())]
    found = {str(one[key]) for one in map(as_mapping, flows) for key in _ADDRESSES if one.get(key)}
    return tuple(sorted(map(address_name, found)))


_ADDRESSES = ("openIdConnectUrl", "authorizationUrl", "tokenUrl", "refreshUrl")


def _scheme(scheme: Mapping[str, Any], scopes: Any) -> str:
    words = [str(scheme[key]) for key in ("type", "scheme", "in", "name") if key in scheme]
    asked = sorted(map(str, scopes)) if isinstance(scopes, list) else []
    return " ".join([*words, *([f"({', '.join(asked)})"] if asked else [])]) or "a login"


def _schema_of(param: Mapping[str, Any]) -> Any:
    """The schema of a parameter; that of its `content` where it has one."""
    content = param.get("content")
    media: Any = next(iter(content.values()), {}) if isinstance(content, Mapping) else {}
    return param.get("schema", media.get("schema") if isinstance(media, Mapping) else None)


@dataclass(frozen=True)
class LaidOpen:
    """The members of a body, over all of its alternatives.

    Attributes:
        properties: by name; none where the body is no object in each of them.
        required: those that every alternative has.
        conditions: what each alternative asks, a schema of the members as a whole.
    """

    properties: Mapping[str, Any]
    required: frozenset[str]
    conditions: tuple[dict[str, Any], ...] = ()


def laid_open(schema: Mapping[str, Any], document: Mapping[str, Any]) -> LaidOpen:
    """The members of a body.

    A body with alternatives (`oneOf`, `anyOf`) that are objects has the members of all of them.
    What tells them apart is a choice, and what one alternative requires is said as a condition.
    """
    flat = flattened(schema, document)
    own, needs = properties_of(inlined(schema, document))
    parts = _alternatives(flat, document)
    if parts is None or (not own and not all(part.get("properties") for part, _ in parts)):
        return LaidOpen(own, needs)
    tag = tag_of(flat)
    found: dict[str, list[Any]] = {name: [inner] for name, inner in own.items()}
    conditions, every = [], []
    for part, values in parts:
        known, asks = properties_of(inlined(part, document))
        if tag in known and values and len(_choices(known[tag])) != 1:
            known[tag] = {**known[tag], "enum": values}
            asks |= {tag}
        for name, inner in known.items():
            found.setdefault(name, []).append(inner)
        tags = {
            name: {"enum": c} for name, inner in known.items() if len(c := _choices(inner)) == 1
        }
        conditions.append(
            {**({"properties": tags} if tags else {}), "required": sorted({*asks, *tags} - needs)}
        )
        every.append(frozenset((*asks, *tags)))
    shared = frozenset.intersection(*every) if every else frozenset()
    told = [one for one in conditions if one.get("properties") or one["required"]]
    telling = tuple(told) if len(told) == len(conditions) else ()
    properties = {name: _any_of(several) for name, several in found.items()}
    return LaidOpen(properties, needs | (shared & properties.keys()), telling)


def _alternatives(
    flat: Mapping[str, Any], document: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], list[str]]] | None:
    """The alternatives of a schema, with the values that a discriminator has for them; None where
    one of them is no object.
    """
    found: list[tuple[Mapping[str, Any], list[str]]] = []
    for key in ("oneOf", "anyOf"):
        for raw in flat.get(key) or () if isinstance(flat.get(key), list) else ():
            part = flattened(raw, document) if isinstance(raw, Mapping) else {}
            inner = _alternatives(part, document) if not part.get("properties") else []
            if inner:
                found += inner
            elif isinstance(part.get("properties"), Mapping) or (
                isinstance(part.get("required"), list) and "type" not in part
            ):
                found.append((part, tag_values(flat, raw) if tag_of(flat) else []))
            else:
                return None
    return found


def _choices(schema: Any) -> list[Any]:
    """The values that a schema lists; none where it leaves others open."""
    if not isinstance(schema, Mapping):
        return []
    listed = schema.get("enum")
    return [schema["const"]] if "const" in schema else listed if isinstance(listed, list) else []


def _any_of(several: list[Any]) -> Any:
    """One schema for what several alternatives have under one name."""
    different = [one for n, one in enumerate(several) if one not in several[:n]]
    if len(different) == 1:
        return different[0]
    listed = [_choices(one) for one in different]
    if all(listed):
        values = [value for choices in listed for value in choices]
        first = {key: value for key, value in different[0].items() if key != "const"}
        return {**first, "enum": list(dict.fromkeys(values))}
    return {"anyOf": different}


def _parameters(
    item: Mapping[str, Any], said: Mapping[str, Any], document: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The parameters of an operation that a tool can have; what is none is left out."""
    named = _named(item, said, document)
    return [each for each in named if each["in"] in _BESIDE_A_BODY]


def _cookies(
    item: Mapping[str, Any], said: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, str]:
    """The cookies of an operation, by a name that no parameter has, and whether they are needed."""
    cookies = [each for each in _named(item, said, document) if each["in"] == COOKIE]
    return {
        f"{COOKIE} {each['name']}": COOKIE
        if each.get("required") is True
        else f"{COOKIE}, optional"
        for each in cookies
    }


def _named(
    item: Mapping[str, Any], said: Mapping[str, Any], document: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The parameters of an operation; its own stand in place of the path's of the same name."""
    listed = (item.get("parameters"), said.get("parameters"))
    raws = [raw for each in listed if isinstance(each, list) for raw in each]
    params = [_resolved(raw, document) for raw in raws]
    named = [each for each in params if isinstance(each.get("name"), str)]
    return list({(each["in"], each["name"]): each for each in named if "in" in each}.values())


def _errors(responses: Any, document: Any) -> tuple[str, ...]:
    """The values that bodies of errors have, with the types of those that say one."""
    found: set[str] = set()
    for code, response in as_mapping(responses).items():
        if not str(code).startswith(("2", "3")):
            for media in media_in(_resolved(response, document)):
                if media.place == BODY and isinstance(media.schema, Mapping):
                    leaves = leaves_of(flattened(inlined(media.schema, document)))
                    found |= {".".join(path) for path, _ in leaves if path}
    return tuple(sorted(found))


def _good_answers(responses: Any, document: Any) -> list[Media]:
    """The media types of answers to a call that is right."""
    listed = {str(code): one for code, one in as_mapping(responses).items()}
    good = [code for code in listed if code.startswith("2")] or ["default"]
    return [one for code in good for one in media_in(_resolved(listed.get(code), document))]


def _outputs(answers: Iterable[Media], document: Any) -> dict[str, Any] | None:
    """The schema of a good answer of JSON that is a record, or a list of records."""
    for media in sorted(answers, key=lambda one: not is_json(one.kind)):
        written = flattened(inlined(as_mapping(media.schema), document))
        items = as_mapping(written.get("items"))
        if media.place == BODY and written.get("properties"):
            return {**written, "type": "object"}
        if media.place == BODY and items.get("properties"):
            return {"type": "object", "properties": {"result": written}}
    return None


def _answers(answers: Iterable[Media], document: Any) -> dict[str, str]:
    """The media types of good answers, and of each that is not read what stands for its schemas.

    Their order says nothing, nor do descriptions.
    """
    found: dict[str, list[Any]] = {}
    for one in answers:
        schemas = found.setdefault(one.kind, [])
        if one.place != BODY:
            schema = inlined(as_mapping(one.schema), document)
            schemas.append(each_description({**schema, "description": ""}, lambda text: ""))
    return {kind: _hash_of(found[kind]) if found[kind] else "" for kind in sorted(found)}


def _hash_of(schemas: list[Any]) -> str:
    several = sorted({canonical_hash(schema) for schema in schemas})
    return canonical_hash(several) if len(several) > 1 else several[0]
