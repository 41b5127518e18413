"""What `tooldecode serve` reads of requests, and what it says in return: parameters, probabilities, tools that cannot be
enforced, arguments, histories.

    python tests/openai_requests.py PROGRAM [--only NAME]
"""
import json
import math
import re

import serve
from serve import GOODBYE, JSON_TYPE, TABLE, TOOLS, WEATHER, Server, joined, request, tokens_of, without_ids

IGNORED = {"store": True, "metadata": {"a": "b"}, "user": "Ann", "service_tier": "auto", "safety_identifier": "x",
           "prompt_cache_key": "k", "prompt_cache_retention": "24h", "verbosity": "low", "priority": 1,
           "prediction": {"type": "content", "content": "No."}}


def asked(server, body):
    """The answer with its headers."""
    with server.open("POST", "/v1/chat/completions", body, JSON_TYPE) as response:
        text = response.read().decode()
        return response.status, response.headers, text


def listed(headers, name):
    return [one for one in (headers[f"X-Tooldecode-{name}"] or "").split(", ") if one]


UNSEEN = {"cache_control": {"type": "ephemeral"}, "extra_content": {"google": {"thought_signature": "x"}}, "id": "m",
          "provider_specific_fields": {"a": 1}, "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}],
          "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}], "thought_signature": "x"}


def messages_of(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_ignored(server):
    """What changes nothing here changes nothing, and the head of the answer names it."""
    body = request(WEATHER)
    plain = server.chat(body)["choices"][0]["message"]
    for stream in (False, True):
        status, headers, text = asked(server, {**body, **IGNORED, "stream": stream})
        assert status == 200 and sorted(listed(headers, "Ignored")) == sorted(IGNORED), (status, headers.items(), text)
        message = joined(messages_of(text))[0] if stream else json.loads(text)["choices"][0]["message"]
        assert without_ids(message) == without_ids(plain), message
    for more in ({}, dict.fromkeys(IGNORED), {"store": False}, {"parallel_tool_calls": False}, {"modalities": ["text"]}):
        status, headers, text = asked(server, {**body, **more})
        assert status == 200 and headers["X-Tooldecode-Ignored"] is None, (more, headers.items(), text)
    for tools in (None, []):
        body = {**request(GOODBYE, None, parallel_tool_calls=True, max_tokens=4), "tools": tools}
        status, headers, _ = asked(server, body)
        assert status == 200 and listed(headers, "Ignored") == ["parallel_tool_calls"], headers.items()
    status, headers, _ = asked(server, request(GOODBYE, None, reasoning_effort="low", user="Ann", max_tokens=4))
    assert status == 200 and listed(headers, "Ignored") == ["user", "reasoning_effort"], headers.items()
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh"):
        assert asked(server, request(GOODBYE, None, reasoning_effort=effort, max_tokens=1))[0] == 200, effort
    server.refused(400, "invalid_value", "reasoning_effort", request(GOODBYE, None, reasoning_effort="most"))
    server.refused(400, "invalid_type", "reasoning_effort", request(GOODBYE, None, reasoning_effort=3))


def test_template_variables(server):
    """Variables of a chat template are listed where no template takes them, and those of the server are refused."""
    given = {"enable_thinking": False, "budget": 3, "mark": "a, b", "none": None}
    status, headers, text = asked(server, request(GOODBYE, None, chat_template_kwargs=given, max_tokens=4))
    assert status == 200, text
    assert sorted(listed(headers, "Ignored")) == [f"chat_template_kwargs.{name}" for name in
                                                  ("budget", "enable_thinking", "mark")], headers.items()
    place = "chat_template_kwargs"
    for code, name, value in (*(("unsupported_parameter", name, "x") for name in (
            "messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "true", "True", "false", "False", "none",
            "None", "raise_exception", "namespace", "dict", "range", "strftime_now", "tojson")),
                              ("invalid_type", "budget", [3]), ("invalid_type", "budget", {}),
                              ("invalid_value", "a b", 1), ("invalid_value", "a\r\nX: b", 1), ("invalid_value", "a" * 65, 1)):
        server.refused(400, code, f"{place}.{name}", request(GOODBYE, None, **{place: {name: value}}))
    server.refused(400, "invalid_type", place, request(GOODBYE, None, **{place: 1}))
    server.refused(400, "invalid_value", place, request(GOODBYE, None, **{place: {f"a{i}": 1 for i in range(65)}}))
    server.refused(400, "invalid_value", f"{place}.reasoning_effort",
                   request(GOODBYE, None, reasoning_effort="low", **{place: {"reasoning_effort": "low"}}))
    for path, more in (("/v1/responses", {"input": GOODBYE}), ("/v1/completions", {"prompt": GOODBYE})):
        error = server.refused(400, "unsupported_parameter", place, {"model": "tiny", **more, place: {}}, path=path)
        assert "/v1/chat/completions" in error["message"], error


def test_readings(server):
    """Where a document was not read as JSON Schema has it, the head of the answer says so, but for closed objects."""
    body = request(WEATHER)
    assert asked(server, body)[1]["X-Tooldecode-Readings"] is None
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
        "a\r\nX: \u00e9": {"type": "float"}}}}}
    for stream in (False, True):
        _, headers, _ = asked(server, {**body, "tools": [*body["tools"], tool], "stream": stream})
        place = f"#/{len(body['tools'])}/function/parameters/properties/a\r\nX: \u00e9/type"
        assert headers["X"] is None and json.loads(headers["X-Tooldecode-Readings"]) == [place], headers.items()


def test_names(server):
    """What is not supported is refused by its name, and so is what is not known, with the name that is meant."""
    for name, instead in (("functions", "tools"), ("function_call", "tool_choice"), ("audio", ""),
                          ("web_search_options", ""), ("best_of", "n,"), ("min_tokens", ""), ("echo", ""),
                          ("guided_whitespace_pattern", "--whitespace"), ("enable_thinking", "chat_template_kwargs"),
                          ("continue_final_message", ""), ("use_beam_search", ""), ("prompt_logprobs", "")):
        error = server.refused(400, "unsupported_parameter", name, request(WEATHER, **{name: 2}))
        assert name in error["message"] and instead in error["message"], error
    for name, meant in (("max_token", "max_tokens"), ("temprature", "temperature"), ("toolChoice", "tool_choice"),
                        ("stop_sequences", None), ("top-p", "top_p"), ("metdata", "metadata"), ("x" * 5000, None),
                        ("", None), ("reponse_format", "response_format"), ("king", None)):
        error = server.refused(400, "unknown_parameter", name or None, request(WEATHER, **{name: 1}))
        assert ("nearest" in error["message"]) == (meant is not None), error
        assert meant is None or error["message"].endswith(f" {meant}"), error
    # The value that says what the server does anyway is no reason to refuse.
    for name, usual in (("skip_special_tokens", True), ("add_generation_prompt", True), ("include_reasoning", True),
                        ("spaces_between_special_tokens", True), ("add_special_tokens", False), ("echo", False),
                        ("continue_final_message", False), ("use_beam_search", False), ("min_tokens", 0), ("best_of", 1),
                        ("length_penalty", 1.0), ("bad_words", []), ("return_token_ids", False)):
        assert asked(server, request(GOODBYE, None, max_tokens=1, **{name: usual}))[0] == 200, name
        server.refused(400, "unsupported_parameter", name, request(GOODBYE, None, **{name: "other"}))
    assert asked(server, request(GOODBYE, None, max_tokens=1, best_of=1, n=1))[0] == 200
    server.refused(400, "unsupported_parameter", "best_of", request(GOODBYE, None, best_of=1, n=2))
    status, answer = server.ask("POST", "/v1/responses", {"model": "tiny", "input": GOODBYE, "max_output_tokens": 1,
                                                          "top_logprobs": 0})
    assert status == 200, answer
    for extra in ({"continuous_usage_stats": False}, {"continuous_usage_stats": None}):
        list(server.events(request(GOODBYE, None, max_tokens=1, stream_options={"include_usage": True, **extra})))
    server.refused(400, "unsupported_value", "stream_options.continuous_usage_stats",
                   request(GOODBYE, None, stream=True, stream_options={"continuous_usage_stats": True}))
    for kind in ("any", "auto", "tool"):  # forms of Anthropic
        error = server.refused(400, "invalid_value", "tool_choice.type", request(WEATHER, tool_choice={"type": kind}))
        assert "allowed_tools" in error["message"] and "required" in error["message"], error
    error = server.refused(400, "unsupported_parameter", "messages[0].contents",
                           request([{"role": "user", "content": "Hi", "contents": "Hi"}]))
    assert error["message"].endswith(" content"), error
    assert asked(server, request(GOODBYE, None, max_tokens=1, functions=None, king=None))[0] == 200


def top_of(choice):
    return [(bytes(token["bytes"]), token["logprob"],
             [(bytes(one["bytes"]), one["logprob"]) for one in token["top_logprobs"]])
            for token in choice["logprobs"]["content"]]


def test_top_log_probabilities(server):
    """They are those of the distribution that tokens are drawn from."""
    # The first token's distribution is the same whatever the seed, so what is drawn judges what is listed.
    free = request(GOODBYE, None, temperature=2, max_tokens=1, logprobs=True, top_logprobs=20)
    drawn = {}
    for seed in range(0, 320, 16):
        for choice in server.chat(free, seed=seed, n=16)["choices"]:
            for token, logprob, top in top_of(choice):
                drawn.setdefault(token, logprob)
                assert math.isclose(drawn[token], logprob, abs_tol=1e-6)
    assert len(top) == 20 and len(drawn) > 5, (top, drawn)
    for token, logprob in drawn.items():
        if logprob > top[-1][1] + 1e-6:
            assert any(one == token and math.isclose(logprob, its, abs_tol=1e-6) for one, its in top), (token, logprob, top)
    assert sum(math.exp(logprob) for _, logprob in top) <= 1 + 1e-6
    assert sum(math.exp(drawn[token]) for token in drawn) <= 1 + 1e-6

    for body in (request(GOODBYE, None, max_tokens=20), request(WEATHER), request(TABLE, temperature=1, seed=3)):
        body = {**body, "logprobs": True}
        narrow, wide = (server.chat(body, top_logprobs=count)["choices"][0] for count in (3, 20))
        assert without_ids(narrow["message"]) == without_ids(wide["message"])
        forced = 0
        for (token, logprob, few), (_, _, many) in zip(top_of(narrow), top_of(wide)):
            assert 1 <= len(few) <= 3 and few == many[:3], (few, many)
            assert all(a[1] >= b[1] for a, b in zip(many, many[1:])), many
            assert sum(math.exp(its) for _, its in many) <= 1 + 1e-6, many
            if body["temperature"] == 0:
                assert few[0] == (token, logprob), (token, logprob, few)
            forced += few == [(token, 0)]
        assert forced > 0 or "tools" not in body, "calls have tokens that are the only ones"
        streamed = []
        for chunk in server.events(body, top_logprobs=3):
            for part in chunk["choices"]:
                streamed += (part["logprobs"] or {"content": []})["content"]
        assert streamed == narrow["logprobs"]["content"], streamed
        none = server.chat(body, top_logprobs=0)["choices"][0]
        assert all(top == [] for *_, top in top_of(none)), none
        with Server("--speculation", "all") as drafting:
            drafted = drafting.chat(body, top_logprobs=3)["choices"][0]
            assert [token for token, *_ in top_of(drafted)] == [token for token, *_ in top_of(narrow)]
            for (*_, a), (*_, b) in zip(top_of(drafted), top_of(narrow)):
                assert len(a) == len(b) and all(math.isclose(x[1], y[1], abs_tol=1e-3) for x, y in zip(a, b)), (a, b)
    for code, change in (("invalid_value", {"top_logprobs": 21, "logprobs": True}),
                         ("invalid_value", {"top_logprobs": -1, "logprobs": True}),
                         ("invalid_value", {"top_logprobs": 2}), ("invalid_value", {"top_logprobs": 2, "logprobs": False}),
                         ("invalid_type", {"top_logprobs": 1.5, "logprobs": True})):
        server.refused(400, code, "top_logprobs", request(WEATHER, **change))


def function_tool(name, parameters, **more):
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def lark_tool(name):
    return {"type": "custom", "custom": {"name": name, "format": {
        "type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}}}


def forms_of(function):
    """A tool's document as the APIs have it."""
    name, description, schema = function["name"], function.get("description", ""), function["parameters"]
    gemini = json.loads(re.sub(r'("type": )"(\w+)"', lambda kind: kind[1] + json.dumps(kind[2].upper()), json.dumps(schema)))
    plain = {"name": name, "description": description}
    return {"openai": {"type": "function", "function": function}, "responses": {"type": "function", **function},
            "bare": function, "mcp": {**plain, "inputSchema": schema}, "anthropic": {**plain, "input_schema": schema},
            "anthropic-typed": {"type": "custom", **plain, "input_schema": schema},
            "bedrock": {"toolSpec": {**plain, "inputSchema": {"json": schema}}},
            "gemini": {"functionDeclarations": [{**plain, "parameters": gemini}]},
            "gemini-json": {"functionDeclarations": [{**plain, "parametersJsonSchema": schema}]}}


def test_documents(server):
    """Tools as other APIs document them are the same tools: enforced, named, and refused where they are wrong."""
    narrow = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Rome", "Lima"]},
                                               "days": {"type": "integer", "minimum": 40, "maximum": 49}},
              "required": ["city", "days"]}
    function = {"name": "get_weather", "description": "Weather forecast for a city.", "parameters": narrow}
    table = TOOLS[1]["function"]
    def once(tools, **more):
        body = request(WEATHER, tools, parallel_tool_calls=False, temperature=1, seed=1, max_tokens=100, **more)
        answer = server.chat({"tool_choice": "required", **body})
        streamed = joined(server.events({"tool_choice": "required", **body}))[0]
        message = answer["choices"][0]["message"]
        assert without_ids(streamed) == without_ids(message), (streamed, message)
        call, = message["tool_calls"]
        assert call["type"] == "function", call
        return call["function"]["name"], json.loads(call["function"]["arguments"]), answer["usage"]["prompt_tokens"]
    for name, form in forms_of(function).items():
        called, arguments, _ = once([form])
        assert called == "get_weather" and arguments["city"] in ("Rome", "Lima") and 40 <= arguments["days"] <= 49, (
            name, arguments)
        both = [form, forms_of(table)[name]]
        named, arguments, tokens = once(both, tool_choice={"type": "function", "function": {"name": "book_table"}})
        assert named == "book_table" and "restaurant" in arguments, (name, named)
        assert tokens == once([forms_of(function)["openai"], forms_of(table)["openai"]])[2] or "gemini" in name, name
    gemini = forms_of(function)["gemini"]["functionDeclarations"] + forms_of(table)["gemini"]["functionDeclarations"]
    assert once([{"functionDeclarations": gemini}], tool_choice={"type": "function", "name": "book_table"})[0] == "book_table"
    wrong = {**function, "parameters": REPEATS}
    for name, place in (("openai", "function.parameters"), ("responses", "parameters"), ("mcp", "inputSchema"),
                        ("bedrock", "toolSpec.inputSchema.json"), ("gemini", "functionDeclarations[0].parameters")):
        server.refused(400, "invalid_tool", f"tools[1].{place}.properties.a.uniqueItems", request(WEATHER, [TOOLS[1], forms_of(wrong)[name]]))
    for tool, code, place in (({}, "invalid_tool", "tools[0]"), ({"googleSearch": {}}, "invalid_tool", "tools[0]"),
                              ({"cachePoint": {"type": "default"}}, "invalid_tool", "tools[0]"),
                              ({"type": "function", **function, "king": 1}, "unsupported_parameter", "tools[0].king"),
                              ({"functionDeclarations": [{}]}, "invalid_tool", "tools[0].functionDeclarations[0]")):
        status, answer = server.ask("POST", "/v1/chat/completions", request(WEATHER, [tool]))
        error = answer["error"]
        assert status == 400 and error["code"] == code and error["param"].startswith(place), (tool, error)


REPEATS = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}, "required": ["a"]}
MALFORMED = {"type": "object", "properties": {"b/c": {"anyOf": [{"type": "string"}, {"minLength": -1}]}}}


def test_enforcement(server):
    """A tool that cannot be enforced is refused by its place, or, where that is asked for, has any arguments."""
    tools = [TOOLS[0], function_tool("check", REPEATS), lark_tool("run"), function_tool("store", MALFORMED)]
    places = ["tools[1].function.parameters.properties.a", "tools[2].custom.format.grammar",
              "tools[3].function.parameters.properties.b/c.anyOf[1]"]
    for tool, place in zip(tools[1:], places):
        for more in ({}, {"tool_enforcement": "strict"}, {"tool_enforcement": None}):
            body = request(WEATHER, [tool], **more)
            status, answer = server.ask("POST", "/v1/chat/completions", body)
            error = answer["error"]
            assert status == 400 and error["code"] == "invalid_tool", answer
            assert error["param"].startswith(place.replace(place[5:8], "[0]")), (error, place)
    names = [tool[tool["type"]]["name"] for tool in tools]
    status, headers, text = asked(server, request(WEATHER, tools, tool_enforcement="relax", max_tokens=100))
    relaxed = {entry["name"]: entry for entry in json.loads(text)["relaxed_tools"]}
    assert status == 200 and set(relaxed) == set(names[1:]), text
    for name, place in zip(names[1:], places):
        entry = relaxed[name]
        assert entry.keys() == {"name", "param", "reason", "outcome"} and entry["param"].startswith(place), (entry, place)
        assert entry["reason"].startswith("#/") and ": " in entry["reason"], entry
    assert sorted(listed(headers, "Relaxed")) == ["tools[1]", "tools[2]", "tools[3]"], headers.items()
    for forced in range(1, 4):  # those that cannot be called need not be enforced
        kind = tools[forced]["type"]
        choice = {"type": kind, kind: {"name": names[forced]}}
        body = request(WEATHER, tools, tool_enforcement="relax", tool_choice=choice, parallel_tool_calls=False,
                       temperature=1, seed=forced, max_tokens=200)
        status, headers, text = asked(server, body)
        assert status == 200, text
        answer = json.loads(text)
        assert names[forced] in [entry["name"] for entry in answer["relaxed_tools"]], answer
        assert f"tools[{forced}]" in listed(headers, "Relaxed"), headers.items()
        call, = answer["choices"][0]["message"]["tool_calls"]
        assert call[kind]["name"] == names[forced], call
        if kind == "function":
            assert isinstance(json.loads(call["function"]["arguments"]), dict), call
        status, headers, text = asked(server, {**body, "stream": True})
        chunks = messages_of(text)
        assert status == 200 and chunks[0]["relaxed_tools"] == answer["relaxed_tools"], chunks[0]
        assert f"tools[{forced}]" in listed(headers, "Relaxed"), headers.items()
        assert sum("relaxed_tools" in chunk for chunk in chunks) == 1
        assert without_ids(joined(chunks)[0]) == without_ids(answer["choices"][0]["message"]), chunks
    # Or they are left out, which is said as well.
    drop = request(WEATHER, tools, tool_enforcement="drop", max_tokens=100)
    status, headers, text = asked(server, drop)
    dropped = json.loads(text)["relaxed_tools"]
    assert status == 200 and {(entry["name"], entry["outcome"]) for entry in dropped} == {
        (name, "dropped") for name in names[1:]}, text
    assert sorted(listed(headers, "Relaxed")) == ["tools[1]", "tools[2]", "tools[3]"], headers.items()
    assert server.chat(drop)["usage"]["prompt_tokens"] == server.chat(
        request(WEATHER, tools[:1], max_tokens=100))["usage"]["prompt_tokens"]  # the model does not see them
    status, answer = server.ask("POST", "/v1/chat/completions", request(WEATHER, tools[1:2], tool_choice="required",
                                                                         tool_enforcement="drop"))
    assert status == 400, answer
    # The others are held to their documents, as ever.
    short = function_tool("get_weather", {"type": "object", "properties": {"city": {"enum": ["Rome"]}},
                                          "required": ["city"], "additionalProperties": False})
    body = request(WEATHER, [tools[1], short], tool_enforcement="relax", parallel_tool_calls=False,
                   tool_choice={"type": "function", "function": {"name": "get_weather"}})
    call, = server.chat(body)["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Rome"}, call
    # What can be enforced is not relaxed, and what is wrong beside arguments is refused.
    status, headers, text = asked(server, request(WEATHER, tool_enforcement="relax"))
    assert status == 200 and headers["X-Tooldecode-Relaxed"] is None and "relaxed_tools" not in json.loads(text)
    relax = {"tool_enforcement": "relax"}
    server.refused(400, "invalid_tool", "tools[1].function.name", request(WEATHER, [TOOLS[0], TOOLS[0]], **relax))
    server.refused(400, "invalid_tool", "tools[0].function.strict",
                   request(WEATHER, [function_tool("f", {}, strict="no")], **relax))
    # What would take too much to build is relaxed for a few tools of a request, since each is tried.
    huge = [function_tool(f"f{i}", {"type": "object", "properties": {"a": {"pattern": "^(a{1000}){1000}$"}}})
            for i in range(5)]
    answer = server.chat(request(WEATHER, huge[:4], max_tokens=4, **relax))
    assert [entry["name"] for entry in answer["relaxed_tools"]] == ["f0", "f1", "f2", "f3"], answer
    server.refused(400, "invalid_tool", "tools[4].function.parameters.properties.a.pattern",
                   request(WEATHER, huge, **relax))
    server.refused(400, "invalid_value", "tool_enforcement", request(WEATHER, tool_enforcement="some"))
    server.refused(400, "invalid_type", "tool_enforcement", request(WEATHER, tool_enforcement=True))


def texts_of(message):
    return [call["function"]["arguments"] for call in message.get("tool_calls", ())]


def test_arguments():
    """Whole answers and streams have the same text of arguments, which is what the model wrote."""
    compared = 0
    for form in ("python", "hermes", "mistral-args", "qwen3-coder", "gemma-4", "harmony", "toolken"):
        with Server("--format", form) as server:
            for number, question in enumerate((WEATHER, TABLE)):
                for heat, seed in ((0, 1), (1, 2)):
                    body = request(question, temperature=heat, seed=seed, tool_choice="required", max_tokens=100,
                                   parallel_tool_calls=number == 0 and form != "toolken", logprobs=True)
                    whole = server.chat(body)["choices"][0]
                    message, finish, *_ = joined(server.events(body))
                    assert finish == whole["finish_reason"], (form, message, whole)
                    assert texts_of(message) == texts_of(whole["message"]), (form, message, whole)
                    named, *_ = joined(server.events(body, response_id="named"))
                    assert texts_of(named) == texts_of(whole["message"]), (form, named, whole)
                    written = b"".join(bytes(token["bytes"]) for token in whole["logprobs"]["content"]).decode()
                    for text in texts_of(whole["message"]):
                        compared += 1
                        assert isinstance(json.loads(text), dict), (form, text)
                        if form in ("hermes", "mistral-args", "harmony"):
                            assert text in written, (form, text, written)
    assert compared >= 28, compared
    with Server("--format", "hermes") as server:
        body = request(WEATHER, response_id="r")
        call, = server.chat(body)["choices"][0]["message"]["tool_calls"]
        announced = {"name": "get_weather", "output": GOODBYE}
        assert server.ask("POST", "/cache-tool-output/r", announced) == (200, {"cached": 1})
        whole = server.chat(body)["choices"][0]["message"]
        streamed, *_ = joined(server.events(body))
        for message in (whole, streamed):
            cached, *_ = message["cached_tool_calls"]
            assert cached["function"]["arguments"] == call["function"]["arguments"], (cached, call)
    with Server("--format", "hermes") as server:
        stream = server.events(request(WEATHER), response_id="w", tool_wait=30)
        for chunk in stream:
            pending = chunk["choices"][0]["delta"].get("pending_tool_calls")
            if pending:
                assert pending[0]["function"]["arguments"] == call["function"]["arguments"], (pending, call)
                break
        else:
            raise AssertionError("no call was pending")
        stream.close()


def history(*calls, kind="tool_calls"):
    entries = [{"id": f"c{i}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}
               for i, (name, arguments) in enumerate(calls)]
    user = {"role": "user", "content": WEATHER}
    if kind == "cached_tool_calls":
        cached = [{**entry, "turn": 0, "output": "warm"} for entry in entries]
        return [user, {"role": "assistant", "content": "So.", kind: cached}, user]
    results = [{"role": "tool", "tool_call_id": entry["id"], "content": "warm"} for entry in entries]
    return [user, {"role": "assistant", kind: entries}, *results]


def test_histories():
    """Calls that a format cannot write are refused where they stand."""
    code = "unsupported_value"
    with Server("--format", "toolken") as server:
        for kind in ("tool_calls", "cached_tool_calls"):
            place = f"messages[1].{kind}"
            good, other = ("get_weather", {"city": "Oslo"}), ("get_weather", {"days": 3})
            assert asked(server, request(history(good, kind=kind), max_tokens=1))[0] == 200
            error = server.refused(400, code, f"{place}[0].function.arguments", request(history(other, kind=kind)))
            assert "toolken" in error["message"], error
            server.refused(400, code, place, request(history(good, good, kind=kind)))
            server.refused(400, code, f"{place}[1].function.arguments", request(history(good, other, kind=kind)))
    with Server("--format", "gemma-4") as server:
        good, bad = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "<|\"|>"})
        assert asked(server, request(history(good, good), max_tokens=1))[0] == 200
        for at, calls in ((0, (bad,)), (1, (good, bad)), (2, (good, good, bad, good))):
            server.refused(400, code, f"messages[1].tool_calls[{at}].function.arguments", request(history(*calls)))
    # Where a format writes strings without quotes, a call of the past is written as the model would write it.
    tool = function_tool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})
    with Server("--format", "qwen3-coder") as server:
        def tokens(messages):
            return server.chat(request(messages, [tool], max_tokens=1, tool_choice="none"))["usage"]["prompt_tokens"]
        past = history(("get_weather", {"city": "12"}))
        text = "<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>"
        told = [past[0], {"role": "assistant", "content": text}, {"role": "user", "content": "get_weather returned: warm"}]
        assert tokens(past) == tokens(told), (tokens(past), tokens(told))


def test_unseen_members(server):
    """What other servers and libraries add to a history and its tools changes nothing, and the head of the answer names it."""
    user, call, result = history(("get_weather", {"city": "Oslo"}))
    entry, = call["tool_calls"]
    call["content"] = [{"type": "text", "text": "Wait. "}]
    added = {key: value for key, value in UNSEEN.items() if key != "id"}  # calls have one
    more = [{**user, **UNSEEN, "content": [{"type": "text", "text": WEATHER, **UNSEEN}]},
            {**call, **UNSEEN, "content": [{**call["content"][0], **UNSEEN}],
             "tool_calls": [{**entry, **added, "function": {**entry["function"], **UNSEEN}}]}, {**result, **UNSEEN}]
    body = request([user, call, result], max_tokens=20)
    plain = server.chat(body)
    status, headers, text = asked(server, {**body, "messages": more, "tools": [{**tool, **UNSEEN} for tool in TOOLS]})
    answer = json.loads(text)
    assert status == 200 and tokens_of(answer["usage"]) == tokens_of(plain["usage"]), (text, plain)
    assert without_ids(answer["choices"][0]["message"]) == without_ids(plain["choices"][0]["message"]), (answer, plain)
    places = {f"{place}.{key}" for place in ("messages[]", "messages[].content[]", "messages[].tool_calls[]",
                                             "messages[].tool_calls[].function", "tools[]") for key in UNSEEN}
    places.remove("messages[].tool_calls[].id")
    names = listed(headers, "Ignored")
    assert len(names) == len(set(names)) and set(names) == places, set(names) ^ places
    # A refusal may be a part of what the model said, and of nothing else.
    def tokens(content):
        asked_of = request([user, {"role": "assistant", "content": content}, user], max_tokens=1)
        return tokens_of(server.chat(asked_of)["usage"])
    refusal = {"type": "refusal", "refusal": "Ask later."}
    assert tokens([{"type": "text", "text": "No. "}, refusal]) == tokens("No. Ask later.")
    server.refused(400, "invalid_value", "messages[0].content[0].type", request([{**user, "content": [refusal]}]))
    misspelt = [user, {**call, "tool_calls": [{**entry, "provider_specific_field": 1}]}, result]
    for place, body, meant in (
            ("messages[0].cache_controls", request([{**user, "cache_controls": 1}]), "cache_control"),
            ("messages[1].tool_calls[0].provider_specific_field", request(misspelt), "provider_specific_fields"),
            ("tools[0].thinking_block", request(WEATHER, [{**TOOLS[0], "thinking_block": 1}]), "thinking_blocks")):
        error = server.refused(400, "unsupported_parameter", place, body)
        assert error["message"].endswith(f" {meant}"), error


def main():
    serve.arguments().parse_args(namespace=serve.ARGUMENTS)
    serve.run_tests(globals())


if __name__ == "__main__":
    main()
