"""Says whether a specification is enforced, whether texts conform to it, and what its masks cost.

    python -m tooldecode.check --tools tools.json --format hermes answer.txt
    python -m tooldecode.check --schema schema.json --vocabulary tokenizer.json value.json
    echo -n '{"a": 1}' | python -m tooldecode.check --schema schema.json -

The exit status is 0 if everything is enforced and each text conforms, 1 if a text is refused or a tool is not enforced, and
2 if the specification, the vocabulary or an argument is refused.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import tooldecode

from ._tools import unexpected_notes

__all__ = ["main"]


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.buffer.read().decode()
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def _count(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"must be from 0 to {2**32 - 1}")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tooldecode.check", description=__doc__.partition("\n")[0])
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--tools", metavar="FILE", help="documents of tools; texts are answers with calls in --format")
    given.add_argument("--schema", metavar="FILE", help="a JSON Schema; texts are one value")
    given.add_argument("--regex", metavar="PATTERN", help="a pattern of ECMA-262 that matches a whole text")
    given.add_argument("--ebnf", metavar="FILE", help="a grammar in GBNF or XGrammar's EBNF")
    given.add_argument("--lark", metavar="FILE", help="a grammar in Lark's syntax")
    given.add_argument("--structural-tag", metavar="FILE", help="a structural tag of XGrammar, vLLM and SGLang")
    parser.add_argument("--format", default="hermes", help="call format of --tools: a name, several, or a .json file (%(default)s)")
    parser.add_argument("--choice", default="required", choices=("auto", "required"), help="whether an answer must call (%(default)s)")
    parser.add_argument("--enforcement", default="strict", choices=("strict", "relax", "drop"),
                        help="of a tool that cannot be enforced (%(default)s)")
    parser.add_argument("--whitespace", type=_count, help="most bytes of optional white space; default: the one of the library")
    parser.add_argument("--vocabulary", metavar="PATH", help="a tokenizer's file or folder: texts are encoded and masks timed")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="files with one text each; - is the standard input")
    return parser


def _build(options: argparse.Namespace, vocabulary: tooldecode.Vocabulary) -> tooldecode.Constraint:
    more: dict[str, Any] = {} if options.whitespace is None else {"whitespace": options.whitespace}
    if options.tools is not None:
        format = _read(options.format) if options.format.endswith(".json") else options.format
        return tooldecode.tool_calls(vocabulary, _read(options.tools), format, choice=options.choice,
                                     enforcement=options.enforcement, **more)
    if options.schema is not None:
        return tooldecode.json_schema(vocabulary, _read(options.schema), **more)
    if options.structural_tag is not None:
        return tooldecode.structural_tag(vocabulary, _read(options.structural_tag), **more)
    if options.lark is not None:
        return tooldecode.lark(vocabulary, _read(options.lark), **more)
    if more:
        raise tooldecode.Error("invalid_option", "--whitespace", "--whitespace: is no option of --regex and --ebnf, which say it themselves")
    if options.ebnf is not None:
        return tooldecode.ebnf(vocabulary, _read(options.ebnf))
    return tooldecode.regex(vocabulary, options.regex)


def _microseconds(start: float) -> float:
    return round(1e6 * (time.perf_counter() - start), 1)


def _walk(vocabulary: tooldecode.Vocabulary, constraint: tooldecode.Constraint, text: str) -> dict[str, Any]:
    """The tokens of a text, and the cost of their masks, each state met for the first time."""
    mask = bytearray(4 * constraint.mask_words)
    tokens = vocabulary.encode(text)
    state: tooldecode.State | None = constraint.initial()
    costs = []
    for token in [*tokens, None]:
        start = time.perf_counter()
        constraint.fill_mask(state, mask)
        costs.append(_microseconds(start))
        state = None if token is None else constraint.advance(state, token)
        if state is None:
            break
    rest = sorted(costs[1:])
    return {"tokens": len(tokens), "first_mask_us": costs[0],
            "next_masks_us": {"mean": round(sum(rest) / len(rest), 1), "max": rest[-1]} if rest else None}


def _verdict(constraint: tooldecode.Constraint, vocabulary: tooldecode.Vocabulary | None, name: str) -> dict[str, Any]:
    text = _read(name)
    refusal = constraint.explain_refusal(text)
    verdict: dict[str, Any] = {"text": name, "accepted": refusal is None}
    if refusal is not None:
        verdict["refusal"] = refusal._asdict()
    elif isinstance(constraint, tooldecode.ToolCallFSM):
        verdict["calls"] = [{"name": call.name, "arguments": call.arguments} for call in constraint.parse(text)]
    if vocabulary is not None:
        verdict.update(_walk(vocabulary, constraint, text))
    return verdict


def _show(verdict: dict[str, Any]) -> None:
    print(f"{verdict['text']}: {'accepted' if verdict['accepted'] else 'refused'}")
    for call in verdict.get("calls", ()):
        print(f"  calls {call['name']} with {json.dumps(call['arguments'], ensure_ascii=False)}")
    if "refusal" in verdict:
        print("  " + verdict["refusal"]["text"].rstrip("\n").replace("\n", "\n  "))
    if "tokens" in verdict:
        rest = verdict["next_masks_us"]
        more = f", next masks {rest['mean']} us in the mean and {rest['max']} at most" if rest else ""
        print(f"  {verdict['tokens']} tokens; first mask {verdict['first_mask_us']} us{more}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status; prints to the standard output, errors to the standard error."""
    options = _parser().parse_args(arguments)
    try:
        vocabulary = None if options.vocabulary is None else tooldecode.Vocabulary.load(options.vocabulary)
        bytes_only = tooldecode.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"<end>"], [256])
        start = time.perf_counter()
        constraint = _build(options, vocabulary if vocabulary is not None else bytes_only)
        built = _microseconds(start)
        given_up = [{"tool": tool, "where": where, "why": why}
                    for tool, where, why in getattr(constraint, "not_enforced", ())]
        notes = unexpected_notes(constraint) if isinstance(constraint, tooldecode.ToolCallFSM) else []
        if options.json:
            readings = [{"tool": note.tool, "where": note.pointer, "reading": note.reading, "why": note.text} for note in notes]
            print(json.dumps({"built_us": built, "not_enforced": given_up, "readings": readings}, ensure_ascii=False))
        else:
            print(f"{constraint!r}: built in {built / 1000:.2f} ms")
            for one in given_up:
                print(f"  not enforced: {one['tool']} {one['where']}: {one['why']}")
            for note in notes:
                print(f"  check: {note.tool} {note.pointer}: {note.text}")
        conform = not given_up
        for name in options.text:
            verdict = _verdict(constraint, vocabulary, name)
            conform = conform and verdict["accepted"]
            print(json.dumps(verdict, ensure_ascii=False)) if options.json else _show(verdict)
        return 0 if conform else 1
    except tooldecode.Error as error:
        print(f"{error.code}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"file_unreadable: {error.filename}: {error.strerror}", file=sys.stderr)
    except UnicodeDecodeError as error:
        print(f"invalid_utf8: a text has a byte {error.object[error.start]:#04x} at {error.start} that is no UTF-8", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
