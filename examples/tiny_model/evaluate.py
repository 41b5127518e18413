"""Measures plain greedy decoding of an exported model on the held-out dialogues.

python examples/tiny_model/evaluate.py --threads 1
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import prompt
import torch
from model import Shape, TinyLlama, greedy
from safetensors.torch import load_file
from tokenizer import unspaced_twin
from tokenizers import Tokenizer

DATA = Path(__file__).parent.parent / "data/tiny"
BATCH = 25


def load(directory: Path):
    """The exported model, upcast to float32, and its tokenizer."""
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    shape = Shape(
        vocabulary=config["vocab_size"],
        hidden=config["hidden_size"],
        intermediate=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        context=config["max_position_embeddings"],
        rope_theta=config["rope_theta"],
        epsilon=config["rms_norm_eps"],
    )
    model = TinyLlama(shape, unspaced_twin(tokenizer))
    model.load_exported(load_file(directory / "model.safetensors"))
    return model.eval(), tokenizer


def canonical(value) -> str:
    """A text that is equal for equal JSON values; it tells true from 1, but not 2.0 from 2."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def verdict(row: dict, text: str) -> str:
    """What became of one answer: `right`, or the first thing that is wrong with it."""
    calls = prompt.parse(text, row["format"])
    if calls is None:
        return "malformed"
    if canonical(calls) == canonical(row["calls"]):
        return "right"
    if not calls or not row["calls"]:
        return "call or none"
    documents = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row["tools"]}
    for call in calls:
        if call["name"] not in documents:
            return "unknown tool"
        parameters = documents[call["name"]]
        if set(call["arguments"]) - set(parameters["properties"]):
            return "unknown key"
        if set(parameters.get("required", [])) - set(call["arguments"]):
            return "missing key"
    if [call["name"] for call in calls] != [call["name"] for call in row["calls"]]:
        return "wrong tool"
    if [set(call["arguments"]) for call in calls] != [set(call["arguments"]) for call in row["calls"]]:
        return "wrong keys"
    return "wrong value"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=DATA)
    parser.add_argument("--rows", type=Path, default=DATA / "heldout.jsonl")
    parser.add_argument("--limit", type=int, default=0, help="only the first rows (default: all)")
    parser.add_argument("--max-tokens", type=int, default=220)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print this many wrong answers")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    model, tokenizer = load(options.model)
    rows = [json.loads(line) for line in options.rows.open(encoding="utf-8")]
    rows = rows[: options.limit or len(rows)]
    ids = [tokenizer.encode(row["prompt"]).ids for row in rows]
    stop = tokenizer.token_to_id(prompt.END)
    texts = [""] * len(rows)
    order = sorted(range(len(rows)), key=lambda index: len(ids[index]))
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        for index, output in zip(part, greedy(model, [ids[index] for index in part], stop, options.max_tokens)):
            texts[index] = tokenizer.decode(output, skip_special_tokens=False)

    total, right, wrong = Counter(), Counter(), Counter()
    for row, text in zip(rows, texts):
        outcome = verdict(row, text)
        tools = "seen tools" if row["seen"] else "held-out tools"
        groups = (
            ["no tool needed"]
            if not row["calls"]
            else [
                tools,
                f"{tools}, {row['format']}",
                f"{tools}, {'one call' if len(row['calls']) == 1 else 'parallel calls'}",
            ]
        )
        for group in groups + ["all"]:
            total[group] += 1
            right[group] += outcome == "right"
        if outcome != "right":
            wrong[outcome] += 1
            if sum(wrong.values()) <= options.show:
                print(
                    f"{row['id']} {outcome}: {row['messages'][-1]['content']}\n  gold {row['text']}\n  said {text}\n"
                )
    print("| group | dialogues | exactly right |\n| --- | ---: | ---: |")
    for group in sorted(total):
        print(f"| {group} | {total[group]} | {right[group]} ({100 * right[group] / total[group]:.1f} %) |")
    print("\n" + "; ".join(f"{outcome} {count}" for outcome, count in wrong.most_common()))


if __name__ == "__main__":
    main()
