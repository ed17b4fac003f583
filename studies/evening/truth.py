"""What the agents really do on Monday: each task on a fresh state of the new server, with the tools that are there then."""

import json
import re
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import agents
import yaml

RIGHT = {
    "temperature": r"\b61\.5\b",
    "phone": r"\b5540\b",
    "count": r"\b4\b",
    "ticket": "T-901",
    "service": "S-51",
    "belt": "R-71",
}
PROTOCOL = {"final_answer": "answer", "refuse": "reason", "ask_user": "question"}


def resolved(node, document):
    if isinstance(node, dict) and "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return resolved(target, document)
    if isinstance(node, dict):
        return {key: resolved(value, document) for key, value in node.items()}
    return [resolved(each, document) for each in node] if isinstance(node, list) else node


def tools_of(document):
    for path, item in resolved(document["paths"], document).items():
        for verb, op in item.items():
            shown = {
                p["name"]: {**p["schema"], "description": p["description"]}
                for p in op.get("parameters", [])
            }
            body = op.get("requestBody", {"content": {"application/json": {"schema": {}}}})[
                "content"
            ]["application/json"]["schema"]
            needed = [p["name"] for p in op.get("parameters", []) if p.get("required")] + body.get(
                "required", []
            )
            schema = {
                "type": "object",
                "properties": shown | body.get("properties", {}),
                "required": needed,
            }
            text = op["summary"] + (". " + op["description"] if "description" in op else "")
            yield (
                op["operationId"],
                (verb, path, op),
                {
                    "type": "function",
                    "function": {
                        "name": op["operationId"],
                        "description": text,
                        "parameters": schema,
                    },
                },
            )


def send(base, login, verb, path, op, arguments):
    rest = dict(arguments)
    path = re.sub(r"\{(\w+)\}", lambda m: quote(str(rest.pop(m[1], ""))), path)
    query = {
        p["name"]: json.dumps(v) if isinstance(v := rest.pop(p["name"]), bool) else v
        for p in op.get("parameters", [])
        if p["in"] == "query" and p["name"] in rest
    }
    body = json.dumps(rest).encode() if verb == "post" else None
    request = Request(f"{base}{path}?{urlencode(query)}", body, login, method=verb.upper())
    try:
        return urlopen(request).read().decode()
    except HTTPError as error:
        return error.read().decode()


def play(agent, ask, base, login, table, shown):
    urlopen(Request(base + "/reset", b"", method="POST")).read()
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": ask}]
    for _ in range(12):
        try:
            said = agent(messages, shown)
        except Exception as error:
            return f"crash {error!r}"
        made = said["tool_calls"][0]["function"]
        arguments = json.loads(made["arguments"])
        if made["name"] in PROTOCOL:
            return f"{made['name']} {arguments[PROTOCOL[made['name']]]}"
        result = (
            send(base, login, *table[made["name"]], arguments)
            if made["name"] in table
            else '{"error": "no such tool"}'
        )
        messages += [said, {"role": "tool", "tool_call_id": "1", "content": result}]
    return "no end"


def main():
    tasks = yaml.safe_load(open("tasks.yaml"))["tasks"]
    for name, port, login in (
        ("openapi.yaml", 8711, {"X-API-Key": "s3cret"}),
        ("openapi_new.yaml", 8712, {"Authorization": "Bearer s3cret"}),
    ):
        document = yaml.safe_load(open(name))
        found = list(tools_of(document))
        table, shown = {n: route for n, route, _ in found}, [tool for *_, tool in found]
        for agent in (agents.fixed, agents.reader):
            for task in tasks:
                ask = task["ask"] + (
                    " Use CC-40 as cost_center." if "new" in name and task["id"] == "belt" else ""
                )
                end = play(
                    agent,
                    ask,
                    f"http://127.0.0.1:{port}",
                    login | {"Content-Type": "application/json"},
                    table,
                    shown,
                )
                right = end.startswith("final_answer") and re.search(RIGHT[task["id"]], end)
                print(
                    f"{name:18}{agent.__name__:8}{task['id']:12}{'ok' if right else 'FAILS'}  {end}"
                )


if __name__ == "__main__":
    main()
