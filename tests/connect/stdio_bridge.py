"""A program whose standard input and output are a server of the test's own process.

A server that imports the library takes seconds of the processor to start. This one joins its pipes
to a port: `python -S stdio_bridge.py PORT`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def send(there: socket.socket) -> None:
    while said := os.read(0, 65536):
        there.sendall(said)
    there.shutdown(socket.SHUT_WR)


def main() -> None:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as there:
        threading.Thread(target=send, args=(there,), daemon=True).start()
        while heard := there.recv(65536):
            os.write(1, heard)
    os._exit(0)  # the thread may wait for input


if __name__ == "__main__":
    main()
