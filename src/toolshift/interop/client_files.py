"""Which server a text means; the files in which MCP clients keep their servers are read by name.

    server_of("mcp:npx -y my-server@1.2")    is started, over standard input and output
    server_of("https://example.com/mcp")     runs already, over streamable HTTP
    server_of(".mcp.json#github")            as the client of that file would reach it

Nothing is started or asked here, and only the entry that is named is looked at: a variable that
another one needs is not missed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolshift.core.documents import read_jsonc, read_toml
from toolshift.core.errors import UsageError
from toolshift.core.files import read_given
from toolshift.core.names import unknown
from toolshift.core.terminal import say
from toolshift.core.values import as_list
from toolshift.interop.server import (
    ADDRESS,
    COMMAND,
    Server,
    address_name,
    command_name,
    command_of,
    without_folder,
)

SUFFIXES = (".json", ".jsonc", ".toml")
INPUT = "TOOLSHIFT_INPUT_"
"""How the variable begins that holds what VS Code would ask for, as TOOLSHIFT_INPUT_API_KEY."""


@dataclass(frozen=True)
class _Client:
    """A client by what it writes into its file.

    Attributes:
        name: how messages call it.
        form: what it replaces in a text; "" for nothing.
    """

    name: str
    form: str = ""


_SHELL = r"\$\{(?P<variable>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}"
_EDITOR = r"\$\{(?P<known>[A-Za-z_]\w*|/)(?::(?P<argument>[^}]+))?\}"
_OPENCODE = r"\{(?P<known>env|file):(?P<argument>[^}]+)\}"

_DESKTOP = _Client("Claude Desktop")
_CLAUDE = _Client("Claude Code", _SHELL)
_CURSOR = _Client("Cursor", _EDITOR)
_VS_CODE = _Client("VS Code", _EDITOR)
_CODEX = _Client("Codex")
_OPEN_CODE = _Client("opencode", _OPENCODE)
_OTHER = _Client("an MCP client", f"{_SHELL}|{_EDITOR}")
_BY_NAME = {
    "claude_desktop_config.json": _DESKTOP,
    ".mcp.json": _CLAUDE,
    ".claude.json": _CLAUDE,
}
_BY_FOLDER = {".cursor": _CURSOR, ".vscode": _VS_CODE}

_READ = (
    *("command", "args", "env", "environment", "cwd", "envFile"),
    *("url", "serverUrl", "httpUrl", "headers", "http_headers", "env_http_headers"),
    *("bearer_token_env_var", "type", "transport", "oauth", "auth"),
)
_INERT = (
    *("enabled", "disabled", "required", "timeout", "startup_timeout_sec", "startup_timeout_ms"),
    *("tool_timeout_sec", "description", "gallery", "version", "dev", "trust", "alwaysAllow"),
    *("autoApprove", "env_vars", "name"),
)
"""What decides neither which server is reached nor what it lists.

`env_vars` lets variables through; a command inherits all of them here.
"""


def server_of(text: str) -> Server | None:
    """The server that a text names; None where it names something else, such as a list of tools."""
    if text.startswith(COMMAND):
        command = command_of(text)
        return Server(command_name(command), command)
    if text.startswith(ADDRESS):
        return Server(address_name(text), url=text)
    path, name = _split(text)
    if not path.is_file() or path.suffix not in SUFFIXES:
        return None
    if not name and path.suffix != ".toml" and not _looks_like_one(path):
        return None
    return _find(path, name)


def file_of(origin: str) -> Path | None:
    """The file in what a lock has of a server that was named as FILE#NAME; None without a name."""
    path, name = _split(origin)
    return path if name and not origin.startswith((COMMAND, *ADDRESS)) else None


def _split(text: str) -> tuple[Path, str]:
    """The file and the name in `FILE#NAME`; a file may itself be called so."""
    file, mark, name = text.rpartition("#")
    if not mark or Path(text).is_file():
        return Path(text), ""
    return Path(file), name


def _looks_like_one(path: Path) -> bool:
    """Whether a file in JSON has servers, and not tools; what cannot be read is said elsewhere."""
    try:
        document = _read(path)
    except UsageError:
        return False
    return _servers(document, path) is not None


def _read(path: Path) -> Any:
    try:
        raw = read_given(path)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    return (read_toml if path.suffix == ".toml" else read_jsonc)(raw, str(path))


def _servers(document: Any, path: Path) -> tuple[Mapping[str, Any], _Client] | None:
    """The servers in a document by name, and whose file it is."""
    if not isinstance(document, Mapping):
        return None
    for key, client in (("mcp_servers", _CODEX), ("mcp", _OPEN_CODE), ("servers", _VS_CODE)):
        found = document.get(key)
        if isinstance(found, Mapping):
            inner = found.get("servers") if key == "mcp" else None
            if isinstance(inner, Mapping) and not {"type", "command", "url"} & inner.keys():
                return inner, _VS_CODE  # its settings, in which "mcp" has what mcp.json has
            return found, client
    client = _BY_NAME.get(path.name) or _BY_FOLDER.get(path.resolve().parent.name) or _OTHER
    found = document.get("mcpServers")
    local = _of_project(document)
    if isinstance(found, Mapping) or local:
        return {**(found or {}), **local}, client
    bare = [
        isinstance(one, Mapping) and {"command", "url"} & one.keys() for one in document.values()
    ]
    return (document, client) if bare and all(bare) else None


def _of_project(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What .claude.json has for the project in the current folder, which goes before the rest."""
    projects = document.get("projects")
    here = Path.cwd()
    for folder in (here, *here.parents):
        own = projects.get(str(folder)) if isinstance(projects, Mapping) else None
        found = own.get("mcpServers") if isinstance(own, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return {}


def _find(path: Path, name: str) -> Server:
    """The server of a name; where none is named, the only one."""
    document = _read(path)
    found = _servers(document, path)
    if found is None or not found[0]:
        raise UsageError(
            f"{path}: it contains no MCP server; servers must be under mcpServers, servers (VS "
            "Code), mcp (opencode) or [mcp_servers.NAME] (Codex)"
        )
    servers, client = found
    if not name and len(servers) > 1:
        raise UsageError(
            f"{path} has {len(servers)} servers: name one, as {path}#{next(iter(servers))}; there "
            f"are: {', '.join(servers)}"
        )
    name = name or next(iter(servers))
    if name not in servers:
        raise UsageError(f"{path}: {unknown('server', name, servers)}")
    entry = servers[name]
    if not isinstance(entry, Mapping):
        raise UsageError(f"{path}#{name}: it is not a table with a command or a url")
    return _Entry(entry, client, path, name, document).server()


class _Entry:
    """The entry of one server in a file."""

    def __init__(
        self, entry: Mapping[str, Any], client: _Client, path: Path, name: str, document: Any
    ) -> None:
        self.entry, self.client, self.document = entry, client, document
        self.path, self.origin = path, f"{without_folder(str(path))}#{name}"
        self.folder = _workspace(path)

    def server(self) -> Server:
        """The server, as its client would reach it."""
        command = self._command()
        url = next(
            (self._text(key) for key in ("url", "serverUrl", "httpUrl") if key in self.entry), ""
        )
        if bool(command) == bool(url):
            raise self.wrong(
                "it has neither a command nor a url"
                if url == ""
                else "it has both a command and a url"
            )
        if url and not url.startswith(ADDRESS):
            raise self.wrong(f"its url must begin with http:// or https://: {address_name(url)!r}")
        kind = str(self.entry.get("type") or self.entry.get("transport") or "")
        self._say_unread()
        return Server(
            self.origin,
            command,
            url,
            self._headers() if url else {},
            self._environment() if command else {},
            (self.folder / self._text("cwd")) if command else None,
            sse=bool(url) and kind == "sse",
            client_id=self._client_id(),
        )

    def wrong(self, why: str) -> UsageError:
        """The error for a fault in it."""
        return UsageError(f"{self.origin}: {why}")

    def _say_unread(self) -> None:
        """Says what stands in the entry that is not read."""
        left = [key for key in self.entry if key not in (*_READ, *_INERT)]
        if left:
            say(
                f"Warning: {self.origin}: not read: {', '.join(left)}; {self.client.name} may see "
                "other tools than are seen here",
                err=True,
            )

    def _command(self) -> tuple[str, ...]:
        given = self.entry.get("command")
        if given is None:
            return ()
        words = given if isinstance(given, list) else [given]
        words = [*words, *self._list("args")]
        if not words or not all(isinstance(word, str) for word in words) or not words[0]:
            raise self.wrong("its command and args must be texts")
        return tuple(self.value(word) for word in words)

    def _list(self, key: str) -> list[Any]:
        found = self.entry.get(key, [])
        if not isinstance(found, list):
            raise self.wrong(f"{key} must be a list of texts")
        return found

    def _text(self, key: str) -> str:
        found = self.entry.get(key, "")
        if not isinstance(found, str):
            raise self.wrong(f"{key} must be a text")
        return self.value(found)

    def _table(self, key: str) -> dict[str, str]:
        found = self.entry.get(key) or {}
        if not isinstance(found, Mapping):
            raise self.wrong(f"{key} must be a table of names and texts")
        # VS Code takes numbers, and null for a variable that is left out.
        return {str(k): self.value(_as_text(v)) for k, v in found.items() if v is not None}

    def _environment(self) -> dict[str, str]:
        file = self._text("envFile")
        read = _env_file(self.folder / file, self.origin) if file else {}
        return {**read, **self._table("env"), **self._table("environment")}

    def _headers(self) -> dict[str, str]:
        named = self._table("env_http_headers")
        token = self._text("bearer_token_env_var")
        return {
            **self._table("headers"),
            **self._table("http_headers"),
            **{header: self._variable(variable) for header, variable in named.items()},
            **({"Authorization": f"Bearer {self._variable(token)}"} if token else {}),
        }

    def _client_id(self) -> str:
        """Under which its authorization server knows the client, where the file says that."""
        for key in ("oauth", "auth"):
            found = self.entry.get(key)
            for name in ("clientId", "client_id", "CLIENT_ID"):
                if isinstance(found, Mapping) and isinstance(found.get(name), str):
                    return self.value(found[name])
        return ""

    # -- what is put into a text -------------------------------------------------------------------

    def value(self, text: str) -> str:
        """A text with what its client would put into it."""
        return re.sub(self.client.form, self._put, text) if self.client.form else text

    def _put(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        variable, default = parts.get("variable"), parts.get("default")
        if variable and (default is not None or variable not in self._places()):
            return self._variable(variable, default)
        known, argument = variable or parts["known"], parts.get("argument")
        if argument is None:
            if known not in self._places():
                raise self.wrong(f"{found[0]} is not known; there are: {self._known()}")
            return self._places()[known]
        makers: dict[str, Callable[[str], str]] = {
            "env": self._variable,
            "input": self._input,
            "file": self._file,
        }
        if known not in makers:
            raise self.wrong(f"{found[0]} is not known; there are: {self._known()}")
        return makers[known](argument)

    def _places(self) -> dict[str, str]:
        """Names that editors fill in."""
        folder = str(self.folder)
        return {
            "workspaceFolder": folder,
            "workspaceFolderBasename": self.folder.name,
            "workspaceRoot": folder,
            "cwd": folder,
            "userHome": str(Path.home()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def _known(self) -> str:
        return ", ".join(("env:NAME", "input:ID", *self._places()))

    def _variable(self, name: str, default: str | None = None) -> str:
        # As in a shell, an empty variable is none where there is a default.
        found = os.environ.get(name)
        if default is not None:
            return found or default
        if found is None:
            raise self.wrong(f"the environment has no variable {name}")
        return found

    def _input(self, name: str) -> str:
        """What VS Code would ask for: a variable of the environment, or the default."""
        variable = INPUT + re.sub(r"\W", "_", name).upper()
        if variable in os.environ:
            return os.environ[variable]
        listed = self.document.get("inputs")
        for one in as_list(listed):
            if isinstance(one, Mapping) and one.get("id") == name:
                if isinstance(one.get("default"), str):
                    return str(one["default"])
                what = str(one.get("description") or name)
                raise self.wrong(f"set {variable} to the value that VS Code would ask for ({what})")
        raise self.wrong(f"${{input:{name}}} is not among the inputs of the file")

    def _file(self, name: str) -> str:
        path = self.path.parent / Path(name).expanduser()
        try:
            return read_given(path).decode().strip()
        except (OSError, UnicodeDecodeError) as fault:
            raise self.wrong(f"{{file:{name}}} cannot be read ({fault})") from None


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _workspace(path: Path) -> Path:
    """The folder that a file is for; the current one for those of the user's home."""
    above = path.resolve().parent
    folder = above.parent if above.name in (".cursor", ".vscode", ".codex") else above
    inside = folder != Path.home() and path.name != "claude_desktop_config.json"
    return folder if inside else Path.cwd()


def _env_file(path: Path, origin: str) -> dict[str, str]:
    """The variables of a file with a line `NAME=value` for each."""
    try:
        return dict(_assigned(read_given(path).decode().splitlines(), path))
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{origin}: envFile {path} cannot be read ({fault})") from None


def _assigned(lines: list[str], path: Path) -> Iterator[tuple[str, str]]:
    for number, written in enumerate(lines, 1):
        line = written.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise UsageError(f"{path}, line {number}: a line must have the form NAME=value")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        yield name.strip(), value[1:-1] if quoted else value
