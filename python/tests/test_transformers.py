"""Generation with transformers: a random model, and the tiny one, whose every answer conforms."""
import gc
import json
import pathlib
import time
import types

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tooldecode as td  # noqa: E402
from tooldecode import transformers as backend  # noqa: E402

MESSAGES = [{"role": "user", "content": "What is the weather in Paris for 3 days? get_weather get_weather city Paris"}]
# The tiny model's prompt, see the README.md beside it.
TEMPLATE = (
    "<|begin|><|tools|>format: {{ style | default('python') }}\n"
    "{% for tool in tools or () %}{% set f = tool.function or tool %}{{ f.name }}("
    "{% for key, schema in f.parameters.properties.items() %}{{ key }}"
    "{{ '' if key in f.parameters.required else '?' }}: {{ schema.type }}{{ '' if loop.last else ', ' }}{% endfor %}"
    "): {{ f.description }}\n{% endfor %}"
    "{% for message in messages %}<|user|>{{ message.content }}<|assistant|>{% endfor %}"
)


@pytest.fixture(scope="module")
def tokenizer(tiny):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def random_model(layers: int, size: int = 8192):
    torch.manual_seed(layers)
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=1024, bos_token_id=0, eos_token_id=4, pad_token_id=5)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model():
    return random_model(2)


WAYS = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 2.0, "top_k": 0},
    "beams": {"num_beams": 4, "do_sample": False},
    "sampled beams": {"num_beams": 3, "do_sample": True, "top_k": 0},
    "prompt lookup": {"prompt_lookup_num_tokens": 4, "do_sample": False},
    "sampled prompt lookup": {"prompt_lookup_num_tokens": 4, "do_sample": True, "top_k": 0},
    "assisted": {"assistant_model": True, "do_sample": False},
}


def with_doubles(call):
    """`parse` has integers beyond 64 bits as doubles, Python's json has them as they are."""
    return call.name, {key: float(value) if isinstance(value, int) else value for key, value in call.arguments.items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("format", ["python", "hermes", "qwen3-coder"])
def test_every_answer_conforms(model, tokenizer, tools, way, format):
    arguments = dict(WAYS[way])
    if "assistant_model" in arguments:
        arguments["assistant_model"] = random_model(1)
    constraint = td.tool_calls(backend.vocabulary_of(tokenizer, model), tools, format, choice="required", max_calls=2)
    for seed in range(2):
        torch.manual_seed(seed)
        answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, format, choice="required",
                                             constraint_options={"max_calls": 2}, max_new_tokens=60 + seed, **arguments)
        assert answer.is_whole and 1 <= len(answer.calls) <= 2 and len(answer.tokens) < 60 + seed
        text = tokenizer.backend_tokenizer.decode(answer.tokens, skip_special_tokens=False)
        assert [with_doubles(call) for call in constraint.parse(text)] == [with_doubles(call) for call in answer.calls]
        assert all(call.name in ("get_weather", "add") for call in answer.calls)


TURN = "<|user|>{{ message.content }}<|assistant|>"
WRITES_CALLS = TEMPLATE.replace(TURN, (
    "{% if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>\n"
    """{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>"""
    "{% endfor %}{% elif message.role == 'assistant' %}{{ message.content }}{% else %}" + TURN + "{% endif %}"))


def test_format_is_the_one_of_the_chat_template(tiny, model, tools, monkeypatch):
    monkeypatch.delenv("TOOLDECODE_FORMAT", raising=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)

    def generate(format=None, **more):
        return backend.generate_with_tools(model, tokenizer, MESSAGES, tools, format, choice="required", do_sample=False,
                                           max_new_tokens=60, **more)

    tokenizer.chat_template = WRITES_CALLS
    answer = generate()
    assert answer.text == "" and answer.calls and answer == generate("auto:hermes") != generate("python")
    tokenizer.chat_template = TEMPLATE  # which writes no calls
    with pytest.raises(td.Error, match="pass format") as error:
        generate()
    assert (error.value.code, error.value.where) == ("unknown_format", "chat_template")
    assert generate(template_options={"chat_template": WRITES_CALLS}) == answer
    monkeypatch.setenv("TOOLDECODE_FORMAT", "python")
    assert generate() == generate("python")


def test_format_of_another_chat_template_is_found_once(tiny, monkeypatch):
    monkeypatch.delenv("TOOLDECODE_FORMAT", raising=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = {"default": TEMPLATE, "calls": WRITES_CALLS}
    renders = []
    apply = type(tokenizer).apply_chat_template
    monkeypatch.setattr(type(tokenizer), "apply_chat_template", lambda *given, **more: renders.append(1) or apply(*given, **more))
    assert backend._format_of(tokenizer, "calls") == "auto:hermes" and renders
    renders.clear()
    assert backend._format_of(tokenizer, WRITES_CALLS) == backend._format_of(tokenizer, "calls") == "auto:hermes" and not renders
    with pytest.raises(td.Error, match="pass format"):
        backend._format_of(tokenizer, "default")
    for i in range(40):
        assert backend._format_of(tokenizer, WRITES_CALLS + f"{{# {i} #}}") == "auto:hermes"
    assert len(backend._templates[tokenizer]) == 16
    known = len(backend._templates)
    del tokenizer
    gc.collect()
    assert len(backend._templates) < known


SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
          "required": ["city", "days"], "additionalProperties": False}


class Trip:
    """As a class of Pydantic."""

    def __init__(self, text):
        self.text = text

    @classmethod
    def model_json_schema(cls):
        return SCHEMA

    @classmethod
    def model_validate_json(cls, text):
        return cls(text)


@pytest.mark.parametrize("way", ["greedy", "sampling", "beams", "prompt lookup"])
def test_json_conforms_to_its_schema(model, tokenizer, way):
    def generate(schema):
        torch.manual_seed(3)
        return backend.generate_json(model, tokenizer, MESSAGES, schema, max_new_tokens=50, **WAYS[way])

    value = generate(SCHEMA)
    assert set(value) == {"city", "days"} and len(value["city"]) <= 8 and 1 <= value["days"] <= 14
    assert generate(json.dumps(SCHEMA)) == value
    trip = generate(Trip)
    assert isinstance(trip, Trip) and json.loads(trip.text) == value


def test_json_that_has_no_room(model, tokenizer):
    with pytest.raises(td.Error) as error:
        backend.generate_json(model, tokenizer, MESSAGES, SCHEMA, max_new_tokens=3)
    assert (error.value.code, error.value.where) == ("invalid_option", "max_new_tokens")
    length = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"].shape[1]
    with pytest.raises(td.Error, match="cut after 4 tokens") as error:
        backend.generate_json(model, tokenizer, MESSAGES, SCHEMA, max_length=length + 4, do_sample=False)
    assert (error.value.code, error.value.where) == ("limit_exceeded", "max_length")


def stop_at_once(ids, scores, **_):
    return torch.ones(len(ids), dtype=torch.bool)


@pytest.mark.parametrize("option, value", [("max_time", 1e-9), ("stop_strings", ["city"]), ("stopping_criteria", [stop_at_once])])
def test_json_that_another_option_cuts(model, tokenizer, option, value):
    for limit in ({}, {"max_new_tokens": 50}, {"max_length": 1000}):
        with pytest.raises(td.Error, match=f"^{option}: the answer is cut after") as error:
            backend.generate_json(model, tokenizer, MESSAGES, SCHEMA, do_sample=False, **limit, **{option: value})
        assert (error.value.code, error.value.where) == ("limit_exceeded", option)


def test_json_that_is_whole_where_it_stops(model, tokenizer):
    schema = {"type": "object", "properties": {"a": {"const": "city"}}, "required": ["a"], "additionalProperties": False}
    assert backend.generate_json(model, tokenizer, MESSAGES, schema, stop_strings=["}"], do_sample=False) == {"a": "city"}


def test_json_options(model, tokenizer):
    value = backend.generate_json(model, tokenizer, MESSAGES, {"const": [1, 2]}, max_new_tokens=20, do_sample=False,
                                  constraint_options={"whitespace": 0})
    assert value == [1, 2]
    with pytest.raises(td.Error) as error:
        backend.generate_json(model, tokenizer, MESSAGES, {"type": "no type"})
    assert error.value.code == "malformed_schema"


def test_json_of_a_pydantic_class(model, tokenizer):
    pydantic = pytest.importorskip("pydantic")

    class Place(pydantic.BaseModel):
        days: int = pydantic.Field(ge=1, le=14)

    place = backend.generate_json(model, tokenizer, MESSAGES, Place, max_new_tokens=40, do_sample=False)
    assert isinstance(place, Place) and 1 <= place.days <= 14


def test_drafts_change_nothing(model, tokenizer, tools):
    plain = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", max_new_tokens=50, do_sample=False)
    for arguments in ({"prompt_lookup_num_tokens": 5}, {"assistant_model": random_model(1)}, {"assistant_model": model}):
        drafted = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required",
                                              max_new_tokens=50, do_sample=False, **arguments)
        assert drafted == plain


def test_vocabulary_of_a_tokenizer_with_added_tokens_is_a_new_one(tiny):
    """Also where the model has room for them, so that its size is the same."""
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(tiny), random_model(1, size=8200)
    before = backend.vocabulary_of(tokenizer, model)
    tokenizer.add_tokens(["<|added|>"], special_tokens=True)
    after = backend.vocabulary_of(tokenizer, model)
    assert before.size == after.size == 8200 and after is backend.vocabulary_of(tokenizer, model)
    assert after.encode("<|added|>", parse_special=True) == [8192] != before.encode("<|added|>", parse_special=True)


def test_batches_and_larger_logits(tokenizer, tools):
    model = random_model(1, size=8200)
    vocabulary = backend.vocabulary_of(tokenizer, model)
    assert vocabulary.size == 8200 and vocabulary is backend.vocabulary_of(tokenizer, model)
    constraint = td.tool_calls(vocabulary, tools, "python", choice="required")
    prompt = tokenizer(["call a tool", "<|user|>call it"], return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
    length = prompt["input_ids"].shape[1]
    torch.manual_seed(0)
    generated = model.generate(**prompt, do_sample=True, num_return_sequences=3, max_new_tokens=40, eos_token_id=4, pad_token_id=5,
                               logits_processor=[backend.LogitsProcessor(constraint, length, 40)])
    answers = [backend.read_answer(constraint, row[length:].tolist()) for row in generated]
    assert len(answers) == 6 and all(answer.is_whole and answer.calls for answer in answers)
    assert len({tuple(answer.tokens) for answer in answers}) > 1


def test_the_mask_is_the_constraints(model, tokenizer, tools):
    vocabulary = backend.vocabulary_of(tokenizer, model)
    constraint = td.tool_calls(vocabulary, tools, "python")
    processor = backend.LogitsProcessor(constraint, 2)
    tokens = vocabulary.encode("[get_weather(city='")
    rows = [[1, 2, *tokens], [1, 2, *tokens[:-1], 4], [1, 2, *vocabulary.encode("[get_wx" * 9)[: len(tokens)]]]
    scores = processor(torch.tensor(rows), torch.zeros(3, vocabulary.size))
    for row, after in zip(rows, scores):
        state = constraint.advance_tokens(constraint.initial(), row[2:])
        for token in range(0, vocabulary.size, 7):
            is_allowed = state is None or constraint.advance(state, token) is not None
            assert is_allowed == (after[token] == 0)
    processor._most_known = 8  # what is forgotten is found again
    for end in range(2, len(rows[0])):
        assert processor.state(torch.tensor(rows[0][2:end])) == constraint.advance_tokens(constraint.initial(), rows[0][2:end])
    assert len(processor._known) <= 8


def test_a_budget_that_is_too_small(model, tokenizer, tools):
    with pytest.raises(td.Error) as error:
        backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", max_new_tokens=3)
    assert (error.value.code, error.value.where) == ("invalid_option", "max_new_tokens")


def test_a_budget_of_a_configuration(model, tokenizer, tools):
    config = transformers.GenerationConfig(max_new_tokens=40, do_sample=False, eos_token_id=4, pad_token_id=5)
    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", generation_config=config)
    assert answer.is_whole and answer.calls and len(answer.tokens) < 40


def test_prompts_that_the_model_has_no_room_for(model, tokenizer, tools):
    long = [{"role": "user", "content": "weather in Paris " * 1024}]
    with pytest.raises(td.Error) as error:
        backend.generate_with_tools(model, tokenizer, long, tools, "hermes", choice="required")
    assert (error.value.code, error.value.where) == ("limit_exceeded", "messages")


def test_answers_have_room_without_being_told(model, tokenizer, tools):
    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", do_sample=False)
    assert answer.is_whole and answer.calls and not backend.read_answer(
        td.tool_calls(backend.vocabulary_of(tokenizer, model), tools, "hermes"), answer.tokens[:5]).is_whole


@pytest.mark.parametrize("way", WAYS)
def test_traces(model, tokenizer, tools, way):
    arguments = dict(WAYS[way])
    if "assistant_model" in arguments:
        arguments["assistant_model"] = model  # whose drafts are right
    vocabulary, seen = backend.vocabulary_of(tokenizer, model), []
    streamer = types.SimpleNamespace(put=lambda value: seen.append(value.numel()), end=lambda: seen.append("end"))
    if "num_beams" not in arguments:
        arguments["streamer"] = streamer
    torch.manual_seed(3)
    begin = time.perf_counter()
    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", max_new_tokens=60,
                                         **arguments)
    microseconds = (time.perf_counter() - begin) * 1e6
    trace = json.loads(json.dumps(answer.trace))
    tokens, totals = trace["tokens"], trace["totals"]
    assert [token["id"] for token in tokens] == [*answer.tokens, vocabulary.end_tokens[0]] and trace["finish"] == "end"
    assert [token.get("end", False) for token in tokens] == [False] * len(answer.tokens) + [True]
    assert trace["text"] == "".join(token["text"] for token in tokens) == vocabulary.decode(answer.tokens).decode("utf-8", "replace")
    assert tokens[-1]["name"] == "<|end|>" and tokens[-1]["text"] == ""

    # Each mask again.
    constraint = td.tool_calls(vocabulary, tools, "hermes", choice="required")
    completions, state, words = td.Completions(constraint), constraint.initial(), bytearray(4 * vocabulary.mask_words)
    for i, token in enumerate(tokens):
        constraint.fill_mask(state, words)
        completions.narrow(state, 60 - i, words)
        assert token["allowed"] == bin(int.from_bytes(words, "little")).count("1")
        assert (token["kind"] == "forced") == (token["allowed"] == 1)
        state = constraint.advance(state, token["id"])

    assert totals["tokens"] == len(answer.tokens)
    assert totals["forced_tokens"] == sum(token["kind"] == "forced" for token in tokens[:-1]) > 0
    times = [totals[f"{phase}_microseconds"] for phase in ("prefill", "model", "constraint")]
    assert min(times) > 0 and sum(times) < microseconds
    if "num_beams" in arguments:
        assert "microseconds" not in tokens[0] and totals["accepted_tokens"] == 0 and totals["passes"] >= len(tokens)
        return
    assert abs(sum(token["microseconds"] for token in tokens) - sum(times)) < 0.5 * microseconds
    assert totals["passes"] + totals["accepted_tokens"] == len(tokens)
    assert seen[-1] == "end" and sum(seen[1:-1]) >= len(tokens) and len(seen) - 2 == totals["passes"]
    if "assistant_model" in arguments:
        assert totals["accepted_tokens"] > 0 and "drafted" in {token["kind"] for token in tokens}
    elif "prompt_lookup_num_tokens" not in arguments:
        assert {token["kind"] for token in tokens} <= {"forced", "sampled"}


def test_traces_of_answers_that_are_cut(model, tokenizer, tools):
    length = tokenizer.apply_chat_template(MESSAGES, tools=tools, add_generation_prompt=True, return_tensors="pt",
                                           return_dict=True)["input_ids"].shape[1]
    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", do_sample=False,
                                         max_length=length + 7)
    assert not answer.is_whole and answer.trace["finish"] == "length" and not answer.calls
    assert [token["id"] for token in answer.trace["tokens"]] == answer.tokens and len(answer.tokens) == 7
    assert backend.read_answer(td.tool_calls(backend.vocabulary_of(tokenizer, model), tools, "hermes"), answer.tokens).trace is None


def test_scores_are_not_written_to(model, tokenizer, tools):
    constraint = td.tool_calls(backend.vocabulary_of(tokenizer, model), tools, "python", choice="required")
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        scores = torch.randn(2, constraint.vocabulary_size).to(kind)
        before = scores.clone()
        masked = backend.LogitsProcessor(constraint, 1)(torch.tensor([[1], [2]]), scores)
        mask = bytearray(4 * constraint.mask_words)
        constraint.fill_mask(constraint.initial(), mask)
        allowed = torch.tensor([mask[t // 8] >> t % 8 & 1 for t in range(constraint.vocabulary_size)], dtype=torch.bool)
        assert torch.equal(scores, before) and torch.equal(masked, torch.where(allowed, before, -torch.inf))


def test_functions_as_tools_and_reasoning(model, tokenizer):
    def add(a: int, b: int):
        """
        Adds two numbers.

        Args:
            a: The one.
            b: The other.
        """

    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, [add], "hermes", choice="required", do_sample=False,
                                         reasoning=("", "</think>"), max_new_tokens=80)
    assert answer.is_whole and answer.calls[0].name == "add" and set(answer.calls[0].arguments) == {"a", "b"}


def test_the_tiny_model(tiny, tokenizer, tools):
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32).eval()
    message = [{"role": "user", "content": "What is the weather in Paris?"}]
    answers = [backend.generate_with_tools(model, tokenizer, message, tools[:1], "python", max_new_tokens=60, **arguments)
               for arguments in ({"do_sample": False}, {"num_beams": 3}, {"prompt_lookup_num_tokens": 3})]
    assert [call.name for call in answers[0].calls] == ["get_weather"] and answers[0].calls[0].arguments["city"] == "Paris"
    assert answers[2] == answers[0] and all(answer.is_whole for answer in answers)
