"""Counts the calls that models make for six questions and three greetings with the defaults of `tooldecode serve`.

    python3 benchmarks/real_models/required.py PROGRAM MODEL... [--json OUT]
    python3 benchmarks/real_models/required.py PROGRAM FILE.gguf... --llama-server LLAMA_SERVER LIBRARY [--json OUT]

PROGRAM is `tooldecode`, built with llama.cpp; MODEL is an argument of `serve --model`. Each model gets the three
tools of examples/data/tools.json and answers greedily, once with `tool_choice: "required"` and once with "auto". A
call counts if the package jsonschema accepts its arguments. Greetings need no tool. Nine questions test the server,
not a model.

The second form asks a llama-server for the calls that are required: as it is, with LIBRARY (libtooldecode_llama.so)
loaded first, and with TOOLDECODE_REQUIRED_CALLS=1 too.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def asked_of_llama_server(command, model, **environment):
    """The answers of a llama-server to the questions where a call is required."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    server = subprocess.Popen([command, "-m", model, "--jinja", "--port", str(port), "-t", "2", "-c", "4096"],
                              env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, encoding="utf-8", errors="replace")
    said = []  # of which the server writes too much for a pipe
    reader = threading.Thread(target=lambda: said.extend(line for line in server.stderr if "tooldecode" in line))
    reader.start()
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(url + "/health", timeout=10).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit(f"{command} ended with {server.returncode}") from None
                time.sleep(0.2)
        messages = [asked(url, "model", question, "required") for question in QUESTIONS]
    finally:
        server.terminate()
        server.wait(timeout=60)
        reader.join()
    is_used = any("enforces this program's grammars" in line for line in said)
    if is_used != ("LD_PRELOAD" in environment):
        raise SystemExit(f"{model}: the library was {'' if is_used else 'not '}used: {said}")
    return messages


def llama_server_row(command, library, model):
    row = {"model": pathlib.Path(model).name.removesuffix(".gguf"), "answers": []}
    loaded = {"LD_PRELOAD": str(pathlib.Path(library).resolve())}
    for name, environment in (("alone", {}), ("library", loaded),
                              ("required_calls", {**loaded, "TOOLDECODE_REQUIRED_CALLS": "1"})):
        messages = asked_of_llama_server(command, model, **environment)
        row[name] = sum(map(is_call, messages))
        row["answers"] += [{"server": name, "question": question, "message": message}
                           for question, message in zip(QUESTIONS, messages)]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--llama-server", nargs=2, metavar=("LLAMA_SERVER", "LIBRARY"))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = llama_server_rows(options) if options.llama_server else serve_rows(options)
    if options.json:
        record = {"made_by": run_record.run_record([options.program, "--made-by"], [], command_of(options)),
                  "questions": len(QUESTIONS), "greetings": len(GREETINGS), "rows": rows}
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def command_of(options):
    if not options.llama_server:
        return ["python3", *sys.argv]
    models = [pathlib.Path(model).name for model in options.models]  # lie anywhere
    return ["python3", sys.argv[0], "PROGRAM", *models, "--llama-server", "LLAMA_SERVER", "LIBRARY"]


def llama_server_rows(options):
    rows = []
    print("| model | llama-server | with the library | with required calls alone |\n| --- | ---: | ---: | ---: |")
    for model in options.models:
        row = llama_server_row(*options.llama_server, model)
        rows.append(row)
        print(f"| {row['model']} | " + " | ".join(f"{row[name]} of {len(QUESTIONS)}" for name in
                                                   ("alone", "library", "required_calls")) + " |", flush=True)
    return rows


def serve_rows(options):
    rows = []
    print("| model | required | auto | answers without a call to greetings |\n| --- | ---: | ---: | ---: |")
    for model in options.models:
        rows.append(row_of(options.program, model))
        print(f"| {rows[-1]['model']} | {rows[-1]['required']} of {len(QUESTIONS)} | {rows[-1]['auto']} of "
              f"{len(QUESTIONS)} | {rows[-1]['greetings']} of {len(GREETINGS)} |", flush=True)
    return rows


if __name__ == "__main__":
    main()
