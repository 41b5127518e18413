"""Writes rows for `tooldecode eval`: FuncQA with 13 tools, KAMEL with 234, GSM8K without, and BFCL's calls with many
parameters.

python3 benchmarks/real_models/rows.py --shared DATA --out FOLDER [--steps 60]

FuncQA: the examples of its tools, and the steps of GSM8K's solutions with one operation on two numbers. KAMEL: every
row has all relations as tools, and asks for one by its name in Wikidata, because the data has no questions. BFCL: the
rows of simple_python, multiple, live_simple and live_multiple whose called function requires three or more parameters
(bfcl_three.jsonl) or two (bfcl_two.jsonl), unchanged.
"""

import argparse
import gzip
import json
import pathlib
import re

LABELS = {
    "P17": "country", "P19": "place of birth", "P20": "place of death", "P22": "father", "P25": "mother",
    "P26": "spouse", "P27": "country of citizenship", "P30": "continent", "P36": "capital", "P37": "official language",
    "P39": "position held", "P40": "child", "P50": "author", "P54": "member of sports team", "P57": "director",
    "P69": "educated at", "P86": "composer", "P101": "field of work", "P103": "native language", "P106": "occupation",
    "P108": "employer", "P112": "founded by", "P119": "place of burial", "P136": "genre", "P140": "religion",
    "P159": "headquarters location", "P161": "cast member", "P166": "award received", "P176": "manufacturer",
    "P178": "developer", "P264": "record label", "P276": "location", "P361": "part of", "P463": "member of",
    "P495": "country of origin", "P569": "date of birth", "P570": "date of death", "P577": "publication date",
    "P641": "sport", "P1303": "instrument"}
SUBJECTS = ("Marie Curie", "the Danube", "Casablanca", "Iceland", "Nokia", "Madame Butterfly", "Pele", "Linux")
OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def tool(name, description, parameters, required):
    return {"name": name, "description": description,
            "parameters": {"type": "object", "properties": parameters, "required": required}}


def row(number, kind, tools, question, name, arguments):
    return {"id": f"{kind}_{number}", "format": "python", "choice": "required", "seen": True, "tools": tools,
            "messages": [{"role": "user", "content": question}], "calls": [{"name": name, "arguments": arguments}]}


def funcqa(shared, steps):
    source = [json.loads(line) for line in (shared / "funcqa/tools.jsonl").read_text(encoding="utf-8").splitlines()]
    tools = []
    for entry in source:
        numbers = {"type": "array", "items": {"type": "number"}, "minItems": entry["min_args"]}
        if entry["max_args"] is not None:
            numbers["maxItems"] = entry["max_args"]
        tools.append(tool(entry["name"], entry["description"], {"input": numbers}, ["input"]))
    rows = []
    for entry in source:
        example = entry["example"]
        question = "I want to " + example["Scenario"].removeprefix("if you want to ")
        rows.append(row(len(rows), "funcqa", tools, question, entry["name"], example["Parameters"]))
    for line in (shared / "gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines():
        if len(rows) >= len(source) + steps:
            break
        for expression, _ in json.loads(line)["calculations"][:1]:
            found = re.fullmatch(r"(\d+(?:\.\d+)?)([-+*/])(\d+(?:\.\d+)?)", expression)
            if found:
                values = [float(found[i]) if "." in found[i] else int(found[i]) for i in (1, 3)]
                rows.append(row(len(rows), "funcqa", tools, f"What is {found[1]} {found[2]} {found[3]}?",
                                OPERATIONS[found[2]], {"input": values}))
    return rows


def kamel(shared):
    subject = {"subject": {"type": "string"}}
    names = (shared / "kamel/relations.txt").read_text(encoding="utf-8").split()
    tools = [tool(name, LABELS.get(name, ""), subject, ["subject"]) for name in names]
    return [row(i, "kamel", tools, f"{label} of {SUBJECTS[i % len(SUBJECTS)]}?", name,
                {"subject": SUBJECTS[i % len(SUBJECTS)]})
            for i, (name, label) in enumerate(LABELS.items()) if name in names]


def gsm8k(shared):
    """GSM8K's test questions, which no tool answers."""
    lines = (shared / "gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()
    return [{"id": row["id"], "format": "json", "choice": "none", "seen": True, "tools": [], "calls": [],
             "messages": [{"role": "user", "content": row["question"]}]} for row in map(json.loads, lines)]


def bfcl(shared):
    """Calls to a function that requires three or more parameters, and to one that requires two."""
    three, two = [], []
    for name in ("simple_python.jsonl", "multiple.jsonl", "live_simple.jsonl", "live_multiple.jsonl.gz"):
        path = shared / "bfcl" / name
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                required = {function["name"]: function["parameters"].get("required", []) for function in line["functions"]}
                if len(line["answers"]) == 1:
                    count = len(required[next(iter(line["answers"][0]))])
                    if count >= 2:
                        (three if count >= 3 else two).append(line)
    return three, two


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--shared", type=pathlib.Path, required=True, help="directory with bfcl, funcqa, gsm8k and kamel")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory for the files")
    parser.add_argument("--steps", type=int, default=60, help="steps of GSM8K's solutions")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    three, two = bfcl(options.shared)
    for name, rows in (("funcqa", funcqa(options.shared, options.steps)), ("kamel", kamel(options.shared)),
                       ("gsm8k", gsm8k(options.shared)),
                       ("bfcl_three", three), ("bfcl_two", two)):
        path = options.out / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")
        print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main()
