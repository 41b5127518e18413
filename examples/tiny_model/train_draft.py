"""Trains draft heads for the embedded model, one EAGLE layer and three Medusa heads, and exports them.

python examples/tiny_model/train_draft.py --minutes 45 --seed 29 --threads 2
python examples/tiny_model/train_draft.py --evaluate
"""

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import generator
import prompt
import torch
import torch.nn.functional as F
from evaluate import BATCH, DATA, load
from model import Attention, FeedForward, Norm, Shape, TinyLlama, greedy, rotate
from safetensors.torch import load_file, save_file
from torch import nn
from train import Batches, Muon, keep_freed_memory, rate

DEPTH, HEADS, MEASURED_DEPTH = 5, 3, 6
BLOCKS = 2
WIDTH = 1024
REORDERED_SHARE = 0.15
PROMPT_WEIGHT, DEPTH_DECAY = 0.1, 0.9
TOP, ARGMAX_SHARE = 4, 0.3
SAMPLED = 1024
REGRESSION = 0.5
EMBEDDING_SCALE = 5.0
CHUNK = 512


class DraftLayer(nn.Module):
    """A Llama layer whose attention reads its input as it is."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape)
        self.mlp = FeedForward(shape)


class Eagle(nn.Module):
    """EAGLE's draft model: from a token and the state before it, the state after it.

    It trains on embeddings scaled to the size of the states; the export folds the scale into `fc`."""

    def __init__(self, shape: Shape, scale: float = 1.0):
        super().__init__()
        self.shape, self.scale = shape, scale
        self.fc = nn.Linear(2 * shape.hidden, shape.hidden)
        self.layers = nn.ModuleList([DraftLayer(shape)])
        nn.init.zeros_(self.fc.bias)
        nn.init.zeros_(self.layers[0].self_attn.o_proj.weight)
        nn.init.zeros_(self.layers[0].mlp.down_proj.weight)

    def exported(self) -> dict[str, torch.Tensor]:
        """The tensors in BF16 under EAGLE's names."""
        tensors = {name: tensor.detach().float() for name, tensor in self.state_dict().items()}
        tokens, states = tensors["fc.weight"].chunk(2, dim=1)
        tensors["fc.weight"] = torch.cat((tokens * self.scale, states), dim=1)
        return {name: tensor.to("cpu", torch.bfloat16).contiguous() for name, tensor in tensors.items()}

    def begin(self, token, state):
        """What the layer reads of a token and the target's state before it."""
        return self.fc(torch.cat((token * self.scale, state.to(token.dtype)), dim=-1))

    def go_on(self, token, guess):
        """The same of a guess in the state's place."""
        return self.begin(token, guess)

    def attended(self, token, x):
        """What the attention reads, where the layer reads x."""
        return x

    def unroll(self, embedded, hidden, bases, depth: int, cos, sin):
        """Drafts of `depth` steps from many positions of a known text at once: [batch, bases, depth, hidden].

        `embedded[:, i]` is the token after state `hidden[:, i]`. Step s of base i reads that of i + s and the
        output of step s - 1 (step 0 reads the target's state), and attends to the first steps of all
        positions up to i and to its own base's later steps, as a draft chain does."""
        attention, layer = self.layers[0].self_attn, self.layers[0]
        head_dim, groups = self.shape.head_dim, self.shape.heads // self.shape.kv_heads
        split = lambda y: y.unflatten(-1, (-1, head_dim)).transpose(1, 2)
        take = lambda y, rows: y.gather(1, rows[..., None].expand(-1, -1, y.shape[-1]))

        def turned(y, positions):
            angles = [table[positions].to(y.dtype).unsqueeze(-3) for table in (cos, sin)]
            return rotate(y, *angles)

        def keys_values(y, positions):
            k, v = turned(split(attention.k_proj(y)), positions), split(attention.v_proj(y))
            return k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)

        length = hidden.shape[1]
        columns = torch.arange(length)
        x = self.begin(embedded, hidden)
        y = self.attended(embedded, x)
        keys, values = keys_values(y, columns)
        unseen = (columns > bases[..., None]).unsqueeze(1)
        x, y, later, outputs = take(x, bases), take(y, bases), [], []
        for step in range(depth):
            at = (bases + step).clamp(max=length - 1)
            if step:
                token = take(embedded, at)
                x = self.go_on(token, outputs[-1])
                y = self.attended(token, x)
                later.append(keys_values(y, at))
            q = turned(split(attention.q_proj(y)), at) * head_dim**-0.5
            scores = [(q @ keys.transpose(2, 3)).masked_fill(unseen, -30000.0)]
            scores += [(q * k).sum(-1, keepdim=True).to(q.dtype) for k, _ in later]
            shares = torch.cat(scores, dim=-1).softmax(dim=-1).to(values.dtype)
            y = shares[..., :length] @ values
            for index, (_, v) in enumerate(later):
                y = y + shares[..., length + index, None] * v
            x = x + attention.o_proj(y.transpose(1, 2).flatten(2))
            outputs.append(x + layer.mlp(layer.post_attention_layernorm(x)))
        return torch.stack(outputs, dim=2)


class Residual(nn.Module):
    """Medusa's block."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return x + F.silu(self.linear(x))


class Medusa(nn.ModuleList):
    """Heads of residual blocks; each turns a state into that of a later position."""

    def __init__(self, width: int, heads: int = HEADS, blocks: int = BLOCKS):
        super().__init__(nn.Sequential(*(Residual(width) for _ in range(blocks))) for _ in range(heads))

    def forward(self, hidden):
        return torch.stack([head(hidden) for head in self], dim=-2)

    def exported(self) -> dict[str, torch.Tensor]:
        """The tensors in BF16 under Medusa's names."""
        return {
            name: tensor.detach().to("cpu", torch.bfloat16).contiguous() for name, tensor in self.state_dict().items()
        }


class Imitation(torch.autograd.Function):
    """The cross-entropy of `states @ head.T + bias` to shares of a few tokens, and whether the first of them wins.

    The gradient is made on the way: no [N, V] tensor stays."""

    @staticmethod
    def forward(ctx, states, head, bias, tokens, shares, weights):
        total, hits, slopes = states.new_zeros((), dtype=torch.float32), [], []
        parts = zip(*(tensor.split(CHUNK) for tensor in (states, tokens, shares, weights)))
        for rows, some, share, weight in parts:
            logits = F.linear(rows.to(head.dtype), head).float().add_(bias)
            peak, chosen = logits.amax(dim=-1), logits.gather(1, some)
            hits.append(chosen[:, 0] == peak)
            powers = logits.sub_(peak[:, None]).exp_()
            mass = powers.sum(dim=-1)
            total += (mass.log() + peak - (chosen * share).sum(dim=-1)) @ weight
            error = powers.mul_((weight / mass)[:, None]).scatter_add_(1, some, -share * weight[:, None])
            slopes.append(error.to(head.dtype) @ head)
        ctx.save_for_backward(torch.cat(slopes).to(states.dtype))
        hits = torch.cat(hits)
        ctx.mark_non_differentiable(hits)
        return total, hits

    @staticmethod
    def backward(ctx, slope, _):
        return ctx.saved_tensors[0] * slope.to(ctx.saved_tensors[0].dtype), None, None, None, None, None


def chains(kinds, follows):
    """Where drafts begin [batch, bases], the positions that they predict and their weights [batch, bases, depth].

    A draft begins after a token of the assistant and counts within its turn; a few begin elsewhere."""
    count = (kinds > 0).sum(dim=1)
    bases = (kinds == 0).to(torch.uint8).sort(dim=1, stable=True).indices[:, : int(count.max())]
    predicted = bases[..., None] + 1 + torch.arange(DEPTH)
    inside = predicted < kinds.shape[1]
    predicted = predicted.clamp(max=kinds.shape[1] - 1)
    at = lambda table: table.gather(1, predicted.flatten(1)).view_as(predicted)
    own = kinds.gather(1, bases)[..., None]
    weights = torch.where(own == 2, (at(kinds) == 2).float(), PROMPT_WEIGHT * at(follows).float())
    real = torch.arange(bases.shape[1]) < count[:, None]
    weights = weights * (inside & real[..., None]) * DEPTH_DECAY ** torch.arange(DEPTH)
    return bases, predicted, weights


def opinions(hidden, needed, head):
    """The target's likeliest tokens and their shares [batch * length, TOP], made where `needed`."""
    tokens = torch.zeros(needed.numel(), TOP, dtype=torch.long)
    shares = torch.zeros(needed.numel(), TOP)
    for rows in needed.flatten().nonzero()[:, 0].split(CHUNK):
        logits, tokens[rows] = F.linear(hidden.flatten(0, 1)[rows], head).float().topk(TOP, dim=-1)
        shares[rows] = logits.softmax(dim=-1) * (1 - ARGMAX_SHARE)
    shares[:, 0] += ARGMAX_SHARE
    return tokens, shares


class Teacher:
    """The frozen target, and what it says of a batch."""

    def __init__(self, target: TinyLlama, pad: int):
        self.target, self.pad = target, pad
        self.embedding = target.embedding().detach()
        self.head = self.embedding.bfloat16()

    def contenders(self, ids, tokens):
        """The rows of the head that a batch is about and a sample of the others, and a bias that makes up for
        those not drawn; also each token's place among them."""
        known = torch.cat((ids.flatten(), tokens.flatten())).unique()
        rest = torch.ones(len(self.head), dtype=torch.bool).index_fill_(0, known, False)
        rest = rest.nonzero()[:, 0]
        drawn = rest[torch.randperm(len(rest))[:SAMPLED]]
        rows = torch.cat((known, drawn))
        bias = torch.zeros(len(rows))
        bias[len(known) :] = math.log(len(rest) / len(drawn))
        place = torch.zeros(len(self.head), dtype=torch.long)
        place[rows] = torch.arange(len(rows))
        return self.head[rows], bias, place

    def losses(self, eagle: Eagle, medusa: Medusa, ids, follows, kinds):
        """The loss, and the share of right guesses for each depth and for each head."""
        with torch.no_grad():
            hidden = self.target.hidden(ids, self.embedding)
            bases, predicted, weights = chains(kinds, follows != self.pad)
            flat = predicted + torch.arange(len(ids))[:, None, None] * ids.shape[1]
            needed = torch.zeros(ids.numel(), dtype=torch.bool)
            needed[flat[weights > 0]] = True
            tokens, shares = opinions(hidden, needed, self.head)
            head, bias, place = self.contenders(ids, tokens[needed])
            tokens = place[tokens]
            start = hidden.gather(1, bases[..., None].expand(-1, -1, hidden.shape[-1]))
        embedded = F.embedding(follows, self.head)
        drafts = eagle.unroll(embedded, hidden, bases, DEPTH, self.target.cos, self.target.sin)
        total, rights = 0.0, []
        for states in (drafts, medusa(start)):
            wanted = weights[..., : states.shape[2]]
            picked = wanted > 0
            weight, at = wanted[picked] / wanted.sum(), flat[..., : states.shape[2]][picked]
            loss, hits = Imitation.apply(states[picked], head, bias, tokens[at], shares[at], weight)
            total = total + loss
            own = (kinds.gather(1, bases) == 2)[..., None].expand_as(picked)[picked]
            depth = torch.arange(states.shape[2]).expand_as(picked)[picked]
            rights.append([hits[own & (depth == index)].float().mean().item() for index in range(states.shape[2])])
            if states is drafts:
                truth = hidden.flatten(0, 1)[at].float()
                miss = F.smooth_l1_loss(states[picked].float(), truth, reduction="none").mean(dim=-1)
                total = total + REGRESSION * (miss @ weight)
        return total, rights


def read(directory: Path, shape: Shape) -> tuple[Eagle, Medusa]:
    """The exported draft models, upcast to float32."""
    tensors = load_file(directory / "eagle.safetensors")
    eagle = Eagle(replace(shape, intermediate=len(tensors["layers.0.mlp.gate_proj.weight"])))
    eagle.load_state_dict(tensors)
    tensors = load_file(directory / "medusa.safetensors")
    heads, blocks = (len({name.split(".")[index] for name in tensors}) for index in (0, 1))
    medusa = Medusa(shape.hidden, heads, blocks)
    medusa.load_state_dict(tensors)
    return eagle.eval(), medusa.eval()


def draft_two(target: TinyLlama, eagle: Eagle, tokens: list[int], given: list[int]):
    """EAGLE's two states behind `tokens` when it is given two more tokens, and the target's state before them."""
    embedding = target.embedding()
    hidden = target.hidden(torch.tensor([tokens]), embedding)
    # A last row without a state of its own: only its token is read, by the second step.
    padded = torch.cat((hidden, torch.zeros_like(hidden[:, :1])), dim=1)
    embedded = F.embedding(torch.tensor([tokens[1:] + given]), embedding)
    base = torch.tensor([[len(tokens) - 1]])
    return eagle.unroll(embedded, padded, base, 2, target.cos, target.sin)[0, 0], hidden[0, -1]


@torch.no_grad()
def reference(target: TinyLlama, eagle: Eagle, medusa: Medusa, cases: list[dict]) -> dict:
    """The draft models' states behind two prompts of the reference logits."""
    digits = lambda states: [[float(f"{x:.6g}") for x in row] for row in states.tolist()]
    rows = []
    for case in cases:
        states, last = draft_two(target, eagle, case["tokens"], case["greedy"][:2])
        rows.append(
            {
                "id": case["id"],
                "tokens": case["tokens"],
                "given": case["greedy"][:2],
                "eagle": digits(states),
                "medusa": digits(medusa(last)),
            }
        )
    return {"dtype": "float32 arithmetic on bfloat16 weights", "cases": rows}


def export(target: TinyLlama, eagle: Eagle, medusa: Medusa, out: Path):
    """Writes the draft models; each file appears in one step."""
    out.mkdir(parents=True, exist_ok=True)
    for name, model in (("eagle", eagle), ("medusa", medusa)):
        partial = out / f"{name}.safetensors.partial"
        save_file(model.exported(), partial, metadata={"format": "pt"})
        partial.chmod(0o644)
        partial.rename(out / f"{name}.safetensors")
    cases = json.loads((DATA / "reference_logits.json").read_text(encoding="utf-8"))["cases"]
    shortest = sorted(cases, key=lambda case: len(case["tokens"]))[:2]
    (out / "reference_draft.json").write_text(
        json.dumps(reference(target, *read(out, target.shape), shortest)) + "\n", encoding="utf-8"
    )


@torch.no_grad()
def measure(target: TinyLlama, tokenizer, eagle: Eagle, medusa: Medusa, rows: list[dict], steps: int):
    """Prints how well the drafts foresee the target's own greedy answers."""
    prompts = sorted((tokenizer.encode(row["prompt"]).ids for row in rows), key=len)
    stop, embedding = tokenizer.token_to_id(prompt.END), target.embedding()
    tried, right = torch.zeros(MEASURED_DEPTH), torch.zeros(MEASURED_DEPTH)
    seen, first, five = (torch.zeros(len(medusa)) for _ in range(3))
    said = passes = 0
    for start in range(0, len(prompts), BATCH):
        part = prompts[start : start + BATCH]
        for tokens, answer in zip(part, greedy(target, part, stop, steps)):
            answer = answer + [stop] * (len(answer) < steps)
            text = torch.tensor([tokens + answer])
            hidden = target.hidden(text[:, :-1], embedding)
            bases = torch.arange(len(tokens) - 1, text.shape[1] - 2)[None]
            if not bases.numel():
                continue
            embedded = F.embedding(text[:, 1:], embedding)
            drafts = eagle.unroll(embedded, hidden, bases, MEASURED_DEPTH, target.cos, target.sin)[0]
            following = bases[0, :, None] + 2 + torch.arange(MEASURED_DEPTH)
            exists = following < text.shape[1]
            truth = text[0][following.clamp(max=text.shape[1] - 1)]
            good = ((drafts @ embedding.T).argmax(dim=-1) == truth) & exists
            reached = good.int().cumprod(dim=1).bool()
            before = torch.cat((torch.ones_like(reached[:, :1]), reached[:, :-1]), dim=1)
            tried += (before & exists).sum(dim=0)
            right += reached.sum(dim=0)
            at = 0  # of the answer's tokens, the last one said; each pass accepts a chain and adds one token
            while at < len(answer) - 1:
                at += int(reached[at].sum()) + 1
                passes += 1
            said += len(answer) - 1
            guesses = (medusa(hidden[0, bases[0]]) @ embedding.T).topk(5, dim=-1).indices
            same = (guesses == truth[:, : len(medusa), None]) & exists[:, : len(medusa), None]
            seen += exists[:, : len(medusa)].sum(dim=0)
            first += same[..., 0].sum(dim=0)
            five += same.any(dim=-1).sum(dim=0)
    print("| EAGLE, depth | reached | accepted |\n| ---: | ---: | ---: |")
    for depth, (some, all_) in enumerate(zip(right.tolist(), tried.tolist()), 1):
        print(f"| {depth} | {all_:.0f} | {100 * some / all_:.1f} % |")
    print(f"\ntokens per pass with a chain of {MEASURED_DEPTH}: {said / passes:.2f} ({said} tokens, {passes} passes)\n")
    print("| Medusa, head | positions | first | among five |\n| ---: | ---: | ---: | ---: |")
    for head, (all_, one, any_) in enumerate(zip(seen.tolist(), first.tolist(), five.tolist()), 1):
        print(f"| {head} | {all_:.0f} | {100 * one / all_:.1f} % | {100 * any_ / all_:.1f} % |")


def train(target: TinyLlama, tokenizer, options):
    """Trains both on the same batches and exports them."""
    torch.manual_seed(options.seed)
    generator.REORDERED_SHARE = REORDERED_SHARE
    eagle = Eagle(replace(target.shape, intermediate=options.width), EMBEDDING_SCALE)
    medusa = Medusa(target.shape.hidden, blocks=options.blocks)
    teacher = Teacher(target, tokenizer.token_to_id(prompt.PAD))
    parameters = [*eagle.parameters(), *medusa.parameters()]
    optimizers = [
        Muon([parameter for parameter in parameters if parameter.ndim == 2], lr=0.02),
        torch.optim.AdamW(
            [parameter for parameter in parameters if parameter.ndim == 1], lr=2e-3, betas=(0.9, 0.97), weight_decay=0.0
        ),
    ]
    bases = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    batches = Batches(tokenizer, options.seed, options.batch_tokens)
    begin = exported = told = time.monotonic()
    step = tokens = 0
    recent = []
    while (elapsed := time.monotonic() - begin) < options.minutes * 60:
        ids, follows, kinds = batches.next(1.0)
        with torch.autocast("cpu", torch.bfloat16):
            loss, rights = teacher.losses(eagle, medusa, ids, follows, kinds)
        loss.backward()
        for optimizer, base in zip(optimizers, bases):
            for group, lr in zip(optimizer.param_groups, base):
                group["lr"] = lr * rate(elapsed / (options.minutes * 60))
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step, tokens = step + 1, tokens + ids.numel()
        recent.append([loss.item(), *rights[0], *rights[1]])
        now = time.monotonic()
        if now - told > 20:
            mean, *shares = torch.tensor(recent).nanmean(dim=0).tolist()
            shares = " ".join(f"{100 * share:.1f}" for share in shares)
            print(
                f"{elapsed / 60:6.2f} min  step {step:6d}  {tokens / 1e6:7.3f} M tokens  loss {mean:.4f}  "
                f"right guesses {shares}",
                flush=True,
            )
            recent, told = [], now
        if now - exported > options.export_every * 60:
            export(target, eagle, medusa, options.out)
            exported = now
    export(target, eagle, medusa, options.out)
    print(f"done: {step} steps, {tokens / 1e6:.2f} M tokens, {(time.monotonic() - begin) / 60:.1f} min", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=45, help="wall-clock budget of the training (default 45)")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--out", type=Path, default=DATA, help="where the heads are (default: examples/data/tiny)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--batch-tokens", type=int, default=2048, help="tokens a step (default 2048)")
    parser.add_argument("--export-every", type=float, default=6, help="minutes between exports (default 6)")
    parser.add_argument("--width", type=int, default=WIDTH, help=f"EAGLE's feed-forward width (default {WIDTH})")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help=f"blocks of a Medusa head (default {BLOCKS})")
    parser.add_argument("--evaluate", action="store_true", help="measure the files in --out, train nothing")
    parser.add_argument("--limit", type=int, default=0, help="measure on the first rows only (default: all)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_freed_memory()
    target, tokenizer = load(DATA)
    target.requires_grad_(False)
    if options.evaluate:
        rows = [json.loads(line) for line in (DATA / "heldout.jsonl").open(encoding="utf-8")]
        measure(target, tokenizer, *read(options.out, target.shape), rows[: options.limit or len(rows)], 220)
    else:
        train(target, tokenizer, options)


if __name__ == "__main__":
    main()
