"""The outside: protocols, frameworks and tools that are not ours.

tools.py   foreign tool lists as ours, and back
live.py    a scene whose truth is made of foreign tools; the guard before real ones
mcp/       the proxy between an MCP client and an MCP server
serve/     our scenes for agents in programs of their own
inspect/   our scenes as Inspect tasks
"""
