"""Reads lock files of other programs; each holds some parts of a tool.

tool                 file                    holds
mcp-diff             mcp-schema.lock         name, description, inputSchema
mcpdrift             any name                every part
mcplock              ~/.mcplock/snapshots/   name, description, inputSchema, annotations
mcp-tool-pin-check   any name                as mcplock, and outputSchema
mcp-warden           warden.lock             hashes only, one a part

Their own hashes are not checked, except that those of mcp-warden are what is compared. A part that
a lock does not hold is no drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.core.canonical import canonical_hash
from toolshift.core.errors import UsageError

ALL_PARTS: tuple[str, ...] = ()
_NAMED = ("name", "description", "inputSchema")


class ForeignLock(msgspec.Struct, frozen=True):
    """Tools in the lock of another tool.

    Attributes:
        tool: that wrote it.
        documents: as an MCP server lists them.
        recorded: the keys of a tool that it holds; every key where empty.
    """

    tool: str
    documents: tuple[dict[str, Any], ...]
    recorded: tuple[str, ...] = ALL_PARTS


class HashLock(msgspec.Struct, frozen=True):
    """A lock that holds only hashes.

    Attributes:
        origin: how messages name it.
        hashes: of each tool, by its name: the hash of each part that has one.
    """

    origin: str
    hashes: dict[str, dict[str, str]]

    def moved(self, tools: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
        """The parts of each tool whose hash changed."""
        changed = {}
        for tool in tools:
            locked = self.hashes.get(str(tool.get("name")), {})
            parts = [
                part
                for part, known in locked.items()
                if canonical_hash(_ABSENT[part] if tool.get(part) is None else tool[part]) != known
            ]
            if parts:
                changed[str(tool["name"])] = parts
        return changed


_ABSENT: Mapping[str, Any] = {
    "description": "",
    "inputSchema": {},
    "annotations": None,
    "outputSchema": None,
}
"""What mcp-warden hashes if a tool lacks a part."""


def recorded_parts(tool: Mapping[str, Any], recorded: Sequence[str]) -> dict[str, Any]:
    """The parts of a tool that a lock would hold."""
    if not recorded:
        return dict(tool)
    return {
        key: value for key, value in tool.items() if key in recorded and value not in (None, "")
    }


def read_foreign(document: Any, name: str) -> ForeignLock | HashLock | None:
    """Reads the lock of another tool."""
    if not isinstance(document, Mapping):
        return None
    for keys, read in _READERS:
        if all(key in document for key in keys):
            try:
                return read(document, name)
            except (KeyError, TypeError, AttributeError, ValueError) as fault:
                raise UsageError(
                    f"{name}: looks like another program's lock, but cannot be read ({fault!r})"
                ) from None
    return None


# -- one reader a tool -----------------------------------------------------------------------------


def _foreign(
    tool: str, documents: Iterable[Mapping[str, Any]], recorded: tuple[str, ...] = ALL_PARTS
) -> ForeignLock:
    return ForeignLock(tool, tuple(recorded_parts(one, recorded) for one in documents), recorded)


def _mcp_diff(document: Mapping[str, Any], name: str) -> ForeignLock:
    return _foreign("mcp-diff", document["tools"], _NAMED)


def _mcpdrift(document: Mapping[str, Any], name: str) -> ForeignLock:
    tools = document["surface"]["tools"]
    return _foreign("mcpdrift", ({"name": key, **tool} for key, tool in tools.items()))


def _mcplock(document: Mapping[str, Any], name: str) -> ForeignLock:
    tools = (
        {
            "name": one["tool_name"],
            "description": one["raw_description"],
            "inputSchema": one["raw_schema"],
            "annotations": one["raw_annotations"],
        }
        for one in document["tools"].values()
    )
    return _foreign("mcplock", tools, (*_NAMED, "annotations"))


def _pin_check(document: Mapping[str, Any], name: str) -> ForeignLock:
    tools = (one["definition"] for one in document["tools"])
    return _foreign("mcp-tool-pin-check", tools, (*_NAMED, "annotations", "outputSchema"))


def _warden(document: Mapping[str, Any], name: str) -> HashLock:
    keys = {
        "description": "description_hash",
        "inputSchema": "input_schema_hash",
        "annotations": "annotations_hash",
        "outputSchema": "output_schema_hash",
    }
    hashes = {
        str(one["name"]): {part: one[key] for part, key in keys.items() if one.get(key)}
        for one in document["tools"]
    }
    return HashLock(f"{name} (mcp-warden)", hashes)


def _contract(document: Mapping[str, Any], name: str) -> None:
    if any("arguments" in one for one in document["tools"]):
        raise UsageError(
            f"{name} was made by mcp-contract, which stores a summary of each tool but no "
            "schema: lock the tools with `toolshift lock`"
        )


_READERS: tuple[
    tuple[tuple[str, ...], Callable[[Mapping[str, Any], str], ForeignLock | HashLock | None]], ...
] = (
    (("warden_version", "tools"), _warden),
    (("mcpdrift", "surface"), _mcpdrift),
    (("hash_model_version", "tools"), _mcplock),
    (("lockfile_version", "tools"), _pin_check),
    (("version", "created_at", "tools"), _mcp_diff),
    (("format", "server", "tools"), _contract),
)
"""The keys that identify a format, and its reader."""
