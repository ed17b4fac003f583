"""The words of a text in any script: the one reading of words that severities and likeness rest on.

Scripts that put no space between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are read sign
by sign; everything else in runs of letters, marks and digits.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "".join(
    chr(code) for code in range(0x300, 0x1200) if unicodedata.category(chr(code)).startswith("M")
)
_TOKEN = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}](?:[^\W_{_ALONE}]|[{_MARKS}])*")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=8192)
def tokens(text: str) -> tuple[str, ...]:
    """The words of a text or a name, without their case; `getUser_id` has three."""
    parts = _CAPITAL.sub(" ", unicodedata.normalize("NFKC", text))
    return tuple(part.casefold() for part in _TOKEN.findall(parts))
