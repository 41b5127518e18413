"""Constraints, states, and masks against brute force."""
import collections.abc
import copy
import json
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tooldecode as td
from tooldecode._answer import read_value

TAG = {"type": "structural_tag",
       "format": {"type": "tag", "begin": "<f>", "end": "</f>",
                  "content": {"type": "json_schema", "json_schema": {"type": "integer"}}}}
FACTORIES = {
    "tool_calls": lambda v, tools: td.tool_calls(v, tools, "hermes"),
    "required": lambda v, tools: td.tool_calls(v, tools, "python", choice="required"),
    "reasoning": lambda v, tools: td.tool_calls(v, json.dumps(tools), "hermes", reasoning=True),
    "json_schema": lambda v, tools: td.json_schema(v, tools[0]["parameters"]),
    "regex": lambda v, tools: td.regex(v, "(ab|cd)+[0-9]{2,4}é?"),
    "ebnf": lambda v, tools: td.ebnf(v, 'root ::= "a" root "b" | "c"'),
    "lark": lambda v, tools: td.lark(v, 'start: "a" start "b" | NAME\nNAME: /[c-f]+/\n%ignore " "'),
    "structural_tag": lambda v, tools: td.structural_tag(v, TAG),
    "choice": lambda v, tools: td.choice(v, ["name", b"get_weather", "\u20ac"]),
}


def allowed(words: np.ndarray, size: int) -> set[int]:
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    assert not bits[size:].any()
    return set(np.flatnonzero(bits[:size]).tolist())


@pytest.fixture(params=FACTORIES, scope="module")
def constraint(request, vocabulary, tools):
    return FACTORIES[request.param](vocabulary, tools)


def test_mask_is_what_advance_accepts(constraint, vocabulary, end):
    generator = random.Random(1)
    words = np.empty(constraint.mask_words, np.int32)
    for _ in range(8):
        state = constraint.initial()
        for _ in range(30):
            constraint.fill_mask(state, words)
            brute_force = {t for t in range(vocabulary.size) if constraint.advance(state, t) is not None}
            assert allowed(words, vocabulary.size) == brute_force
            assert (end in brute_force) == constraint.is_accepting(state)
            assert brute_force
            state = constraint.advance(state, generator.choice(sorted(brute_force)))
            if constraint.is_finished(state):
                break


def test_finished_allows_the_end_alone(vocabulary, end):
    constraint = td.choice(vocabulary, ["a"])
    state = constraint.advance_tokens(constraint.initial(), [ord("a"), end])
    words = np.empty(constraint.mask_words, np.uint32)
    constraint.fill_mask(state, words)
    assert constraint.is_finished(state) and allowed(words, vocabulary.size) == {end}


def test_bytes_and_tokens_lead_to_equal_states(constraint, vocabulary):
    state = constraint.initial()
    words = np.empty(constraint.mask_words, np.int32)
    generator = random.Random(2)
    for _ in range(20):
        constraint.fill_mask(state, words)
        token = generator.choice(sorted(allowed(words, vocabulary.size)))
        text = vocabulary.decode([token])
        after = constraint.advance(state, token)
        if not text:
            break
        assert constraint.advance_bytes(state, text) == after
        assert hash(constraint.advance_bytes(state, text)) == hash(after)
        state = after


def test_ids_that_are_none_are_not_allowed(vocabulary):
    constraint = td.regex(vocabulary, "[^]*")
    for token in (-1, vocabulary.size, 2**31, 2**40, -2**40):
        assert constraint.advance(constraint.initial(), token) is None
    with pytest.raises(TypeError):
        constraint.advance(constraint.initial(), "a")


def test_validate_and_forced(vocabulary):
    constraint = td.choice(vocabulary, ["name is", "name was"])
    tokens = list(b"name w") + [ord("x")]
    assert constraint.validate(constraint.initial(), tokens) == 6
    assert constraint.validate(constraint.initial(), np.array(tokens[:3])) == 3
    assert constraint.advance_tokens(constraint.initial(), tokens) is None
    assert constraint.forced(constraint.initial()) == b"name "
    with pytest.raises(td.Error, match="tokenizer"):
        constraint.forced_tokens(constraint.initial(), b"")


def test_parse_reads_and_validate_judges(vocabulary, tools, end):
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
    right, wrong = (constraint.write([td.ToolCall("get_weather", {"city": "Paris", "days": days})]) for days in (3, 99))
    assert constraint.parse(right) == [("get_weather", {"city": "Paris", "days": 3})]
    assert constraint.parse(wrong) == [("get_weather", {"city": "Paris", "days": 99})]  # whatever the schema says
    tokens = [*right.encode(), end]
    assert constraint.validate(constraint.initial(), tokens) == len(tokens)
    tokens = [*wrong.encode(), end]
    assert constraint.validate(constraint.initial(), tokens) == wrong.index("99") + 1  # the second digit is too much
    assert "does not judge" in td.ToolCallFSM.parse.__doc__ and "Judges" in td.ToolCallFSM.validate.__doc__


def test_states_are_values(vocabulary):
    constraint = td.regex(vocabulary, "ab*")
    first = constraint.initial()
    one = constraint.advance(first, ord("a"))
    assert first == constraint.initial() and one != first and one != 3 and one is not None
    assert copy.copy(one) == one and copy.deepcopy(one) == one and len({first, one, copy.copy(one)}) == 2
    with pytest.raises(TypeError):
        pickle.dumps(one)
    with pytest.raises(TypeError):
        td.State()


def test_states_of_others_are_refused(vocabulary, tools):
    one, other = td.regex(vocabulary, "ab*"), td.regex(vocabulary, "ab*")
    theirs = other.advance(other.initial(), ord("a"))
    words = np.full(one.mask_words, 7, np.int32)
    calls = (lambda: one.advance(theirs, 0), lambda: one.fill_mask(theirs, words), lambda: one.is_accepting(theirs),
             lambda: one.is_finished(theirs), lambda: one.forced(theirs), lambda: one.validate(theirs, [1]),
             lambda: one.advance_bytes(theirs, b"a"), lambda: one.fill_masks([one.initial(), theirs], np.zeros((2, one.mask_words), np.int32)),
             lambda: td.Completions(one).shortest(theirs))
    for call in calls:
        with pytest.raises(td.Error) as error:
            call()
        assert error.value.code == "unknown_state"
    assert (words == 7).all()
    # One that was never made holds nothing to look at.
    with pytest.warns(RuntimeWarning), pytest.raises(TypeError):
        one.advance(td.State.__new__(td.State), 0)
    # The memory of what has gone lives as long as its states may be asked about.
    kept = td.regex(vocabulary, "x+").initial()
    with pytest.raises(td.Error):
        one.advance(kept, 0)


def test_renew_gives_up_memory():
    tokens = [bytes([i]) for i in range(256)] + [b"<end>"]
    vocabulary = td.Vocabulary.from_bytes(tokens, [256], memory_bytes=1)
    one = td.regex(vocabulary, "ab*")
    other = one.renew()
    with pytest.raises(td.Error, match="given up"):
        other.advance(one.initial(), ord("a"))
    assert one.advance(one.initial(), ord("a")) is not None
    large = td.Vocabulary.from_bytes(tokens, [256])
    one = td.regex(large, "ab*")
    assert one.renew().advance(one.initial(), ord("a")) is not None


def test_errors_have_code_and_place(vocabulary, tools):
    def refused(make, *arguments, **options):
        with pytest.raises(td.Error) as error:
            make(vocabulary, *arguments, **options)
        assert str(error.value) and pickle.loads(pickle.dumps(error.value)).code == error.value.code
        return error.value.code, error.value.where

    assert refused(td.regex, "a(b") == ("malformed_pattern", "byte 1")
    assert refused(td.json_schema, {"properties": {"a": {"type": "strin"}}}) == ("malformed_schema", "#/properties/a/type")
    assert refused(td.json_schema, '{"type"')[0] == "malformed_json"
    assert refused(td.ebnf, 'root ::= "a')[0] == "malformed_grammar"
    assert refused(td.lark, 'start: B\nB: "a') == ("malformed_grammar", "line 2, column 4")
    assert refused(td.structural_tag, {"type": "structural_tag", "format": {"type": "x"}})[1].startswith("#/format")
    assert refused(td.choice, [])[0] in ("invalid_option", "unsatisfiable_schema", "malformed_schema")
    assert refused(td.choice, ["a", 3]) == ("invalid_option", "texts/1")
    assert refused(td.choice, [b"a", b"\xff"]) == ("invalid_option", "texts/1")
    assert refused(td.json_schema, '{"const": "\ud83d"}') == ("malformed_json", "")
    assert refused(td.tool_calls, [{"name": "f", "description": "\ud83d"}], "hermes")[0] == "malformed_json"
    assert refused(td.tool_calls, tools, "no-such")[0] == "unknown_format"
    assert refused(td.tool_calls, tools, "hermes", choice="maybe") == ("invalid_option", "choice")
    assert refused(td.tool_calls, tools, "hermes", choice="named", name="fly")[0] == "unknown_tool"
    assert refused(td.tool_calls, tools, "hermes", name="add") == ("invalid_option", "name")
    assert refused(td.tool_calls, tools + tools, "hermes")[0] == "duplicate_tool"
    assert refused(td.json_schema, {"type": "string", "pattern": "(a|b){1,500}c{1,500}"}, max_steps=10)[0] == "limit_exceeded"
    assert refused(td.tool_calls, tools, "hermes", text_schema='{"a"')[1].startswith("text_schema")


def test_errors_of_paths_that_are_not_unicode_name_the_path(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    with pytest.raises(td.Error) as error:
        td.Vocabulary.load(path)
    assert error.value.code == "file_unreadable" and error.value.where == path


def test_explain_refusal_names_byte_and_keyword(vocabulary):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 30}}}
    constraint = td.json_schema(vocabulary, schema)
    assert constraint.explain_refusal('{"n": 3}') is None
    refused = constraint.renew().explain_refusal(b'{"n": 31}')
    assert refused.at == 7 and not refused.too_short and (refused.line, refused.column) == (1, 8)
    assert refused.excerpt[refused.caret] == "1" and refused.reason == '"1" cannot follow'
    assert refused.rules == [("#/properties/n/maximum", "30")] and refused.value_at == "/n"
    assert str(refused) == refused.text and refused.text.splitlines()[2] == " " * 7 + "^"
    assert refused.expected in refused.text
    assert constraint.explain_refusal('{"n": "x"}').rules == [("#/properties/n/type", '"integer"')]
    assert constraint.explain_refusal('{"n": 3').too_short
    calls = td.tool_calls(vocabulary, [{"name": "f", "parameters": schema}], "python", choice="required")
    assert calls.explain_refusal("[f(n=31)]").rules == [("#/0/parameters/properties/n/maximum", "30")]
    assert td.regex(vocabulary, "a\u00e9").explain_refusal("a\u00e8").rules == []


def test_a_tool_that_cannot_be_enforced_is_relaxed_or_dropped(vocabulary):
    good = {"name": "good", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    bad = {"name": "bad", "parameters": {"type": "object", "properties": {"s": {"type": "string", "pattern": r"(a)\1"}}}}

    def accepted(calls, text):
        return calls.advance_bytes(calls.initial(), text.encode()) is not None

    with pytest.raises(td.Error):
        td.tool_calls(vocabulary, [good, bad], "python")
    strict = td.tool_calls(vocabulary, [good], "python", choice="required")
    assert strict.not_enforced == []
    relaxed = td.tool_calls(vocabulary, [good, bad], "python", choice="required", enforcement="relax")
    (tool, pointer, text), = relaxed.not_enforced
    assert (tool, pointer) == ("bad", "#/1/parameters/properties/s/pattern")
    assert text.startswith('"pattern" is not enforced: #/1/')
    assert accepted(relaxed, "[bad(s='x')]") and not accepted(relaxed, "[good(n='x')]")
    dropped = td.tool_calls(vocabulary, [good, bad], "python", choice="required", enforcement="drop")
    assert [entry[0] for entry in dropped.not_enforced] == ["bad"]
    assert accepted(dropped, "[good(n=1)]") and not accepted(dropped, "[bad(")
    with pytest.raises(td.Error):
        td.tool_calls(vocabulary, [good, bad], "python", choice="named", name="bad", enforcement="drop")
    with pytest.raises(td.Error):
        td.tool_calls(vocabulary, [good], "python", enforcement="some")


def test_notes_name_what_documents_do_not_say_in_json_schema(vocabulary):
    properties = {"s": {"type": "str", "minLenght": 3, "format": "foo"}, "t": {"type": "string", "pattern": r"(a)\1"}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties, "requierd": ["s"], "additionalProperties": False}}
    calls = td.tool_calls(vocabulary, [tool], "python", enforcement="relax")
    assert all(isinstance(note, td.Note) and note.tool == "f" and note.text for note in calls.notes)
    at = "#/0/parameters"
    assert {(note.reading, note.pointer) for note in calls.notes} == {
        ("type_name", f"{at}/properties/s/type"), ("unknown_keyword", f"{at}/properties/s/minLenght"),
        ("unknown_format", f"{at}/properties/s/format"), ("unknown_keyword", f"{at}/requierd"),
        ("widened_schema", f"{at}/properties/t/pattern")}
    assert '"requierd" is no keyword and says nothing; "required" is one' in [note.text for note in calls.notes]
    assert calls.not_enforced == [(note.tool, note.pointer, note.text) for note in calls.notes if note.reading == "widened_schema"]
    good = {"type": "object", "properties": {"s": {"type": "string"}}, "additionalProperties": False}
    assert td.tool_calls(vocabulary, [{"name": "f", "parameters": good}], "python").notes == []


@pytest.mark.parametrize("reading, parameters", [
    ("null_keyword", {"properties": {"a": {}}, "required": None}), ("optional_keyword", {"properties": {"a": {"optional": True}}}),
    ("required_flag", {"properties": {"a": {"required": True}}}), ("number_text", {"properties": {"a": {"minimum": "0"}}}),
    ("array_enum", {"properties": {"a": {"type": "array", "enum": ["x"]}}}),
    ("enum_over_type", {"properties": {"a": {"type": "string", "enum": [1, "x"]}}}),
    ("nullable", {"properties": {"a": {"type": "string", "nullable": True}}}), ("closed_object", {"properties": {"a": {}}}),
    ("no_arguments", {}), ("unknown_required", {"properties": {"a": {}}, "required": ["b"]})])
def test_each_reading_has_a_note_with_its_name(vocabulary, reading, parameters):
    calls = td.tool_calls(vocabulary, [{"name": "f", "parameters": {"type": "object"} | parameters}], "hermes")
    assert reading in [note.reading for note in calls.notes]


def test_notes_name_property_maps_and_tools_that_are_not_enforced(vocabulary):
    calls = td.tool_calls(vocabulary, [{"name": "f", "parameters": {"a": {"type": "string"}}}], "hermes")
    assert "property_map" in [note.reading for note in calls.notes]
    bad = {"name": "bad", "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}}
    calls = td.tool_calls(vocabulary, [{"name": "good"}, bad], "hermes", enforcement="drop")
    assert ("bad", "dropped_tool") in [(note.tool, note.reading) for note in calls.notes]


def test_a_class_may_be_a_schema(vocabulary):
    class Person:  # as Pydantic's are
        @classmethod
        def model_json_schema(cls):
            return {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
                    "additionalProperties": False}

    constraint = td.json_schema(vocabulary, Person)
    assert constraint.is_accepting(constraint.advance_bytes(constraint.initial(), b'{"age": 3}'))
    assert constraint.advance_bytes(constraint.initial(), b'{"name"') is None


def test_objects_say_what_they_are(vocabulary, tools):
    assert repr(td.regex(vocabulary, "a")) == f"<tooldecode.Constraint over {vocabulary.size} tokens>"
    names = ", ".join(tool["name"] for tool in tools)
    assert repr(td.tool_calls(vocabulary, tools, "hermes")) == f"<tooldecode.ToolCallFSM of {names}>"


def test_formats_write_and_parse(vocabulary, tools):
    calls = [td.ToolCall("get_weather", {"city": "Köln \u20ac", "days": 3}), td.ToolCall("add", {"a": 1e30, "b": -2})]
    assert "hermes" in td.formats() and len(td.formats()) >= 15
    for name in td.formats():
        constraint = td.tool_calls(vocabulary, tools, name)
        assert isinstance(constraint, td.ToolCallFSM) and isinstance(constraint, td.Constraint)
        few = calls[:1] if name in ("react", "toolken", "tooldec") else calls
        assert constraint.parse(constraint.write(few)) == few


def test_a_format_is_a_dict_or_its_text(vocabulary, tools):
    form = {"type": "call_format", "name": "mine", "style": "json", "begin": "<call>", "end": "</call>"}
    calls = [td.ToolCall("add", {"a": 1, "b": 2})]
    for given in (form, json.dumps(form)):
        constraint = td.tool_calls(vocabulary, tools, given)
        assert constraint.write(calls).startswith("<call>{")
        assert constraint.parse(constraint.write(calls)) == calls
    with pytest.raises(td.Error, match="did you mean begin"):
        td.tool_calls(vocabulary, tools, {**form, "begn": "<"})


def test_threads_and_batches(vocabulary, tools):
    constraints = [td.tool_calls(vocabulary, tools, name) for name in ("hermes", "python", "qwen3-coder", "glm")] * 8
    texts = [c.write([td.ToolCall("add", {"a": i, "b": i * i})]).encode() for i, c in enumerate(constraints)]
    states = [c.advance_bytes(c.initial(), text[: len(text) // 2]) for c, text in zip(constraints, texts)]
    words = vocabulary.mask_words
    expected = np.zeros((len(states), words), np.int32)
    for c, s, row in zip(constraints, states, expected):
        td_mask = np.zeros(words, np.int32)
        c.fill_mask(s, td_mask)
        row[:] = td_mask
    pool = td.ThreadPool(2)
    assert pool.size == 2
    for use in (None, pool):
        found = np.zeros((len(states) + 1, words), np.int32)
        td.fill_masks(constraints, states, found, pool=use)
        assert (found[:-1] == expected).all() and not found[-1].any()
        rows = list(range(len(states), 0, -1))
        td.fill_masks(constraints, states, found, rows, use)
        assert (found[rows] == expected).all()

    def walk(seed: int) -> int:
        constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
        generator, state, mask = random.Random(seed), constraint.initial(), np.zeros(words, np.int32)
        for step in range(60):
            constraint.fill_mask(state, mask)
            state = constraint.advance(state, generator.choice(sorted(allowed(mask, vocabulary.size))))
            if constraint.is_finished(state):
                break
        return step

    with ThreadPoolExecutor(4) as executor:
        threaded = list(executor.map(walk, range(12)))
    assert threaded == [walk(seed) for seed in range(12)]


def test_a_batch_over_rows_with_shown_masks_equals_a_new_batch(vocabulary, tools):
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
    generator, words = random.Random(4), vocabulary.mask_words
    states: list = [constraint.initial()] * 8
    shown: list = [None] * 8
    held = np.full((8, words), 3, np.int32)
    for step in range(40):
        fresh = np.zeros((8, words), np.int32)
        constraint.fill_masks(states, fresh)
        if step % 2:
            td.fill_masks([constraint] * 8, states, held, shown=shown)
        else:
            constraint.fill_masks(states, held, shown=shown)
        assert (held == fresh).all(), step
        shown = [None if generator.random() < 0.1 else state for state in states]
        states = [state if constraint.is_finished(state) else
                  constraint.advance(state, generator.choice(sorted(allowed(row, vocabulary.size))))
                  for state, row in zip(states, fresh)]
    with pytest.raises(td.Error) as error:
        constraint.fill_masks(states, held, shown=[None])
    assert error.value.where == "shown"
    with pytest.raises(td.Error) as error:
        constraint.fill_masks(states, held, shown=[None] * 7 + [1])
    assert error.value.where == "shown/7"


def test_shown_masks_of_a_sequence_that_makes_its_states_equal_a_new_batch(vocabulary, tools):
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")

    class Made(collections.abc.Sequence):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            if index >= 64:
                raise IndexError
            return constraint.initial()

    masks = np.zeros((64, vocabulary.mask_words), np.int32)
    constraint.fill_masks(Made(), masks)
    state = constraint.initial()
    constraint.fill_mask(state, first := np.zeros(vocabulary.mask_words, np.int32))
    after = constraint.advance(state, min(allowed(first, vocabulary.size)))
    constraint.fill_masks([after] * 64, masks, shown=Made())
    fresh = np.zeros_like(masks)
    constraint.fill_masks([after] * 64, fresh)
    assert (masks == fresh).all()


def test_prepare_computes_masks_ahead_and_changes_none(vocabulary, tools):
    tool = {"name": "prepared_tool", "parameters": {"type": "object", "properties": {"a": {"type": "integer"},
                                                                                      "b": {"enum": ["x", "y"]}}}}
    constraint = td.tool_calls(vocabulary, [*tools, tool], "hermes", choice="required")
    assert constraint.prepare(max_masks=0) == 0
    assert constraint.prepare(max_masks=200) > 20
    assert constraint.prepare(max_masks=200) == 0
    state = constraint.advance_bytes(constraint.initial(), b'<tool_call>\n{"name": "prepared_tool", "arguments": {"')
    assert constraint.prepare(state, pool=td.ThreadPool(1)) == 0  # in the background
    row = np.zeros(vocabulary.mask_words, np.int32)
    for byte in b'a": 12, "b": "x"}}\n</tool_call>':
        constraint.fill_mask(state, row)
        assert allowed(row, vocabulary.size) == {t for t in range(vocabulary.size) if constraint.advance(state, t)}
        state = constraint.advance_bytes(state, bytes([byte]))


def test_batches_are_checked_before_they_are_written(vocabulary):
    constraint = td.regex(vocabulary, "ab*")
    state, words = constraint.initial(), constraint.mask_words
    array = np.full((3, words), 5, np.int32)
    for states, rows, where in (([state] * 4, None, "row"), ([state] * 2, [0], "rows"), ([state] * 2, [1, 1], "rows/1"),
                                ([state], [3], "row")):
        with pytest.raises(td.Error) as error:
            constraint.fill_masks(states, array, rows)
        assert error.value.where == where
    with pytest.raises(td.Error):
        td.fill_masks([constraint], [state, state], array)
    with pytest.raises(td.Error):
        td.fill_masks([constraint] * 2, [state], array)
    with pytest.raises(TypeError):
        constraint.fill_masks([state], array, [-1])
    for states in ([state, None], [state, "a"]):
        with pytest.raises(td.Error) as error:
            constraint.fill_masks(states, array)
        assert (error.value.code, error.value.where) == ("invalid_option", "states/1")
    assert (array == 5).all()
    constraint.fill_masks([state], array, [1])
    assert (array[[0, 2]] == 5).all() and not (array[1] == 5).all()


@pytest.mark.parametrize("wrong", [None, "a", 3])
def test_constraints_of_a_batch_that_are_none_are_errors_with_their_place(vocabulary, wrong):
    constraint = td.regex(vocabulary, "ab*")
    array = np.full((2, constraint.mask_words), 5, np.int32)
    with pytest.raises(td.Error, match="must be a Constraint") as error:
        td.fill_masks([constraint, wrong], [constraint.initial()] * 2, array)
    assert (error.value.code, error.value.where) == ("invalid_option", "constraints/1") and (array == 5).all()


@pytest.mark.parametrize("wrong, code", [
    (None, "invalid_option"), (3, "invalid_option"), ({"name": "add"}, "invalid_option"), ((1, {}), "invalid_option"),
    (("add",), "invalid_option"), (("add", {}, {}), "invalid_option"), (("\ud800", {}), "invalid_option"),
    (("add", None), "malformed_call"), (("add", [1]), "malformed_call"), (("add", "{"), "malformed_json"),
    (("add", {"a": {1}}), "malformed_json"), (("add", {"a": float("nan")}), "malformed_json")])
def test_what_is_no_call_is_not_written_and_is_an_error_with_its_place(vocabulary, tools, wrong, code):
    calls = td.tool_calls(vocabulary, tools, "python")
    good = ["add", '{"a": 1, "b": 2}']
    assert calls.write([good]) == "[add(a=1, b=2)]"
    with pytest.raises(td.Error) as error:
        calls.write([good, wrong])
    assert (error.value.code, error.value.where) == (code, "calls/1")


def test_a_document_that_has_no_json_is_an_error(vocabulary):
    itself = []
    itself.append(itself)
    for document in ({1, 2}, itself, object()):
        with pytest.raises(td.Error, match="has no JSON") as error:
            td.json_schema(vocabulary, document)
        assert error.value.code == "malformed_json"


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_document_may_raise_an_error_whose_message_is_no_unicode(vocabulary, kind):
    class Document(dict):
        def items(self):
            raise kind("\ud800")

    with pytest.raises(td.Error, match="has no JSON: it raises an error") as error:
        td.json_schema(vocabulary, {"a": Document(b=1)})
    assert error.value.code == "malformed_json"


@pytest.mark.parametrize("schema, text, is_whole", [
    ({"type": "object"}, '{"a": [1]}', True), ({"type": "object"}, '{"a": [1]', False), ({"type": "string"}, '"a1"', True),
    ({"type": "string"}, '"a1', False), ({"enum": ["a", True]}, "true", True), ({"type": "array"}, "[12", False),
    ({"type": "integer"}, "12", False), ({"type": "integer"}, "-", False), ({"type": "integer"}, "", False)])
def test_a_value_without_an_end_token_is_read_where_it_is_whole(vocabulary, end, schema, text, is_whole):
    """More digits could follow those of a number."""
    constraint = td.json_schema(vocabulary, schema)
    tokens = list(text.encode())
    for more in ([], [ord("x")]):  # as padding
        if is_whole:
            assert read_value(constraint, vocabulary, tokens + more, schema, "") == json.loads(text)
        else:
            for option, said in (("max_length", "max_length: the answer is cut"), ("", "the answer is cut")):
                with pytest.raises(td.Error, match=f"^{said} after [0-9]+ tokens") as error:
                    read_value(constraint, vocabulary, tokens + more, schema, option)
                assert (error.value.code, error.value.where) == ("limit_exceeded", option)
    if is_whole or text == "12":
        assert read_value(constraint, vocabulary, [*tokens, end], schema, "") == json.loads(text)


def test_completions_end_in_time(vocabulary, tools, end):
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
    words = np.empty(constraint.mask_words, np.int32)
    shortest = td.Completions(constraint).shortest(constraint.initial())
    for seed, budget in enumerate((shortest, shortest + 1, shortest + 20)):
        completions, state, generator, tokens = td.Completions(constraint), constraint.initial(), random.Random(seed), []
        while not constraint.is_finished(state):
            constraint.fill_mask(state, words)
            completions.narrow(state, budget - len(tokens), words)
            tokens.append(generator.choice(sorted(allowed(words, vocabulary.size))))
            state = constraint.advance(state, tokens[-1])
        assert len(tokens) <= budget
        assert constraint.parse(vocabulary.decode(tokens).decode("utf-8", "replace"))


def test_builds_in_the_background(vocabulary, tools):
    with ThreadPoolExecutor(2) as executor:
        futures = [executor.submit(td.tool_calls, vocabulary, tools, name) for name in td.formats()]
        refused = executor.submit(td.regex, vocabulary, "(")
        assert all(future.result().initial() for future in futures)
        with pytest.raises(td.Error):
            refused.result()
