"""What is written into a conversation is in its language, or nothing is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.data.augment import DISTRACTORS, ENDINGS, Recipe, augmented
from toolshift.data.interface_texts import in_english
from toolshift.data.language import ENGLISH, LANGUAGES, language_of
from toolshift.data.refusal_rows import REFUSALS
from toolshift.data.tools import Lent, ToolIndex

TALK = {
    "en": ("Cancel my order A-1000, please.", "Cancels an order that is open."),
    "de": ("Storniere bitte meine Bestellung A-1000.", "Storniert eine Bestellung, die offen ist."),
    "fr": ("Annule ma commande A-1000, s'il te plaît.", "Annule une commande qui est ouverte."),
    "es": ("Cancela mi pedido A-1000, por favor.", "Cancela un pedido que está abierto."),
    "pt": ("Cancele o meu pedido A-1000, por favor.", "Cancela um pedido que não está fechado."),
    "ru": ("Отмени мой заказ A-1000", "Отменяет открытый заказ."),
    "ar": ("ألغِ طلبي رقم A-1000 من فضلك", "يلغي طلبًا مفتوحًا."),
    "zh": ("取消我的订单 A-1000", "取消未完成的订单。"),
    "ja": ("注文A-1000をキャンセルしてください", "未処理の注文をキャンセルします。"),
    "ko": ("주문 A-1000을 취소해 주세요", "열려 있는 주문을 취소합니다."),
}
OTHERS = {
    "it": ("Annulla il mio ordine per favore.", "Annulla un ordine che non è chiuso."),
    "uk": ("Скасуй моє замовлення", "Скасовує відкрите замовлення."),
    "fa": ("سفارش من را لغو کن", "یک سفارش باز را لغو می‌کند."),
    "hi": ("मेरा ऑर्डर रद्द करें", "खुले ऑर्डर को रद्द करता है।"),
    "el": ("Ακύρωσε την παραγγελία μου", "Ακυρώνει μια ανοιχτή παραγγελία."),
    "nl": ("Annuleer mijn bestelling, graag.", "Annuleert een bestelling die niet dicht is."),
    "vi": ("Hủy đơn hàng của tôi", "Hủy một đơn hàng."),
}


def row(said: str, described: str, number: int = 0) -> dict[str, Any]:
    """A conversation with one call; what the assistant says is as the user does."""
    call = {"name": "cancel_order", "arguments": '{"order_id":"A-1000"}'}
    schema = {
        "type": "object",
        "properties": {"order_id": {"type": "string", "description": described}},
        "required": ["order_id"],
    }
    function = {"name": "cancel_order", "description": described, "parameters": schema}
    return {
        "messages": [
            {"role": "user", "content": said},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}'},
            {"role": "assistant", "content": "OK: A-1000"},
        ],
        "tools": [{"type": "function", "function": function}],
        "number": number,
    }


def made(given: dict[str, Any], *shifts: str) -> Any:
    """What becomes of a row."""
    return augmented(given, json.dumps(given).encode(), Recipe(1.0, shifts))


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_are_told_by_a_sentence(language):
    for text in (*TALK[language], *REFUSALS[language]):
        assert language_of([text], ENGLISH) == language


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_are_not_taken_for_their_neighbours(language):
    for text in OTHERS[language]:
        assert language_of([text], ENGLISH) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_is_in_the_language_of_the_conversation(language):
    endings = []
    for number in range(12):
        given = row(TALK[language][0], TALK["en"][1], number)
        for one in made(given, ENDINGS).rows:
            endings.append(one["messages"][-1]["content"])
    refusals = [text for text in endings if text != "OK: A-1000"]
    assert refusals
    assert set(refusals) <= set(REFUSALS[language])


@pytest.mark.parametrize("language", OTHERS)
def test_a_refusal_in_another_language_is_not_applicable(language):
    reasons = set()
    for number in range(12):
        done = made(row(OTHERS[language][0], TALK["en"][1], number), ENDINGS)
        assert not done.rows
        reasons |= set(done.reasons.values())
    assert any("its language cannot be told" in why for why in reasons)


@pytest.mark.parametrize("language", [*LANGUAGES, *OTHERS])
@pytest.mark.parametrize(
    "shift", ["EFP", "SRP", "options", "parameters", "midway", "graph", "SBP", "formats"]
)
def test_no_shift_speaks_english_where_tools_do_not(language, shift):
    described = {**TALK, **OTHERS}[language][1]
    for number in range(6):
        given = row(TALK["en"][0], described, number)
        done = made(given, shift)
        for one in done.rows if language != ENGLISH else ():
            for tool in one["tools"]:
                function = tool["function"]
                texts = [function["description"]]
                texts += [
                    p.get("description", "") for p in function["parameters"]["properties"].values()
                ]
                assert all(language_of([text], ENGLISH) != ENGLISH for text in filter(None, texts))
            results = [m["content"] for m in one["messages"] if m["role"] == "tool"]
            assert all(language_of([text]) != ENGLISH for text in results)
        if language == ENGLISH and shift in ("EFP", "SRP", "options"):
            assert done.rows


@pytest.mark.parametrize("shift", ["description_paraphrase", "idle_sentences", "transient_error"])
@pytest.mark.parametrize(
    "described", ["获取一种货币的汇率。", "Liefert den Kurs einer Währung und ist nicht für Gold."]
)
def test_a_few_english_words_around_another_language_are_english(described, shift):
    for number in range(8):
        done = made(row(TALK["en"][0], described, number), shift)
        assert not done.rows
        assert all("it would speak English" in why for why in done.reasons.values())


@pytest.mark.parametrize(
    "text",
    ["Gets a rate.", "Answers.", "", "get_rate", "Items per page.", "ID", "Rate in USD", "20 °C"],
)
def test_few_words_of_tools_are_taken_for_english(text):
    assert in_english([{"name": "x", "description": text}])


# -- tools of other rows ---------------------------------------------------------------------------


def others(*languages: str) -> Lent:
    """Tools of other rows, two in each of some languages, named by it."""
    index = ToolIndex()
    for language in languages:
        described = {**TALK, **OTHERS}[language][1]
        listed = [{"name": f"{language}_{number}", "description": described} for number in range(2)]
        index.add(listed)
    return index.functions


def beside(language: str, functions: Lent, number: int = 0) -> tuple[set[str], str]:
    """The tools that a row in a language is shown beside its own, and why there are none."""
    given = row(TALK["en"][0], {**TALK, **OTHERS}[language][1], number)
    recipe = Recipe(1.0, (DISTRACTORS,), (3,))
    done = augmented(given, json.dumps(given).encode(), recipe, functions)
    shown = {tool["function"]["name"] for one in done.rows for tool in one["tools"]}
    return shown - {"cancel_order"}, done.reasons.get(DISTRACTORS, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_tools_of_other_rows_are_in_the_language_of_the_row(language):
    shown, _ = beside(language, others(*LANGUAGES, *OTHERS))
    assert shown == {f"{language}_0", f"{language}_1"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_no_other_tool_is_in_the_language_that_is_the_reason(language):
    functions = others(*(one for one in LANGUAGES if one != language))
    shown, why = beside(language, functions)
    assert not shown
    assert why == f"the data has no other tools in {LANGUAGES[language]}"


@pytest.mark.parametrize("language", OTHERS)
def test_where_the_language_cannot_be_told_no_tool_stands_beside(language):
    shown, why = beside(language, others(*LANGUAGES, *OTHERS))
    assert not shown
    assert "cannot be told" in why


def test_one_tool_in_the_language_is_found_among_many():
    english = [{"name": f"{n}", "description": TALK["en"][1]} for n in range(200)]
    functions = {**others("de"), "en": english}
    for number in range(5):
        shown, _ = beside("de", functions, number)
        assert shown == {"de_0", "de_1"}


def test_an_english_tool_with_a_word_of_another_language_is_lent_to_english_rows_alone():
    index = ToolIndex()
    told = "Encrypt text using DES"  # "des" is French
    index.add([{"name": f"en_{n}", "description": TALK["en"][1]} for n in range(2)])
    index.add([{"name": "encrypt", "description": told}, {"name": "say", "description": "Say it."}])
    assert beside("fr", index.functions) == (set(), "the data has no other tools in French")
    assert "encrypt" in beside("en", index.functions)[0]


def test_a_tool_without_a_word_of_its_language_is_not_taken_for_english():
    index = ToolIndex()
    german = [{"name": f"de_{n}", "description": TALK["de"][1]} for n in range(2)]
    index.add([*german, {"name": "kurz", "description": "Storniert Bestellung."}])
    assert beside("en", index.functions) == (set(), "the data has no other tools in English")
