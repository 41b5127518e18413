"""A server of the Model Context Protocol over standard input and output, for tests/agent.py and tests/hosted_tools.py; MODE selects its behaviour.

    python tests/support/mcp_server.py DOCUMENTS [MODE]

DOCUMENTS is a file of tools in MCP's form. MODE: works (the output is the call's sorted arguments), says TEXT, repeats COUNT,
sleeps SECONDS, fails, errs, dies, hangs_later FILE (dies at a call, and answers nothing when it is started again; FILE gets a
byte for each start),
leaves (ends, but not the process that it started), cut (a text cut within a character), hangs, rubbish, silent, structured (a value without text), exits, endless, deaf (stops reading), odd (a result that is not
MCP's), deep (JSON nested too deeply to read), flood (a line without an end).
"""
import json
import os
import subprocess
import sys
import threading
import time


saying = threading.Lock()


def say(message):
    with saying:  # print writes the end of a line by itself
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        documents = json.load(file)
    mode = sys.argv[2] if len(sys.argv) > 2 else "works"
    if mode == "exits":
        sys.exit(7)
    if mode == "hangs_later":
        with open(sys.argv[3], "a+", encoding="utf-8") as file:
            file.write("x")
        if os.path.getsize(sys.argv[3]) > 1:
            mode = "silent"
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message or mode == "silent":
            continue
        reply, method = {"id": message["id"]}, message["method"]
        if method == "initialize":
            say({"id": "mine", "method": "ping"})
            say({"id": "other", "method": "sampling/createMessage", "params": {}})
            say({**reply, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                     "serverInfo": {"name": "test", "version": "1"}}})
        elif method == "tools/list":  # one a page
            at = int(message["params"].get("cursor", 0))
            more = {"nextCursor": str(at + 1)} if at + 1 < len(documents) or mode == "endless" else {}
            say({**reply, "result": {"tools": [documents[at % len(documents)]], **more}})
        elif method == "tools/call" and mode in ("works", "fails"):
            output = f"{message['params']['name']} {sorted(message['params']['arguments'].items())}"
            say({"method": "notifications/message", "params": {"level": "info", "data": "working"}})
            say({**reply, "result": {"content": [{"type": "text", "text": output},
                                                 {"type": "resource_link", "uri": "file:///a"}],
                                     "isError": mode == "fails"}})
        elif method == "tools/call" and mode == "says":
            say({**reply, "result": {"content": [{"type": "text", "text": sys.argv[3]}]}})
        elif method == "tools/call" and mode == "repeats":
            say({**reply, "result": {"content": [{"type": "text", "text": int(sys.argv[3]) * "x"}]}})
        elif method == "tools/call" and mode == "sleeps":
            threading.Timer(float(sys.argv[3]), say, [{**reply, "result": {"content": [{"type": "text", "text": "Thank you, that was all."}]}}]).start()
        elif method == "tools/call" and mode == "structured":
            say({**reply, "result": {"content": [], "structuredContent": message["params"]["arguments"]}})
        elif method == "tools/call" and mode == "errs":
            say({**reply, "error": {"code": -32602, "message": "wrong arguments"}})
        elif method == "tools/call" and mode in ("dies", "hangs_later"):
            sys.exit(3)
        elif method == "tools/call" and mode == "leaves":
            subprocess.Popen(["sleep", "600"])
            os._exit(4)
        elif method == "tools/call" and mode == "cut":
            say({**reply, "result": {"content": [{"type": "text", "text": "sunny \\ \ud83d\ude00 \ud83d"}]}})
        elif method == "tools/call" and mode == "rubbish":
            print("Traceback: \udcff".encode("utf-8", "surrogateescape").decode("latin-1"), flush=True)
            print('{"jsonrpc": "2.0", "id": "x"', flush=True)
            print("[]", flush=True)
        elif method == "tools/call" and mode == "odd":
            say({**reply, "result": 3})
        elif method == "tools/call" and mode == "deep":
            print('{"jsonrpc": "2.0", "id": %d, "result": {"content": %s}}'
                  % (message["id"], "[" * 100_000 + "]" * 100_000), flush=True)
        elif method == "tools/call" and mode == "flood":
            while True:
                sys.stdout.write("x" * 65536)
        if method == "tools/list" and mode == "deaf" and "nextCursor" not in more:
            time.sleep(3600)


if __name__ == "__main__":
    main()
