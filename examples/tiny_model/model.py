"""A small Llama in PyTorch, with Hugging Face's tensor names and rotary convention."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    """The sizes of a model."""

    vocabulary: int = 8192
    hidden: int = 256
    intermediate: int = 640
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    context: int = 1024
    rope_theta: float = 10000.0
    epsilon: float = 1e-5

    def config(self, bos: int, eos: int, pad: int) -> dict:
        """The contents of config.json."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": self.epsilon,
            "rope_theta": self.rope_theta,
            "rope_scaling": None,
            "attention_bias": False,
            "mlp_bias": False,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "tie_word_embeddings": True,
            "bos_token_id": bos,
            "eos_token_id": eos,
            "pad_token_id": pad,
            "torch_dtype": "bfloat16",
        }


def rotary(shape: Shape) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, [context, head_dim], for the rotate-half convention."""
    inverse = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
    angles = torch.arange(shape.context).float()[:, None] * inverse[None]
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Turns queries or keys [batch, heads, length, head_dim] by their positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Norm(nn.Module):
    """RMSNorm whose weight follows its input's precision."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.hidden))
        self.epsilon = shape.epsilon

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.epsilon)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden, width, bias=False)
        self.k_proj = nn.Linear(shape.hidden, kv_width, bias=False)
        self.v_proj = nn.Linear(shape.hidden, kv_width, bias=False)
        self.o_proj = nn.Linear(width, shape.hidden, bias=False)

    def forward(self, x, cos, sin, mask, cache):
        batch, length, _ = x.shape
        split = lambda y: y.view(batch, length, -1, self.shape.head_dim).transpose(1, 2)
        q, k = rotate(split(self.q_proj(x)), cos, sin), rotate(split(self.k_proj(x)), cos, sin)
        v = split(self.v_proj(x))
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
            cache[:] = [k, v]
        groups = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        scores = q * self.shape.head_dim**-0.5 @ k.transpose(2, 3) + mask
        y = scores.softmax(dim=-1).to(v.dtype) @ v
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.input_layernorm = Norm(shape)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape)
        self.mlp = FeedForward(shape)

    def forward(self, x, cos, sin, mask, cache):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class TinyLlama(nn.Module):
    """The model. Its embedding is the sum of a table, of the entry of each token's unspaced twin,
    and of one vector for the leading space; the sum is what is exported."""

    def __init__(self, shape: Shape, twins: list[int]):
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape)
        twin = torch.tensor(twins)
        self.register_buffer("twin", twin, persistent=False)
        self.register_buffer("spaced", (twin != torch.arange(shape.vocabulary)).float()[:, None], persistent=False)
        self.table = nn.Parameter(torch.randn(shape.vocabulary, shape.hidden) * 0.05)
        self.offset = nn.Parameter(torch.zeros(shape.vocabulary, shape.hidden))
        self.space = nn.Parameter(torch.randn(shape.hidden) * 0.05)
        cos, sin = rotary(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for layer in self.layers:
            nn.init.zeros_(layer.self_attn.o_proj.weight)
            nn.init.zeros_(layer.mlp.down_proj.weight)

    def embedding(self):
        """The effective embedding, which is also the head."""
        return self.table[self.twin] + self.offset + self.spaced * self.space

    def hidden(self, ids, embedding, positions=None, mask=None, caches=None):
        """The normed final states [batch, length, hidden]."""
        x = F.embedding(ids, embedding)
        rows = slice(0, ids.shape[1]) if positions is None else positions
        cos, sin = self.cos[rows], self.sin[rows]
        if positions is not None:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        if mask is None:
            mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
        mask = torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, -30000.0)
        if torch.is_autocast_enabled(ids.device.type):
            x, cos, sin, mask = x.bfloat16(), cos.bfloat16(), sin.bfloat16(), mask.bfloat16()
        for index, layer in enumerate(self.layers):
            x = layer(x, cos, sin, mask, None if caches is None else caches[index])
        return self.norm(x)

    def exported(self) -> dict[str, torch.Tensor]:
        """The tensors in BF16 under Hugging Face's names."""
        tensors = {"model.embed_tokens.weight": self.embedding(), "model.norm.weight": self.norm.weight}
        for name, parameter in self.layers.named_parameters():
            tensors[f"model.layers.{name}"] = parameter
        return {name: tensor.detach().to("cpu", torch.bfloat16).contiguous() for name, tensor in tensors.items()}

    def load_exported(self, tensors: dict[str, torch.Tensor]):
        """Takes over exported tensors, upcast to this model's own precision."""
        with torch.no_grad():
            whole = tensors["model.embed_tokens.weight"].float()
            self.table.copy_(whole)
            self.offset.copy_(whole - self.table[self.twin] - self.spaced * self.space)
            self.norm.weight.copy_(tensors["model.norm.weight"])
            for name, parameter in self.layers.named_parameters():
                parameter.copy_(tensors[f"model.layers.{name}"])


@torch.no_grad()
def greedy(model: TinyLlama, prompts: list[list[int]], stop: int, steps: int) -> list[list[int]]:
    """Greedy continuations (without the stop token) of prompts of any lengths."""
    device = model.table.device
    embedding = model.embedding()
    width = max(map(len, prompts))
    pads = torch.tensor([width - len(ids) for ids in prompts], device=device)
    ids = torch.tensor([[stop] * (width - len(row)) + row for row in prompts], device=device)
    columns = torch.arange(width + steps, device=device)
    visible = columns[None] >= pads[:, None]
    causal = columns[None, :width] <= columns[:width, None]
    mask = (visible[:, None, :width] & causal[None]) | torch.eye(width, dtype=torch.bool, device=device)
    caches = [[] for _ in model.layers]
    states = model.hidden(ids, embedding, (columns[None, :width] - pads[:, None]).clamp(min=0), mask[:, None], caches)
    outputs, alive = [[] for _ in prompts], [True] * len(prompts)
    for step in range(steps):
        token = (states[:, -1].to(embedding.dtype) @ embedding.T).argmax(dim=-1)
        for row, value in enumerate(token.tolist()):
            alive[row] = alive[row] and value != stop
            if alive[row]:
                outputs[row].append(value)
        length = width + step + 1
        if not any(alive) or length >= model.shape.context:
            break
        states = model.hidden(
            token[:, None], embedding, (length - 1 - pads)[:, None], visible[:, None, None, :length], caches
        )
    return outputs
