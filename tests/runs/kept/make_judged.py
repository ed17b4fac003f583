"""Makes a run whose endings in prose a judge has read: `make.sh` starts it."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import serving

with serving.scripted_server() as server:
    os.environ["TOOLSHIFT_BASE_URL"] = server.url
    said = json.dumps({"kind": "refusal", "reason": "not_found"})
    server.script = [serving.good(said) for _ in range(100)]
    Path("mumbles.py").write_text(
        "def mumbles(messages, tools):\n    return 'Hmm. It is what it is.'\n"
    )
    from toolshift.api import evaluate

    evaluate(
        "mumbles:mumbles",
        worlds=["poi"],
        kinds=["listing"],
        tasks=2,
        shifts=["redirect"],
        judge="chat:tiny",
        out="judged",
    )
