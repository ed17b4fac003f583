"""Lists that come in pages: what says which page is wanted, and what says that there is more.

    style = paged_by(source)                    how a tool pages; None where it does not
    cut(style, whole, container, arguments)     a page of a list, as the new tool returns one

A tool pages where it has a parameter that says where to go on, and a list in its results. Such a
parameter is a cursor, the number of a page, an offset, or the id of the last record that was seen.
A list of a tool that did not page is cut as the new one says. Where nothing says how many records a
page has, a list comes in two pages, until the mapping says it (`pages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from toolshift.core import seed as seeds
from toolshift.core.tool import Hint, Param, Result, Tool
from toolshift.interop.schema import types_of, usual
from toolshift.interop.tools import Source
from toolshift.shifts.release.match import words
from toolshift.shifts.release.results import Place, places_of

MAX_PAGES = 200
By = Literal["cursor", "page", "offset", "last"]
_SIZE = frozenset(("limit", "size", "per", "count", "top", "max", "first", "take", "results"))
_PAGE = frozenset(("page", "pagenumber", "pageno"))
_OFFSET = frozenset(("offset", "skip", "start", "from"))
_CURSOR = frozenset(("cursor", "marker", "continuation", "scroll", "after", "pagination"))
_WITH_TOKEN = _CURSOR | frozenset(("page", "next", "continue", "resume", "skip", "paging", "list"))
"""What a token is of where it says a page: one that is only a token is a login."""
_LAST = frozenset(("after", "starting"))
_BACK = frozenset(("previous", "prev", "before", "ending", "back"))
_NEXT = frozenset(("next", "cursor", "token", "marker", "continuation", "continue", "scroll"))
_MORE = frozenset(("more", "next", "truncated"))
_END = frozenset(("last", "final", "end", "done", "complete"))
_TOTAL = frozenset(("total", "count", "results"))
_PAGES = frozenset(("pages",))


class WrongPage(Exception):
    """A call asks for a page that there is not; the message says why."""


@dataclass(frozen=True, eq=False)
class Style:
    """How a tool pages.

    Attributes:
        by: what its parameter says.
        param: which page is wanted.
        size_param: how many records a page has; "" where none says it.
        size: how many it has where nobody says it; None where that is not known.
        first: the number of the first page.
        container: the path of the list in its results.
        told: for each path beside the list that says something of the pages, what.
        listed: the result is the list alone, so that a line beside it says the next page.
    """

    by: By
    param: Param
    size_param: str
    size: int | None
    first: int
    container: str
    told: Mapping[str, tuple[str, Place]]
    listed: bool

    @property
    def can_go_on(self) -> bool:
        """Whether results say how the next page is asked for; a Link header is not read."""
        return self.by != "cursor" or any(what == "next" for what, _ in self.told.values())


def paged_by(source: Source) -> Style | None:
    """How a tool pages; None where it does not."""
    places = places_of(source.outputs)
    container = list_in(places)
    found = _parameter(source.tool)
    if container is None or found is None:
        return None
    by, param = found
    told = dict(_told(places, container))
    size = next((p for p in source.tool.params if _is_size(p)), None)
    size_default = usual(size.schema) if size else None
    start = usual(param.schema) if by == "page" else 1
    start = start if start is not None else param.schema.get("minimum", 1)
    return Style(
        by,
        param,
        size.name if size else "",
        size_default if isinstance(size_default, int) and size_default > 0 else None,
        start if isinstance(start, int) else 1,
        container.name,
        told,
        len(places_at_top(places)) == 1,
    )


def places_at_top(places: Mapping[str, Place]) -> list[Place]:
    """The places that are in no other."""
    return [place for place in places.values() if len(place.path) == 1]


def list_in(places: Mapping[str, Place]) -> Place | None:
    """The one list of a result that stands in no other; None where there are several."""
    lists = [place for place in places.values() if place.is_list and not place.lists]
    records = [place for place in lists if not place.is_leaf]
    several = records or lists
    return several[0] if len(several) == 1 else None


def _parameter(tool: Tool) -> tuple[By, Param] | None:
    """The parameter that says where to go on, the surest kind first."""
    for by in ("cursor", "page", "offset"):
        for param in tool.params:
            named, kinds = frozenset(words(param.name)), types_of(param.schema)
            if named & _BACK or param.required:
                continue
            number = bool(kinds & {"integer", "number"})
            if by == "cursor" and _says_cursor(named) and not number:
                return ("last" if named & _LAST and "cursor" not in named else "cursor"), param
            if by == "page" and number and named & _PAGE and not named & _SIZE:
                return "page", param
            if by == "offset" and number and named & _OFFSET and not named & _SIZE:
                return "offset", param
    return None


def _says_cursor(named: frozenset[str]) -> bool:
    return bool(named & _CURSOR) or ("token" in named and bool(named & _WITH_TOKEN))


def _is_size(param: Param) -> bool:
    return bool(frozenset(words(param.name)) & _SIZE) and "integer" in types_of(param.schema)


def _told(places: Mapping[str, Place], container: Place) -> Iterator[tuple[str, tuple[str, Place]]]:
    """What stands beside a list and says something of its pages."""
    for name, place in places.items():
        if name == container.name or name.startswith(f"{container.name}.") or place.lists:
            continue
        what = _meaning(place)
        if what and place.is_leaf:
            yield name, (what, place)


def _meaning(place: Place) -> str:
    named, kinds = frozenset(words(place.path[-1])), place.kinds
    if named & _BACK:
        return "back"
    if kinds == {"boolean"}:
        return "more" if named & _MORE else "end" if named & _END else ""
    if kinds <= {"string"} and named & _NEXT:
        return "next"
    if not kinds & {"integer", "number"}:
        return ""
    if "next" in named:
        return "next"
    if named & _PAGES or ("page" in named and named & _TOTAL):
        return "pages"
    if named & {"total"} or named == {"count"}:
        return "total"
    if named & {"limit", "size", "per"}:
        return "size"
    if named & _PAGE:
        return "page"
    return "offset" if named & _OFFSET else "count" if "count" in named else ""


# -- cutting ---------------------------------------------------------------------------------------


def same_pages(before: Style | None, after: Style | None, params: Mapping[str, str]) -> bool:
    """Whether the pages are those of before: the old parameter goes on in the new one."""
    if before is None or after is None:
        return before is after
    return params.get(before.param.name) == after.param.name and before.by == after.by


@dataclass(frozen=True, eq=False)
class Page:
    """A page of a list.

    Attributes:
        whole: the result with the page in place of the list.
        hint: how the next one is asked for; None where there is none.
        notice: the line beside a list that says so.
    """

    whole: dict[str, Any]
    hint: Hint | None
    notice: str


def cut(style: Style, whole: dict[str, Any], said: Mapping[str, Any], size: int | None) -> Page:
    """The page of a whole result that a call asks for."""
    keys = style.container.split(".")
    above: Any = whole
    for key in keys[:-1]:
        above = above.get(key) if isinstance(above, dict) else None
    listed = above.get(keys[-1]) if isinstance(above, dict) else None
    if not isinstance(listed, list):
        return Page(whole, None, "")
    asked = said.get(style.size_param) if style.size_param else None
    length = asked if isinstance(asked, int) and asked > 0 else size or style.size
    length = length or max(1, -(-len(listed) // 2))
    start = _start(style, said.get(style.param.name), listed, length)
    end = start + length
    above[keys[-1]] = listed[start:end]
    more = end < len(listed)
    onward = _onward(style, start, end, length, listed) if more else None
    facts: dict[str, Any] = {
        "next": onward,
        "back": None,
        "more": more,
        "end": not more,
        "total": len(listed),
        "pages": max(1, -(-len(listed) // length)),
        "size": length,
        "count": len(listed[start:end]),
        "page": style.first + start // length,
        "offset": start,
    }
    for name, (what, place) in style.told.items():
        _say(whole, name, place, facts[what], style)
    if onward is None:
        return Page(whole, None, "")
    hint = Hint("page", arguments={style.param.name: onward})
    notice = f'Link: <?{style.param.name}={onward}>; rel="next"' if style.listed else ""
    return Page(whole, hint, notice)


def _say(whole: dict[str, Any], name: str, place: Place, value: Any, style: Style) -> None:
    """Puts what is to be said of the pages at its place, in its type."""
    inner: Any = whole
    for key in place.path[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        return
    key = place.path[-1]
    named = frozenset(words(key))
    link = place.schema.get("format") in ("uri", "uri-reference") or named & {"url", "link", "uri"}
    if value is not None and place.kinds == {"string"}:
        query = f"?{style.param.name}={value}"
        alone = not _says_cursor(named) and style.by in ("page", "offset")
        whole_link = f"https://localhost/{query}" if place.schema.get("format") == "uri" else query
        value = whole_link if link or alone else str(value)
    if value is not None:
        inner[key] = value
    elif place.nullable:
        inner[key] = None
    elif place.required:
        inner[key] = "" if "string" in place.kinds else 0
    else:
        inner.pop(key, None)


def _start(style: Style, value: Any, listed: list[Any], length: int) -> int:
    """Where the page that is asked for begins."""
    if value is None or value == "":
        return 0
    if style.by == "page":
        return max(0, int(value) - style.first) * length
    if style.by == "offset":
        return max(0, int(value))
    if style.by == "last" and not _is_cursor(style):
        place = next((n for n, one in enumerate(listed) if _id_of(one) == value), None)
        if place is not None:
            return place + 1
    else:
        for start in range(1, len(listed) + 1):
            if _cursor(style, start) == value:
                return start
    raise WrongPage(f"{style.param.name}: {value!r:.80} leads to no page of this list")


def _onward(style: Style, start: int, end: int, length: int, listed: list[Any]) -> Any:
    if style.by == "page":
        return style.first + start // length + 1
    if style.by == "offset":
        return end
    if style.by == "last" and not _is_cursor(style):
        last = _id_of(listed[end - 1])
        return _cursor(style, end) if last is None else last
    return _cursor(style, end)


def _is_cursor(style: Style) -> bool:
    """Whether a result itself says what `after` is to be."""
    return any(what == "next" for what, _ in style.told.values())


def _id_of(record: Any) -> Any:
    """The value that tells a record from others: its `id`, else the first that is named as one."""
    if not isinstance(record, dict):
        return record if isinstance(record, str) else None
    named = [key for key in record if words(key)[-1:] == ["id"]]
    return record.get("id", record[named[0]] if named else None)


def _cursor(style: Style, start: int) -> str:
    return f"c{seeds.derive('page', style.param.name, start) % 16**8:08x}"


# -- gathering -------------------------------------------------------------------------------------


def gathered(
    style: Style,
    first: Result,
    call: Callable[[Mapping[str, Any]], Result],
    whole_of: Callable[[Any], Any],
) -> tuple[Result | None, dict[str, Any]]:
    """The first page with the records of all others, or the failure of one of them.

    A page that nobody asked for when the tools were recorded ends the list.
    """
    latest = deepcopy(whole_of(first.data))
    whole, found = latest, _at(latest, style.container)
    if not isinstance(found, list):
        return None, whole
    for page in range(1, MAX_PAGES):
        onward = _after(style, latest, page, len(found))
        if onward is None:
            break
        more = call({style.param.name: onward})
        if not more.ok and not more.unrecorded:
            return more, whole
        latest = whole_of(more.data) if more.ok else {}
        records = _at(latest, style.container)
        if not isinstance(records, list) or not records:
            break
        found += records
    return None, whole


def _after(style: Style, whole: Mapping[str, Any], page: int, seen: int) -> Any:
    """What the next page is asked for with; None where there is none."""
    told = {what: _at(whole, name) for name, (what, _) in style.told.items()}
    if _is_last(told, page, seen):
        return None
    if style.by == "page":
        return style.first + page
    if style.by == "offset":
        return seen
    if "next" in told:
        return told["next"]
    listed = _at(whole, style.container)
    return _id_of(listed[-1]) if listed and style.by == "last" else None


def _is_last(told: Mapping[str, Any], page: int, seen: int) -> bool:
    """Whether what a page says tells that it is the last."""
    total, pages = told.get("total"), told.get("pages")
    return (
        told.get("more") is False
        or told.get("end") is True
        or ("next" in told and not told["next"])
        or (isinstance(total, int) and seen >= total)
        or (isinstance(pages, int) and page >= pages)
    )


def _at(whole: Any, path: str) -> Any:
    for key in path.split("."):
        whole = whole.get(key) if isinstance(whole, Mapping) else None
    return whole
