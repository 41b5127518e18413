"""Trains Medusa's heads for the target on the texts that states.py has made so far, and exports them.

    python examples/train_draft/train_medusa.py --minutes 6 --threads 1
    python examples/train_draft/train_medusa.py --evaluate

A head is residual blocks whose result the target's own head reads; it guesses without the tokens that come before its
own."""

import torch
from layers import arguments, begin, export, load_medusa, precision
from learning import Lesson, Texts, Training, evaluate
from states import Text
from target import Target
from train_draft import Medusa  # of examples/tiny_model

HEADS, BLOCKS = 4, 1


def train(target: Target, options):
    torch.manual_seed(options.seed)
    texts = Texts(target, options.seed)
    medusa = Medusa(target.shape.hidden, HEADS, BLOCKS)
    training = Training(medusa, options.minutes, options.rate, precision(options))
    checkpoint = target.folder / "medusa.pt"
    if options.resume:
        training.load(checkpoint)

    def loss_of(some: list[Text], _: float):
        lesson = Lesson(target, some, HEADS)
        start = lesson.final.gather(1, lesson.bases[..., None].expand(-1, -1, lesson.final.shape[-1]))
        loss, _, rights = lesson.loss(medusa(start))
        return loss, rights

    def keep():
        training.save(checkpoint)
        export(target, medusa, options.out)

    training.run(texts, loss_of, keep, options.export_every)


def main():
    options = arguments(__doc__, 6).parse_args()
    target = begin(options)
    if not options.evaluate:
        return train(target, options)
    medusa = load_medusa(target, options.out)
    final = lambda text: text.states[:, : target.shape.hidden].float()
    evaluate(target, lambda text, bases: medusa(final(text)[bases]), target.likeliest, len(medusa), options.limit)


if __name__ == "__main__":
    main()
