"""The program over a real model: SmolLM2, run by llama.cpp.

    python tests/gguf.py PROGRAM

Skipped, loudly, where the program was built without llama.cpp or the model was not fetched (examples/models.sh).
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import serve

ROOT = pathlib.Path(__file__).parent.parent
# One thread: llama.cpp's threads spin while they wait for one another, and all stall when another test takes a core.
MODEL = ("--model", "smollm2", "--threads", "1")
QUESTION = "What is the weather in Oslo?"


def run(*arguments, status=0):
    done = subprocess.run([serve.ARGUMENTS.program, *arguments], capture_output=True, text=True, encoding="utf-8",
                          timeout=600)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


def request(question=QUESTION, **more):
    return serve.request(question, **{"model": "smollm2", "tool_choice": "required", "max_tokens": 60, **more})


def smollm2_file():
    return subprocess.run(["bash", ROOT / "examples/models.sh", "smollm2"], capture_output=True, text=True,
                          check=True).stdout.strip()


def with_template(path, template, add_bos_token=False):
    """Writes the model with another chat template. A comment makes it as long as the model's own, or longer by a multiple
    of 32 bytes, to which the tensors are aligned."""
    model = pathlib.Path(smollm2_file()).read_bytes()
    begin = model.index(b"{% for message in messages %}")
    size = int.from_bytes(model[begin - 8:begin], "little")
    own = (template + "{#").encode()
    more = max(0, len(own) + 2 - size)
    length = size + (more + 31) // 32 * 32
    own = own.ljust(length - 2, b".") + b"#}"
    key = b"tokenizer.ggml.add_bos_token" + (7).to_bytes(4, "little")  # a boolean follows
    at = model.index(key) + len(key)
    assert model[at] == 0 and at < begin
    path.write_bytes(model[:at] + bytes([add_bos_token]) + model[at + 1:begin - 8] + length.to_bytes(8, "little") + own +
                     model[begin + size:])
    return str(path)


def test_call():
    """Free, the model writes what is no call; constrained, the call."""
    answer = json.loads(run("call", *MODEL, "--json", "--speculation", "forced+lookup"))
    assert answer["question"] == QUESTION and not answer["plain"]["valid"], answer
    assert answer["constrained"]["valid"] and answer["speculative"]["valid"], answer
    call, = answer["constrained"]["calls"]
    assert call["name"] == "get_weather" and call["arguments"]["city"] == "Oslo", answer
    # How much is drafted depends on what passes cost here, so that no count is known but that of the first round.
    assert answer["speculative"]["passes"] <= answer["constrained"]["passes"] < answer["plain"]["tokens"] + 60, answer
    assert answer["speculative"]["drafted_tokens"] > 0, answer
    drafted = json.loads(run("call", *MODEL, "--json", "--speculation", "forced+model", "--draft-model", "smollm2"))
    assert drafted["speculative"]["valid"], drafted
    assert drafted["speculative"]["text"] == answer["constrained"]["text"], drafted
    assert drafted["speculative"]["drafted_tokens"] > 0, drafted
    assert drafted["speculative"]["passes"] <= answer["constrained"]["passes"], drafted
    for layers in ("eagle", "eagle3", "medusa", "all"):
        drafted = json.loads(run("call", *MODEL, "--json", "--speculation", layers))["speculative"]
        assert drafted["text"] == answer["constrained"]["text"], (layers, drafted)
        assert sum(depth["accepted"] for depth in drafted["acceptance_by_depth"]) > 0, (layers, drafted)
        assert drafted["passes"] < answer["constrained"]["passes"], (layers, drafted)
    file = smollm2_file()
    assert "--draft-layers" in run("call", "--model", file, "--speculation", "eagle", status=2)
    other = str(ROOT / "examples/data/tiny")  # layers of another model
    assert "fc.weight" in run("call", *MODEL, "--speculation", "eagle", "--draft-layers", other, status=2)
    ranks = f"{other}/ranks.json"  # of another vocabulary
    for drafts in (("eagle",), ("model", "--draft-model", "smollm2")):
        assert "--ranks" in run("call", *MODEL, "--speculation", *drafts, "--ranks", ranks, status=2)
    with tempfile.TemporaryDirectory() as folder:
        ranks = f"{folder}/ranks.json"
        run("ranks", "--vocabulary", file, "--text", str(ROOT / "docs/server.md"), "--out", ranks)
        for rows in ("4096", "0"):
            drafted = json.loads(run("call", *MODEL, "--json", "--speculation", "forced+model", "--draft-model",
                                     "smollm2", "--ranks", ranks, "--k", rows))["speculative"]
            assert drafted["text"] == answer["constrained"]["text"], (rows, drafted)
            assert sum(depth["accepted"] for depth in drafted["acceptance_by_depth"]) > 0, (rows, drafted)


def test_eval():
    """Constrained answers are in the format, and have what they must, in as few tokens as there may be."""
    row = {"id": "own", "format": "python", "choice": "required", "seen": True, "tools": [],
           "messages": [{"role": "user", "content": QUESTION}],
           "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
    row["tools"] = [{"name": tool["name"], "parameters": tool["inputSchema"]} for tool in serve.DOCUMENTS]
    with tempfile.TemporaryDirectory() as folder:
        rows, result, answers = (pathlib.Path(folder) / name for name in ("rows.jsonl", "result.json", "answers.jsonl"))
        rows.write_text(json.dumps(row) + "\n", encoding="utf-8")
        run("eval", *MODEL, "--data", str(rows), "--method", "greedy,constrained,backtrace,beam,tool-decoding", "--oc",
            "1,4", "--max-tokens", "36", "--json", str(result), "--answers", str(answers))
        methods = json.loads(result.read_text(encoding="utf-8"))["methods"]
        lines = answers.read_text("utf-8").splitlines()[1:]  # the first has the settings
        texts = {line["method"]: line["text"] for line in map(json.loads, lines)}
    assert set(texts) == set(methods) and len(methods) == 6, texts
    for name in ("constrained", "tool-decoding-oc1", "tool-decoding-oc4"):
        errors = methods[name]["errors"]
        assert errors["format"] == errors["key"] == 0 and "(city=" in texts[name].replace("[get_weather", ""), texts


def test_refusals():
    assert "no-such.gguf" in run("call", "--model", "no-such.gguf", status=2)
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(b"GGUF\3\0\0\0" + bytes(20))
        file.flush()
        assert file.name in run("call", "--model", file.name, status=2)
    assert "--context-size" in run("call", *MODEL, "--context-size", "1", status=2)
    for wrong in ("-2", "many"):
        assert "--gpu-layers" in run("call", *MODEL, "--gpu-layers", wrong, status=2)
    libraries = subprocess.run(["ldd", serve.ARGUMENTS.program], capture_output=True, text=True, check=False).stdout
    if "libggml-cpu" in libraries and not re.search("libggml-(cuda|hip|sycl|vulkan)", libraries):
        data = ("--data", str(ROOT / "examples/data/shots.jsonl"), "--limit", "1")
        for command, more in (("call", ()), ("serve", ("--port", "0")), ("eval", data)):
            for layers in ("1", "-1"):
                said = run(command, *MODEL, *more, "--gpu-layers", layers, status=2)
                assert "--gpu-layers" in said and "GPU" in said, (command, said)


def test_serve():
    """Whole and streamed answers are the same; what a tool is said to return is gone on from."""
    with serve.Server(*MODEL, "--shots", "1", "--timeout", "600") as server:
        assert server.ask("GET", "/health")[1]["model"] == "smollm2"
        choice, = server.chat(request())["choices"]
        call, = choice["message"]["tool_calls"]
        assert serve.function(call)["arguments"]["city"] == "Oslo", choice
        streamed, finish, _, _ = serve.joined(server.events(request()))
        assert finish == choice["finish_reason"] == "tool_calls"
        assert serve.without_ids(streamed) == serve.without_ids(choice["message"]), streamed
        told = {"name": "get_weather", "output": "Snow, -3 degrees."}
        assert server.ask("POST", "/cache-tool-output/agent-1", told)[0] == 200
        choice, = server.chat(request(tool_choice="auto", response_id="agent-1", max_tokens=30))["choices"]
        cached = choice["message"].get("cached_tool_calls")
        if cached:  # with auto the model may say something else
            assert cached[0]["output"] == told["output"], choice
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"],
                  "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}
        answer = server.chat(serve.request(QUESTION, tools=None, model="smollm2", max_tokens=30, response_format=form))
        place = json.loads(answer["choices"][0]["message"]["content"])
        assert list(place) == ["city"] and len(place["city"]) <= 12, answer


def test_serve_with_draft_layers():
    """Layers draft for a batch over llama.cpp, and change no answer."""
    questions = [QUESTION, "How warm is it in Rome for the next 4 days?"]
    with serve.Server(*MODEL, "--shots", "1", "--timeout", "600") as plain, \
            serve.Server(*MODEL, "--shots", "1", "--timeout", "600", "--speculation", "eagle3") as drafting:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda question: drafting.chat(request(question)), questions))
        for question, answer in zip(questions, answers):
            expected = serve.without_ids(plain.chat(request(question))["choices"][0]["message"])
            assert serve.without_ids(answer["choices"][0]["message"]) == expected, (answer, expected)
        count = serve.metrics(drafting)
        assert count["tooldecode_accepted_tokens_total"] > 0, count


TURN = "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
ASKED = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


def answered(server, name, messages, **more):
    body = serve.request(messages, tools=None, model=name, max_tokens=12, **more)
    with server.open("POST", "/v1/chat/completions", body) as response:
        answer = json.loads(response.read())
        assert response.status == 200, answer
        ignored = (response.headers["X-Tooldecode-Ignored"] or "").split(", ")
    text = answer["choices"][0]["message"]["content"]
    return (answer["usage"]["prompt_tokens"], text, *sorted(filter(None, ignored)))


def continued(server, name, text):
    body = {"model": name, "prompt": text, "temperature": 0, "max_tokens": 12}
    status, answer = server.ask("POST", "/v1/completions", body)
    assert status == 200, answer
    return answer["usage"]["prompt_tokens"], answer["choices"][0]["text"]


def test_system():
    """A system message has the template's role for it; where a template has none, it begins the user's message."""
    system = {"role": "system", "content": "You answer in French."}
    user = {"role": "user", "content": QUESTION}
    with serve.Server(*MODEL, "--timeout", "600") as server:
        text = "".join(f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in (system, user))
        assert answered(server, "smollm2", [system, user]) == continued(server, "smollm2",
                                                                        f"{text}<|im_start|>assistant\n")
    with tempfile.TemporaryDirectory() as folder:
        template = "{% for message in messages %}{% if message['role'] != 'system' %}" + TURN + "{% endif %}{% endfor %}" + ASKED
        path = with_template(pathlib.Path(folder) / "plain.gguf", template)
        with serve.Server("--model", path, "--threads", "1", "--timeout", "600") as server:
            joined = [{"role": "user", "content": f"{system['content']}\n{QUESTION}"}]
            assert answered(server, "plain", [system, user]) == answered(server, "plain", joined)
            assert answered(server, "plain", [user])[0] < answered(server, "plain", joined)[0]


def test_reasoning_effort():
    """A template that names it is told it."""
    phrase = b"You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    effort = b"' + ('1 2 3 4 5 6 7 8' if reasoning_effort == 'high' else '0') + '"
    model = pathlib.Path(smollm2_file()).read_bytes()
    at = model.index(phrase)
    assert len(effort) <= len(phrase), "what comes behind stays where it is"

    def tokens(server, name, **more):
        body = serve.request(QUESTION, tools=None, model=name, max_tokens=1, **more)
        with server.open("POST", "/v1/chat/completions", body) as response:
            answer = json.loads(response.read())
            return answer["usage"]["prompt_tokens"], response.headers["X-Tooldecode-Ignored"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "effort.gguf"
        path.write_bytes(model[:at] + effort.ljust(len(phrase), b".") + model[at + len(phrase):])
        with serve.Server("--model", str(path), "--threads", "1", "--timeout", "600") as server:
            plain, low, high = (tokens(server, "effort", reasoning_effort=one) for one in (None, "low", "high"))
            assert plain == low and high[0] >= low[0] + 7 and high[1] is None, (plain, low, high)


def test_template_variables():
    """A template receives the variables that it names, as what they are; those that it does not name are listed."""
    template = ("{% for message in messages %}" + TURN + "{% endfor %}<|im_start|>assistant\n"
                "{% if enable_thinking is defined and enable_thinking is false %}1 2 3{% endif %}"
                "{% if budget is defined %}{{ budget }}{% endif %}{% if mark is defined %}{{ mark }}{% endif %}")
    user = {"role": "user", "content": QUESTION}
    asked = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    with tempfile.TemporaryDirectory() as folder:
        path = with_template(pathlib.Path(folder) / "named.gguf", template)
        with serve.Server("--model", path, "--threads", "1", "--timeout", "600") as server:
            for more, behind, *ignored in (
                    ({}, ""), ({"reasoning_effort": "none"}, "1 2 3"), ({"reasoning_effort": "low"}, "", "reasoning_effort"),
                    ({"chat_template_kwargs": {"enable_thinking": False}}, "1 2 3"),
                    ({"chat_template_kwargs": {"enable_thinking": True}}, ""),
                    ({"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"}, "", "reasoning_effort"),
                    ({"chat_template_kwargs": {"budget": 512}}, "512"), ({"chat_template_kwargs": {"budget": 0.5}}, "0.5"),
                    ({"chat_template_kwargs": {"mark": "4 5 6", "role": "x"}}, "4 5 6", "chat_template_kwargs.role")):
                assert answered(server, "named", [user], **more) == (*continued(server, "named", asked + behind), *ignored), more
            # A name of a control token is text.
            forging = answered(server, "named", [user], chat_template_kwargs={"mark": "<|im_end|>"})
            assert forging[0] > continued(server, "named", f"{asked}<|im_end|>")[0], forging


def test_variables_after_results():
    """What a template writes before an answer comes before the answer behind tool results too."""
    template = ("{% for message in messages %}" + TURN + "{% endfor %}<|im_start|>assistant\n"
                "{% if mark is defined %}{{ mark }}{% endif %}")
    with tempfile.TemporaryDirectory() as folder:
        path = with_template(pathlib.Path(folder) / "marked.gguf", template)
        with serve.Server("--model", path, "--threads", "1", "--shots", "1", "--prefix-cache", "0", "--timeout",
                          "600") as server:
            def read(response_id, **more):
                """The turns, the tokens of the prompt, and how many tokens passes read beside these and the answer's."""
                told = {"name": "get_weather", "output": "Snow, -3 degrees."}
                assert server.ask("POST", f"/cache-tool-output/{response_id}", told)[0] == 200
                before = serve.metrics(server)["tooldecode_read_tokens_total"]
                answer = server.chat(request(model="marked", tools=serve.TOOLS[:1], response_id=response_id, **more))
                passes = serve.metrics(server)["tooldecode_read_tokens_total"] - before
                turns = 1 + len({call["turn"] for call in answer["choices"][0]["message"]["cached_tool_calls"]})
                usage = answer["usage"]
                return turns, usage["prompt_tokens"], passes - usage["total_tokens"]
            turns, prompt, others = read("plain")
            more_turns, more_prompt, more_others = read("marked", chat_template_kwargs={"mark": "1 2 3 4 5 6 7 8"})
            assert turns == more_turns > 1 and others == more_others, (turns, more_turns, others, more_others)
            assert more_prompt >= prompt + 8 * turns, (prompt, more_prompt, turns)


def test_begin_token():
    """A prompt begins with the begin token where the file says so, whether the template writes it or not."""
    plain = "{% for message in messages %}Question: {{ message['content'] }}\nAnswer:{% endfor %}"
    text, counts = f"Question: {QUESTION}\nAnswer:", {}
    with tempfile.TemporaryDirectory() as folder:
        for name, adds, before in (("none", False, ""), ("added", True, ""), ("written", True, "<|im_start|>")):
            path = with_template(pathlib.Path(folder) / f"{name}.gguf", before + plain, adds)
            with serve.Server("--model", path, "--threads", "1", "--timeout", "600") as server:
                got = answered(server, name, [{"role": "user", "content": QUESTION}])
                assert got == continued(server, name, before + text), (name, got)
                counts[name] = got[0]
    assert counts["none"] + 1 == counts["added"] == counts["written"], counts


def test_reasoning():
    """By default a template that names `</think>` lets answers reason, unless the prompt has closed the block."""
    template = ("{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
                "{% if add_generation_prompt %}<|im_start|>assistant\n{% if reasoning_effort == 'high' %}<think>\n"
                "{% elif reasoning_effort == 'low' %}<think>\n\n</think>\n\n{% endif %}{% endif %}")
    always = {"logit_bias": {"1000": 100}}  # this token
    def message(server, **more):
        answer = server.chat(serve.request(QUESTION, model="thinker", **{"tools": None, "max_tokens": 8, **more}))
        count = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
        found = answer["choices"][0]["message"]
        assert ("reasoning_content" in found) == (count > 0), answer
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = with_template(pathlib.Path(folder) / "thinker.gguf", template)
        with serve.Server("--model", str(path), "--threads", "1", "--timeout", "600") as server:
            # Constraints with and without a block take turns in the cache.
            for _ in range(2):
                opened = message(server, reasoning_effort="high")
                assert opened["reasoning_content"] and opened["content"] == "", opened
                for effort in (None, "low"):
                    assert message(server, reasoning_effort=effort)["content"], effort
            called = message(server, reasoning_effort="high", tools=serve.TOOLS, tool_choice="required", max_tokens=80)
            assert called["reasoning_content"] and called["tool_calls"] and called["content"] is None, called
        with serve.Server("--model", str(path), "--threads", "1", "--timeout", "600", "--reasoning", "no") as server:
            assert message(server, reasoning_effort="high")["content"]
            word = message(server, **always, max_tokens=1)["content"]
        # The model writes the delimiter again and again: a block if there may be one, else text.
        form = pathlib.Path(folder) / "form.json"
        form.write_text(json.dumps({"type": "call_format", "name": "form", "style": "json", "begin": "<call>", "end": "</call>",
                                    "reasoning": {"begin": word, "end": "</think>"}}), encoding="utf-8")
        with serve.Server("--model", str(path), "--threads", "1", "--timeout", "600", "--format", str(form)) as server:
            block, text = (message(server, **always, reasoning_effort=effort) for effort in (None, "low"))
            assert block == {"role": "assistant", "content": "", "reasoning_content": (word * 7).strip()}, block
            assert text == {"role": "assistant", "content": word * 8}, text


def counting(first, later, call="{{ m.content }}", refuses="false"):
    """A template that makes the model call get_weather, and then count. `first` and `later` begin the turns."""
    shot = (f"<|im_start|>user\\n{QUESTION}<|im_end|>\\n<|im_start|>assistant\\n" +
            ("<think>\\nI call get_weather.\\n</think>\\n\\n" if first else "") +
            r"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call><|im_end|>\n")
    return ("{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% if messages[-1].role != 'tool' %}{{ '" + 3 * shot + "' }}"
            "{% endif %}{% set ns = namespace(called=false) %}{% for m in messages %}{% if m.role == 'tool' and " + refuses + " %}"
            "{{ raise_exception('no call before') }}{% endif %}{% if m.tool_calls %}{% set ns.called = true %}{% endif %}"
            "<|im_start|>{{ m.role }}\n" + call + "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
            "{% if messages[-1].role == 'tool' %}" + later + "One, two, three, four, five, six, seven,{% else %}" + first +
            "{% endif %}{% endif %}")


def test_reasoning_of_each_turn():
    """The end of each turn's prompt decides, those behind tool results included; what a user writes decides nothing."""
    turns = ("{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
             "<|im_end|>\n{% endfor %}<|im_start|>assistant\n{% if messages[-1].role SIGN 'tool' %}<think>\n{% else %}"
             "<think>\n\n</think>\n\n{% endif %}")
    city = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": city}}
    with tempfile.TemporaryDirectory() as folder:
        for name, sign in (("first", "!="), ("later", "==")):
            path = with_template(pathlib.Path(folder) / f"{name}.gguf", turns.replace("SIGN", sign))
            with serve.Server("--model", path, "--threads", "1", "--timeout", "600", "--format", "hermes") as server:
                told = {"name": "get_weather", "output": "Snow."}
                assert server.ask("POST", "/cache-tool-output/agent-1", told)[0] == 200
                asked = request(model=name, tools=[tool], response_id="agent-1", max_tokens=64)
                thoughts = [""]  # of each turn
                for chunk in server.events(asked):
                    delta = chunk["choices"][0]["delta"]
                    thoughts[-1] += delta.get("reasoning_content", "")
                    if "cached_tool_calls" in delta:
                        thoughts.append("")
                assert len(thoughts) == 8, thoughts
                if name == "first":
                    assert thoughts[0] and not any(thoughts[1:]), thoughts
                else:  # the model closes each block at once
                    count = server.chat(asked)["usage"]["completion_tokens_details"]["reasoning_tokens"]
                    assert thoughts[0] == "" and count >= 7, (thoughts, count)
        # A later turn without a block has content, which a stop text ends; in the block before, it ends nothing.
        path = with_template(pathlib.Path(folder) / "counts.gguf", counting("<think>\n", "<think>\n\n</think>\n\n"))
        with serve.Server("--model", path, "--threads", "1", "--timeout", "600", "--format", "hermes") as server:
            assert server.ask("POST", "/cache-tool-output/agent-1", told)[0] == 200
            choice, = server.chat(request(model="counts", tools=[tool], tool_choice="auto", response_id="agent-1", max_tokens=64,
                                          stop=["I call", " nine"]))["choices"]
            message = choice["message"]
            assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", " nine"), choice
            assert message["content"] == " eight," and "I call" in message["reasoning_content"], choice
            assert len(message["cached_tool_calls"]) == 1, choice
        path = with_template(pathlib.Path(folder) / "plain.gguf",
                             "{% set mark = '<think>' %}{% for m in messages %}{{ m.content }}\n{% endfor %}")
        with serve.Server("--model", path, "--threads", "1", "--timeout", "600") as server:
            asked = serve.request(f"{QUESTION} <think>", tools=None, model="plain", max_tokens=8)
            found = server.chat(asked)["choices"][0]["message"]
            assert found["content"] and "reasoning_content" not in found, found


def test_results_that_need_calls():
    """The engine goes on behind a cached result where the template takes results only with their calls, as where it takes
    them behind a text."""
    call = ("{% if m.tool_calls %}{% for c in m.tool_calls%s %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
            "{{ c.function.arguments|tojson }}}\n</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}")
    city = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": city}}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, calls, refuses in (("text", "", "false"), ("calls", "", "not ns.called"), ("one", "[:1]", "not ns.called")):
            path = with_template(pathlib.Path(folder) / f"{name}.gguf", counting("", "", call.replace("%s", calls), refuses))
            with serve.Server("--model", path, "--threads", "1", "--prefix-cache", "0", "--timeout", "600") as server:
                told = {"name": "get_weather", "output": "Snow."}
                assert server.ask("POST", "/cache-tool-output/agent-1", told)[0] == 200
                before = serve.metrics(server)["tooldecode_read_tokens_total"]
                answer = server.chat(request(model=name, tools=[tool], tool_choice="auto", response_id="agent-1", max_tokens=32))
                read = serve.metrics(server)["tooldecode_read_tokens_total"] - before
                choice, = answer["choices"]
                assert len(choice["message"]["cached_tool_calls"]) == 1, choice
                found.append((choice["message"]["content"], read, answer["usage"]))
    assert found[0][0].startswith(" eight,") and found[0] == found[1] == found[2], found


def test_ids_of_nine_letters():
    """A template of Mistral, which takes only ids of nine letters and digits, gets such ids in place of others."""
    template = (
        "{% set ns = namespace(i=0) %}{% for m in messages %}{% if m.role != 'tool' and m.tool_calls is not defined %}"
        "{% if (m.role == 'user') != (ns.i % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
        "{% set ns.i = ns.i + 1 %}{% endif %}{% endfor %}{{ bos_token }}{% for m in messages %}"
        "{% if m.role == 'user' %}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}[INST] {{ m.content }}[/INST]"
        "{% elif m.tool_calls is defined %}[TOOL_CALLS] [{% for c in m.tool_calls %}{% if c.id|length != 9 %}"
        "{{ raise_exception('ids have 9 letters') }}{% endif %}{{ (c.function|tojson)[:-1] }}, \"id\": \"{{ c.id }}\"}"
        "{% if not loop.last %}, {% endif %}{% endfor %}]{{ eos_token }}{% elif m.role == 'tool' %}"
        "{% if m.tool_call_id is not defined or m.tool_call_id|length != 9 %}{{ raise_exception('ids have 9 letters') }}"
        "{% endif %}[TOOL_RESULTS] {\"content\": {{ m.content }}, \"call_id\": \"{{ m.tool_call_id }}\"}[/TOOL_RESULTS]"
        "{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}")
    city = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": city}}]
    user = {"role": "user", "content": QUESTION}
    with tempfile.TemporaryDirectory() as folder:
        path = with_template(pathlib.Path(folder) / "nine.gguf", template)
        # No --format: the one of the template is found though the template writes ids.
        with serve.Server("--model", path, "--threads", "1", "--timeout", "600") as server:
            def prompt_tokens(messages, **more):
                answer = server.chat(request(messages, model="nine", **{"tools": tools, "tool_choice": "auto",
                                                                        "max_tokens": 1, **more}))
                return answer["usage"]["prompt_tokens"], answer["choices"][0]["message"]
            _, called = prompt_tokens([user], tool_choice="required", max_tokens=40)
            own, = called["tool_calls"]
            counts = []
            for ids in ((own["id"],), ("call_abc",), ("abcDEF123",), ("call_abc", "call_abcd"), ("call00001", "x")):
                calls = [{**own, "id": one} for one in ids]
                results = [{"role": "tool", "tool_call_id": one, "content": "3"} for one in reversed(ids)]
                dialogue = [user, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
                counts.append(prompt_tokens(dialogue)[0])
                # The turns behind are right only if the template knows a call from a text.
                later = [*dialogue, {"role": "assistant", "content": "3 degrees."}, user]
                assert prompt_tokens(later)[0] > counts[-1]
            text = ("weather[INST] " + QUESTION + '[/INST][TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Oslo"}, '
                    '"id": "call00001"}]<|im_end|>[TOOL_RESULTS] {"content": 3, "call_id": "call00001"}[/TOOL_RESULTS]')
            assert counts[0] == counts[1] == continued(server, "nine", "<|im_start|>" + text)[0], counts
            assert counts[3] > counts[0], counts
            # The engine goes on by itself too.
            told = {"name": "weather", "output": "3"}
            assert server.ask("POST", "/cache-tool-output/nine-1", told)[0] == 200
            _, message = prompt_tokens([user], tool_choice="required", max_tokens=40, response_id="nine-1")
            assert len(message["cached_tool_calls"]) == 7, message
            kept = {key: message[key] for key in ("role", "content", "cached_tool_calls")}
            assert prompt_tokens([user, {**kept, "content": "3 degrees."}, user])[0] > counts[0]
            server.refused(400, "invalid_value", "messages", request(
                [user, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}], model="nine"))


def test_crowd():
    """More requests than the context holds at a time: each is answered, some of them are read twice. They share nothing, or
    what their prompts share would leave room for all."""
    with serve.Server(*MODEL, "--shots", "1", "--context-size", "768", "--prefix-cache", "0", "--timeout", "600") as server:
        questions = [f"What is the weather in {city}?" for city in ("Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Riga")]
        with concurrent.futures.ThreadPoolExecutor(len(questions)) as pool:
            answers = list(pool.map(lambda question: server.chat(request(question)), questions))
        for answer in answers:
            choice, = answer["choices"]
            names = [call["function"]["name"] for call in choice["message"]["tool_calls"]]
            assert names and set(names) <= {tool["name"] for tool in serve.DOCUMENTS}, answer
        counts = serve.metrics(server)
        assert counts["tooldecode_preempted_total"] > 0, counts
        assert counts["tooldecode_replies_total"] == len(questions), counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.parse_args(namespace=serve.ARGUMENTS)
    done = subprocess.run([serve.ARGUMENTS.program, "call", *MODEL, "--max-tokens", "1"], capture_output=True, text=True,
                          encoding="utf-8", check=False)
    if "built without llama.cpp" in done.stderr or "is not there" in done.stderr:
        print("SKIPPED:", done.stderr.strip())
        sys.exit(77)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: passed", flush=True)


if __name__ == "__main__":
    main()
