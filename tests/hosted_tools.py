"""`tooldecode serve --mcp`: tools that the server runs itself. Answers equal those of a client that runs the same tools.

    python tests/hosted_tools.py PROGRAM [--only NAME]
"""
import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import serve
from responses import PATH, accumulated, asking, events_of, plain, respond
from serve import (DOCUMENTS, GOODBYE, TABLE, TOOLS, WEATHER, Server, function, joined, metrics, request, tokens_of, until,
                   without_ids)

SHOP = {"type": "mcp", "server_label": "shop", "require_approval": "never"}


@contextlib.contextmanager
def command(*mode, documents=None):
    """The command of a server with these tools."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "tools.json"
        file.write_text(json.dumps(DOCUMENTS if documents is None else documents), encoding="utf-8")
        script = pathlib.Path(__file__).with_name("support") / "mcp_server.py"
        yield shlex.join(("exec", sys.executable, str(script), str(file), *mode)).replace("exec", "exec", 1)


@contextlib.contextmanager
def serving(*mode, documents=None, options=()):
    with command(*mode, documents=documents) as run, Server("--mcp", f"shop={run}", *options) as server:
        yield server


def by_client(server, body, output):
    """The call, and the answer behind it, of a client that runs the tools."""
    first = server.chat(body)["choices"][0]["message"]
    call, = first["tool_calls"]
    result = {"role": "tool", "tool_call_id": call["id"], "content": output}
    second = server.chat({**body, "messages": [*body["messages"], first, result]})
    return call, second


def test_answers_equal_those_of_a_client():
    with serving("says", GOODBYE) as server:
        call, second = by_client(server, request(WEATHER, DOCUMENTS), GOODBYE)
        before = metrics(server)
        here = server.chat(request(WEATHER, [SHOP]))
        message = here["choices"][0]["message"]
        cached, = message["cached_tool_calls"]
        assert function(cached) == function(call), (cached, call)
        assert (cached["output"], cached["server_label"], cached["status"]) == (GOODBYE, "shop", "ok"), cached
        assert message["content"] == second["choices"][0]["message"]["content"], (message, second)
        assert "tool_calls" not in message and here["choices"][0]["finish_reason"] == "stop", here
        assert metrics(server)["tooldecode_cached_turns_total"] == before["tooldecode_cached_turns_total"] + 1

        streamed, finish, usage, _ = joined(server.events(request(WEATHER, [SHOP]), stream_options={"include_usage": True}))
        assert without_ids(streamed) == without_ids(message) and finish == "stop", streamed
        assert tokens_of(usage) == tokens_of(here["usage"]), (usage, here)

        # The message in a history is the turns that it tells of.
        following = {"role": "user", "content": TABLE}
        again = server.chat(request([{"role": "user", "content": WEATHER}, message, following], [SHOP]))
        apart = server.chat(request([{"role": "user", "content": WEATHER}, {"role": "assistant", "tool_calls": [call]},
                                     {"role": "tool", "tool_call_id": call["id"], "content": GOODBYE},
                                     second["choices"][0]["message"], following], [SHOP]))
        assert tokens_of(again["usage"]) == tokens_of(apart["usage"]), (again, apart)


def test_responses():
    with serving("says", GOODBYE) as server:
        body = asking(WEATHER, [SHOP])
        response = respond(server, body)
        ran, message = response["output"]
        chat = server.chat(request(WEATHER, [SHOP]))["choices"][0]["message"]
        cached, = chat["cached_tool_calls"]
        assert (ran["type"], ran["server_label"], ran["output"], ran["error"], ran["status"]) == (
            "mcp_call", "shop", GOODBYE, None, "completed"), ran
        assert {"name": ran["name"], "arguments": ran["arguments"]} == cached["function"], (ran, cached)
        assert message["content"][0]["text"] == chat["content"] and ran["id"] != message["id"], response
        assert response["tools"] == [SHOP], response
        assert plain(accumulated(events_of(server, body))) == plain(response)

        # Items of a history, as they came and as a client would write them.
        question = {"role": "user", "content": WEATHER}
        more = {"role": "user", "content": TABLE}
        again = respond(server, asking([question, ran, message, more], [SHOP]))
        parts = [{"type": "function_call", "call_id": "a", "name": ran["name"], "arguments": ran["arguments"]},
                 {"type": "function_call_output", "call_id": "a", "output": GOODBYE}]
        apart = respond(server, asking([question, *parts, message, more], [SHOP]))
        assert tokens_of(again["usage"]) == tokens_of(apart["usage"]), (again["usage"], apart["usage"])
        listed = {"type": "mcp_list_tools", "id": "l", "server_label": "shop", "tools": []}
        following = respond(server, asking([question, listed, ran, message, more], [SHOP]))
        assert tokens_of(following["usage"]) == tokens_of(apart["usage"]), following


def test_tools_of_client_and_server():
    """A call to the client's tool ends the answer; one to the server's does not."""
    with serving("says", GOODBYE) as server:
        weather = TOOLS[0]
        tools = [weather, {**SHOP, "allowed_tools": ["book_table"]}]
        asked = server.chat(request(WEATHER, tools))["choices"][0]
        assert asked["finish_reason"] == "tool_calls" and "cached_tool_calls" not in asked["message"], asked
        assert function(asked["message"]["tool_calls"][0])["name"] == "get_weather", asked
        booked = server.chat(request(TABLE, tools))["choices"][0]
        cached, = booked["message"]["cached_tool_calls"]
        assert function(cached)["name"] == "book_table" and booked["finish_reason"] == "stop", booked
        # The document is known to the model as if the client had sent it, in this order.
        alone = server.chat(request(TABLE, [weather, DOCUMENTS[1]], max_tokens=1))["usage"]["prompt_tokens"]
        assert server.chat(request(TABLE, tools, tool_choice="none", max_tokens=1))["usage"]["prompt_tokens"] == alone
        two = [{**SHOP, "allowed_tools": {"tool_names": ["convert_currency", "book_table"]}}, weather]
        assert server.chat(request(TABLE, two))["choices"][0]["message"]["cached_tool_calls"], two


def test_a_call_in_the_last_turn():
    """It is not the client's: the answer ends as one that was cut."""
    with serving("says", WEATHER) as server:
        choice = server.chat(request(WEATHER, [SHOP]))["choices"][0]
        assert len(choice["message"]["cached_tool_calls"]) == 7 and "tool_calls" not in choice["message"], choice
        assert (choice["finish_reason"], choice["stop_reason"]) == ("length", "max_turns"), choice
        streamed, finish, _, _ = joined(server.events(request(WEATHER, [SHOP])))
        assert without_ids(streamed) == without_ids({**choice["message"], "content": ""}) and finish == "length", streamed
        response = respond(server, asking(WEATHER, [SHOP]))
        assert [item["type"] for item in response["output"]] == 7 * ["mcp_call"], response
        assert response["status"] == "incomplete", response
        assert response["incomplete_details"] == {"reason": "max_turns"}, "more tokens would not help"
        assert plain(accumulated(events_of(server, asking(WEATHER, [SHOP])))) == plain(response)


def test_a_server_that_ends():
    """The next call starts it again."""
    with serving("dies") as server:
        for _ in range(2):
            ran = respond(server, asking(WEATHER, [SHOP], max_output_tokens=60))["output"][0]
            assert ran["error"] == "the server has ended: exit status 3", ran
        before = metrics(server)["tooldecode_cached_turns_total"]
        assert before >= 2, before


def test_a_server_that_hangs_when_it_starts_again():
    """Calls that need it wait for one start together, and none begins another when its time is over."""
    with tempfile.TemporaryDirectory() as folder:
        starts = pathlib.Path(folder) / "starts"
        with serving("hangs_later", str(starts), options=("--mcp-timeout", "1")) as server:
            answer = server.chat(request(WEATHER, [SHOP], n=8, max_tokens=60))
            calls = [choice["message"]["cached_tool_calls"] for choice in answer["choices"]]
            assert all(call["status"] in ("timed_out", "failed") for of_choice in calls for call in of_choice), calls
            begun = len(starts.read_text(encoding="utf-8"))
            time.sleep(4)
            more = len(starts.read_text(encoding="utf-8")) - begun
            assert more <= 1, f"nobody waits, and {more} starts have begun since"


def test_a_server_whose_helper_holds_its_pipes():
    with serving("leaves", options=("--mcp-timeout", "60")) as server:
        begin = time.monotonic()
        for _ in range(2):
            call = server.chat(request(WEATHER, [SHOP], max_tokens=60))["choices"][0]["message"]["cached_tool_calls"][0]
            assert call["status"] == "failed" and "exit status 4" in call["output"], call
        assert time.monotonic() - begin < 30


def test_a_result_cut_within_a_character():
    with serving("cut") as server:
        call = server.chat(request(WEATHER, [SHOP], max_tokens=60))["choices"][0]["message"]["cached_tool_calls"][0]
        assert (call["status"], call["output"]) == ("ok", "sunny \\ \U0001F600 \uFFFD"), call


def test_equal_calls_run_beside_each_other():
    with serving("sleeps", "1") as server:
        begin = time.monotonic()
        answer = server.chat(request(WEATHER, [SHOP], n=4))
        assert all(len(choice["message"]["cached_tool_calls"]) == 1 for choice in answer["choices"]), answer
        assert time.monotonic() - begin < 3.5, "four calls of a second, one after another"


def test_long_results():
    with serving("says", "x" * 100_000) as server:  # as long as an argument of a command may be
        choice = server.chat(request(WEATHER, [SHOP]))["choices"][0]
        assert choice["finish_reason"] == "length" and len(choice["message"]["cached_tool_calls"]) == 1, choice
    with serving("repeats", str(1 << 21)) as server:
        cached = server.chat(request(WEATHER, [SHOP]))["choices"][0]["message"]["cached_tool_calls"][0]
        assert (cached["status"], cached["output"]) == ("failed", "the result has 2097152 bytes, more than 1048576"), cached


def test_histories_of_responses():
    """Text before a call of the server's is of its turn, and results of the client's calls come first."""
    with serving("says", GOODBYE) as server:
        question = {"role": "user", "content": WEATHER}
        text = {"role": "assistant", "content": "I look it up."}
        ran = {"type": "mcp_call", "id": "m", "server_label": "shop", "name": "get_weather", "arguments": '{"city": "Oslo"}',
               "output": GOODBYE}
        call = {"type": "function_call", "call_id": "m", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
        output = {"type": "function_call_output", "call_id": "m", "output": GOODBYE}
        here, apart = (tokens_of(respond(server, asking(items, [SHOP]))["usage"])
                       for items in ([question, text, ran], [question, text, call, output]))
        assert here == apart, (here, apart)
        server.refused(400, "invalid_value", "input[2].type", asking(
            [question, call, {**ran, "id": "n"}, output], [SHOP]), path=PATH)


def test_failures_reach_the_model():
    for mode, status, output in (("fails", "failed", "get_weather"), ("errs", "failed", "wrong arguments"),
                                 ("dies", "failed", "the server has ended: exit status 3"),
                                 ("silent_calls", "timed_out", "")):
        with serving("hangs" if mode == "silent_calls" else mode, options=("--mcp-timeout", "2")) as server:
            body = request(WEATHER, [SHOP], max_completion_tokens=60)
            message = server.chat(body)["choices"][0]["message"]
            cached = message["cached_tool_calls"][0]
            assert cached["status"] == status and output in cached["output"], cached
            if mode == "silent_calls":
                continue  # each further call takes as long
            ran = respond(server, asking(WEATHER, [SHOP], max_output_tokens=60))["output"][0]
            assert (ran["status"], ran["output"], ran["error"]) == ("failed", None, cached["output"]), ran


def test_a_client_that_leaves():
    """Its call is cancelled, and the server goes on."""
    with serving("hangs", options=("--mcp-timeout", "600")) as server:
        with server.open("POST", "/v1/chat/completions", request(WEATHER, [SHOP], stream=True)) as response:
            response.readline()
            time.sleep(1)
            assert metrics(server)["tooldecode_requests_running"] == 1, "it waits for the call"
        until(lambda: metrics(server)["tooldecode_requests_running"] == 0)
        assert server.chat(request(GOODBYE, []))["choices"][0]["finish_reason"] in ("stop", "length")


def test_a_server_that_stops():
    """A call that runs does not keep it from its end."""
    with serving("hangs", options=("--mcp-timeout", "600", "--drain-seconds", "0.5")) as server:
        with server.open("POST", "/v1/chat/completions", request(WEATHER, [SHOP], stream=True)) as response:
            response.readline()
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 10


def test_a_signal_ends_a_server_that_starts():
    """And the MCP server that it waits for, though that one does not read its input."""
    with tempfile.TemporaryDirectory() as folder:
        open_while_it_lives = pathlib.Path(folder) / "fifo"
        os.mkfifo(open_while_it_lives)
        run = f"exec sleep 40 9> {shlex.quote(str(open_while_it_lives))}"
        for ends in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([serve.ARGUMENTS.program, "serve", "--port", "0", "--mcp", f"shop={run}", "--mcp-timeout", "600"],
                                  stdout=subprocess.DEVNULL) as starting, open_while_it_lives.open(encoding="utf-8") as held:
                begin = time.monotonic()
                starting.send_signal(ends)
                assert starting.wait(timeout=20) == 128 + ends and held.read() == "" and time.monotonic() - begin < 30


def test_refusals():
    with serving("works") as server:
        for entry, param, what in (
                ({**SHOP, "server_label": "other"}, "tools[1].server_label", "there are: shop"),
                ({"type": "mcp"}, "tools[1].server_label", "required"),
                ({**SHOP, "server_url": "https://example.org"}, "tools[1].server_url", "--mcp"),
                ({**SHOP, "require_approval": "always"}, "tools[1].require_approval", "never"),
                ({**SHOP, "allowed_tools": ["sell"]}, "tools[1].allowed_tools", "sell"),
                ({**SHOP, "allowed_tools": []}, "tools[1].allowed_tools", "empty"),
                ({**SHOP, "allowed_tools": "all"}, "tools[1].allowed_tools", "array"),
                ({**SHOP, "allow": 1}, "tools[1].allow", ""),
                (SHOP, "tools[1].server_label", "the name of tools[0]: book_table")):
            tool = "book_table" if entry is SHOP else "f"
            body = request(WEATHER, [{"type": "function", "function": {"name": tool}}, entry])
            with server.open("POST", "/v1/chat/completions", body) as response:
                error = json.loads(response.read())["error"]
            assert response.status == 400 and error["param"] == param and what in error["message"], (entry, error)
        marked = request(GOODBYE, [{**SHOP, "cache_control": {"type": "ephemeral"}}], max_tokens=4)
        with server.open("POST", "/v1/chat/completions", marked) as response:
            assert response.status == 200, response.read()
            assert response.headers["X-Tooldecode-Ignored"] == "tools[].cache_control", response.headers.items()
        twice = request(WEATHER, [SHOP, {**SHOP, "allowed_tools": ["book_table"]}])
        assert "book_table" in server.refused(400, "invalid_value", "tools[1].server_label", twice)["message"]
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            server.refused(400, "unsupported_value", "tool_choice", request(WEATHER, [SHOP], tool_choice=choice))
        with server.open("POST", "/v1/responses", {"model": "tiny", "input": WEATHER, "tools": [SHOP],
                                                   "max_tool_calls": 0}) as response:
            error = json.loads(response.read())["error"]
        assert response.status == 400 and error["param"] == "max_tool_calls", error
        server.refused(400, "invalid_tool", "tools[0].function.parameters.type", request(WEATHER, [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "nothing"}}}, SHOP]))
    with Server() as server:
        message = server.refused(400, "invalid_value", "tools[0].server_label", request(WEATHER, [SHOP]))["message"]
        assert "without --mcp" in message, message


def test_servers_that_cannot_be_used():
    wrong = [{"name": "f", "inputSchema": {"type": "nothing"}}]
    with command("works") as right, command("exits") as ending, command("works", documents=wrong) as refused:
        for arguments, what in ((("shop",), "LABEL=COMMAND"), (("=x",), "LABEL=COMMAND"),
                                ((f"a={right}", f"a={right}"), "has the label of another server"),
                                ((f"a={right}", f"b={right}"), "has a tool that another server has"),
                                ((f"a={ending}",), "exit status 7"), ((f"a={refused}",), "#/0/inputSchema/type")):
            options = [word for argument in arguments for word in ("--mcp", argument)]
            run = subprocess.run([serve.ARGUMENTS.program, "serve", "--port", "0", *options], capture_output=True,
                                 text=True, timeout=60, check=False)
            assert run.returncode == 2 and run.stderr.count("\n") == 1 and what in run.stderr, (arguments, run)


if __name__ == "__main__":
    begin = time.monotonic()
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals())
    print(f"{time.monotonic() - begin:.1f} s")
