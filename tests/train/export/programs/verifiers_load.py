"""Loads an exported taskset by verifiers' own loader, and prints what it is as JSON."""

from __future__ import annotations

import json
import sys
from itertools import islice

from verifiers.v1.utils.loaders import load_taskset, taskset_config_type


def main() -> None:
    name, count = sys.argv[1], int(sys.argv[2])
    taskset = load_taskset(taskset_config_type(name)(id=name))
    once, again = ([task.data for task in islice(iter(taskset), count)] for _ in range(2))
    print(json.dumps({
        "class": type(taskset).__name__,
        "infinite": taskset.INFINITE and not taskset.bounded,
        "same_again": once == again,
        "prompts": [each.prompt for each in once],
        "shifts": [each.shifts for each in once],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
