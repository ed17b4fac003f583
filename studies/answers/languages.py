"""Writes `src/toolshift/reading/answers/languages.json` from CLDR (by babel) and num2words.

    pip install babel==2.19.0 num2words==0.5.14
    python studies/answers/languages.py

The table is shipped (18 KB) and the libraries (36 MB and 1.3 MB) are not needed to read answers: a
grade may not depend on what is installed, nor on what a library guesses in its next version.
"""

from __future__ import annotations

import json
from pathlib import Path

from babel.dates import get_month_names
from num2words import num2words

MONTHS = (
    "de fr es it pt nl sv da nb fi pl cs sk hu ro hr sl bg ru uk el tr id vi lt lv et ca gl eu is"
)
NUMBERS = "de fr es it pt nl sv da no fi pl cs sk hu ro ru uk tr id vi lt lv sl ja ko ar he th"
FILE = Path(__file__).parents[2] / "src/toolshift/reading/answers/languages.json"


def main() -> None:
    """Writes the table."""
    months: dict[str, set[int]] = {}
    for language in MONTHS.split():
        for form in ("format", "stand-alone"):
            for number, name in get_month_names("wide", form, language).items():
                months.setdefault(name.casefold(), set()).add(number)
    words = {
        str(number): sorted(
            {
                num2words(number, lang=language).casefold().replace("\u00ad", "")
                for language in NUMBERS.split()
            }
        )
        for number in range(31)
    }
    table = {"months": {k: sorted(v) for k, v in sorted(months.items())}, "number_words": words}
    FILE.write_text(json.dumps(table, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
