"""A chat completions endpoint between an agent whose tools are hard-wired and its model.

conversation.py   what a model is shown of a conversation, and what its calls stand for
scope.py          what of a request is shifted
wire.py           replies in pieces: streams read, put together and written
app.py            the endpoint
"""
