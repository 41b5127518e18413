"""`tooldecode serve` by OpenAI's Responses API: what it answers is what chat completions answer of the same dialogue.

    python tests/responses.py PROGRAM [--only NAME]
"""
import json

import serve
from serve import GOODBYE, JOKE, TABLE, TOOLS, WEATHER, Server, request, without_ids

PATH = "/v1/responses"
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
REPORT = {"type": "object", "properties": {"sky": {"enum": ["clear", "grey"]}, "degrees": {"type": "integer",
          "minimum": -30, "maximum": 40}}, "required": ["sky", "degrees"], "additionalProperties": False}


def asking(content, tools=None, **more):
    """A request of the Responses API; its tools are flat."""
    body = {"model": "tiny", "input": content, "temperature": 0, **more}
    return {**body, "tools": FLAT if tools is None else tools} if tools != [] else body


def respond(server, body):
    status, answer = server.ask("POST", PATH, body)
    assert status == 200, answer
    return answer


def events_of(server, body):
    """The events of a stream, each under its own name and in the order of its number."""
    with server.open("POST", PATH, {**body, "stream": True}) as response:
        assert response.status == 200, response.read()
        assert response.headers["Content-Type"] == "text/event-stream"
        text = response.read().decode()
    events = []
    assert text.endswith("\n\n"), text
    for block in text[:-2].split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}" and event["sequence_number"] == len(events), block
        events.append(event)
    return events


def accumulated(events):
    """The response that a stream builds up, checked event by event."""
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"], events[:2]
    assert all(event["response"]["status"] == "in_progress" and event["response"]["output"] == [] for event in events[:2])
    output, item, text = [], None, None
    texts = {"response.output_text": "text", "response.reasoning_text": "text",
             "response.function_call_arguments": "arguments", "response.custom_tool_call_input": "input",
             "response.mcp_call_arguments": "arguments"}
    for event in events[2:-1]:
        kind = event["type"]
        if kind.startswith("response.mcp_call."):
            continue
        assert event["output_index"] == len(output), event
        if kind == "response.output_item.added":
            assert item is None and event["item"]["status"] == "in_progress", event
            item, text = event["item"], ""
            continue
        if kind == "response.output_item.done":
            done = event["item"]
            assert done["id"] == item["id"] and done["status"] in ("completed", "incomplete", "failed"), event
            written = done["content"][0]["text"] if "content" in done else done.get("arguments", done.get("input"))
            assert written == text, (done, text)
            assert {**done, "status": "in_progress"}.items() >= {key: value for key, value in item.items() if key not in (
                "content", "arguments", "input", "output", "error")}.items(), (done, item)
            output.append(done)
            item = None
            continue
        assert event["item_id"] == item["id"], event
        if kind in ("response.content_part.added", "response.content_part.done"):
            assert event["part"]["text"] == ("" if kind.endswith("added") else text) and event["content_index"] == 0, event
        elif kind.endswith(".delta"):
            assert event["delta"] and kind.removesuffix(".delta") in texts, event
            text += event["delta"]
        else:
            assert event[texts[kind.removesuffix(".done")]] == text, event
    assert item is None, item
    last = events[-1]
    assert last["type"] == f"response.{last['response']['status']}" and last["response"]["output"] == output, last
    return last["response"]


def as_message(response):
    """The message of a chat completion that says the same."""
    message, calls = {"role": "assistant", "content": None}, []
    for item in response["output"]:
        assert item["id"] and item["status"] == "completed", item
        if item["type"] == "message":
            part, = item["content"]
            assert part["type"] == "output_text" and part["annotations"] == [] and not calls, item
            message["content"] = part["text"]
        elif item["type"] == "reasoning":
            assert message["content"] is None and item["summary"] == [], item
            message["reasoning_content"] = item["content"][0]["text"]
        elif item["type"] == "custom_tool_call":
            calls.append({"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}})
        else:
            assert item["type"] == "function_call", item
            calls.append({"id": item["call_id"], "type": "function",
                          "function": {"name": item["name"], "arguments": item["arguments"]}})
    ids = [item["id"] for item in response["output"]]
    assert len(set(ids)) == len(ids), ids
    return {**message, "tool_calls": calls} if calls else message


def plain(response):
    """A response without what differs from one to the next."""
    unique = response["id"].removeprefix("resp_")
    text = json.dumps({key: value for key, value in response.items() if key not in ("id", "created_at", "completed_at")})
    same = json.loads(text.replace(unique, "ID").replace(unique[:20], "ID"))  # ids of calls are shorter
    return {**same, "usage": serve.tokens_of(same["usage"])}


def test_answers():
    """Whole and streamed, in formats of each kind, the answers are those of chat completions."""
    reasons, kinds = set(), set()
    for form in ("python", "hermes", "qwen3-coder", "harmony"):
        with Server("--format", form) as server:
            for content, more in ((GOODBYE, {}), (GOODBYE, {"max": 3}), (WEATHER, {}), (TABLE, {"tool_choice": "required"}),
                                  (WEATHER, {"tool_choice": "none", "max": 30}),
                                  (WEATHER, {"temperature": 1, "seed": 3, "tool_choice": "required",
                                             "parallel_tool_calls": False}),
                                  (GOODBYE, {"temperature": 1.5, "seed": 5, "max": 30, "stop": ["a"]})):
                limit = more.pop("max", 200)
                chat = server.chat(request(content, **more, max_tokens=limit))
                choice, = chat["choices"]
                body = asking(content, **more, max_output_tokens=limit)
                whole = respond(server, body)
                streamed = accumulated(events_of(server, body))
                assert whole["id"].startswith("resp_") and whole["object"] == "response" and whole["error"] is None
                assert (whole["store"], whole["previous_response_id"], whole["model"]) == (False, None, "tiny"), whole
                usage = whole["usage"]
                assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == tuple(
                    chat["usage"][f"{kind}_tokens"] for kind in ("prompt", "completion", "total")), (usage, chat["usage"])
                reasons.add(choice["finish_reason"])
                kinds.update(item["type"] for item in whole["output"])
                if choice["finish_reason"] == "length":
                    assert whole["status"] == streamed["status"] == "incomplete", whole
                    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}, whole
                    assert whole["output"][-1]["status"] == "incomplete", whole
                    continue
                assert whole["status"] == "completed" and whole["incomplete_details"] is None, whole
                expected = choice["message"]
                if expected["content"] == "" and len(whole["output"]) == 1:
                    assert whole["output"][0]["type"] == "message", whole
                got = as_message(whole)
                assert without_ids(got) == without_ids(expected), (form, got, expected)
                assert plain(streamed) == plain(whole), (form, streamed, whole)
    assert reasons == {"stop", "length", "tool_calls"} and {"message", "function_call"} <= kinds, (reasons, kinds)


def test_pieces(server):
    """A stream has text and arguments in pieces, while they are written."""
    text = [event for event in events_of(server, asking(GOODBYE, [])) if event["type"] == "response.output_text.delta"]
    arguments = [event for event in events_of(server, asking(WEATHER))
                 if event["type"] == "response.function_call_arguments.delta"]
    assert len(text) > 2 and len(arguments) > 2, (text, arguments)
    cut = accumulated(events_of(server, asking(WEATHER, max_output_tokens=8)))
    assert cut["status"] == "incomplete", cut
    assert cut["output"][-1]["type"] == "function_call" and cut["output"][-1]["status"] == "incomplete", cut


def test_echo(server):
    """A response repeats its request."""
    more = {"instructions": "Be brief.", "max_output_tokens": 200, "metadata": {"a": "b"}, "parallel_tool_calls": False,
            "tool_choice": {"type": "function", "name": "get_weather"}, "top_p": 0.5,
            "reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low", "format": {"type": "text"}}}
    for body in (asking(WEATHER, **more), asking(WEATHER, **more, stream=False)):
        answer = respond(server, body)
        for key, value in (*more.items(), ("tools", FLAT), ("temperature", 0)):
            assert answer[key] == value, (key, answer)
        assert accumulated(events_of(server, body)).items() >= more.items()
    answer = respond(server, {"model": "tiny", "input": GOODBYE, "max_output_tokens": 3})
    assert answer["tools"] == [] and answer["tool_choice"] == "auto" and answer["temperature"] == 1, answer
    with server.open("POST", PATH, asking(GOODBYE, [], **{key: more[key] for key in ("metadata", "reasoning", "text")},
                                          store=True, include=["reasoning.encrypted_content"])) as response:
        assert response.status == 200 and set(response.headers["X-Tooldecode-Ignored"].split(", ")) == {
            "metadata", "store", "include", "text.verbosity", "reasoning.summary", "reasoning.effort"}, response.headers


def test_choices(server):
    """Tools in both forms, custom ones, one that must be called, and those that may be."""
    def names(body):
        return [item["name"] for item in respond(server, body)["output"] if item["type"].endswith("call")]
    assert names(asking(GOODBYE, tool_choice={"type": "function", "name": "book_table"}, max_output_tokens=200)) == [
        "book_table"]
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "book_table"}]}
    assert set(names(asking(WEATHER, tool_choice=allowed, max_output_tokens=300))) == {"book_table"}
    assert names(asking(WEATHER, tool_choice="none", max_output_tokens=20)) == []
    assert names(asking(WEATHER, TOOLS)) == names(asking(WEATHER)) == ["get_weather"]  # as chat completions have them
    assert len(names(asking(TABLE, tool_choice="required", parallel_tool_calls=False, temperature=1, seed=2))) == 1
    date = {"type": "custom", "name": "set_date", "description": "Sets it.",
            "format": {"type": "grammar", "syntax": "regex", "definition": r"\d{4}-[01]\d"}}
    body = asking(WEATHER, [*FLAT, date], tool_choice={"type": "custom", "name": "set_date"}, temperature=1, seed=1,
                  max_output_tokens=60)
    call, = respond(server, body)["output"]
    assert call["type"] == "custom_tool_call" and call["name"] == "set_date", call
    assert len(call["input"]) == 7 and call["input"][4] == "-", call
    streamed, = accumulated(events_of(server, body))["output"]
    assert streamed["input"] == call["input"], streamed
    told = [{"role": "user", "content": WEATHER}, call,
            {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"}]
    assert respond(server, {**body, "input": told, "tool_choice": "none", "max_output_tokens": 5})["output"]


def test_input(server):
    """Every way to say the same is one prompt, that of chat completions."""
    def told(content, **more):
        answer = respond(server, asking(content, **more, max_output_tokens=40))
        return answer["usage"]["input_tokens"], as_message({"output": [
            {**item, "status": "completed"} for item in answer["output"]]})

    def asked(messages):
        answer = server.chat(request(messages, max_tokens=40))
        return answer["usage"]["prompt_tokens"], answer["choices"][0]["message"]

    def same(one, other):
        assert one[0] == other[0] and without_ids(one[1]) == without_ids(other[1]), (one, other)

    user = {"role": "user", "content": WEATHER}
    same(told(WEATHER), asked(WEATHER))
    for form in ([user], [{"type": "message", **user}],
                 [{"role": "user", "content": [{"type": "input_text", "text": WEATHER}]}]):
        same(told(form), asked([user]))
    system = {"role": "system", "content": "Be brief."}
    same(told(WEATHER, instructions="Be brief."), asked([system, user]))
    same(told([{**system, "role": "developer"}, user]), asked([system, user]))
    arguments = [json.dumps({"city": city}) for city in ("Oslo", "Rome")]
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": "get_weather", "arguments": one}}
             for i, one in enumerate(arguments)]
    items = [{"type": "function_call", "id": f"fc_{i}", "call_id": f"c{i}", "name": "get_weather", "arguments": one,
              "status": "completed"} for i, one in enumerate(arguments)]
    results = [{"role": "tool", "tool_call_id": f"c{i}", "content": GOODBYE} for i in range(2)]
    outputs = [{"type": "function_call_output", "call_id": "c0", "output": GOODBYE},
               {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": GOODBYE}]}]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "Wait. ", "annotations": [], "logprobs": []}]}
    same(told([user, *items, *outputs]), asked([user, {"role": "assistant", "tool_calls": calls}, *results]))
    same(told([user, reasoning, said, *items, *outputs[::-1]]),
         asked([user, {"role": "assistant", "content": "Wait. ", "tool_calls": calls}, *results]))
    same(told([user, items[0], outputs[0], items[1], outputs[1]]),
         asked([user, {"role": "assistant", "tool_calls": calls[:1]}, results[0],
                {"role": "assistant", "tool_calls": calls[1:]}, results[1]]))
    unseen = {"provider_specific_fields": {"a": 1}, "cache_control": {"type": "ephemeral"}}
    marked = [{**item, **unseen} for item in (user, reasoning, said, *items, *outputs)]
    marked[2]["content"] = [{**said["content"][0], **unseen}]
    same(told(marked), told([user, reasoning, said, *items, *outputs]))
    with server.open("POST", PATH, asking(marked, [{**tool, **unseen} for tool in FLAT], max_output_tokens=1)) as response:
        names = response.headers["X-Tooldecode-Ignored"].split(", ")
        assert response.status == 200 and sorted(names) == sorted(
            f"{place}.{key}" for place in ("input[]", "input[].content[]", "tools[]") for key in unseen), names
    same(told([user, said, user]), asked([user, {"role": "assistant", "content": "Wait. "}, user]))
    # A response's own output goes back as it came.
    first = respond(server, asking(WEATHER))
    call, = first["output"]
    answer = told([user, *first["output"], {**outputs[0], "call_id": call["call_id"]}])
    same(answer, asked([user, as_message(first), {**results[0], "tool_call_id": call["call_id"]}]))


def test_formats(server):
    """Values of a schema, and of any object."""
    form = {"type": "json_schema", "name": "report", "schema": REPORT, "strict": True}
    chat = {"type": "json_schema", "json_schema": {"name": "report", "schema": REPORT}}
    for seed in range(3):
        body = asking(GOODBYE, [], text={"format": form}, temperature=1, seed=seed)
        whole = respond(server, body)
        value = json.loads(as_message(whole)["content"])
        assert value["sky"] in ("clear", "grey") and -30 <= value["degrees"] <= 40 and len(value) == 2, value
        assert plain(accumulated(events_of(server, body))) == plain(whole)
        same = server.chat(request(GOODBYE, None, response_format=chat, temperature=1, seed=seed))
        assert same["choices"][0]["message"]["content"] == as_message(whole)["content"], (same, whole)
    for body, param in ((asking(GOODBYE, [], text={"format": {**form, "schema": {"properties": {"a": {"type": "int"}}}}}),
                         "text.format.schema"),
                        (asking(GOODBYE, [], text={"format": {**form, "grammar": "x"}}), "text.format.grammar"),
                        (asking(GOODBYE, [], text={"format": {"type": "xml"}}), "text.format.type"),
                        (asking(GOODBYE, [], text={"form": {}}), "text.form"),
                        (asking(GOODBYE, text={"format": {**form, "schema": {"type": "array"}}}), "text")):
        status, answer = server.ask("POST", PATH, body)
        assert status == 400 and answer["error"]["param"] == param, (answer, param)


def test_refusals(server):
    """What is wrong or not supported is refused by its name in this API."""
    user = {"role": "user", "content": "Hello"}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    broken = {**FLAT[0], "parameters": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}}
    for code, param, change in (
            ("missing_required_parameter", "model", {"model": None}),
            ("missing_required_parameter", "input", {"input": None}),
            ("invalid_type", "input", {"input": 3}), ("invalid_value", "input", {"input": []}),
            ("invalid_type", "input[0]", {"input": ["Hello"]}),
            ("invalid_value", "input[0].role", {"input": [{"role": "tool", "content": "x"}]}),
            ("invalid_value", "input[0].content[0].type",
             {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}),
            ("unsupported_parameter", "input[0].king", {"input": [{**user, "king": "Ann"}]}),
            ("unsupported_value", "input[0].type", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
            ("unsupported_value", "input[1].type", {"input": [user, {"type": "web_search_call", "id": "ws"}]}),
            ("invalid_value", "input", {"input": [user, call]}),
            ("invalid_value", "input[2].role", {"input": [user, call, user]}),
            ("invalid_value", "input[2].call_id", {"input": [user, call, {**output, "call_id": "d"}]}),
            ("invalid_value", "input[2].call_id", {"input": [user, call, call, output]}),
            ("invalid_value", "input[1].arguments", {"input": [user, {**call, "arguments": "{"}, output]}),
            ("invalid_type", "instructions", {"instructions": [user]}),
            ("unsupported_parameter", "previous_response_id", {"previous_response_id": "resp_1"}),
            ("unsupported_parameter", "conversation", {"conversation": "c"}),
            ("unsupported_parameter", "prompt", {"prompt": {"id": "p"}}),
            ("unsupported_parameter", "messages", {"messages": [user]}),
            ("unsupported_parameter", "max_tokens", {"max_tokens": 3}),
            ("unsupported_parameter", "top_logprobs", {"top_logprobs": 3}),
            ("unsupported_value", "background", {"background": True}),
            ("unsupported_value", "truncation", {"truncation": "auto"}),
            ("unsupported_value", "include[0]", {"include": ["message.output_text.logprobs"]}),
            ("invalid_value", "include[0]", {"include": ["king"]}),
            ("unknown_parameter", "max_output_token", {"max_output_token": 3}),
            ("invalid_value", "max_output_tokens", {"max_output_tokens": 0}),
            ("invalid_value", "reasoning.effort", {"reasoning": {"effort": "most"}}),
            ("invalid_value", "tools[0].type", {"tools": [{"type": "web_search"}]}),
            ("invalid_tool", "tools[0].parameters.properties.a.uniqueItems", {"tools": [broken]}),
            ("unsupported_parameter", "tools[0].king", {"tools": [{**FLAT[0], "king": 1}]}),
            ("invalid_value", "tool_choice.name", {"tool_choice": {"type": "function", "name": "g"}}),
            ("unsupported_value", "stream_options.include_obfuscation",
             {"stream": True, "stream_options": {"include_obfuscation": True}}),
            ("context_length_exceeded", "input", {"input": "1" * 1024})):
        server.refused(400, code, param, {**asking([user]), **change}, path=PATH)
    error = server.refused(400, "unsupported_parameter", "previous_response_id",
                           asking(GOODBYE, previous_response_id="resp_1"), path=PATH)
    assert "input" in error["message"], error
    server.refused(404, "model_not_found", "model", {**asking(GOODBYE), "model": "gpt-9"}, path=PATH)
    server.refused(405, "method_not_allowed", None, None, path=PATH, method="GET")
    server.refused(400, "invalid_value", "response_id", request(GOODBYE, response_id="resp_mine"))
    server.refused(404, "unknown_response", "response_id", {"name": "f", "output": 1}, path="/cache-tool-output/resp_x")
    relaxed = respond(server, asking(WEATHER, [FLAT[0], {**broken, "name": "check"}], tool_enforcement="relax"))
    assert [entry["name"] for entry in relaxed["relaxed_tools"]] == ["check"], relaxed


def test_reasoning():
    """Reasoning is an item before the message, whole and streamed, and its tokens are counted."""
    with Server() as server:
        text = as_message(respond(server, asking(JOKE, [])))["content"]
    begin, end = text.split(" ")[0], text.split(" ")[2]
    with serve.reasoning_server(begin, end, "--reasoning", "block") as server:
        whole = respond(server, asking(JOKE, []))
        assert [item["type"] for item in whole["output"]] == ["reasoning", "message"], whole
        thought, _, rest = text.removeprefix(begin).partition(end)
        assert as_message(whole) == {"role": "assistant", "content": rest.lstrip(), "reasoning_content": thought.strip()}
        assert whole["usage"]["output_tokens"] > whole["usage"]["output_tokens_details"]["reasoning_tokens"] > 2, whole
        streamed = accumulated(events_of(server, asking(JOKE, [])))
        assert as_message(streamed) == as_message(whole), streamed
        assert serve.tokens_of(streamed["usage"]) == serve.tokens_of(whole["usage"]), streamed
        again = asking([{"role": "user", "content": JOKE}, *whole["output"], {"role": "user", "content": JOKE}], [])
        assert respond(server, again)["output"], again


def test_failures():
    """A stream that fails ends with an event that says why, and what is abandoned is cancelled."""
    with Server("--timeout", "0.05") as server:
        events = events_of(server, asking(WEATHER, [], temperature=2, seed=1, max_output_tokens=900, logit_bias={
            str(token): -100 for token in range(8)}))
        last = events[-1]
        assert last["type"] == "response.failed" and last["response"]["status"] == "failed", last
        assert last["response"]["error"]["code"] == "timeout", last


def main():
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals(), "--timeout", "600")


if __name__ == "__main__":
    main()
