"""Masks for a loop of your own: here a model that likes any token as much as any other."""
import json
import pathlib

import numpy as np
import tooldecode

data = pathlib.Path(__file__).resolve().parent.parent / "examples/data"
vocabulary = tooldecode.Vocabulary.load(data / "tiny")
tools = json.loads((data / "tools.json").read_text())
calls = tooldecode.tool_calls(vocabulary, tools, "python", choice="named", name="get_weather")

random = np.random.default_rng(1)
mask = np.zeros(vocabulary.mask_words, np.int32)
state, tokens = calls.initial(), []
while not calls.is_finished(state):
    logits = random.gumbel(size=vocabulary.size)  # your model's
    calls.fill_mask(state, mask)
    tooldecode.apply_mask(logits, mask)
    tokens.append(int(logits.argmax()))  # your sampler
    state = calls.advance(state, tokens[-1])
text = vocabulary.answer_text(tokens).decode()
print(text, calls.parse(text), sep="\n")
