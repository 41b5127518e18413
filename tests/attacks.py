"""`tooldecode serve` under clients that mean harm, and while it is told to stop.

    python tests/attacks.py PROGRAM [--only NAME]

Requests that two readers may read differently, clients that are slow or do not read, and answers under way at a signal.
"""
import concurrent.futures
import contextlib
import gzip
import http.client
import json
import pathlib
import re
import signal
import socket
import sys
import time

import serve

SOON = 5  # seconds in which a small chat is answered, whatever others do; alone it takes some hundredths
CHAT = json.dumps(serve.request("Hi", None, max_tokens=4)).encode()
LONG = {"type": "json_schema", "json_schema": {"name": "long", "schema": {"type": "string", "minLength": 200}}}
POST = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\n"
HOST = b"Host: x\r\n"


def connect(server, client="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30, source_address=(client, 0))


def answers(data):
    """The status lines and headers of all answers in some bytes, by their lengths."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        assert lines[0].startswith("HTTP/1.1 "), head
        found.append((int(lines[0].split()[1]), headers, data[:int(headers["content-length"])]))
        data = data[int(headers["content-length"]):]
    return found


def receive(connection):
    """All bytes until the server ends the connection."""
    got = b""
    while part := connection.recv(65536):
        got += part
    return got


def send(server, data):
    """All that is answered."""
    with connect(server) as connection:
        connection.sendall(data)
        return answers(receive(connection))


def small_chat(server, client="127.0.0.1", body=CHAT):
    """How many seconds a chat takes, over a connection of its own."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60, source_address=(client, 0))
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", body, serve.JSON_TYPE)
        response = connection.getresponse()
        text = response.read()
        assert response.status == 200, (response.status, text)
    return time.monotonic() - begin


def test_framing():
    """Nothing that is hidden in what may be a body is answered: the request is refused, and the connection ends."""
    hidden = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    sized = POST + HOST + b"Content-Length: "
    chunked = POST + HOST + b"Transfer-Encoding: chunked\r\n"
    size = b"%d" % len(CHAT)
    hexed = b"%x" % len(CHAT)
    cases = {
        "length and coding": sized + size + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "coding and length": chunked + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
        "two lengths": sized + size + b"\r\nContent-Length: 0\r\n\r\n" + CHAT,
        "the same length twice": sized + size + b"\r\nContent-Length: " + size + b"\r\n\r\n" + CHAT,
        "a list of lengths": sized + size + b", " + size + b"\r\n\r\n" + CHAT,
        "two codings": chunked + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "an unknown coding": POST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "a coding under HTTP/1.0": chunked.replace(b"/1.1", b"/1.0") + b"\r\n0\r\n\r\n",
        "a folded line": POST + HOST + b"A: b\r\n Content-Length: 5\r\n\r\n",
        "a folded line after the first": POST.replace(b"\r\nC", b"\r\n C") + HOST + b"\r\n",
        "a space before a colon": POST + HOST + b"Content-Length : " + size + b"\r\n\r\n" + CHAT,
        "no host": POST + b"Content-Length: " + size + b"\r\n\r\n" + CHAT,
        "two hosts": sized + size + b"\r\nHost: y\r\n\r\n" + CHAT,
        "a line feed alone": POST + HOST + b"A: b\nContent-Length: " + size + b"\r\n\r\n" + CHAT,
        "a carriage return alone": POST + HOST + b"A: b\rContent-Length: " + size + b"\r\n\r\n" + CHAT,
    }
    for length in (b"+" + size, b"-" + size, b"", b" ", b"0x" + hexed, hexed + b"h", b"1 2", size + b".0", b"1e2",
                   b"%d" % (2 ** 64 + len(CHAT)), b"9" * 40, size + b"\x00", size + b"\x0b"):
        cases[f"the length {length}"] = sized + length + b"\r\n\r\n" + CHAT
    for chunk in (b"0x" + hexed, b"+" + hexed, b"-" + hexed, b"", b" " + hexed, hexed + b" ", b"1" + b"0" * 16 + hexed,
                  b"f" * 16, hexed + b"\x00", b"g"):
        cases[f"the chunk {chunk}"] = chunked + b"\r\n" + chunk + b"\r\n" + CHAT + b"\r\n0\r\n\r\n"
    cases["a chunk that is longer than it says"] = chunked + b"\r\n1\r\n" + CHAT + b"\r\n0\r\n\r\n"
    for byte in (0, 1, 11, 127, 0xFF, 0x80):
        cases[f"the byte {byte} in a header"] = sized + size + b"\r\nA: b%cc\r\n\r\n" % byte + CHAT
        cases[f"the byte {byte} in a name"] = sized + size + b"\r\nA%cc: b\r\n\r\n" % byte + CHAT
        cases[f"the byte {byte} in a URL"] = b"GET /health%c HTTP/1.1\r\n" % byte + HOST + b"\r\n"
    with serve.Server() as server:
        for name, data in cases.items():
            got = send(server, data + hidden * 3)
            assert [status for status, _, _ in got] == [400], (name, got)
            assert got[0][1]["connection"] == "close", (name, got)
            assert json.loads(got[0][2])["error"]["code"] == "invalid_http", (name, got)
        right = (sized + size + b"\r\nX-Name: caf\xc3\xa9\r\n\r\n" + CHAT
                 + chunked + b"\r\n" + hexed + b";a=b\r\n" + CHAT + b"\r\n000\r\nX-Sum: 1\r\n\r\n"
                 + hidden.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        got = send(server, right)
        assert [status for status, _, _ in got] == [200, 200, 200], got
        assert [headers.get("connection") for _, headers, _ in got] == [None, None, "close"], got
        for step in (1, 7):  # the same in small pieces
            with connect(server) as connection:
                for at in range(0, len(right), step):
                    connection.sendall(right[at:at + step])
                assert [status for status, _, _ in answers(receive(connection))] == [200, 200, 200], step
    print(f"{len(cases)} requests that may be read in two ways: none is")


def test_early_refusals():
    """A body that is not wanted is not waited for."""
    with serve.Server("--api-key", "k", "--max-body", "1000") as server:
        key = b"Authorization: Bearer k\r\n"
        for status, head in ((401, POST + HOST + b"Content-Length: 500\r\n"), (413, POST + HOST + key + b"Content-Length: 5000\r\n"),
                             (401, POST + HOST + b"Transfer-Encoding: chunked\r\n"),
                             (401, POST + HOST + b"Content-Length: 500\r\nExpect: 100-continue\r\n"),
                             (404, POST.replace(b"/v1", b"/v2") + HOST + key + b"Content-Length: 500\r\n"),
                             (415, POST.replace(b"/json", b"/xml") + HOST + key + b"Content-Length: 500\r\n")):
            got = send(server, head + b"\r\n")
            assert [(one[0], one[1]["connection"]) for one in got] == [(status, "close")], (head, got)
        with connect(server) as connection:
            connection.sendall(POST + HOST + key + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(CHAT))
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(CHAT)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 "), "it is answered"


def test_compressed_bodies():
    """A body is not larger than it may be because it comes compressed."""
    with serve.Server() as server:
        for body, status in ((CHAT, 200), (CHAT + b" " * 20_000_000, 413)):
            data = gzip.compress(body)
            (got, _, answer), = send(server, POST + HOST + b"Content-Encoding: gzip\r\nConnection: close\r\n"
                                     b"Content-Length: %d\r\n\r\n" % len(data) + data)
            assert got == status, answer


def test_keys():
    """A scheme is written in any case, a key is what it is."""
    with serve.Server("--api-key", "a%41+b") as server:
        for status, value in ((200, "Bearer a%41+b"), (200, "bearer a%41+b"), (200, "BEARER  a%41+b"), (401, "Bearer aA+b"),
                              (401, "Bearer a%41 b"), (401, "Bearer A%41+b"), (401, "Bearer"), (401, "Bearera%41+b")):
            got, answer = server.ask("GET", "/v1/models", headers={"Authorization": value})
            assert got == status, (value, answer)
    with serve.Server("--api-key", "aA+b") as server:
        assert server.ask("GET", "/v1/models", headers={"Authorization": "Bearer a%41+b"})[0] == 401


@contextlib.contextmanager
def attackers(server, count, data, client="127.0.0.1"):
    """So many connections that have sent this, and send and read nothing more."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connect(server, client)).sendall(data)
        yield


def test_slow_clients():
    """However many are slow to ask, whoever asks is answered."""
    body = json.dumps(serve.request("Hi", None, max_tokens=4)).encode()
    kinds = {
        "heads": POST,
        "bodies": POST + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1],
        "chunks": POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        "nothing": b"",
        "idle": b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    }
    with serve.Server() as server:
        alone = max(small_chat(server) for _ in range(5))
        for name, data in kinds.items():
            for client in ("127.0.0.1", "127.0.0.2"):
                with attackers(server, 400, data, client):
                    times = [small_chat(server) for _ in range(20)]
                assert max(times) < SOON, (name, client, times)
                print(f"beside 400 connections of slow {name}: {max(times):.3f} s, alone {alone:.3f} s")


def test_connection_limit():
    """A client that has too many connections loses its own, and not those of others."""
    with serve.Server("--connections", "16") as server:
        with connect(server, "127.0.0.2") as other, attackers(server, 40, b"GET /"):
            time.sleep(0.2)
            other.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200 ")
            assert small_chat(server, "127.0.0.2") < SOON


def test_unread_streams():
    """Streams that nobody reads share what one client may have, and do not keep small chats of the same one waiting."""
    endless = {"temperature": 1, "logit_bias": {"4": -100}}  # without the end token
    body = json.dumps(serve.request("Tell me more", None, n=8, stream=True, max_tokens=900, **endless)).encode()
    data = POST + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def p99(times):
        return sorted(times)[int(0.99 * len(times))]

    for client in ("127.0.0.1", "127.0.0.2"):
        with serve.Server() as server:
            alone = [small_chat(server) for _ in range(40)][10:]
            with attackers(server, 60, data, client):
                serve.until(lambda: serve.metrics(server)["tooldecode_requests_running"] >= 16)
                before = serve.metrics(server)
                server.chat(serve.request("Hi", None, max_tokens=60, **endless))
                after = serve.metrics(server)
                tokens, passes = (after[f"tooldecode_{name}_total"] - before[f"tooldecode_{name}_total"]
                                  for name in ("read_tokens", "passes"))
                times = [small_chat(server) for _ in range(30)]
                assert max(times) < SOON, times
            print(f"beside 60 unread streams of 8 answers: p99 {p99(times):.3f} s, {p99(times) / p99(alone):.1f} times that alone, "
                  f"{tokens / passes:.1f} tokens in a pass")
            assert passes >= 60 and tokens / passes < 10, (tokens, passes)  # 25 if all are read


def test_host_names():
    """A server of this machine alone is not used under a name that a page may have made lead to it."""
    def status(server, host, path=b"/v1/models", more=b""):
        return send(server, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n" + more + b"\r\n")[0][0]

    with serve.Server("--cors", "http://tools.example:81") as server:
        for host in (b"evil.example", b"Evil.Example:80", b"127.evil.example", b"localhost.evil.example:8080"):
            assert status(server, host) == 403, host
        for host in (b"localhost:1", b"a.localhost", b"127.0.0.1", b"[::1]:1", b"proxy", b"tools.example", b"tools.example:9"):
            assert status(server, host) == 200, host
    with serve.Server("--api-key", "secret") as server:
        assert status(server, b"any.example", more=b"Authorization: Bearer secret\r\n") == 200


def test_streams_of_http_1_0():
    with serve.Server() as server, connect(server) as connection:
        body = json.dumps(serve.request("Hi", None, max_tokens=4, stream=True)).encode()
        head = POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        head, _, text = receive(connection).partition(b"\r\n\r\n")
        assert b"chunked" not in head.lower(), head
        assert text.startswith(b"data: {") and text.endswith(b"data: [DONE]\n\n"), text


def test_a_client_that_leaves_behind_more_bytes():
    with serve.Server() as server:
        body = json.dumps(serve.request(serve.WEATHER, tool_wait=60)).encode()
        with connect(server) as connection:
            connection.sendall(POST + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body + b"\r\n")
            serve.until(lambda: serve.metrics(server)["tooldecode_requests_running"] == 1)
            time.sleep(0.3)
            assert serve.metrics(server)["tooldecode_requests_running"] == 1
        serve.until(lambda: serve.metrics(server)["tooldecode_requests_running"] == 0)


def test_slow_readers():
    """A client that reads a little at a time keeps its worker for no longer than an answer may take."""
    head = b"POST /v1/responses HTTP/1.1\r\nContent-Type: application/json\r\n"
    body = json.dumps({"model": "tiny", "input": "Hi", "max_output_tokens": 1,
                       "metadata": {f"k{i}": 500 * "x" for i in range(1500)}}).encode()
    with serve.Server("--timeout", "1") as server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(30)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(head + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        begin, read = time.monotonic(), 0
        with contextlib.suppress(ConnectionResetError):
            while part := slow.recv(4096):
                read += len(part)
                assert time.monotonic() < begin + 30, "it is still answered"
                time.sleep(0.1)
        print(f"slow reader: {read} bytes in {time.monotonic() - begin:.1f} s")
        assert read < 700_000, read


def test_large_prompts():
    """Memory that large requests took is given back."""
    if not sys.platform.startswith("linux"):
        print("SKIPPED: what a process has is read from /proc")
        return

    def resident(server):
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) >> 10  # MB
    with serve.Server() as server:
        if "san.so" in pathlib.Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8"):
            print("SKIPPED: sanitizers keep memory")
            return
        small_chat(server)
        before = resident(server)

        def ask(i):
            server.refused(400, "context_length_exceeded", "messages", serve.request(f"{i} " + "word " * 200_000, None))
        for i in range(10):
            ask(i)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(40)))
        small_chat(server)
        after = resident(server)
        print(f"{before} MB before, {after} MB after 50 prompts of 1 MB")
        assert after - before < 60, (before, after)


def test_drain():
    """Answers that are under way at a signal end whole; what comes later is told to go elsewhere."""
    body = serve.request("Hi", None, response_format=LONG)
    with serve.Server("--drain-seconds", "100", "--timeout", "300") as server:
        expected = server.chat(body, seed=0)["choices"][0]["message"]
        with concurrent.futures.ThreadPoolExecutor(20) as pool, connect(server) as kept, connect(server) as begun:
            begun.sendall(POST)
            last = serve.waiting(server)  # under way until it is let go
            whole = [pool.submit(server.chat, body, seed=0) for _ in range(12)]
            streams = [pool.submit(lambda: serve.joined(server.events(body, seed=0))) for _ in range(4)]
            serve.until(lambda: serve.metrics(server)["tooldecode_requests_running"] == 17)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            for connection, rest in ((kept, POST), (begun, b"")):
                connection.sendall(rest + HOST + b"Content-Length: %d\r\n\r\n" % len(CHAT) + CHAT)
                (status, headers, answer), = answers(receive(connection))
                assert (status, headers["connection"]) == (503, "close"), answer
                assert json.loads(answer)["error"]["code"] == "stopping", answer
            try:
                connect(server).close()
                raise AssertionError("it still listens")
            except ConnectionRefusedError:
                pass
            for one in whole:
                assert one.result()["choices"][0]["message"] == expected
            for one in streams:
                assert serve.without_ids(one.result()[0]) == serve.without_ids(expected)
            assert server.process.poll() is None
            last.close()
        assert server.process.wait(timeout=20) == 0 and server.process.stdout.read() == "stopped\n"


def test_drain_limit():
    """What does not end in time is cancelled, and told; a second signal does not wait for it."""
    for seconds, signals in (("0.5", 1), ("100", 2)):
        with serve.Server("--drain-seconds", seconds) as server:
            stream = serve.waiting(server)
            begin = time.monotonic()
            for _ in range(signals):
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            *_, last = stream
            assert last["error"]["code"] == "stopping", last
            assert server.process.wait(timeout=20) == 0 and server.process.stdout.read() == "stopped\n"
            assert time.monotonic() - begin < SOON


def test_drain_of_building():
    """A constraint that takes long to build, and an answer that takes long to begin, do not keep a server from its end."""
    endless = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string", "pattern": r"^\p{L}{1,9800}$"}}}
    bodies = (serve.request("Hi", None, response_format=endless, max_tokens=20), serve.request("Hi", serve.alternatives(11)))
    for body in bodies:
        with serve.Server("--drain-seconds", "0.5") as server, connect(server) as connection:
            text = json.dumps(body).encode()
            connection.sendall(POST + HOST + b"Content-Length: %d\r\n\r\n" % len(text) + text)
            time.sleep(0.5)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=60) == 0 and server.process.stdout.read() == "stopped\n"
            assert time.monotonic() - begin < SOON, time.monotonic() - begin


def main():
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals())


if __name__ == "__main__":
    main()
