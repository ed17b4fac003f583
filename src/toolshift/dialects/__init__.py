"""The dialects in which models are spoken to, each a codec from and to one form.

The form is that of OpenAI's chat completions (`dialects.form`): messages, tools, a choice of tool.
A codec keeps what it does not read, so that what is written back has the same bytes as what was
read, but for what a shift changed.
"""

from __future__ import annotations

from toolshift.core.registry import Registry
from toolshift.dialects.form import Dialect

DIALECTS: Registry[Dialect] = Registry(
    "dialect",
    {
        "chat": "toolshift.dialects.chat:CHAT",
        "responses": "toolshift.dialects.responses:RESPONSES",
    },
    "toolshift.dialects",
)


def dialect_of(method: str, path: str) -> Dialect | None:
    """The dialect of a request to a model's server, by its path; None where it is of none."""
    return next((one for one in DIALECTS.all().values() if one.takes(method, path)), None)
