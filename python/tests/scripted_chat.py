"""An ASGI application that answers chat completions as vLLM does, from a script, and a client of it."""
import asyncio
import json

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "required": ["city"],
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}}}}},
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def call(name, **arguments):
    return {"id": f"chatcmpl-tool-{name}{len(arguments)}", "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)}}


def says(content=None, *calls, finish=None, reasoning=None, status=200, hold=None):
    """One answer of the script. hold: an event to wait for in the middle of a stream."""
    return {"message": {"role": "assistant", "content": content, "reasoning": reasoning, "tool_calls": list(calls)},
            "finish": finish or ("tool_calls" if calls else "stop"), "status": status, "hold": hold}


class ScriptedApp:
    """Answers with the next entry of the script; the last one is repeated. keys: of those that may ask; None: anyone."""

    def __init__(self, *script, keys=None):
        self.script, self.keys = list(script), keys
        self.requests, self.headers, self.paths, self.cancelled = [], [], [], 0
        self.asked = asyncio.Event()

    async def __call__(self, scope, receive, give):
        async def send(message):
            """Adds what the application's own middleware adds."""
            if message["type"] == "http.response.start":
                own = [(key, value) for key, value in scope["headers"] if key == b"x-request-id"]
                message["headers"] += [(b"access-control-allow-origin", b"*"), *own]
            await give(message)

        self.paths.append(scope["path"])
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        if self.keys is not None and headers.get("authorization") not in [f"Bearer {key}" for key in self.keys]:
            return await self._json(send, 401, {"error": "Unauthorized"})
        if scope["path"].endswith("/v1/models"):
            assert scope["method"] == "GET"
            return await self._json(send, 200, {"object": "list", "data": []})
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message.get("more_body"):
                break
        if "content-length" in headers:
            assert int(headers["content-length"]) == len(body)
        request = json.loads(body)
        self.requests.append(request)
        self.headers.append(headers)
        turn = self.script[min(len(self.requests), len(self.script)) - 1]
        self.asked.set()
        answer = asyncio.ensure_future(self._answer(turn, request, send))
        gone = asyncio.ensure_future(self._gone(receive))
        await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            self.cancelled += 1
        for task in (answer, gone):
            task.cancel()
        if answer.done():
            answer.result()

    @staticmethod
    async def _gone(receive):
        while (await receive())["type"] != "http.disconnect":
            pass

    @staticmethod
    async def _json(send, status, value):
        body = json.dumps(value).encode()
        await send({"type": "http.response.start", "status": status, "headers": [
            (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, turn, request, send):
        if turn["status"] != 200:
            return await self._json(send, turn["status"], {"error": {"message": "no", "code": turn["status"]}})
        number = len(self.requests)
        head = {"id": f"chatcmpl-own{number}", "created": number, "model": "m", "system_fingerprint": "f"}
        usage = {"prompt_tokens": 100 * number, "completion_tokens": number, "total_tokens": 101 * number,
                 "prompt_tokens_details": {"cached_tokens": 10 * (number - 1)}, "completion_tokens_details": None}
        message = turn["message"]
        if not request.get("stream"):
            if turn["hold"] is not None:
                await turn["hold"].wait()
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": turn["finish"]}
            return await self._json(send, 200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        kind = (b"content-type", b"text/event-stream; charset=utf-8")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        head["object"] = "chat.completion.chunk"

        options = request.get("stream_options") or {}

        async def chunk(delta, finish=None, **more):
            if options.get("include_usage") and options.get("continuous_usage_stats"):
                more["usage"] = usage
            value = {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], **more}
            data = f"data: {json.dumps(value)}\n\n".encode()
            for part in (data[:9], data[9:]):  # events come in any pieces
                await send({"type": "http.response.body", "body": part, "more_body": True})

        await chunk({"role": "assistant", "content": ""})
        if message["reasoning"]:
            await chunk({"reasoning": message["reasoning"]})
        for character in message["content"] or "":
            await chunk({"content": character})
        if turn["hold"] is not None:
            await turn["hold"].wait()
        for index, one in enumerate(message["tool_calls"]):
            name, text = one["function"]["name"], one["function"]["arguments"]
            begin = {"index": index, "id": one["id"], "type": "function", "function": {"name": name, "arguments": ""}}
            await chunk({"tool_calls": [begin]})
            for part in (text[:5], text[5:]):
                await chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        await chunk({}, turn["finish"])
        if (request.get("stream_options") or {}).get("include_usage"):
            await send({"type": "http.response.body", "more_body": True,
                        "body": f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n".encode()})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})


class Client:
    """Asks an application. gone: an event after which the client is gone. headers: of the last answer."""

    def __init__(self, app, key=None, state=None, root=""):
        self.app, self.key, self.state, self.root, self.headers = app, key, state, root, {}

    async def ask(self, method, path, body=b"", gone=None, headers=(("content-type", "application/json"),), taken=None):
        """The status and the body; taken: a list that gets the pieces as they come."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = [(key.encode(), value.encode()) for key, value in headers] + [(b"content-length", str(len(body)).encode())]
        if self.key is not None:
            headers.append((b"authorization", f"Bearer {self.key}".encode()))
        begun, start, pieces = False, [], [] if taken is None else taken
        self.headers = {}

        async def receive():
            nonlocal begun
            if not begun:
                begun = True
                return {"type": "http.request", "body": body, "more_body": False}
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.start":
                start.append(message)
                self.headers = {key.decode().lower(): value.decode() for key, value in message["headers"]}
                assert len(self.headers) == len(message["headers"]), "a header that is there twice"
            else:
                assert len(start) == 1, "a body without a beginning"
                pieces.append(message.get("body", b""))

        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
                 "headers": headers, "root_path": self.root, "app": self.state}
        await self.app(scope, receive, send)
        if not start:
            return None, b""
        length = dict(start[0]["headers"]).get(b"content-length")
        assert length is None or int(length) == len(b"".join(pieces))
        return start[0]["status"], b"".join(pieces)

    async def announce(self, response_id, entries, **more):
        status, body = await self.ask("POST", f"/cache-tool-output/{response_id}", entries, **more)
        return status, json.loads(body)

    async def post(self, gone=None, taken=None, **fields):
        return await self.ask("POST", "/v1/chat/completions", request(**fields), gone=gone, taken=taken)

    async def chat(self, **fields):
        status, body = await self.post(**fields)
        return status, json.loads(body)

    async def stream(self, **fields):
        """The chunks of a stream."""
        status, body = await self.post(stream=True, **fields)
        assert status == 200 and body.endswith(b"data: [DONE]\n\n"), body
        return chunks_of(body)


def request(**fields):
    return {"model": "m", "messages": [{"role": "user", "content": "How is it?"}], "tools": TOOLS, **fields}


def chunks_of(body):
    return [json.loads(event[6:]) for event in body.split(b"\n\n") if event.startswith(b"data: {")]


def joined(chunks):
    """What a stream says in all, as a whole message; the order of the kinds of its deltas; finish; usage."""
    message, order, finish, usage = {}, [], None, None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            assert finish is None, "a chunk behind the last"
            for name, value in choice["delta"].items():
                if value is None:
                    continue
                if name == "role":
                    assert name not in message
                    message[name] = value
                elif name == "tool_calls":
                    calls = message.setdefault(name, [])
                    assert [one.pop("index") for one in value] == [len(calls)]
                    calls += value
                else:
                    message[name] = message.get(name, type(value)()) + value
                if value and (not order or order[-1] != name):
                    order.append(name)
            finish = choice["finish_reason"]
    return message, order, finish, usage
