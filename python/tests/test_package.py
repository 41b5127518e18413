"""What the package is as a whole: its version, what it needs, and what it does without NumPy."""
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import tooldecode as td

WITHOUT_NUMPY = '''
import array, sys
sys.modules["numpy"] = None  # an import of it is an ImportError
import tooldecode as td
from tooldecode import _answer, _engine, _masks, _trace

tokens = [bytes([i]) for i in range(256)] + [b"<end>"]
vocabulary = td.Vocabulary.from_bytes(tokens, [256], control_tokens=[256])
tools = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}]
calls = td.tool_calls(vocabulary, tools, "python", choice="required")
words, state = vocabulary.mask_words, calls.initial()
masks = bytearray(4 * words), array.array("i", [0] * words), memoryview(bytearray(4 * words)).cast("I")
tensors = []
try:
    import torch
    tensors = [torch.zeros(words, dtype=torch.int32)]
except ImportError:
    pass
allowed = [i for i in range(vocabulary.size) if calls.advance(state, i) is not None]
completions, logits = td.Completions(calls), array.array("f", [0.0] * vocabulary.size)
for mask in (*masks, *tensors):
    calls.fill_mask(state, mask)
    completions.narrow(state, 40, mask)
    for i in range(vocabulary.size):
        logits[i] = 0.0
    td.apply_mask(logits, mask)
    assert [i for i, logit in enumerate(logits) if logit == 0] == allowed, mask
batch = memoryview(bytearray(8 * words)).cast("I", (2, words))
calls.fill_masks([state, state], batch, pool=td.ThreadPool(1))
assert batch.tobytes() == bytes(masks[0]) * 2
for tensor in tensors:
    _masks._apply_on_device(torch.zeros(2, vocabulary.size), batch, [1])
    answer = _engine.Answer(calls, vocabulary, [3, 31])
    rows = torch.zeros((1, words), dtype=torch.int32)
    answer.fill(_engine.array_of(rows), 0)
    for token in b"[add(a=1)]":
        assert answer.accept(token)
    answer.fill(_engine.array_of(rows), 0)
    plain = [i for i in range(vocabulary.size) if calls.advance(answer.state, i) is not None]
    ends = [i for i in range(vocabulary.size) if int(rows[0, i // 32]) >> i % 32 & 1]
    assert 256 in plain and ends == sorted({3, 31, *plain} - {256})
written = [*calls.write([("add", {"a": 1})]).encode(), 256]
assert calls.validate(state, written) == len(written)
assert _answer.read_answer(calls, written).calls == [("add", {"a": 1})]
print("done")
'''


def test_works_without_numpy():
    ran = subprocess.run([sys.executable, "-W", "error::UserWarning:tooldecode", "-c", WITHOUT_NUMPY], capture_output=True,
                         text=True, timeout=300)
    assert ran.stdout.strip() == "done", ran.stderr


def test_metadata():
    assert importlib.metadata.version("tooldecode") == td.__version__
    needs = [re.match(r"([A-Za-z0-9_.-]+)\s*([^;]*)(?:;(.*))?", line) for line in importlib.metadata.requires("tooldecode")]
    assert needs and all(">=" in need[2] or need[1] == "pytest" for need in needs), [need[0] for need in needs]
    assert all("extra" in (need[3] or "") for need in needs)  # the package by itself needs nothing


def test_names_of_the_page_for_users_of_other_libraries():
    """Each name in the last two columns of its table is there, in Python and in C++."""
    root = pathlib.Path(__file__).resolve().parents[2]
    table = (root / "docs/coming_from.md").read_text(encoding="utf-8").split("| there |")[1].split("\n\n")[0]
    headers = "".join(path.read_text(encoding="utf-8") for path in (root / "include/tooldecode").rglob("*.hpp"))
    seen = 0
    for line in table.splitlines()[2:]:
        _, python, cpp = (cell.strip() for cell in line.strip("|").split(" | "))
        for name in re.findall(r"`(?:[a-z_.]+ = )?([A-Za-z_][\w.]*)", python):
            owner, _, member = name.rpartition(".")
            if owner in ("transformers", "llama_cpp"):  # which need those packages
                source = root / "python/package/tooldecode" / f"{owner}.py"
                assert f"\ndef {member}(" in source.read_text(encoding="utf-8"), name
            elif name != "state":
                of = {"": td, "constraint": td.Constraint, "calls": td.ToolCallFSM, "Vocabulary": td.Vocabulary}[owner]
                assert hasattr(of, member), name
            seen += 1
        for span in re.findall(r"`([^`]+)`", cpp):
            for name in re.findall(r"([A-Za-z_]\w*)[({]", span) or re.findall(r"^(\w+)$", span):
                assert re.search(rf"\b{name}\b", headers), (span, name)
                seen += 1
    assert seen > 50, seen
