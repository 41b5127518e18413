"""The target, SmolLM2-135M-Instruct, in float32 from its GGUF file, with its tokenizer and its chat template."""

import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import gguf
import jinja2
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples/tiny_model"))

from model import Shape, rotary, rotate  # noqa: E402


def cache_folder() -> Path:
    """Where what was fetched or made lies: outside the tree."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("TOOLDECODE_CACHE") or home / "tooldecode")


def cached_gguf() -> Path:
    """The model's file, fetched if it is not there."""
    script = ROOT / "examples/models.sh"
    return Path(subprocess.run(["bash", script, "smollm2"], check=True, capture_output=True, text=True).stdout.strip())


def load_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer; it is kept beside the file, for reading it there takes seconds."""
    kept = cache_folder() / "draft" / f"{file.stem}.tokenizer.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        read_tokenizer(gguf.GGUFReader(file)).save(str(kept))
    return Tokenizer.from_file(str(kept))


def read_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    value = lambda name: reader.fields[f"tokenizer.ggml.{name}"].contents()
    if (kind := (value("model"), value("pre"))) != ("gpt2", "smollm"):
        raise ValueError(f"{kind}: must be a byte-level BPE that parts digits")
    tokens = value("tokens")
    merges = [tuple(merge.split(" ")) for merge in value("merges")]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, value("token_type")) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


class Cache:
    """Keys and values of a batch, [layers, batch, key-value heads, columns, head_dim], with room for `columns`."""

    def __init__(self, shape: Shape, batch: int, columns: int, dtype: torch.dtype = torch.float32):
        size = (shape.layers, batch, shape.kv_heads, columns, shape.head_dim)
        self.keys, self.values = torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype)

    def keep(self, rows: torch.Tensor):
        """Forgets all but these rows of the batch."""
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]


class Target:
    """A Llama whose weights are those of a GGUF file.

    In bfloat16 its layers' products are, for a processor that has them: states are then off by some thousandths. The
    residual stream, the norms and the head stay in float32."""

    def __init__(self, file: Path, dtype: torch.dtype = torch.float32):
        self.dtype = dtype
        self.reader = gguf.GGUFReader(file)
        read = lambda name: self.reader.fields[f"llama.{name}"].contents()
        heads, hidden = read("attention.head_count"), read("embedding_length")
        self.shape = Shape(
            vocabulary=read("vocab_size"),
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
        self.head = tensors["token_embd.weight"]
        self.norm = tensors["output_norm.weight"]
        self.layers = []
        for index in range(self.shape.layers):
            norm = lambda name: tensors[f"blk.{index}.{name}.weight"]
            part = lambda name: norm(name).to(dtype)
            self.layers.append(
                {
                    "norm": norm("attn_norm"),
                    # One product for all three; the file has the two of a rotated pair side by side.
                    "qkv": torch.cat([self.halved(part("attn_q")), self.halved(part("attn_k")), part("attn_v")]),
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
        source = self.reader.fields["tokenizer.chat_template"].contents()
        return jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(source)

    def chat(self, turns: list[tuple[str, str]]) -> str:
        """The text of a dialogue of (role, content) whose next turn is the model's."""
        messages = [{"role": role, "content": content} for role, content in turns]
        return self.template.render(messages=messages, add_generation_prompt=True)

    @torch.no_grad()
    def hidden(self, ids, cache: Cache, start: int, positions, visible):
        """The states [batch, length, 4 hidden] of tokens in columns from `start`: the normed final ones, which the head
        reads, and behind each the residual stream before the layers of `features`.

        `positions` is [batch, length]; `visible` [batch, 1, length, columns] says which columns a token sees."""
        shape, end = self.shape, start + ids.shape[1]
        norm = lambda x, weight: F.rms_norm(x, weight.shape, weight, shape.epsilon)
        linear = lambda x, weight: F.linear(x.to(self.dtype), weight)
        x = F.embedding(ids, self.head)
        cos, sin = self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)
        features = []
        for index, layer in enumerate(self.layers):
            if index in self.features:
                features.append(x)
            heads = linear(norm(x, layer["norm"]), layer["qkv"]).unflatten(-1, (-1, shape.head_dim)).transpose(1, 2)
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
        return F.linear(states[..., : self.shape.hidden], self.head)

    def likeliest(self, state) -> int:
        """The token that most likely follows a final state."""
        return int((self.head @ state).argmax())

    def states(self, tokens: list[int]):
        """The states behind each of some tokens, [length, 4 hidden]."""
        length = len(tokens)
        visible = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
        cache = Cache(self.shape, 1, length, self.dtype)
        return self.hidden(torch.tensor([tokens]), cache, 0, torch.arange(length)[None], visible)[0]
