"""A run whose cluster of Ray loses its head: it ends by itself, and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

utils: Any = pytest.importorskip("ray.cluster_utils")


def test_a_head_that_is_gone_ends_a_run_before_ray_ends_the_process(tmp_path: Path) -> None:
    """Ray's own end is exit code 1 after a minute, which reads as the verdict of a gate."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(tmp_path))
        nodes = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        words = [sys.executable, "-m", "toolshift", "run", "--agent", "oracle", "--tasks", "4000"]
        words += ["--executor", "ray", "--out", str(tmp_path / "run")]
        there = {**os.environ, "RAY_ADDRESS": nodes.address}
        run = subprocess.Popen(words, env=there, stderr=subprocess.PIPE, text=True)
        kept = tmp_path / "run/.ahead.jsonl"
        while not (kept.exists() and kept.read_bytes().count(b"\n") > 100):
            assert run.poll() is None
            time.sleep(0.1)
        for started in nodes.head_node.all_processes.values():
            for process in started:
                os.kill(process.process.pid, signal.SIGKILL)
        _, err = run.communicate(timeout=55)
        assert run.returncode == 2
        assert "the head of the cluster, " in err
        assert "what is finished is kept" in err
        assert "Traceback" not in err
        assert kept.read_bytes().count(b"\n") > 100
        nodes.shutdown()
