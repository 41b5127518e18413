"""Generation with transformers: a random model, and the tiny one, whose every answer conforms."""
import pathlib

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tooldecode as td  # noqa: E402
from tooldecode import transformers as backend  # noqa: E402

MESSAGES = [{"role": "user", "content": "What is the weather in Paris for 3 days? get_weather get_weather city Paris"}]
# The tiny model's prompt, see the README.md beside it.
TEMPLATE = (
    "<|begin|><|tools|>format: {{ style | default('python') }}\n"
    "{% for tool in tools %}{% set f = tool.function or tool %}{{ f.name }}("
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


def test_drafts_change_nothing(model, tokenizer, tools):
    plain = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", max_new_tokens=50, do_sample=False)
    for arguments in ({"prompt_lookup_num_tokens": 5}, {"assistant_model": random_model(1)}, {"assistant_model": model}):
        drafted = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required",
                                              max_new_tokens=50, do_sample=False, **arguments)
        assert drafted == plain


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


def test_answers_have_room_without_being_told(model, tokenizer, tools):
    answer = backend.generate_with_tools(model, tokenizer, MESSAGES, tools, "hermes", choice="required", do_sample=False)
    assert answer.is_whole and answer.calls and not backend.read_answer(
        td.tool_calls(backend.vocabulary_of(tokenizer, model), tools, "hermes"), answer.tokens[:5]).is_whole


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
