"""Trains an EAGLE layer for the target on the texts that states.py has made so far, and exports it.

    python examples/train_draft/train_eagle.py --minutes 40 --threads 1
    python examples/train_draft/train_eagle.py --evaluate

It begins with the best linear guess of the next state, or with the layer of a folder. A checkpoint lies in the cache
folder, and --resume goes on from it."""

from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from layers import arguments, begin, export, load_eagle, precision
from learning import Lesson, Texts, Training, evaluate
from states import NOTHING, Text
from target import Target
from train_draft import Eagle  # of examples/tiny_model

WIDTH = 1536  # of the feed-forward part
FIRST_DEPTH, DEPTH, DEEP_FROM = 2, 3, 0.4
MEASURED_DEPTH = 6
REGRESSION = 0.3
NOISE = 0.15  # at most, on a state's numbers, whose deviation is about 1 (EAGLE, arXiv:2401.15077, section 4)
RIDGE = 30.0


def linear_guess(target: Target, texts: list[Text]):
    """The weights [H, 2 H] and the bias that guess a state best from the token and the state before it."""
    size = 2 * target.shape.hidden + 1
    squares, products = torch.zeros(size, size), torch.zeros(size, target.shape.hidden)
    for text in texts:
        states = text.states[:, : target.shape.hidden].float() / target.unit
        use = (text.kinds != NOTHING)[1:]
        tokens = F.embedding(text.tokens[1:-1][use], target.embedding) * target.embedding_scale
        pairs = torch.cat((tokens, states[:-1][use], torch.ones(len(tokens), 1)), dim=1)
        squares.addmm_(pairs.T, pairs)
        products.addmm_(pairs.T, states[1:][use])
    weights = torch.linalg.solve(squares + RIDGE * torch.eye(size), products).T
    return weights[:, :-1].contiguous(), weights[:, -1].contiguous()


def train(target: Target, options):
    torch.manual_seed(options.seed)
    texts = Texts(target, options.seed)
    texts.refresh()
    if options.begin_with:
        eagle = load_eagle(target, options.begin_with, target.embedding_scale, target.unit).train()
    else:
        eagle = Eagle(replace(target.shape, intermediate=options.width), target.embedding_scale)
        if not options.resume:
            weights, bias = linear_guess(target, texts.texts)
            with torch.no_grad():
                eagle.fc.weight.copy_(weights)
                eagle.fc.bias.copy_(bias)
    training = Training(eagle, options.minutes, options.rate, precision(options))
    checkpoint = target.folder / "eagle.pt"
    if options.resume:
        training.load(checkpoint)

    def loss_of(some: list[Text], progress: float):
        depth = FIRST_DEPTH if progress < DEEP_FROM else DEPTH
        lesson = Lesson(target, some, depth)
        states = lesson.final / target.unit + NOISE * (2 * torch.rand_like(lesson.final) - 1)
        drafts = eagle.unroll(lesson.embedded, states, lesson.bases, depth, target.cos, target.sin)
        loss, miss, rights = lesson.loss(drafts, target.unit)
        return loss + REGRESSION * miss, rights

    def keep():
        training.save(checkpoint)
        export(target, eagle, options.out, target.unit)

    training.run(texts, loss_of, keep, options.export_every)


def main():
    parser = arguments(__doc__, 40)
    parser.add_argument("--width", type=int, default=WIDTH, help=f"feed-forward width (default {WIDTH})")
    parser.add_argument("--begin-with", type=Path, help="a folder whose layer is trained further, on a new clock")
    options = parser.parse_args()
    target = begin(options)
    if not options.evaluate:
        return train(target, options)
    eagle = load_eagle(target, options.out)

    def guess(text: Text, bases: torch.Tensor):
        embedded = F.embedding(text.tokens[None, 1:], target.embedding)
        states = text.states[None, :, : target.shape.hidden].float()
        return eagle.unroll(embedded, states, bases[None], MEASURED_DEPTH, target.cos, target.sin)[0]

    evaluate(target, guess, target.likeliest, MEASURED_DEPTH, options.limit)


if __name__ == "__main__":
    main()
