"""How a shift's severities stand beside releases of real servers; see docs/real-drift.md."""

from __future__ import annotations

from functools import cache

import msgspec

from toolshift.core.tables import table_beside


class RealDrift(msgspec.Struct, frozen=True):
    """What a shift does to a list of tools, beside what releases of published servers did.

    Attributes:
        like: the kind of real change that it is like.
        releases: how many of the releases that were looked at have such a change.
        share: by severity, the median share of the shown tools that it touches.
        quantile: by severity, the part of those releases that touch at most that share.
    """

    like: str
    releases: int
    share: dict[int, float]
    quantile: dict[int, float]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each severity."""
        return [
            f"severity {severity} touches {self.share[severity]:.0%} of the shown tools, no fewer "
            f"than {self.quantile[severity]:.0%} of {self.releases} real releases ({self.like})"
            for severity in self.share
        ]


@cache
def _known() -> dict[str, RealDrift]:
    return msgspec.convert(
        table_beside(__file__, "real_drift.toml"), dict[str, RealDrift], strict=False
    )


def real_drift(shift: str) -> RealDrift | None:
    """How the severities of a shift stand beside real releases."""
    return _known().get(shift)
