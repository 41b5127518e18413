import concurrent.futures
import json
import multiprocessing
import pathlib
import shutil

import pytest

import tooldecode

TOOLS = [
    {
        "name": "get_weather",
        "description": "Weather forecast for a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
            "required": ["city"],
        },
    },
    {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
]


def small_tokens() -> list[bytes]:
    """Every byte, some pieces of several, one end token and one control token."""
    pieces = [b'{"', b'":', b'", "', b'"}', b"get_", b"weather", b"name", b"arguments", b"</tool_call>", b"\xe2\x82",
              b"<tool", b"_call>\n", b'{"name": "', b"get_weather(", b"city='", b"')]", b"12", b"a=", b"<think>"]
    return [bytes([i]) for i in range(256)] + pieces + [b"<end>", b"<|python_tag|>"]


@pytest.fixture(scope="session")
def vocabulary() -> tooldecode.Vocabulary:
    tokens = small_tokens()
    return tooldecode.Vocabulary.from_bytes(tokens, [len(tokens) - 2], control_tokens=[len(tokens) - 2, len(tokens) - 1],
                                            size=len(tokens) + 7)


@pytest.fixture(scope="session")
def end(vocabulary) -> int:
    return vocabulary.end_tokens[0]


@pytest.fixture(scope="session")
def tiny() -> pathlib.Path:
    """The folder of the tiny model; its tests are left out where the package is tested without the tree."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples" / "data" / "tiny"
    if not (folder / "tokenizer.json").exists():
        pytest.skip("examples/data/tiny is not here")
    return folder


@pytest.fixture(scope="session")
def tools() -> list[dict]:
    return TOOLS


@pytest.fixture(scope="session")
def thinking(tiny, tmp_path_factory):
    """The tiny model's folder with two tokens for reasoning."""
    transformers = pytest.importorskip("transformers", reason="SKIPPED: transformers is not installed")

    folder = tmp_path_factory.mktemp("thinking")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.save_pretrained(folder)
    config = json.loads((tiny / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": len(tokenizer)}))
    shutil.copy(tiny / "generation_config.json", folder)
    return folder


def run_forked(function, *arguments):
    """In a copy of a process that has imported `sglang_bed`, because SGLang serves once in a process."""
    import sglang_bed  # noqa: F401

    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(function, *arguments).result()


@pytest.fixture(scope="session")
def sglang_process():
    """Runs a function and its arguments where `sglang_bed` can be imported, each in a process of its own."""
    pytest.importorskip("sglang", reason="SKIPPED: SGLang is not installed")
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            pool.submit(run_forked, int).result()
        except ModuleNotFoundError as error:
            pytest.skip(f"SKIPPED: what SGLang's scheduler imports is not installed: {error}")
        yield lambda function, *arguments: pool.submit(run_forked, function, *arguments).result()
