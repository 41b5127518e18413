"""Lark grammars judged by llguidance, as which they are read.

    python tests/lark.py PROGRAM [GRAMMARS] [--seed N]

Makes random grammars over two letters and a space, with terminals that overlap, lazy rules, and text that is ignored,
and asks `tooldecode check` and llguidance about every text of up to five bytes: both must accept the same, but for
grammars that are refused by name, of which there may be two in three, and for ignored text at the end, see
`ends_ignored`. Every common terminal and expressions of each kind are asked about as well. Says why it is skipped, with
exit code 77, where something is missing.
"""
import argparse
import collections
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATTERNS = ("a", "b", "ab", "a+", "b+", "[ab]+", "a*b", "ba?", "a|bb", "aa?", "b+a", "a*", "[ab]", "(ab)+", "[^a ]+",
            "a.b")
COMMON = ("DIGIT HEXDIGIT INT SIGNED_INT DECIMAL _EXP FLOAT SIGNED_FLOAT NUMBER SIGNED_NUMBER ESCAPED_STRING "
          "LCASE_LETTER UCASE_LETTER LETTER WORD CNAME WS_INLINE WS CR LF NEWLINE SH_COMMENT CPP_COMMENT C_COMMENT "
          "SQL_COMMENT").split()
# Expressions, and letters that their texts are made of.
EXPRESSIONS = (
    (r"/\d\w\s?/", ["1", "\u0661", "a", "_", "\u24b6", " ", "\u00a0"]),
    (r"/[[:alpha:]&&[^b]]+/", ["a", "b", "\u00e9"]), (r"/[a-c--b][\d~~1]/", ["a", "b", "c", "1", "2"]),
    (r"/(?i)k[^s]?/", ["k", "K", "\u212a", "s", "S", "\u017f", "a"]), (r"/a(?i:b)a/", ["a", "b", "A", "B"]),
    (r"/a.?/", ["a", "\n", "\r", "\u2028"]), (r"/a.?/s", ["a", "\n", "\r"]), (r"/^ab?$/", ["a", "b"]),
    (r"/(?x) a  b # c/", ["a", "b", " "]), (r"/\x61\u{62}{1,2}?/", ["a", "b"]), (r"/(?P<n>a|)b??/", ["a", "b"]),
    (r"/\pL\PN/", ["a", "1", "\u03b1"]),
    (r"/[]a][\^-]/", ["]", "a", "^", "-"]), (r"/(?-u:\w)\//", ["a", "\u00e9", "/"]),
    (r'"\x41\/"i', ["a", "A", "/"]), (r'"a".."c"', ["a", "b", "c", "d"]),
    (r'%regex {"substring_words": "a..b  c"}', ["a", ".", "b", " ", "c"]),
    (r'%regex {"substring_chars": "aba"}', ["a", "b"]), (r'%regex {"substring_chunks": ["ab", "a"]}', ["a", "b"]),
    (r'%json {"type": ["boolean", "null"]}', ["true", "null", " "]),
    (r'"a" %json {"type": "array", "items": {"type": "integer"}} "b"?', ["a", "[", "1", ",", "]", "b", " "]),
)
TERMINALS = ("/[ab]*/ & ~/.*aa.*/", "/[ab]+/ & /.*b/ | \"c\"", "~/a+/ & /[ab]{1,3}/")


def skip(reason: str):
    print(f"SKIPPED: lark.py {reason}", file=sys.stderr)
    sys.exit(77)


class Grammars:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def atom(self, names: list) -> str:
        share = self.random.random()
        if share < 0.25:
            return '"' + "".join(self.random.choices("ab", k=self.random.randint(1, 2))) + '"'
        return f"/{self.random.choice(PATTERNS)}/" if share < 0.35 else self.random.choice(names)

    def expression(self, names: list, depth: int) -> str:
        parts = []
        for _ in range(self.random.choice((1, 2, 2, 3))):
            grouped = depth > 0 and self.random.random() < 0.4
            part = f"({self.expression(names, depth - 1)})" if grouped else self.atom(names)
            parts.append(part + self.random.choice(("", "", "", "?", "*", "+", "~2", "~1..2")))
        made = " ".join(parts)
        if self.random.random() < 0.35:
            made += " | " + (self.expression(names, depth - 1) if depth > 0 else self.atom(names))
        return made

    def grammar(self) -> str:
        terminals = [f"T{k}" for k in range(self.random.randint(1, 3))]
        rules = [f"r{k}" for k in range(self.random.choice((0, 0, 1, 2)))]
        lines = [f"{name}: /{self.random.choice(PATTERNS)}/" for name in terminals]
        names = terminals * 2 + rules
        if self.random.random() < 0.3:
            lines.append(f"lazy[lazy]: {self.random.choice(terminals)} {self.atom(['/b/'])}")
            names += ["lazy"] * 2
        lines += [f"{name}: {self.expression(names, 1)}" for name in rules]
        lines.append(f"start: {self.expression(names, self.random.choice((0, 1, 2)))}")
        if self.random.random() < 0.4:
            lines.append(f"%ignore {self.random.choice(('/ +/', '/ /'))}")
            if self.random.random() < 0.2:
                lines.append('%llguidance {"allow_initial_skip": true}')
        return "\n".join(lines)


def run(program: str, rows: list) -> list:
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = subprocess.run(
            [program, "check", "--format", "lark", "--vocabulary", str(ROOT / "examples/data/tiny"), str(path)],
            capture_output=True, text=True, encoding="utf-8", timeout=900, check=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def make_judge():
    """A function that says which of some texts a grammar accepts; nothing for a grammar that is refused."""
    import llguidance

    class Bytes:
        eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
        tokens = [bytes([byte]) for byte in range(256)] + [b"<|end|>"]

        def __call__(self, text):
            return list(text if isinstance(text, bytes) else text.encode())

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))

    def judge(spec: str, texts: list):
        matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", spec), log_level=0)
        if matcher.is_error():
            return None
        found = []
        for text in texts:
            written = text.encode()
            read = matcher.try_consume_tokens(list(written)) if written else 0
            found.append(read == len(written) and matcher.is_accepting())
            if matcher.is_error():
                matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", spec), log_level=0)
            elif read:
                matcher.rollback(read)
        return found

    return judge


def ends_ignored(spec: str, text: str) -> bool:
    """Ignored text at the end: whether any may stand there, one reading of what is before it tells here, and any
    of them in llguidance."""
    return "%ignore" in spec and text.endswith(" ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("grammars", nargs="?", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        judge = make_judge()
    except Exception as error:  # a module that is missing, or of another version
        skip(f"needs the Python package llguidance ({error})")

    made = Grammars(options.seed)
    short = ["".join(letters) for length in range(6) for letters in itertools.product("ab ", repeat=length)]
    asked = [(made.grammar(), short) for _ in range(options.grammars)]
    for name in COMMON:
        letters = "aZ_1.eE+-\"\\\n\r\t #/*"
        texts = {"".join(made.random.choices(letters, k=made.random.randint(0, 6))) for _ in range(600)} | \
            set(letters) | {"/**/", "/* * */", "/* */ */", "/***/",
                            "//a\n", "--a", "#a\n", '"a\\"', '"\\""', "\r\n\n", "-1.e+1"}
        asked.append((f"%import common.{name}\nstart: {name}", sorted(texts)))
    for expression, letters in EXPRESSIONS:
        texts = ["".join(some) for length in range(4) for some in itertools.product(letters, repeat=length)]
        asked.append((f"start: {expression}", texts))
    for terminal in TERMINALS:
        texts = ["".join(some) for length in range(5) for some in itertools.product("abc", repeat=length)]
        asked.append((f"start: T\nT: {terminal}", texts))

    rows = [{"id": k, "spec": spec, "tests": [{"text": text} for text in texts]}
            for k, (spec, texts) in enumerate(asked)]
    verdicts = iter(run(options.program, rows))
    counts, wrong = collections.Counter(), []
    for number, (spec, texts) in enumerate(asked):
        said = list(itertools.islice(verdicts, len(texts)))
        expected = judge(spec, texts)
        counts["grammars"] += 1
        if "refused" in said[0]:
            reason = said[0]["reason"].split(":")[0]
            counts["refused, " + reason] += 1
            # Fixed expressions are read; what nothing matches is nothing in llguidance.
            if number >= options.grammars or reason not in ("unsupported_keyword", "unsatisfiable_schema") or \
                    (reason == "unsatisfiable_schema" and expected and any(expected)):
                wrong.append(f"{spec!r}: {said[0]['reason']}")
            continue
        if expected is None:
            wrong.append(f"{spec!r}: llguidance refuses it")
            continue
        for text, verdict, accepts in zip(texts, said, expected):
            counts["texts"] += 1
            counts["accepted"] += verdict["accepted"]
            if verdict["accepted"] == accepts:
                continue
            if accepts and ends_ignored(spec, text):
                counts["other ends"] += 1
                continue
            wrong.append(f"{spec!r}: {text!r} accepted: {verdict['accepted']}")
    for one in wrong[:20]:
        print(f"wrong: {one}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()) + f", {len(wrong)} wrong")
    few = counts["refused, unsupported_keyword"] <= options.grammars * 2 / 3
    return 0 if not wrong and few and counts["accepted"] else 1


if __name__ == "__main__":
    sys.exit(main())
