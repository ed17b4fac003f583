"""`toolshift world init` guesses which tools write, and where the server is."""

import json
from pathlib import Path

import pytest
import yaml
from running import Run

TOOLS = """
def {reads}(order_id: str) -> dict:
    \"\"\"Looks at it.\"\"\"
    return {{}}

def {writes}(order_id: str) -> dict:
    \"\"\"Does it.\"\"\"
    return {{}}

def flurble(order_id: str) -> dict:
    \"\"\"Flurbles.\"\"\"
    return {{}}
"""


@pytest.mark.parametrize(
    ("reads", "writes"),
    [("get_order", "refund_order"), ("list_orders", "cancel_order"), ("search", "create_ticket"),
     ("find_order", "ship_order"), ("read_ticket", "close_ticket")],
)  # fmt: skip
def test_writes_are_guessed_by_the_verb(reads: str, writes: str, toolshift: Run) -> None:
    module = f"tools_{writes}"
    Path(f"{module}.py").write_text(TOOLS.format(reads=reads, writes=writes))
    assert toolshift("world", "init", f"python:{module}", "--out", "tasks.yaml")[0] == 0
    text = Path("tasks.yaml").read_text()
    assert yaml.safe_load(text)["writes"] == [writes]
    assert "# Add the tools from this list that change something: flurble" in text


@pytest.mark.parametrize(
    ("servers", "address"),
    [
        ([{"url": "https://api.example.com/v2"}], "https://api.example.com/v2"),
        ([], "http://localhost"),
        ([{"url": "/v2"}], "http://localhost"),
    ],
)
def test_the_address_is_that_of_the_document(
    servers: list[dict[str, str]], address: str, toolshift: Run
) -> None:
    answer = {"200": {"description": "It."}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Orders", "version": "1"},
        "servers": servers,
        "paths": {
            "/orders": {
                "get": {"operationId": "list_orders", "responses": answer},
                "post": {"operationId": "create_order", "responses": answer},
            }
        },
    }
    Path("api.json").write_text(json.dumps(document))
    assert toolshift("world", "init", "api.json", "--out", "tasks.yaml")[0] == 0
    file = yaml.safe_load(Path("tasks.yaml").read_text())
    assert file["tools"] == {"openapi": "api.json", "base_url": address}
    assert file["writes"] == ["create_order"]
