"""What the engines' tool parsers share: one definition for mask and reader, readers of text, and formats of templates."""
import dataclasses
import json
import random
import time

import pytest
import tooldecode as td
from stream_events import calls_of, pieces_of
from tooldecode._tools import AnswerReader, ToolRequest, _Readers, find_format, format_for, format_of, read_tool_answer

# Formats that give arguments by their place cannot leave one out, nor take one that is not documented.
BY_PLACE = ("toolken", "tooldec")
# No text, or only in messages of its own, before a call.
AT_START = ("python", "json", "json-list", "functionary-3.2", "harmony")


@pytest.fixture
def documents(tools):
    return json.dumps(tools)


def read(reader, pieces):
    return calls_of([event for piece in pieces for event in reader.push(piece)] + reader.finish())


def test_text_of_a_request(documents, vocabulary):
    request = ToolRequest(documents, "hermes", "named", "add", parallel=False, whitespace=3)
    assert ToolRequest.is_text(request.text()) and ToolRequest.of_text(request.text()) == request
    for text in ("", "start: \"a\"", "root ::= \"a\"", "{}", None, 3):
        assert not ToolRequest.is_text(text)
    from tooldecode._engine import build

    constraint = build(vocabulary, "grammar", request.text(), 0)
    text = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    state = constraint.advance_bytes(constraint.initial(), text.encode())
    assert state is not None and constraint.is_accepting(state)
    assert constraint.advance_bytes(constraint.initial(), b'<tool_call>\n{"name": "get') is None
    for wrong, where in (('{"tooldecode_tools": 2}', "/tooldecode_tools"), ('{"tooldecode_tools": 1, "tools": "[]"}', "/tooldecode_tools"),
                         ('{"tooldecode_tools": 1, "tools": "[]", "format": 3}', "/format"),
                         ('{"tooldecode_tools": 1, "tools": "[]", "format": "json", "more": ""}', "/more"),
                         ('{"tooldecode_tools": 1, "tools": "[]", "format": "json", "whitespace": -1}', "/whitespace"),
                         ('{"tooldecode_tools":' + 200000 * "[", ""), ('{"tooldecode_tools": 1', "")):
        with pytest.raises(td.Error) as error:
            ToolRequest.of_text(wrong)
        assert error.value.where == where


def test_what_is_given_up_of_a_tool_is_logged_once(caplog):
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string", "pattern": r"(a)\1"}}}}
    request = ToolRequest(json.dumps([tool]), "hermes", enforcement="relax")
    for _ in range(2):
        request.reader()
    (record,) = [one for one in caplog.records if "is not enforced at" in one.getMessage()]
    assert record.levelname == "WARNING" and "'#/0/parameters/properties/s/pattern'" in record.getMessage()


def test_what_is_misread_of_a_tool_is_logged_once(caplog):
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string", "minLenght": 3}, "n": {"type": "integer"}}}}
    request = ToolRequest(json.dumps([tool]), "hermes")
    for choice in ("auto", "required"):
        dataclasses.replace(request, choice=choice).reader()
    request.without_schemas().reader()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("Tool 'f', check '#/0/parameters/properties/s/minLenght': ")
    caplog.clear()
    ToolRequest(json.dumps([tool | {"name": "g"}]), "hermes").reader()
    assert ["Tool 'g'" in record.getMessage() for record in caplog.records] == [True]


def test_a_tool_without_arguments_is_no_fault(caplog):
    for parameters in ({"type": "object", "properties": {}}, {}):
        constraint = ToolRequest(json.dumps([{"name": "f", "parameters": parameters}]), "hermes").reader()
        assert "no_arguments" in {note.reading for note in constraint.notes}
    assert not caplog.records


def test_warnings_of_one_set_of_tools_are_limited(caplog):
    properties = {f"s{i}": {"type": "string", "format": f"odd{i}"} for i in range(20)}
    ToolRequest(json.dumps([{"name": "f", "parameters": {"type": "object", "properties": properties}}]), "json").reader()
    assert len(caplog.records) == 8


@pytest.mark.parametrize("name", td.formats())
def test_reads_what_the_format_writes(name, documents, tools):
    """In any pieces, constrained and not, against parse, which is another reader."""
    dice = random.Random(name)
    request = ToolRequest(documents, name)
    writer = request.reader()
    calls = [td.ToolCall("get_weather", {"city": "Sevilla \u20ac '\"\\\n", "days": 2}), td.ToolCall("add", {"a": 1, "b": -20})]
    text = writer.write(calls[:1] if name in ("react", *BY_PLACE) else calls)
    expected = [(call.name, call.arguments) for call in writer.parse(text)]
    before = "" if name in AT_START else "I look it up. "
    for is_constrained in (True, False):
        for _ in range(4):
            got, found = read(AnswerReader(request, is_constrained), pieces_of(before + text, dice))
            assert [(one, json.loads(arguments)) for one, arguments, is_whole in found if is_whole] == expected
            assert got.strip() == before.strip()
        content, whole = read_tool_answer(request, is_constrained, before + text)
        assert [(one.name, json.loads(one.arguments)) for one in whole] == expected and content.strip() == before.strip()


@pytest.mark.parametrize("name", td.formats())
@pytest.mark.parametrize("is_constrained", [True, False])
def test_arguments_are_streamed(name, is_constrained, documents, vocabulary):
    """Token by token: the first argument comes in the step of its first token, and a string before it is complete."""
    request = ToolRequest(documents, name)
    text = request.reader().write([("get_weather", {"city": "Sevilla del Sur", "days": 2})])
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    reader, given, begun, spoken = AnswerReader(request, is_constrained), "", 0, 0
    for i, piece in enumerate(pieces):
        so_far = "".join(pieces[: i + 1])
        arguments = [event for event in reader.push(piece) if event.kind == "arguments"]
        given += "".join(event.text for event in arguments)
        if len(so_far) > text.index("Sevilla") and not begun:
            assert given.replace(" ", "").startswith('{"city":'), (piece, given)
            begun = i + 1
        spoken += "Sev" in given and "Sur" not in given
    assert begun and spoken >= 3
    assert json.loads(given) == {"city": "Sevilla del Sur", "days": 2}


@pytest.mark.parametrize("name", [name for name in td.formats() if name not in BY_PLACE])
def test_free_calls(name, documents):
    """Where nothing constrains an answer, calls are read whatever their arguments are."""
    request = ToolRequest(documents, name)
    writer = request.without_schemas().reader()
    for arguments in ({"city": "Oslo", "days": 99}, {"days": 3}, {"city": "O", "more": 1}, {"days": "many"}, {}):
        content, calls = read_tool_answer(request, False, writer.write([("get_weather", arguments)]))
        assert [(one.name, json.loads(one.arguments)) for one in calls] == [("get_weather", arguments)] and not content


TYPED = [{"name": "f", "parameters": {"type": "object", "properties": {
    "zip": {"type": "string"}, "days": {"type": "integer"}, "any": {"type": "any"}, "pair": {"type": "tuple"},
    "either": {"type": ["string", "integer"]}, "free": {}, "flag": {"type": "boolean"}, "map": {"type": "object"}},
    "additionalProperties": False}}]


@pytest.mark.parametrize("arguments", [{"zip": 12345}, {"zip": None}, {"days": None}, {"days": 1.5}, {"days": "3"}, {"days": {"z": 1}},
                                       {"any": [1]}, {"pair": [1, 2]}, {"flag": "yes"}, {"map": [None]}, {"undocumented": 1}])
@pytest.mark.parametrize("name", ["hermes", "auto:hermes", "json-list", "kimi-k2"])
def test_free_calls_as_models_write_them(name, arguments):
    """Text that no constraint of this package has written; whole and as a stream."""
    text = {"hermes": '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>', "json-list": '[{"name": "f", "arguments": %s}]',
            "auto:hermes": '```json\n{"name": "f", "arguments": %s}\n```',
            "kimi-k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>%s<|tool_call_end|>"
                       "<|tool_calls_section_end|>"}[name] % json.dumps(arguments)
    request = ToolRequest(json.dumps(TYPED), name)
    content, calls = read_tool_answer(request, False, text)
    assert [(one.name, json.loads(one.arguments)) for one in calls] == [("f", arguments)] and not content
    content, calls = read(AnswerReader(request, False), [text])
    assert [(one, json.loads(given), is_whole) for one, given, is_whole in calls] == [("f", arguments, True)] and not content


@pytest.mark.parametrize("key, value, expected", [
    ("zip", "Oslo", "Oslo"), ("zip", "12345", "12345"), ("days", "3", 3), ("days", "three", "three"), ("either", "Oslo", "Oslo"),
    ("free", "Oslo", "Oslo"), ("undocumented", "Oslo", "Oslo"), ("flag", "True", "True"), ("map", "{'x': 1}", "{'x': 1}"), ("any", "[1]", [1])])
def test_free_calls_in_elements(key, value, expected):
    """Text without quotes, where the document expects something else."""
    request = ToolRequest(json.dumps(TYPED), "qwen3-coder")
    call = f"<tool_call>\n<function=f>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</tool_call>"
    for before, behind in (("", ""), ("So \u20ac: ", ""), ("So: ", "\nThat is \u20ac it.")):
        content, calls = read_tool_answer(request, False, before + call + behind)
        assert [(one.name, json.loads(one.arguments)) for one in calls] == [("f", {key: expected})]
        assert content.split() == (before + behind).split()
    # But no call to a tool that is not there.
    unknown = call.replace("=f>", "=g>")
    assert read_tool_answer(request, False, unknown) == (unknown, [])


def test_types_of_sets():
    """A set that reads strings without quotes reads them as its member does."""
    text = "<tool_call>\n<function=f>\n<parameter=zip>\n12345\n</parameter>\n</function>\n</tool_call>"
    for name in ("qwen3-coder", "auto:qwen3-coder", "hermes,qwen3-coder", "qwen3-coder,hermes"):
        _, calls = read_tool_answer(ToolRequest(json.dumps(TYPED), name), False, text)
        assert [json.loads(one.arguments) for one in calls] == [{"zip": "12345"}], name


@pytest.mark.parametrize("types", [["string", {"x": 1}], ["string", 3], [], 3, None, {"x": 1}])
@pytest.mark.parametrize("name", ["hermes", "qwen3-coder"])
def test_malformed_types_are_any(name, types):
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": types}}}}]
    request = ToolRequest(json.dumps(tools), name)
    text = ToolRequest(json.dumps([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]),
                       name).reader().write([("f", {"a": 5})])
    _, calls = read_tool_answer(request, False, text)
    assert [json.loads(one.arguments)["a"] for one in calls][0] in (5, "5")


@pytest.mark.parametrize("tools", [[{"name": "f"}, {"name": "f"}], [{}], ["f"], [{"function": 3}], [{"name": 3}]])
def test_malformed_documents(tools):
    with pytest.raises(td.Error):
        ToolRequest(json.dumps(tools), "hermes").without_schemas().reader()


@pytest.mark.parametrize("name", [name for name in td.formats() if name not in BY_PLACE])
def test_free_calls_have_the_types_of_documents(name):
    """A text that looks like a number is a string where the document has a string, however it says so."""
    properties = {"a": {"enum": ["12", "b"]}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {"$ref": "#/$defs/word"},
                  "d": {"const": "true"}, "e": {"type": ["integer", "string"]}, "f": {"type": "array", "items": {"type": "string"}},
                  "g": {"anyOf": [{"type": "object", "properties": {"zip": {"$ref": "#/$defs/word"}}}, {"type": "null"}]}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties, "$defs": {"word": {"type": "string"}},
                                          "additionalProperties": False}}]
    request = ToolRequest(json.dumps(tools), name)
    either = "x34" if name == "minimax-m3" else "34"  # which writes no string that reads as another value
    for arguments in ({"a": "12", "b": "7", "c": "null", "d": "true", "e": either}, {"b": None, "e": 34, "f": ["1"], "g": {"zip": "0150"}}):
        text = request.reader().write([("f", arguments)])
        for is_constrained in (True, False):
            _, calls = read_tool_answer(request, is_constrained, text)
            assert [json.loads(one.arguments) for one in calls] == [arguments], text


def test_what_is_no_call_is_text(documents):
    request = ToolRequest(documents, "hermes")
    good = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    for bad in ("a < b and <tool", "<tool_call>", "<tool_call>{}</tool_call>", '<tool_call>\n{"name": "fly", "arguments": {}}\n</tool_call>',
                "<tool_call>\n{\"nam\u20ace", "\u20ac<tool_call>\u20ac\U0001f600", "plain", ""):
        dice = random.Random(bad)
        for _ in range(4):
            text, calls = read(AnswerReader(request, False), pieces_of(bad, dice))
            assert (text, calls) == (bad, [])
        assert read_tool_answer(request, False, bad) == (bad, [])
        # And what comes behind it is read.
        if bad.endswith(("_call>", "plain")) and bad != "<tool_call>":
            text, calls = read(AnswerReader(request, False), pieces_of(bad + good, dice))
            assert text == bad and [call[0] for call in calls] == ["add"] and calls[0][2]


GOOD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


@pytest.mark.parametrize("before, text", [
    ("<tool_call>", "<tool_call>"), ("<tool_call>\n{", "<tool_call>\n{"), ("<tool_call><tool_call>", "<tool_call><tool_call>"),
    ("<<tool_call>\n", "<<tool_call>\n"), ('So: <tool_call>\n{"name": "', 'So: <tool_call>\n{"name": "'),
    ('<tool_call>\n{"name": "get_weather", "arguments": ', ""), ('<tool_call>\n{"name": "get_weather", "arguments": {"city": ', "")])
def test_call_that_begins_where_another_breaks_is_read(before, text, documents):
    """Text of a call whose beginning was given is its own in a stream, and text in a whole answer."""
    request = ToolRequest(documents, "hermes")
    dice = random.Random(before)
    for _ in range(4):
        got, calls = read(AnswerReader(request, False), pieces_of(before + GOOD, dice))
        assert got == text and calls[-1] == ["add", '{"a": 1, "b": 2}', True]
        assert [call[2] for call in calls[:-1]] == [False] * (text == "")
    content, whole = read_tool_answer(request, False, before + GOOD)
    assert content == before and [(one.name, one.arguments) for one in whole] == [("add", '{"a": 1, "b": 2}')]


def test_call_that_begins_inside_a_delimiter_that_breaks_is_read(documents):
    request = ToolRequest(documents, "kimi-k2")
    good = request.reader().write([("add", {"a": 1, "b": 2})])
    begin = good[: good.index("<", 1)]
    for before in (begin, begin + begin, begin + "<|tool_call"):
        got, calls = read(AnswerReader(request, False), [before + good])
        assert got == before and [(name, json.loads(arguments), whole) for name, arguments, whole in calls] == [("add", {"a": 1, "b": 2}, True)]


def test_breaks_of_one_answer_make_one_reader(documents, monkeypatch):
    made = []
    without_schemas = ToolRequest.without_schemas
    monkeypatch.setattr(ToolRequest, "without_schemas", lambda self: made.append(self) or without_schemas(self))
    reader = AnswerReader(ToolRequest(documents, "hermes"), False)
    text, calls = read(reader, ["<tool_call>x" * 200 + GOOD])
    assert text == "<tool_call>x" * 200 and [call[0] for call in calls] == ["add"] and reader.broken == 200 and len(made) == 1


def test_text_that_looks_like_delimiters_is_read_in_linear_time():
    """A tool whose name is full of delimiters: each place of the text may begin a call."""
    name = "<|tool_call_start|>[" * 40
    reader, pushed = AnswerReader(ToolRequest(json.dumps([{"name": name}]), "lfm2"), False), []
    step = reader._step
    reader._step = lambda character: pushed.append(character) or step(character)
    text = name + "<|tool_call_start|>~"
    got, _ = read(reader, [text])
    assert got == text and len(text) < len(pushed) <= 6 * len(text)


@pytest.mark.parametrize("name", ["qwen3-coder", "auto:glm"])
def test_schema_that_refers_to_itself_many_times_is_read_at_once(name):
    """Each level of such a schema was looked at as often as it is referred to, to the power of the levels."""
    parts = [{"$ref": "#/$defs/x"}] * 50
    tools = [{"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/y"}},
                                          "$defs": {"x": {"anyOf": parts, "allOf": parts, "oneOf": parts},
                                                    "y": {"allOf": [{"$ref": "#/$defs/z"}] * 3}, "z": {"type": "string"}}}}]
    begin = time.process_time()
    (document,) = json.loads(ToolRequest(json.dumps(tools), name).without_schemas().tools)
    assert time.process_time() - begin < 5
    assert document["parameters"]["properties"] == {"a": {}, "b": {"type": ["string"]}}


def test_readers_whose_memory_is_full_give_up_those_of_older_memory():
    readers = _Readers()
    readers.vocabulary = td.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256], memory_bytes=300_000)
    for i in range(150):
        for at in (i, 0):  # the second is used all the time
            request = ToolRequest(json.dumps([{"name": f"tool_{at}", "parameters": {"type": "object", "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}}}}]), "hermes")
            reader = readers.get(request)
            words = bytearray(4 * reader.mask_words)
            state = reader.initial()
            for byte in reader.write([(f"tool_{at}", {"a": "x", "b": 1})]).encode():
                reader.fill_mask(state, words)
                state = reader.advance_bytes(state, bytes([byte]))
    del reader, state
    generations = {known.constraint.memory_bytes for known in readers._known._known.values()}
    assert len(generations) <= 2 and sum(generations) < 1_000_000, generations


def test_call_that_is_cut_or_breaks(documents):
    request = ToolRequest(documents, "hermes")
    begun = '<tool_call>\n{"name": "add", "arguments": {"a": 1, '
    reader = AnswerReader(request, True)
    text, calls = read(reader, [begun])
    assert text == "" and calls == [["add", '{"a": 1, ', False]] and reader.broken == 0
    assert read_tool_answer(request, True, "So: " + begun) == ("So: " + begun, [])
    reader = AnswerReader(request, False)
    good = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    text, calls = read(reader, [begun + "]] " + good])
    assert reader.broken == 1 and text == "]] " and [(one, whole) for one, _, whole in calls] == [("add", False), ("add", True)]
    # What was read of a value, and not given, is text as well.
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"s": {"type": "string"}, "a": {"type": "integer"}},
                                          "required": ["s", "a"]}}]
    bad = "not json\n</parameter>\n</function>\n</tool_call>"
    start = "<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=a>\n"
    reader = AnswerReader(ToolRequest(json.dumps(tools), "qwen3-coder"), False)
    text, calls = read(reader, [start + bad])
    assert text == bad and calls == [["f", '{"s": "12", "a": ', False]] and reader.broken == 1
    # A whole call before one that is cut.
    content, whole = read_tool_answer(request, True, good + "\n" + begun)
    assert [one.name for one in whole] == ["add"] and content.strip() == begun.strip()


@pytest.mark.parametrize("name", td.formats())
@pytest.mark.parametrize("is_constrained", [True, False])
def test_answer_that_ends_in_a_closing_delimiter(name, is_constrained, documents):
    """However the answer is cut into pieces: what is given as text is never the end of a call that was given."""
    request = ToolRequest(documents, name)
    text = request.reader().write([("get_weather", {"city": "Oslo", "days": 3})])
    for cut in range(13):
        piece, found = text[: len(text) - cut], set()
        for behind in ("", "\u20ac"):
            found = {json.dumps(read(AnswerReader(request, is_constrained), [(piece + behind)[at : at + size]
                                                                             for at in range(0, len(piece + behind), size)]))
                     for size in (1, 3, 8, 999)}
            assert len(found) == 1, (cut, found)
            content, calls = json.loads(found.pop())
            if calls and calls[0][2]:
                assert "}" not in content and "tion>" not in content.replace("</function>", ""), (cut, content)
                # It is the rest of the answer, as it was written.
                assert (piece + behind).endswith(content) and content.endswith(behind)
                whole, given = read_tool_answer(request, is_constrained, piece + behind)
                assert whole == content and [one.arguments for one in given] == [calls[0][1]]


@pytest.mark.parametrize("is_constrained", [True, False])
def test_broken_call_beside_a_whole_one_is_text(is_constrained, documents):
    request = ToolRequest(documents, "hermes")
    good = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    bad = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"]}\n</tool_call> end'
    for text, expected in ((good + "\n" + bad, bad), (bad + good, bad), ("So " + bad + good + "\n" + bad, "So " + bad + bad)):
        content, calls = read_tool_answer(request, is_constrained, text)
        assert [one.arguments for one in calls] == ['{"a": 1, "b": 2}'] and content.strip() == expected


def test_no_tokenizer(monkeypatch):
    monkeypatch.delenv("TOOLDECODE_FORMAT", raising=False)
    with pytest.raises(td.Error, match="TOOLDECODE_FORMAT") as error:
        format_for(None)
    assert error.value.code == "unknown_format" and format_for(None, "hermes") == "hermes"


def test_sets_and_descriptions(documents):
    request = ToolRequest(documents, find_format("hermes,json-fence,json"))
    for text in ('{"name": "add", "arguments": {"a": 1, "b": 2}}', '```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```'):
        content, calls = read_tool_answer(request, False, text)
        assert [one.name for one in calls] == ["add"] and not content
    with pytest.raises(td.Error) as error:
        find_format("no-such-format")
    assert error.value.code == "unknown_format" and "hermes" in str(error.value)
    with pytest.raises(td.Error) as error:
        find_format("/no/such/file.json")
    assert error.value.code == "file_unreadable"


def test_format_in_a_file(documents, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"type": "call_format", "name": "mine", "style": "json", "begin": "<call>", "end": "</call>", "name_key": "tool"}')
    request = ToolRequest(documents, find_format(str(file)))
    content, calls = read_tool_answer(request, False, 'Yes <call>{"tool": "add", "arguments": {"a": 1, "b": 2}}</call>')
    assert content == "Yes " and [(one.name, one.arguments) for one in calls] == [("add", '{"a": 1, "b": 2}')]


def template(write):
    """What renders messages, as a chat template whose calls `write` writes."""
    def render(messages, tools):
        return json.dumps(tools) + "".join(
            "<|" + turn["role"] + "|>" + ("".join(map(write, turn["tool_calls"])) if turn.get("tool_calls") else turn["content"])
            for turn in messages)
    return render


def test_format_of_a_template():
    def hermes(call):
        function = call["function"]
        return f'<tool_call>{{"name": "{function["name"]}", "arguments": {json.dumps(function["arguments"])}}}</tool_call>'

    def as_text(call):
        return f'<|python_tag|>{{"name": "{call["function"]["name"]}", "parameters": ' + call["function"]["arguments"] + "}"

    assert format_of(template(hermes)) == "auto:hermes"
    assert format_of(template(hermes), "You are Qwen, created by Alibaba Cloud.") == "auto:qwen-2.5"
    assert format_of(template(as_text)) == "auto:llama"
    assert format_of(template(lambda call: "<own>" + call["id"])) is None
    assert format_of(lambda messages, tools: "".join(turn["content"] for turn in messages)) is None

    def fails(messages, tools):
        raise KeyError("tool_calls")
    assert format_of(fails) is None


def test_format_of_a_template_that_writes_the_id_of_a_call():
    def body(call):
        return json.dumps(call["function"])[:-1]

    def mistral(call):
        if len(call["id"]) != 9:
            raise ValueError("Tool call IDs should be alphanumeric strings with length 9!")
        return "[TOOL_CALLS] [" + body(call) + ', "id": "' + call["id"] + '"}]'

    def mistral_small(call):
        return "[TOOL_CALLS]" + call["function"]["name"] + "[CALL_ID]" + call["id"] + "[ARGS]" + json.dumps(call["function"]["arguments"])

    def kimi(call):
        return ("<|tool_calls_section_begin|><|tool_call_begin|>" + call["id"] + "<|tool_call_argument_begin|>"
                + json.dumps(call["function"]["arguments"]) + "<|tool_call_end|><|tool_calls_section_end|>")

    assert format_of(template(mistral)) == "auto:mistral"
    assert format_of(template(mistral_small)) == "auto:mistral-args"
    assert format_of(template(kimi)) == "auto:kimi-k2"


def test_format_of_a_template_whose_tokens_have_a_suffix():
    def hunyuan(call):
        arguments = "".join(f"<arg_key:a1>{key}</arg_key:a1><arg_value:a1>{value}</arg_value:a1>"
                            for key, value in call["function"]["arguments"].items())
        return f'<tool_calls:a1><tool_call:a1>{call["function"]["name"]}{arguments}</tool_call:a1></tool_calls:a1>'

    assert format_of(template(hunyuan)) == "auto:hunyuan-4:a1"
    calls = [("get_weather", {"city": "Oslo"})]
    documents = json.dumps([{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}])
    text = ToolRequest(documents, "auto:hunyuan-4:a1").reader().write(calls)
    assert text.startswith("<tool_calls:a1><tool_call:a1>get_weather<arg_key:a1>city")
    assert "<tool_calls:a1>" in td.openings("auto:hunyuan-4:a1")


@pytest.mark.parametrize("name", td.formats())
def test_openings(name, documents):
    text = ToolRequest(documents, name).reader().write([("add", {"a": 1, "b": 2})])
    assert any(opening in text for opening in td.openings(name)), (text, td.openings(name))
    assert set(td.openings("hermes,json-fence")) >= set(td.openings("hermes"))
