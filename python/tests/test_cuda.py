"""The operators over the kernels, which run in the emulator on tensors in CPU memory, against torch."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from tooldecode import Error, cuda  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = torch.ops.tooldecode


@pytest.fixture(scope="session")
def emulated_library(tmp_path_factory) -> pathlib.Path:
    """The library of the C interface as tests/support/simt makes it, whose pointers are the host's."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not (ROOT / "tests/support/simt").is_dir():
        pytest.skip("the emulator is not here: tests/support/simt")
    if not compiler:
        pytest.skip("there is no C++ compiler")
    eigen = next((folder for folder in ("/usr/include/eigen3", "/usr/local/include/eigen3") if os.path.isdir(folder)), None)
    if not eigen:  # of the emulator's half numbers
        pytest.skip("Eigen is not here")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "library.cpp").write_text("#include <tooldecode/cuda/c_interface.cuh>\n")
    launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
    flags = ["-std=c++20", "-O1", "-fPIC", "-w", "-fno-strict-aliasing", "-DTOOLDECODE_C_BUILD",
             "-I", ROOT / "tests/support/simt", "-I", ROOT / "tests", "-I", ROOT / "include", "-isystem", eigen]
    subprocess.run([*launcher, compiler, *flags, "-c", folder / "library.cpp", "-o", folder / "library.o"], check=True)
    subprocess.run([compiler, "-shared", folder / "library.o", "-o", folder / "library.so"], check=True)
    return folder / "library.so"


ON_GPU = bool(os.environ.get("TOOLDECODE_CUDA_LIBRARY")) and torch.cuda.is_available()


@pytest.fixture
def kernels(request, monkeypatch):
    """The operators: over TOOLDECODE_CUDA_LIBRARY on the GPU if both are here, else over the emulated library."""
    if not ON_GPU:
        monkeypatch.setenv("TOOLDECODE_CUDA_LIBRARY", str(request.getfixturevalue("emulated_library")))
        monkeypatch.setattr(cuda, "_DEVICE", "cpu")
    cuda._library.cache_clear()
    torch.manual_seed(5)
    with torch.device("cuda" if ON_GPU else "cpu"):
        yield
    cuda._library.cache_clear()


def of_rows(*numbers) -> torch.Tensor:
    """What each row sets, which is in CPU memory."""
    return torch.tensor(numbers, device="cpu")


def packed(allowed: torch.Tensor) -> torch.Tensor:
    """[B, V] of bool as int32 [B, W]."""
    rows, size = allowed.shape
    bits = torch.zeros(rows, (size + 31) // 32 * 32, dtype=torch.int64)
    bits[:, :size] = allowed
    words = (bits.view(rows, -1, 32) << torch.arange(32)).sum(-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def batch(rows=4, size=70, dtype=torch.float32):
    logits = torch.randn(rows, size).to(dtype)
    allowed = torch.rand(rows, size) < 0.6
    return logits, allowed, packed(allowed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_masked_softmax_is_that_of_torch(kernels, dtype):
    logits, allowed, mask = batch(dtype=dtype)
    temperatures = of_rows(0.5, 0.5, 1.0, 2.0)
    expected = (logits.double() / temperatures.to(logits.device)[:, None]).masked_fill(~allowed, -torch.inf).log_softmax(1)
    for strided in (False, True):
        if strided:
            logits = torch.nn.functional.pad(logits, (0, 3), value=90)[:, :70]
        probabilities, kept = cuda.masked_softmax(logits, mask, temperature=temperatures)
        logs, _ = cuda.masked_log_softmax(logits, mask, temperature=temperatures)
        assert probabilities.dtype == torch.float32 and kept.tolist() == allowed.sum(1).tolist()
        torch.testing.assert_close(probabilities.double(), expected.exp(), rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(logs.double(), expected, rtol=1e-4, atol=1e-5)


def test_masked_softmax_cuts(kernels):
    logits, allowed, mask = batch()
    probabilities, kept = cuda.masked_softmax(logits, mask, top_k=of_rows(3, 0, 1, 2))
    assert kept.tolist() == [3, int(allowed[1].sum()), 1, 2]
    best = logits.masked_fill(~allowed, -torch.inf).topk(3).indices
    assert set(probabilities[0].nonzero().flatten().tolist()) == set(best[0].tolist())
    everything, kept = cuda.masked_softmax(logits)
    assert kept.tolist() == [70] * 4
    assert torch.equal(cuda.masked_softmax(logits, temperature=0)[0], everything)
    torch.testing.assert_close(everything, logits.softmax(1), rtol=1e-4, atol=1e-7)


def test_find_tokens_takes_the_most_likely_and_draws_by_seed_and_position(kernels):
    logits, allowed, mask = batch(rows=6)
    masked = logits.masked_fill(~allowed, -torch.inf)
    assert cuda.find_tokens(logits, mask=mask).tolist() == masked.argmax(1).tolist()
    positions = torch.tensor([3, 3, 4, 5, 3, 9])
    seeds = [1, 1, 1, 1 << 63, 2, (1 << 64) - 1]
    signed = of_rows(*(seed - (1 << 64) if seed >= 1 << 63 else seed for seed in seeds))
    together = cuda.find_tokens(logits, positions, mask, temperature=1.5, seed=signed)
    for row, seed in enumerate(seeds):
        alone = cuda.find_tokens(logits[row : row + 1], positions[row : row + 1] - 2, mask[row : row + 1], temperature=1.5,
                                 seed=seed, shift=2)
        assert alone.item() == together[row].item()
        assert allowed[row, alone.item()]
    # The noise is that of seed and position, and is spread as the probabilities are.
    same = logits[:1].expand(2000, -1).contiguous()
    drawn = cuda.find_tokens(same, torch.arange(2000), temperature=1.0, seed=8)
    share = torch.bincount(drawn, minlength=70) / 2000
    assert (share - logits[0].softmax(0)).abs().sum() < 0.2
    nothing = cuda.find_tokens(logits, mask=torch.zeros_like(mask))
    assert nothing.tolist() == [-1] * 6


def test_numbers_of_rows_are_in_cpu_memory_whatever_the_default_device(kernels):
    logits, _, mask = batch()
    positions = torch.arange(4)
    options = {"temperature": [0.5, 1, 1, 2], "top_k": 30, "seed": 5}
    expected = cuda.find_tokens(logits, positions, mask, **options)
    with torch.device("meta"):
        assert torch.equal(cuda.find_tokens(logits, positions, mask, **options), expected)


def test_empty_batches_have_empty_results(kernels):
    nothing, no_rows = of_rows(), torch.empty(0, 70)
    positions, mask = torch.empty(0, dtype=torch.int64), torch.empty(0, 3, dtype=torch.int32)
    for temperature in (0, 0.5, nothing):
        for seed in (3, nothing.long()):
            assert cuda.find_tokens(no_rows, positions, temperature=temperature, seed=seed).shape == (0,)
        probabilities, kept = cuda.masked_softmax(no_rows, mask, temperature=temperature, top_p=nothing)
        assert (probabilities.shape, kept.shape) == ((0, 70), (0,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_project_topk_is_that_of_torch(kernels, dtype):
    weights, hidden = torch.randn(80, 16).to(dtype), torch.randn(3, 16).to(dtype)
    frequent = torch.randperm(80)[:40].to(torch.int32)
    allowed = torch.rand(3, 80) < 0.7
    allowed[1] = False
    allowed[1, [2, 77]] = True  # fewer than there are frequent rows: exactly these
    all_logits = hidden.double() @ weights.double().T
    is_frequent = torch.zeros(80, dtype=torch.bool)
    is_frequent[frequent.long()] = True
    for whole, mask in ((True, None), (True, packed(allowed)), (False, None), (False, packed(allowed))):
        may = is_frequent.expand(3, 80) if mask is None else allowed & is_frequent
        if whole and mask is not None:
            may = may.clone()
            may[1] = allowed[1]
        logits = all_logits.masked_fill(~may, -torch.inf)
        best, best_logits, sums = cuda.project_topk(weights if whole else weights[frequent.long()], hidden, 4, tokens=frequent,
                                                    mask=mask, whole=whole)
        expected = logits.topk(4)
        is_there = expected.values > -torch.inf
        assert torch.where(is_there, expected.indices, -1).tolist() == best.tolist()
        torch.testing.assert_close(best_logits.double(), expected.values, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(sums.double(), logits.logsumexp(1), rtol=1e-4, atol=1e-4)
    assert cuda.project_topk(weights, hidden, 1)[0].flatten().tolist() == all_logits.argmax(1).tolist()


def attention(dtype=torch.float16):
    queries = torch.randn(2, 3, 4, 64).to(dtype)
    keys, values = torch.randn(2, 24, 2, 64).to(dtype), torch.randn(2, 24, 2, 64).to(dtype)
    ancestors = torch.tensor([[1, 3, 5], [1, 3, 0]])
    return queries, keys, values, ancestors, torch.tensor([17, 4], dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tree_attention_is_that_of_torch_dense_and_in_pages(kernels, dtype):
    queries, keys, values, ancestors, lengths = attention(dtype)
    slots = torch.arange(24)
    after = slots - lengths[:, None]  # [B, slots]
    in_tree = (ancestors[:, :, None] >> after.clamp(0, 63)[:, None] & 1).bool() & (after >= 0)[:, None]
    seen = (after < 0)[:, None] | in_tree  # [B, N, slots]
    wide = [x.double().repeat_interleave(2, dim=2).transpose(1, 2) for x in (keys, values)]
    expected = torch.nn.functional.scaled_dot_product_attention(queries.double().transpose(1, 2), *wide,
                                                                attn_mask=seen[:, None]).transpose(1, 2)
    expected[1, 2] = 0  # padding
    got = cuda.tree_attention(queries, keys, values, ancestors, lengths, 32)
    tolerance = 4e-3 if dtype == torch.float16 else 2e-2
    torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)

    pages = torch.randperm(6).view(2, 3).to(torch.int32)
    memory = [torch.empty(6, 8, 2, 64, dtype=dtype) for _ in range(2)]
    for paged, dense in zip(memory, (keys, values)):
        paged[pages.long().flatten()] = dense.view(6, 8, 2, 64)
    in_pages = cuda.tree_attention(queries, *memory, ancestors, lengths, 32, pages=pages)
    assert torch.equal(in_pages, got)
    scaled = cuda.tree_attention(queries * 2, keys, values, ancestors, lengths, 32, scale=0.0625)
    torch.testing.assert_close(scaled, got, rtol=tolerance, atol=tolerance)


def test_strides_of_sizes_of_1_may_be_any_number(kernels):
    queries, keys, values, ancestors, lengths = attention()
    queries, ancestors, lengths = queries[:1], ancestors[:1], lengths[:1]
    keys, values = keys[:1, :, :1].contiguous(), values[:1, :, :1].contiguous()
    odd = [x.as_strided(x.shape, (own, 64, own, 1)) for x, own in ((keys, 3), (values, 5))]
    expected = cuda.tree_attention(queries, keys, values, ancestors, lengths, 32)
    assert torch.equal(cuda.tree_attention(queries, *odd, ancestors, lengths, 32), expected)

    verdicts = cuda.Verdicts(cuda.verify_trees(*trees()).rows[:1])
    before = keys.clone()
    cuda.compact_cache(odd[:1], odd[1:], verdicts, lengths)
    before[0, 18:20] = before[0, 19:21].clone()
    assert torch.equal(keys, before)


def trees():
    """Five nodes: 0 -> 1, 2; 2 -> 3; 3 -> 4. The path 2, 3 is right; and a root alone."""
    tokens = torch.full((2, 64), -1, dtype=torch.int32)
    tokens[0, :5] = torch.tensor([9, 5, 6, 7, 8])
    tokens[1, 0] = 4
    parents = torch.zeros(2, 64, dtype=torch.int32)
    parents[0, :5] = torch.tensor([0, 0, 0, 2, 3])
    ancestors = torch.zeros(2, 64, dtype=torch.int64)
    ancestors[0, :5] = torch.tensor([1, 3, 5, 13, 29])
    ancestors[1, 0] = 1
    choices = torch.full((2, 64), -1, dtype=torch.int32)
    choices[0, :5] = torch.tensor([6, 1, 7, 2, 3])
    return tokens, parents, ancestors, torch.tensor([5, 1], dtype=torch.int32), choices


def test_verify_trees_follows_the_choices_and_compact_cache_keeps_the_path(kernels):
    verdicts = cuda.verify_trees(*trees())
    assert verdicts.accepted.tolist() == [2, 0]
    assert verdicts.kept.tolist() == [3, 1]
    assert verdicts.emitted.tolist() == [3, 0]
    assert verdicts.path[0].tolist() == [2, 3] + [-1] * 62
    assert verdicts.tokens[0].tolist() == [6, 7, 2] + [-1] * 61
    assert verdicts.tokens[1].tolist() == [-1] * 64

    layers = [torch.randn(2, 16, 2, 8).to(torch.bfloat16) for _ in range(4)]
    before = [layer.clone() for layer in layers]
    lengths = torch.tensor([3, 7], dtype=torch.int32)
    cuda.compact_cache(layers[:2], layers[2:], verdicts, lengths)
    for layer, old in zip(layers, before):
        old[0, 4:6] = old[0, 5:7].clone()  # nodes 2 and 3 of slots 5 and 6
        assert torch.equal(layer, old)
    lengths += verdicts.kept
    assert lengths.tolist() == [6, 8]


def arguments_of_each():
    logits, _, mask = batch()
    sampling = torch.tensor([[0.8, 0, 1, 0]], dtype=torch.float64, device="cpu")
    seeds, positions = of_rows(3), torch.arange(4)
    weights, hidden = torch.randn(40, 16).half(), torch.randn(2, 16).half()
    queries, keys, values, ancestors, lengths = attention()
    rows = torch.zeros(2, 131, dtype=torch.int32)
    layers = [torch.randn(2, 24, 2, 64).half() for _ in range(4)]
    return {
        "masked_softmax": (logits, mask, sampling, False),
        "find_tokens": (logits, positions, mask, sampling, seeds, 0),
        "project_topk": (weights, hidden, 3, None, None, True),
        "tree_attention": (queries, keys, values, ancestors, lengths, 32, 0.0, 0, None),
        "verify_trees": trees(),
        "compact_cache": (layers[:2], layers[2:], rows, lengths, None),
    }


@pytest.mark.parametrize("name", ["masked_softmax", "find_tokens", "project_topk", "tree_attention", "verify_trees",
                                  "compact_cache"])
def test_fake_tensors_have_the_shapes_of_the_results(kernels, name):
    torch.library.opcheck(getattr(OPS, name).default, arguments_of_each()[name],
                          test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))


def test_torch_compile_traces_the_operators(kernels):
    def step(logits, mask, positions, temperature, queries, keys, values, ancestors, lengths):
        probabilities, kept = cuda.masked_softmax(logits * 2, mask, temperature=temperature)
        tokens = cuda.find_tokens(logits, positions, mask, temperature=0.7, seed=5)
        out = cuda.tree_attention(queries, keys, values, ancestors, lengths, 32)
        verdicts = cuda.verify_trees(*trees_of)
        return probabilities + 1, kept, tokens, out * 2, verdicts.kept + lengths

    trees_of = trees()
    logits, _, mask = batch()
    given = (logits, mask, torch.arange(4), of_rows(0.5, 1, 1, 2), *attention())
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for own, expected in zip(compiled(*given), step(*given)):
        assert torch.equal(own, expected)


def wrong_calls():
    logits, _, mask = batch()
    positions = torch.arange(4)
    weights, hidden = torch.randn(40, 16).half(), torch.randn(2, 16).half()
    queries, keys, values, ancestors, lengths = attention()
    tokens, parents, tree_ancestors, sizes, choices = trees()
    rows = cuda.Verdicts(torch.zeros(2, 131, dtype=torch.int32))
    short, ids = of_rows(0.0, 0.0, 0.0), of_rows(0, 1, 2, 3)
    pages, no_pages = torch.zeros(2, 1, dtype=torch.int32), torch.empty(0, (1 << 32) + 8, 2, 64).half()
    return [
        (lambda: cuda.masked_softmax(logits[0]), "shape_mismatch", "logits"),
        (lambda: cuda.masked_softmax(logits.double()), "shape_mismatch", "logits"),
        (lambda: cuda.masked_softmax(logits.T.contiguous().T), "shape_mismatch", "logits"),
        (lambda: cuda.masked_softmax(logits[:1].expand(4, -1)), "shape_mismatch", "logits"),
        (lambda: cuda.masked_softmax(logits, mask[:, :2]), "shape_mismatch", "mask"),
        (lambda: cuda.masked_softmax(logits, mask.long()), "shape_mismatch", "mask"),
        (lambda: cuda.masked_softmax(logits, temperature=short), "shape_mismatch", "sampling"),
        (lambda: cuda.masked_softmax(logits, temperature=short, top_k=ids), "shape_mismatch", "temperature"),
        (lambda: cuda.masked_softmax(logits, temperature=-1.0), "invalid_option", "temperature"),
        (lambda: cuda.masked_softmax(logits, top_k=1.5), "invalid_option", "top_k"),
        (lambda: cuda.masked_softmax(logits, top_k=-1), "invalid_option", "top_k"),
        (lambda: cuda.masked_softmax(logits, top_p=0), "invalid_option", "top_p"),
        (lambda: cuda.masked_softmax(logits, min_p=2), "invalid_option", "min_p"),
        # 0 in 32 bits, which means another thing
        (lambda: cuda.masked_softmax(logits, temperature=1e-46), "invalid_option", "temperature"),
        (lambda: cuda.masked_softmax(logits, top_p=1e-46), "invalid_option", "top_p"),
        (lambda: cuda.masked_softmax(logits, top_k=1 << 32), "invalid_option", "top_k"),
        (lambda: cuda.masked_softmax(logits, temperature="high"), "invalid_option", "temperature"),
        (lambda: cuda.masked_softmax(torch.empty((1 << 32) + 4, 0)), "shape_mismatch", "logits"),
        (lambda: cuda.find_tokens(logits, temperature=1.0), "shape_mismatch", "find_tokens: positions"),
        (lambda: cuda.find_tokens(logits, positions.int()), "shape_mismatch", "positions"),
        (lambda: cuda.find_tokens(logits, positions[:3]), "shape_mismatch", "positions"),
        (lambda: cuda.find_tokens(logits, positions, seed=ids[:3]), "shape_mismatch", "seed"),
        (lambda: cuda.find_tokens(logits, positions, seed=[1 << 63] * 4), "invalid_option", "seed"),
        (lambda: cuda.find_tokens(logits, positions, seed=1 << 64), "invalid_option", "seed"),
        (lambda: cuda.find_tokens(logits, positions, seed=-(1 << 63) - 1), "invalid_option", "seed"),
        (lambda: cuda.project_topk(weights.float(), hidden, 3), "shape_mismatch", "weights"),
        (lambda: cuda.project_topk(weights, hidden[:, :8], 3), "shape_mismatch", "hidden"),
        (lambda: cuda.project_topk(weights, hidden, 33), "invalid_option", "k"),
        (lambda: cuda.project_topk(weights, hidden, 3, tokens=positions), "shape_mismatch", "tokens"),
        (lambda: cuda.project_topk(weights, hidden, 3, tokens=positions.int(), whole=False), "shape_mismatch", "tokens"),
        (lambda: cuda.project_topk(weights, hidden, 3, mask=mask), "shape_mismatch", "mask"),
        (lambda: cuda.project_topk(weights[:, :12], hidden[:, :12].contiguous(), 3), "shape_mismatch", "head: hidden_size"),
        (lambda: cuda.tree_attention(queries.float(), keys, values, ancestors, lengths, 9), "shape_mismatch", "queries"),
        (lambda: cuda.tree_attention(queries, keys[:1], values, ancestors, lengths, 9), "shape_mismatch", "keys"),
        (lambda: cuda.tree_attention(queries, keys, values.bfloat16(), ancestors, lengths, 9), "shape_mismatch", "values"),
        (lambda: cuda.tree_attention(queries, keys, values[:, :, :1].expand_as(keys), ancestors, lengths, 9),
         "shape_mismatch", "values"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors.int(), lengths, 9), "shape_mismatch", "ancestors"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths.long(), 9), "shape_mismatch", "lengths"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths, -1), "invalid_option",
         "tree_attention: max_length"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths, 9, pages=ancestors), "shape_mismatch", "pages"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths, 1 << 32), "invalid_option",
         "tree_attention: max_length"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths, 9, slots=(1 << 32) + 3), "invalid_option",
         "tree_attention: slots"),
        (lambda: cuda.tree_attention(queries, keys, values, ancestors, lengths, 9, scale=1e-46), "invalid_option",
         "tree_attention: scale"),
        (lambda: cuda.tree_attention(queries, no_pages, no_pages, ancestors, lengths, 9, pages=pages), "shape_mismatch",
         "keys"),
        (lambda: cuda.verify_trees(tokens[:, :60], parents, tree_ancestors, sizes, choices), "shape_mismatch", "tokens"),
        (lambda: cuda.verify_trees(tokens, parents, tree_ancestors.int(), sizes, choices), "shape_mismatch", "ancestors"),
        (lambda: cuda.verify_trees(tokens, parents, tree_ancestors, sizes[:1], choices), "shape_mismatch", "sizes"),
        (lambda: cuda.compact_cache([keys], [], rows, lengths), "shape_mismatch", "values"),
        (lambda: cuda.compact_cache([keys.float()], [values.float()], rows, lengths), "shape_mismatch", "keys"),
        (lambda: cuda.compact_cache([keys[:1].expand(2, -1, -1, -1)], [values[:1].expand(2, -1, -1, -1)], rows, lengths),
         "shape_mismatch", "keys"),
        (lambda: cuda.compact_cache([keys], [values], cuda.Verdicts(rows.rows[:, 1:]), lengths), "shape_mismatch", "verdicts"),
    ]


@pytest.mark.parametrize("index", range(51))
def test_wrong_arguments_are_errors_that_name_them(kernels, index):
    calls = wrong_calls()
    assert len(calls) == 51
    call, code, where = calls[index]
    with pytest.raises(Error) as caught:
        call()
    assert (caught.value.code, caught.value.where) == (code, where)
    assert str(caught.value).startswith(where)


@pytest.mark.skipif(ON_GPU and torch.cuda.device_count() < 2, reason="with a GPU, fake tensors need a second one too")
def test_compact_cache_wants_all_layers_on_the_device_of_the_verdicts():
    with FakeTensorMode():  # has devices that are not there
        rows = cuda.Verdicts(torch.zeros(2, 131, dtype=torch.int32, device="cuda:0"))
        lengths = torch.zeros(2, dtype=torch.int32, device="cuda:0")
        here, there = ([torch.zeros(2, 8, 2, 64, dtype=torch.half, device=device)] for device in ("cuda:0", "cuda:1"))
        cuda.compact_cache(here, here, rows, lengths)
        for keys, values, where in ((here + there, here + there, "keys"), (here, there, "values")):
            with pytest.raises(Error) as caught:
                cuda.compact_cache(keys, values, rows, lengths)
            assert (caught.value.code, caught.value.where) == ("shape_mismatch", where)


def test_without_a_device_the_error_says_what_is_needed():
    with pytest.raises(Error) as caught:
        cuda.masked_softmax(torch.zeros(1, 8))
    assert (caught.value.code, caught.value.where) == ("device_failure", "logits")
    assert "CUDA device" in str(caught.value)


def test_without_the_library_the_error_says_what_to_build(monkeypatch):
    monkeypatch.setenv("TOOLDECODE_CUDA_LIBRARY", "/nowhere/libtooldecode_cuda_c.so")
    monkeypatch.setattr(cuda, "_DEVICE", "cpu")
    cuda._library.cache_clear()
    with pytest.raises(Error) as caught:
        cuda.verify_trees(*trees())
    assert (caught.value.code, caught.value.where) == ("device_failure", "TOOLDECODE_CUDA_LIBRARY")
    assert "-DTOOLDECODE_CUDA=ON" in str(caught.value)


def test_with_another_library_the_error_says_what_to_build(monkeypatch):
    monkeypatch.setenv("TOOLDECODE_CUDA_LIBRARY", torch._C.__file__)
    cuda._library.cache_clear()
    with pytest.raises(Error) as caught:
        cuda._library()
    assert (caught.value.code, caught.value.where) == ("device_failure", "TOOLDECODE_CUDA_LIBRARY")
    assert "-DTOOLDECODE_CUDA=ON" in str(caught.value)


def test_what_the_guide_shows_runs(kernels):
    guide = (ROOT / "docs/cuda.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    logits, allowed, mask = batch(dtype=torch.bfloat16)
    names = {"logits": logits, "mask": mask, "positions": torch.arange(4), "temperatures": of_rows(0, 0.5, 1, 2),
             "seeds": of_rows(0, 1, 2, 3)}
    queries, keys, values, _, lengths = attention()
    tokens, parents, ancestors, sizes, choices = trees()
    names |= {"queries": queries, "keys": keys, "values": values, "lengths": lengths, "tokens": tokens, "parents": parents,
              "ancestors": ancestors, "sizes": sizes, "choices": choices, "nodes": 3}
    exec(code, names)  # noqa: S102
    assert names["drawn"][0].item() == logits.float().masked_fill(~allowed, -torch.inf)[0].argmax().item()
    assert names["out"].shape == queries.shape
    assert names["lengths"].tolist() == [20, 5]
