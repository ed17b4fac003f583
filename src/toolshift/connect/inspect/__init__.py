"""ToolShift in Inspect: `inspect eval toolshift/quick --model openai/gpt-4.1-mini`.

Inspect finds the tasks through `registry`, which needs the package `inspect_ai`.
"""
