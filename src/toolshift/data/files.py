"""A file of conversations, augmented into another: streamed, resumable, whole or not at all.

The output grows as a hidden file beside its place, with a note of how far it is; it takes its place
when it is complete. An interrupted run resumes from the note.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from toolshift.core.errors import Resumable, UsageError
from toolshift.core.files import PACKED, naming, opened, sound, write
from toolshift.core.intake import Intake, NotRead, Unread, counted, no_text
from toolshift.core.text import one_line
from toolshift.core.tool import JSON
from toolshift.data.augment import Made, Recipe, augmented, check_recipe, format_of
from toolshift.data.augment_quick import Quick
from toolshift.data.conversation import Row, RowFault
from toolshift.data.formats import read_as
from toolshift.data.parquet import CHUNK, count_of, draft_line, lines_of, write_like, write_typed
from toolshift.data.tables import TABLES, is_table, table_lines
from toolshift.data.tools import Lent, ToolIndex
from toolshift.data.trace_files import conversation_lines, is_trace
from toolshift.data.trainers import check_suffix, said_of, trainer_of
from toolshift.runs.pool import Executor, open_pool

EXAMPLES = 3
MAX_FAULTS = 1000
Watch = Callable[[int, int], None]


class Tally(msgspec.Struct):
    """What became of the rows of a file so far.

    Attributes:
        rows: read, that could be.
        shifted: of these, by what they went through.
        written: rows of the output.
        same: rows that stay as they are, to the byte where both files are JSON lines.
        drawn: of these, those that alpha asks to be shifted.
        skipped: why shifts were not applicable, by shift and reason.
        unshifted: the same of those drawn rows alone to which none was.
        untried: of the drawn rows, those that have nothing to shift, by reason.
        left: turns that a trainer cannot learn rightly, and are in no row as learned, by reason.
        lost: what a trainer has no place for, by what it is.
        faults: rows that could not be read: line and reason, the first of them.
        wrong: how many could not be read.
        examples: numbers of lines of the first rows that were shifted.
        formats: rows by format.
        as_text: columns of Parquet that are JSON in a string, as no type holds their values.
    """

    rows: int = 0
    shifted: dict[str, int] = {}
    written: int = 0
    same: int = 0
    skipped: dict[str, int] = {}
    faults: list[tuple[int, str]] = []
    wrong: int = 0
    examples: list[tuple[int, str, str]] = []
    formats: dict[str, int] = {}
    as_text: list[str] = []
    drawn: int = 0
    untried: dict[str, int] = {}
    left: dict[str, int] = {}
    lost: dict[str, int] = {}
    unshifted: dict[str, int] = {}


class _Note(msgspec.Struct):
    """How far an interrupted run is."""

    key: str
    lines: int
    size: int
    tally: Tally


@dataclass(frozen=True)
class Job:
    """A file to augment.

    Attributes:
        source: JSON lines, one list in a `.json` file, compressed or not, or a table.
        out: the like; a `.json` file is one list.
        recipe: what is done.
        strict: whether the first row that cannot be read ends it.
        workers: processes.
        executor: where they are: on this machine, or on a cluster of Ray.
    """

    source: Path
    out: Path
    recipe: Recipe
    strict: bool = False
    workers: int = 1
    executor: Executor = "process"


def check_job(job: Job) -> None:
    """Checks what can be checked before the work."""
    check_recipe(job.recipe)
    check_source(job.source)
    if _kind(job.out) not in (".jsonl", ".json", ".parquet") or job.out.suffix == ".xz":
        raise UsageError(f"--out {job.out}: name a .jsonl, .jsonl.gz or .parquet file")
    if job.recipe.trainer:
        check_suffix(job.out, trainer_of(job.recipe.trainer))
    if job.out.exists() and job.out.samefile(job.source):
        raise UsageError(f"--out {job.out} is the data itself: name another file")
    if not job.out.parent.is_dir():
        raise UsageError(f"--out {job.out}: there is no folder {job.out.parent}")


def check_source(path: Path) -> None:
    """Checks that there is such a file of rows."""
    if not path.is_file():
        what = "no plain file: save what comes from there in one" if path.exists() else "not there"
        raise UsageError(f"{path} is {'a folder: name a file in it' if path.is_dir() else what}")
    if _kind(path) not in (".jsonl", ".json", *TABLES):
        raise UsageError(f"{path}: name a .jsonl, .jsonl.gz, .parquet or .csv file")


def _kind(path: Path) -> str:
    return path.with_suffix("").suffix if path.suffix in PACKED else path.suffix


def augment_file(job: Job, watch: Watch = lambda done, total: None) -> Tally:
    """Augments a file."""
    check_job(job)
    functions = _functions_of(job.source, job.recipe)
    draft = job.out.with_name(f".{job.out.name}.new")
    note = job.out.with_name(f".{job.out.name}.note")
    begun = _begun(job, draft, note)
    tally, done = begun.tally, begun.lines
    total = _count(job.source)
    with naming(job.out), draft.open("r+b" if begun.size else "wb") as file:
        file.truncate(begun.size)
        file.seek(begun.size)
        for chunk in _chunks_done(job, functions, done):
            _check_strict(job, chunk, (draft, note))
            _gather(tally, chunk)
            file.write(b"".join(chunk.numbered if _in_columns(job) else chunk.out))
            done += chunk.lines
            file.flush()
            os.fsync(file.fileno())
            write(note, JSON.encode(_Note(_key(job), done, file.tell(), tally)))
            watch(done, total)
    if not tally.rows:
        note.unlink(missing_ok=True)
        draft.unlink()
        raise NotRead(
            none_left(job.source, tally.faults, "could be read"), intake_of(job.source, tally)
        )
    nothing = nothing_shifted(job.source, job.recipe, tally) or _nothing_left(job, tally)
    if nothing:
        for path in (note, draft):
            path.unlink(missing_ok=True)
        raise NotRead(f"{job.source}: {nothing} Nothing was written", intake_of(job.source, tally))
    with naming(job.out):
        tally.as_text = _finish(job, draft)
    note.unlink(missing_ok=True)
    return tally


def written_for(job: Job, tally: Tally) -> str:
    """Says for which trainer a file was written, and how it learns; "" where it is for none."""
    if not job.recipe.trainer:
        return ""
    return said_of(trainer_of(job.recipe.trainer), tally.written, tally.left, tally.lost)


def none_left(source: Path, faults: Iterable[tuple[int, str]], what: str) -> str:
    """Says why nothing can be done with a file."""
    word = place_word(source)
    first = "".join(f"; {word} {place}: {why}" for place, why in islice(faults, 3))
    return f"{source}: none of its rows {what}{first}" if first else f"{source} holds no rows"


MAX_REASONS = 5


def nothing_shifted(source: Path, recipe: Recipe, tally: Tally) -> str:
    """Says why a file stays as it is though it was to be shifted."""
    if tally.shifted or not recipe.alpha:
        return ""
    if not tally.drawn:
        return (
            f"--alpha {recipe.alpha:g} of {counted(tally.rows, 'conversation')} is none: raise "
            "--alpha, or give more data."
        )
    shifts = ", ".join(recipe.shifts)
    text = f"none of its {counted(tally.rows, 'conversation')} was shifted by {shifts}."
    for reasons, what in (
        (tally.untried, "Rows with nothing to shift"),
        (tally.skipped, "Shifts that do not apply"),
    ):
        most = Counter(reasons).most_common(MAX_REASONS)
        listed = "; ".join(f"{why} ({count:,})" for why, count in most)
        text += f" {what}: {listed}." if listed else ""
    unread = intake_of(source, tally)
    return text + (f" {unread.missing()}." if unread.unread else "")


def _nothing_left(job: Job, tally: Tally) -> str:
    """Says why a trainer learns nothing of a file."""
    if tally.written or not job.recipe.trainer:
        return ""
    most = Counter(tally.left).most_common(MAX_REASONS)
    listed = "; ".join(f"{why} ({count:,})" for why, count in most)
    return f"{trainer_of(job.recipe.trainer).title} can learn none of its turns: {listed}."


def intake_of(source: Path, tally: Tally) -> Intake:
    """What was read of a file; rows in which nothing can be shifted count as not understood."""
    place, why = tally.faults[0] if tally.faults else (0, "")
    first = Unread(f"{place_word(source)} {place}", one_line(why)) if place else None
    untried = sum(tally.untried.values())
    return Intake(str(source), "row", tally.rows - untried, untried, tally.wrong, first)


def _begun(job: Job, draft: Path, note: Path) -> _Note:
    """Where to resume; the start, if no earlier run of this job is there."""
    with suppress(OSError, ValueError, RecursionError):
        begun = msgspec.json.decode(note.read_bytes(), type=_Note)
        if begun.key == _key(job) and draft.stat().st_size >= begun.size:
            return begun
    return _Note(_key(job), 0, 0, Tally())


def _key(job: Job) -> str:
    """What a resumed run must share with the one that was interrupted."""
    stat = job.source.stat()
    parts = [str(job.source.resolve()), stat.st_size, stat.st_mtime_ns, job.recipe, job.strict]
    parts.append(_in_columns(job))
    return hashlib.sha256(JSON.encode(parts)).hexdigest()[:16]


def _in_columns(job: Job) -> bool:
    """Whether the output is to have the columns of the source, with their types."""
    both = job.source.suffix == job.out.suffix == ".parquet"
    return both and not job.recipe.trainer and not is_trace(job.source)


def _finish(job: Job, draft: Path) -> list[str]:
    """Puts the output in place: compressed, as one list or as Parquet, as its name says."""
    if _in_columns(job):
        changed = write_like(job.source, draft, job.out)
        draft.unlink()
        return changed
    if _kind(job.out) == ".json":
        listed = draft.with_name(f".{job.out.name}.list")
        _list(draft, listed)
        listed.replace(draft)
    if job.out.suffix == ".gz":
        packed = draft.with_name(f".{job.out.name}.packed")
        with (
            draft.open("rb") as lines,
            packed.open("wb") as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
        ):
            shutil.copyfileobj(lines, file, 1 << 20)
        packed.replace(job.out)
        draft.unlink()
    elif job.out.suffix == ".parquet":
        texts = write_typed(draft, job.out)
        draft.unlink()
        return texts
    else:
        draft.replace(job.out)
    return []


def _list(lines: Path, out: Path) -> None:
    """Writes JSON lines as one list, each row on a line of its own."""
    with lines.open("rb") as file, out.open("wb") as whole:
        before = b"["
        for line in file:
            if line.strip():
                whole.write(before + b"\n" + line.removeprefix(BOM_UTF8).rstrip())
                before = b","
        whole.write(b"\n]\n")


# -- reading -----------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[bytes]:
    """The rows of a file as JSON lines; of traces, these are the conversations that they tell."""
    if is_trace(path):
        yield from conversation_lines(path)
        return
    if is_table(path):
        yield from lines_of(path) if path.suffix == ".parquet" else table_lines(path)
        return
    with opened(path) as file, sound(path):
        if not is_array(path):
            yield from file
            return
        whole = file.read().removeprefix(BOM_UTF8)
    try:
        for row in msgspec.json.decode(whole, type=list[msgspec.Raw]):
            yield JSON.encode(msgspec.json.decode(row)) + b"\n"
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise UsageError(f"{path}: not JSON ({fault}){_hint(whole)}") from None


def is_array(path: Path) -> bool:
    """Whether a file is one list of rows, as some data sets come, and not a row on each line."""
    if _kind(path) != ".json":
        return False
    with opened(path) as file, sound(path):
        return file.read(1024).removeprefix(BOM_UTF8).lstrip().startswith(b"[")


def place_word(path: Path) -> str:
    """What the rows of a file are counted by: its lines, or themselves."""
    if is_trace(path):
        return "conversation"
    return "row" if is_table(path) or is_array(path) else "line"


def sameness(job: Job) -> str:
    """What is promised of rows that are not shifted."""
    plain = not is_table(job.source) and _kind(job.out) == ".jsonl"
    plain = plain and not is_array(job.source) and not is_trace(job.source)
    return "the same bytes" if plain else "with the same content"


def _count(path: Path) -> int:
    """How many rows there are; 0 where counting would mean reading the file."""
    return count_of(path) if path.suffix == ".parquet" and not is_trace(path) else 0


def _functions_of(source: Path, recipe: Recipe) -> Lent:
    """The tools of a whole file, where distractors are taken from them: the first pass."""
    index = ToolIndex()
    for line in _lines(source) if recipe.lends_tools else ():
        try:
            row = _decoded(line)
            if row is not None:
                conversation = read_as(format_of(row, recipe), row)
                index.add(tool.function for tool in conversation.tools)
        except RowFault:
            continue  # the second pass says so
    return index.functions


def _decoded(line: bytes) -> Row | None:
    """A line as a row; None for an empty one."""
    if not line.strip():
        return None
    try:
        row = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise RowFault(f"not JSON ({fault}){_hint(line)}") from None
    if not isinstance(row, dict):
        raise RowFault("no JSON object")
    return row


def _hint(line: bytes) -> str:
    """What may help with a line that is not JSON."""
    if what := no_text(line):
        return f": {what}"
    if re.search(rb"\b(NaN|Infinity)\b", line):
        return ": NaN and Infinity are no JSON; write null"
    return "; write one object on each line" if line.strip() in (b"[", b"{") else ""


# -- the work ----------------------------------------------------------------------------------


class _Done(msgspec.Struct):
    """A chunk of rows, done.

    Attributes:
        out: the lines to write.
        numbered: the like, for rows that keep their columns.
    """

    lines: int
    out: list[bytes]
    made: list[Made]
    faults: list[tuple[int, str]]
    same: int
    formats: list[str] = []
    examples: list[tuple[int, str, str]] = []
    numbered: list[bytes] = []


def _chunks_done(job: Job, functions: Lent, skip: int) -> Iterator[_Done]:
    """The chunks of a file in order, each worked on by any of the processes."""
    lines = islice(enumerate(_lines(job.source), 1), skip, None)
    begin = partial(_begin, job.recipe, functions)
    if job.workers <= 1 and job.executor == "process":
        begin()
        for chunk in iter(lambda: list(islice(lines, CHUNK)), []):
            yield from _work(chunk)
        return
    with closing(open_pool(job.workers, job.executor, begin)) as pool:
        try:
            for done in pool.do(_work, lines, CHUNK):
                yield from done
        except Resumable as lost:
            raise Resumable(str(lost), kept=True) from None


_recipe = Recipe()
_functions: Lent = {}


_quick = Quick(_recipe)


def _begin(recipe: Recipe, functions: Lent) -> None:
    """What a worker needs for every chunk."""
    global _recipe, _functions, _quick
    _recipe, _functions, _quick = recipe, functions, Quick(recipe)


def _work(chunk: list[tuple[int, bytes]]) -> list[_Done]:
    """Does some rows; what became of all of them, as the one element of a list."""
    done = _Done(len(chunk), [], [], [], 0)
    for number, line in chunk:
        content = line.rstrip(b"\r\n")
        quick = _quick.line(content)
        if quick is not None:
            _take(done, number, line, Made(shifts=quick[1]), [quick[0]] if quick[1] else [])
            continue
        try:
            row = _decoded(line)
            if row is None:
                continue
            made = augmented(row, content, _recipe, _functions)
            _take(done, number, line, made, list(map(JSON.encode, made.rows)))
            done.formats.append(format_of(row, _recipe).name)
        except RowFault as wrong:
            done.faults.append((number, str(wrong)))
    return [done]


def _take(done: _Done, number: int, line: bytes, made: Made, rows: list[bytes]) -> None:
    """Notes what became of a line; `rows` is empty where it stays as it is."""
    if rows or made.left:
        done.out += [row + b"\n" for row in rows]
    else:
        done.same += 1
        done.out.append(line if line.endswith(b"\n") else line + b"\n")
    done.numbered += [draft_line(number, row) for row in rows or [b""]]
    done.made.append(msgspec.structs.replace(made, rows=()))
    if made.shifts and len(done.examples) < EXAMPLES:
        done.examples.append((number, made.shifts, rows[0].decode()))


def _check_strict(job: Job, chunk: _Done, left: Iterable[Path]) -> None:
    """Ends a strict job at the first row that could not be read, and leaves nothing of it."""
    if chunk.faults and job.strict:
        for path in left:  # the data will differ, so it cannot be resumed
            path.unlink(missing_ok=True)
        line, why = chunk.faults[0]
        raise UsageError(f"{job.source}, {place_word(job.source)} {line}: {why}")


def _gather(tally: Tally, chunk: _Done) -> None:
    """Adds a chunk to what is known."""
    tally.wrong += len(chunk.faults)
    tally.faults += chunk.faults[: MAX_FAULTS - len(tally.faults)]
    tally.rows += len(chunk.made)
    tally.same += chunk.same
    tally.written += len(chunk.out)
    shifted, skipped, formats = map(Counter, (tally.shifted, tally.skipped, tally.formats))
    formats.update(chunk.formats)
    formats["openai"] += len(chunk.made) - len(chunk.formats)
    untried, left, lost = map(Counter, (tally.untried, tally.left, tally.lost))
    unshifted = Counter(tally.unshifted)
    for made in chunk.made:
        left.update(made.left)
        lost.update(made.lost)
        tally.drawn += bool(made.shifts or made.reasons or made.untried)
        reasons = [f"{entry}: {_plain(why)}" for entry, why in made.reasons.items()]
        skipped.update(reasons)
        unshifted.update(() if made.shifts else reasons)
        if made.untried:
            untried[made.untried] += 1
        if made.shifts:
            shifted[made.shifts] += 1
    tally.untried, tally.left, tally.lost = map(dict, (untried, left, lost))
    tally.examples += chunk.examples[: EXAMPLES - len(tally.examples)]
    tally.shifted, tally.skipped, tally.formats = map(dict, (shifted, skipped, +formats))
    tally.unshifted = dict(unshifted)


def _plain(reason: str) -> str:
    """A reason without what is of one row alone, so that reasons can be counted."""
    return reason.partition(": ")[2] or reason if len(reason) > 90 else reason


class RowMade(msgspec.Struct, frozen=True):
    """A row of a file, and what became of it.

    Attributes:
        line: of the file, counted from 1.
        row: as it was read; empty where it could not be.
        content: its bytes.
        made: what became of it.
        fault: why it could not be read; "" where it could.
    """

    line: int
    row: Row
    content: bytes = b""
    made: Made = Made()
    fault: str = ""


def each_made(source: Path, recipe: Recipe) -> Iterator[RowMade]:
    """Augments the rows of a file one by one."""
    check_recipe(recipe)
    check_source(source)
    functions = _functions_of(source, recipe)
    for number, line in enumerate(_lines(source), 1):
        try:
            row = _decoded(line)
            if row is not None:
                content = line.rstrip(b"\r\n")
                made = augmented(row, content, recipe, functions)
                yield RowMade(number, row, content, made)
        except RowFault as wrong:
            yield RowMade(number, {}, fault=str(wrong))


def gather_row(tally: Tally, row: RowMade) -> None:
    """Adds what became of one row."""
    if row.fault:
        _gather(tally, _Done(1, [], [], [(row.line, row.fault)], 0))
    else:
        _gather(tally, _Done(1, [], [row.made], [], 0))


def line_of(path: Path, number: int) -> bytes:
    """One line of a file, counted from 1."""
    return next(islice(_lines(path), number - 1, None))


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
