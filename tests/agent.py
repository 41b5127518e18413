"""`tooldecode agent` against `tooldecode serve`: what is run early changes nothing but the time.

    python tests/agent.py PROGRAM [TEST...]
"""
import concurrent.futures
import http.client
import http.server
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import serve

PROGRAM = sys.argv[1]
WEATHER = "What is the weather in Oslo for two days?"
COMMAND = "python3 -c 'import json, sys; c = json.load(sys.stdin); print(sorted(c[\"arguments\"].items()))'"


def asking(urls):
    return [PROGRAM, "agent", *(part for url in urls for part in ("--base-url", url))]


def agent(urls, *arguments):
    urls = [urls] if isinstance(urls, str) else urls
    run = subprocess.run([*asking(urls), "--json", *arguments], capture_output=True, text=True, encoding="utf-8",
                         timeout=120)
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
            early = agent(url, *[f"--speculator={one}" for one in speculators], "--run", COMMAND, *allowed, WEATHER)
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
    cores = "of a GGUF file's model; default: as many as there are cores"
    for command, threads, shots in (("eval", "--threads INT:INT in [1 - 256]=1", "--shots INT:INT in [0 - 64]=2"),
                                    ("call", cores, "default: 0 where its template has a place for tools, 2 where it has none")):
        text = " ".join(help_of(command).split())
        assert threads in text and shots in text, text
        assert (cores in text) == (command == "call"), text
    default, = re.findall(r"--base-url,--url TEXT=\[?(http://127\.0\.0\.1:(\d+)/v1)\]? \.\.\.", help_of("agent"))
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
            head = rows.index("turn guessed ran early hits in engine misses wasted errors late".split())
            table = [list(map(int, row[1:])) for row in rows[head + 1:] if len(row) == 9]
            assert table and all(len(row) == 8 for row in table), run.stdout
            guessed, early, hits, residents, misses, wasted, errors, late = table[-1]
            assert errors == residents == 0 and "first error" not in run.stdout, run.stdout
            assert hits + wasted >= early and late <= len(table), run.stdout
            said, = re.findall(r"(\d+) of (\d+) calls ran before the model had asked for them, which saved ([\d.]+) s ",
                               run.stdout)
            assert said[:2] == (str(hits), str(hits + misses)), run.stdout
            lines = re.findall(r"^  (model|hit|miss|wasted) +\|([ =]{41})\| ([\d.]+) s to ([\d.]+) s", run.stdout, re.M)
            assert [fate for fate, *_ in lines].count("hit") <= hits and len(lines) > len(table) - 1, run.stdout
            assert all("=" in bar and float(begin) <= float(end) for _, bar, begin, end in lines), run.stdout
            if guessed > 0 and hits > 0 and float(said[2]) > 0:
                print(f"{hits} of {hits + misses} calls ran early in attempt {attempt + 1}, {said[2]} s saved",
                      flush=True)
                return
        raise AssertionError(f"no call ran early:\n{run.stdout}")


def test_saves(url):
    """The default speculator really guesses: with a model and tools that take their time, calls run early."""
    for attempt in range(5):
        with Relay(url, 0.5 * (attempt + 1)) as slow:
            report = agent(slow.url, "--latency", "0.4", "--turns", "3", WEATHER)
        counts = report["speculation"]
        assert counts["errors"] == 0, report
        if counts["proposed"] > 0 and counts["hits"] > 0:
            break
    assert counts["proposed"] > 0 and counts["started"] > 0 and counts["hits"] > 0, report
    assert report["saved_seconds"] > 0.1, report
    assert abs(report["saved_seconds"] - sum(turn["saved_seconds"] for turn in report["turns"])) < 1e-9, report
    for turn in report["turns"]:
        for run in turn["runs"]:
            assert (run["fate"] == "hit") == (run["asked"] is not None and run["begin"] < run["asked"]), turn


def test_counts(_):
    """Every guess is accounted for: said something in time, failed, or came too late."""
    oslo, rome = ({"name": "get_weather", "arguments": {"city": city}} for city in ("Oslo", "Rome"))
    with Always(rome) as wrong, Broken() as broken:
        seen = threading.Semaphore(0)
        wrong.after = broken.after = seen.release
        with Always(oslo, before=lambda: (seen.acquire(timeout=30), seen.acquire(timeout=30), time.sleep(1))) as model:
            report = agent(model.url, "--turns", "1", "--latency", "0", "--speculator", f"any={wrong.url}",
                           "--speculator", f"any={broken.url}", WEATHER)
    counts = report["speculation"]
    assert {**counts, "first_error": ""} == {
        "proposed": 1, "started": 1, "hits": 0, "residents": 0, "misses": 1, "wasted": 1,
        "cancelled": counts["cancelled"], "errors": 1, "late": 0, "first_error": "", "speculators": 2}, counts
    assert f"any={broken.url}" in counts["first_error"] and "I am broken" in counts["first_error"], counts


def test_seeds(_):
    """Speculators of one model sample, each with a seed of its own; the first guesses as the model is asked."""
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    seen = threading.Semaphore(0)
    with Always(call, after=seen.release) as guesser, Stream([], "", end=call, between=lambda: [
            seen.acquire(timeout=30) for _ in range(3)] and time.sleep(2)) as model:
        model.has_cache = False
        report = agent(model.url, "--turns", "1", "--latency", "0", "--seed", "7", "--engine-cache",
                       *["--speculator", f"any={guesser.url}"] * 3, "--guess-temperature", "0.9", "--", WEATHER)
        asked = sorted((body["seed"], round(body["temperature"], 6)) for body in guesser.bodies if "seed" in body)
    assert asked == [(7, 0), (8, 0.9), (9, 0.9)], asked
    assert not any("response_id" in body for body in guesser.bodies), "the response is the main model's"
    assert report["speculation"]["proposed"] == 1, "equal proposals are one"
    # The endpoint knows nothing of a tool cache: that is told, and costs no answer.
    told = report["engine_cache"]
    assert told["told"] == 0 and told["errors"] > 0 and model.url in told["first_error"], told
    assert "404" in told["first_error"] and report["speculation"]["hits"] == 1, report
    assert report["turns"][0]["results"][0]["status"] == "ok", report
    with Always(call) as whole:  # nor need it stream
        report = agent(whole.url, "--speculator", "none", "--turns", "1", "--latency", "0", "--engine-cache", WEATHER)
    assert report["turns"][0]["results"][0]["status"] == "ok" and report["engines"]["retries"] == 0, report


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
            assert (turn["saved_seconds"] > 0) == (turn["hits"] > 0), turn
            fates = sorted((run["fate"], run["status"]) for run in turn["runs"])
            assert fates in ({oslo["name"]: [("hit", "ok")], table["name"]: [("miss", "ok")]}[call["name"]],
                             [("miss", "ok"), ("wasted", "ok")], [("miss", "ok"), ("wasted", "cancelled")]), turn
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
            with Relay(url, 0.3) as slow:  # so that guesses are there before the calls
                report = agent(slow.url, *tool, "--engine-cache", "--turns", "2", "--", WEATHER)
            said = [m for m, _ in transcript(report)]
            assert calls_of(said) and calls_of(said) == calls_of(plain)[:len(calls_of(said))], (said, plain)
            if "tool_calls" not in said[-1]:
                assert said[-1]["content"] == plain[-1]["content"], (said, plain)
            told = report["engine_cache"]
            assert told["errors"] == 0 and (told["told"] > 0 or told["used"] == 0), told
            assert told["used"] == sum(len(m.get("cached_tool_calls", [])) for m in said), (told, said)
            used += told["used"]
            if used > 0:
                break
    assert used > 0, report


def conversation(report):
    """All that was said, whoever ran the tools."""
    return [{key: value for key, value in serve.without_ids(message).items() if key != "tool_call_id"}
            for message in report["messages"]]


def assert_begins(whole, begin):
    assert conversation(begin) == conversation(whole)[:len(begin["messages"])], (begin["messages"], whole["messages"])


def test_turns_of_the_engine(_):
    """A stream tells that a call is resident and what to speculate next: of each turn the output is there in time."""
    calls = [{"name": "get_weather", "arguments": {"city": city}} for city in ("Oslo", "Rome", "Bergen")]

    def guess(body):
        return calls[sum(message["role"] == "tool" for message in body["messages"])]
    with Always(guess) as guesser, Stream(calls[:2], "It rains.") as engine:
        report = agent(engine.url, "--engine-cache", "--turns", "1", "--run", COMMAND,
                       *["--speculator", f"any={guesser.url}"] * 2, WEATHER)
    turn, = report["turns"]
    assert (turn["residents"], turn["hits"], turn["misses"]) == (2, 0, 0), turn
    assert turn["saved_seconds"] > 0 and turn["started"] >= 2, turn
    fates = [run["fate"] for run in turn["runs"]]
    assert fates.count("resident") == 2 and set(fates) <= {"resident", "wasted"}, turn
    told = report["engine_cache"]
    assert told["told"] >= 2 and told["errors"] == 0 and told["used"] == 2, told
    assert engine.told[:2] == [(call["name"], call["arguments"]) for call in calls[:2]], engine.told
    outputs = [str(sorted(call["arguments"].items())) for call in calls[:2]]
    assert [message.get("content") for message in report["messages"]] == [WEATHER, None, outputs[0], None, outputs[1],
                                                                          "It rains."]
    assert engine.bodies[0]["response_id"] and "tool_wait" not in engine.bodies[0], "as the paper's engines have it"
    assert not any(key in body for body in guesser.bodies for key in ("response_id", "stream"))


def test_tool_wait(url):
    """An engine that waits is told; calls with effects are not its to answer, and end the reply."""
    for question, tool in ((WEATHER, "get_weather"), (serve.TABLE, "book_table")):
        plain = agent(url, "--speculator", "none", "--run", f"echo '{serve.GOODBYE}'", "--turns", "3", "--", question)
        waits = agent(url, "--speculator", "none", "--run", f"echo '{serve.GOODBYE}'", "--turns", "3", "--engine-cache",
                      "--tool-wait", "60", "--", question)
        assert conversation(waits) == conversation(plain), (waits, plain)
        assert [message["tool_calls"][0]["function"]["name"] for message in plain["messages"]
                if "tool_calls" in message] == [tool], plain
        told, counts = waits["engine_cache"], waits["speculation"]
        is_pure = tool == "get_weather"
        assert (told["told"], told["used"], counts["misses"]) == ((1, 1, 1) if is_pure else (0, 0, 1)), waits
        assert len(waits["turns"]) == (1 if is_pure else 2), waits
    # A failure is told as the client would tell it.
    failing = ["--run", "echo broken; exit 3", "--turns", "2"]
    plain = agent(url, "--speculator", "none", *failing, WEATHER)
    waits = agent(url, "--speculator", "none", *failing, "--engine-cache", "--tool-wait", "60", "--", WEATHER)
    assert_begins(waits, plain)
    assert "error: failed: exit status 3: broken" in [message["content"] for message in waits["messages"]], waits


def chats(server):
    return sum(value for name, value in serve.metrics(server).items()
               if name.startswith('tooldecode_http_requests_total{path="/v1/chat/completions"'))


def test_engines(_):
    """Three engines, of which one is killed and one hangs while they serve: none of it changes an answer."""
    with serve.Server() as first, serve.Server() as second, serve.Server() as third, \
            tempfile.TemporaryDirectory() as folder:
        servers, go = [first, second, third], pathlib.Path(folder) / "go"
        urls = [server.url + "/v1" for server in servers]
        quick = ["--run", f"echo '{serve.GOODBYE}'", "--turns", "3"]
        slow = ["--speculator", "none", *quick]
        plain = agent(urls[0], *slow, WEATHER)
        serve.until(lambda: chats(first) == len(plain["turns"]))

        def used_by(session, numbers):
            """The one engine that a session's requests reach, and how many they are."""
            before = serve.settled(lambda: {number: chats(servers[number]) for number in numbers})
            report = agent(urls, *slow, "--session", session, WEATHER)
            assert conversation(report) == conversation(plain), (report, plain)

            def change():
                counts = {number: chats(servers[number]) - was for number, was in before.items()}
                return {number: count for number, count in counts.items() if count > 0}
            serve.until(lambda: sum(change().values()) == len(report["turns"]))  # they are counted after their answers
            used, = change().items()
            return used, report

        def engine_of(session):
            """Where a session's requests go, which is one engine."""
            (place, count), report = used_by(session, range(3))
            assert report["engines"]["retries"] == 0, report["engines"]
            assert count == len(report["turns"]), (count, report)
            return place
        places = {}
        for number in range(40):  # engines are drawn by their ports: nine sessions may all miss one of three
            places[f"s{number}"] = engine_of(f"s{number}")
            if number >= 8 and len(set(places.values())) == 3:
                break
        assert len(set(places.values())) == 3, places
        assert {name: engine_of(name) for name in places} == places, "the same engine each time"

        def in_mid_turn(session, engine, *arguments):
            """An agent whose engine waits for a tool that runs until `go` is there."""
            pool = concurrent.futures.ThreadPoolExecutor()
            wait = f"while [ ! -e {go} ]; do sleep 0.05; done; echo '{serve.GOODBYE}'"
            report = pool.submit(agent, urls, "--speculator", "none", "--run", wait, "--turns", "3", "--session",
                                 session, "--engine-cache", "--tool-wait", "60", *arguments, WEATHER)
            serve.until(lambda: serve.metrics(servers[engine])["tooldecode_requests_running"] == 1)
            time.sleep(0.5)
            pool.shutdown(wait=False)
            return report

        lost = places["s0"]
        report = in_mid_turn("s0", lost)
        servers[lost].process.kill()
        left = [number for number in range(3) if number != lost]
        serve.until(lambda: sum(serve.metrics(servers[number])["tooldecode_requests_running"] for number in left) == 1)
        go.touch()
        report = report.result(timeout=60)
        assert conversation(report) == conversation(plain), (report, plain)
        engines = report["engines"]
        assert engines["retries"] >= 1 and engines["moved"] >= 1 and urls[lost] in engines["first_failure"], engines
        assert report["engine_cache"]["used"] == 1, report["engine_cache"]
        servers[lost].process.communicate()

        # Sessions of the others stay where they are; those of the one that is gone move.
        for name, place in places.items():
            (used, _), report = used_by(name, left)
            assert used == place or place == lost, (name, place, used)
            assert (report["engines"]["retries"] > 0) == (place == lost), report["engines"]

        go.unlink()
        hung = next(name for name, place in places.items() if place != lost)
        report = in_mid_turn(hung, places[hung], "--silence-timeout", "2", "--retries", "12")
        servers[places[hung]].process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        go.touch()
        report = report.result(timeout=120)
        servers[places[hung]].process.send_signal(signal.SIGCONT)
        assert conversation(report) == conversation(plain), (report, plain)
        assert report["engines"]["moved"] >= 1 and urls[places[hung]] in report["engines"]["first_failure"], report

        # With guesses, many at once.
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            reports = list(pool.map(
                lambda name: agent(urls, *quick, "--engine-cache", "--session", name, WEATHER), places))
        for report in reports:
            assert conversation(report) == conversation(plain), (report, plain)
    gone = subprocess.run([*asking(urls), "--speculator", "none", "--retries", "2", WEATHER], capture_output=True,
                          text=True, timeout=60)
    assert gone.returncode == 2 and gone.stderr.count("\n") == 1 and "http://127.0.0.1:" in gone.stderr, gone


def test_arguments(_):
    """The tool gets what a model's call means: all digits of integers, and of a repeated key the last value."""
    days = 123456789012345678901234
    for arguments, run in (('{"city": "Oslo", "days": %d}' % days, {"city": "Oslo", "days": days}),
                           ('{"city": "Rome", "city": "Oslo"}', {"city": "Oslo"})):
        with Always({"name": "get_weather", "arguments": arguments}) as engine:
            report = agent(engine.url, "--speculator", "none", "--turns", "1", "--run", COMMAND, WEATHER)
        assert report["turns"][0]["results"] == [{"status": "ok", "output": str(sorted(run.items()))}], report


def test_retries(_):
    """What may pass is asked again, once the engine may be asked; what cannot is an error at once."""
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    for status, retries in ((429, 2), (503, 2), (500, 2), (400, 0), (401, 0)):
        with Always(call, statuses=[status, status]) as engine:
            run = subprocess.run([*asking([engine.url]), "--speculator", "none", "--json", "--turns", "1", "--latency",
                                  "0", WEATHER], capture_output=True, text=True, timeout=60)
            assert len(engine.bodies) == 1 + retries, (status, engine.bodies)
            if retries == 0:
                assert run.returncode == 2 and f"status {status}" in run.stderr, run
            else:
                engines = json.loads(run.stdout)["engines"]
                assert engines["retries"] == retries and engines["moved"] == 0, engines
                assert f"status {status}" in engines["first_failure"], engines
    with Stream([call], "") as engine:  # whose stream breaks off
        engine.breaks = True
        run = subprocess.run([*asking([engine.url]), "--speculator", "none", "--engine-cache", "--retries", "1",
                              "--turns", "1", WEATHER], capture_output=True, text=True, timeout=60)
        assert run.returncode == 2 and "the stream broke off" in run.stderr, run
        assert len({body["response_id"] for body in engine.bodies}) == 2, "the first may be under way there"


def test_retry_after(_):
    """An engine that asks for more time than the backoff gets it, up to a bound."""
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    with Always(call, statuses=[429]) as engine:
        engine.retry_after = "7"
        begin = time.monotonic()
        report = agent(engine.url, "--speculator", "none", "--turns", "1", "--latency", "0", WEATHER)
    assert report["engines"]["retries"] == 1 and time.monotonic() - begin >= 7, report


def test_keys(_):
    """The key goes to the main model's server, and to a speculator there, and nowhere else."""
    call = {"name": "get_weather", "arguments": {"city": "Oslo"}}
    all_asked = threading.Barrier(3, timeout=30)  # the model and both speculators: a quick answer ends the guesses
    with Always(call, before=all_asked.wait) as engine, Always(call, before=all_asked.wait) as other:
        subprocess.run([*asking([engine.url]), "--api-key", "secret", "--turns", "1", "--latency", "0", "--speculator",
                        f"any={engine.url}", "--speculator", f"any={other.url}", WEATHER], capture_output=True, timeout=60,
                       check=True)
    assert other.keys == [None], other.keys
    assert engine.keys == ["Bearer secret"] * 2, engine.keys


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
    flood = agent(url, "--speculator", "none", "--run", "yes", "--turns", "1", WEATHER)["turns"][0]["results"][0]
    assert flood == {"status": "failed", "output": "the command wrote more than 16777216 bytes"}, flood
    deaf = agent(url, "--speculator", "none", "--run", "exec >&-; sleep 60", "--timeout", "0.5", "--turns", "1",
                 WEATHER)
    assert deaf["turns"][0]["results"][0]["status"] == "timed_out", deaf
    binary = agent(url, "--speculator", "none", "--run", r"printf '\377'", "--turns", "2", WEATHER)
    assert len(binary["turns"]) == 2, "what a tool says need not be UTF-8"
    for arguments, what in (
            (["--url", "http://127.0.0.1:9/v1", "--retries", "1"], "http://127.0.0.1:9/v1"),
            (["--url", "ftp://x"], "ftp://x"),
            (["--url", url, "--allow", "nothing"], "nothing"),
            (["--url", url, "--speculator", "what"], "what"),
            (["--url", url, "--model", "other"], "other"),
            (["--url", url, "--turns", "-1"], "0 or more"),
            (["--url", url, "--max-tokens", "18446744073709551616"], "64 bits"),
            (["--url", url, "--latency", "nan"], "finite"),
            (["--url", url, "--latency", "3", "--run", "true"], "--run"),
            (["--url", url, "--tool-wait", "5"], "--engine-cache"),
            (["--url", url, "--tools", "/nowhere"], "/nowhere")):
        run = subprocess.run([PROGRAM, "agent", *arguments], capture_output=True, text=True, timeout=60)
        assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (arguments, run)


def test_mcp(url):
    """Tools of servers over stdio: their own hints are honoured, and nothing that they do hangs the agent."""
    with tempfile.TemporaryDirectory() as folder:
        documents = pathlib.Path(folder) / "tools.json"
        documents.write_text(json.dumps([{**tool, "annotations": {"readOnlyHint": True}} for tool in serve.DOCUMENTS]),
                             encoding="utf-8")

        def server(mode):
            script = pathlib.Path(__file__).with_name("support") / "mcp_server.py"
            return f"exec {sys.executable} {script} {documents} {mode}"

        def first(mode, *arguments):
            report = agent(url, "--mcp", server(mode), "--turns", "1", "--speculator", "none", *arguments, "--",
                           WEATHER)
            return report["turns"][0]["results"][0], report

        result, report = first("works")
        call = report["turns"][0]["message"]["tool_calls"][0]["function"]
        arguments = sorted(json.loads(call["arguments"]).items())
        assert result == {"status": "ok", "output": f'{call["name"]} {arguments}\n'
                                                    '{"type":"resource_link","uri":"file:///a"}'}, result
        guessed, oslo = threading.Event(), {"name": "get_weather", "arguments": {"city": "Oslo"}}
        with Always(oslo, after=guessed.set) as guesser, \
                Always(oslo, before=lambda: guessed.wait(30) and time.sleep(1)) as model:
            early = agent(model.url, "--mcp", server("works"), "--turns", "1", "--speculator", f"any={guesser.url}",
                          "--", WEATHER)["turns"][0]
        assert (early["started"], early["hits"]) == (1, 1), early  # its documents say readOnlyHint
        assert early["results"][0]["output"].startswith("get_weather [('city', 'Oslo')]"), early
        structured = first("structured")[0]
        assert structured["status"] == "ok" and json.loads(structured["output"]) == dict(arguments), structured
        # A question after the command is a question.
        told = agent(url, "--turns", "1", "--speculator", "none", "--mcp", server("works"), WEATHER)
        assert told["turns"][0]["results"][0] == result, told
        assert first("fails")[0] == {**result, "status": "failed"}
        assert first("errs")[0] == {"status": "failed", "output": "wrong arguments"}
        dead = first("dies")[0]
        assert dead == {"status": "failed", "output": "the server has ended: exit status 3"}, dead
        begin = time.monotonic()
        assert first("hangs", "--timeout", "1.5")[0]["status"] == "timed_out"
        assert first("rubbish", "--timeout", "1.5")[0]["status"] == "timed_out"
        assert first("deep", "--timeout", "1.5")[0]["status"] == "timed_out", "it is no message that anybody reads"
        assert first("odd")[0] == {"status": "ok", "output": "3"}
        flood = first("flood")[0]
        assert flood["status"] == "failed" and "lines that are no messages, the first: \"xxx" in flood["output"], flood
        long = {"name": "get_weather", "arguments": {"city": "x" * (1 << 20)}}
        with Always(long) as model:
            deaf = agent(model.url, "--mcp", server("deaf"), "--timeout", "1.5", "--turns", "1", "--speculator", "none",
                         "--", WEATHER)["turns"][0]["results"][0]
        assert deaf["status"] == "timed_out", deaf
        assert time.monotonic() - begin < 120
        for mode, what in (("exits", "the server has ended: exit status 7"), ("silent", "did not answer in time"),
                           ("endless", "did not answer in time")):
            run = subprocess.run([PROGRAM, "agent", "--url", url, "--mcp", server(mode), "--timeout", "1.5", WEATHER],
                                 capture_output=True, text=True, timeout=60)
            assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (mode, run)


def help_of(command):
    return subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout


class Endpoint:
    """An HTTP endpoint that answers every chat alike, after some that it answers with a status and nothing else."""

    def __init__(self, status, answer, before=lambda: None, after=lambda: None, statuses=()):
        endpoint = self
        self.bodies, self.keys, self.after, self.retry_after = [], [], after, None
        self.statuses = [*statuses]

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/chat/completions":
                    endpoint.other(self, body)
                    return
                endpoint.bodies.append(body)
                endpoint.keys.append(self.headers["Authorization"])
                if endpoint.statuses:
                    self.send_response(endpoint.statuses.pop())
                    if endpoint.retry_after:
                        self.send_header("Retry-After", endpoint.retry_after)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                before()
                endpoint.reply(self, status, answer(body) if callable(answer) else answer)
                endpoint.after()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def reply(self, handler, status, answer):
        text = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def other(self, handler, _):
        handler.send_error(404)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Always(Endpoint):
    """Answers everything with one call, or with that which a function makes of the request; arguments may be a text."""

    def __init__(self, call, **hooks):
        def answer(body):
            said = call(body) if callable(call) else call
            arguments = said["arguments"] if isinstance(said["arguments"], str) else json.dumps(said["arguments"])
            function = {"name": said["name"], "arguments": arguments}
            return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
                {"id": "1", "type": "function", "function": function}]}}]}
        super().__init__(200, answer, **hooks)


class Relay(Endpoint):
    """A server that takes longer: each chat is passed on after a while, everything else at once."""

    def __init__(self, url, seconds):
        super().__init__(200, None, before=lambda: time.sleep(seconds))
        self.to = urllib.parse.urlsplit(url)

    def pass_on(self, handler, body):
        connection = http.client.HTTPConnection(self.to.hostname, self.to.port, timeout=60)
        connection.request("POST", handler.path, json.dumps(body), serve.JSON_TYPE)
        answer = connection.getresponse()
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.headers["Content-Type"])
        handler.end_headers()
        while part := answer.read1(65536):
            handler.wfile.write(part)
            handler.wfile.flush()
        connection.close()

    def reply(self, handler, status, _):
        self.pass_on(handler, self.bodies[-1])

    other = pass_on


class Stream(Endpoint):
    """An engine with a tool cache, as the paper has it: goes on over calls that it is told of; says a text, a call.

    Its responses have ids of its own. `breaks` ends its streams in their midst; without `has_cache` it has no endpoint.
    """

    def __init__(self, calls, text, end=None, between=lambda: None):
        super().__init__(200, None)
        self.calls, self.text, self.end, self.between = calls, text, end, between
        self.told, self.outputs, self.breaks, self.has_cache = [], {}, False, True
        self.changed = threading.Condition()

    def other(self, handler, body):
        assert handler.path == "/cache-tool-output/chatcmpl-own", handler.path
        if not self.has_cache:
            handler.send_error(404)
            return
        with self.changed:
            for entry in body:
                self.told.append((entry["name"], entry["params"]))
                self.outputs[json.dumps([entry["name"], entry["params"]])] = entry["output"]
            self.changed.notify_all()
        super().reply(handler, 200, {"cached": len(body)})

    def reply(self, handler, status, _):
        handler.send_response(status)
        handler.end_headers()

        def chunk(**delta):
            data = {"id": "chatcmpl-own", "choices": [{"index": 0, "delta": delta}]}
            handler.wfile.write(b"data: " + json.dumps(data).encode() + b"\r\n\r\n")
            handler.wfile.flush()
        chunk(role="assistant", content="")
        self.between()
        if self.breaks:
            return
        for number, call in enumerate(self.calls):
            key = json.dumps([call["name"], call["arguments"]])
            with self.changed:
                assert self.changed.wait_for(lambda: key in self.outputs, timeout=30), (key, self.outputs)
            chunk(cached_tool_calls=[{
                "id": f"call_{number}", "type": "function", "output": self.outputs[key], "turn": number,
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}])
        for letter in self.text:
            chunk(content=letter)
        if self.end:  # a call, in pieces
            chunk(tool_calls=[{"index": 0, "id": "call_end", "type": "function",
                               "function": {"name": self.end["name"], "arguments": ""}}])
            for letter in json.dumps(self.end["arguments"]):
                chunk(tool_calls=[{"index": 0, "function": {"arguments": letter}}])
        handler.wfile.write(b"data: [DONE]\r\n\r\n")


class Broken(Endpoint):
    """Answers nothing."""

    def __init__(self, **hooks):
        super().__init__(500, {"error": {"message": "I am broken"}}, **hooks)


def main():
    serve.ARGUMENTS.program = PROGRAM
    with serve.Server() as server:
        url = server.url + "/v1"
        tests = (test_equal, test_newcomer, test_saves, test_early, test_counts, test_seeds, test_engine_cache,
                 test_turns_of_the_engine, test_tool_wait, test_engines, test_arguments, test_retries, test_retry_after,
                 test_keys, test_failures, test_mcp)
        for test in tests:
            if sys.argv[2:] and test.__name__ not in sys.argv[2:]:
                continue
            test(url)
            print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
