import sys

from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api

from toolshift.connect.callables import grade, reply, start_episode, tools_of

set_default_openai_api("chat_completions")
seat, memory = start_episode(*sys.argv[1:]), SQLiteSession("talk")
agent = Agent("clerk", tools=[function_tool(t, strict_mode=False) for t in tools_of(seat)])
heard = seat.message
while heard:
    heard = reply(seat, Runner.run_sync(agent, heard, session=memory).final_output)
print(grade(seat.episode))
