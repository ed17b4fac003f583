import sys

from langchain import agents, tools

from toolshift import start_episode

episode, said = start_episode(*sys.argv[1:]), []
offered = [tools.tool(f, args_schema=f.json_schema) for f in episode.functions()]
agent, heard = agents.create_agent("openai:gpt-4.1-mini", offered), episode.message
while heard:
    said = agent.invoke({"messages": [*said, {"role": "user", "content": heard}]})["messages"]
    heard = episode.reply(said[-1].text)
print(episode.grade())
