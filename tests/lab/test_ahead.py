"""The prospective check: what was said before stays as it was said."""

import hashlib
import lzma
from pathlib import Path

STUDY = Path(__file__).parents[2] / "studies" / "ahead"


def test_the_predictions_are_those_that_were_committed_before_the_calls_were_played() -> None:
    packed = (STUDY / "predictions.json.xz").read_bytes()
    known = (STUDY / "predictions.sha256").read_text().split()[0]
    assert hashlib.sha256(lzma.decompress(packed)).hexdigest() == known
    assert known.startswith("f8113b3e2d9eb9af")  # the hash of that commit
