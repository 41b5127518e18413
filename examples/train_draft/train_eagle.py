"""Trains an EAGLE layer for the target on the texts that states.py has made so far, and exports it.

    python examples/train_draft/train_eagle.py --minutes 40 --threads 1
    python examples/train_draft/train_eagle.py --evaluate

It begins with the best linear guess of the next state. A checkpoint lies in the cache folder, and --resume goes on
from it."""

import argparse
import json
import math
import random
import time
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from states import ANSWER, NOTHING, PROMPT, Text, read, states_folder
from target import ROOT, Target, cache_folder, cached_gguf, load_tokenizer
from train_draft import Eagle, Imitation  # of examples/tiny_model
from train import keep_freed_memory, rate

OUT = ROOT / "examples/data/smollm2_draft"
WIDTH = 1024  # of the feed-forward part
TEXTS, BASES = 12, 56  # of a step: texts, and drafts in each
FIRST_DEPTH, DEPTH, DEEP_FROM = 2, 3, 0.4
MEASURED_DEPTH = 6
PROMPT_WEIGHT, PROMPT_SHARE, DEPTH_DECAY = 0.4, 0.35, 0.9
ARGMAX_SHARE, REGRESSION = 0.3, 0.3
SAMPLED = 768
EMBEDDING_SCALE = 16.0  # brings embeddings to the size of states
RIDGE = 30.0
RATE, SMALL_RATE = 0.015, 2e-3
QUESTIONS = ("What is the capital of France?", "Add 128 and 37.5 – quickly, it's for naïve users.\n\tThanks!")
# Polar Express, Amsel et al., arXiv:2505.16932: the first three of its steps.
ORTHOGONAL = ((8.2872, -23.5959, 17.3004), (4.1071, -2.9478, 0.5448), (3.9487, -2.9089, 0.5518))


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, in float32: tiny_model's is in bfloat16, which slows down a processor without it."""

    def __init__(self, parameters, lr: float, momentum: float = 0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                buffer.lerp_(parameter.grad, 1 - group["momentum"])
                x = parameter.grad.lerp(buffer, group["momentum"])
                tall = x.shape[0] > x.shape[1]
                x = x.T if tall else x
                x = x / (x.norm() * 1.02 + 1e-7)
                for a, b, c in ORTHOGONAL:
                    square = x @ x.T
                    x = a * x + (b * square + c * square @ square) @ x
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.add_(x.T if tall else x, alpha=-group["lr"] * scale)


class Texts:
    """Texts in random order, those that came meanwhile included each time round."""

    def __init__(self, seed: int):
        self.files, self.texts, self.ready = set(), [], []
        self.rng = random.Random(seed)

    def refresh(self):
        for file in sorted(states_folder("training").glob("*.safetensors")):
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


def linear_guess(target: Target, texts: list[Text]):
    """The weights [H, 2 H] and the bias that guess a state best from the token and the state before it."""
    size = 2 * target.shape.hidden + 1
    squares, products = torch.zeros(size, size), torch.zeros(size, target.shape.hidden)
    for text in texts:
        use = (text.kinds != NOTHING)[1:]
        tokens = F.embedding(text.tokens[1:-1][use], target.head) * EMBEDDING_SCALE
        pairs = torch.cat((tokens, text.states[:-1][use], torch.ones(len(tokens), 1)), dim=1)
        squares.addmm_(pairs.T, pairs)
        products.addmm_(pairs.T, text.states[1:][use])
    weights = torch.linalg.solve(squares + RIDGE * torch.eye(size), products).T
    return weights[:, :-1].contiguous(), weights[:, -1].contiguous()


def padded(parts: list[torch.Tensor], length: int) -> torch.Tensor:
    return torch.stack([F.pad(part, (0, 0) * (part.ndim - 1) + (0, length - len(part))) for part in parts])


def loss_of(target: Target, eagle: Eagle, texts: list[Text], depth: int):
    """The loss of drafts of some depth, and the share of right guesses at each level behind answers' tokens."""
    length = max(len(text.states) for text in texts)
    states, follows = padded([t.states for t in texts], length), padded([t.tokens[1:] for t in texts], length)
    kinds, top = padded([t.kinds for t in texts], length), padded([t.top for t in texts], length)
    # They must add up to 1, or the loss falls with all logits alike.
    shares = padded([F.normalize(t.shares, p=1, dim=-1) for t in texts], length) * (1 - ARGMAX_SHARE)
    shares[..., 0] += ARGMAX_SHARE

    # Drafts begin where an answer's token follows, and behind a few of the prompts' tokens.
    chance = (kinds == ANSWER) + PROMPT_SHARE * (kinds == PROMPT)
    order = (torch.rand(chance.shape) < chance) * (1 + torch.rand(chance.shape))
    bases = order.topk(min(BASES, length), dim=1)
    bases, real = bases.indices, bases.values > 0
    predicted = bases[..., None] + 1 + torch.arange(depth)
    inside = predicted < length
    predicted = predicted.clamp(max=length - 1)
    kind = kinds.gather(1, predicted.flatten(1)).view_as(predicted)
    worth = torch.where(kind == ANSWER, 1.0, PROMPT_WEIGHT) * (kind != NOTHING)
    weights = worth * (inside & real[..., None]) * DEPTH_DECAY ** torch.arange(depth)
    flat = predicted + torch.arange(len(texts))[:, None, None] * length
    picked = weights > 0
    weight, at = weights[picked] / weights.sum(), flat[picked]

    # Only the rows of the head that the batch is about, and a sample of the others with a bias for those not drawn.
    known = torch.cat((follows.flatten(), top.flatten(0, 1)[at].flatten())).unique()
    rest = torch.ones(len(target.head), dtype=torch.bool).index_fill_(0, known, False).nonzero()[:, 0]
    rows = torch.cat((known, rest[torch.randperm(len(rest))[:SAMPLED]]))
    bias = torch.zeros(len(rows))
    bias[len(known) :] = math.log(len(rest) / SAMPLED)
    place = torch.zeros(len(target.head), dtype=torch.long)
    place[rows] = torch.arange(len(rows))

    drafts = eagle.unroll(F.embedding(follows, target.head), states, bases, depth, target.cos, target.sin)[picked]
    loss, hits = Imitation.apply(
        drafts, target.head[rows], bias, place[top.flatten(0, 1)[at]], shares.flatten(0, 1)[at], weight
    )
    miss = F.smooth_l1_loss(drafts, states.flatten(0, 1)[at], reduction="none").mean(dim=-1)
    levels = torch.arange(depth).expand_as(picked)[picked]
    own = kind[picked] == ANSWER
    rights = [hits[own & (levels == level)].float().mean().item() for level in range(depth)]
    return loss + REGRESSION * (miss @ weight), rights


def load_eagle(target: Target, file: Path) -> Eagle:
    """The exported layer, upcast to float32."""
    tensors = load_file(file)
    eagle = Eagle(replace(target.shape, intermediate=len(tensors["layers.0.mlp.gate_proj.weight"])))
    eagle.load_state_dict(tensors)
    return eagle.eval()


@torch.no_grad()
def measure(target: Target, eagle: Eagle, texts: list[Text]) -> tuple[int, int]:
    """How many tokens of greedy answers there are, and how many passes a chain of drafts needs for them."""
    said = passes = 0
    for text in texts:
        n, start = len(text.tokens), int((text.kinds == ANSWER).nonzero()[0]) + 1
        bases = torch.arange(start - 1, n - 2)[None]
        if not bases.numel():
            continue
        embedded = F.embedding(text.tokens[None, 1:], target.head)
        drafts = eagle.unroll(embedded, text.states[None], bases, MEASURED_DEPTH, target.cos, target.sin)[0]
        at = start  # the last token that is known
        while at < n - 1:
            accepted = 0
            for level in range(min(MEASURED_DEPTH, n - 2 - at)):
                if int((target.head @ drafts[at - start, level]).argmax()) != int(text.tokens[at + 1 + level]):
                    break
                accepted += 1
            at += accepted + 1
            passes += 1
        said += n - 1 - start
    return said, passes


def evaluate(target: Target, eagle: Eagle, limit: int):
    """Prints the tokens of a pass by domain, on prompts that were held out."""
    print(f"| domain | tokens | passes | tokens of a pass, chain of {MEASURED_DEPTH} |\n| --- | ---: | ---: | ---: |")
    for file in sorted(states_folder("held_out").glob("*.safetensors")):
        said, passes = measure(target, eagle, read(file)[:limit])
        print(f"| {file.stem[5:]} | {said} | {passes} | {said / passes:.2f} |", flush=True)


@torch.no_grad()
def reference(target: Target, tokenizer, eagle: Eagle) -> dict:
    """Tokens of a text, the target's state behind them and the layer's first two guesses, for C++ to compare with."""
    digits = lambda states: [[float(f"{x:.6g}") for x in row] for row in states.tolist()]
    cases = []
    for question in QUESTIONS:
        text = target.chat([("user", question)])
        tokens = tokenizer.encode(text).ids
        states = target.states(tokens)
        given = [int(F.linear(states[-1], target.head).argmax())]
        given.append(int(F.linear(target.states(tokens + given)[-1], target.head).argmax()))
        # The last row has no state: only its token is read, by the second step.
        embedded = F.embedding(torch.tensor([tokens[1:] + given]), target.head)
        base = torch.tensor([[len(tokens) - 1]])
        guesses = eagle.unroll(embedded, F.pad(states, (0, 0, 0, 1))[None], base, 2, target.cos, target.sin)[0, 0]
        state = digits(states[-1:])[0]
        cases.append({"text": text, "tokens": tokens, "given": given, "state": state, "eagle": digits(guesses)})
    return {"dtype": "float32 arithmetic on the weights of both files", "cases": cases}


def export(target: Target, eagle: Eagle, out: Path):
    """Writes the layer and the reference; each file appears in one step."""
    out.mkdir(parents=True, exist_ok=True)
    partial = out / "eagle.safetensors.partial"
    save_file(eagle.exported(), partial, metadata={"format": "pt"})
    partial.chmod(0o644)
    partial.rename(out / "eagle.safetensors")
    tokenizer = load_tokenizer(cached_gguf())
    known = reference(target, tokenizer, load_eagle(target, out / "eagle.safetensors"))
    (out / "reference_draft.json").write_text(json.dumps(known, ensure_ascii=False) + "\n", encoding="utf-8")


def train(target: Target, options):
    torch.manual_seed(options.seed)
    texts = Texts(options.seed)
    texts.refresh()
    eagle = Eagle(replace(target.shape, intermediate=options.width), EMBEDDING_SCALE)
    parameters = list(eagle.parameters())
    optimizers = [
        Muon([parameter for parameter in parameters if parameter.ndim == 2], lr=RATE),
        torch.optim.AdamW([p for p in parameters if p.ndim == 1], lr=SMALL_RATE, betas=(0.9, 0.97), weight_decay=0.0),
    ]
    bases = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    checkpoint, before, step = cache_folder() / "draft" / "eagle.pt", 0.0, 0
    if options.resume:
        kept = torch.load(checkpoint, weights_only=True)
        eagle.load_state_dict(kept["eagle"])
        for optimizer, state in zip(optimizers, kept["optimizers"]):
            optimizer.load_state_dict(state)
        before, step = kept["elapsed"], kept["step"]
    else:
        weights, bias = linear_guess(target, texts.texts)
        with torch.no_grad():
            eagle.fc.weight.copy_(weights)
            eagle.fc.bias.copy_(bias)

    def keep(elapsed: float):
        states = [optimizer.state_dict() for optimizer in optimizers]
        whole = {"eagle": eagle.state_dict(), "optimizers": states, "elapsed": elapsed, "step": step}
        torch.save(whole, checkpoint.with_suffix(".partial"))
        checkpoint.with_suffix(".partial").rename(checkpoint)
        export(target, eagle, options.out)

    begin = exported = told = time.monotonic()
    recent = []
    while (elapsed := before + time.monotonic() - begin) < options.minutes * 60:
        progress = elapsed / (options.minutes * 60)
        depth = FIRST_DEPTH if progress < DEEP_FROM else DEPTH
        loss, rights = loss_of(target, eagle, texts.next(), depth)
        loss.backward()
        for optimizer, base in zip(optimizers, bases):
            for group, lr in zip(optimizer.param_groups, base):
                group["lr"] = lr * rate(progress)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        recent.append([loss.item(), *rights, *[math.nan] * (DEPTH - depth)])
        now = time.monotonic()
        if now - told > 20:
            mean, *shares = torch.tensor(recent).nanmean(dim=0).tolist()
            shares = " ".join(f"{100 * share:.1f}" for share in shares if not math.isnan(share))
            counts = " + ".join(f"{count / 1000:.0f} k" for count in texts.tokens)
            print(
                f"{elapsed / 60:6.2f} min  step {step:5}  of {counts} positions  loss {mean:.4f}  right {shares}",
                flush=True,
            )
            recent, told = [], now
        if now - exported > options.export_every * 60:
            keep(before + now - begin)
            exported = now
    keep(elapsed)
    counts = " of answers and ".join(f"{count}" for count in texts.tokens)
    print(f"done: {step} steps of {TEXTS} texts, {counts} positions of prompts, {elapsed / 60:.1f} min", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=40, help="wall-clock budget, in all (default 40)")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--out", type=Path, default=OUT, help="the layer's folder (examples/data/smollm2_draft)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--width", type=int, default=WIDTH, help=f"feed-forward width (default {WIDTH})")
    parser.add_argument("--export-every", type=float, default=6, help="minutes between checkpoints (default 6)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--evaluate", action="store_true", help="measure the layer in --out, train nothing")
    parser.add_argument("--limit", type=int, default=None, help="texts of a domain to measure on (default: all)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_freed_memory()
    target = Target(cached_gguf())
    if options.evaluate:
        evaluate(target, load_eagle(target, options.out / "eagle.safetensors"), options.limit)
    else:
        train(target, options)


if __name__ == "__main__":
    main()
