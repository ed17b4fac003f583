"""An OpenAPI 2.0 (Swagger) document as one of OpenAPI 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.core.values import as_list, as_mapping
from toolshift.interop.media import is_form, is_json
from toolshift.interop.parameter_styles import style_of_2_0

_FORM = "application/x-www-form-urlencoded"
_OF_A_PARAM = ("name", "in", "description", "required", "deprecated")
_METHODS = ("get", "put", "post", "delete", "patch")
_MOVED = {
    "#/definitions/": "#/components/schemas/",
    "#/parameters/": "#/components/parameters/",
    "#/responses/": "#/components/responses/",
}


def as_openapi_3(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document in the form of 3.0: schemas of parameters, bodies and answers have places."""
    given = dict(document)
    scheme = next(iter(given.get("schemes") or ()), "https")
    address = f"{scheme}://{given['host']}" if given.get("host") else ""
    kinds = given.get("consumes"), given.get("produces")
    shared = {name: param for name, param in as_mapping(given.get("parameters")).items() if param}
    paths = {
        path: _item(item, shared, kinds) for path, item in as_mapping(given.get("paths")).items()
    }
    made = {
        "openapi": "3.0.3",
        "info": given.get("info") or {},
        "servers": [{"url": address + str(given.get("basePath") or "")}],
        "paths": paths,
        **({"security": given["security"]} if "security" in given else {}),
        "components": {
            "schemas": given.get("definitions") or {},
            "securitySchemes": {
                name: _scheme(one)
                for name, one in as_mapping(given.get("securityDefinitions")).items()
            },
            "parameters": {
                name: _param(param)
                for name, param in shared.items()
                if param.get("in") not in ("body", "formData")
            },
            "responses": {
                name: _response(one, kinds[1])
                for name, one in as_mapping(given.get("responses")).items()
            },
        },
    }
    moved: dict[str, Any] = _moved(made)
    return moved


def _scheme(scheme: Any) -> Any:
    """A login in the words of 3.0."""
    if as_mapping(scheme).get("type") != "basic":
        return scheme
    return {**{k: v for k, v in scheme.items() if k != "type"}, "type": "http", "scheme": "basic"}


_Kinds = tuple[Any, Any]
"""The media types that a document takes and gives, unless an operation says others."""


def _item(item: Any, shared: Mapping[str, Any], kinds: _Kinds) -> Any:
    if not isinstance(item, Mapping):
        return item
    common = [_shared(param, shared) for param in item.get("parameters") or ()]
    out: dict[str, Any] = {k: v for k, v in item.items() if k != "parameters"}
    for method in _METHODS:
        if isinstance(item.get(method), Mapping):
            out[method] = _operation(item[method], common, shared, kinds)
    return out


def _shared(param: Any, shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter; one of the document where it is a reference."""
    reference = as_mapping(param).get("$ref")
    if isinstance(reference, str) and reference.startswith("#/parameters/"):
        return as_mapping(shared.get(reference.removeprefix("#/parameters/")))
    return as_mapping(param)


def _operation(
    said: Mapping[str, Any],
    common: list[Mapping[str, Any]],
    shared: Mapping[str, Any],
    kinds: _Kinds,
) -> dict[str, Any]:
    own = [_shared(param, shared) for param in said.get("parameters") or ()]
    params = list({(each.get("in"), each.get("name")): each for each in (*common, *own)}.values())
    out = {
        k: v
        for k, v in said.items()
        if k not in ("parameters", "responses", "consumes", "produces")
    }
    out["parameters"] = [
        _param(each) for each in params if each.get("in") not in ("body", "formData")
    ]
    takes, gives = said.get("consumes") or kinds[0], said.get("produces") or kinds[1]
    body = _body(params, takes)
    if body:
        out["requestBody"] = body
    out["responses"] = {
        code: _response(one, gives) for code, one in as_mapping(said.get("responses")).items()
    }
    return out


def _param(param: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter whose type stands in a schema."""
    if "$ref" in param or "schema" in param:
        return dict(param)
    kept = {key: value for key, value in param.items() if key in _OF_A_PARAM}
    inner = {k: v for k, v in param.items() if k not in (*_OF_A_PARAM, "collectionFormat")}
    return {**kept, **style_of_2_0(param), "schema": inner}


def _body(params: list[Mapping[str, Any]], kinds: Any) -> dict[str, Any]:
    whole = next((each for each in params if each.get("in") == "body"), None)
    if whole is not None:
        content = _content(kinds, whole.get("schema") or {})
        return {"content": content, "required": bool(whole.get("required"))}
    fields = [each for each in params if each.get("in") == "formData"]
    if not fields:
        return {}
    told = ("description",)
    properties = {
        str(each.get("name")): {**_param(each)["schema"], **{k: each[k] for k in told if k in each}}
        for each in fields
    }
    needed = [str(each.get("name")) for each in fields if each.get("required")]
    listed = as_list(kinds)
    parts = "multipart/form-data"
    kind = parts if parts in listed and _FORM not in listed else _FORM
    schema = {"type": "object", "properties": properties, "required": needed}
    return {"content": {kind: {"schema": schema}}, "required": bool(needed)}


def _content(kinds: Any, schema: Any) -> dict[str, Any]:
    """A schema under its media types: JSON where that is one of them, or none is named.

    Forms are those of `formData`: many documents name them for all operations.
    """
    named = [kind for kind in as_list(kinds) if isinstance(kind, str) and not is_form(kind)]
    is_other = named and not any(map(is_json, named))
    return {kind: {"schema": schema} for kind in (named if is_other else ["application/json"])}


def _response(one: Any, kinds: Any) -> Any:
    if not isinstance(one, Mapping) or "schema" not in one:
        return one
    kept = {key: value for key, value in one.items() if key not in ("schema", "examples")}
    return {**kept, "content": _content(kinds, one["schema"])}


def _moved(node: Any) -> Any:
    """References to where things stand now; `x-nullable` is what 3.0 calls `nullable`."""
    if isinstance(node, list):
        return [_moved(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    out = {("nullable" if k == "x-nullable" else k): _moved(v) for k, v in node.items()}
    reference = out.get("$ref")
    if isinstance(reference, str):
        for was, now in _MOVED.items():
            if reference.startswith(was):
                out["$ref"] = now + reference.removeprefix(was)
    return out
