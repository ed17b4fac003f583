import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

url, message = sys.argv[1:]
tools = MCPToolset(url, cache_tools=False, tool_error_behavior="failed")
agent = Agent("openai-chat:gpt-4.1-mini", toolsets=[tools])
print(agent.run_sync(message).output)
