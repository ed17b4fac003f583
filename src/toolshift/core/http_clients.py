"""HTTP clients with one connection each, for a thousand threads that send requests at once.

The pool of one client goes through all its connections, under a lock, whenever a request begins or
ends: with a thousand of them that takes more time than the request itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolshift.core.http import httpx


class Clients:
    """Clients with the same settings and one jar of cookies; each serves one thread at a time.

    Args:
        most: how many connections there are at most; who comes then waits.
        verify: whether certificates are checked.
        trust_env: whether the environment says which proxies and certificates are used.
        how: further settings of `httpx.Client`.
    """

    def __init__(self, most: int, verify: bool = True, trust_env: bool = True, **how: Any) -> None:
        # One for all: to load the certificates takes 30 ms.
        context = httpx.create_ssl_context(trust_env=trust_env) if verify else False
        jar = httpx.Cookies().jar
        limits = httpx.Limits(max_connections=1)
        self._how = {**how, "verify": context, "trust_env": trust_env, "cookies": jar}
        self._how["limits"] = limits
        self._free: list[httpx.Client] = []
        self._made: list[httpx.Client] = []
        self._room = threading.Semaphore(most)

    def make(self) -> httpx.Client:
        """A further client, which is closed with the others."""
        client = httpx.Client(**self._how)
        self._made.append(client)
        return client

    @contextmanager
    def lent(self) -> Iterator[httpx.Client]:
        """One that nobody else uses meanwhile: the one that was used last, as it is connected."""
        with self._room:
            try:
                client = self._free.pop()
            except IndexError:
                client = self.make()
            try:
                yield client
            finally:
                self._free.append(client)

    def close(self) -> None:
        """Closes the connections of all."""
        for client in self._made:
            client.close()
