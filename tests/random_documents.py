"""Random tool documents, unread and read: what `tooldecode check` says of texts, and what jsonschema says.

    python tests/random_documents.py PROGRAM [COUNT] [--seed N]

Draws COUNT schemas of parameters (300 by default, 20,000 by hand) that combine what describes one object: compositions,
conditions, references, dependencies. Unread, as a schema, exactly the conforming values must be accepted. Read, as the
parameters of a tool, an object is closed over the names that describe it: what is accepted must conform, and what
conforms must be accepted unless it has a key that no schema which holds for that object names. Which keys those are is
worked out here, from the value.

Needs the Python package jsonschema; skipped without, with exit code 77.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "examples/data/tiny"
CHUNK = 200  # documents in one process
NAMES = ["a", "b", "c", "o", "l"]
STRANGE = "zz"  # which no schema names
SPEAK_OF_OTHERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")


def skip(reason: str):
    print(f"SKIPPED: random_documents.py {reason}", file=sys.stderr)
    sys.exit(77)


class Documents:
    """Draws schemas of objects whose parts describe each other's values."""

    def __init__(self, draw):
        self.pick, self.whole = draw.choice, draw.randint
        self.chance = lambda percent: draw.random() * 100 < percent

    def leaf(self):
        return self.pick([{"type": "integer"}, {"const": 1}, {"enum": [1, "x"]}, {"type": "string"}, {}, True,
                          {"type": ["integer", "null"]}])

    def value(self, depth, definitions):
        if definitions and self.chance(15):
            return {"$ref": "#/$defs/" + self.pick(definitions)}
        if depth > 0 and self.chance(45):
            return self.object(depth - 1, definitions)
        if depth > 0 and self.chance(25):
            array = {"type": "array", "items": self.value(depth - 1, definitions)}
            if self.chance(30):
                array["contains"] = self.part(depth - 1, definitions)
            return array
        return self.leaf()

    def part(self, depth, definitions):
        """A schema that says something about an object, and perhaps not that it is one."""
        schema = {}
        if self.chance(70):
            schema["properties"] = {name: self.value(depth, definitions) for name in self.names(1, 2)}
        if self.chance(50) or not schema:
            schema["required"] = self.names(1, 2)
        if self.chance(15):
            schema["type"] = "object"
        if definitions and self.chance(15):
            schema = {"$ref": "#/$defs/" + self.pick(definitions)}
        if depth > 0 and self.chance(15):
            self.combine(schema, depth - 1, definitions)
        return schema

    def names(self, least, most):
        names = NAMES[:]
        return [names.pop(self.whole(0, len(names) - 1)) for _ in range(self.whole(least, most))]

    def combine(self, schema, depth, definitions):
        parts = lambda: [self.part(depth, definitions) for _ in range(self.whole(1, 3))]
        kind = self.pick(["allOf", "anyOf", "oneOf", "not", "if", "$ref", "dependentSchemas", "dependentRequired"])
        if kind in ("allOf", "anyOf", "oneOf"):
            schema[kind] = parts()
        elif kind == "not":
            schema[kind] = self.part(depth, definitions)
        elif kind == "if":
            schema["if"] = self.part(depth, definitions)
            for key in ("then", "else"):
                if self.chance(60):
                    schema[key] = self.part(depth, definitions)
        elif kind == "$ref" and definitions:
            schema[kind] = "#/$defs/" + self.pick(definitions)
        elif kind == "dependentSchemas":
            schema[kind] = {self.pick(NAMES): self.part(depth, definitions)}
        elif kind == "dependentRequired":
            schema[kind] = {self.pick(NAMES): self.names(1, 1)}

    def object(self, depth, definitions):
        schema = {"type": "object"}
        if self.chance(85):
            schema["properties"] = {name: self.value(depth, definitions) for name in self.names(1, 3)}
        if self.chance(30):
            schema["required"] = self.names(1, 1)
        if self.chance(8):
            schema["additionalProperties"] = self.pick([False, True, {"type": "integer"}])
        if self.chance(5):
            schema["minProperties"] = self.whole(1, 2)
        while self.chance(35):
            self.combine(schema, depth, definitions)
        return schema

    def document(self):
        names = ["X", "Y", "Z"][:self.whole(0, 3)]
        # A definition refers to later ones alone, so that none goes round.
        definitions = {name: self.object(1, names[k + 1:]) for k, name in enumerate(names)}
        schema = self.object(2, names)
        if definitions:
            schema["$defs"] = definitions
        first = next(iter(schema.get("properties", {})), None)
        if first is not None and self.chance(15):
            schema["properties"].setdefault("c", {"allOf": [{"$ref": "#/properties/" + first}, self.part(1, [])]})
        return schema

    def instance(self, schema, root, depth=3):
        """A value that follows a schema where it is easy, and strays now and then."""
        if not isinstance(schema, dict) or depth == 0 or self.chance(6):
            return self.pick([1, 2, "x", None, {}, [], {"a": 1}])
        if "$ref" in schema:
            schema = {**resolve(schema["$ref"], root), **{key: schema[key] for key in schema if key != "$ref"}}
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.pick(schema["enum"])
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "array":
            items = [self.instance(schema.get("items", {}), root, depth - 1) for _ in range(self.whole(0, 2))]
            if "contains" in schema and self.chance(80):
                items.append(self.instance({**schema["contains"], "type": "object"}, root, depth - 1))
            return items
        if kind != "object":
            return {"integer": 1, "string": "x", "null": None}[kind]
        described, needed = {}, set(schema.get("required", ()))
        for part in [schema, *schema.get("allOf", ()), self.pick(schema.get("anyOf", [{}])),
                     self.pick(schema.get("oneOf", [{}])), schema.get("then", {}) if self.chance(50) else {},
                     *(schema.get("dependentSchemas", {}).values() if self.chance(50) else ())]:
            if isinstance(part, dict) and "$ref" in part:
                part = resolve(part["$ref"], root)
            if isinstance(part, dict):
                for name, inner in part.get("properties", {}).items():
                    described.setdefault(name, inner)
                needed |= set(part.get("required", ()))
        value = {}
        for name in NAMES:
            if name in needed and self.chance(90) or name in described and self.chance(50) or self.chance(4):
                value[name] = self.instance(described.get(name, {}), root, depth - 1)
        if self.chance(10):
            value[STRANGE] = 1
        return value


def resolve(reference: str, root):
    for step in reference.removeprefix("#").split("/")[1:]:
        root = root[step]
    return root


class Closing:
    """Which keys the objects of a value may have, by the schemas that describe them."""

    def __init__(self, root, validator):
        self.root, self.validator = root, validator

    def holds(self, schema, value) -> bool:
        return self.validator.evolve(schema=schema).is_valid(value)

    def applied(self, value, given, every: bool) -> list:
        """Schemas that apply to a value, each with whether it describes, and whether it always applies; those of
        alternatives that do not hold too, where every one is asked for."""
        todo, found = list(given), []
        while todo:
            schema, describes, always = todo.pop()
            if not isinstance(schema, dict):
                continue
            found.append((schema, describes, always))
            if "$ref" in schema:
                todo.append((resolve(schema["$ref"], self.root), describes, always))
            todo += [(part, describes, always) for part in schema.get("allOf", ())]
            for keyword in ("anyOf", "oneOf"):
                todo += [(part, describes, False) for part in schema.get(keyword, ())
                         if every or self.holds(part, value)]
            if "if" in schema and ("then" in schema or "else" in schema):
                is_true = self.holds(schema["if"], value)
                for keyword, counts in (("if", is_true), ("then", is_true), ("else", not is_true)):
                    if keyword in schema and (every or counts):
                        todo.append((schema[keyword], False, False))
            for name, part in schema.get("dependentSchemas", {}).items():
                if every or isinstance(value, dict) and name in value:
                    todo.append((part, False, False))
        return found

    def is_closed(self, value, given, every: bool, is_top=False) -> bool:
        """Whether no object has a key that it must not have: none of any schema, or none of one that holds."""
        applied = self.applied(value, given, every)
        inner = collections.defaultdict(list)
        if isinstance(value, dict):
            closes = any(describes and always | (not every) and schema.get("properties") and
                         not any(key in schema for key in SPEAK_OF_OTHERS) for schema, describes, always in applied)
            is_open = any(key in schema for schema, _, _ in applied for key in SPEAK_OF_OTHERS)
            names = {name for schema, _, _ in applied for name in [
                *schema.get("properties", ()), *schema.get("required", ()),
                *(name for needed in schema.get("dependentRequired", {}).values() for name in needed)]}
            if is_top and is_silent(given[0][0]):
                closes = True
            if closes and not is_open and not set(value) <= names:
                return False
            for schema, describes, always in applied:
                for name in value:
                    if name in schema.get("properties", ()):
                        inner[name].append((schema["properties"][name], describes, always))
                    elif "additionalProperties" in schema:
                        inner[name].append((schema["additionalProperties"], describes, always))
        elif isinstance(value, list):
            for k, item in enumerate(value):
                for schema, describes, always in applied:
                    if "items" in schema:
                        inner[k].append((schema["items"], describes, always))
                    if "contains" in schema and (every or self.holds(schema["contains"], item)):
                        inner[k].append((schema["contains"], False, False))
        return all(self.is_closed(value[key], some, every) for key, some in inner.items())


def is_silent(schema) -> bool:
    return not any(value for key, value in schema.items() if key not in ("type", "$defs"))


def holds_nothing_back(schema) -> bool:
    """Whether closing an object can leave none, so that it stays open."""
    if isinstance(schema, dict):
        return not any(key in ("not", "minProperties", "if", "oneOf", "dependentSchemas") for key in schema) and \
            all(map(holds_nothing_back, schema.values()))
    return not isinstance(schema, list) or all(map(holds_nothing_back, schema))


def check(program, folder, form, rows):
    path = pathlib.Path(folder) / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = [program, "check", "--vocabulary", str(TINY), "--format", form, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=600)
    return {verdict["id"]: verdict for verdict in map(json.loads, done.stdout.splitlines())}, done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("count", type=int, nargs="?", default=300, help="how many documents")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        import jsonschema
    except ImportError:
        skip("needs the Python package jsonschema")
    counts, faults = collections.Counter(), []

    def fault(kind, schema, value, what):
        faults.append(kind)
        if len(faults) <= 20:
            print(f"{kind}: {json.dumps(schema)}\n   value {json.dumps(value)}\n   {what}", flush=True)

    for chunk in range(0, options.count, CHUNK):
        size = min(CHUNK, options.count - chunk)
        draw = random.Random(options.seed * 1_000_003 + chunk)
        documents = Documents(draw)
        unread, read, cases = [], [], {}
        for number in range(size):
            schema = documents.document()
            values = [documents.instance(schema, schema) for _ in range(12)]
            values = {json.dumps(value): value for value in values if isinstance(value, dict)}
            validator = jsonschema.Draft202012Validator(schema)
            closing = Closing(schema, validator)
            unread.append({"id": str(number), "schema": schema, "tests": [{"text": text} for text in values]})
            for k, (text, value) in enumerate(values.items()):
                name = f"{number}#{k}"
                given = [(schema, True, True)]
                conforms = validator.is_valid(value)
                must = conforms and closing.is_closed(value, given, False, True)
                may = conforms and (not holds_nothing_back(schema) or closing.is_closed(value, given, True, True))
                cases[name] = (schema, value, conforms, must, may)
                read.append({"id": name, "tools": [{"name": "f", "parameters": schema}], "choice": "required",
                             "text": '<tool_call>\n{"name": "f", "arguments": ' + text + "}\n</tool_call>"})
        with tempfile.TemporaryDirectory() as folder:
            as_schema, _ = check(options.program, folder, "json-schema", [row for row in unread if row["tests"]])
            as_tool, said = check(options.program, folder, "hermes", read)
        if len(as_tool) != len(read) or len(as_schema) != len(cases):
            fault("crash", {}, None, said[-300:])
            continue
        for name, (schema, value, conforms, must, may) in cases.items():
            verdict = as_schema[name]
            if "refused" in verdict:
                code = verdict["reason"].split(":")[0]
                counts[f"unread refused: {code}"] += 1
                if code not in ("unsupported_keyword", "limit_exceeded") and conforms:
                    fault("wrong unread", schema, value, verdict["reason"])
            else:
                counts["texts unread"] += 1
                counts["conforming"] += conforms
                if verdict["accepted"] != conforms:
                    fault("wrong unread", schema, value, f"conforms: {conforms}; {verdict}")
            verdict = as_tool[name]
            if verdict["accepted"] is False and verdict["error_at"] is None:
                code = verdict["reason"].split(":")[0]
                counts[f"read refused: {code}"] += 1
                if code not in ("unsupported_keyword", "limit_exceeded") and must:
                    fault("wrong read", schema, value, verdict["reason"])
                continue
            counts["texts read"] += 1
            counts["must be accepted"] += must
            counts["accepted"] += verdict["accepted"]
            if must and not verdict["accepted"] or verdict["accepted"] and not may:
                fault("wrong read", schema, value, f"conforms {conforms}, must {must}, may {may}; {verdict}")
        if sys.stdout.isatty():
            print(f"\r{chunk + size} documents, {len(faults)} faults", end="", flush=True)
    print(f"{options.count} documents, seed {options.seed}: " +
          ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"{len(faults)} faults")
    assert counts["must be accepted"] > 2 * options.count and counts["texts read"] > 5 * options.count
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
