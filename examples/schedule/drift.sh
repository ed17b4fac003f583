#!/bin/sh
# Measures an agent on the same anchor tasks and on fresh ones, and makes the page of all days
# (docs/watch.md). Copy this file beside your agent, write your own options of `toolshift run`
# below, and add the next line with `crontab -e`; cron reads the time of your machine:
#
#     17 4 * * 1 sh /path/to/drift.sh >>/path/to/drift.log 2>&1
#
# cron has a short PATH: where it does not find toolshift, write PATH=... above that line.
# Started again on the same day, the script goes on where it stopped. DAY=2026-01-31 sets the day.
set -u
cd "$(dirname "$0")" || exit 2

set -- --agent mymodule:my_agent --tasks 24

DAY="${DAY:-$(date -u +%Y-%m-%d)}"
# fresh tasks: the date is their seed, so a day can be run again
SEED="$(printf %s "$DAY" | tr -d -)"
status=0
toolshift run "$@" --seed 0 --out drift/"$DAY"/anchor || status=$?
# Leave this line out where the tasks are given in a file of your own: no seed draws others.
toolshift run "$@" --seed "$SEED" --out drift/"$DAY"/fresh || status=$?
toolshift report drift --site drift --fail-on-loss || status=$?
exit "$status"
