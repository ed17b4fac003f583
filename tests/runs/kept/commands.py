"""Runs commands, each in a fork of a process that has imported ToolShift; `alone` hides the lab."""

import importlib.metadata
import json
import os
import sys

if sys.argv[1] == "alone":
    installed = importlib.metadata.entry_points

    def entry_points(**wanted):
        """The entry points, without those of the lab."""
        found = installed(**wanted)
        return importlib.metadata.EntryPoints(e for e in found if "toolshift_lab" not in e.value)

    importlib.metadata.entry_points = entry_points
    sys.modules["toolshift_lab"] = None  # whoever imports it fails

from toolshift.cli import main

results = []
for words in json.load(sys.stdin):
    streams = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        os.dup2(streams[0], 1)
        os.dup2(streams[1], 2)
        sys.argv = ["toolshift", *words]
        main()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = [os.pread(stream, 1 << 26, 0).decode() for stream in streams]
    results.append((code, *texts))
print(json.dumps(results))
