"""Builds the byte-level BPE tokenizer.

Letters are merged first and a leading space last, so that a word is cut into the same pieces
wherever it stands: ` Oslo` in a question and `'Oslo` in a call share their tokens' bytes.
"""

import json
from collections import Counter

import prompt
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

WORDS_ALONE = r"\p{L}+|\p{N}|_|[^\s\p{L}\p{N}_]+|\s"
WORDS_WITH_SPACE = r" ?\p{L}+|\p{N}|_| ?[^\s\p{L}\p{N}_]+|\s"
SPACE = "Ġ"
CONTROL = list(prompt.SPECIAL)
VISIBLE = [prompt.CALL_OPEN, prompt.CALL_CLOSE]


def _splitter(pattern: str):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def build(texts: list[str], size: int = 8192, letter_merges: int = 4800) -> Tokenizer:
    """A tokenizer of exactly `size` entries (fewer only if the texts are too few)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _splitter(WORDS_ALONE)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=letter_merges + len(alphabet), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in model["merges"]]
    pieces = sorted(model["vocab"], key=model["vocab"].get)

    first_pieces = Counter()
    for text in texts:
        encoding = tokenizer.encode(text)
        first_pieces.update(
            after
            for before, after in zip(encoding.tokens, encoding.tokens[1:])
            if before == SPACE and after[0] not in "ĠĊ0123456789"
        )
    room = size - len(pieces) - len(CONTROL) - len(VISIBLE)
    spaced = [piece for piece, _ in first_pieces.most_common(room)]
    merges += [(SPACE, piece) for piece in spaced]
    pieces = CONTROL + VISIBLE + pieces + [SPACE + piece for piece in spaced]

    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = _splitter(WORDS_WITH_SPACE)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in VISIBLE])
    return tokenizer


def unspaced_twin(tokenizer: Tokenizer) -> list[int]:
    """For every token, the token of the same text without its leading space (itself if none)."""
    vocabulary = tokenizer.get_vocab()
    twins = list(range(len(vocabulary)))
    for piece, index in vocabulary.items():
        if piece.startswith(SPACE) and len(piece) > 1:
            twins[index] = vocabulary[piece[1:]]
    return twins


def config() -> dict:
    """The contents of tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": prompt.BEGIN,
        "eos_token": prompt.END,
        "pad_token": prompt.PAD,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1024,
    }
