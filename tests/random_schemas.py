"""Random schemas: what `tooldecode check` says of texts, and what jsonschema-rs says.

    python tests/random_schemas.py PROGRAM [COUNT] [--seed N] [--keep FOLDER]

Draws COUNT schemas (200 by default, 20,000 by hand), and for each texts of values that conform (drawn by
hypothesis-jsonschema), of values changed a little, of values of other schemas, and texts changed a little, in
different spellings. Whatever is accepted must conform; what conforms must be accepted where it is spelt as
Python's json.dumps or JavaScript's JSON.stringify would (of other spellings those refused are counted). With
--cross-check every text is walked by bytes, by random tokens and by masks, over a vocabulary with pieces of the
schemas' own texts. A text with a repeated key may be accepted only where it conforms both for a reader that takes
the first and for one that takes the last. A text about which jsonschema, where it is installed, contradicts
jsonschema-rs is not judged.

Needs hypothesis-jsonschema and jsonschema-rs, both from PyPI; skipped without, with exit code 77.
"""
import argparse
import collections
import decimal
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

CHUNK = 100  # schemas in one process
SECONDS = 120  # for one process
KEYS = ["a", "b", "aa", "ab", "name", "citt\u00e0", "\u00e9", "x1", "\u65e5\u672c", "a\u000bb", "\u00e9\u007f", "a/b",
        "", "a\\b", 'q"', "\U0001f600", "A"]
STRINGS = [*KEYS, "x", "abc", "-", "2020-02-30", "2020-02-29", "127.0.0.1", "true", "aaaa", "\u0000", "a b", "9", "\n"]
NUMBERS = [0, 1, -1, 2, 3, 5, 7, 10, 12, 100, 1000, -100, 0.5, 1.5, -2.5, 0.1, 0.01, 1e-7, 3.0, 1e3, 1e100, 5e-324,
           1.7976931348623157e308, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -2**63, 2**64 + 1, 123456789.125, 1e21,
           1e-5]
PATTERNS = ["^a", "b$", "^[a-z]+$", "^.{2}$", "[0-9]", r"^\d+$", "^[^a]*$", "a|b", "^(ab)*$", "\u00e9", "^.{0,3}$",
            "^[a-z]{1,4}$", "^x", "^(a|b)c?$", r"^\w{1,4}$", r"^\S*$", "^[\u00e0-\u00ff]+$", "^$"]
LONG_NUMBER = r"\d{200}"  # near to the most digits that the program's options have without being asked
FORMATS = ["date", "ipv4", "time", "unknown"]  # that every draft has


def skip(reason: str):
    print(f"SKIPPED: random_schemas.py {reason}", file=sys.stderr)
    sys.exit(77)


# Schemas ------------------------------------------------------------------------------------------------------------

class Schemas:
    """Draws schemas of every keyword, more often of those that are used more often."""

    def __init__(self, draw):
        self.definitions = False  # whether a reference was drawn
        self.pick = draw.choice
        self.whole = draw.randint
        self.chance = lambda percent: draw.random() * 100 < percent

    def some(self, values, most):
        return [self.pick(values) for _ in range(self.whole(0, most))]

    def value(self, depth=1):
        kind = self.whole(0, 7 if depth else 5)
        if kind == 7:
            return {key: self.value(depth - 1) for key in self.some(KEYS, 2)}
        if kind == 6:
            return [self.value(depth - 1) for _ in range(self.whole(0, 2))]
        return (None, True, False, self.pick(NUMBERS), self.pick(STRINGS), self.pick(NUMBERS))[kind]

    def number(self, schema):
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if self.chance(25):
                schema[key] = self.pick(NUMBERS)
        if self.chance(15):
            schema["multipleOf"] = self.pick([1, 2, 3, 5, 0.5, 0.1, 0.01, 10, 1.5])

    def string(self, schema):
        for key in ("minLength", "maxLength"):
            if self.chance(25):
                schema[key] = self.whole(0, 6)
        if self.chance(30):
            schema["pattern"] = self.pick(PATTERNS)
        if self.chance(10):
            schema["format"] = self.pick(FORMATS)

    def array(self, schema, depth, old):
        if self.chance(50):
            schema["items"] = self.schema(depth - 1, old)
        if self.chance(25):
            listed = [self.schema(depth - 1, old) for _ in range(self.whole(1, 3))]
            if old:
                schema["items"] = listed
                if self.chance(50):
                    schema["additionalItems"] = self.schema(depth - 1, old)
            else:
                schema["prefixItems"] = listed
        for key in ("minItems", "maxItems"):
            if self.chance(25):
                schema[key] = self.whole(0, 4)
        if self.chance(10):
            schema["uniqueItems"] = True
            if self.chance(50):
                schema["items"] = self.schema(0, old, "string")
        if self.chance(15):
            schema["contains"] = self.schema(depth - 1, old)
            if not old and self.chance(40):
                schema["minContains"] = self.whole(0, 2)
            if not old and self.chance(40):
                schema["maxContains"] = self.whole(0, 3)
        if not old and self.chance(5):
            schema["unevaluatedItems"] = self.schema(depth - 1, old)

    def object(self, schema, depth, old):
        if self.chance(75):
            schema["properties"] = {key: self.schema(depth - 1, old) for key in self.some(KEYS, 4)}
        names = [*schema.get("properties", {}), *KEYS]
        if self.chance(50):
            schema["required"] = list(dict.fromkeys(self.some(names[:8], 3)))
        if self.chance(20):
            schema["patternProperties"] = {self.pick(PATTERNS): self.schema(depth - 1, old)
                                           for _ in range(self.whole(1, 2))}
        if self.chance(35):
            schema["additionalProperties"] = self.pick([False, False, True]) if self.chance(60) else \
                self.schema(depth - 1, old)
        if self.chance(25):
            schema["propertyNames"] = self.schema(0, old, "string")
        for key in ("minProperties", "maxProperties"):
            if self.chance(15):
                schema[key] = self.whole(0, 4)
        if self.chance(10):
            listed = {self.pick(names[:8]): list(dict.fromkeys(self.some(names[:8], 2)))}
            schema["dependencies" if old else "dependentRequired"] = listed
        if self.chance(5):
            key = "dependencies" if old else "dependentSchemas"
            schema.setdefault(key, {})[self.pick(names[:8])] = self.schema(depth - 1, old)
        if not old and self.chance(8):
            schema["unevaluatedProperties"] = self.schema(depth - 1, old)

    def schema(self, depth, old, kind=None):
        if kind is None:
            kind = self.pick(["object", "object", "array", "string", "number", "integer", "null", "boolean", "enum",
                              "const", "types", "any", "combined", "true", "false", "reference"])
        if kind in ("true", "false"):
            return kind == "true" or self.chance(50)
        if kind == "reference" and depth >= 1:
            self.definitions = True
            return {"$ref": f"#/definitions/{self.pick('pq')}"}
        schema = {}
        if kind in ("object", "array", "string", "number", "integer", "null", "boolean"):
            if not self.chance(10):
                schema["type"] = kind
        elif kind == "types":
            kinds = ["object", "array", "string", "number", "integer", "null", "boolean"]
            schema["type"] = list(dict.fromkeys([self.pick(kinds), self.pick(kinds)]))
        elif kind == "enum":
            schema["enum"] = [self.value() for _ in range(self.whole(1, 4))]
        elif kind == "const":
            schema["const"] = self.value()
        kinds = schema.get("type", kind)
        if kind in ("number", "integer") or "number" in kinds or "integer" in kinds:
            self.number(schema)
        if kind == "string" or "string" in kinds:
            self.string(schema)
        if depth > 0 and (kind == "array" or "array" in kinds):
            self.array(schema, depth, old)
        if depth > 0 and (kind == "object" or "object" in kinds):
            self.object(schema, depth, old)
        if depth > 0 and (kind == "combined" or self.chance(8)):
            key = self.pick(["allOf", "anyOf", "oneOf", "not", "if"])
            if key == "not":
                schema[key] = self.schema(depth - 1, old)
            elif key == "if":
                for part in ("if", "then", "else"):
                    if part == "if" or self.chance(70):
                        schema[part] = self.schema(depth - 1, old)
            else:
                schema[key] = [self.schema(depth - 1, old) for _ in range(self.whole(1, 3))]
        return schema

    def document(self):
        draft = self.pick(["2020-12"] * 6 + ["2019-09", "draft-07", "draft-07"])
        old = draft == "draft-07"
        schema = self.schema(3, old, self.pick([None, "object", "object", "array", "combined"]))
        if not isinstance(schema, dict):
            return schema
        while self.definitions and "definitions" not in schema:
            definitions = {key: self.schema(2, old) for key in "pq"}
            if not goes_round(definitions):
                schema["definitions"] = definitions
        if draft != "2020-12":
            host = "http://json-schema.org/draft-07/schema#" if old else "https://json-schema.org/draft/2019-09/schema"
            schema = {"$schema": host, **schema}
        if draft == "2019-09":
            schema = json.loads(json.dumps(schema).replace('"prefixItems"', '"items"'))
        return schema


def goes_round(definitions):
    """Whether a definition is applied in its own place, which leaves open what conforms."""
    def applied(schema):
        if not isinstance(schema, dict):
            return set()
        parts = [schema.get(key) for key in ("not", "if", "then", "else")]
        for key in ("allOf", "anyOf", "oneOf"):
            parts += schema.get(key, [])
        for key in ("dependencies", "dependentSchemas"):
            parts += schema.get(key, {}).values()
        named = {schema["$ref"].rpartition("/")[2]} if "$ref" in schema else set()
        return named.union(*map(applied, parts))

    reached = {key: applied(schema) for key, schema in definitions.items()}
    for _ in definitions:
        reached = {key: names.union(*(reached[name] for name in names)) for key, names in reached.items()}
    return any(key in names for key, names in reached.items())


def conforming_values(schema, seed):
    """A few values that hypothesis-jsonschema makes for a schema; none where it cannot."""
    import hypothesis
    from hypothesis_jsonschema import from_schema
    values = []
    try:
        strategy = from_schema(schema)

        @hypothesis.seed(seed)
        @hypothesis.settings(max_examples=5, phases=[hypothesis.Phase.generate], database=None, deadline=None,
                             suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(strategy)
        def collect(value):
            values.append(value)

        collect()
    except Exception:  # of many kinds; the schema is of use all the same
        pass
    return values


# Texts --------------------------------------------------------------------------------------------------------------

def escaped(text, draw):
    """A string of JSON in some spelling."""
    written = []
    for c in text:
        code = ord(c)
        spell = draw.choice(("%04x", "%04X"))
        how = draw.random()
        if how < 0.3 and code < 0x10000:
            written.append("\\u" + spell % code)
        elif how < 0.5 and code >= 0x10000:
            high, low = 0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)
            written.append("\\u" + spell % high + "\\u" + spell % low)
        elif c == "/" and how < 0.7:
            written.append("\\/")
        else:
            written.append(json.dumps(c, ensure_ascii=False)[1:-1])
    return '"' + "".join(written) + '"'


def spelt_number(number, draw):
    text = json.dumps(number)
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    match = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?", text)
    if match is None:
        return sign + text
    whole, fraction, exponent = match[1], match[2] or "", int(match[3] or 0)
    how = draw.randrange(5)
    if how == 0:  # digits moved over the point
        by = draw.randrange(-2, 4)
        digits = whole + fraction
        point = len(whole) - by
        if 0 < point <= len(digits):
            whole, fraction, exponent = digits[:point], digits[point:], exponent + by
            whole = whole.lstrip("0") or "0"
    elif how == 1:
        fraction += "0" * draw.randrange(3)
    mark = draw.choice("eE") + (draw.choice(("", "+")) if exponent >= 0 else "")
    power = f"{mark}{exponent}" if exponent or how == 2 else ""
    if power and draw.random() < 0.2:
        power = power.replace(str(abs(exponent)), "0" + str(abs(exponent)))
    return sign + whole + ("." + fraction if fraction else "") + power


def spelt(value, draw):
    """A value in any spelling that JSON has."""
    space = draw.choice(("", "", " ", "\n", "\t "))
    if isinstance(value, dict):
        members = [escaped(key, draw) + space + ":" + space + spelt(item, draw) for key, item in value.items()]
        draw.shuffle(members)
        if members and draw.random() < 0.05:
            members.append(draw.choice(members))
        return "{" + space + ("," + space).join(members) + space + "}"
    if isinstance(value, list):
        return "[" + space + ("," + space).join(spelt(item, draw) for item in value) + space + "]"
    if isinstance(value, str):
        return escaped(value, draw)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return spelt_number(value, draw)


def written(value, draw):
    """A value as common writers write it."""
    ascii_only = draw.random() < 0.5
    if draw.random() < 0.1:
        return json.dumps(value, ensure_ascii=ascii_only, indent=2)
    return json.dumps(value, ensure_ascii=ascii_only, separators=draw.choice(((",", ":"), (", ", ": "))))


def changed(value, draw):
    """A value with one part of it changed."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        result = dict(value)
        key = draw.choice(list(result))
        how = draw.random()
        if how < 0.3:
            del result[key]
        elif how < 0.5:
            result[draw.choice(KEYS)] = result[key]
        elif how < 0.6:
            result[draw.choice(KEYS)] = result.pop(key)
        else:
            result[key] = changed(result[key], draw)
        return result
    if isinstance(value, list) and value and draw.random() < 0.8:
        result = list(value)
        at = draw.randrange(len(result))
        how = draw.random()
        if how < 0.3:
            del result[at]
        elif how < 0.5:
            result.insert(at, result[at])
        else:
            result[at] = changed(result[at], draw)
        return result
    if isinstance(value, str) and draw.random() < 0.7:
        at = draw.randrange(len(value) + 1)
        piece = draw.choice(["", "a", "b", "\u00e9", "\u007f", "9", "-", "/"])
        return value[:at] + piece + value[at + draw.randrange(2):]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 and draw.random() < 0.7:
        return draw.choice([value + 1, value - 1, -value, value / 2, value * 2, value + 0.1])
    return draw.choice([None, True, {}, [], draw.choice(STRINGS), draw.choice(NUMBERS), draw.choice(NUMBERS),
                        {draw.choice(KEYS): draw.choice(NUMBERS)}, {draw.choice(KEYS): draw.choice(STRINGS)},
                        [draw.choice(STRINGS)], [draw.choice(NUMBERS)] * 2])


def texts_of(values, others, draw):
    """Texts, each with whether its spelling is a common one."""
    texts = {}
    pool = [*values, *(changed(value, draw) for value in values * 2), *others[-4:], changed(None, draw)]
    for value in pool:
        try:
            text = written(value, draw)
            texts[text] = not re.search(LONG_NUMBER, text)
            texts.setdefault(spelt(value, draw), False)
        except (OverflowError, RecursionError):
            continue
    for text in draw.sample(list(texts), min(4, len(texts))):
        at = draw.randrange(len(text))
        piece = draw.choice(["", "0", "1", ".", "-", "e", '"', "}", "]", ",", "\\", "\\u0061", "a", "\u00e9",
                             " ", "\n"])
        texts.setdefault(text[:at] + piece + text[at + draw.randrange(2):], False)
    return texts


# Judgement ----------------------------------------------------------------------------------------------------------

def first_wins(pairs):
    result = {}
    for key, value in pairs:
        result.setdefault(key, value)
    return result


def refuse_constant(name):
    raise ValueError(name)


def readings(text):
    """What readers may take a text for: nothing where it is no JSON, two values where a key is
    repeated and readers take the first or the last."""
    try:
        values = [json.loads(text, object_pairs_hook=hook, parse_constant=refuse_constant)
                  for hook in (dict, first_wins)]
    except (ValueError, RecursionError):
        return []
    return values[:1] if values[0] == values[1] else values


def is_ordinary(value):
    """Whether every reader has this value: no number past a double's range, no surrogate on its own."""
    if isinstance(value, dict):
        return all(is_ordinary(key) and is_ordinary(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_ordinary, value))
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    return not isinstance(value, float) or abs(value) <= sys.float_info.max


def exact_number(text):
    number = decimal.Decimal(text)
    return int(number) if abs(number.adjusted()) < 400 and number == int(number) else float(text)


class Judge:
    def __init__(self, schema):
        import jsonschema_rs
        self.schema = schema
        # Drafts from 2019-09 on have formats as annotations; without a draft they are asserted.
        self.formats = not (isinstance(schema, dict) and "2019-09" in schema.get("$schema", ""))
        self.validator = jsonschema_rs.validator_for(schema, validate_formats=self.formats)

    def conforms(self, value):
        return self.validator.is_valid(value)

    def is_doubtful(self, text, conforms):
        """Whether jsonschema, if it can tell, or a reader who does not round whole numbers, those of the schema
        among them, has it otherwise."""
        exact = json.loads(text, parse_float=exact_number)
        if self.validator.is_valid(exact) != conforms:
            return True
        try:
            import jsonschema
            kind = jsonschema.validators.validator_for(self.schema, default=jsonschema.Draft202012Validator)
            checker = kind.FORMAT_CHECKER if self.formats else None
            schemas = [self.schema, json.loads(json.dumps(self.schema), parse_float=exact_number)]
            return any(kind(schema, format_checker=checker).is_valid(exact) != conforms for schema in schemas)
        except Exception:
            return False


# The program --------------------------------------------------------------------------------------------------------

def byte_alphabet():
    """Bytes as GPT-2 writes them."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {**{byte: chr(byte) for byte in shown}, **{byte: chr(256 + k) for k, byte in enumerate(hidden)}}


def write_vocabulary(folder, texts):
    """A tokenizer of all bytes, of what JSON is made of, and of pieces of texts."""
    alphabet = byte_alphabet()
    pieces = {'{"', '":', '": ', '", "', '","', '"}', '"}]', "}}", "[]", "{}", '[{"', "],", "},", ", ", "\\u", "\\u00",
              "u00", "e9", "E9", "00", "000", "1.", ".0", "0.", "e+", "e-", "E+", "-1", "true", "false", "null", "tru",
              "nul", "\\\\", '\\"', '"a', 'a"', '"a"', "\n  ", "  ", "10", "12", "123", "999", ".5", "\\/", "\u00e9",
              "\U0001f600", "aa", "ab", "na", "name", "x1", '"name"', 'e":'}
    for text in texts:
        for size in (2, 3, 5, 8):
            for at in range(0, len(text) - size, 7):
                pieces.add(text[at:at + size])
    pieces = sorted(piece for piece in pieces if len(piece.encode()) > 1)
    random.Random(len(pieces)).shuffle(pieces)
    vocabulary = {alphabet[byte]: byte for byte in range(256)}
    for piece in pieces[:600]:
        vocabulary.setdefault("".join(alphabet[byte] for byte in piece.encode()), len(vocabulary))
    end = len(vocabulary)
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}', encoding="utf-8")
    with open(folder / "tokenizer.json", "w", encoding="utf-8") as file:
        json.dump({"added_tokens": [{"id": end, "content": "<|endoftext|>", "special": True}],
                   "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
                   "decoder": {"type": "ByteLevel"},
                   "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}, file)


def check(program, folder, rows, seconds):
    """The verdicts by id; nothing where it takes too long or ends on its own."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_vocabulary(folder, [text["text"] for row in rows for text in row["tests"]])
    command = [program, "check", "--vocabulary", folder, "--format", "json-schema", "--cross-check", path]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8",
                              timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None, f"over {seconds} s"
    verdicts = {verdict["id"]: verdict for verdict in map(json.loads, filter(None, done.stdout.split("\n")))}
    if len(verdicts) != sum(len(row["tests"]) for row in rows):
        return None, f"exit code {done.returncode}: {done.stderr[-200:]}"
    return verdicts, ""


class Tally:
    def __init__(self):
        self.counts = collections.Counter()
        self.refused = collections.Counter()
        self.spellings = []
        self.faults = []

    def fault(self, kind, row, text, what):
        self.counts[kind] += 1
        self.faults.append({"kind": kind, "schema": row["schema"], "text": text, "what": what})
        if len(self.faults) <= 20:
            schema = json.dumps(row["schema"], ensure_ascii=False)
            print(f"{kind}: schema {schema:.600}\n   text {text!r:.300}\n   {what}", flush=True)

    def judge(self, row, verdicts):
        judge = row["judge"]
        first = verdicts[f"{row['id']}#0"]
        if "refused" in first:
            code = first["reason"].split(":")[0]
            self.refused[code] += 1
            for test in row["tests"]:  # a schema is not called malformed or unsatisfiable for nothing
                values = readings(test["text"])
                if code not in ("unsupported_keyword", "limit_exceeded") and len(values) == 1 and \
                        is_ordinary(values[0]) and judge.conforms(values[0]) and \
                        not judge.is_doubtful(test["text"], True):
                    self.fault("wrong", row, test["text"], f"conforms to a schema that is refused: {first['reason']}")
                    return
            return
        self.counts["schemas judged"] += 1
        for k, test in enumerate(row["tests"]):
            verdict = verdicts[f"{row['id']}#{k}"]
            text = test["text"]
            if "disagreement" in verdict:
                self.fault("disagreement", row, text, verdict["disagreement"])
            values = readings(text)
            if not all(map(is_ordinary, values)):
                self.counts["texts out of range"] += 1
                continue
            conforms = bool(values) and all(map(judge.conforms, values))
            self.counts["texts"] += 1
            self.counts["conforming"] += conforms
            if conforms == verdict["accepted"] or conforms and len(values) > 1:
                continue
            if len(values) == 1 and judge.is_doubtful(text, conforms):
                self.counts["texts on which judges differ"] += 1
            elif conforms and not test["common"]:
                self.spellings.append({"kind": "spelling", "schema": row["schema"], "text": text,
                                       "what": f"{verdict['reason']} at {verdict['error_at']}"})
            else:
                self.fault("wrong", row, text, "conforms and is refused: " + str(verdict["reason"]) + " at " +
                           str(verdict["error_at"]) if conforms else "accepted and does not conform")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("count", type=int, nargs="?", default=200, help="how many schemas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, 
                        help="folder for faults.jsonl, every fault and every refused spelling in full")
    options = parser.parse_args()
    try:
        import hypothesis_jsonschema  # noqa: F401
        import jsonschema_rs  # noqa: F401
    except ImportError as error:
        skip(f"needs the Python package {error.name}")
    warnings.simplefilter("ignore")
    started = shown = time.monotonic()
    tally = Tally()
    others = [None, 1, "a", [], {}]
    for chunk in range(0, options.count, CHUNK):
        size = min(CHUNK, options.count - chunk)
        seed = options.seed * 1_000_003 + chunk
        draw = random.Random(seed)
        rows = []
        for number in range(size):
            schema = Schemas(draw).document()
            values = conforming_values(schema, seed + number)
            try:
                judge = Judge(schema)
            except Exception:  # a schema that the judge refuses
                tally.counts["schemas without a judge"] += 1
                continue
            texts = texts_of(values, others, draw)
            others = (others + values)[-20:]
            rows.append({"id": f"{seed}/{number}", "schema": schema, "judge": judge,
                         "tests": [{"text": text, "common": common} for text, common in texts.items()]})
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            plain = [{key: row[key] for key in ("id", "schema", "tests")} for row in rows]
            verdicts, _ = check(options.program, folder, plain, SECONDS)
            for row, one in zip(rows, plain):
                if verdicts is None:  # one of them is to blame
                    alone, what = check(options.program, folder, [one], SECONDS / 10)
                    if alone is None:
                        tally.fault("wrong", row, "", f"the program does not answer: {what}")
                        continue
                    tally.judge(row, alone)
                else:
                    tally.judge(row, verdicts)
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"  {chunk + size} of {options.count} schemas, {tally.counts['texts']} texts, "
                  f"{len(tally.faults)} faults, {shown - started:.0f} s", flush=True)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        with open(options.keep / "faults.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(fault) + "\n" for fault in tally.faults + tally.spellings)
    for what, count in sorted(tally.counts.items()):
        print(f"{count:9} {what}")
    for reason, count in tally.refused.most_common():
        print(f"{count:9} schemas refused: {reason}")
    print(f"{len(tally.spellings):9} uncommon spellings of conforming values refused")
    print(f"seed {options.seed}: {tally.counts['wrong']} wrong, {tally.counts['disagreement']} disagreements, "
          f"{time.monotonic() - started:.0f} s")
    return 1 if tally.faults or not tally.counts["schemas judged"] else 0


if __name__ == "__main__":
    sys.exit(main())
