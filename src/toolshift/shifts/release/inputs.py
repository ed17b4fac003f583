"""One side of a change: a list of tools, from a file or from a live server.

    read_side("tools.json")                    of MCP, OpenAI, Anthropic, Gemini; OpenAPI 2, 3
    read_side("mcp:npx -y my-server@1.2")      a server over standard input and output
    read_side("https://example.com/mcp")       a server over streamable HTTP
    read_side(".mcp.json#github")              a server by its name in the file of an MCP client
    read_side("python:my_tools")               annotated functions, as `toolshift world init` has
    read_side("git:main:tools.json")           a file as it is in a revision

Whatever it was, each tool comes as MCP lists one: `name`, `description`, `inputSchema`.
"""

from __future__ import annotations

import asyncio
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec

from toolshift.core.command_line import command
from toolshift.core.documents import read_json, read_yaml
from toolshift.core.errors import UsageError, cause_of
from toolshift.core.importing import load
from toolshift.core.installation import extra
from toolshift.core.intake import Intake, NotRead, some_unread
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.interop.client_files import server_of
from toolshift.interop.openapi import Operation, paths_read, read_openapi
from toolshift.interop.references import check_references, with_definitions
from toolshift.interop.request import Request
from toolshift.interop.schema import DATA, MANY
from toolshift.interop.schema_faults import schema_faults
from toolshift.interop.server import Server
from toolshift.interop.tools import Toolbox, from_mcp, from_openai
from toolshift.reading.pages import offers_more
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.python import PythonSource

PYTHON, GIT = "python:", "git:"
Kind = Literal["mcp", "openai", "openapi"]


class Side(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool list and what it was read from; `hash` is of the tools alone.

    `unread` has the inputs of which a part was not understood, so that tools may be missing, and
    `requests` by tool how a document says it is requested, and `errors` the values that bodies of
    errors have; None where the side is no document. They are said where the side is read, and of
    them a lock alone keeps `requests`.
    """

    kind: Kind
    origin: str
    hash: str
    tools: list[dict[str, Any]]
    unread: tuple[Intake, ...] = ()
    requests: dict[str, Request] | None = None
    errors: dict[str, tuple[str, ...]] | None = None

    def toolbox(self) -> Toolbox:
        """The tools as ours."""
        return from_mcp(self.tools)


def side_of(
    kind: Kind,
    origin: str,
    tools: list[dict[str, Any]],
    intakes: Iterable[Intake] = (),
    path: Path | None = None,
) -> Side:
    """A side of these tools."""
    if not tools:
        raise NotRead(f"{origin}: the list has no tool", Intake(origin, "tool"))
    try:
        from_mcp(tools)
    except UsageError as wrong:
        raise UsageError(f"{origin}: {wrong}") from None
    tools = [_whole(tool, origin, path) for tool in tools]
    hashed = blake2b(JSON.encode(tools), digest_size=8).hexdigest()
    return Side(kind, origin, hashed, tools, tuple(some_unread(intakes)))


def _whole(tool: dict[str, Any], origin: str, path: Path | None) -> dict[str, Any]:
    """A tool whose schemas lead to no other file."""
    found = dict(tool)
    for key in ("inputSchema", "outputSchema"):
        try:
            if key in tool:
                found[key] = with_definitions(tool[key], path)
        except UsageError as wrong:
            raise UsageError(f"{origin}: {tool['name']}, {key}: {wrong}") from None
    return found


def checked(side: Side) -> Side:
    """The side, with tools of which a part of a schema is none among its `unread`.

    Where the arguments are no schema, or a reference leads to nothing, it raises `UsageError`.
    """
    intake = Intake(side.origin, "tool")
    for tool in side.tools:
        for key in ("inputSchema", "outputSchema"):
            if side.kind != "openapi":  # whose references are followed when it is read
                _check_schema(tool, key, side.origin)
        faults = [
            f"{key} {place}: {why}"
            for key in ("inputSchema", "outputSchema")
            if tool.get(key) is not None
            for place, why in schema_faults(tool[key])
        ]
        intake = intake.missed(f"tool {tool['name']}", faults[0]) if faults else intake.took()
    return msgspec.structs.replace(side, unread=(*side.unread, *some_unread([intake])))


def _check_schema(tool: Mapping[str, Any], key: str, origin: str) -> None:
    """Checks what the parameters of a tool are read from, and all references."""
    schema, place = tool.get(key), f"{origin}: {tool['name']}, {key}"
    if key == "inputSchema" and schema is not None:
        is_read = isinstance(schema, Mapping)
        if is_read and not isinstance(schema.get("properties", {}), Mapping):
            is_read, place = False, f"{place} #/properties"
        if not is_read:
            raise UsageError(f"{place}: it is no object, so the parameters cannot be read")
    try:
        check_references(schema)
    except UsageError as wrong:
        raise UsageError(f"{place}: {wrong}") from None


def read_side(text: str, headers: Mapping[str, str] = {}) -> Side:
    """Reads a tool list; see the module. `headers` go to an http address."""
    return checked(_read(text, headers))


def _read(text: str, headers: Mapping[str, str]) -> Side:
    if text.startswith(PYTHON):
        return _from_python(text.removeprefix(PYTHON), Path.cwd())
    if text.startswith(GIT):
        return _from_git(text)
    server = server_of(text)
    if server is None:
        return _from_file(Path(text))
    if server.url:
        server = server.given(headers)
    return side_of("mcp", server.origin, _listed(server))


def _from_python(reference: str, folder: Path) -> Side:
    """The functions of a module."""
    origin = f"{PYTHON}{reference}"
    file = WorldFile(
        folder / "tools.py", origin, "", {"python": reference}, None, (), "", lambda place: origin
    )
    return side_of("mcp", origin, PythonSource(file, called=False).listed)


def _from_git(text: str) -> Side:
    """A file as it is in a revision, with the files beside it, to which it may refer."""
    revision, colon, name = text.removeprefix(GIT).partition(":")
    if not colon or not revision or not name or revision.startswith("-"):
        raise UsageError(f"{text!r}: write it as git:REVISION:PATH")
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise UsageError(f"{text!r}: the path is from the folder that you are in, and within it")
    with TemporaryDirectory() as folder:
        archive = ["git", "archive", "--format=tar", revision, "--", str(path.parent)]
        try:
            packed = subprocess.run(archive, capture_output=True, check=True).stdout
        except FileNotFoundError:
            raise UsageError(f"{text}: git is not installed") from None
        except subprocess.CalledProcessError as fault:
            why = fault.stderr.decode(errors="replace").strip().splitlines()
            raise UsageError(f"{text}: git says: {why[0] if why else 'nothing'}") from None
        with tarfile.open(fileobj=BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        inner = Path(folder) / path
        if not inner.is_file():
            raise UsageError(f"{text}: {revision} has no such file")
        side = _from_file(inner)
    return msgspec.structs.replace(side, origin=f"{path.name} of {revision}")


def _listed(server: Server) -> list[dict[str, Any]]:
    try:
        client = load("toolshift.interop.mcp_client")
    except ImportError:
        raise UsageError(f"live servers need an extra: {extra('connect')}") from None
    target = client.Target.of(server)
    try:
        listed: list[dict[str, Any]] = asyncio.run(client.list_tools(target))
        return listed
    except BaseExceptionGroup as several:
        fault = cause_of(several)
        if isinstance(fault, UsageError | KeyboardInterrupt):
            raise fault from None
        raise UsageError(f"{target.name} did not list its tools: {fault}") from None


def _from_file(path: Path) -> Side:
    if path.suffix == ".py":
        return _from_python(path.stem, path.absolute().parent)
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise UsageError(
            f"{path}: cannot be read ({fault.strerror}). Name a file, `mcp:COMMAND ...` for a "
            "server that is started, or its http address"
        ) from None
    document = _parsed(raw, path)
    if isinstance(document, Mapping) and ("openapi" in document or "swagger" in document):
        operations, intake = _from_openapi(document, path)
        side = side_of("openapi", path.name, [one.shown for one in operations], [intake])
        requests = {one.shown["name"]: one.request for one in operations}
        errors = {one.shown["name"]: one.errors for one in operations}
        return msgspec.structs.replace(side, requests=requests, errors=errors)
    listed = document.get("tools") if isinstance(document, Mapping) else document
    listed = _of_gemini(document) or _of_gemini(listed) or listed
    if _is_lock(document):
        raise UsageError(
            f"{path} is a lock: `{command('verify', path, 'SOURCE')}` compares it. Here name the "
            "tools themselves: a list, an OpenAPI document or a server"
        )
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise UsageError(
            f'{path}: neither a list of tools, nor {{"tools": [...]}}, nor an OpenAPI document'
        )
    if isinstance(document, Mapping) and _is_a_page(document):
        raise UsageError(
            f"{path}: this is one page of a list, for it says that there is more: put the tools of "
            "all pages into one list, or name the server, whose list is read to its end"
        )
    if listed and all("function" in one for one in listed):
        return side_of("openai", path.name, list(map(_from_openai, _functions(listed))), path=path)
    return side_of("mcp", path.name, list(map(_with_inputs, listed)), path=path)


def _is_a_page(document: Mapping[str, Any]) -> bool:
    """Whether what stands beside the tools says that there are more of them."""
    beside = {key: value for key, value in document.items() if key != "tools"}
    return offers_more(as_json(beside))


_DECLARED = ("functionDeclarations", "function_declarations")


def _of_gemini(document: Any) -> list[dict[str, Any]]:
    """The function declarations of Gemini's tools; none where it has none."""
    groups = document if isinstance(document, list) else [document]
    found = [
        one
        for group in groups
        for key in _DECLARED
        if isinstance(group, Mapping) and isinstance(group.get(key), list)
        for one in group[key]
        if isinstance(one, Mapping)
    ]
    return [_from_gemini(one) for one in found]


def _from_gemini(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration as MCP lists it; the types of its `parameters` are in capital letters."""
    kept = {key: declared[key] for key in ("name", "description") if key in declared}
    pairs = (("inputSchema", "parameters"), ("outputSchema", "response"))
    for ours, theirs in pairs:
        schema = declared.get(f"{theirs}JsonSchema", declared.get(f"{theirs}_json_schema"))
        schema = _in_small_letters(declared.get(theirs)) if schema is None else schema
        if schema or ours == "inputSchema":
            kept[ours] = schema or {"type": "object"}
    return kept


def _in_small_letters(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_small_letters(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: value.lower()
        if key == "type" and isinstance(value, str)
        else value
        if key in DATA
        else {name: _in_small_letters(one) for name, one in value.items()}
        if key in MANY and isinstance(value, Mapping)
        else _in_small_letters(value)
        for key, value in schema.items()
        if key not in ("propertyOrdering", "property_ordering")
    }


def _with_inputs(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as MCP lists it; Anthropic and OpenAI's Responses have its schema elsewhere."""
    key = next((key for key in ("input_schema", "parameters") if key in tool), "")
    if not key or "inputSchema" in tool:
        return dict(tool)
    rest = {name: value for name, value in tool.items() if name not in (key, "type")}
    return {**rest, "inputSchema": tool[key] or {"type": "object"}}


def _is_lock(document: Any) -> bool:
    """Whether `toolshift lock` has written it."""
    return isinstance(document, Mapping) and {"format", "hash", "tools"} <= document.keys()


def _functions(listed: list[Any]) -> list[Mapping[str, Any]]:
    """OpenAI tools, once it is plain that they are."""
    from_openai(listed)
    return [one["function"] for one in listed]


def _from_openai(function: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in function.items() if key != "parameters"}
    return {**rest, "inputSchema": function.get("parameters") or {"type": "object"}}


def _from_openapi(document: Mapping[str, Any], path: Path) -> tuple[list[Operation], Intake]:
    """The operations of a document, and how many of its paths could be read."""
    try:
        operations = read_openapi(document, path)
    except NotRead as wrong:
        raise NotRead(f"{path}: {wrong}", wrong.intake) from None
    except UsageError as wrong:
        raise UsageError(f"{path}: {wrong}") from None
    return operations, msgspec.structs.replace(paths_read(document, path), source=path.name)


def _parsed(raw: bytes, path: Path) -> Any:
    read = read_yaml if path.suffix in (".yaml", ".yml") else read_json
    return read(raw, str(path))
