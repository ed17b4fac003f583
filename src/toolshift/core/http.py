"""The HTTP client of ToolShift: `httpx2`, or its predecessor `httpx` where that alone is there.

Both have the same names. What needs a client takes `httpx` from here, so that one environment has
one of them, and a change of library is a change of this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx

__all__ = ["httpx"]
