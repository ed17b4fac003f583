"""Whether a result says that there is more to read: a next page, a cursor, `has_more: true`."""

from __future__ import annotations

import re

_KEY = re.compile(
    r"(?<![\w-])[\"']?(?P<key>[A-Za-z@$][\w.-]{2,39})[\"']?\s*[:=]\s*(?P<value>"
    r"\"(?:[^\"\\]|\\.){0,400}\"?|'[^'\n]{0,400}'?|[^\s,;{}\[\]\"']{1,400}|[\[{]\s*[\]}]|[\[{])"
)
_NEXT = frozenset((
    "next", "nextpage", "nextcursor", "nexttoken", "nextpagetoken", "nextpageurl", "nexturl",
    "nextlink", "nextoffset", "nextmarker", "nextid", "continuation", "continuationtoken",
    "continuetoken", "continue", "hasmore", "hasnext", "hasnextpage", "hasmorepages", "more",
    "moreresults", "moreavailable", "istruncated", "truncated", "odatanextlink", "nextrecordsurl",
    "pagetoken", "scrollid", "nextstart", "nextpagenumber",
))  # fmt: skip
_ENDS = frozenset(("null", "none", "false", "no", "", "0", "-", "[]", "{}", "nil", "-1", "n/a"))
_PAGE = frozenset(("page", "pagenumber", "currentpage", "pageno"))
_PAGES = frozenset(("pages", "totalpages", "pagecount", "lastpage", "numpages", "pagetotal"))
_RELATED = re.compile(r"\brel=\\?[\"']?next\b", re.IGNORECASE)


def offers_more(text: str) -> bool:
    """Whether a result says that there is more to read."""
    numbers: dict[str, int] = {}
    for match in _KEY.finditer(text):
        key = re.sub(r"[^a-z]", "", match["key"].lower())
        value = re.sub(r"\s|^[\"']|[\"']$", "", match["value"]).lower()
        if key in _NEXT and value not in _ENDS:
            return True
        if value.isdecimal() and key in _PAGE | _PAGES and len(value) < 9:
            numbers["of" if key in _PAGES else "page"] = int(value)
    is_early = len(numbers) == 2 and numbers["page"] < numbers["of"]
    return is_early or _RELATED.search(text) is not None
