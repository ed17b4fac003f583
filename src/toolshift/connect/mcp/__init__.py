"""Between an MCP client and a real MCP server: the proxy that shifts what the client sees."""
