"""Files of Hugging Face's tokenizers, read as the Python package `tokenizers` reads them.

    python tests/tokenizers_files.py PROGRAM ANSWERS

Makes files of each kind with that package, seeded: BPE with bytes or with a mark for each space, Unigram, WordPiece, with
and without bytes for what has no token, with decoders, splits and added tokens drawn at random, and files with random
expressions. Of each file, what every token writes must be what the package's decoder writes for it within a text,
decode(a + t + b) without the texts around t; and texts must be encoded as the package encodes them. ANSWERS is
tests/support/tokenizer_answers.cpp, compiled. Says why it is skipped, with exit code 77, where the package is missing.
"""
import collections
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers
except ImportError:
    print("SKIPPED: tokenizers_files.py needs the Python package tokenizers (pip install tokenizers)", file=sys.stderr)
    sys.exit(77)

SEED = 20
ROUNDS = 12  # files of each kind
EXPRESSIONS = 300  # files with an expression each
CONTROL = 3
MARK = "\u2581"
CORPUS = """The tool answers in JSON: {"name": "get weather", "arguments": {"city": "Paris", "days": 3}}.
It's a list, isn't it? We've seen [1, 2, 3] and  two   spaces\there. Don't do that!
def add(a, b):\n    return a + b\n\n\nprint(add(1, 22), 'caf\u00e9', "na\u00efve", '\u65e5\u672c\u8a9e', '\u00fcber')
for i in range(10): if i % 2 == 0: total += values[i]; names.append("x y z")
They're weather reports of 2023 and 2024, 100 days, 1000 cities.""".split("\n")
PIECES = ["the", " the", "  ", "   ", " ", "\n", "\n\n", "\t", "{\"", "\":", " {", "}", "weather", "Weather", "12", " 345", "a", "b", "x",
          "caf\u00e9", "\u65e5\u672c", "\u00fc", "'s", "n't", ".", " .", ",", " ,", "!", "?", "-", "_", "[T]", "<|x|>", "<s>", "</s>",
          "ab cd", "do not", "\u00a0", "\u0391", "\U0001f600", "@", "#", "##", "ing", "word", "  x", " - "]

# Characters of the texts that expressions split.
LETTERS = ["a", "B", "s", "1", " ", "\n", "-", "\u180e", "\u4e2d", "\u017f"]
# Expressions of published models: Kimi K2, BLOOM, Qwen2, Llama 3, GPT-4o, DeepSeek V3.
PUBLISHED = [
    r"""[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"""
    r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"""
    r"""|\s+(?!\S)|\s+""",
    " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+"""
    r"""|\s+(?!\S)|\s+"""]


def base(model: dict) -> dict:
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model}


def replace(pattern: str, content: str) -> dict:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def sequence(key: str, *parts: dict) -> dict:
    return {"type": "Sequence", key: list(parts)}


def byte_level(**options) -> dict:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} | options


def metaspace(**options) -> dict:
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True} | options


BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
FALLBACK = sequence("decoders", replace(MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"})
FALLBACK_STRIP = sequence("decoders", replace(MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                          {"type": "Strip", "content": " ", "start": 1, "stop": 0})


def trained(model, trainer, normalizer=None, pre_tokenizer=None, draw=None) -> dict:
    """The JSON of a model trained on some of the corpus."""
    tokenizer = tokenizers.Tokenizer(model)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    lines = [line.replace(" ", MARK) for line in CORPUS] if normalizer == "mark" else CORPUS
    tokenizer.train_from_iterator([line for line in lines if draw.random() < 0.9], trainer)
    return json.loads(tokenizer.to_str())["model"]


def add_bytes(model: dict):
    if model["type"] == "Unigram":
        known = {token for token, _ in model["vocab"]}
        model["vocab"] += [[token, -20.0] for token in BYTE_TOKENS if token not in known]
    else:
        for token in BYTE_TOKENS:
            model["vocab"].setdefault(token, len(model["vocab"]))


def add_tokens(draw, file: dict, contents: list):
    """Added tokens: some of the model's, and new ones with the next ids, which is where the package puts them."""
    model = file["model"]
    ids = ({token: i for i, (token, _) in enumerate(model["vocab"])} if model["type"] == "Unigram" else dict(model["vocab"]))
    for content in contents:
        special = draw.random() < 0.3
        # What a normalizer leaves nothing of is found everywhere by the package; what is no plain text is not normalised here.
        normalized = not special and content.isprintable() and content.isascii() and draw.random() < 0.4
        # The package reads the name of a special token as one of a Unigram's pieces where it is no word of its own.
        single_word = not (special and content in ids) and draw.random() < 0.1
        ids.setdefault(content, len(ids))
        # The package panics where a token of white space that takes more of it stands after another that does.
        strips = [draw.random() < 0.15 and not content.isspace() for _ in range(2)]
        file["added_tokens"].append({
            "id": ids[content], "content": content, "special": special, "normalized": normalized,
            "lstrip": strips[0], "rstrip": strips[1], "single_word": single_word})
    file["added_tokens"].sort(key=lambda token: token["id"])


def draw_added(draw, file: dict, extra=()):
    names = ["[T]", "<|x|>", "</s>", "ab cd", "\u00e9", "word", "\n\n", "do not", "##x", *extra]
    add_tokens(draw, file, draw.sample(names, draw.randrange(0, 6)))


def draw_class(draw, depth: int = 0) -> str:
    """A class of Oniguruma: with classes in it and intersections, where it is not nested too deeply."""
    def part():
        items = [draw.choice(["a", "B", "s", "1", " ", "-", r"\n", "a-f", "0-9", r"\-", r"\]", "\u180e", r"\x{4E2D}", r"\u0061",
                              r"\s", r"\S", r"\d", r"\D", r"\h", r"\H", r"\w", r"\W", r"\p{L}", r"\P{Lu}", r"\p{^N}",
                              r"\p{Han}", r"\p{Latin}"])
                 for _ in range(draw.randrange(1, 4))]
        if depth < 2 and draw.random() < 0.4:
            items.insert(draw.randrange(len(items) + 1), draw_class(draw, depth + 1))
        return "".join(items)
    parts = "&&".join(part() for _ in range(draw.choice([1, 1, 1, 2, 3])))
    return f"[{draw.choice(['', '', '^'])}{parts}]"


def draw_expression(draw, depth: int = 0) -> str:
    def atom():
        kind = draw.random()
        if kind < 0.35:
            return draw.choice(["a", "B", "s", "1", " ", "-", r"\-", r"\n", "\u4e2d", "\u180e", "{", "}", r"\x61", r"\x{180E}",
                                r"\u4E2D", "."])
        if kind < 0.6:
            return draw.choice([r"\s", r"\S", r"\d", r"\D", r"\h", r"\H", r"\w", r"\W", r"\p{L}", r"\p{^Lu}", r"\P{N}",
                                r"\p{Han}"])
        if kind < 0.85 or depth > 1:
            return draw_class(draw)
        group = draw.choice(["(", "(?:", "(?>", "(?=", "(?!", "(?i:", "(?i)", "(?<=", "(?<!"])
        if group == "(?i)":
            return group + draw.choice(["a", "b-1", "[a-f]s", r"\s|B"])
        inner = draw.choice(["a", "[^B]", r"\s", "a|B"]) if "<" in group else draw_expression(draw, depth + 1)
        return group + inner + ")"
    repeats = ["", "", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{1,2}?", "{1,2}+", "{2}+", "{2}?",
               "{,2}", "{1,}", "{2,3}+", "+*"]
    alternatives = ["".join(draw.choice(["", "", "", "", "^", r"\A"]) + atom() + draw.choice(repeats) + draw.choice(
        ["", "", "", "", "$", r"\z", r"\Z"]) for _ in range(draw.randrange(1, 4))) for _ in range(draw.choice([1, 1, 2, 3]))]
    return "|".join(alternatives)


def draw_valid_expression(draw) -> str:
    while True:
        expression = draw_expression(draw)
        try:
            tokenizers.Regex(expression)
            return expression
        except Exception as error:  # the package raises no narrower one
            assert "Oniguruma" in str(error), error


def draw_split(draw) -> dict:
    pattern = draw.choice([{"String": " "}, {"String": "a"}, {"String": "  "}, {"String": "."}, {"Regex": r"\s+"},
                           {"Regex": r"\d"}, {"Regex": r"[a-z]+| "}, {"Regex": draw_valid_expression(draw)}])
    behavior = draw.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": draw.random() < 0.4}


def bytes_file(draw) -> dict:
    trainer = trainers.BpeTrainer(vocab_size=draw.randrange(280, 420), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    model = trained(models.BPE(), trainer, pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), draw=draw)
    model["ignore_merges"] = draw.random() < 0.3
    file = base(model)
    file["pre_tokenizer"] = draw.choice([
        byte_level(), byte_level(add_prefix_space=True), byte_level(use_regex=False),
        sequence("pretokenizers", {"type": "Digits", "individual_digits": draw.random() < 0.5}, byte_level()),
        sequence("pretokenizers", draw_split(draw), byte_level(use_regex=False)),
        sequence("pretokenizers", draw_split(draw), draw_split(draw), byte_level())])
    file["decoder"] = draw.choice([byte_level(), sequence("decoders", byte_level()),
                                   sequence("decoders", byte_level(), {"type": "Strip", "content": " ", "start": 1, "stop": 0})])
    draw_added(draw, file, ["\u0120the", "\u00e9\u0120", "<\uff5cx\u2581y\uff5c>"])
    return file


def expression_file(draw, expression: str) -> dict:
    """A file in which any two or three characters of a piece are one token, so that ids tell where a text is split."""
    pairs = [a + b for a in LETTERS for b in LETTERS]
    vocab = [*LETTERS, *pairs, *(pair + c for pair in pairs for c in LETTERS)]
    merges = [[pair[0], pair[1]] for pair in pairs] + [[pair, c] for pair in pairs for c in LETTERS]
    file = base({"type": "BPE", "vocab": {token: i for i, token in enumerate(vocab)}, "merges": merges})
    file["pre_tokenizer"] = draw_split(draw) | {"pattern": {"Regex": expression}}
    file["decoder"] = {"type": "Fuse"}
    return file


def marked_file(draw) -> dict:
    trainer = trainers.BpeTrainer(vocab_size=draw.randrange(150, 300), show_progress=False,
                                  initial_alphabet=[MARK, *"abcdefghijklmnopqrstuvwxyz0123456789 "])
    model = trained(models.BPE(), trainer, "mark", draw=draw)
    # Runs of marks, as files of Gemma have them.
    for content in (MARK * 2, MARK * 3, MARK * 4):
        model["vocab"].setdefault(content, len(model["vocab"]))
    model["merges"] += [[MARK, MARK], [MARK * 2, MARK], [MARK * 2, MARK * 2]]
    model["byte_fallback"] = draw.random() < 0.7
    if model["byte_fallback"] or draw.random() < 0.5:
        add_bytes(model)
    file = base(model)
    decoder = draw.choice([FALLBACK, FALLBACK_STRIP, sequence("decoders", {"type": "ByteFallback"}, metaspace()),
                           sequence("decoders", {"type": "ByteFallback"}, {"type": "Fuse"}, replace(MARK, " "))])
    file["decoder"] = copy.deepcopy(decoder)
    if draw.random() < 0.6:
        file["normalizer"] = draw.choice([
            replace(" ", MARK), sequence("normalizers", {"type": "Prepend", "prepend": MARK}, replace(" ", MARK))])
        file["pre_tokenizer"] = draw.choice([
            None, {"type": "Split", "pattern": {"String": draw.choice([" ", MARK, "a", "a "])}, "behavior": draw.choice(
                ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]), "invert": draw.random() < 0.2}])
    else:
        file["pre_tokenizer"] = metaspace(prepend_scheme=draw.choice(["always", "first", "never"]), split=draw.random() < 0.5)
        if draw.random() < 0.3:
            file["pre_tokenizer"] = sequence("pretokenizers", file["pre_tokenizer"], {"type": "Digits", "individual_digits": True})
    draw_added(draw, file, [MARK * 2, MARK * 3, MARK + "the"])
    return file


def unigram_file(draw) -> dict:
    trainer = trainers.UnigramTrainer(vocab_size=draw.randrange(80, 160), show_progress=False, unk_token="<unk>",
                                      special_tokens=["<unk>", "<s>"])
    model = trained(models.Unigram(), trainer, pre_tokenizer=pre_tokenizers.Metaspace(), draw=draw)
    model["byte_fallback"] = draw.random() < 0.6
    if model["byte_fallback"] or draw.random() < 0.3:
        add_bytes(model)
    file = base(model)
    file["decoder"] = draw.choice([metaspace(), FALLBACK, sequence("decoders", {"type": "ByteFallback"}, metaspace())])
    file["pre_tokenizer"] = metaspace(prepend_scheme=draw.choice(["always", "first", "never"]), split=draw.random() < 0.7)
    file["normalizer"] = draw.choice([None, None, {"type": "Strip", "strip_left": False, "strip_right": True}, sequence(
        "normalizers", {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": draw.choice([MARK, " "])})])
    add_tokens(draw, file, ["<unk>", "<s>"])
    draw_added(draw, file, [MARK * 2, MARK + "the"])
    return file


def words_file(draw) -> dict:
    trainer = trainers.WordPieceTrainer(vocab_size=draw.randrange(100, 200), show_progress=False,
                                        special_tokens=["[UNK]", "[CLS]"])
    model = trained(models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizer=pre_tokenizers.BertPreTokenizer(), draw=draw)
    for content in (".", "...", "'", "'s", "n't", "do not", "'re", "##.", "##'s", "?!", "a .", ",", "'ve", "'m"):
        model["vocab"].setdefault(content, len(model["vocab"]))
    file = base(model)
    file["normalizer"] = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                          "lowercase": True}
    file["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    file["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": draw.random() < 0.5}
    draw_added(draw, file)
    return file


def decoders_file(draw) -> dict:
    """A file with any decoder, where bytes are compared and texts are encoded only if they come back."""
    file = draw.choice([marked_file, bytes_file, unigram_file])(draw)
    if file["normalizer"] is not None and "Prepend" in json.dumps(file["normalizer"]):
        for token in file["added_tokens"]:
            token["normalized"] = False
    parts = [replace(MARK, " "), replace("a", "bc"), replace("ab", "x"), replace(MARK, ""), {"type": "ByteFallback"},
             {"type": "Fuse"}, metaspace(), metaspace(prepend_scheme="never"), byte_level(),
             {"type": "Strip", "content": " ", "start": draw.randrange(0, 3), "stop": 0},
             {"type": "Strip", "content": MARK, "start": 1, "stop": 0},
             {"type": "WordPiece", "prefix": draw.choice(["##", MARK]), "cleanup": draw.random() < 0.5}]
    file["decoder"] = sequence("decoders", *draw.sample(parts, draw.randrange(1, 5)))
    return file


def draw_letters(draw) -> list:
    return ["".join(draw.choice([*LETTERS, "a", "a", " "]) for _ in range(draw.randrange(1, 9))) for _ in range(60)]


def ask(answers: str, requests: list) -> list:
    done = subprocess.run([answers], input="".join(json.dumps(request) + "\n" for request in requests), capture_output=True,
                          text=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written_by(tokenizer, file: dict, beside: int) -> dict:
    """What each token writes within a text: decode(b + t + b) without what b writes. Tokens of bytes that are no ASCII, which
    the decoder replaces where they make no UTF-8, are told by their names."""
    falls_back = '"ByteFallback"' in json.dumps(file["decoder"])
    special = {token["id"] for token in file["added_tokens"] if token["special"]}
    first = tokenizer.decode([beside])
    last = tokenizer.decode([beside, beside])[len(first):]
    result = {}
    for i in range(tokenizer.get_vocab_size()):
        content = tokenizer.id_to_token(i)
        if content is None:
            continue
        if i in special:
            result[i] = b""
            continue
        text = tokenizer.decode([beside, i, beside])
        assert text.startswith(first) and text.endswith(last), (text, first, last)
        text = text[len(first):len(text) - len(last)]
        is_byte = falls_back and content in BYTE_TOKENS[0x80:] and text == "\ufffd"
        result[i] = bytes([int(content[3:5], 16)]) if is_byte else text.encode()
    return result


def alphabet_bytes() -> dict:
    """The byte of each character of the byte alphabet, by what the package makes of each byte's character."""
    table, free = {}, 256
    for byte in range(256):
        printable = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE
        table[chr(byte if printable else free)] = byte
        free += not printable
    assert set(table) == set(pre_tokenizers.ByteLevel.alphabet())
    return table


ALPHABET = alphabet_bytes()


def compare_bytes(name: str, file: dict, tokenizer, answer: dict, tally):
    special = {token["id"] for token in file["added_tokens"] if token["special"]}
    beside = next(i for i in range(tokenizer.get_vocab_size()) if tokenizer.id_to_token(i) in ("e", "t", "n"))
    expected = written_by(tokenizer, file, beside)
    for i, want in expected.items():
        got, kind = answer["tokens"][i]
        content = tokenizer.id_to_token(i)
        if b"\xef\xbf\xbd" in want:
            # Some of a character: the decoder cannot show which bytes, the alphabet can, where no other part changes them.
            if name.startswith("bytes"):
                want = bytes(ALPHABET[c] for c in content)
            elif bytes.fromhex(got).decode(errors="replace") == want.decode():
                want = bytes.fromhex(got)
        tally["tokens"] += 1
        assert bytes.fromhex(got) == want, f"{name}: token {i} {content!r} writes {want!r}, read as {bytes.fromhex(got)!r}"
        assert (i in special) == (kind == CONTROL), f"{name}: token {i} {content!r} is of type {kind}"


def draw_texts(draw) -> list:
    texts = ["", " ", "a", " a", *CORPUS]
    for _ in range(60):
        texts.append("".join(draw.choice(PIECES) + draw.choice(["", "", " "]) for _ in range(draw.randrange(1, 9))))
    return texts


def expressions_of(file: dict) -> list:
    splits = [file["pre_tokenizer"], *(file["pre_tokenizer"] or {}).get("pretokenizers", [])]
    return [split["pattern"]["Regex"] for split in splits if split and "Regex" in split.get("pattern", {})]


def compare_texts(name: str, file: dict, tokenizer, texts: list, answer: dict, tally):
    ids_of_unknown = {tokenizer.token_to_id(token) for token in ("<unk>", "[UNK]")} - {None}
    for text, got in zip(texts, answer["texts"], strict=True):
        if isinstance(got, dict):
            tally[f"{got['code']} from encode"] += 1
            if got["code"] == "unknown_token":
                # The package writes the unknown token here, or nothing at all where there is none.
                want = tokenizer.encode(text, add_special_tokens=False)
                has_unknown = ids_of_unknown & set(want.ids) or file["model"].get("unk_token") is None
                assert has_unknown, f"{name}: {text!r} is encoded by tokenizers as {want.tokens}: {got}"
            else:
                assert got["code"] == "unknown_format" and got["where"].startswith("#/"), (name, got)
                assert not any(expression in PUBLISHED for expression in expressions_of(file)), (name, got)
            continue
        want = tokenizer.encode(text, add_special_tokens=False).ids
        tally["texts"] += 1
        assert got == want, (f"{name}: {text!r} is encoded as {[tokenizer.id_to_token(i) for i in want]}, "
                             f"here as {[tokenizer.id_to_token(i) for i in got]}")


def main():
    answers = sys.argv[2]
    draw = random.Random(SEED)
    kinds = {"bytes": bytes_file, "marked": marked_file, "unigram": unigram_file, "words": words_file, "decoders": decoders_file}
    with tempfile.TemporaryDirectory() as folder:
        files, requests = [], []
        for kind, make in kinds.items():
            for number in range(ROUNDS):
                file = make(draw)
                path = pathlib.Path(folder) / f"{kind}_{number}.json"
                path.write_text(json.dumps(file), encoding="utf-8")
                texts = draw_texts(draw)
                files.append((kind, path.name, file, texts))
                requests.append({"file": str(path), "texts": texts})
        for number in range(EXPRESSIONS):
            expression = PUBLISHED[number] if number < len(PUBLISHED) else draw_valid_expression(draw)
            file, texts = expression_file(draw, expression), draw_letters(draw)
            path = pathlib.Path(folder) / f"expressions_{number}.json"
            path.write_text(json.dumps(file), encoding="utf-8")
            files.append(("expressions", path.name, file, texts))
            requests.append({"file": str(path), "texts": texts})
        failures, totals = [], collections.Counter()
        for (kind, name, file, texts), answer in zip(files, ask(answers, requests), strict=True):
            tokenizer = tokenizers.Tokenizer.from_str(json.dumps(file))
            tally = collections.Counter()
            if kind == "decoders" and "#/decoder" in answer.get("error", {}).get("what", ""):
                totals["decoders: files that are refused"] += 1
                continue
            try:
                assert "error" not in answer, f"{name}: {answer['error']}"
                if kind != "expressions":
                    compare_bytes(name, file, tokenizer, answer, tally)
                compare_texts(name, file, tokenizer, texts, answer, tally)
            except AssertionError as failure:
                told = {key: file[key] for key in ("normalizer", "pre_tokenizer", "decoder", "added_tokens")}
                failures.append(f"{failure}\n  {json.dumps(told, ensure_ascii=False)}")
            totals += collections.Counter({f"{kind}: {key}": count for key, count in tally.items()})
    for key, count in sorted(totals.items()):
        print(f"{count} {key}")
    for failure in failures:
        print(f"WRONG: {failure}")
    assert totals["expressions: texts"] > 40 * EXPRESSIONS or failures, "too few expressions are known"
    for kind in ("bytes", "marked", "unigram"):
        assert totals[f"{kind}: texts"] > 300 or failures, f"too few texts of {kind} were encoded"
    assert not failures, f"{len(failures)} files are read otherwise than tokenizers {tokenizers.__version__} reads them"


if __name__ == "__main__":
    main()
