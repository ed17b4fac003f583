import asyncio
import sys

from langchain.agents import create_agent
from langchain.mcp import MCPAdapter


async def main(url, message):
    async with MCPAdapter(url) as adapter:
        agent = create_agent("openai:gpt-4.1-mini", await adapter.list_tools())
        said = await agent.ainvoke({"messages": [{"role": "user", "content": message}]})
        print(said["messages"][-1].text)


asyncio.run(main(*sys.argv[1:]))
