import sys

from langchain import agents, tools

from toolshift.connect.callables import grade, reply, start_episode, tools_of

seat, said = start_episode(*sys.argv[1:]), []
offered = [tools.tool(f, args_schema=f.json_schema) for f in tools_of(seat)]
agent, heard = agents.create_agent("openai:gpt-4.1-mini", offered), seat.message
while heard:
    said = agent.invoke({"messages": [*said, {"role": "user", "content": heard}]})["messages"]
    heard = reply(seat, said[-1].text)
print(grade(seat.episode))
