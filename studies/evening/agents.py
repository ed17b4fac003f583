"""Two desk agents as plain scripts: `fixed` knows today's API by heart, `reader` reads what it is shown."""

import json
import re


def call(name, /, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }


def results(messages):
    said = []
    for message in messages:
        if message["role"] == "tool":
            try:
                said.append(json.loads(message["content"]))
            except ValueError:
                said.append(message["content"])
    return said


def request(messages):
    return [m["content"] for m in messages if m["role"] == "user"][-1]


def failed(result):
    return not isinstance(result, (dict, list)) or (
        isinstance(result, dict) and ("error" in result or "detail" in result)
    )


def fixed(messages, tools):
    """Today's names, arguments and result fields, hard-coded."""
    ask, got = request(messages), results(messages)
    if got and failed(got[-1]):
        return call("refuse", reason="service_failure")
    n = len(got)
    name = re.search(r"(Lathe|Mill|Press|Drill) \d", ask)
    if "hall" in ask:
        if n == 0:
            return call("list_machines", hall=re.search(r"hall (\w)", ask)[1])
        return call("final_answer", answer=f"There are {len(got[0])} machines.")
    if n == 0:
        return call("find_machine", name=name[0])
    machine = got[0]["machine_id"]
    if "temperature" in ask:
        if n == 1:
            return call("read_sensor", machine_id=machine, sensor="temp")
        return call("final_answer", answer=f"{got[1]['value']} degrees")
    if "operator" in ask:
        if n == 1:
            return call("get_machine", machine_id=machine)
        if n == 2:
            return call("get_employee", employee_id=got[1]["operator_id"])
        return call("final_answer", answer=got[2]["phone"])
    if "ticket" in ask:
        if n == 1:
            return call(
                "open_ticket",
                machine_id=machine,
                summary=re.search(r'"(.*?)"', ask)[1],
                urgency="high",
            )
        return call("final_answer", answer=got[1]["ticket_id"])
    if "inspection" in ask:
        if n == 1:
            return call(
                "plan_service",
                machine_id=machine,
                date=re.search(r"\d{4}-\d\d-\d\d", ask)[0],
                kind="inspection",
            )
        return call("final_answer", answer=got[1]["service_id"])
    if n == 1:
        return call("list_spare_parts", machine_id=machine)
    if n == 2:
        part = next(p["part_no"] for p in got[1] if p["name"] == "drive belt")
        return call("reserve_part", part_no=part, quantity=int(re.search(r"Reserve (\d+)", ask)[1]))
    return call("final_answer", answer=got[2]["reservation_id"])


# -- the other one: tools by what their descriptions say, arguments by their schemas, values by where they stand


def words(text):
    return set(re.findall(r"[a-z]+", text.lower()))


def choose(tools, *wanted):
    """The tool whose name and first sentence say most of the words."""
    own = [
        t["function"]
        for t in tools
        if t["function"]["name"] not in ("final_answer", "refuse", "ask_user")
    ]
    own = [t for t in own if "deprecated" not in t.get("description", "").lower()] or own
    return max(
        own,
        key=lambda t: sum(
            w in words(t["name"].replace("_", " ") + " " + t.get("description", "").split(".")[0])
            for w in wanted
        ),
    )


def resolve(schema, root):
    while "$ref" in schema:
        node = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema and "properties" not in schema:
            return resolve(schema[key][0], root)
    return schema


def fill(schema, root, facts, ask):
    """An object for a schema, out of facts by name and the request."""
    schema, made = resolve(schema, root), {}
    for key, part in schema.get("properties", {}).items():
        part = resolve(part, root)
        if part.get("type") == "object" or "properties" in part:
            made[key] = fill(part, root, facts, ask)
        elif "enum" in part:
            hit = [
                c for c in part["enum"] if any(w.startswith(str(c).lower()[:4]) for w in words(ask))
            ]
            made |= {key: hit[0]} if hit else {}
        elif part.get("type") == "boolean":
            made[key] = True  # leave nothing out: whoever asks for all means all
        elif key in facts:
            made[key] = int(facts[key]) if part.get("type") == "integer" else facts[key]
        elif key in schema.get("required", []):
            label = key.replace("_", "[ _]")
            if match := re.search(rf"{label}[ :=]+(\w+-\d+)|(\w+-\d+) as {label}", ask, re.I):
                made[key] = match[1] or match[2]
    return made


def records(value):
    """Every object inside of a result, outermost first."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from records(each)
    elif isinstance(value, list):
        for each in value:
            yield from records(each)


def value_of(result, *names):
    for record in records(result):
        for key, value in record.items():
            if all(n in words(key.replace("_", " ")) for n in names) and not isinstance(
                value, (dict, list)
            ):
                return value
            if isinstance(value, dict) and names[0] in words(key) and names[-1] in value:
                return value[names[-1]]
    return None


def reader(messages, tools):
    """Reads the tools that it is shown and the results as they are."""
    ask, got = request(messages), results(messages)
    if got and failed(got[-1]):
        return call("refuse", reason="service_failure")
    facts = {}
    if m := re.search(r"(Lathe|Mill|Press|Drill) \d", ask):
        facts |= {"name": m[0], "query": m[0]}
    if m := re.search(r"hall (\w)", ask):
        facts["hall"] = m[1]
    if m := re.search(r"\d{4}-\d\d-\d\d", ask):
        facts["date"] = m[0]
    if m := re.search(r'"(.*?)"', ask):
        facts["summary"] = m[1]
    if m := re.search(r"Reserve (\d+)", ask):
        facts["quantity"] = m[1]

    def use(*wanted, **more):
        tool = choose(tools, *wanted)
        return call(
            tool["name"], **(fill(tool["parameters"], tool["parameters"], facts, ask) | more)
        )

    if "hall" in ask:
        if not got:
            return use("list", "machines", "hall")
        listed = [r for r in records(got[0]) if "machine_id" in r or "name" in r]
        return call("final_answer", answer=f"There are {len(listed)} machines.")
    if not got:
        return use("find", "search", "name")
    facts["machine_id"] = value_of(got[0], "machine", "id")
    if "temperature" in ask:
        return (
            use("read", "sensor")
            if len(got) == 1
            else call("final_answer", answer=f"{value_of(got[1], 'value')} degrees")
        )
    if "operator" in ask:
        if len(got) == 1:
            return use("show", "operator", "machine")
        facts["employee_id"] = value_of(got[1], "operator", "id")
        return (
            use("show", "employee", "extension")
            if len(got) == 2
            else call("final_answer", answer=value_of(got[2], "phone"))
        )
    if "ticket" in ask:
        return (
            use("open", "repair", "ticket")
            if len(got) == 1
            else call("final_answer", answer=value_of(got[1], "ticket", "id"))
        )
    if "inspection" in ask:
        return (
            use("plan", "service", "inspection")
            if len(got) == 1
            else call("final_answer", answer=value_of(got[1], "service", "id"))
        )
    for page in got[1:]:
        for record in records(page):
            if record.get("name") == "drive belt":
                facts["part_no"] = value_of(record, "part", "no")
    if value := value_of(got[-1], "reservation", "id"):
        return call("final_answer", answer=value)
    if "part_no" in facts:
        return use("reserve", "parts", "store")
    cursor = got[-1].get("next_cursor") if isinstance(got[-1], dict) and len(got) > 1 else None
    return use("list", "spare", "parts", **({"cursor": cursor} if cursor else {}))
