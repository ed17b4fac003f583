import sys

from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api

from toolshift import start_episode

set_default_openai_api("chat_completions")
episode, memory = start_episode(*sys.argv[1:]), SQLiteSession("talk")
agent = Agent("clerk", tools=[function_tool(f, strict_mode=False) for f in episode.functions()])
heard = episode.message
while heard:
    heard = episode.reply(Runner.run_sync(agent, heard, session=memory).final_output)
print(episode.grade())
