"""A call sampled under several orders of its parameters, by a model of transformers: here the tiny one."""
import json
import pathlib

import transformers

import tooldecode
from tooldecode.transformers import CausalModel, read_answer

data = pathlib.Path(__file__).resolve().parent.parent / "examples/data"
model = transformers.AutoModelForCausalLM.from_pretrained(data / "tiny")
vocabulary = tooldecode.Vocabulary.load(data / "tiny")
calls = tooldecode.tool_calls(vocabulary, json.loads((data / "tools.json").read_text()), "python")
prompt = vocabulary.encode(
    "<|begin|><|tools|>format: python\n"
    "book_table(restaurant: string, guests: integer, outside?: boolean = false): Reserve a table at a restaurant.\n"
    "<|user|>Reserve a table at Roma for 4 guests.<|assistant|>", parse_special=True)

answer = tooldecode.order_consistency(calls, CausalModel(model), prompt, max_orders=6)
for vote in answer.calls:
    print(vote.call, "by", vote.sampled, "of", vote.orders, "orders")
    for parameter in vote.parameters:
        print(parameter.key, parameter.agreement, [choice.value for choice in parameter.choices])
print(read_answer(calls, answer.tokens + vocabulary.end_tokens[:1]))
