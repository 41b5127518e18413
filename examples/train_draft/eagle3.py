"""EAGLE-3's draft layer (Li et al., arXiv:2503.01840): it reads states of three of the target's layers, is not asked
for the target's own states, and has its own head of few tokens."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from learning import Lesson
from model import Attention, FeedForward, Norm, Shape  # of examples/tiny_model, like the next
from torch import nn
from train_draft import Eagle


class Eagle3Layer(nn.Module):
    """A Llama layer whose attention reads a token's embedding beside its input."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.input_layernorm, self.hidden_norm = Norm(shape), Norm(shape)
        self.self_attn = Attention(shape)
        for name in ("q_proj", "k_proj", "v_proj"):
            rows = getattr(self.self_attn, name).out_features
            setattr(self.self_attn, name, nn.Linear(2 * shape.hidden, rows, bias=False))
        self.post_attention_layernorm = Norm(shape)
        self.mlp = FeedForward(shape)


class Eagle3(Eagle):
    """The layer and its head over `tokens` [K], those of the target that it can draft."""

    def __init__(self, shape: Shape, tokens: torch.Tensor):
        nn.Module.__init__(self)
        self.shape = shape
        self.fc = nn.Linear(3 * shape.hidden, shape.hidden, bias=False)
        self.midlayer = Eagle3Layer(shape)
        self.norm = Norm(shape)
        self.lm_head = nn.Linear(shape.hidden, len(tokens), bias=False)
        rows = torch.full((shape.vocabulary,), -1).index_put((tokens,), torch.arange(len(tokens)))
        self.register_buffer("tokens", tokens)
        self.register_buffer("rows", rows, persistent=False)  # [V], -1 where a token has none
        nn.init.zeros_(self.midlayer.self_attn.o_proj.weight)
        nn.init.zeros_(self.midlayer.mlp.down_proj.weight)

    @property
    def layers(self):
        return [self.midlayer]

    def begin(self, token, state):
        return self.fc(state[..., self.shape.hidden :].to(self.fc.weight.dtype))

    def go_on(self, token, guess):
        return guess

    def attended(self, token, x):
        layer = self.midlayer
        return torch.cat((layer.input_layernorm(token.to(x.dtype)), layer.hidden_norm(x)), dim=-1)

    def logits(self, guesses):
        """Of the tokens that follow, [..., K]."""
        return self.lm_head(self.norm(guesses))

    def loss(self, lesson: Lesson, drafts: torch.Tensor):
        """Of drafted states [texts, bases, depth, H]: cross-entropy where the target's likeliest token has a row, and
        the shares of right guesses everywhere."""
        logits = self.logits(drafts[lesson.picked]).float()
        rows = self.rows[lesson.top]
        shares = F.normalize(lesson.shares * (rows >= 0), p=1, dim=-1)
        weight = lesson.weight * (rows[:, 0] >= 0)
        right = (logits.gather(1, rows.clamp(min=0)) * shares).sum(dim=-1)
        return (logits.logsumexp(dim=-1) - right) @ weight, lesson.rights(logits.argmax(dim=-1) == rows[:, 0])

    def exported(self) -> dict[str, torch.Tensor]:
        """The tensors in BF16 under EAGLE-3's names; row i of the head is token i + d2t[i]."""
        tensors = {
            name: tensor.detach().to("cpu", torch.bfloat16).contiguous()
            for name, tensor in self.state_dict().items()
            if name != "tokens"
        }
        return tensors | {"d2t": (self.tokens - torch.arange(len(self.tokens))).cpu()}


def eagle3_of(shape: Shape, tensors: dict[str, torch.Tensor]) -> Eagle3:
    """The layer of an export, upcast to float32."""
    offsets = tensors.pop("d2t")
    tokens = offsets + torch.arange(len(offsets))
    eagle = Eagle3(replace(shape, intermediate=len(tensors["midlayer.mlp.gate_proj.weight"])), tokens)
    eagle.load_state_dict(tensors | {"tokens": tokens})
    return eagle.eval()
