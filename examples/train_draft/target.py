"""The target, a Llama or Qwen2 model, in float32 from its GGUF file, with its tokenizer and its chat template."""

import argparse
import json
import math
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import gguf
import jinja2
import jinja2.meta
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples/tiny_model"))

from model import Shape, rotary, rotate  # noqa: E402


def cache_folder() -> Path:
    """Where what was fetched or made lies: outside the tree."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TOOLDECODE_CACHE") or home / "tooldecode")


def cached_gguf(model: str) -> Path:
    """The model's file, fetched if it is not there."""
    script = ROOT / "examples/models.sh"
    return Path(subprocess.run(["bash", script, model], check=True, capture_output=True, text=True).stdout.strip())


def model_option(parser: argparse.ArgumentParser):
    """Adds the option that names the target."""
    parser.add_argument("--model", choices=("smollm2", "qwen-coder-0.5b", "qwen-coder-1.5b"), default="smollm2")


def load_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer; it is kept beside the file, for reading it there takes seconds."""
    kept = cache_folder() / "draft" / f"{file.stem}.tokenizer.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        read_tokenizer(gguf.GGUFReader(file)).save(str(kept))
    return Tokenizer.from_file(str(kept))


def read_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    value = lambda name: reader.fields[f"tokenizer.ggml.{name}"].contents()
    if (kind := (value("model"), value("pre"))) not in (("gpt2", "smollm"), ("gpt2", "qwen2")):
        raise ValueError(f"{kind}: must be SmolLM's or Qwen2's byte-level BPE")
    tokens = value("tokens")
    merges = [tuple(merge.split(" ")) for merge in value("merges")]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    if kind[1] == "smollm":
        parts = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.normalizer = normalizers.NFC()
        words = pre_tokenizers.Split(Regex(QWEN2_WORDS), "isolated")
        parts = words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(parts))
    tokenizer.decoder = decoders.ByteLevel()
    whole = gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED
    special = [token for token, kind in zip(tokens, value("token_type")) if kind in whole]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


# What Qwen2's tokenizer.json splits by.
QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


class Cache:
    """Keys and values of a batch, [layers, batch, key-value heads, columns, head_dim], with room for `columns`."""

    def __init__(self, shape: Shape, batch: int, columns: int, dtype: torch.dtype = torch.float32):
        size = (shape.layers, batch, shape.kv_heads, columns, shape.head_dim)
        self.keys, self.values = torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype)

    def keep(self, rows: torch.Tensor):
        """Forgets all but these rows of the batch."""
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]


class Target:
    """A Llama or Qwen2 model whose weights are those of a GGUF file.

    In bfloat16 its layers' products are, for a processor that has them: states are then off by some thousandths. The
    residual stream, the norms and a head of less than 100,000 rows stay in float32."""

    def __init__(self, model: str, dtype: torch.dtype = torch.float32):
        self.dtype = dtype
        self.folder = cache_folder() / "draft" / model  # of what is made for it
        self.file = cached_gguf(model)
        self.reader = gguf.GGUFReader(self.file)
        field = lambda name: self.reader.fields[name].contents()
        architecture = field("general.architecture")
        if architecture not in ("llama", "qwen2"):
            raise ValueError(f"{self.file}: the architecture {architecture} must be llama or qwen2")
        read = lambda name: field(f"{architecture}.{name}")
        heads, hidden = read("attention.head_count"), read("embedding_length")
        self.shape = Shape(
            vocabulary=len(field("tokenizer.ggml.tokens")),
            hidden=hidden,
            intermediate=read("feed_forward_length"),
            layers=read("block_count"),
            heads=heads,
            kv_heads=read("attention.head_count_kv"),
            head_dim=hidden // heads,
            context=2048,  # as far as anything here reads
            rope_theta=read("rope.freq_base"),
            epsilon=read("attention.layer_norm_rms_epsilon"),
        )
        tensors = {
            tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()).float()
            for tensor in self.reader.tensors
        }
        self.embedding = tensors["token_embd.weight"]
        self.head = tensors.get("output.weight", self.embedding)
        self.norm = tensors["output_norm.weight"]
        self.head_as_read = self.head.to(dtype) if len(self.head) > 100_000 else self.head
        self.ends = {field("tokenizer.ggml.eos_token_id"), field("tokenizer.ggml.tokens").index("<|endoftext|>")}
        self.layers = []
        for index in range(self.shape.layers):
            norm = lambda name: tensors[f"blk.{index}.{name}.weight"]
            part = lambda name: norm(name).to(dtype)
            # One product for all three; a Llama's file has the two of a rotated pair side by side.
            turned = (lambda name: self.halved(part(name))) if architecture == "llama" else part
            biases = [tensors.get(f"blk.{index}.attn_{name}.bias") for name in "qkv"]
            self.layers.append(
                {
                    "norm": norm("attn_norm"),
                    "qkv": torch.cat([turned("attn_q"), turned("attn_k"), part("attn_v")]),
                    "qkv_bias": None if biases[0] is None else torch.cat(biases).to(dtype),
                    "output": part("attn_output"),
                    "feed_norm": norm("ffn_norm"),
                    "gate_up": torch.cat([part("ffn_gate"), part("ffn_up")]),
                    "down": part("ffn_down"),
                }
            )
        self.cos, self.sin = rotary(self.shape)
        # EAGLE-3 reads what these layers read: one near the beginning, the middle one, one near the end.
        self.features = (2, self.shape.layers // 2, self.shape.layers - 3)

    def halved(self, rows):
        """Rows of queries or keys for rotary embedding by halves."""
        return rows.unflatten(0, (-1, self.shape.head_dim // 2, 2)).transpose(1, 2).reshape(rows.shape)

    @cached_property
    def template(self) -> jinja2.Template:
        environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        return environment.from_string(self.reader.fields["tokenizer.chat_template"].contents())

    @cached_property
    def lists_tools(self) -> bool:
        """Whether the chat template has a place for tools."""
        return "tools" in jinja2.meta.find_undeclared_variables(
            jinja2.Environment().parse(self.reader.fields["tokenizer.chat_template"].contents())
        )

    @cached_property
    def embedding_scale(self) -> float:
        """Brings embeddings to the size of states of SmolLM2: a power of two, so that it is folded exactly."""
        return 2.0 ** round(math.log2(2 / self.embedding.std().item()))

    @cached_property
    def unit(self) -> float:
        """Of final states: a power of two, in which their deviation is between 1 and 2."""
        return 2.0 ** math.floor(math.log2(self.norm.square().mean().sqrt().item()))

    def chat(self, turns: list[tuple[str, str]], functions: list[dict] | None = None) -> str:
        """The text of a dialogue of (role, content) whose next turn is the model's, with tools if there are some."""
        messages = [{"role": role, "content": content} for role, content in turns]
        tools = [{"type": "function", "function": function} for function in functions or []] or None
        return self.template.render(messages=messages, tools=tools, add_generation_prompt=True)

    @torch.no_grad()
    def hidden(self, ids, cache: Cache, start: int, positions, visible):
        """The states [batch, length, 4 hidden] of tokens in columns from `start`: the normed final ones, which the head
        reads, and after each the residual stream before the layers of `features`.

        `positions` is [batch, length]; `visible` [batch, 1, length, columns] says which columns a token sees."""
        shape, end = self.shape, start + ids.shape[1]
        norm = lambda x, weight: F.rms_norm(x, weight.shape, weight, shape.epsilon)
        linear = lambda x, weight, bias=None: F.linear(x.to(self.dtype), weight, bias)
        x = F.embedding(ids, self.embedding)
        cos, sin = self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)
        features = []
        for index, layer in enumerate(self.layers):
            if index in self.features:
                features.append(x)
            heads = linear(norm(x, layer["norm"]), layer["qkv"], layer["qkv_bias"])
            heads = heads.unflatten(-1, (-1, shape.head_dim)).transpose(1, 2)
            q, k, v = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
            cache.keys[index, :, :, start:end] = rotate(k, cos, sin)
            cache.values[index, :, :, start:end] = v
            keys, values = cache.keys[index, :, :, :end], cache.values[index, :, :, :end]
            q = rotate(q, cos, sin).to(self.dtype)
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=visible, enable_gqa=True)
            x = x + linear(y.transpose(1, 2).flatten(2), layer["output"])
            gate, up = linear(norm(x, layer["feed_norm"]), layer["gate_up"]).chunk(2, dim=-1)
            x = x + linear(F.silu(gate) * up, layer["down"])
        return torch.cat((norm(x, self.norm), *features), dim=-1)

    def logits(self, states):
        """Of the tokens that follow, [..., vocabulary]."""
        states = states[..., : self.shape.hidden]
        return F.linear(states.to(self.head_as_read.dtype), self.head_as_read).float()

    def likeliest(self, state) -> int:
        """The token that most likely follows a final state."""
        return int((self.head @ state).argmax())

    def states(self, tokens: list[int]):
        """The states behind each of some tokens, [length, 4 hidden]."""
        length = len(tokens)
        visible = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
        cache = Cache(self.shape, 1, length, self.dtype)
        return self.hidden(torch.tensor([tokens]), cache, 0, torch.arange(length)[None], visible)[0]
