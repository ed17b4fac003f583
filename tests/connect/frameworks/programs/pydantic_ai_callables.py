import sys

from pydantic_ai import Agent

from toolshift import start_episode

episode, said = start_episode(*sys.argv[1:]), None
agent, heard = Agent("openai-chat:gpt-4.1-mini", tools=episode.functions()), episode.message
while heard:
    said = agent.run_sync(heard, message_history=said and said.all_messages())
    heard = episode.reply(said.output)
print(episode.grade())
