"""A model of transformers that cannot write a wrong call: here the tiny one, whose prompt has its own form."""
import json
import pathlib

import transformers
from tooldecode.transformers import generate_json, generate_with_tools

data = pathlib.Path(__file__).resolve().parent.parent / "examples/data"
model = transformers.AutoModelForCausalLM.from_pretrained(data / "tiny")
tokenizer = transformers.AutoTokenizer.from_pretrained(data / "tiny")
tokenizer.chat_template = (
    "<|begin|><|tools|>format: python\nget_weather(city: string): Weather.\n"
    "{% for message in messages %}{% if message.tool_calls %}{% for call in message.tool_calls %}[{{ call.function.name }}("
    "{% for key, value in call.function.arguments.items() %}{{ key }}='{{ value }}'{% endfor %})]{% endfor %}"
    "{% elif message.role == 'assistant' %}{{ message.content }}"
    "{% else %}<|user|>{{ message.content }}<|assistant|>{% endif %}{% endfor %}")
tools = json.loads((data / "tools.json").read_text())

question = [{"role": "user", "content": "What is the weather in Paris?"}]
print(generate_with_tools(model, tokenizer, question, tools, max_new_tokens=60))

place = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Paris", "Rome"]}}, "required": ["city"],
         "additionalProperties": False}
print(generate_json(model, tokenizer, question, place, max_new_tokens=60))
