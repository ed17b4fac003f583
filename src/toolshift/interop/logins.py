"""Where logins at servers are kept: the keyring of the operating system, or files of mode 600.

With the package `keyring` and a keyring that works, there; else in a folder that only the user can
read. `TOOLSHIFT_LOGINS` names another folder, and then the keyring is not used.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.interop.server import address_name

FOLDER = "TOOLSHIFT_LOGINS"
SERVICE = "toolshift"
Grant = Literal["browser", "client_credentials"]


class Login(msgspec.Struct, frozen=True, omit_defaults=True):
    """A login at a server: what is needed to reach it again without anybody being asked.

    Attributes:
        url: of the server.
        grant: how tokens are got.
        client: the client as it is registered; without the secret where `secret_in` names it.
        tokens: as they were granted.
        expires: when the token ends, in seconds since 1970; None where that is unknown.
        authorization: what the authorization server says of itself.
        resource: what the server says of itself as a protected resource.
        issuer: the authorization server that a client's secret may be sent to; "" for none named.
        secret_in: the variable of the environment that has the client's secret.
    """

    url: str
    grant: Grant = "browser"
    client: dict[str, Any] = {}
    tokens: dict[str, Any] = {}
    expires: float | None = None
    authorization: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    issuer: str = ""
    secret_in: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values in it that nobody may see."""
        named = (self.tokens.get("access_token"), self.tokens.get("refresh_token"))
        found = (*named, self.client.get("client_secret"), os.environ.get(self.secret_in))
        return tuple(str(one) for one in found if one)


def read_login(url: str) -> Login | None:
    """The login at a server; None where there is none."""
    raw: bytes | str | None = _from_keyring(url)
    if raw is None:
        raw = _from_file(_file(url))
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=Login)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(
            f"the login stored for {address_name(url)} is damaged: log in again with "
            f"`{command('login', address_name(url))}`"
        ) from None


def keep_login(login: Login) -> str:
    """Keeps a login in place of an older one; returns where, in words."""
    raw = JSON.encode(login)
    ring = _keyring()
    if ring is not None:
        ring.set_password(SERVICE, _key(login.url), raw.decode())
        _file(login.url).unlink(missing_ok=True)
        return "the keyring of the operating system"
    path = _file(login.url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.unlink(missing_ok=True)
        # Nobody else can read it at any time.
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(raw)
        new.replace(path)
    except OSError as fault:
        raise UsageError(f"{path}: the login cannot be stored there ({fault.strerror})") from None
    return f"{path} (mode 600)"


def forget_login(url: str) -> bool:
    """Deletes the login at a server; returns whether there was one."""
    path = _file(url)
    found = path.is_file() or _from_keyring(url) is not None
    path.unlink(missing_ok=True)
    ring = _keyring()
    if ring is not None:
        with suppress(Exception):  # there is none; each keyring has an error of its own for that
            ring.delete_password(SERVICE, _key(url))
    return found


def _key(url: str) -> str:
    """A login is at an address, without its query: messages name it so."""
    return address_name(url).rstrip("/")


def _file(url: str) -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    folder = Path(os.environ.get(FOLDER) or Path(home) / "toolshift" / "logins")
    return folder / f"{sha256(_key(url).encode()).hexdigest()[:24]}.json"


def _from_file(path: Path) -> bytes | None:
    try:
        open_to = stat.S_IMODE(path.stat().st_mode) & 0o077 if os.name == "posix" else 0
        if open_to:
            raise UsageError(f"{path} can be read by others: `chmod 600 {path}`, or log in again")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None


def _from_keyring(url: str) -> str | None:
    ring = _keyring()
    try:
        return None if ring is None else ring.get_password(SERVICE, _key(url))
    except Exception as fault:  # each keyring has errors of its own
        raise UsageError(
            f"the keyring does not answer ({type(fault).__name__}): unlock it, or name a "
            f"folder for logins in {FOLDER}"
        ) from None


def _keyring() -> Any:
    """The operating system's keyring; None where there is none, or a folder is named."""
    if os.environ.get(FOLDER):
        return None
    try:
        import keyring  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    return keyring if getattr(keyring.get_keyring(), "priority", 0) > 0 else None
