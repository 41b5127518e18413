"""`tooldecode agent` against `tooldecode serve`: what is run early changes nothing but the time.

    python tests/agent.py PROGRAM
"""
import http.server
import json
import pathlib
import re
import socket
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
            assert early["speculation"]["errors"] == 0, early
    writes = [{**document, "annotations": {}} for document in serve.DOCUMENTS]
    with tempfile.TemporaryDirectory() as folder:
        tools = pathlib.Path(folder) / "tools.json"
        tools.write_text(json.dumps(writes), encoding="utf-8")
        early = agent(url, "--tools", str(tools), "--run", COMMAND, WEATHER)
        assert early["speculation"]["started"] == 0, early  # no document says that its tool is read-only
        assert transcript(early) == transcript(plain), (early, plain)


def test_newcomer(_):
    """What `--help` says, with nothing set: the server, then the agent. Tools run early, and are of use."""
    default, = re.findall(r"--url TEXT=(http://127\.0\.0\.1:(\d+)/v1)\s", help_of("agent"))
    assert f"--port INT:INT in [0 - 65535]={default[1]}\n" in help_of("serve"), help_of("serve")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free = probe.connect_ex(("127.0.0.1", int(default[1]))) != 0
    if not free:
        print(f"SKIPPED in part: somebody listens at port {default[1]} here", flush=True)
    with serve.Server("--port", default[1] if free else "0") as server:
        arguments = [] if free else ["--url", server.url + "/v1"]
        for attempt in range(20):  # a guess may be late on a busy machine
            run = subprocess.run([PROGRAM, "agent", *arguments, WEATHER], capture_output=True, text=True,
                                 encoding="utf-8", timeout=120, check=True)
            rows = [line.split() for line in run.stdout.splitlines()]
            head = rows.index("turn guessed ran early hits misses wasted errors late".split())
            table = [list(map(int, row[1:])) for row in rows[head + 1:] if len(row) == 8]
            assert table and all(len(row) == 7 for row in table), run.stdout
            guessed, early, hits, misses, wasted, errors, late = table[-1]
            assert errors == 0 and "first error" not in run.stdout, run.stdout
            assert hits + wasted >= early and late <= len(table), run.stdout
            assert f"{hits} of {hits + misses} calls ran before the model had asked for them" in run.stdout
            if guessed > 0 and hits > 0:
                print(f"{hits} of {hits + misses} calls ran early in attempt {attempt + 1}", flush=True)
                return
        raise AssertionError(f"no call ran early:\n{run.stdout}")


def test_counts(_):
    """Every guess is accounted for: said something in time, failed, or came too late."""
    oslo, rome = ({"name": "get_weather", "arguments": {"city": city}} for city in ("Oslo", "Rome"))
    with Always(rome) as wrong, Broken() as broken:
        seen = threading.Semaphore(0)
        wrong.after = broken.after = seen.release
        with Always(oslo, before=lambda: (seen.acquire(timeout=30), seen.acquire(timeout=30), time.sleep(1))) as model:
            report = agent(model.url, "--turns", "1", "--latency", "0", "--speculator", f"any={wrong.url}",
                           f"any={broken.url}", "--", WEATHER)
    counts = report["speculation"]
    assert {**counts, "first_error": ""} == {
        "proposed": 1, "started": 1, "hits": 0, "misses": 1, "wasted": 1, "cancelled": counts["cancelled"],
        "errors": 1, "late": 0, "first_error": "", "speculators": 2}, counts
    assert f"any={broken.url}" in counts["first_error"] and "I am broken" in counts["first_error"], counts


def test_seeds(_):
    """Speculators of one model sample, each with a seed of its own; the first guesses as the model is asked."""
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    seen = threading.Semaphore(0)
    with Always(call, after=seen.release) as guesser, \
            Always(call, before=lambda: [seen.acquire(timeout=30) for _ in range(3)] and time.sleep(0.5)) as model:
        report = agent(model.url, "--turns", "1", "--latency", "0", "--seed", "7", "--engine-cache", "--speculator",
                       *[f"any={guesser.url}"] * 3, "--guess-temperature", "0.9", "--", WEATHER)
        asked = sorted((body["seed"], round(body["temperature"], 6)) for body in guesser.bodies if "seed" in body)
    assert asked == [(7, 0), (8, 0.9), (9, 0.9)], asked
    assert not any("response_id" in body for body in guesser.bodies), "the response is the main model's"
    assert report["speculation"]["proposed"] == 1, "equal proposals are one"
    # The endpoint knows nothing of a tool cache: that is told, and costs no answer.
    told = report["engine_cache"]
    assert told["told"] == 0 and told["errors"] > 0 and model.url in told["first_error"], told
    assert report["turns"][0]["results"][0]["status"] == "ok", report


def test_early(_):
    """A right guess is running when the slow model asks for it, a wrong one is dropped."""
    marked = [{**document, "annotations": {"readOnlyHint": document["name"] == "get_weather"}}
              for document in serve.DOCUMENTS]
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
    def calls_of(messages):
        return [c["function"] for m in messages for c in m.get("cached_tool_calls", []) + m.get("tool_calls", [])]
    used = 0
    for tool, turns in ((["--run", f"echo '{serve.GOODBYE}'"], 3),  # to which the model makes no further call
                        (["--latency", "0"], 17)):
        plain = [m for m, _ in transcript(agent(url, "--speculator", "none", *tool, "--turns", str(turns), WEATHER))]
        for _ in range(20):  # a guess may be late on a busy machine
            report = agent(url, *tool, "--engine-cache", "--turns", "2", "--", WEATHER)
            said = [m for m, _ in transcript(report)]
            assert calls_of(said) and calls_of(said) == calls_of(plain)[:len(calls_of(said))], (said, plain)
            if "tool_calls" not in said[-1]:
                assert said[-1]["content"] == plain[-1]["content"], (said, plain)
            told = report["engine_cache"]
            assert told["errors"] == 0 and told["told"] > 0, told
            assert told["used"] == sum(len(m.get("cached_tool_calls", [])) for m in said), (told, said)
            used += told["used"]
            if used > 0:
                break
    assert used > 0, report


def test_failures(url):
    failing = agent(url, "--speculator", "none", "--run", "echo broken; exit 3", "--turns", "1", WEATHER)
    assert failing["turns"][0]["results"] == [{"status": "failed", "output": "exit status 3: broken"}]
    slow = agent(url, "--speculator", "none", "--run", "sleep 60", "--timeout", "0.2", "--turns", "1", WEATHER)
    assert slow["turns"][0]["results"][0]["status"] == "timed_out", slow
    gone = agent(url, "--speculator", "tiny=http://127.0.0.1:9/v1", "--turns", "1", "--latency", "0", "--", WEATHER)
    assert gone["turns"][0]["message"]["tool_calls"], gone
    counts = gone["speculation"]
    assert counts["errors"] + counts["late"] == 1, counts
    assert (counts["errors"] == 1) == ("127.0.0.1:9" in (counts["first_error"] or "")), counts
    binary = agent(url, "--speculator", "none", "--run", r"printf '\377'", "--turns", "2", WEATHER)
    assert len(binary["turns"]) == 2, "what a tool says need not be UTF-8"
    for arguments, what in (
            (["--url", "http://127.0.0.1:9/v1"], "http://127.0.0.1:9/v1"),
            (["--url", "ftp://x"], "ftp://x"),
            (["--url", url, "--allow", "nothing"], "nothing"),
            (["--url", url, "--speculator", "what"], "what"),
            (["--url", url, "--model", "other"], "other"),
            (["--url", url, "--tools", "/nowhere"], "/nowhere")):
        run = subprocess.run([PROGRAM, "agent", *arguments], capture_output=True, text=True, timeout=60)
        assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (arguments, run)


def test_mcp(url):
    """Tools of servers over stdio: what they say of themselves is honoured, and nothing that they do hangs the agent."""
    with tempfile.TemporaryDirectory() as folder:
        documents = pathlib.Path(folder) / "tools.json"
        documents.write_text(json.dumps([{**tool, "annotations": {"readOnlyHint": True}} for tool in serve.DOCUMENTS]),
                             encoding="utf-8")

        def server(mode):
            return f"exec {sys.executable} {pathlib.Path(__file__).with_name('support') / 'mcp_server.py'} {documents} {mode}"

        def first(mode, *arguments):
            report = agent(url, "--mcp", server(mode), "--turns", "1", "--speculator", "none", *arguments, "--", WEATHER)
            return report["turns"][0]["results"][0], report

        result, report = first("works")
        call = report["turns"][0]["message"]["tool_calls"][0]["function"]
        arguments = sorted(json.loads(call["arguments"]).items())
        assert result == {"status": "ok", "output": f'{call["name"]} {arguments}\n'
                                                    '{"type":"resource_link","uri":"file:///a"}'}, result
        guessed, oslo = threading.Event(), {"name": "get_weather", "arguments": {"city": "Oslo"}}
        with Always(oslo, after=guessed.set) as guesser, \
                Always(oslo, before=lambda: guessed.wait(30) and time.sleep(1)) as model:
            early = agent(model.url, "--mcp", server("works"), "--turns", "1", "--speculator", f"any={guesser.url}", "--",
                          WEATHER)["turns"][0]
        assert (early["started"], early["hits"]) == (1, 1), early  # its documents say readOnlyHint
        assert early["results"][0]["output"].startswith("get_weather [('city', 'Oslo')]"), early
        assert first("fails")[0] == {**result, "status": "failed"}
        assert first("errs")[0] == {"status": "failed", "output": "wrong arguments"}
        dead = first("dies")[0]
        assert dead == {"status": "failed", "output": "the server has ended: exit status 3"}, dead
        begin = time.monotonic()
        assert first("hangs", "--timeout", "1.5")[0]["status"] == "timed_out"
        assert first("rubbish", "--timeout", "1.5")[0]["status"] == "timed_out"
        assert time.monotonic() - begin < 60
        for mode, what in (("exits", "the server has ended: exit status 7"), ("silent", "did not answer in time"),
                           ("endless", "did not answer in time")):
            run = subprocess.run([PROGRAM, "agent", "--url", url, "--mcp", server(mode), "--timeout", "1.5", WEATHER],
                                 capture_output=True, text=True, timeout=60)
            assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (mode, run)


def help_of(command):
    return subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout


class Endpoint:
    """An HTTP endpoint that answers every chat alike."""

    def __init__(self, status, answer, before=lambda: None, after=lambda: None):
        endpoint = self
        self.bodies, self.after = [], after
        text = json.dumps(answer).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/chat/completions":
                    self.send_error(404)
                    return
                endpoint.bodies.append(body)
                before()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                endpoint.after()

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


class Always(Endpoint):
    """Answers everything with one call."""

    def __init__(self, call, **hooks):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        super().__init__(200, {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": function}]}}]}, **hooks)


class Broken(Endpoint):
    """Answers nothing."""

    def __init__(self, **hooks):
        super().__init__(500, {"error": {"message": "I am broken"}}, **hooks)


def main():
    serve.ARGUMENTS.program = PROGRAM
    with serve.Server() as server:
        url = server.url + "/v1"
        for test in (test_equal, test_newcomer, test_early, test_counts, test_seeds, test_engine_cache, test_failures,
                     test_mcp):
            test(url)
            print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
