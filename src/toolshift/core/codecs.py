"""Forms of results beside JSON: YAML, XML, CSV, key=value lines, prose and tables.

Every form tells a single record from a list of one, and a null from an empty text; numbers may
come back as text, which `form.facts` reads by the type of the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any
from xml.etree import ElementTree

import yaml

from toolshift.core.values import held_in

Record = dict[str, Any]
Path = tuple[str, ...]
_DECODE = json.JSONDecoder().raw_decode
_json: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False).encode


# -- records as flat rows ----------------------------------------------------------------------


def leaves(record: Record, above: Path = ()) -> list[tuple[Path, Any]]:
    """The values of a record that are not objects, or empty ones, each with its path."""
    pairs: list[tuple[Path, Any]] = []
    for key, value in record.items():
        if isinstance(value, dict) and value:
            pairs += leaves(value, (*above, key))
        else:
            pairs.append(((*above, key), value))
    return pairs


def texts_in(data: Any) -> list[str]:
    """Every text among the values of JSON data, at every depth."""
    if isinstance(data, str):
        return [data]
    inner = held_in(data)
    return [text for part in inner for text in texts_in(part)]


def each_text(data: Any, say: Callable[[str], str]) -> Any:
    """Maps every text among the values of JSON data, at every depth."""
    if isinstance(data, str):
        return say(data)
    if isinstance(data, dict):
        return {key: each_text(value, say) for key, value in data.items()}
    return [each_text(value, say) for value in data] if isinstance(data, list) else data


def replaced(data: Any, new: Mapping[Any, Any]) -> Any:
    """Replaces some texts or numbers of JSON data, at every depth."""
    if isinstance(data, dict):
        return {key: replaced(value, new) for key, value in data.items()}
    if isinstance(data, list):
        return [replaced(value, new) for value in data]
    plain = isinstance(data, str | int | float) and not isinstance(data, bool)
    return new.get(data, data) if plain else data


def grow(rows: dict[Path, Any]) -> Record:
    """The record that has these values at these paths."""
    record: Record = {}
    for path, value in rows.items():
        inner = record
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return record


@lru_cache(maxsize=4096)
def _pointer(path: Path) -> str:
    return "/".join(key.replace("~", "~0").replace("/", "~1") for key in path)


def _path(pointer: str) -> Path:
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/"))


def _flat(record: Record) -> dict[str, Any]:
    return {_pointer(path): value for path, value in leaves(record)}


def _deep(row: dict[str, Any]) -> Record:
    return grow({_path(pointer): value for pointer, value in row.items()})


def _from_row(header: list[str], row: list[Any]) -> Record:
    """The record of a row; an empty cell may mean a missing value."""
    return _deep({key: cell for key, cell in zip(header, row, strict=True) if cell is not None})


_BARE = re.compile(r"[^\s\"\[{|=#\\](?:[^\n\r\t|\\\x00-\x1f\x7f-\x9f\u2028\u2029]*[^\s|\\])?")


def _bare(value: Any) -> str:
    """A value as a cell: plain text where that is plain, else JSON; null is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        plain = _BARE.fullmatch(value)
        return value if plain else json.dumps(value).replace("|", r"\u007c")
    return _json(value).replace("|", r"\u007c")


def _unbare(cell: str) -> Any:
    if cell == "":
        return None
    return json.loads(cell) if cell[0] in '"[{' else cell


# -- YAML --------------------------------------------------------------------------------------


def write_yaml(data: object) -> str:
    """YAML blocks, one value a line."""
    text = yaml.dump(data, Dumper=_dumper(), allow_unicode=True, sort_keys=False, width=1 << 30)
    return str(text).rstrip("\n")


@cache
def _dumper() -> Any:
    """PyYAML's safe dumper, which quotes what YAML would read as a line break or as a number."""

    def quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = '"' if any(mark in text for mark in "\x85\u2028\u2029") else None
        if any(re.match(pattern, text) for _, pattern, _ in _PLAIN_WORDS):
            style = style or "'"  # `0E0` is a number in YAML 1.2, and none in 1.1
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, quoted)
    return Dumper


def read_yaml(text: str) -> Any:
    """Reads YAML whose plain words mean what those of JSON mean, as YAML 1.2 has it.

    YAML 1.1 would read `0123` as 83, `9:30` as 570, `no` as false, and a date as no text. What
    `write_yaml` wrote is the same in both: it quotes such texts.
    """
    return yaml.load(text, _loader())  # noqa: S506 - made from the safe loader


@cache
def _loader() -> Any:
    """PyYAML's safe loader, which knows only the words and numbers of JSON, and infinity."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in _PLAIN_WORDS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    return Loader


_PLAIN_WORDS: tuple[tuple[str, str, list[str]], ...] = (
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", [*"tTfF"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)\Z", [*"-+0123456789"]),
    (
        "float",
        r"(?:[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|"
        r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z",
        [*"-+0123456789."],
    ),
)
"""Tag, form and first characters of the plain words that are no texts."""


# -- XML ---------------------------------------------------------------------------------------

_XML_NAME = re.compile(r"(?!(?i:xml))[A-Za-z_][A-Za-z0-9_.-]*")
_ELEMENT = re.compile("<[^?!]")
_MARKS = re.compile("[&<>]")
_SIMPLE = re.compile(r"[A-Za-z0-9 .,:;/_+-]*")
"""A text that stands in an element as it is."""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\t": "&#9;"})
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_xml(data: Any) -> str:
    """A `record` element, or `records` with one a record."""
    if isinstance(data, list):
        return f"<records>{''.join(map(_xml_record, data))}</records>"
    return _xml_record(data)


def _xml_record(record: Record) -> str:
    return f"<record>{_xml(record)}</record>"


def _xml(record: Record) -> str:
    return "".join(_element(key, value) for key, value in record.items())


def _element(key: str, value: Any) -> str:
    tag, named = _tag(key)
    if value is None:
        return f'<{tag}{named} nil="true"/>'
    if isinstance(value, dict):
        return f"<{tag}{named}>{_xml(value)}</{tag}>"
    text = value if isinstance(value, str) else _json(value)
    if _SIMPLE.fullmatch(text):
        return f"<{tag}{named}>{text}</{tag}>"
    if _NOT_XML.search(text) or "]]>" in text:
        escaped = json.dumps(text).replace("]]>", r"]]\u003e")
        return f'<{tag}{named} encoding="json"><![CDATA[{escaped}]]></{tag}>'
    marked = _MARKS.search(text) and "\n" not in text
    body = f"<![CDATA[{text}]]>" if marked else _escape(text)
    return f"<{tag}{named}>{body}</{tag}>"


@lru_cache(maxsize=4096)
def _tag(key: str) -> tuple[str, str]:
    """The element of a key, and the attribute that holds a key that can be no name of one."""
    return (key, "") if _XML_NAME.fullmatch(key) else ("field", f" {_named(key)}")


def _named(key: str) -> str:
    """The attribute that holds a key; as JSON where it has signs that XML cannot hold."""
    if _NOT_XML.search(key):
        return f"json-name={_attribute(json.dumps(key))}"
    return f"name={_attribute(key)}"


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _attribute(text: str) -> str:
    return '"' + _escape(text).replace('"', "&quot;") + '"'


def read_xml(text: str) -> Any:
    """Reads what `write_xml` wrote; rejects a document that defines entities."""
    first = _ELEMENT.search(text)
    if first is None or "<!DOCTYPE" in text[: first.start()]:
        raise ValueError("no XML of records")
    root = ElementTree.fromstring(text)  # noqa: S314 - it declares nothing that could grow
    if root.tag == "records":
        return [_xml_value(record) or {} for record in root]
    return _xml_value(root) or {}


def _xml_value(element: ElementTree.Element) -> Any:
    if element.get("nil"):
        return None
    if len(element):
        return {_xml_key(child): _xml_value(child) for child in element}
    text = element.text or ""
    return json.loads(text) if element.get("encoding") else text


def _xml_key(element: ElementTree.Element) -> str:
    encoded = element.get("json-name")
    return str(json.loads(encoded)) if encoded else element.get("name", element.tag)


# -- CSV ---------------------------------------------------------------------------------------


def write_csv(data: Any, mark: str = ",") -> str:
    """A header and one row a record; a single record as rows of field and value."""
    if isinstance(data, dict):
        rows = [["field", "value"], *([key, value] for key, value in _flat(data).items())]
    else:
        flat = [_flat(record) for record in data]
        header = list(dict.fromkeys(key for row in flat for key in row))
        rows = [["#", *header]]
        rows += [[n, *(row.get(key) for key in header)] for n, row in enumerate(flat, 1)]
    return "\n".join(mark.join(_csv_cell(cell, mark) for cell in row) for row in rows)


def _csv_cell(value: Any, mark: str) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else _json(value)
    if text == "" or mark in text or '"' in text or "\n" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def read_csv(text: str, mark: str = ",") -> Any:
    """Reads what `write_csv` wrote with the same mark."""
    header, *rows = _csv_rows(text, mark)
    if header[0] == "#":
        return [_from_row(header[1:], row[1:]) for row in rows]
    return _deep({row[0]: row[1] for row in rows})


@cache
def _cell(mark: str) -> re.Pattern[str]:
    """What finds the next cell of a row, and what ends it."""
    mark = re.escape(mark)
    return re.compile(rf'(?:"((?:[^"]|"")*)"|([^"\n{mark}]*))({mark}|\n|\Z)')


def _csv_rows(text: str, mark: str) -> list[list[Any]]:
    rows: list[list[Any]] = [[]]
    place = 0
    while True:
        cell = _cell(mark).match(text, place)
        if cell is None:
            raise ValueError(f"not CSV at character {place}: {text[place : place + 40]!r}")
        quoted, plain, end = cell.groups()
        rows[-1].append(quoted.replace('""', '"') if quoted is not None else plain or None)
        place = cell.end()
        if end == "":
            return rows
        if end == "\n":
            rows.append([])


# -- key=value lines ---------------------------------------------------------------------------


def write_pairs(data: Any) -> str:
    """One key=value a line; the records of a list under [1], [2], ..."""
    if isinstance(data, dict):
        return _pairs(data)
    blocks = [f"[records={len(data)}]"]
    for number, record in enumerate(data, 1):
        blocks += [f"[{number}]", _pairs(record)]
    return "\n".join(block for block in blocks if block)


def _pairs(record: Record) -> str:
    lines = []
    for key, value in _flat(record).items():
        plain = _BARE.fullmatch(key) and "=" not in key
        lines.append(f"{key if plain else json.dumps(key)}={_bare(value)}")
    return "\n".join(lines)


def read_pairs(text: str) -> Any:
    """Reads what `write_pairs` wrote; rejects a line without `=`."""
    rows: list[dict[str, Any]] = [{}]
    for line in text.split("\n"):
        if line.startswith("["):
            rows.append({})
        elif line:
            key, place = _DECODE(line) if line[0] == '"' else (line.split("=", 1)[0], None)
            place = len(key) if place is None else place
            if line[place : place + 1] != "=":
                raise ValueError(f"no key=value: {line[:40]!r}")
            rows[-1][key] = _unbare(line[place + 1 :])
    if text.startswith("[records="):
        return [_deep(row) for row in rows[2:]]
    return _deep(rows[0])


# -- tables ------------------------------------------------------------------------------------


def write_table(data: Any) -> str:
    """A Markdown table; a single record as rows of field and value."""
    if isinstance(data, dict):
        header, rows = ["field", "value"], [[k, v] for k, v in _flat(data).items()]
    else:
        flat = [_flat(record) for record in data]
        header = ["row", *dict.fromkeys(key for row in flat for key in row)]
        rows = [[n, *map(row.get, header[1:])] for n, row in enumerate(flat, 1)]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_bare, line)) + " |" for line in lines)


def read_table(text: str) -> Any:
    """Reads what `write_table` wrote."""
    lines = [[_unbare(cell) for cell in line[2:-2].split(" | ")] for line in text.split("\n")]
    header, rows = lines[0], lines[2:]
    if header[0] == "field" and len(header) == 2:
        return _deep({row[0]: row[1] for row in rows})
    return [_from_row(header[1:], row[1:]) for row in rows]


# -- prose -------------------------------------------------------------------------------------

_WORD = r"(?!(?:of|is)\b)[A-Za-z0-9_.-]+"
_PLAIN = re.compile(rf"{_WORD}(?: {_WORD})*")
_RESULT = re.compile(r" ?Result \d+: ?")


def write_prose(data: Any) -> str:
    """Sentences: "The token of the place is "PL-1"; the rating is 4.5."."""
    if isinstance(data, dict):
        return _sentence(data)
    if not data:
        return "There are no results."
    sentences = [f"Result {number}: {_sentence(record)}" for number, record in enumerate(data, 1)]
    return " ".join([f"There are {len(data)} results.", *sentences])


def _sentence(record: Record) -> str:
    clauses = []
    for path, value in leaves(record):
        what = " of the ".join(key if _PLAIN.fullmatch(key) else _json(key) for key in path[::-1])
        clauses.append(f"the {what} is {'not given' if value is None else _json(value)}")
    text = "; ".join(clauses) or "nothing is said"
    return text[0].upper() + text[1:] + "."


def read_prose(text: str) -> Any:
    """Reads what `write_prose` wrote; rejects a text with more behind it."""
    if not text.startswith("There are "):
        data, place = _read_sentence(text, 0)
        return _to_the_end(data, text, place)
    records = []
    place = text.index(".") + 1
    while heading := _RESULT.match(text, place):
        record, place = _read_sentence(text, heading.end())
        records.append(record)
    return _to_the_end(records, text, place)


def _to_the_end(value: Any, text: str, place: int) -> Any:
    if place != len(text):
        raise ValueError(f"more than a result: {text[place : place + 40]!r}")
    return value


def _read_sentence(text: str, place: int) -> tuple[Record, int]:
    rows: dict[Path, Any] = {}
    if text.startswith("Nothing is said.", place):
        return {}, place + len("Nothing is said.")
    while True:
        path, place = _read_path(text, place + len("the "))
        if text.startswith("not given", place):
            value, place = None, place + len("not given")
        else:
            value, place = _DECODE(text, place)
        rows[path] = value
        if text[place] == ".":
            return grow(rows), place + 1
        place += len("; ")


def _read_path(text: str, place: int) -> tuple[Path, int]:
    keys: list[str] = []
    while True:
        plain = _PLAIN.match(text, place)
        key, place = (plain[0], plain.end()) if plain else _DECODE(text, place)
        keys.insert(0, key)
        if text.startswith(" is ", place):
            return tuple(keys), place + len(" is ")
        place += len(" of the ")
