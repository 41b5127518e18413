"""Makes the rows for contenders: schemas, or tools of which one must be called, with texts and verdicts.

A row is {"id", "schema", "tests": [{"valid", "text"}]}, and has "documents", schemas by URI, if it refers to others.
If it has tools, "schema" is the union of their calls `{"name": ..., "arguments": {...}}`, and "tools" has the same as
tools. "untimed" marks a row before the measurement, for contenders that keep something; "replaced" is the index of
the tool that is new.
"""

import copy
import functools
import gzip
import json
import pathlib
import random
import typing

CALLS = ("exec.jsonl", "live_multiple.jsonl.gz", "live_parallel.jsonl", "live_parallel_multiple.jsonl",
         "live_simple.jsonl", "multiple.jsonl", "parallel.jsonl", "parallel_multiple.jsonl", "simple_python.jsonl")
PEERS = ("llguidance", "xgrammar")


def text(value):
    return json.dumps(value, ensure_ascii=False)


def read(path):
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# --------------------------------------------------------------------------------------------------------- one function


def closed(schema):
    """The schema with additionalProperties: false in each object with properties."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for keyword in ("items", "additionalProperties"):
        if isinstance(result.get(keyword), dict):
            result[keyword] = closed(result[keyword])
    for keyword in ("anyOf", "oneOf"):
        if isinstance(result.get(keyword), list):
            result[keyword] = [closed(branch) for branch in result[keyword]]
    if isinstance(result.get("properties"), dict):
        result["properties"] = {name: closed(value) for name, value in result["properties"].items()}
        result.setdefault("additionalProperties", False)
    return result


def ordered(value, schema):
    """The value with the keys of its objects in the order of the schema."""
    if isinstance(value, list):
        return [ordered(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    keys = [key for key in properties if key in value] + [key for key in value if key not in properties]
    return {key: ordered(value[key], properties.get(key) or {}) for key in keys}


def shuffled(value, dice):
    if isinstance(value, list):
        return [shuffled(item, dice) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    dice.shuffle(keys)
    return {key: shuffled(value[key], dice) for key in keys}


@functools.cache
def functions_called(data):
    """Each function that BFCL calls correctly, closed: identifier, name, schema, the arguments of at most three calls,
    and a validator of others."""
    import jsonschema

    functions = {}
    for row in (row for name in CALLS for row in read(data / "bfcl" / name)):
        if not row.get("call_valid"):
            continue
        calls = row["call_json"]
        for call in calls if isinstance(calls, list) else [calls]:
            schema = closed(next(f["parameters"] for f in row["functions"] if f["name"] == call["name"]))
            values = functions.setdefault(text(schema), (row["id"], call["name"], schema, []))[3]
            value = ordered(call["arguments"], schema)
            if len(values) < 3 and value not in values:
                values.append(value)
    called = []
    for identifier, name, schema, values in functions.values():
        conforms = jsonschema.Draft202012Validator(schema).is_valid
        values = [value for value in values if conforms(value)]
        if values:
            called.append((identifier, name, schema, values, conforms))
    return called


def bfcl(data, any_order=False):
    """Calls to a function, and invalid variants of the first."""
    dice = random.Random(1)
    rows = []
    for identifier, _, schema, values, conforms in functions_called(data):
        first = values[0]
        wrong = [{**first, "no_such_argument": 1}]
        required = [key for key in schema.get("required", []) if key in first]
        if required:
            wrong.append({key: value for key, value in first.items() if key != required[-1]})
        tests = [{"valid": conforms(value), "text": text(shuffled(value, dice) if any_order else value)}
                 for value in values + wrong]
        if any_order and first:
            key = next(iter(first))
            twice = text(first)[:-1] + f", {text(key)}: {text(first[key])}}}"
            tests.append({"valid": False, "text": twice})
        rows.append({"id": identifier, "schema": schema, "tests": tests})
    return rows


# ---------------------------------------------------------------------------------------------------------- many tools


def is_schema(value):
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(value)
    except jsonschema.SchemaError:
        return False
    return True


def must_call(identifier, tools, calls, **more):
    """A row of tools (name, schema) and calls to them (name, arguments); a call to no tool is invalid."""
    return {"id": identifier, "tools": [{"name": name, "parameters": schema} for name, schema in tools],
            "schema": {"anyOf": [{"type": "object",
                                  "properties": {"name": {"const": name}, "arguments": schema},
                                  "required": ["name", "arguments"], "additionalProperties": False}
                                 for name, schema in tools]},
            "tests": [{"valid": True, "text": text({"name": name, "arguments": values})} for name, values in calls]
                     + [{"valid": False, "text": text({"name": "no_such_tool", "arguments": calls[0][1]})}], **more}


@functools.cache
def bfcl_tools(data):
    """Shuffled tools with distinct names: name, schema, and arguments if BFCL calls the tool."""
    tools = {}
    for _, name, schema, values, _ in functions_called(data):
        tools.setdefault(name, (schema, values[0]))
    for file in (*CALLS, "irrelevance.jsonl", "live_irrelevance.jsonl.gz", "live_relevance.jsonl"):
        for function in (f for row in read(data / "bfcl" / file) for f in row["functions"]):
            schema = closed(function["parameters"])
            if function["name"] not in tools and is_schema(schema):
                tools[function["name"]] = (schema, None)
    tools = [(name, *rest) for name, rest in tools.items()]
    random.Random(2).shuffle(tools)
    return tools


def tools_of(count, rows):
    """Rows of `count` tools each, no tool in two rows, with at most 40 calls."""
    def make(data):
        tools = bfcl_tools(data)
        called = [tool for tool in tools if tool[2] is not None]
        others = [tool for tool in tools if tool[2] is None]
        share = min(count, len(called) // rows)  # as many of the tools that BFCL calls as there are
        result = []
        for i in range(rows):
            own = called[i * share:(i + 1) * share] + others[i * (count - share):(i + 1) * (count - share)]
            random.Random(i).shuffle(own)
            result.append(must_call(f"{len(own)} tools, {i}", [tool[:2] for tool in own],
                                    [(name, value) for name, _, value in own if value is not None][:40]))
        return result
    return make


def tools_drawn(count, rows):
    """Rows of `count` random tools each, with a call to one of them."""
    def make(data):
        tools, result = bfcl_tools(data), []
        for i in range(rows):
            own = random.Random(1000 + i).sample(tools, count)
            name, _, value = next(tool for tool in own if tool[2] is not None)
            result.append(must_call(f"{count} tools, {i}", [tool[:2] for tool in own], [(name, value)]))
        return result
    return make


def tools_replaced(data):
    """200 known tools, then nine rows in which one of them is new."""
    tools = [tool for tool in bfcl_tools(data) if tool[2] is not None]
    base, fresh = tools[:200], tools[200:209]
    rows = []
    for i, one in enumerate([None, *fresh]):
        own = list(base)
        if one:
            own[20 * i] = one
        calls = [(name, value) for name, _, value in ([one] if one else own[:40])]
        rows.append(must_call(f"replaced {i}", [tool[:2] for tool in own], calls,
                              **({"replaced": 20 * i} if one else {"untimed": True})))
    return rows


def example(schema):
    """A value of a schema of the inventories."""
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties") or {}
        return {key: example(properties.get(key) or {}) for key in properties if key in schema.get("required", [])}
    if kind == "array":
        return [example(schema.get("items") or {})]
    return {"string": "some text, as models write it", "integer": 12, "number": 2.5, "boolean": True, "null": None}.get(kind, "x")


def tools_10000(data):
    """10,000 tools with the names of ToolBench, RestBench and ToolAlpaca, and 200 calls. Tools of which only the name is
    known get the parameters of the others in turn."""
    import jsonschema

    folder, tools = data / "tools", {}
    functions = [f for name in ("toolbench_queries.jsonl.gz", "toolalpaca.jsonl")
                 for row in read(folder / name) for f in row["functions"]]
    for name in ("restbench_tmdb_functions.jsonl", "restbench_spotify_functions.jsonl"):
        functions += read(folder / name)
    for function in functions:
        if function["name"] not in tools and function["name"].isprintable() and is_schema(function["parameters"]):
            tools[function["name"]] = closed(function["parameters"])
    known = list(tools.values())
    for i, row in enumerate(read(folder / "toolbench_names.jsonl.gz")):
        if len(tools) == 10_000:
            break
        if row["name"] and row["name"].isprintable():
            tools.setdefault(row["name"], known[i % len(known)])
    tools = list(tools.items())
    called = [(name, schema, example(schema)) for name, schema in random.Random(3).sample(tools, 300)]
    calls = [(name, value) for name, schema, value in called
             if jsonschema.Draft202012Validator(schema).is_valid(value)][:200]
    return [must_call(f"{len(tools)} tools", tools, calls)]


# -------------------------------------------------------------------------------------------------------- whole corpora


def jsonschemabench(data):
    rows = [{"id": row["id"], "schema": row["schema"],
             "tests": [{"valid": test["valid"], "text": text(test["data"])} for test in row["tests"]]}
            for row in read(data / "jsonschema/jsonschemabench.jsonl.gz")]
    random.Random(1).shuffle(rows)  # the rows that a contender reaches are a fair sample
    return rows


def test_suite(data):
    """The required keywords of the official suite; a group is a schema. Groups that refer to the suite's documents
    include them."""
    rows, remotes = [], data / "jsonschema/test-suite/remotes"
    for draft, dialect in (("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
                           ("draft7", "http://json-schema.org/draft-07/schema#")):
        documents = {f"http://localhost:1234/{path.relative_to(remotes).as_posix()}":
                     {"$schema": dialect, **json.loads(path.read_text(encoding="utf-8"))}
                     for path in sorted(remotes.rglob("*.json"))}
        for path in sorted((data / "jsonschema/test-suite" / draft).glob("*.json")):
            for group in json.loads(path.read_text(encoding="utf-8")):
                schema = copy.deepcopy(group["schema"])
                if isinstance(schema, dict):
                    schema.setdefault("$schema", dialect)
                rows.append({"id": f"{draft}/{path.stem}: {group['description']}", "schema": schema,
                             "tests": [{"valid": test["valid"], "text": text(test["data"])}
                                       for test in group["tests"]],
                             **({"documents": documents} if "http://localhost:1234/" in text(schema) else {})})
    random.Random(1).shuffle(rows)
    return rows


def stress(_):
    """Small, hard schemas, each with a conforming and a non-conforming text."""
    def of(**properties):
        return {"type": "object", "properties": properties, "required": list(properties),
                "additionalProperties": False}

    words = "The quick brown fox jumps over the lazy dog, again and again. " * 200
    string, rows = {"type": "string"}, []

    def add(identifier, schema, good, bad):
        rows.append({"id": identifier, "schema": schema,
                     "tests": [{"valid": True, "text": text(good)}, {"valid": False, "text": text(bad)}]})

    for most in (64, 500, 10_000):
        add(f"maxLength {most}", of(a={**string, "maxLength": most}), {"a": words[:most]}, {"a": words[:most + 1]})
    for least in (100, 300):
        add(f"minLength {least}", of(a={**string, "minLength": least}), {"a": words[:least]}, {"a": words[:least - 1]})
    for most in (100, 10_000):
        add(f"maxItems {most}", of(a={"type": "array", "items": {"type": "integer"}, "maxItems": most}),
            {"a": list(range(100))}, {"a": [*range(99), "x"]})
    for count in (100, 1000, 5000):
        names = [f"value_{i * 7919 % 100_003}" for i in range(count)]
        add(f"enum {count}", of(a={"enum": names}), {"a": names[count // 2]}, {"a": "value_none"})
    for count in (20, 100):
        many = {f"field_{i}": string for i in range(count)}
        some = {key: "text" for key in list(many)[::3]}
        add(f"{count} optional properties", {**of(**many), "required": []}, some, {**some, "field_x": "text"})
    branches = [of(kind={"const": f"kind_{i}"}, a=string, b={"type": "integer"}) for i in range(32)]
    add("anyOf 32, told apart first", {"anyOf": branches}, {"kind": "kind_17", "a": "text", "b": 3},
        {"kind": "kind_99", "a": "text", "b": 3})
    branches = [of(a=string, b={"type": "integer"}, kind={"const": f"kind_{i}"}) for i in range(32)]
    add("anyOf 32, told apart last", {"anyOf": branches}, {"a": "text", "b": 3, "kind": "kind_17"},
        {"a": "text", "b": 3, "kind": "kind_99"})
    add("open object", {"type": "object"}, {"a": [1, {"b": None}], "c": "text"}, [1])
    for name, good, bad in (("date-time", "2026-11-05T12:00:00Z", "2026-13-05T12:00:00Z"), ("uri", "https://a.example/b?c=d#e", "no uri"),
                            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567")):
        add(f"format {name}", of(a={**string, "format": name}), {"a": good}, {"a": bad})
    add("pattern, found anywhere", of(a={**string, "pattern": "foo.*bar"}), {"a": "a foo and a bar."}, {"a": "a foo"})
    nested, good = string, "text"
    for _ in range(15):
        nested, good = of(a=nested), {"a": good}
    add("nested 15", nested, good, {"a": good["a"]["a"]})
    return rows


class Workload(typing.NamedTuple):
    rows: typing.Callable[[pathlib.Path], list]
    words: str
    free_spacing: bool = False
    peers: tuple[str, ...] = PEERS  # the slowest last
    share: float = 0.1  # of the total time, for one contender


WORKLOADS = {
    "bfcl": Workload(bfcl, "BFCL functions, closed objects, documented order, fixed spacing",
                     peers=(*PEERS, "xgrammar_warm")),
    "bfcl_any_order": Workload(functools.partial(bfcl, any_order=True),
                               "BFCL functions, closed objects, any order, fixed spacing"),
    "bfcl_default": Workload(functools.partial(bfcl, any_order=True),
                             "BFCL functions, closed objects, any order, free spacing", free_spacing=True),
    "tools_200_drawn": Workload(tools_drawn(200, 100), "one call of 200 tools, 100 sets of tools"),
    "tools_10": Workload(tools_of(10, 3), "one call of 10 tools"),
    "tools_50": Workload(tools_of(50, 3), "one call of 50 tools"),
    "tools_200": Workload(tools_of(200, 2), "one call of 200 tools"),
    "tools_900": Workload(tools_of(900, 1), "one call of 900 tools"),
    "tools_replaced": Workload(tools_replaced, "200 tools met before, one of them replaced"),
    "tools_10000": Workload(tools_10000, "one call of 10,000 tools", peers=()),
    "stress": Workload(stress, "stress cases, fixed spacing"),
    "test_suite": Workload(test_suite, "JSON Schema Test Suite, required keywords, free spacing", free_spacing=True),
    "jsonschemabench": Workload(jsonschemabench, "JSONSchemaBench, free spacing", free_spacing=True, share=0.7),
}

# The warm-up of an engine: every kind of value.
WARM = {"schema": {"type": "object",
                   "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "integer"},
                                  "d": {"type": "boolean"}, "e": {"type": "array", "items": {"type": "string"}},
                                  "f": {"type": "object"}, "g": {}},
                   "additionalProperties": False},
        "tests": [{"valid": True, "text": '{"a": "some text", "b": -12.5, "c": 3, "d": true, "e": ["x", "yes"], '
                                          '"f": {"any key": [{"other": null}]}, "g": "text"}'}]}
