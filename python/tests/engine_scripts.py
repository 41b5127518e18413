"""What the tests of both engines ask for, and how they judge what comes."""
import json
import random
import re

import numpy as np

from tooldecode._tools import ToolRequest

SCHEMA = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 99},
                                           "note": {"type": "string", "maxLength": 9}},
          "required": ["city", "days"], "additionalProperties": False}
TAG = {"type": "structural_tag", "format": {
    "type": "tag", "begin": "<call>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</call>"}}
OLD_TAG = {"type": "structural_tag", "triggers": ["<f="], "structures": [
    {"begin": "<f=a>", "schema": SCHEMA, "end": "</f>"}, {"begin": "<f=b>", "schema": None, "end": "</f>"}]}
PARAMETERS = {
    "get_weather": {"type": "object", "additionalProperties": False, "required": ["city", "days"], "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome", "12 Elm St"]}, "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "exact": {"type": "boolean"}, "unit": {"enum": ["12", "C", None]}}},
    "add": {"type": "object", "additionalProperties": False, "required": ["a"], "properties": {
        "a": {"type": "integer", "minimum": 0, "maximum": 99}}},
}
CHOICES = ["positive", "negative", 'with "quotes"\n']
EBNF = 'root ::= "yes" | "no" ("," digits)\ndigits ::= [0-9]{1,3}'
# Grammars that are built at once, and whose masks take more steps than a mask may: of the first token, and behind a text.
_AMBIGUOUS = 's ::= "" | ' + " | ".join('[^"]' + " s" * count for count in range(1, 21))
FAILING = {"at once": "root ::= s\n" + _AMBIGUOUS, "behind a text": 'root ::= "abcdefgh" s\n' + _AMBIGUOUS}
REGEX = "[a-f]{2,5}-[0-9]{3}"


def tools_of(strict=None) -> list[dict]:
    """Documents of chat requests."""
    return [{"type": "function", "function": {"name": name, "description": "d", "parameters": parameters,
                                              **({} if strict is None else {"strict": strict})}}
            for name, parameters in PARAMETERS.items()]


def conforms(text: str) -> bool:
    value = json.loads(text)
    return (value["city"] in ("Paris", "Rome") and isinstance(value["days"], (int, float)) and value["days"] <= 99
            and set(value) <= {"city", "days", "note"} and len(value.get("note", "")) <= 9)


def inside(text: str, begin: str, end: str) -> str:
    assert text.startswith(begin) and text.endswith(end), text
    return text[len(begin) : -len(end)]


JUDGES = {
    "json": conforms,
    "regex": lambda text: re.fullmatch(REGEX, text) is not None,
    "ebnf": lambda text: re.fullmatch("yes|no,[0-9]{1,3}", text) is not None,
    "choice": lambda text: text in CHOICES,
    "structural_tag": lambda text: conforms(inside(text, "<call>", "</call>")),
}


def tool_kinds() -> dict:
    """By name: the text of a tool parser's request, and whether a text is a whole answer to it."""
    made = {}
    for form in ("hermes", "qwen3-coder", "llama", "python"):
        for choice in ("required", "auto"):
            request = ToolRequest(json.dumps(tools_of()), form, choice)

            def is_answer(text, request=request, choice=choice):
                calls = request.reader().parse(text)
                for name, arguments in calls:
                    properties = PARAMETERS[name]["properties"]
                    assert set(arguments) <= set(properties) and set(PARAMETERS[name]["required"]) <= set(arguments), text
                return bool(calls) or choice == "auto"
            made[f"tools {form} {choice}"] = (request.text(), is_answer)
    return made


def allowed(row: np.ndarray) -> np.ndarray:
    """The tokens of a mask."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


def draw(row: np.ndarray, dice: random.Random, ends: list[int]) -> int:
    """A token of a mask, as a sampler takes it: an end where it may, so that texts are short."""
    tokens = allowed(row)
    mine = [token for token in tokens if int(token) in ends]
    assert len(tokens), "nothing is allowed"
    return int(dice.choice(mine if mine and dice.random() < 0.8 else tokens))
