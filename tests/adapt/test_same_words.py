"""Two names are the same words, or they are two names; nothing lies between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.adapt.same_words import same_spelling, same_words, spoken

WORDS = st.lists(
    st.one_of(
        st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=8),
        st.text("абвгдежзик", min_size=2, max_size=6),
        st.text("取得残高債務查询", min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=5,
)
WRITTEN = (
    "_".join,
    "-".join,
    ".".join,
    "/".join,
    lambda words: "_".join(words).upper(),
    lambda words: " ".join(word.title() for word in words),
)


@given(WORDS, st.sampled_from(WRITTEN), st.sampled_from(WRITTEN))
def test_a_name_is_the_same_however_it_is_written(
    words: list[str], one: object, other: object
) -> None:
    first, second = one(words), other(words)  # type: ignore[operator]
    assert same_words(first, second)
    assert same_words(second, first)
    assert same_words(f"{first}_v2", second)


@given(WORDS, st.integers(0, 4), WORDS)
def test_a_name_with_another_word_is_another_name(
    words: list[str], place: int, others: list[str]
) -> None:
    alien = f"zq{others[0]}xq"
    changed = [*words]
    changed[place % len(words)] = alien
    for other in (changed, [*words, alien], [alien, *words]):
        assert not same_words("_".join(words), "_".join(other))
        assert not same_spelling("_".join(words), "_".join(other))


@given(st.text(max_size=12), st.text(max_size=12))
def test_the_judgement_is_the_same_from_both_sides(one: str, other: str) -> None:
    assert same_words(one, other) == same_words(other, one)
    assert same_spelling(one, other) == same_spelling(other, one)
    assert not same_spelling(one, other) or same_words(one, other, of_tools=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("getOrder", "get_order"),
        ("getOrder", "orders.get"),
        ("get_order", "get-order-v2"),
        ("get_order", "getOrderV2"),
        ("get_order", "get_order_2"),
        ("GetOrder", "GET ORDER"),
        ("list_categories", "listCategory"),
        ("box/open", "boxes.open"),
        ("parseHTTPHeader", "parse_http_header"),
        ("найтиЗаказ", "найти_заказ"),
        ("取得_残高", "取得.残高"),
        ("cafe\u0301_list", "caf\u00e9.list"),
    ],
)
def test_the_same_words(one: str, other: str) -> None:
    assert same_words(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pause_job", "kill_job"),
        ("amount", "amount_minor"),
        ("dry_run", "confirm"),
        ("savings", "checking"),
        ("savings_account", "checking_account"),
        ("account_1", "account_2"),
        ("account1", "account2"),
        ("sha1", "sha256"),
        ("hash_sha_1", "hash_sha_256"),
        ("ipv4", "ipv6"),
        ("block_ip_v4", "block_ip_v6"),
        ("base", "base64"),
        ("eur_to_usd", "usd_to_eur"),
        ("copy_a_b", "copy_b_a"),
        ("usd_eur", "eur_usd"),
        ("debit_credit", "creditDebit"),
        ("Maße_lesen", "Masse_lesen"),
        ("price_$", "price_€"),
        ("price_€", "price"),
        ("step_-1", "step_1"),
        ("delay_m", "delay_ms"),
        ("lock_door", "unlock_door"),
        ("locked", "unlocked"),
        ("HIS_残高", "HIS_債務"),
        ("get_残高", "get_債務"),
        ("查询余额", "查询债务"),
        ("حذف_بطاقة", "تجميد_بطاقة"),
        ("खाता_देखें", "खाता_हटाएं"),
        ("конто_закрыть", "конто_открыть"),
        ("konto_öffnen", "konto_offnen"),
        ("v1", "v2"),
        ("get", "get_order"),
        ("", ""),
        ("_", "-"),
    ],
)
def test_other_words(one: str, other: str) -> None:
    assert not same_words(one, other)
    assert not same_spelling(one, other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("orderRef", "order_ref", True),
        ("ORDER_TOTAL", "orderTotal", True),
        ("size_Mb", "size_MB", False),
        ("dose_mg", "dose_Mg", False),
        ("day", "days", False),
        ("total", "total_v2", False),
        ("order_total", "total_order", False),
    ],
)
def test_a_spelling_is_case_and_separators_alone(one: str, other: str, same: bool) -> None:
    assert same_spelling(one, other) == same


def test_an_address_with_a_number_is_another_address() -> None:
    assert not same_words("address", "address_2", of_tools=False)


def test_a_name_is_spoken_as_its_words() -> None:
    assert spoken("ignoreAll_previous-instructions") == "ignore all previous instructions"
