"""Counts the calls that models make for six questions and three greetings with the defaults of `tooldecode serve`.

    python3 benchmarks/real_models/required.py PROGRAM MODEL... [--json OUT]

PROGRAM is `tooldecode`, built with llama.cpp; MODEL is an argument of `serve --model`. Each model gets the three
tools of examples/data/tools.json and answers greedily, once with `tool_choice: "required"` and once with "auto". A
call counts if the package jsonschema accepts its arguments. Greetings need no tool. Nine questions test the server,
not a model.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import run_record  # noqa: E402

DOCUMENTS = json.loads((ROOT / "examples/data/tools.json").read_text(encoding="utf-8"))
SCHEMAS = {document["name"]: document["inputSchema"] for document in DOCUMENTS}
TOOLS = [{"type": "function", "function": {"name": document["name"], "description": document["description"],
                                           "parameters": document["inputSchema"]}} for document in DOCUMENTS]
QUESTIONS = ["What is the weather in Oslo for two days?", "Will it rain in Lisbon tomorrow?",
             "Please book a table at Luigi's for four people, outdoors.", "Reserve a table for two at Chez Paul.",
             "Convert 20.5 dollars to euros.", "How much are 300 Swiss francs in yen?"]
GREETINGS = ["Hello, how are you?", "What is the capital of France?", "Thank you, that was all."]


def is_call(message):
    """Whether a message has only calls, and all of them conform."""
    calls = message.get("tool_calls") or []
    for call in calls:
        try:
            jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[call["function"]["name"]])
        except (KeyError, ValueError, jsonschema.ValidationError):
            return False
    return bool(calls)


def asked(url, served, question, choice):
    body = {"model": served, "messages": [{"role": "user", "content": question}], "tools": TOOLS, "tool_choice": choice,
            "temperature": 0, "max_tokens": 96}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=900) as response:
        return json.load(response)["choices"][0]["message"]


def row_of(program, model):
    server = subprocess.Popen([program, "serve", "--port", "0", "--model", model], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit(f"{model}: {line}{server.stderr.read()}")
        url = line.split()[2].removesuffix("/v1").rstrip("/")
        with urllib.request.urlopen(url + "/v1/models", timeout=60) as response:
            served = json.load(response)["data"][0]["id"]
        row = {"model": pathlib.Path(model).name.removesuffix(".gguf"), "answers": []}
        for choice, name in (("required", "required"), ("auto", "auto")):
            begin = time.monotonic()
            messages = [asked(url, served, question, choice) for question in QUESTIONS]
            row[name] = sum(map(is_call, messages))
            row[name + "_seconds"] = round((time.monotonic() - begin) / len(QUESTIONS), 2)
            row["answers"] += [{"choice": choice, "question": question, "message": message}
                               for question, message in zip(QUESTIONS, messages)]
        messages = [asked(url, served, question, "auto") for question in GREETINGS]
        row["greetings"] = sum(1 for message in messages if not message.get("tool_calls") and message["content"])
        row["answers"] += [{"choice": "auto", "question": question, "message": message}
                           for question, message in zip(GREETINGS, messages)]
        return row
    finally:
        server.terminate()
        server.wait(timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    print("| model | required | auto | answers without a call to greetings |\n| --- | ---: | ---: | ---: |")
    for model in options.models:
        rows.append(row_of(options.program, model))
        print(f"| {rows[-1]['model']} | {rows[-1]['required']} of {len(QUESTIONS)} | {rows[-1]['auto']} of "
              f"{len(QUESTIONS)} | {rows[-1]['greetings']} of {len(GREETINGS)} |", flush=True)
    if options.json:
        record = {"made_by": run_record.run_record([options.program, "--made-by"], [], ["python3", *sys.argv]),
                  "questions": len(QUESTIONS), "greetings": len(GREETINGS), "rows": rows}
        pathlib.Path(options.json).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
