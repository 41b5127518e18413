"""A GGUF file, run by llama-cpp-python, that cannot write a wrong call: python generate_gguf.py FILE.gguf"""
import json
import pathlib
import sys

import llama_cpp
from tooldecode.llama_cpp import generate_with_tools

path = sys.argv[1]  # such as what `bash examples/models.sh smollm2` prints
tools = json.loads((pathlib.Path(__file__).resolve().parent.parent / "examples/data/tools.json").read_text())
question = [{"role": "user", "content": "What is the weather in Paris?"}]

llama = llama_cpp.Llama(path, n_ctx=2048, verbose=False)
print(generate_with_tools(llama, question, tools, "hermes", choice="required", max_tokens=60, temp=0.0))
