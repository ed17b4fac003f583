"""The language of a text, told by its script and its commonest words; "" where it is not plain.

Small on purpose: what is written into a conversation must be in its language, and where that
cannot be told nothing is written. So a doubt costs a row that is not shifted, and a library that
may or may not be installed would make other rows on other machines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

ENGLISH = "en"
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "ru": "Russian",
    "ar": "Arabic",
    "zh": "Chinese",
    "ja": "Japanese",
    "ko": "Korean",
}
"""The languages that are told, and written in."""

_COMMON = {
    "en": "a the of and to in is are was for on with that this you your my it i be not have has "
    "can what which please from by at as will would how",
    "de": "der die das und ist nicht ein eine einen ich du sie wir mit für auf von zu den dem im "
    "bitte kann wie was mein meine ihr ihre sind wird werden auch gibt",
    "fr": "à il te le la les des et est une un du je vous nous pas pour dans avec sur que qui "
    "ce cette mon ma mes votre vos quel quelle peux plaît sont être aux",
    "es": "el la los las y es una un de que en por para con mi tu su no se lo del al como qué cuál "
    "puedes favor está son más hay quiero",
    "pt": "o a os as e é uma um de que em por para com meu minha seu sua não se do da no na ao "
    "você qual está são mais há quero dos das",
    # Not written in, and here so that they are not taken for their neighbours.
    "it": "il lo la gli le e è una un di che in per con mio mia tuo non si del della dei sono come "
    "qual puoi favore più alla nel",
    "nl": "de het een en is niet ik je jij u wij met voor op van te dat mijn uw wat hoe kan zijn "
    "wordt graag naar",
    "pl": "i w na z do nie się jest to że mój moje proszę jak czy dla od po są jaki",
    "sv": "och är en ett att det som på av för med inte jag du min mitt kan hur vad till",
    "da": "og er en et at det som på af for med ikke jeg du min mit kan hvordan hvad til",
    "tr": "ve bir bu için ile ne mi mı ben benim sen var yok lütfen nasıl çok daha",
    "vi": "là của và tôi bạn không có cho này một được trong với xin hãy",
    "id": "yang dan di ini itu dengan untuk tidak saya anda dari adalah ke tolong bisa",
    "cs": "a je na se že v s do ne jsem můj moje prosím jak pro od to jsou",
    "ro": "și este un o de la în cu pe nu meu mea te rog cum ce pentru sunt",
    "fi": "ja on ei se että minun minä voi miten mikä tämä ole kanssa",
    "hu": "a az és egy nem hogy van kérem mi ez azt vagy is meg",
}
_OF_WORD: dict[str, list[str]] = {}
for _language, _words in _COMMON.items():
    for _word in _words.split():
        _OF_WORD.setdefault(_word, []).append(_language)
_NOT_RUSSIAN = set("іїєґўјљњћђќѓџәғқңөұүһ")
_NOT_ARABIC = set("پچژگکیٹڈڑںےھۆێڕ")
_WORD = re.compile(r"(?<![\w'’/.@#-])[^\W\d_]+(?![\w'’/@#-])")
"""A word that is no piece of a code or an address."""


def language_of(texts: Iterable[str], unknown: str = "", least: int = 1) -> str:
    """The code of the language of texts; "" where it is none of `LANGUAGES`, or cannot be told.

    `unknown` is what is said of texts in ASCII in which too few words tell a language: fewer than
    `least` that are common in another one than English, as a few may stand there by chance.
    """
    return _of("\n".join(texts), unknown, least)


def common_words(text: str, language: str) -> int:
    """How many of the commonest words of a language a text has; single letters do not count."""
    words = _WORD.findall(text.lower())
    return sum(language in _OF_WORD.get(word, ()) for word in words if len(word) > 1)


@lru_cache(maxsize=4096)
def _of(text: str, unknown: str, least: int) -> str:
    scripts = Counter(map(_script, filter(str.isalpha, text)))
    letters = scripts.total()
    # A letter of the East is a word or a syllable, and names and codes stand in Latin everywhere.
    for script, told in (
        ("HANGUL", "ko"),
        ("KANA", "ja"),
        ("CJK", "zh"),
        ("CYRILLIC", "ru"),
        ("ARABIC", "ar"),
    ):
        if scripts[script] > letters * (0.05 if script == "KANA" else 0.25):
            return told if _is_written_so(text.lower(), told) else ""
    if scripts["LATIN"] < letters * 0.75:
        return ""
    return _by_words(text, unknown, least)


def _is_written_so(text: str, language: str) -> bool:
    """Whether no letter is one that neighbours of a language write and it does not."""
    others = {"ru": _NOT_RUSSIAN, "ar": _NOT_ARABIC}.get(language, set())
    return others.isdisjoint(text)


@lru_cache(maxsize=8192)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "")
    if name.startswith(("HIRAGANA", "KATAKANA")):
        return "KANA"
    return name.partition(" ")[0]


def _by_words(text: str, unknown: str, least: int) -> str:
    """The language of a text in Latin letters, by how many of its words are common in which."""
    found: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        for language in _OF_WORD.get(word, ()):
            found[language] += 1
    plain = all(letter.isascii() for letter in text if letter.isalpha())
    most = max(found.values(), default=0)
    best = [language for language, count in found.items() if count == most]
    if plain and (most < least or ENGLISH in best) and best != [ENGLISH]:
        return unknown
    return best[0] if len(best) == 1 and best[0] in LANGUAGES else ""
