"""Plays the scenes of an exported OpenEnv package over its server; prints the rewards as JSON."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import httpx
from policies import says

from toolshift.train.export.scenes import read_scenes


def main() -> None:
    package, count = sys.argv[1], int(sys.argv[2])
    module = import_module(package)
    title = "".join(part.capitalize() for part in package.split("_"))
    action, client = getattr(module, f"{title}Action"), getattr(module, f"{title}Env")
    scenes = read_scenes(Path(str(module.__file__)).parent)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-m", f"{package}.server.app", "--host", "127.0.0.1", "--port", port]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    rows = []
    try:
        _wait(url)
        with client(base_url=url).sync() as env:
            for number in range(count):
                scene = scenes.scene(number)
                for policy in ("oracle", "wrong", "prose"):
                    seen = env.reset(seed=number)
                    turn = 0
                    while not seen.done and turn < 50:
                        said = says(policy, scene, turn)
                        spoken = {"text": said} if isinstance(said, str) else {
                            "name": said[0], "arguments": said[1]
                        }  # fmt: skip
                        seen = env.step(action(**spoken))
                        turn += 1
                    rows.append({"scene": number, "shifts": env.state().shifts, "policy": policy,
                                 "reward": seen.reward, "done": seen.done})  # fmt: skip
    finally:
        server.terminate()
    print(json.dumps(rows))


def _wait(url: str) -> None:
    for _ in range(400):
        try:
            httpx.get(f"{url}/health")
            return
        except httpx.HTTPError:
            time.sleep(0.3)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
