"""Lets the target go on from the prompts, and keeps what it says with its states: what a draft layer learns from.

    python examples/train_draft/states.py --minutes 45 --threads 1 --shared DATA [--model NAME]

A file of the cache folder has the answers of a batch of prompts of one domain, one at temperature 0 and one at 1. What
is there is not made again, so that this can be stopped and run again."""

import argparse
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import torch
from prompts import DOMAINS, read_prompts, shared_data
from safetensors.torch import load_file, save_file
from target import Cache, Target, load_tokenizer, model_option

HELD_OUT = 20  # prompts of each domain
PROMPTS = 48  # of a batch
ORDER = ("tools", "dialogue", "lone tools", "code", "tools", "math", "lone tools", "prose")
MOST_TOKENS = {"tools": 72, "lone tools": 72, "dialogue": 112, "code": 112, "math": 112, "prose": 112}
TOP = 4
KEPT_OF_ROWS = 0.75  # alive, or the others are dropped from the cache
NOTHING, PROMPT, ANSWER = range(3)


@dataclass
class Text:
    """A prompt of n tokens in all with its answer, and what the target made of all but the last."""

    tokens: torch.Tensor  # [n]
    states: torch.Tensor  # [n - 1, 4 H] in half precision: final, and of three layers before; or [n - 1, H]: final
    top: torch.Tensor  # [n - 1, TOP], the likeliest tokens that may follow
    shares: torch.Tensor  # [n - 1, TOP], their probabilities
    kinds: torch.Tensor  # [n - 1], of what follows: ANSWER, PROMPT, or NOTHING where another text has the same


def opinions(logits: torch.Tensor):
    """The likeliest tokens [n, TOP] and their shares."""
    values, tokens = logits.topk(TOP, dim=-1)
    return tokens, (values - logits.logsumexp(dim=-1, keepdim=True)).exp()


def shared_length(prompts: list[list[int]]) -> int:
    """How many first tokens are common to all, less the last."""
    length = 0
    while length < min(map(len, prompts)) - 1 and len({prompt[length] for prompt in prompts}) == 1:
        length += 1
    return length


@torch.no_grad()
def answers(target: Target, prompts: list[list[int]], temperatures: list[float], most: int) -> list[Text]:
    """The target's answers at each temperature; what the prompts share is read once."""
    common, width = shared_length(prompts), max(map(len, prompts))
    suffix, columns = width - common, width + most
    pads = torch.tensor([width - len(prompt) for prompt in prompts])
    cache = Cache(target.shape, len(prompts), columns, target.dtype)
    places = torch.arange(columns)

    first = Cache(target.shape, 1, common, target.dtype)
    whole = torch.ones(1, 1, common, common, dtype=torch.bool).tril()
    prefix = target.hidden(torch.tensor([prompts[0][:common]]), first, 0, places[None, :common], whole)[0]
    cache.keys[:, :, :, :common], cache.values[:, :, :, :common] = first.keys, first.values

    # Padding stands between what is shared and the rest.
    real = (places >= common + pads[:, None]) | (places < common)
    ids = torch.tensor([[min(target.ends)] * (width - len(prompt)) + prompt[common:] for prompt in prompts])
    seen = real[:, None, None, :width] & (places[:width] <= places[common:width, None])
    positions = (places[None, common:width] - pads[:, None]).clamp(min=common)
    states = target.hidden(ids, cache, common, positions, seen | torch.eye(width, dtype=torch.bool)[common:])
    prompt_states = [torch.cat((prefix, row[pad:])) for row, pad in zip(states, pads.tolist())]

    rows = torch.arange(len(prompts)).repeat_interleave(len(temperatures))
    heat = torch.tensor(temperatures).repeat(len(prompts))[:, None]
    cache.keep(rows)
    texts = [[*prompts[row]] for row in rows.tolist()]
    said = [[] for _ in texts]  # state, opinion
    last, owners = states[:, -1][rows], torch.arange(len(texts))
    alive = torch.ones(len(texts), dtype=torch.bool)
    for step in range(most):
        logits = target.logits(last)
        top, shares = opinions(logits)
        token, hot = top[:, 0].clone(), heat[owners, 0] > 0
        token[hot] = torch.multinomial((logits[hot] / heat[owners[hot]]).softmax(dim=-1), 1)[:, 0]
        for index, owner in enumerate(owners.tolist()):
            if alive[owner]:
                texts[owner].append(int(token[index]))
                said[owner].append((last[index], top[index], shares[index]))
                alive[owner] = int(token[index]) not in target.ends
        if step == most - 1 or not alive.any():
            break
        if (left := alive[owners]).float().mean() < KEPT_OF_ROWS:
            cache.keep(left)
            owners, token = owners[left], token[left]
        own, at = rows[owners], width + step
        seen = torch.cat((real[own, :width], torch.ones(len(own), step + 1, dtype=torch.bool)), dim=1)
        last = target.hidden(token[:, None], cache, at, (at - pads[own])[:, None], seen[:, None, None])[:, 0]

    results = []
    for index, (row, tokens, answer) in enumerate(zip(rows.tolist(), texts, said)):
        before = prompt_states[row][:-1]
        # What prompts share is learnt once, and a prompt from the first of its answers.
        kinds = torch.full((len(before),), NOTHING if index % len(temperatures) else PROMPT, dtype=torch.uint8)
        kinds[:common] = PROMPT if index == 0 else NOTHING
        top, shares = torch.zeros(len(before), TOP, dtype=torch.long), torch.zeros(len(before), TOP)
        for some in (kinds == PROMPT).nonzero()[:, 0].split(256):
            top[some], shares[some] = opinions(target.logits(before[some]))
        states, own_top, own_shares = map(torch.stack, zip(*answer))
        kinds = torch.cat((kinds, torch.full((len(states),), ANSWER, dtype=torch.uint8)))
        parts = torch.cat((before, states)), torch.cat((top, own_top)), torch.cat((shares, own_shares))
        results.append(Text(torch.tensor(tokens), *parts, kinds))
    return results


def save(texts: list[Text], file: Path, numbers: int):
    join = lambda name, dtype: torch.cat([getattr(text, name) for text in texts]).to(dtype)
    tensors = {
        "tokens": join("tokens", torch.int32),
        "states": torch.cat([text.states[:, :numbers] for text in texts]).to(torch.float16),
        "top": join("top", torch.int32),
        "shares": join("shares", torch.float16),
        "kinds": join("kinds", torch.uint8),
        "lengths": torch.tensor([len(text.tokens) for text in texts]),
    }
    partial = file.with_suffix(".partial")
    save_file(tensors, partial)
    partial.rename(file)


def read(file: Path) -> list[Text]:
    tensors = load_file(file)
    lengths = tensors["lengths"].tolist()
    parts = {
        name: tensors[name].long() if name == "tokens" else tensors[name]
        for name in ("tokens", "states", "top", "shares", "kinds")
    }
    split = [part.split(lengths if name == "tokens" else [n - 1 for n in lengths]) for name, part in parts.items()]
    return [
        Text(tokens, states, top.long(), shares.float(), kinds.long())
        for tokens, states, top, shares, kinds in zip(*split)
    ]


def batches(prompts: dict[str, list], order: list[str]):
    """A domain, the number of its batch, and the batch, of prompts whose lengths are alike; domains come in an order,
    over and over."""
    ready = {}
    for domain, rows in prompts.items():
        ready[domain] = []
        for start in range(0, len(rows), 4 * PROMPTS):
            some = sorted(rows[start : start + 4 * PROMPTS], key=len)
            ready[domain] += [some[at : at + PROMPTS] for at in range(0, len(some), PROMPTS)]
    made = dict.fromkeys(ready, 0)
    for domain in cycle(order):
        if made[domain] < len(ready[domain]):
            yield domain, made[domain], ready[domain][made[domain]]
            made[domain] += 1
        elif all(made[other] == len(ready[other]) for other in order):
            return


def states_folder(target: Target, part: str) -> Path:
    return target.folder / "states" / part


def make(target: Target, folder: Path, todo, temperatures: list[float], until: float, numbers: int):
    """Makes what is not there yet, with so many numbers of a state."""
    folder.mkdir(parents=True, exist_ok=True)
    begin, made = time.monotonic(), 0
    for domain, index, prompts in todo:
        file = folder / f"{domain.replace(' ', '_')}-{index:03}.safetensors"
        if file.exists():
            continue
        if time.monotonic() > until:
            return
        torch.manual_seed(index)
        texts = answers(target, prompts, temperatures, MOST_TOKENS[domain])
        save(texts, file, numbers)
        said = sum(int((text.kinds == ANSWER).sum()) for text in texts)
        made += said
        read_ = sum(int((text.kinds == PROMPT).sum()) for text in texts)
        seconds = time.monotonic() - begin
        print(
            f"{seconds / 60:6.2f} min  {file.stem:15}  {said} tokens of {len(texts)} answers, {read_} of prompts  "
            f"{made / seconds:.0f} tokens/s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared_data(parser)
    model_option(parser)
    parser.add_argument("--minutes", type=float, default=45, help="wall-clock budget (default 45)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--bfloat16", action="store_true", help="for a processor with such products (AMX)")
    parser.add_argument("--final", action="store_true", help="keep final states only, which is enough for EAGLE")
    parser.add_argument(
        "--domains", nargs="+", choices=DOMAINS, default=ORDER, metavar="DOMAIN", help="in which order, over and over"
    )
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    until = time.monotonic() + 60 * options.minutes
    target = Target(options.model)
    numbers = (1 if options.final else 4) * target.shape.hidden
    training, held_out = read_prompts(options.shared, target, load_tokenizer(target.file))
    measured = [(domain, 0, sorted(held_out[domain][:HELD_OUT], key=len)) for domain in DOMAINS]
    make(target, states_folder(target, "held_out"), measured, [0.0], until, numbers)
    if options.bfloat16:
        target = Target(options.model, torch.bfloat16)
    make(target, states_folder(target, "training"), batches(training, options.domains), [0.0, 1.0], until, numbers)


if __name__ == "__main__":
    main()
