import asyncio
import sys

from agents import Agent, Runner, set_default_openai_api
from agents.mcp import MCPServerStreamableHttp


async def main(url, message):
    set_default_openai_api("chat_completions")
    async with MCPServerStreamableHttp({"url": url}, cache_tools_list=False) as server:
        print((await Runner.run(Agent("clerk", mcp_servers=[server]), message)).final_output)


asyncio.run(main(*sys.argv[1:]))
