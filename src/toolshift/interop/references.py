"""References of a document to other files: read, and put into the document itself.

    with_files(document, Path("api.yaml"))       an OpenAPI document that stands on its own
    with_definitions(schema, Path("tools.json")) a schema of a tool list that stands on its own

Only local files are read: JSON or YAML, below the root of the repository that the document is in,
or where it is in none, below the folder that its own folder is in. Hidden files are not read, for
they may hold secrets. What cannot be read is an error that names it, so that nothing is dropped in
silence. Without a reference that leads out of it a document comes back as it is, the same object.

What no tool is made of is not looked into: examples, links, callbacks and extensions (`x-`).
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from toolshift.core.documents import read_json, read_yaml
from toolshift.core.errors import UsageError
from toolshift.core.values import as_list, as_mapping
from toolshift.interop.schema import DATA, MANY, child_of, look_up, unescaped

INSIDE = "x-referenced"
"""Where an OpenAPI document then has what its references lead to."""
MAX_FILES = 1000
MAX_BYTES = 100_000_000
"""Bytes of all the files that the references of one document may lead to."""
MAX_TARGETS = 50_000
MAX_HOPS = 50
"""References that may follow one another before there is anything else."""
_KNOWN = ("http://json-schema.org/", "https://json-schema.org/")
"""Addresses whose content is fixed by their name: the schemas of JSON Schema itself."""

_METHODS = ("get", "put", "post", "delete", "patch")
_PARTS: Mapping[str, Mapping[str, str]] = {
    "document": {"paths": "paths"},
    "paths": {"*": "item"},
    "item": {"parameters": "parameters", **dict.fromkeys(_METHODS, "operation")},
    "operation": {"parameters": "parameters", "requestBody": "body", "responses": "responses"},
    "parameters": {"*": "parameter"},
    "parameter": {"schema": "schema", "content": "content"},
    "body": {"content": "content"},
    "responses": {"*": "response"},
    "response": {"content": "content"},
    "content": {"*": "media"},
    "media": {"schema": "schema"},
    "schemas": {"*": "schema"},
}
"""What the parts of an OpenAPI document are, as far as tools are made of them."""
_FOLLOWED = ("item", "parameter", "body", "response", "schema")
"""Parts in whose place a reference may stand; in that of others its content is written out."""
_NO_SCHEMA = (*DATA, "example", "externalDocs", "xml")
_NAMING = ("$id", "$anchor", "$dynamicAnchor", "$schema")

_BUNDLE = "or bundle the document into one file first"


def with_files(document: Mapping[str, Any], path: Path | None) -> Mapping[str, Any]:
    """An OpenAPI document with what its references to other files lead to."""
    reader = _Reader(_File(document, path), INSIDE, in_place=False)
    written = reader.all(document, "document")
    return {**written, INSIDE: reader.targets} if reader.touched else document


def with_definitions(schema: Any, path: Path | None) -> Any:
    """A JSON Schema with what its references to other files lead to among its definitions."""
    if not isinstance(schema, Mapping):
        return schema
    reader = _Reader(_File(schema, path), "$defs", in_place=True)
    written = reader.all(schema, "schema")
    if not reader.touched:
        return schema
    own = written.get("$defs")
    return {**written, "$defs": {**as_mapping(own), **reader.targets}}


def check_references(schema: Any) -> None:
    """Raises `UsageError` where a reference of a JSON Schema within itself leads to nothing."""
    if isinstance(schema, Mapping):
        _Reader(_File(schema, None), "$defs", in_place=True, checks=True).all(schema, "schema")


# -- files -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class _File:
    """A document: the one that is read, or one that a reference leads to."""

    content: Any
    path: Path | None

    @cached_property
    def named(self) -> dict[str, Any]:
        """The parts that an `$id` or an anchor names; anchors begin with `#`."""
        found: dict[str, Any] = {}
        for node in _mappings(self.content):
            own = node.get("$id")
            if isinstance(own, str):
                found.setdefault(own.rstrip("#"), node)
                found.setdefault(urljoin(self.base, own).rstrip("#"), node)
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(key), str):
                    found.setdefault(f"#{node[key]}", node)
        return found

    @property
    def base(self) -> str:
        """The address that the document gives itself; "" where it gives none."""
        own = self.content.get("$id") if isinstance(self.content, Mapping) else None
        return own if isinstance(own, str) else ""


def _mappings(content: Any) -> Iterator[Mapping[str, Any]]:
    """All mappings in a document, each once."""
    seen: set[int] = set()
    left = [content]
    while left:
        node = left.pop()
        if not isinstance(node, Mapping | list) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Mapping):
            yield node
        left += reversed(list(node.values()) if isinstance(node, Mapping) else node)


def _root_of(path: Path) -> Path:
    """The folder below which the references of a document may lead (see the module)."""
    folder = path.absolute().parent.resolve()
    repository = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if repository is not None:
        return repository
    above = folder.parent
    return folder if above == above.parent or folder == Path.home() else above


def _is_hidden(path: Path, root: Path, folder: Path) -> bool:
    """Whether a file lies in a hidden folder that the document is not in itself, or is hidden."""
    own = set(folder.relative_to(root).parts)
    return any(part.startswith(".") and part not in own for part in path.relative_to(root).parts)


class _Files:
    """The files that references lead to, each read once."""

    def __init__(self, main: _File, whole: bool) -> None:
        self._read: dict[Path, _File] = {}
        self._bytes = 0
        if main.path is not None:
            self.root = _root_of(main.path)
            self.folder = main.path.absolute().parent.resolve()
            if whole:
                self._read[self.folder / main.path.name] = main

    def __iter__(self) -> Iterator[_File]:
        return iter(self._read.values())

    def open(self, part: str, above: _File) -> _File:
        """The file that a reference names, seen from the file that has it."""
        path = self._path(part, above)
        if path in self._read:
            return self._read[path]
        if not path.is_file():
            raise UsageError(f"there is no file {self._said(path)}")
        if len(self._read) >= MAX_FILES:
            raise UsageError(f"the document refers to more than {MAX_FILES} files")
        try:
            self._bytes += path.stat().st_size
            if self._bytes > MAX_BYTES:
                raise UsageError(f"the document leads to more than {MAX_BYTES:,} bytes")
            raw = path.read_bytes()
        except OSError as fault:
            raise UsageError(f"{self._said(path)} cannot be read ({fault.strerror})") from None
        read = read_json if path.suffix == ".json" else read_yaml
        content = read(raw, self._said(path))
        if not isinstance(content, Mapping | list):
            raise UsageError(f"{self._said(path)} contains no JSON or YAML object")
        found = self._read[path] = _File(content, path)
        return found

    def _path(self, part: str, above: _File) -> Path:
        url = urlsplit(part)
        if url.scheme in ("http", "https"):
            raise UsageError(
                "nothing is fetched over the network: save it next to the document and refer to "
                f"that file, {_BUNDLE}"
            )
        if url.scheme and url.scheme != "file" and len(url.scheme) > 1:
            raise UsageError(f"{url.scheme}: is not the address of a file: name a file, {_BUNDLE}")
        if above.path is None:
            raise UsageError(
                "its document was not read from a file, so there is no folder to look in: save "
                f"the document as a file next to the file that it refers to, {_BUNDLE}"
            )
        named = url2pathname(url.path) if url.scheme == "file" else unquote(part)
        if "\0" in named:
            raise UsageError("this is not the name of a file")
        path = (above.path.absolute().parent / named).resolve()
        if not path.is_relative_to(self.root) or _is_hidden(path, self.root, self.folder):
            raise UsageError(
                f"only files below {self.root} are read, and no hidden files: copy it next to "
                f"the document, {_BUNDLE}"
            )
        return path

    def _said(self, path: Path) -> str:
        return os.path.relpath(path, self.folder)


# -- references ------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Reader:
    """Writes a document anew, with references that lead into it alone.

    Attributes:
        main: the document.
        under: the key of the document under which the targets will stand.
        in_place: references from the document into itself stay as they are.
        checks: they are followed all the same, to see whether they lead to anything.
        targets: what references lead to, by the names that it is given.
        touched: whether any reference had to be written otherwise.
    """

    main: _File
    under: str
    in_place: bool
    checks: bool = False
    targets: dict[str, Any] = field(default_factory=dict)
    touched: bool = False

    def __post_init__(self) -> None:
        self._files = _Files(self.main, whole=not self.in_place)
        self._names: dict[tuple[int, str], str] = {}
        self._known: dict[tuple[int, str], Any] = {}
        self._left: deque[Callable[[], None]] = deque()

    def all(self, node: Any, kind: str) -> Any:
        """The document, once all that its references lead to is written, and so on from there."""
        try:
            written = self.write(node, self.main, kind, "#")
            while self._left:
                self._left.popleft()()
        except RecursionError:
            raise UsageError("the document is nested too deeply") from None
        return written

    def write(self, node: Any, at: _File, kind: str, spot: str, hops: int = 0) -> Any:
        """A part as it stands in the new document."""
        if not kind or not isinstance(node, Mapping | list):
            return node
        known = id(node), kind
        if known not in self._known:
            self._known[known] = self._written(node, at, kind, spot, hops)
        return self._known[known]

    def _written(self, node: Any, at: _File, kind: str, spot: str, hops: int) -> Any:
        if isinstance(node, list):
            inner = _PARTS[kind].get("*", "") if kind in _PARTS else kind
            return [
                self.write(one, at, inner, f"{spot}/{place}", hops)
                for place, one in enumerate(node)
            ]
        key = self._key(node, at, kind)
        reference = node.get(key)
        out: dict[str, Any] = {
            name: self.write(value, at, _inside(kind, name), _below(spot, name), hops)
            for name, value in node.items()
            if not (kind == "schema" and at is not self.main and name in _NAMING)
        }
        if kind == "schema" and isinstance(node.get("discriminator"), Mapping):
            out["discriminator"] = self._mapped(node, at, spot)
        if not isinstance(reference, str):
            return out
        if kind in _FOLLOWED:
            link = self._link(reference, at, kind, spot)
            if link != reference:
                out = {name: value for name, value in out.items() if name != key}
                out["$ref"] = link
            return out
        return self._spliced(reference, out, at, kind, spot, hops)

    def _key(self, node: Mapping[str, Any], at: _File, kind: str) -> str:
        """The key under which a part may have its reference."""
        more = ("$dynamicRef", "$recursiveRef") if kind == "schema" else ()
        known = more if at is not self.main else more[:1]
        return next((key for key in ("$ref", *known) if key in node), "$ref")

    def _spliced(
        self, reference: str, out: dict[str, Any], at: _File, kind: str, spot: str, hops: int
    ) -> Any:
        """What a reference leads to, in its place, with what stands beside it."""
        if hops > MAX_HOPS:
            _refuse(reference, at, self.main, spot, f"more than {MAX_HOPS} follow one another")
        file, node = self._found(reference, at, spot)
        self.touched = True
        written = self.write(node, file, kind, spot, hops + 1)
        beside = {name: value for name, value in out.items() if name != "$ref"}
        if isinstance(written, Mapping):
            return {**written, **beside}
        if isinstance(written, list) and not beside:
            return written
        return _refuse(reference, at, self.main, spot, "it leads to no object or list")

    def _mapped(self, node: Mapping[str, Any], at: _File, spot: str) -> Any:
        """A discriminator; the files that its mapping names and that nothing else does are read."""
        told = node["discriminator"]
        mapping = told.get("mapping")
        if not isinstance(mapping, Mapping):
            return told
        parts = [one for key in ("oneOf", "anyOf", "allOf") for one in as_list(node.get(key))]
        listed = {one.get("$ref") for one in parts if isinstance(one, Mapping)}
        place = f"{spot}/discriminator/mapping"
        return {
            **told,
            "mapping": {
                key: {"$ref": self._link(value, at, "schema", _below(place, key))}
                if value not in listed and self._leads_out(value, at)
                else value
                for key, value in mapping.items()
            },
        }

    def _leads_out(self, value: Any, at: _File) -> bool:
        """Whether a value of a mapping is a reference to a file, and no name of a schema."""
        if not isinstance(value, str) or not value:
            return False
        if value.startswith("#"):
            return at is not self.main
        named = look_up(self.main.content, f"#/components/schemas/{value}")
        return named is None and bool(re.search(r"[/#]|\.(json|ya?ml)$", value))

    def _link(self, reference: str, at: _File, kind: str, spot: str) -> str:
        """How a reference is written in the new document; its target is put down to be written."""
        local = at is self.main and reference.startswith("#")
        if (local and self.in_place) or reference.startswith(_KNOWN):
            if local and self.checks:
                self._found(reference, at, spot)
            return reference
        file, node = self._found(reference, at, spot)
        if not isinstance(node, Mapping) and not (kind == "schema" and isinstance(node, bool)):
            _refuse(reference, at, self.main, spot, "it leads to no object")
        if not (local and look_up(self.main.content, reference) is node):
            self.touched = True
        known = id(node), kind
        if known not in self._names:
            if len(self._names) >= MAX_TARGETS:
                _refuse(reference, at, self.main, spot, f"there are more than {MAX_TARGETS:,}")
            name = self._names[known] = self._name(reference)
            self.targets[name] = {}

            def later() -> None:
                self.targets[name] = self.write(node, file, kind, spot)

            self._left.append(later)
        return f"#/{self.under}/{self._names[known]}"

    def _name(self, reference: str) -> str:
        """A name for a target; one that tells what it is where clients will read it."""
        if not self.in_place:
            return str(len(self.targets))
        part, _, fragment = reference.partition("#")
        last = unescaped(fragment).rpartition("/")[2] or Path(unquote(part)).stem
        stem = re.sub(r"[^\w.-]+", "_", last) or "referenced"
        own = self.main.content.get("$defs")
        taken = {*self.targets, *(own if isinstance(own, Mapping) else ())}
        return next(
            name for n in count(1) if (name := stem if n == 1 else f"{stem}_{n}") not in taken
        )

    # -- what a reference leads to -----------------------------------------------------------------

    def _found(self, reference: str, at: _File, spot: str, hops: int = 0) -> tuple[_File, Any]:
        """The file and the part of it that a reference leads to."""
        if hops > MAX_HOPS:
            _refuse(reference, at, self.main, spot, f"more than {MAX_HOPS} follow one another")
        part, _, fragment = reference.partition("#")
        try:
            file, place = self._opened(part, at)
        except UsageError as wrong:
            _refuse(reference, at, self.main, spot, str(wrong))
        if fragment.startswith("/"):
            file, place = self._at(fragment, file, place, (reference, at, spot), hops)
        elif fragment:
            place = file.named.get(f"#{unquote(fragment)}")
        if place is None:
            _refuse(reference, at, self.main, spot, "there is nothing at that place")
        return file, place

    def _opened(self, part: str, at: _File) -> tuple[_File, Any]:
        if not part:
            return at, at.content
        address = urljoin(at.base, part)
        if part in at.named or address in at.named:
            return at, at.named.get(part, at.named.get(address))
        if urlsplit(address).scheme:  # a relative `$id` says nothing outside of its own file
            for file in self._files:
                if address in file.named:
                    return file, file.named[address]
        file = self._files.open(part, at)
        return file, file.content

    def _at(
        self, pointer: str, file: _File, place: Any, asked: tuple[str, _File, str], hops: int
    ) -> tuple[_File, Any]:
        """What a pointer leads to; on its way it may cross other references."""
        for part in pointer[1:].split("/"):
            inner = child_of(place, unescaped(part))
            if inner is None and isinstance(place, Mapping) and isinstance(place.get("$ref"), str):
                hops += 1
                file, place = self._found(place["$ref"], file, asked[2], hops)
                inner = child_of(place, unescaped(part))
            place = inner
        return file, place


def _inside(kind: str, key: Any) -> str:
    """What the value of a key is, in a part of some kind; "" where no tool is made of it."""
    extension = str(key).startswith("x-")
    if kind != "schema":
        parts = _PARTS[kind]
        return parts.get(key, "" if extension and kind != "schemas" else parts.get("*", ""))
    if key in MANY:
        return "schemas"
    return "" if extension or key in _NO_SCHEMA or key == "discriminator" else "schema"


def _below(spot: str, key: Any) -> str:
    return f"{spot}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _refuse(reference: str, at: _File, main: _File, spot: str, why: str) -> NoReturn:
    """Says which reference cannot be followed, where it stands, and why."""
    inside = f" in {at.path.name}" if at is not main and at.path is not None else ""
    raise UsageError(f"the reference {reference!r}{inside} ({spot}) cannot be followed: {why}")
