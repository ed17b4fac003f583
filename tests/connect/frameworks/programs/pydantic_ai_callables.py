import sys

from pydantic_ai import Agent

from toolshift.connect.callables import grade, reply, start_episode, tools_of

seat, said = start_episode(*sys.argv[1:]), None
agent, heard = Agent("openai-chat:gpt-4.1-mini", tools=tools_of(seat)), seat.message
while heard:
    said = agent.run_sync(heard, message_history=said and said.all_messages())
    heard = reply(seat, said.output)
print(grade(seat.episode))
