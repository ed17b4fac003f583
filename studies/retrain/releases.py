"""The two releases of the study: lists of the tools of `poi` as they were, and as they became.

    python studies/retrain/releases.py FOLDER      # writes tools-v1.json, -v2.json and -v3.json

Version 2 gives seven of the twelve tools, and their parameters, other names. Version 3 gives them
others again, and words the descriptions of these seven otherwise, as releases often do.
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

from toolshift.core.tool import as_openai
from toolshift.worlds.registry import find_world

Listed = list[dict[str, Any]]

TOOLS = {
    "v2": {
        "find_place": "locate_venue",
        "get_details": "venue_facts",
        "get_hours": "opening_times",
        "get_route": "plan_travel",
        "search_places": "browse_venues",
        "open_visit": "start_trip",
        "add_stop": "append_leg",
    },
    "v3": {
        "find_place": "resolve_venue",
        "get_details": "describe_venue",
        "get_hours": "venue_schedule",
        "get_route": "directions",
        "search_places": "explore_town",
        "open_visit": "create_itinerary",
        "add_stop": "extend_itinerary",
    },
}
PARAMETERS = {
    "v2": {
        "place_id": "venue",
        "city": "town",
        "day": "weekday",
        "origin": "start_point",
        "visit_id": "trip",
        "name": "title",
    },
    "v3": {
        "place_id": "venue_ref",
        "city": "municipality",
        "day": "on",
        "origin": "starting_from",
        "visit_id": "itinerary",
        "name": "called",
    },
}
DESCRIPTIONS = {
    "v2": {},
    "v3": {
        "find_place": "Find the id of one place, given its name and the city",
        "get_details": "Price, entry code and listing reference of one place",
        "get_hours": "Opening and closing hours of one place on a given weekday",
        "get_route": "Distance and travel time to one place from a given start",
        "search_places": "Search all places of one category within a given city",
        "open_visit": "Open a new visit plan that begins at a place",
        "add_stop": "Add one more place as a stop to an existing visit plan",
    },
}


def listed(version: str) -> Listed:
    """The tools of `poi` in a version, as OpenAI lists them.

    Args:
        version: "v1", "v2" or "v3".

    Returns:
        All twelve tools.
    """
    tools: Listed = [as_openai(tool) for tool in find_world("poi").tools]
    if version == "v1":
        return tools
    tools = copy.deepcopy(tools)
    for tool in tools:
        about = tool["function"]
        name = about["name"]
        if name not in TOOLS[version]:
            continue
        about["name"] = TOOLS[version][name]
        about["description"] = DESCRIPTIONS[version].get(name, about["description"])
        schema, renamed = about["parameters"], PARAMETERS[version]
        schema["properties"] = {
            renamed.get(key, key): inner for key, inner in schema["properties"].items()
        }
        schema["required"] = [renamed.get(key, key) for key in schema["required"]]
    return tools


def write_lists(folder: Path) -> None:
    """Writes the three lists.

    Args:
        folder: where they go; it is made where it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for version in ("v1", *TOOLS):
        text = json.dumps(listed(version), indent=1) + "\n"
        (folder / f"tools-{version}.json").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    write_lists(parser.parse_args().folder)


if __name__ == "__main__":
    main()
