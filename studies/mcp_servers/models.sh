#!/usr/bin/env bash
# The two shipped adapters on three published MCP servers, as they are and with optional parameters added.
#
#   studies/mcp_servers/models.sh SERVERS [FOLDER]     SERVERS as in README.md; three runs, which resume
#
# Written and committed, with a hash, before a model was run on them. What is asked: how many of the fifteen tasks pass
# clean; and, of an adapter that passes at least half of them, what it loses with one and two optional parameters, with
# padding beside these, with other descriptions, and under other names. Expected: a floor, for the models were trained in
# one generated world of looking up, and these servers take lists of records, paths of repositories and texts to be stored.
# A floor says that the figures of the studies do not carry over to other domains, and no drop is then told.
set -euo pipefail
SERVERS=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
OUT=${2:-runs/mcp_servers}
TOOLSHIFT=${TOOLSHIFT:-.venv/bin/toolshift}
export PATH="$SERVERS/node_modules/.bin:$SERVERS/git/bin:$PATH"
SHIFTS=()
for shift in surplus_parameter:1 surplus_parameter:2 schema_noise:2 description_paraphrase:3 semantic_rename:1 semantic_rename:3; do
    SHIFTS+=(--shift "$shift")
done
for world in memory thinking git; do
    $TOOLSHIFT run --world "studies/mcp_servers/$world.yaml" --agent oracle --agent smol:static --agent smol:paft \
        "${SHIFTS[@]}" --max-repeats 6 --out "$OUT/$world" || [ $? -eq 1 ]
done
