"""Words in any script, and what an edit of a text may mean in it."""

from __future__ import annotations

import pytest

from toolshift.drift.schemas import text_differences
from toolshift.drift.tokens import tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getUser_id v2", ("get", "user", "id", "v2")),
        ("HTTPServer", ("http", "server")),
        ("读取文件", ("读", "取", "文", "件")),
        ("Löscht die Datei.", ("löscht", "die", "datei")),
        ("नया पढ़ो", ("नया", "पढ\u093cो")),
        ("...", ()),
    ],
)
def test_words_are_found_in_any_script(text: str, found: tuple[str, ...]) -> None:
    assert tokens(text) == found


EDITS = [
    ("读取文件并返回内容", "永久删除文件"),
    ("读取文件的内容", "删除文件的内容"),
    ("ファイルを読む", "ファイルを消す"),
    ("Прочитать файл", "Удалить файл"),
    ("اقرأ الملف", "احذف الملف"),
    ("अवकाश पढ़ें", "अवकाश हटाएँ"),
    ("Liest die Datei", "Loescht die Datei"),
    ("Lee el archivo", "Borra el archivo"),
    ("Quarantines the file", "Shreds the file"),
    ("Reads the file", "Reads and deletes the file"),
    ("The price in €", "The price in $"),
]


@pytest.mark.parametrize(("before", "after"), EDITS, ids=[str(n) for n in range(len(EDITS))])
def test_what_cannot_be_judged_is_maybe(before: str, after: str) -> None:
    (found,) = text_differences("", before, after)
    assert found.severity == "maybe"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("读取文件", "读取文件。"),
        ("Прочитать файл", "прочитать  файл."),
        ("Gets a file", "Fetches a file"),
    ],
    ids=["0", "1", "2"],
)
def test_spelling_and_another_verb_of_reading_are_harmless(before: str, after: str) -> None:
    (found,) = text_differences("", before, after)
    assert found.severity == "harmless"
