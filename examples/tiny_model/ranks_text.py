"""Writes the text of new dialogues, which tell how often each token occurs in the model's domain.

python examples/tiny_model/ranks_text.py --answers --out answers.txt
tooldecode ranks --text answers.txt --out examples/data/tiny/ranks.json
"""

import argparse
import re
from pathlib import Path

import prompt
from generator import Dialogues

CONTROL = re.compile("|".join(map(re.escape, prompt.SPECIAL)))


def text_of(dialogue: list[tuple[str, bool]], answers: bool) -> str:
    """A dialogue with ends of lines for control tokens, which rank first whatever is counted."""
    whole = "".join(text for text, is_answer in dialogue if is_answer or not answers)
    return "".join(part + "\n" for part in CONTROL.split(whole) if part)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dialogues", type=int, default=10000)
    parser.add_argument("--answers", action="store_true", help="leave out what the assistant does not write")
    parser.add_argument("--seed", type=int, default=40301, help="one that no training has used")
    options = parser.parse_args()
    source = Dialogues(options.seed)
    with options.out.open("w", encoding="utf-8") as file:
        for _ in range(options.dialogues):
            file.write(text_of(source.next(), options.answers))


if __name__ == "__main__":
    main()
