"""A call while it is written: what a server sends on, token by token."""
import json
import pathlib

import tooldecode

data = pathlib.Path(__file__).resolve().parent.parent / "examples/data"
vocabulary = tooldecode.Vocabulary.load(data / "tiny")
tools = json.loads((data / "tools.json").read_text())
calls = tooldecode.tool_calls(vocabulary, tools, "python")

stream = tooldecode.CallStream(calls)
answer = vocabulary.encode("[get_weather(city='Paris', days=3)]") + vocabulary.end_tokens[:1]
for token in answer:
    for event in stream.push(token):
        print(event.kind, event.call, event.text)
