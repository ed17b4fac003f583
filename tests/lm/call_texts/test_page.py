"""The page on agents lists every format that is read; `python FILE` writes the list anew."""

from __future__ import annotations

import html
from pathlib import Path

from toolshift.lm.call_texts.table import FORMATS

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
START, END = "<!-- formats -->\n", "<!-- end -->"
SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "|`[]_*{}"}


def rows() -> str:
    lines = ["| format | written by | a call |", "|---|---|---|"]
    for each in FORMATS:
        name = f"[{each.name}]({each.source})" if each.source else each.name
        name = name.replace("[Mistral, [ARGS]]", "[Mistral, ARGS]")
        code = html.escape(" ".join(each.example.split()), quote=False).translate(SIGNS)
        lines.append(f"| {name} | {each.models} | <code>{code}</code> |")
    return "\n".join(lines) + "\n"


def test_the_page_lists_what_is_read() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page[page.index(START) + len(START) : page.index(END)] == rows()


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    begin, finish = text.index(START) + len(START), text.index(END)
    PAGE.write_text(text[:begin] + rows() + text[finish:], encoding="utf-8")
