"""llama-server's times with its own grammars and with this library's, in one run.

    python llama_server.py LLAMA_SERVER LIBRARY MODEL --program PROGRAM [--pairs N] [--threads N] [--json OUT] [--data DIR]

LLAMA_SERVER is llama.cpp's program, LIBRARY libtooldecode_llama.so, MODEL a GGUF file of a Qwen model, PROGRAM tooldecode,
which writes the record. Two servers run, one with LIBRARY loaded first; both get each request, in turns, one after the
other, greedily, with the prompt in the cache. `tools N` asks /v1/chat/completions for a call of one of N functions of
BFCL, with a template that leaves their documents out of the prompt, because reading them would hide the rest. `calls N`
asks /completion for one of N calls by a JSON schema; `nested` for an object of objects. `cold` is the first request with
a grammar, from sending it to the first token; the others are medians over the later ones, and a ratio is the median of
the pairs' ratios.
"""

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_record

TEMPLATE = r"""
{%- if tools %}
    {{- "<|im_start|>system\nCall one of the user's functions. Write each call as a json object with its name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" %}
        {{- "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
    {%- elif message.role == "assistant" %}
        {{- "<|im_start|>" + message.role }}
        {%- if message.content %}
            {{- "\n" + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- "\n<tool_call>\n{\"name\": \"" + tool_call.name + "\", \"arguments\": " + (tool_call.arguments | tojson) + "}\n</tool_call>" }}
        {%- endfor %}
        {{- "<|im_end|>\n" }}
    {%- elif message.role == "tool" %}
        {{- "<|im_start|>user\n<tool_response>\n" + message.content + "\n</tool_response><|im_end|>\n" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|im_start|>assistant\n" }}
{%- endif %}
"""
NAMES = ("llama.cpp", "tooldecode")
QUESTION = "What is the area of a triangle with a base of 10 and a height of 5?"


def functions(data, count):
    """The first `count` functions of BFCL that have different names, with the type names of JSON Schema."""
    found = {}
    for name in ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple"):
        path = data / f"bfcl/{name}.jsonl"
        for line in open(path, encoding="utf-8") if path.exists() else gzip.open(f"{path}.gz", "rt", encoding="utf-8"):
            for function in json.loads(line)["functions"]:
                if re.fullmatch(r"[A-Za-z0-9_.-]+", function["name"]):
                    found.setdefault(function["name"], {key: function[key] for key in ("name", "description", "parameters")})
                if len(found) == count:
                    return list(found.values())
    raise SystemExit(f"{data}/bfcl: has {len(found)} functions, not {count}")


def tools_request(tools):
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}], "tool_choice": "required",
                                    "tools": [{"type": "function", "function": tool} for tool in tools],
                                    "max_tokens": 32}


def calls_request(tools):
    calls = [{"type": "object", "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
              "required": ["name", "arguments"], "additionalProperties": False} for tool in tools]
    return "/completion", {"prompt": f"{QUESTION}\nCall: ", "json_schema": {"anyOf": calls}, "n_predict": 64}


def nested_request():
    place = {"type": "object", "properties": {"street": {"type": "string", "maxLength": 40},
                                              "town": {"type": "string", "maxLength": 20},
                                              "number": {"type": "integer", "minimum": 1, "maximum": 999}},
             "required": ["street", "town", "number"], "additionalProperties": False}
    person = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "born": {"type": "string", "format": "date"},
                                               "home": place, "work": place,
                                               "languages": {"type": "array", "items": {"enum": ["en", "fr", "de", "es"]}, "maxItems": 3}},
              "required": ["name", "born", "home", "work", "languages"], "additionalProperties": False}
    return "/completion", {"prompt": "A person as JSON: ", "n_predict": 128,
                           "json_schema": {"type": "object", "properties": {"people": {"type": "array", "items": person, "minItems": 2}},
                                           "required": ["people"], "additionalProperties": False}}


class Server:
    """A llama-server on a port that was free a moment ago."""

    def __init__(self, arguments, folder, name, library):
        self.name = name
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{some.getsockname()[1]}"
        self.log = folder / f"{name}.log"
        template = folder / "template.jinja"
        template.write_text(TEMPLATE, encoding="utf-8")
        environment = dict(os.environ) | ({"LD_PRELOAD": str(library)} if library else {})
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [arguments.server, "-m", arguments.model, "--jinja", "--chat-template-file", template, "--port",
                 self.url.rpartition(":")[2], "-c", "4096", "-t", str(arguments.threads), "-np", "1", "--no-webui"],
                env=environment, stdout=log, stderr=subprocess.STDOUT)

    def wait(self):
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/health", timeout=1)
                return
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{self.name}: does not start, see {self.log}")
            time.sleep(0.2)

    def ask(self, request):
        """The text, and milliseconds to the first token and per later token."""
        path, body = request
        body = body | {"temperature": 0, "top_k": 1, "cache_prompt": True, "stream": True}
        text, times = [], []
        start = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(
                self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}), timeout=600) as answer:
            for line in answer:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                event = json.loads(line[6:])
                delta = event["choices"][0]["delta"] if event.get("choices") else event
                if delta.get("content") or delta.get("tool_calls"):
                    times.append(time.perf_counter())
                    text.append(json.dumps([delta.get("content"), delta.get("tool_calls")]))
                timings = event.get("timings") or {}
        # An answer's calls have ids, which are drawn.
        return (re.sub(r'"id": "[^"]*"', "", "".join(text)), (times[0] - start) * 1e3, timings["predicted_per_token_ms"],
                timings["predicted_n"])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("server")
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("--program", required=True)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(run_record.DATA))
    arguments = parser.parse_args()
    requests = {}
    for count in (1, 10, 117, 400):
        requests[f"tools {count}"] = tools_request(functions(arguments.data, count))
    for count in (10, 117, 400):
        requests[f"calls {count}"] = calls_request(functions(arguments.data, count))
    requests["nested"] = nested_request()

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        servers = []
        for name in NAMES:
            servers.append(Server(arguments, pathlib.Path(folder), name, arguments.library if name == "tooldecode" else None))
            stack.callback(servers[-1].stop)
        for server in servers:
            server.wait()
            server.ask(("/completion", {"prompt": "a", "grammar": 'root ::= "a"', "n_predict": 2}))  # the vocabulary's index
        rows = []
        for name, request in requests.items():
            cold = [server.ask(request) for server in servers]
            pairs = []
            for i in range(arguments.pairs):
                order = servers if i % 2 == 0 else servers[::-1]
                pair = [server.ask(request) for server in order]
                pairs.append(pair if i % 2 == 0 else pair[::-1])
            row = {"request": name, "tokens": pairs[0][0][3],
                   "equal": all(mine[0] == theirs[0] for theirs, mine in [cold, *pairs]),
                   "cold_first_ms": {NAMES[k]: round(cold[k][1], 1) for k in (0, 1)}}
            for key, at in (("first_ms", 1), ("token_ms", 2)):
                row[key] = {NAMES[k]: round(statistics.median(pair[k][at] for pair in pairs), 2) for k in (0, 1)}
                row[key]["ratio"] = round(statistics.median(pair[1][at] / pair[0][at] for pair in pairs), 3)
            rows.append(row)
            print(json.dumps(row), flush=True)
        refused = [line for line in servers[1].log.read_text(errors="replace").splitlines() if "enforces this grammar itself" in line]
    for line in refused:
        print(line)
    if arguments.json:
        command = ["LLAMA_SERVER", "LIBRARY", "MODEL", "--pairs", str(arguments.pairs), "--threads", str(arguments.threads)]
        record = run_record.run_record([arguments.program, "--made-by"], [], ["python", "benchmarks/engines/llama_server.py", *command])
        record["settings"] = {"pairs": arguments.pairs, "threads": arguments.threads, "model": pathlib.Path(arguments.model).name}
        arguments.json.write_text(json.dumps({"made_by": record, "grammars_left_to_llama_cpp": len(refused), "requests": rows},
                                             indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
