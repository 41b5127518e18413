"""Writes dialogues: tool documents, user turns, and the calls that answer them."""

import argparse
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import prompt
import words
from domains import ACT_OPENERS, CHANGE, CHAT, DOMAINS, LOOK, LOOK_OPENERS, UNDO, UNDO_OPENERS
from slots import SLOTS, Slot

HELD_OUT_SHARE = 0.2
CATALOGUE_SEED = 20
REORDERED_SHARE = 0.4


@dataclass
class Tool:
    """A tool: how it is documented and how users ask for it."""

    name: str
    openers: tuple
    objects: tuple
    verb: str
    parameters: list  # of (key, Slot, required, document)
    description: str
    document: dict = field(default_factory=dict)

    def __post_init__(self):
        properties = {key: document for key, _, _, document in self.parameters}
        schema = {"type": "object", "properties": properties}
        required = [key for key, _, needed, _ in self.parameters if needed]
        if required:
            schema["required"] = required
        self.document = {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": schema},
        }


def kind_of(verb: str) -> str:
    """What a verb does to its object."""
    for kind, verbs in (("look", LOOK), ("undo", UNDO), ("change", CHANGE)):
        if verb in verbs:
            return kind
    return "act"


def join_name(style: str, *parts: str) -> str:
    """A tool's name in snake_case, camelCase or with a dotted prefix."""
    pieces = " ".join(parts).replace("-", " ").split()
    if style == "camel":
        return pieces[0] + "".join(piece.capitalize() for piece in pieces[1:])
    if style == "dotted":
        return f"{'_'.join(pieces[1:])}.{pieces[0]}"
    return "_".join(pieces)


def document_of(slot: Slot, required: bool, rng: random.Random) -> dict:
    """A parameter's schema, now and then as untidy as real ones are."""
    if slot.type == "enum":
        schema = {"type": "string", "enum": list(slot.source)}
        if rng.random() < 0.05:
            del schema["type"]
    elif slot.type == "array":
        schema = {"type": "array", "items": {"type": "string"}}
    else:
        schema = {"type": slot.type}
    if rng.random() < 0.05:
        schema["description"] = f"The {slot.name.replace('_', ' ')}."
    if not required:
        if slot.default is not None and rng.random() < 0.6:
            schema["default"] = slot.default
        elif rng.random() < 0.06:
            schema["default"] = None
    return schema


def make_tool(verb: str, objects: tuple, slot_names: list[str], style: str, rng: random.Random) -> Tool:
    """A tool for `verb` on an object, its parameters chosen by the kind of verb."""
    kind = kind_of(verb)
    chosen = [(name.rstrip("!"), SLOTS[name.rstrip("!")], name.endswith("!")) for name in slot_names]
    if kind in ("undo", "change"):
        key = f"{objects[0].split()[-1].replace('-', '_')}_id"
        identifier = Slot(key, "string", "code", ("{v}", "with the id {v}", "number {v}", "with id {v}"))
        rest = [(name, slot, False) for name, slot, _ in chosen]
        rest = (
            [("reason", SLOTS["reason"], False), ("notify", SLOTS["notify"], False)][: rng.randint(0, 2)]
            if kind == "undo"
            else rest
        )
        chosen = [(key, identifier, True)] + rest
    elif kind == "look":
        first = [name for name, _, needed in chosen if needed] or [chosen[0][0]]
        chosen = [(name, slot, name in first) for name, slot, _ in chosen]
        if "limit" not in (name for name, _, _ in chosen) and rng.random() < 0.25:
            chosen.append(("limit", SLOTS["limit"], False))
    parameters = [(name, slot, needed, document_of(slot, needed, rng)) for name, slot, needed in chosen]
    openers = {"look": LOOK_OPENERS, "act": ACT_OPENERS, "undo": UNDO_OPENERS, "change": UNDO_OPENERS}[kind]
    article = rng.choice(("a", "the")) if kind != "look" else "the"
    tail = rng.choice(("", "", f" by {chosen[0][0].replace('_', ' ')}", " for the user"))
    return Tool(
        join_name(style, verb, objects[0]),
        openers,
        objects,
        verb,
        parameters,
        f"{verb.capitalize()} {article} {objects[0]}{tail}.",
    )


def parse_domains():
    """Yields (domain, object names, verbs, slot names) for every line of the table."""
    for domain, text in DOMAINS.items():
        for line in text.strip().splitlines():
            objects, verbs, slot_names = line.split(": ")
            yield domain, tuple(objects.split("=")), verbs.split(), slot_names.split()


def catalogue() -> tuple[list[Tool], list[Tool]]:
    """The fixed tools: those seen in training, and those held out."""
    rng = random.Random(CATALOGUE_SEED)
    tools = []
    for _, objects, verbs, slot_names in parse_domains():
        style = rng.choice(("snake", "snake", "snake", "snake", "camel", "dotted"))
        tools += [make_tool(verb, objects, slot_names, style, rng) for verb in verbs]
    rng.shuffle(tools)
    held_out = round(len(tools) * HELD_OUT_SHARE)
    return tools[held_out:], tools[:held_out]


class ToolMaker:
    """Makes tools that exist in one dialogue only."""

    def __init__(self, reserved: set[str]):
        self.reserved = reserved
        rows = list(parse_domains())
        self.verbs = sorted({verb for row in rows for verb in row[2]})
        self.nouns = sorted({word for row in rows for name in row[1] for word in name.split()})
        self.slots = sorted(SLOTS)

    def recombined(self, rng: random.Random) -> Tool:
        """Known verbs, words and parameters, combined anew."""
        while True:
            first, second = (rng.choice(self.nouns) if rng.random() < 0.7 else words.made_up(rng) for _ in range(2))
            objects = (first if rng.random() < 0.4 or first == second else f"{first} {second}",)
            names = rng.sample(self.slots, rng.randint(1, 5))
            needed = rng.randint(1, len(names))
            names = [name + ("!" if i < needed else "") for i, name in enumerate(names)]
            style = rng.choice(("snake", "snake", "snake", "camel", "dotted"))
            tool = make_tool(rng.choice(self.verbs), objects, names, style, rng)
            if tool.name not in self.reserved:
                return tool

    def made_up(self, rng: random.Random) -> Tool:
        """A tool whose words are in no list, so that only its document explains it."""
        verb, noun = words.made_up(rng), " ".join(words.made_up(rng) for _ in range(rng.choice((1, 1, 2))))
        parameters, used = [], set()
        for index in range(rng.randint(1, 4)):
            label = rng.choice(
                (words.made_up(rng), rng.choice(self.nouns), f"{rng.choice(self.nouns)} {words.made_up(rng)}")
            )
            key = label.replace(" ", "_").replace("-", "_")
            if key in used:
                continue
            used.add(key)
            slot = self._made_up_slot(key, label, rng)
            needed = index == 0 or rng.random() < 0.4
            parameters.append((key, slot, needed, document_of(slot, needed, rng)))
        style = rng.choice(("snake", "snake", "camel", "dotted"))
        return Tool(
            join_name(style, verb, noun),
            ACT_OPENERS,
            (noun,),
            verb,
            parameters,
            f"{verb.capitalize()} {rng.choice(('a', 'the'))} {noun}.",
        )

    @staticmethod
    def _made_up_slot(key, label, rng):
        kind = rng.choice(("string", "string", "string", "integer", "number", "enum", "boolean", "array"))
        phrases = (
            f"with {label} {{v}}",
            f"with the {label} {{v}}",
            f"{label} {{v}}",
            f"using {{v}} as the {label}",
            f"{{v}} for the {label}",
            f"{label}: {{v}}",
        )
        if kind == "boolean":
            return Slot(
                key,
                kind,
                "boolean",
                (f"with {label}", f"and {label} please", f"{label} on"),
                (f"without {label}", f"no {label}", f"{label} off"),
            )
        if kind == "enum":
            values = {
                rng.choice((words.made_up(rng), rng.choice(words.NOUNS), rng.choice(words.ADJECTIVES)))
                for _ in range(rng.randint(2, 4))
            }
            return Slot(key, kind, tuple(sorted(values)), phrases)
        source = {"integer": list(words.INTEGERS), "number": list(words.DECIMALS)}.get(kind, list(words.STRINGS))
        return Slot(key, kind, rng.choice(source), phrases)


def sample_value(slot: Slot, rng: random.Random):
    """A value and the words a user says for it."""
    if slot.type == "integer":
        return words.integer(rng, slot.source)
    if slot.type == "number":
        return words.decimal(rng, slot.source)
    if slot.type == "enum":
        value = rng.choice(slot.source)
        return value, value
    if slot.type == "array":
        values = list(dict.fromkeys(words.STRINGS[slot.source](rng) for _ in range(rng.randint(1, 3))))
        return values, values[0] if len(values) == 1 else ", ".join(values[:-1]) + " and " + values[-1]
    value = words.STRINGS[slot.source](rng)
    return value, value


def say(slot: Slot, rng: random.Random):
    """A value for a parameter and a phrase that tells it."""
    if slot.type == "boolean":
        value = rng.random() < 0.65
        return value, rng.choice(slot.phrases if value else slot.negative)
    value, surface = sample_value(slot, rng)
    template = rng.choice(slot.phrases)
    quote = rng.choice(('"', '"', "'")) if "'" not in surface else '"'
    quoted = f"{quote}{surface}{quote}"
    if slot.type == "string" and rng.random() < 0.1:
        template = template.replace("{v}", "{q}")
    return value, template.format(v=surface, q=quoted)


def request(tool: Tool, rng: random.Random) -> tuple[str, dict]:
    """A sentence that asks for one call of `tool`, and that call."""
    required, optional, arguments = [], [], {}
    for key, slot, needed, _ in tool.parameters:
        if needed or rng.random() < 0.35:
            arguments[key], phrase = say(slot, rng)
            (required if needed else optional).append(phrase)
    if rng.random() < 0.3:
        rng.shuffle(required)
    rng.shuffle(optional)
    name = tool.objects[0] if rng.random() < 0.75 else rng.choice(tool.objects)
    text = rng.choice(tool.openers).format(verb=tool.verb, object=name)
    if optional and optional[0][0].islower() and rng.random() < 0.1:
        text = f"{optional.pop(0)}, {text}"
    for phrase in required + optional:
        text += rng.choice((" ", " ", " ", ", ")) + phrase
    return text, {"name": tool.name, "arguments": arguments}


def polish(text: str, rng: random.Random) -> str:
    """Greetings, capitals and a full stop around a request."""
    text = rng.choice(("", "", "", "", "please ", "hi, ", "hello, ", "ok, ", "now ")) + text
    if rng.random() < 0.7:
        text = text[0].upper() + text[1:]
    return text + rng.choice((".", ".", "", "?", ", please.", ", thanks."))


def turn(tools: list[Tool], rng: random.Random, none_share: float, parallel_share: float):
    """A user turn and the calls that answer it; without calls, also the plain answer."""
    draw = rng.random()
    if draw < none_share:
        question, reply = rng.choice(CHAT)
        return question, [], reply
    count = rng.choice((2, 2, 3)) if draw < none_share + parallel_share else 1
    texts, calls = [], []
    for _ in range(count):
        text, call = request(rng.choice(tools), rng)
        if call not in calls:
            texts.append(text)
            calls.append(call)
    joint = rng.choice((" and also ", ". Also, ", ", and then ", "; also "))
    return polish(joint.join(texts), rng), calls, None


def reordered(call: dict, rng: random.Random) -> dict:
    """The call with its arguments in another order, now and then."""
    items = list(call["arguments"].items())
    if rng.random() < REORDERED_SHARE:
        rng.shuffle(items)
    return {"name": call["name"], "arguments": dict(items)}


def compatible(tools: list[Tool]) -> bool:
    """Whether no two tools answer the same request."""
    keys = [(tool.objects[0], kind_of(tool.verb)) for tool in tools]
    return len(set(keys)) == len(tools) and len({tool.name for tool in tools}) == len(tools)


class Dialogues:
    """An endless, seeded stream of training dialogues."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.seen, self.held_out = catalogue()
        self.maker = ToolMaker({tool.name for tool in self.held_out})

    def pick_tools(self, ease: float) -> list[Tool]:
        """One to four tools; fewer while `ease` is high."""
        rng = self.rng
        count = rng.choice((1, 1, 2) if rng.random() < ease else (1, 2, 2, 3, 3, 4))
        while True:
            tools = []
            for _ in range(count):
                draw = rng.random()
                tools.append(
                    rng.choice(self.seen)
                    if draw < 0.45
                    else self.maker.recombined(rng)
                    if draw < 0.78
                    else self.maker.made_up(rng)
                )
            if compatible(tools):
                return tools

    def next(self, ease: float = 0.0) -> list[tuple[str, bool]]:
        """A dialogue as (text, whether the assistant writes it) pieces."""
        rng = self.rng
        tools = self.pick_tools(ease)
        style = "python" if rng.random() < 0.55 else "hermes"
        pieces = [(prompt.head([tool.document for tool in tools], style), False)]
        for _ in range(rng.randint(3, 6)):
            question, calls, reply = turn(tools, rng, 0.08, 0.06 if ease > 0.5 else 0.12)
            calls = [reordered(call, rng) for call in calls]
            pieces.append((prompt.USER + question + prompt.ASSISTANT, False))
            pieces.append(((prompt.answer_text(calls, style) if calls else reply) + prompt.END, True))
        return pieces


def held_out_rows(count: int, seed: int) -> list[dict]:
    """Evaluation dialogues: half with tools seen in training, half with tools that never were."""
    rng = random.Random(seed)
    seen, held_out = catalogue()
    rows = []
    while len(rows) < count:
        is_seen = len(rows) % 2 == 0
        tools = rng.sample(seen if is_seen else held_out, rng.choice((1, 2, 3, 3, 4)))
        if not compatible(tools):
            continue
        style = rng.choice(("python", "hermes"))
        messages = []
        if rng.random() < 0.12:
            question, calls, reply = turn(tools, rng, 0.1, 0.0)
            messages += [
                {"role": "user", "content": question},
                {"role": "assistant", "content": prompt.answer_text(calls, style) if calls else reply},
            ]
        question, calls, reply = turn(tools, rng, 0.12, 0.15)
        messages.append({"role": "user", "content": question})
        documents = [tool.document for tool in tools]
        rows.append(
            {
                "id": f"tiny-{len(rows):04d}",
                "format": style,
                "choice": "auto",
                "seen": is_seen,
                "tools": documents,
                "messages": messages,
                "prompt": prompt.render(documents, messages, style),
                "calls": calls,
                "text": prompt.answer_text(calls, style) if calls else reply,
            }
        )
    return rows


def all_required(tool: Tool) -> Tool:
    """The tool with every parameter required, so that none has a default."""
    parameters = [
        (key, slot, True, {word: value for word, value in document.items() if word != "default"})
        for key, slot, _, document in tool.parameters
    ]
    return Tool(tool.name, tool.openers, tool.objects, tool.verb, parameters, tool.description)


def many_required_rows(count: int, seed: int) -> list[dict]:
    """Evaluation dialogues whose calls have three to five required parameters, with tools that no
    training dialogue shows: held-out ones, and ones made up from known words for one dialogue."""
    rng = random.Random(seed)
    _, held_out = catalogue()
    maker = ToolMaker({tool.name for tool in held_out})
    pool = [tool for tool in held_out if 3 <= len(tool.parameters) <= 5]
    rows = []
    while len(rows) < count:
        tools, shown = [], rng.choice((1, 2, 3))
        while len(tools) < shown:
            tool = rng.choice(pool) if rng.random() < 0.5 else maker.recombined(rng)
            if len(tool.parameters) >= 3:
                tools.append(all_required(tool))
        if not compatible(tools):
            continue
        style = rng.choice(("python", "hermes"))
        question, call = request(rng.choice(tools), rng)
        messages = [{"role": "user", "content": polish(question, rng)}]
        documents = [tool.document for tool in tools]
        rows.append(
            {
                "id": f"many-{len(rows):04d}",
                "format": style,
                "choice": "auto",
                "seen": False,
                "tools": documents,
                "messages": messages,
                "prompt": prompt.render(documents, messages, style),
                "calls": [call],
                "text": prompt.answer_text([call], style),
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description="Write the held-out dialogues.")
    parser.add_argument("--seed", type=int, default=977)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "data/tiny")
    options = parser.parse_args()
    for name, rows in (
        ("heldout", held_out_rows(600, options.seed)),
        ("heldout_many", many_required_rows(300, options.seed)),
    ):
        with (options.out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
