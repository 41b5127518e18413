"""What the drafts' trainings share: the optimizer, the texts, a batch's loss, the loop, and the measure of drafts."""

import math
import random
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from states import ANSWER, NOTHING, PROMPT, Text, read, states_folder
from target import Target
from train_draft import Imitation  # of examples/tiny_model
from train import rate

TEXTS, BASES = 12, 112  # of a step: texts, and drafts in each
PROMPT_WEIGHT, PROMPT_SHARE, DEPTH_DECAY = 0.4, 0.35, 0.9
ARGMAX_SHARE = 0.3
SAMPLED = 768
SMALL_RATE, HEAD_RATE = 2e-3, 2e-4  # of biases and norms, of a head of the draft's own
# Polar Express, Amsel et al., arXiv:2505.16932: the first three of its steps.
ORTHOGONAL = ((8.2872, -23.5959, 17.3004), (4.1071, -2.9478, 0.5448), (3.9487, -2.9089, 0.5518))


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; tiny_model's is in bfloat16 whatever the processor."""

    def __init__(self, parameters, lr: float, dtype: torch.dtype, momentum: float = 0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})
        self.dtype = dtype

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                buffer.lerp_(parameter.grad, 1 - group["momentum"])
                x = parameter.grad.lerp(buffer, group["momentum"])
                tall = x.shape[0] > x.shape[1]
                x = x.T if tall else x
                x = (x / (x.norm() * 1.02 + 1e-7)).to(self.dtype)
                for a, b, c in ORTHOGONAL:
                    square = x @ x.T
                    x = a * x + (b * square + c * square @ square) @ x
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.add_(x.T if tall else x, alpha=-group["lr"] * scale)


class Texts:
    """Texts in random order, those that came meanwhile included each time round."""

    def __init__(self, target: Target, seed: int):
        self.folder = states_folder(target, "training")
        self.files, self.texts, self.ready = set(), [], []
        self.rng = random.Random(seed)

    def refresh(self):
        for file in sorted(self.folder.glob("*.safetensors")):
            if file not in self.files:
                self.files.add(file)
                self.texts += [text for text in read(file) if len(text.states) > 2]

    def next(self) -> list[Text]:
        if len(self.ready) < TEXTS:
            self.refresh()
            self.ready = self.rng.sample(self.texts, len(self.texts))
        some, self.ready = self.ready[:TEXTS], self.ready[TEXTS:]
        return some

    @property
    def tokens(self) -> tuple[int, int]:
        """How many positions there are of answers and of prompts."""
        return tuple(sum(int((text.kinds == kind).sum()) for text in self.texts) for kind in (ANSWER, PROMPT))


def padded(parts: list[torch.Tensor], length: int) -> torch.Tensor:
    return torch.stack([F.pad(part, (0, 0) * (part.ndim - 1) + (0, length - len(part))) for part in parts])


class Lesson:
    """A batch of texts, the places where drafts begin in them, and what the target says of what follows."""

    def __init__(self, target: Target, texts: list[Text], depth: int):
        length = max(len(text.states) for text in texts)
        join = lambda parts: padded(list(parts), length)
        self.states, follows = join(t.states.float() for t in texts), join(t.tokens[1:] for t in texts)
        kinds, top = join(t.kinds for t in texts), join(t.top for t in texts)
        # They must add up to 1, or the loss falls with all logits alike.
        shares = join(F.normalize(t.shares, p=1, dim=-1) for t in texts) * (1 - ARGMAX_SHARE)
        shares[..., 0] += ARGMAX_SHARE
        self.embedded = F.embedding(follows, target.embedding)

        # Drafts begin where an answer's token follows, and after a few of the prompts' tokens.
        chance = (kinds == ANSWER) + PROMPT_SHARE * (kinds == PROMPT)
        order = (torch.rand(chance.shape) < chance) * (1 + torch.rand(chance.shape))
        bases = order.topk(min(BASES, length), dim=1)
        self.bases, real = bases.indices, bases.values > 0
        predicted = self.bases[..., None] + 1 + torch.arange(depth)
        inside = predicted < length
        predicted = predicted.clamp(max=length - 1)
        kind = kinds.gather(1, predicted.flatten(1)).view_as(predicted)
        worth = torch.where(kind == ANSWER, 1.0, PROMPT_WEIGHT) * (kind != NOTHING)
        weights = worth * (inside & real[..., None]) * DEPTH_DECAY ** torch.arange(depth)
        flat = predicted + torch.arange(len(texts))[:, None, None] * length
        self.picked = weights > 0
        self.weight, at = weights[self.picked] / weights.sum(), flat[self.picked]
        self.final = self.states[..., : target.shape.hidden]
        self.wanted = self.final.flatten(0, 1)[at]
        self.top, self.shares = top.flatten(0, 1)[at], shares.flatten(0, 1)[at]
        levels = torch.arange(depth).expand_as(self.picked)[self.picked]
        self.own = [(kind[self.picked] == ANSWER) & (levels == level) for level in range(depth)]
        self.follows, self.target = follows, target

    def loss(self, drafts: torch.Tensor, unit: float = 1.0):
        """Of drafted states [texts, bases, depth, H] in a unit: cross-entropy, the distance to the states that they
        guess, and the shares of right guesses."""
        # Only the rows of the head that the batch is about, and a sample of the others with a bias for those not drawn.
        head = self.target.head
        known = torch.cat((self.follows.flatten(), self.top.flatten())).unique()
        rest = torch.ones(len(head), dtype=torch.bool).index_fill_(0, known, False).nonzero()[:, 0]
        rows = torch.cat((known, rest[torch.randperm(len(rest))[:SAMPLED]]))
        bias = torch.zeros(len(rows))
        bias[len(known) :] = math.log(len(rest) / SAMPLED)
        place = torch.zeros(len(head), dtype=torch.long)
        place[rows] = torch.arange(len(rows))
        drafts = drafts[self.picked]
        loss, hits = Imitation.apply(drafts * unit, head[rows], bias, place[self.top], self.shares, self.weight)
        miss = F.smooth_l1_loss(drafts, self.wanted / unit, reduction="none").mean(dim=-1) @ self.weight
        return loss, miss, self.rights(hits)

    def rights(self, hits: torch.Tensor) -> list[float]:
        """The share of right guesses at each level behind answers' tokens."""
        return [hits[own].float().mean().item() for own in self.own]


@dataclass
class Training:
    """A model's parameters under their optimizers, on a clock."""

    model: torch.nn.Module
    minutes: float
    rate: float  # of matrices
    dtype: torch.dtype = torch.float32  # of large products
    elapsed: float = 0.0
    step: int = 0

    def __post_init__(self):
        named = dict(self.model.named_parameters())
        head = named.pop("lm_head.weight", None)
        parts = [[parameter for parameter in named.values() if parameter.ndim == ndim] for ndim in (2, 1)]
        adam = lambda some, lr: torch.optim.AdamW(some, lr=lr, betas=(0.9, 0.97), weight_decay=0.0)
        self.optimizers = [Muon(parts[0], lr=self.rate, dtype=self.dtype), adam(parts[1], SMALL_RATE)]
        if head is not None:
            self.optimizers.append(adam([head], HEAD_RATE))

    def load(self, checkpoint):
        kept = torch.load(checkpoint, weights_only=True)
        self.model.load_state_dict(kept["model"])
        for optimizer, state in zip(self.optimizers, kept["optimizers"]):
            optimizer.load_state_dict(state)
        self.elapsed, self.step = kept["elapsed"], kept["step"]

    def save(self, checkpoint):
        states = [optimizer.state_dict() for optimizer in self.optimizers]
        whole = {"model": self.model.state_dict(), "optimizers": states, "elapsed": self.elapsed, "step": self.step}
        partial = checkpoint.with_suffix(".partial")
        torch.save(whole, partial)
        partial.rename(checkpoint)

    def run(self, texts: Texts, loss_of, keep, every: float):
        """Steps until the time is over; `loss_of(texts, progress)` gives a loss and shares of right guesses, and
        `keep()` is called every few minutes and at the end."""
        before, recent = self.elapsed, []
        begin = kept = told = time.monotonic()
        while self.elapsed < self.minutes * 60:
            progress = self.elapsed / (self.minutes * 60)
            with torch.autocast("cpu", self.dtype, enabled=self.dtype != torch.float32):
                loss, rights = loss_of(texts.next(), progress)
            loss.backward()
            for optimizer, base in zip(self.optimizers, (self.rate, SMALL_RATE, HEAD_RATE)):
                for group in optimizer.param_groups:
                    group["lr"] = base * rate(progress)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            self.step += 1
            recent.append([loss.item(), *rights])
            now = time.monotonic()
            self.elapsed = before + now - begin
            if now - told > 20:
                depth = max(map(len, recent))
                rows = [row + [math.nan] * (depth - len(row)) for row in recent]
                mean, *shares = torch.tensor(rows).nanmean(dim=0).tolist()
                shares = " ".join(f"{100 * share:.1f}" for share in shares)
                counts = " + ".join(f"{count / 1000:.0f} k" for count in texts.tokens)
                print(
                    f"{self.elapsed / 60:6.2f} min  step {self.step:5}  of {counts} positions  loss {mean:.4f}  "
                    f"right {shares}",
                    flush=True,
                )
                recent, told = [], now
            if now - kept > every * 60:
                keep()
                kept = now
        keep()
        counts = " of answers and ".join(f"{count}" for count in texts.tokens)
        print(f"done: {self.step} steps of {TEXTS} texts, {counts} of prompts, {self.elapsed / 60:.1f} min", flush=True)


@torch.no_grad()
def measure(guess, likeliest, depth: int, texts: list[Text]) -> tuple[int, int]:
    """How many tokens of greedy answers there are, and how many passes a chain of drafts needs for them, where
    `guess(text, bases)` gives the states [bases, depth, H] drafted after each base, and `likeliest(state)` a token."""
    said = passes = 0
    for text in texts:
        n, start = len(text.tokens), int((text.kinds == ANSWER).nonzero()[0]) + 1
        bases = torch.arange(start - 1, n - 2)
        if not len(bases):
            continue
        drafts = guess(text, bases)
        at = start  # the last token that is known
        while at < n - 1:
            accepted = 0
            for level in range(min(depth, n - 2 - at)):
                if likeliest(drafts[at - start, level]) != int(text.tokens[at + 1 + level]):
                    break
                accepted += 1
            at += accepted + 1
            passes += 1
        said += n - 1 - start
    return said, passes


def evaluate(target: Target, guess, likeliest, depth: int, limit: int):
    """Prints the tokens of a pass by domain, on prompts that were held out."""
    print(f"| domain | tokens | passes | tokens of a pass, chain of {depth} |\n| --- | ---: | ---: | ---: |")
    for file in sorted(states_folder(target, "held_out").glob("*.safetensors")):
        said, passes = measure(guess, likeliest, depth, read(file)[:limit])
        print(f"| {file.stem[:-4]} | {said} | {passes} | {said / passes:.2f} |", flush=True)
