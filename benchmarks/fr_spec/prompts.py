"""Writes the prompts of benchmark_fr_spec as tokens: BFCL's simple calls, free and constrained, and the prompts of
the other domains that examples/train_draft holds out of training.

    python benchmarks/fr_spec/prompts.py --out FILE.jsonl [--model NAME] [--shared DATA] [--limit N]

Needs what examples/train_draft/requirements.txt lists.
"""
import argparse
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/train_draft"))

import prompts as training  # noqa: E402
from target import Target, load_tokenizer, model_option  # noqa: E402


def calls(shared: Path, target: Target, tokenizer, limit: int):
    """BFCL's calls to one function, which no draft is trained on."""
    rows = training.read_lines(shared / training.MEASURED)
    for row in random.Random(1).sample(rows, min(limit, len(rows))):
        text = training.call_text(target, row["functions"], training.question_of(row))
        tokens = tokenizer.encode(text).ids
        yield {"domain": "tools", "tokens": tokens}
        yield {"domain": "tools, constrained", "tokens": tokens, "functions": row["functions"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    training.shared_data(parser)
    model_option(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=40, help="prompts of each domain (default 40)")
    options = parser.parse_args()
    target = Target(options.model)
    tokenizer = load_tokenizer(target.file)
    rows = list(calls(options.shared, target, tokenizer, options.limit))
    _, held_out = training.read_prompts(options.shared, target, tokenizer)
    for domain in ("dialogue", "code", "math", "prose"):
        rows += [{"domain": domain, "tokens": tokens} for tokens in held_out[domain][: options.limit]]
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} prompts in {options.out}")


if __name__ == "__main__":
    main()
