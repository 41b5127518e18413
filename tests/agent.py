"""`tooldecode agent` against `tooldecode serve`: what is run early changes nothing but the time.

    python tests/agent.py PROGRAM
"""
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import serve

PROGRAM = sys.argv[1]
WEATHER = "What is the weather in Oslo for two days?"
COMMAND = "python3 -c 'import json, sys; c = json.load(sys.stdin); print(sorted(c[\"arguments\"].items()))'"


def agent(url, *arguments):
    run = subprocess.run([PROGRAM, "agent", "--url", url, "--json", *arguments], capture_output=True, text=True,
                         encoding="utf-8", timeout=120)
    assert run.returncode == 0, (run.returncode, run.stderr)
    return json.loads(run.stdout)


def transcript(report):
    turns = []
    for turn in report["turns"]:
        message = serve.without_ids(turn["message"])
        turns.append((message, turn["results"]))
    return turns


def test_equal(url):
    """Speculation by another model, by the embedded one, or by none: the same messages and results."""
    plain = agent(url, "--speculator", "none", "--run", COMMAND, WEATHER)
    assert plain["turns"][0]["results"] == [
        {"status": "ok", "output": str(sorted(json.loads(
            plain["turns"][0]["message"]["tool_calls"][0]["function"]["arguments"]).items()))}]
    assert all(turn["started"] == 0 for turn in plain["turns"])
    for speculators in (["embedded"], [f"tiny={url}"], ["embedded", f"tiny={url}"]):
        for allowed in ([], ["--allow", "get_weather"]):
            early = agent(url, "--speculator", *speculators, "--run", COMMAND, *allowed, "--", WEATHER)
            assert transcript(early) == transcript(plain), (early, plain)
            if not allowed:  # no document says that its tool is read-only
                assert all(turn["started"] == 0 for turn in early["turns"]), early


def test_early(_):
    """A right guess is running when the slow model asks for it, a wrong one is dropped."""
    functions = [tool["function"] for tool in serve.TOOLS]
    marked = [{"name": f["name"], "description": f["description"], "inputSchema": f["parameters"],
               "annotations": {"readOnlyHint": f["name"] == "get_weather"}} for f in functions]
    oslo, rome = ({"name": "get_weather", "arguments": {"city": city}} for city in ("Oslo", "Rome"))
    table = {"name": "book_table", "arguments": {"restaurant": "Roma", "guests": 2}}
    with tempfile.TemporaryDirectory() as folder:
        tools = pathlib.Path(folder) / "tools.json"
        tools.write_text(json.dumps(marked), encoding="utf-8")
        for guess, call, counts in ((oslo, oslo, (1, 1, 1, 0)), (rome, oslo, (1, 1, 0, 1)),
                                    (table, table, (1, 0, 0, 0))):
            guessed = threading.Event()
            with Always(guess, after=guessed.set) as guesser, \
                    Always(call, before=lambda: guessed.wait(30) and time.sleep(1)) as main_model:
                turn = agent(main_model.url, "--tools", str(tools), "--run", COMMAND, "--turns", "1",
                             "--speculator", f"any={guesser.url}", "--", WEATHER)["turns"][0]
            assert tuple(turn[k] for k in ("proposed", "started", "hits", "wasted")) == counts, turn
            assert turn["results"] == [{"status": "ok", "output": str(sorted(call["arguments"].items()))}], turn


def test_engine_cache(url):
    """The engine goes on by itself where it was told of the output in time; else the client runs the call."""
    plain = agent(url, "--speculator", "none", "--latency", "0.01", WEATHER)
    said = [m for m, _ in transcript(plain)]
    report = agent(url, "--speculator", "embedded", "--allow", "get_weather", "--latency", "0", "--engine-cache",
                   "--", WEATHER)
    calls, texts = [], []
    for turn in report["turns"]:
        message = turn["message"]
        calls += [c["function"] for c in message.get("cached_tool_calls", []) + message.get("tool_calls", [])]
        texts.append(message["content"])
    assert calls == [c["function"] for m in said for c in m.get("tool_calls", [])], (report, plain)
    assert texts[-1] == said[-1]["content"]


def test_failures(url):
    failing = agent(url, "--speculator", "none", "--run", "echo broken; exit 3", "--turns", "1", WEATHER)
    assert failing["turns"][0]["results"] == [{"status": "failed", "output": "exit status 3: broken"}]
    slow = agent(url, "--speculator", "none", "--run", "sleep 60", "--timeout", "0.2", "--turns", "1", WEATHER)
    assert slow["turns"][0]["results"][0]["status"] == "timed_out", slow
    gone = agent(url, "--speculator", "tiny=http://127.0.0.1:9/v1", "--turns", "1", "--latency", "0", "--", WEATHER)
    assert gone["turns"][0]["message"]["tool_calls"], gone
    for arguments, what in (
            (["--url", "http://127.0.0.1:9/v1"], "http://127.0.0.1:9/v1"),
            (["--url", "ftp://x"], "ftp://x"),
            (["--url", url, "--allow", "nothing"], "nothing"),
            (["--url", url, "--speculator", "what"], "what"),
            (["--url", url, "--model", "other"], "other"),
            (["--url", url, "--tools", "/nowhere"], "/nowhere")):
        run = subprocess.run([PROGRAM, "agent", *arguments], capture_output=True, text=True, timeout=60)
        assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (arguments, run)


class Always:
    """An endpoint that answers everything with one call."""

    def __init__(self, call, before=lambda: None, after=lambda: None):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": function}]}}]}).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                before()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                after()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def main():
    serve.ARGUMENTS.program = PROGRAM
    with serve.Server() as server:
        url = server.url + "/v1"
        for test in (test_equal, test_early, test_engine_cache, test_failures):
            test(url)
            print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
