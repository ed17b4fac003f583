"""Scenes for agents in programs of their own: an MCP server for each episode, and a control API."""
