"""Where a chat endpoint is, what is sent to it beside the request, and what of that is secret."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolshift.core.errors import UsageError

PATH = "/chat/completions"

_SECRET_HEADER = re.compile("key|token|auth|secret|cookie")


def completions_url(base_url: str) -> str:
    """The address that requests go to.

    Raises:
        UsageError: where the base url is none, or holds a password.
    """
    parts = urlsplit(base_url.strip())
    if parts.username or parts.password:
        raise UsageError("the base url holds a user or password: pass them as headers instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"base url {base_url!r} is no address: write http(s)://host[:port]/v1")
    path = parts.path.rstrip("/").removesuffix(PATH) + PATH
    return urlunsplit(parts._replace(path=path, fragment=""))


def is_local(url: str) -> bool:
    """Whether it is an address of this machine."""
    host = urlsplit(url).hostname or ""
    return bool(re.fullmatch(r"(.+\.)?localhost|127(\.\d+){3}|::1|0\.0\.0\.0", host))


def headers_of(api_key: str, extra: Mapping[str, str], place: str) -> dict[str, str]:
    """The headers to send, checked here because a client's own complaint would quote the key."""
    key = {"authorization": f"Bearer {api_key.strip()}"} if api_key.strip() else {}
    sent = {**key, **{name.lower(): value.strip() for name, value in extra.items()}}
    if not is_local(place) and not any(map(_SECRET_HEADER.search, sent)):
        raise UsageError(
            f"no key for {place}: set OPENAI_API_KEY or TOOLSHIFT_API_KEY, or pass api_key "
            "(any word will do where the server asks for none). Nothing was sent."
        )
    for name, value in sent.items():
        if not re.fullmatch(r"[!-~]+( [!-~]+)*", value):
            raise UsageError(f"header {name!r} has spaces or signs a key cannot: copy it again")
    return {"content-type": "application/json", **sent}


def striker(headers: Mapping[str, str]) -> Callable[..., str]:
    """A function that blots the secrets out; a closure, so that no repr can show them."""
    secrets = {
        value.split(" ")[-1] for name, value in headers.items() if _SECRET_HEADER.search(name)
    }

    def strike(text: str, shortest: int = 4) -> str:
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "[secret]") if len(secret) >= shortest else text
        return text

    return strike


def told(value: Any, name: str = "") -> Any:
    """A setting as it may be written down: a text under a secret's name is blotted out."""
    if isinstance(value, Mapping):
        return {key: told(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [told(inner, name) for inner in value]
    return "[secret]" if isinstance(value, str) and _SECRET_HEADER.search(name.lower()) else value


def retry_after(value: str | None) -> float:
    """Seconds that a Retry-After header asks for, as seconds or as an HTTP date; else 0."""
    if re.fullmatch(r"\d+(\.\d+)?", value or ""):
        return float(value or 0)
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
