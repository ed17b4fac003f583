"""A shift as a file: both tool lists and the mapping between them.

    {"format": 1, "name": "monday", "old": {...}, "new": {...}, "mapping": {...}}

It is read by its path. From then on the shift goes by its name and a hash of the content,
`monday@1f2e3d4c`; the path is kept in the environment, so that worker processes find it again, and
a run folder keeps a copy.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.shift import Shift
from toolshift.core.tool import JSON
from toolshift.shifts.crowded import of_tools
from toolshift.shifts.files import FILES, know_files
from toolshift.shifts.release.inputs import Side, read_side, side_of
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.resolve import check_answers

FORMAT = 1
ORDER = 0  # before every other change, for it is made of the tools as they are


class ShiftFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file; every question in its mapping is answered."""

    format: int
    name: str
    old: Side
    new: Side
    mapping: Answers

    @property
    def stored_name(self) -> str:
        """The name by which results know the shift."""
        content = JSON.encode([self.old.tools, self.new.tools, self.mapping])
        return f"{self.name}@{blake2b(content, digest_size=4).hexdigest()}"

    def release(self) -> Release:
        """The change, ready to be applied."""
        return Release(self.old, self.new, self.mapping)

    def encode(self) -> bytes:
        """The file's content."""
        old, new = (
            msgspec.structs.replace(side, unread=(), requests=None, errors=None)
            for side in (self.old, self.new)
        )
        kept = msgspec.structs.replace(self, old=old, new=new)
        return msgspec.json.format(JSON.encode(kept), indent=1) + b"\n"


class _Format(msgspec.Struct):
    format: int


def check_name(name: str) -> str:
    """A name that can stand in `a:2+b:1`."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise UsageError(f"name {name!r}: letters, digits, points, - and _ only; set --name")
    return name


def _is_tool_list(raw: bytes) -> bool:
    """Whether a file has tools, and is none of the files that `shift from-diff` writes."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(document, list) or (
        isinstance(document, dict) and "tools" in document and "mapping" not in document
    )


def _tools_around(path: Path, raw: bytes) -> Shift:
    """The shift of a list of tools, among which those of a task are shown.

    It goes by the file's name and a hash of its content; a copy of it has both in its own name.
    """
    side = read_side(str(path))
    stem = check_name(path.name.removesuffix(".json").partition("@")[0])
    name = f"{stem}@{blake2b(JSON.encode(side.tools), digest_size=4).hexdigest()}"
    return of_tools(name, side.toolbox(), raw, f"{stem}.json")


def read_shift_file(path: Path) -> ShiftFile:
    """Reads the file of a shift."""
    return decode_shift_file(_content(path), str(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as fault:  # ValueError: a name that no file can have
        why = fault.strerror if isinstance(fault, OSError) else fault
        raise UsageError(f"shift {path}: the file cannot be read ({why})") from None


def decode_shift_file(raw: bytes, path: str) -> ShiftFile:
    """Reads the content of the file of a shift."""
    try:
        form = msgspec.json.decode(raw, type=_Format).format
        if form > FORMAT:
            raise UsageError(f"{path} is of a newer ToolShift (format {form}): upgrade to read it")
        found = msgspec.json.decode(raw, type=ShiftFile)
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            f"{path} is no shift ({fault}): `toolshift shift from-diff OLD NEW` writes one"
        ) from None
    check_name(found.name)
    for side in (found.old, found.new):
        if side_of(side.kind, side.origin, side.tools).hash != side.hash:
            raise UsageError(
                f"{path}: the tools of {side.origin} are not those that it was made from; make it "
                "again with `toolshift shift from-diff`"
            )
    try:
        check_answers(found.mapping, found.old.toolbox(), found.new.toolbox())
    except UsageError as wrong:
        raise UsageError(f"{path}: {wrong}") from None
    return found


_known: dict[str, Shift] = {}


def find_file_shift(name: str) -> Shift:
    """The shift of a file, by the path of the file or by the name that results know it by."""
    if name in _known:
        return _known[name]
    if "@" not in name or os.path.isfile(name):  # which a name too long for one is not
        return _take_in(Path(name))
    others = []
    for listed in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        file = Path(listed)
        if not file.is_file():
            continue
        found = _take_in(file)
        if found.name == name:
            return found
        others.append(found.name)
    stem = name.partition("@")[0]
    changed = next((other for other in others if other.partition("@")[0] == stem), "")
    if changed:
        raise UsageError(
            f"shift {name}: its file has changed, and is {changed} now. Restore it, or start a new "
            "run with what it has become"
        )
    raise UsageError(
        f"shift {name} was made from a file that is not here: name the file ({stem}.json, as "
        f"--shift), or put its path into {FILES}"
    )


def _take_in(path: Path) -> Shift:
    """Reads a file, and lets its shift be found by name."""
    raw = _content(path)
    listed = _is_tool_list(raw)
    shift = _tools_around(path, raw) if listed else as_shift(decode_shift_file(raw, str(path)))
    know_files([path])
    return _known.setdefault(shift.name, shift)


def as_shift(file: ShiftFile) -> Shift:
    """What is declared of the shift of a file, from what it changes."""
    release = file.release()
    same = {old.old == new for new, each in release.routes.items() for old in each}
    graph = bool(release.lost | release.open) or any(
        len(each) != 1 for each in release.routes.values()
    )
    paged = any(r.pages and r.pages.after for routes in release.routes.values() for r in routes)
    only_results = all(
        release.unchanged(new) or release.only_results(new) for new in release.routes
    )
    observed = not graph and only_results and same == {True}
    return Shift(
        name=file.stored_name,
        version=1,
        tier="interaction" if graph or paged else "perception",
        dimension="observation" if observed else "action",
        level=2 if graph or paged else 1,
        preserves="nothing" if release.lost else "end_state",
        order=ORDER,
        imitates=f"{file.old.origin} becomes {file.new.origin}.",
        summary=f"The change from {file.old.origin} to {file.new.origin}, exactly.",
        rule=release,
        file=file.encode(),
        severities=(2,),
    )
