"""The drafts' files: exported, read, and what PyTorch makes of them for C++ to compare with."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from target import ROOT, Target, load_tokenizer, model_option
from eagle3 import Eagle3, eagle3_of
from train import keep_freed_memory  # of examples/tiny_model, like the next
from train_draft import Eagle, Medusa

OUT = ROOT / "examples/data/smollm2_draft"
OUTPUTS = ("fc.weight", "fc.bias", "layers.0.self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight")
INPUTS = tuple(f"layers.0.self_attn.{name}_proj.weight" for name in "qkv")
QUESTIONS = ("What is the capital of France?", "Add 128 and 37.5 – quickly, it's for naïve users.\n\tThanks!")


def in_unit(tensors: dict[str, torch.Tensor], unit: float) -> dict[str, torch.Tensor]:
    """An EAGLE layer's tensors for states that are given in this unit instead of 1; a power of two, so exact."""
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    for name in OUTPUTS:
        tensors[name] /= unit
    for name in INPUTS:
        tensors[name] *= unit
    tensors["fc.weight"][:, len(tensors["fc.weight"]) :] *= unit
    return tensors


def load_eagle(target: Target, folder: Path, scale: float = 1.0, unit: float = 1.0) -> Eagle:
    """The exported layer, upcast to float32, for embeddings at a scale and states in a unit."""
    tensors = in_unit(load_file(folder / "eagle.safetensors"), unit)
    eagle = Eagle(replace(target.shape, intermediate=len(tensors["layers.0.mlp.gate_proj.weight"])), scale)
    tensors["fc.weight"] = tensors["fc.weight"].float()
    tensors["fc.weight"][:, : target.shape.hidden] /= scale
    eagle.load_state_dict(tensors)
    return eagle.eval()


def load_eagle3(target: Target, folder: Path) -> Eagle3:
    """The exported EAGLE-3 layer, upcast to float32."""
    return eagle3_of(target.shape, load_file(folder / "eagle3.safetensors"))


def load_medusa(target: Target, folder: Path) -> Medusa:
    """The exported heads, upcast to float32."""
    tensors = load_file(folder / "medusa.safetensors")
    heads, blocks = (len({name.split(".")[index] for name in tensors}) for index in (0, 1))
    medusa = Medusa(target.shape.hidden, heads, blocks)
    medusa.load_state_dict(tensors)
    return medusa.eval()


@torch.no_grad()
def reference(target: Target, folder: Path) -> dict:
    """Tokens of a text, the target's state behind them, each layer's first two guesses and those of Medusa's heads."""
    tokenizer, eagle = load_tokenizer(target.file), load_eagle(target, folder)
    medusa = load_medusa(target, folder) if (folder / "medusa.safetensors").exists() else None
    eagle3 = load_eagle3(target, folder) if (folder / "eagle3.safetensors").exists() else None
    digits = lambda states: [[float(f"{x:.6g}") for x in row] for row in states.tolist()]
    cases = []
    for question in QUESTIONS:
        text = target.chat([("user", question)])
        tokens = tokenizer.encode(text).ids
        states = target.states(tokens)
        given = [int(target.logits(states[-1]).argmax())]
        given.append(int(target.logits(target.states(tokens + given)[-1]).argmax()))
        # The last row has no state: only its token is read, by the second step.
        embedded = F.embedding(torch.tensor([tokens[1:] + given]), target.embedding)
        base = torch.tensor([[len(tokens) - 1]])
        padded = F.pad(states, (0, 0, 0, 1))[None]
        two = lambda layer, states: layer.unroll(embedded, states, base, 2, target.cos, target.sin)[0, 0]
        final = states[:, : target.shape.hidden]
        case = {"text": text, "tokens": tokens, "given": given, "state": digits(final[-1:])[0]}
        case["eagle"] = digits(two(eagle, padded[..., : target.shape.hidden]))
        if medusa:
            case["medusa"] = digits(medusa(final[-1]))
        if eagle3:
            guesses = two(eagle3, padded)
            likeliest = eagle3.tokens[eagle3.logits(guesses).argmax(dim=-1)]
            case |= {"eagle3": digits(guesses), "eagle3_tokens": likeliest.tolist()}
        cases.append(case)
    return {"dtype": "float32 arithmetic on the weights of both files", "cases": cases}


def export(target: Target, model: Eagle | Medusa, folder: Path, unit: float = 1.0):
    """Writes a draft, whose states are in a unit, and the reference; each file appears in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{type(model).__name__.lower()}.safetensors"
    partial = file.with_suffix(".partial")
    tensors = model.exported()
    if unit != 1:
        tensors = in_unit(tensors, 1 / unit)
    save_file(tensors, partial, metadata={"format": "pt"})
    partial.chmod(0o644)
    partial.rename(file)
    if (folder / "eagle.safetensors").exists():
        known = json.dumps(reference(target, folder), ensure_ascii=False) + "\n"
        (folder / "reference_draft.json").write_text(known, encoding="utf-8")


def begin(options: argparse.Namespace) -> Target:
    """The target, on as many threads as are asked for."""
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_freed_memory()
    target = Target(options.model)
    if options.out is None:
        options.out = OUT if options.model == "smollm2" else target.folder / "layers"
    return target


def precision(options: argparse.Namespace) -> torch.dtype:
    """Of large products."""
    return torch.bfloat16 if options.bfloat16 else torch.float32


def arguments(description: str, minutes: float) -> argparse.ArgumentParser:
    """The options that the trainings have in common."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_option(parser)
    parser.add_argument("--minutes", type=float, default=minutes, help=f"wall-clock budget, in all (default {minutes})")
    parser.add_argument("--rate", type=float, default=0.015, help="learning rate of matrices (default 0.015)")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument(
        "--out", type=Path, help="the drafts' folder (SmolLM2's: examples/data/smollm2_draft; others': in the cache)"
    )
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--bfloat16", action="store_true", help="large products, for a processor that has them (AMX)")
    parser.add_argument("--export-every", type=float, default=6, help="minutes between checkpoints (default 6)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
    parser.add_argument("--evaluate", action="store_true", help="measure what is in --out, train nothing")
    parser.add_argument("--limit", type=int, default=None, help="texts of a domain to measure on (default: all)")
    return parser
