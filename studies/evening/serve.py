"""The same tools over HTTP: `python serve.py plant 8711`, `python serve.py plant_new 8712`. It reads its routes from the
OpenAPI document. The new one wants a bearer token and answers errors as problem documents."""

import importlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

module = importlib.import_module(sys.argv[1])
new = sys.argv[1] == "plant_new"
document = yaml.safe_load(open(sys.argv[1].replace("plant", "openapi") + ".yaml"))
routes = [
    (verb.upper(), re.compile("^" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + "$"), operation)
    for path, item in document["paths"].items()
    for verb, operation in item.items()
]


class Handler(BaseHTTPRequestHandler):
    def answer(self, code, body):
        raw = json.dumps(body).encode()
        self.send_response(code)
        self.send_header(
            "Content-Type",
            "application/problem+json" if new and code >= 400 else "application/json",
        )
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def fail(self, code, text):
        self.answer(
            code,
            {"type": "about:blank", "title": "Error", "status": code, "detail": text}
            if new
            else {"error": text},
        )

    def handle_one(self):
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/reset":
            importlib.reload(module)
            return self.answer(200, {"ok": True})
        if new and self.headers.get("Authorization") != "Bearer s3cret":
            return self.fail(401, "a bearer token is wanted")
        if not new and self.headers.get("X-API-Key") != "s3cret":
            return self.fail(401, "X-API-Key is wanted")
        for verb, path, operation in routes:
            if verb == self.command and (found := path.match(url.path)):
                said = {k: unquote(v) for k, v in found.groupdict().items()} | dict(
                    parse_qsl(url.query)
                )
                for p in operation.get("parameters", []):
                    kind = p.get("schema", {}).get("type")
                    if p.get("name") in said and kind in ("boolean", "integer"):
                        said[p["name"]] = (
                            said[p["name"]] in ("true", "True")
                            if kind == "boolean"
                            else int(said[p["name"]])
                        )
                said |= json.loads(raw) if raw else {}
                if new and operation["operationId"] == "open_ticket":
                    pass  # its body is {"ticket": {...}}
                try:
                    return self.answer(200, getattr(module, operation["operationId"])(**said))
                except (ValueError, KeyError, TypeError) as error:
                    return self.fail(400, str(error))
        return self.fail(404, "no such route")

    do_GET = do_POST = handle_one

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
