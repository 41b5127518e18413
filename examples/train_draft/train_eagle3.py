"""Trains an EAGLE-3 layer for the target on the texts that states.py has made so far, and exports it.

    python examples/train_draft/train_eagle3.py --minutes 60 --threads 1
    python examples/train_draft/train_eagle3.py --evaluate

Its head has rows for the tokens that the target's answers have most, which begin as the target's own. A checkpoint lies
in the cache folder, and --resume goes on from it."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from eagle3 import Eagle3
from layers import arguments, begin, export, load_eagle3, precision
from learning import Lesson, Texts, Training, evaluate
from states import ANSWER, NOTHING, Text
from target import Target

WIDTH = 896  # of the feed-forward part
ROWS = 4096
FIRST_DEPTH, DEPTH, DEEP_FROM = 2, 3, 0.4
MEASURED_DEPTH = 6
RIDGE = 30.0


def most_said(target: Target, texts: list[Text], rows: int) -> torch.Tensor:
    """The tokens that answers have most, ascending."""
    counts = torch.zeros(target.shape.vocabulary)
    for text in texts:
        said = text.tokens[1:][text.kinds == ANSWER]
        counts += torch.bincount(said, minlength=len(counts))
    return counts.topk(rows).indices.sort().values


def linear_guess(target: Target, texts: list[Text]) -> torch.Tensor:
    """The weights [H, 3 H] that guess best, from three layers' states, what the target's last norm reads."""
    hidden = target.shape.hidden
    squares, products = torch.zeros(3 * hidden, 3 * hidden), torch.zeros(3 * hidden, hidden)
    for text in texts:
        # The first token's are hundreds of times as large as all others.
        use = (text.kinds != NOTHING).index_fill(0, torch.tensor(0), False)
        states, features = text.states[use].float().split((hidden, 3 * hidden), dim=1)
        squares.addmm_(features.T, features)
        products.addmm_(features.T, states / target.norm)
    return torch.linalg.solve(squares + RIDGE * torch.eye(3 * hidden), products).T.contiguous()


def train(target: Target, options):
    torch.manual_seed(options.seed)
    texts = Texts(target, options.seed)
    texts.refresh()
    checkpoint = target.folder / "eagle3.pt"
    kept = torch.load(checkpoint, weights_only=True)["model"] if options.resume else {}
    tokens = kept["tokens"] if options.resume else most_said(target, texts.texts, options.rows)
    eagle = Eagle3(replace(target.shape, intermediate=options.width), tokens)
    if not options.resume:
        with torch.no_grad():
            eagle.fc.weight.copy_(linear_guess(target, texts.texts))
            eagle.norm.weight.copy_(target.norm)
            eagle.lm_head.weight.copy_(target.head[tokens])
    training = Training(eagle, options.minutes, options.rate, precision(options))
    if options.resume:
        training.load(checkpoint)

    def loss_of(some: list[Text], progress: float):
        depth = FIRST_DEPTH if progress < DEEP_FROM else DEPTH
        lesson = Lesson(target, some, depth)
        drafts = eagle.unroll(lesson.embedded, lesson.states, lesson.bases, depth, target.cos, target.sin)
        return eagle.loss(lesson, drafts)

    def keep():
        training.save(checkpoint)
        export(target, eagle, options.out)

    training.run(texts, loss_of, keep, options.export_every)


def main():
    parser = arguments(__doc__, 60)
    parser.add_argument("--width", type=int, default=WIDTH, help=f"feed-forward width (default {WIDTH})")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of its head (default {ROWS})")
    options = parser.parse_args()
    target = begin(options)
    if not options.evaluate:
        return train(target, options)
    eagle = load_eagle3(target, options.out)

    def guess(text: Text, bases: torch.Tensor):
        embedded = F.embedding(text.tokens[None, 1:], target.embedding)
        states = text.states[None].float()
        return eagle.unroll(embedded, states, bases[None], MEASURED_DEPTH, target.cos, target.sin)[0]

    evaluate(target, guess, lambda state: int(eagle.tokens[eagle.logits(state).argmax()]), MEASURED_DEPTH, options.limit)


if __name__ == "__main__":
    main()
