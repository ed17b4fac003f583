"""Programs of agents in namespaces of their own, where the system allows: Linux, by `unshare`.

A program of the same user can otherwise read what ToolShift has in memory (`/proc`, a debugger) and
the run folder, where the plan and the verdicts stand. In a namespace of its own it sees no other
process, and the run folder is empty. Other files of the user, and the network, stay as they are.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from toolshift.core.errors import UsageError

_NEEDED = ("unshare", "setpriv", "mount", "sh")
_ENTER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]
_HIDE = 'n=$1; shift; while [ "$n" -gt 0 ]; do mount -t tmpfs none "$1" || exit 125; '
_HIDE += 'n=$((n-1)); shift; done; cd "$PWD" || exit 125; '
# What is mounted stays: the program gets no right to undo it. The shell waits, for a program that
# is the first process of its namespace would not hear signals.
_RUN = 'setpriv --bounding-set=-all --inh-caps=-all --no-new-privs -- "$@"; exit $?'


def isolated(words: Sequence[str], hidden: Sequence[Path]) -> list[str]:
    """A command line in namespaces of its own."""
    there = [str(folder) for folder in hidden if folder.is_dir()]
    shell = ["sh", "-c", _HIDE + _RUN, "sh", str(len(there)), *there]
    return [*_ENTER, "--kill-child", "--", *shell, *words]


def check_isolation() -> None:
    """Checks that this system lets programs be isolated."""
    absent = [name for name in _NEEDED if shutil.which(name) is None]
    why = f"there is no {absent[0]}" if absent else ""
    if not absent:
        tried = subprocess.run(
            isolated(["true"], ()), capture_output=True, text=True, timeout=30, check=False
        )
        if tried.returncode:
            why = " ".join(tried.stderr.split()) or f"unshare ended with {tried.returncode}"
    if why:
        raise UsageError(
            f"--isolate needs Linux namespaces, which this system does not allow ({why}): run "
            "the agent in a container or as another user, or leave --isolate out"
        )
