"""The formats of tool-use data, found by name or by what a row holds.

Other packages add theirs by the entry-point group `toolshift.formats`; each is an object as
`data.conversation.Format` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.core.registry import Registry
from toolshift.data.conversation import Format, RowFault

FORMATS: Registry[Format] = Registry(
    "format",
    {
        "openai": "toolshift.data.formats.openai:OPENAI",
        "hermes": "toolshift.data.formats.hermes:HERMES",
        "sharegpt": "toolshift.data.formats.sharegpt:SHAREGPT",
        "xlam": "toolshift.data.formats.xlam:XLAM_ROWS",
        "toolace": "toolshift.data.formats.toolace:TOOLACE",
        "adp": "toolshift.data.formats.adp:ADP_ROWS",
    },
    "toolshift.formats",
)


def recognised(row: Mapping[str, Any]) -> Format:
    """The format of a row, by what is in it.

    Args:
        row: as it was read.

    Returns:
        What reads and writes such rows.

    Raises:
        RowFault: where it is of none that is known.
    """
    for each in FORMATS.all().values():
        if each.recognises(row):
            return each
    columns = ", ".join(map(str, list(row)[:8])) or "none"
    raise RowFault(
        f"no known format has these columns: {columns} (known: {', '.join(FORMATS.names())})"
    )
