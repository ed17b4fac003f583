"""Foreign formats: schemas, OpenAPI documents, MCP clients and results."""
