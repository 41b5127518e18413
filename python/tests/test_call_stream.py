"""Events, whole and in pieces, against what parse gives."""
import json
import random

import pytest
import tooldecode as td
from stream_events import calls_of, pieces_of


def joined(events):
    """Text, and calls, of the events of an answer."""
    text, calls = calls_of(event for event in events if event.kind in ("text", "call_begin", "arguments", "call_end"))
    assert all(is_whole for _, _, is_whole in calls)
    return text, [td.ToolCall(name, json.loads(arguments)) for name, arguments, _ in calls]


def test_events_join_to_parse(vocabulary, tools, end):
    generator = random.Random(3)
    for name in td.formats():
        constraint = td.tool_calls(vocabulary, tools, name)
        calls = [td.ToolCall("get_weather", {"city": "Sevilla \u20ac '\"\\", "days": 2}), td.ToolCall("add", {"a": 1, "b": -20})]
        text = constraint.write(calls[:1] if name in ("react", "toolken", "tooldec") else calls)
        data = text.encode()
        for _ in range(5):
            stream, events = td.CallStream(constraint), []
            for piece in pieces_of(data, generator):
                events += stream.push(piece)
            events += stream.finish()
            assert joined(events)[1] == constraint.parse(text)
            assert events[-1].kind == "answer_end" and stream.finish() == []


def test_tokens_and_text(vocabulary, tools, end):
    constraint = td.tool_calls(vocabulary, tools, "hermes", reasoning=True)
    text = 'Let me see. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    stream, events = td.CallStream(constraint), []
    for token in list(("<think>why not</think>" + text).encode()) + [end]:
        events += stream.push(token)
    found, calls = joined(events)
    assert found.startswith("Let me see.") and calls == [("add", {"a": 1, "b": 2})]
    assert "".join(e.text for e in events if e.kind == "reasoning") == "why not"
    assert events[-1] == td.StreamEvent("answer_end", 1, "")


def test_errors(vocabulary, tools):
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
    stream = td.CallStream(constraint)
    with pytest.raises(td.Error) as error:
        stream.push(b"<tool_call>\n{\"name\": \"fly")
    assert (error.value.code, error.value.where) == ("malformed_call", "byte 22")
    for token in (-1, vocabulary.size, 2**40):
        with pytest.raises(td.Error) as error:
            td.CallStream(constraint).push(token)
        assert error.value.code == "unknown_token"
    with pytest.raises(TypeError):
        td.CallStream(td.regex(vocabulary, "a"))
    with pytest.raises(TypeError):
        td.CallStream(constraint).push("text")
    with pytest.raises(td.Error) as error:
        constraint.parse('<tool_call>\n{"name": "add"')
    assert error.value.code == "malformed_call"
