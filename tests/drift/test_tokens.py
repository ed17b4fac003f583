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


OTHERS = [
    ("The amount of fuel in liters", "The amount of fuel in gallons"),
    ("The temperature in °C", "The temperature in °F"),
    ("The power in mW", "The power in MW"),
    ("The quota (Mb)", "The quota (MB)"),
    ("The size in m²", "The size in m³"),
    ("The discount in %", "The discount in ‰"),
    ("The start in UTC", "The start in local time"),
    ("Cancels it within two days.", "Cancels it within nine days."),
    ("The page, counted from zero", "The page, counted from one"),
    ("Returns the folder of the id.", "Returns the folder of the id and empties it."),
    ("Gets the ticket of the id.", "Gets the ticket of the id. The ticket is then closed."),
    ("1 is highest, 5 is lowest", "1 is lowest, 5 is highest"),
    ("Moves money from account a to account b.", "Moves money from account b to account a."),
    ("Returns what matches all terms.", "Returns what matches any terms."),
    ("Sends it if the user is subscribed.", "Sends it unless the user is subscribed."),
    ("The paths that are skipped", "The paths that are searched"),
    ("Get a la cuenta activa del cliente.", "Get a la cuenta cerrada del cliente."),
    ("Search terms", "List terms"),
    ("Gets the user.", "Gets the user. Useful to erase all."),
    ("", "Deletes everything."),
    ("", "Reads the file and shreds, erases it."),
    (
        "Lists it. Note that at most 100 are returned.",
        "Lists it. Note that at most 10 are returned.",
    ),
    ("Returns the price of an item.", "Returns the price of an item. Note that it is in cents."),
    ("The heat. Use this for values in Celsius.", "The heat. Use this for values in Fahrenheit."),
    ("The timeout. Recommended: 30 seconds.", "The timeout. Recommended: 30000 milliseconds."),
    ("The day. Example: 31/12/2025.", "The day. Example: 12/31/2025."),
    ("The name must not contain a slash.", "The name must not contain a slash, or a dot."),
    ("Counts the orders of a customer.", "Lists the orders of a customer."),
]


@pytest.mark.parametrize(("before", "after"), OTHERS, ids=[str(n) for n in range(len(OTHERS))])
def test_another_word_or_order_is_maybe(before: str, after: str) -> None:
    (found,) = text_differences("", before, after)
    assert found.severity == "maybe"


@pytest.mark.parametrize(
    ("text", "severity"),
    [("How long to wait", "harmless"), ("How long to wait, in seconds", "maybe")],
)
def test_a_unit_that_is_said_of_a_value_for_the_first_time_is_maybe(
    text: str, severity: str
) -> None:
    (found,) = text_differences("job.timeout", "", text)
    assert found.severity == severity
    (named,) = text_differences("job.timeout_seconds", "", text)
    assert named.severity == "harmless"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Lists the users of the team.", "Get users of a team"),
        ("The ID of the user", "The Id of the user."),
        ("The name of the file.", "The name of the file (e.g. notes.md)."),
        ("Finds a page.", "Finds a page. Useful for long texts."),
        ("The element of the page", "The element of the page, or a unique selector"),
        ("", "Returns the users of the team."),
        ("读取文件", "读取文件。"),
        ("Прочитать файл", "прочитать  файл."),
        ("Gets a file", "Fetches a file"),
    ],
    ids=map(str, range(9)),
)
def test_spelling_and_another_verb_of_reading_are_harmless(before: str, after: str) -> None:
    (found,) = text_differences("", before, after)
    assert found.severity == "harmless"
