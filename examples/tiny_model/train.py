"""Trains the embedded model and exports it; the time given is the budget.

python examples/tiny_model/train.py --minutes 81 --seed 7 --threads 2
python examples/tiny_model/train.py --minutes 21 --seed 8 --threads 2 --resume examples/data/tiny
"""

import argparse
import ctypes
import json
import os
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import prompt
import tokenizer as tokenizers_
import torch
import torch.nn.functional as F
import words
from generator import Dialogues, held_out_rows
from model import Shape, TinyLlama, greedy
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

COPY_UNTIL, EASE_UNTIL = 0.06, 0.25
WARM_UP, DECAY_FROM = 0.01, 0.45
PROMPT_SHARE = 0.1
RESUMED_RATE = 0.3
LONGEST = 700


def keep_freed_memory():
    """Tells glibc to keep freed memory: else every step's tensors are mapped and cleared anew."""
    if sys.platform == "linux":
        trim_threshold, top_pad, mmap_max = -1, -2, -4
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((trim_threshold, 2**31 - 1), (top_pad, 200_000_000), (mmap_max, 0)):
            mallopt(option, value)


def newton_schulz(matrices: torch.Tensor) -> torch.Tensor:
    """Approximately orthogonalises a stack of matrices (Muon's five steps)."""
    x = matrices.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised: for the layers' matrices. Equal shapes are done in one batch."""

    def __init__(self, parameters, lr: float, momentum: float = 0.95, weight_decay: float = 0.02):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for parameter in group["params"]:
                shapes.setdefault(parameter.shape, []).append(parameter)
            for (rows, columns), parameters in shapes.items():
                updates = []
                for parameter in parameters:
                    buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                    buffer.lerp_(parameter.grad, 1 - group["momentum"])
                    updates.append(parameter.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, rows / columns) ** 0.5
                for parameter, update in zip(parameters, newton_schulz(torch.stack(updates))):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-group["lr"] * scale)


def copy_exercise(rng: random.Random) -> list[tuple[str, bool]]:
    """Several lists of values, each to be repeated: teaches copying before anything else."""
    pieces = [(f"{prompt.BEGIN}{prompt.TOOLS}format: python\n", False)]
    samplers = list(words.STRINGS.values())
    for _ in range(rng.randint(2, 5)):
        text = " ".join(rng.choice(samplers)(rng) for _ in range(rng.randint(2, 6)))
        pieces += [(f"{prompt.USER}{text}{prompt.ASSISTANT}", False), (text + prompt.END, True)]
    return pieces


class Batches:
    """Batches of whole dialogues of similar length.

    The assistant's tokens carry the loss, and a tenth of the others (2: assistant, 1: other)."""

    def __init__(self, tokenizer, seed: int, tokens: int):
        self.tokenizer, self.tokens = tokenizer, tokens
        self.dialogues = Dialogues(seed)
        self.rng = random.Random(seed + 1)
        self.pad = tokenizer.token_to_id(prompt.PAD)
        self.ready = []

    def _encode(self, pieces):
        ids, wanted = [], []
        for encoding, (_, spoken) in zip(self.tokenizer.encode_batch([text for text, _ in pieces]), pieces):
            ids += encoding.ids
            wanted += [2 if spoken else int(self.rng.random() < PROMPT_SHARE) for _ in encoding.ids]
        return ids, wanted

    def _refill(self, progress: float):
        ease = max(0.0, 1 - progress / EASE_UNTIL)
        copying = 0.6 if progress < COPY_UNTIL else 0.0
        pool = []
        while len(pool) < 256:
            pieces = copy_exercise(self.rng) if self.rng.random() < copying else self.dialogues.next(ease)
            example = self._encode(pieces)
            if len(example[0]) <= LONGEST:
                pool.append(example)
        pool.sort(key=lambda example: len(example[0]))
        batch = []
        for example in pool:
            if batch and (len(batch) + 1) * len(example[0]) > self.tokens:
                self.ready.append(batch)
                batch = []
            batch.append(example)
        self.ready.append(batch)
        self.rng.shuffle(self.ready)

    def next(self, progress: float):
        """The next (token ids, targets, kinds of position); `progress` in [0, 1] sets how hard its dialogues are."""
        if not self.ready:
            self._refill(progress)
        batch = self.ready.pop()
        width = (max(len(ids) for ids, _ in batch) + 15) // 16 * 16
        ids = torch.tensor([row + [self.pad] * (width + 1 - len(row)) for row, _ in batch])
        wanted = torch.tensor([row + [0] * (width + 1 - len(row)) for _, row in batch])
        return ids[:, :-1], ids[:, 1:], wanted[:, 1:]


def rate(progress: float) -> float:
    """The learning rate's factor: warm-up, plateau, linear decay."""
    if progress < WARM_UP:
        return 0.05 + 0.95 * progress / WARM_UP
    return 1.0 if progress < DECAY_FROM else max(0.01, (1 - progress) / (1 - DECAY_FROM))


def reference(model: TinyLlama, tokenizer) -> dict:
    """Logits and greedy continuations in float32, for other implementations to compare with."""
    probes = sorted(random.Random(3).sample(range(model.shape.vocabulary), 200))
    stop, cases = tokenizer.token_to_id(prompt.END), []
    for row in held_out_rows(60, seed=977)[::20]:
        ids = tokenizer.encode(row["prompt"]).ids
        with torch.no_grad():
            embedding = model.embedding()
            logits = model.hidden(torch.tensor([ids], device=embedding.device), embedding)[0, -1] @ embedding.T
        continuation = greedy(model, [ids], stop=-1, steps=24)[0]
        cases.append(
            {
                "id": row["id"],
                "prompt": row["prompt"],
                "tokens": ids,
                "logits": [round(x, 6) for x in logits[probes].tolist()],
                "argmax": int(logits.argmax()),
                "greedy": continuation,
                "greedy_text": tokenizer.decode(continuation, skip_special_tokens=False),
            }
        )
    return {
        "dtype": "float32 arithmetic on bfloat16 weights",
        "probe_tokens": probes,
        "end_token": stop,
        "cases": cases,
    }


def export(model: TinyLlama, tokenizer, twins, out: Path):
    """Writes the model directory; the weights appear in one step."""
    out.mkdir(parents=True, exist_ok=True)
    bos, eos, pad = (tokenizer.token_to_id(token) for token in (prompt.BEGIN, prompt.END, prompt.PAD))
    write = lambda name, value: (out / name).write_text(
        json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    write("config.json", model.shape.config(bos, eos, pad))
    write("tokenizer_config.json", tokenizers_.config())
    write(
        "generation_config.json", {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad, "do_sample": False}
    )
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    tensors = model.exported()
    partial = out / "model.safetensors.partial"
    save_file(tensors, partial, metadata={"format": "pt"})
    partial.chmod(0o644)
    partial.rename(out / "model.safetensors")
    rounded = TinyLlama(model.shape, twins)
    rounded.load_exported(tensors)
    (out / "reference_logits.json").write_text(
        json.dumps(reference(rounded, tokenizer), ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=81, help="wall-clock budget of the training (default 81)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--out", type=Path, help="model directory (default: examples/data/tiny; build/tiny_smoke with --smoke)"
    )
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--batch-tokens", type=int, default=0, help="tokens a step (default 4096, on a GPU 32768)")
    parser.add_argument("--export-every", type=float, default=8, help="minutes between exports (default 8)")
    parser.add_argument(
        "--resume", type=Path, help="go on from this model directory, at a falling rate and without the easy beginning"
    )
    parser.add_argument("--smoke", action="store_true", help="one minute, to see that everything runs")
    options = parser.parse_args()
    root = Path(__file__).parents[2]
    out = options.out or root / ("build/tiny_smoke" if options.smoke else "examples/data/tiny")
    if options.smoke:
        options.minutes = 1
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_freed_memory()
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    if options.resume:
        tokenizer = Tokenizer.from_file(str(options.resume / "tokenizer.json"))
    else:
        source = Dialogues(options.seed + 100)
        texts = ["".join(text for text, _ in source.next()) for _ in range(2000 if options.smoke else 20000)]
        tokenizer = tokenizers_.build(texts)
    twins = tokenizers_.unspaced_twin(tokenizer)
    shape = Shape(vocabulary=tokenizer.get_vocab_size())
    model = TinyLlama(shape, twins)
    if options.resume:
        model.load_exported(load_file(options.resume / "model.safetensors"))
    model = model.to(device)
    matrices = [parameter for parameter in model.layers.parameters() if parameter.ndim == 2]
    norms = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    optimizers = [
        Muon(matrices, lr=0.02),
        torch.optim.AdamW(
            [{"params": [model.table, model.offset]}, {"params": norms}],
            lr=2e-3,
            betas=(0.9, 0.97),
            weight_decay=0.0,
            fused=True,
        ),
    ]
    bases = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    batches = Batches(tokenizer, options.seed, options.batch_tokens or (32768 if device.type == "cuda" else 4096))
    size = sum(tensor.numel() for tensor in model.exported().values())
    print(f"{size / 1e6:.2f} M parameters, {device.type}, {torch.get_num_threads()} threads", flush=True)

    begin = exported = time.monotonic()
    step = tokens = 0
    recent, told = [], begin
    while (elapsed := time.monotonic() - begin) < options.minutes * 60:
        progress = elapsed / (options.minutes * 60)
        ease_at, factor = (1.0, RESUMED_RATE * (1 - progress)) if options.resume else (progress, rate(progress))
        ids, targets, wanted = (tensor.to(device) for tensor in batches.next(ease_at))
        with torch.autocast(device.type, torch.bfloat16):
            embedding = model.embedding()
            states = model.hidden(ids, embedding)[wanted > 0]
            logits = F.linear(states, embedding)
        losses = F.cross_entropy(logits.float(), targets[wanted > 0], reduction="none")
        losses.mean().backward()
        for optimizer, base in zip(optimizers, bases):
            for group, lr in zip(optimizer.param_groups, base):
                group["lr"] = lr * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step, tokens = step + 1, tokens + ids.numel()
        recent.append(losses.detach()[wanted[wanted > 0] == 2].mean().item())
        now = time.monotonic()
        if now - told > 20:
            print(
                f"{elapsed / 60:6.2f} min  step {step:6d}  {tokens / 1e6:7.3f} M tokens  "
                f"{tokens / (now - begin):7.0f} tokens/s  assistant loss {sum(recent) / len(recent):.4f}",
                flush=True,
            )
            recent, told = [], now
        if now - exported > options.export_every * 60:
            export(model, tokenizer, twins, out)
            exported = now
    export(model, tokenizer, twins, out)
    print(f"done: {step} steps, {tokens / 1e6:.2f} M tokens, {(time.monotonic() - begin) / 60:.1f} min", flush=True)


if __name__ == "__main__":
    main()
