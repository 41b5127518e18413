"""Peers' own test suites: what XGrammar, llguidance, llama.cpp, outlines and lm-format-enforcer expect of texts.

    python tests/peersuites.py PROGRAM [--all] [--show CLASS]

Runs the cases of the kinds schema, ebnf, lark, regex, stag (structural tags), builtin (structural tags that XGrammar
makes for model families, where it can be imported) and chat through `tooldecode check` and counts, by suite and kind,
what is

    right       as the suite expects, a specification that is to be refused included
    refused     a specification that uses what is listed as not supported, see UNSUPPORTED and REFUSALS
    convention  otherwise than the suite expects, for a reason that is listed, see CONVENTIONS
    wrong       all others

and fails where anything is wrong. Whether a text conforms to a schema is judged by the packages jsonschema-rs and
jsonschema, those that are installed, and never by the program. Takes seconds for all cases, and minutes with --all,
which compares bytes, tokens and masks on the way too. Says why it is skipped, with exit code 77, where something is
missing.
"""
import argparse
import collections
import functools
import gzip
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {"schema": "json-schema", "ebnf": "ebnf", "lark": "lark", "regex": "regex", "stag": "structural-tag",
         "builtin": "structural-tag"}
# What the models of a template write, by a part of the template's name.
TEMPLATES = {
    "Qwen2.5": "hermes", "QwQ": "hermes", "Hermes-2": "hermes", "Hermes-3": "hermes", "MiMo-VL": "hermes",
    "Qwen3-Coder": "qwen3-coder", "Qwen3.5": "qwen3-coder", "Nemotron-3-Nano": "qwen3-coder",
    "StepFun3.5": "qwen3-coder",
    "GLM-4": "glm", "gpt-oss": "harmony", "Kimi-K2": "kimi-k2", "DeepSeek-V3.1": "deepseek-v3.1",
    "DeepSeek-R1": "deepseek-v3", "deepseek-r1": "deepseek-v3", "Mistral-Nemo": "mistral", "Devstral": "mistral-args",
    "Ministral": "mistral-args", "Llama-3.": "llama",
    "Reka-Edge": "hermes", "granite-4": "hermes", "DeepSeek-V3.2": "deepseek-v3.2", "DeepSeek-V4": "deepseek-v4",
    "MiniMax-M2": "minimax-m2", "gemma-4": "gemma-4", "Kimi-K3": "kimi-k3", "LFM2": "lfm2",
    "Nemotron-Nano-v2": "nemotron", "Seed-OSS": "seed-oss", "Apertus": "apertus", "Apriel": "apriel",
    "command-r7b": "command-r7b", "Cohere2": "command-r7b", "command-r-plus": "command-r-plus",
    "functionary-medium-v3.1": "functionary-3.1", "functionary-medium-v3.2": "functionary-3.2",
    "firefunction": "firefunction",
    "GigaChat3-": "gigachat-3", "GigaChat3.1": "gigachat-3.1", "MiniCPM5": "minicpm5",
}
# What begins and ends a block of reasoning, where it is not <think>.
REASONING = {
    "mistral-args": ("[THINK]", "[/THINK]"), "seed-oss": ("<seed:think>", "</seed:think>"),
    "kimi-k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"), "gemma-4": ("<|channel>thought\n", "<channel|>"),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "apriel": ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    "command-r7b": ("<|START_THINKING|>", "<|END_THINKING|>"),
}
COLUMNS = ("right", "refused", "convention", "wrong")

# Errors by which a schema or an expression may be refused though the suite builds it.
REFUSALS = {
    "unsupported_keyword": "a combination of keywords that has no grammar, a number of tokens or tokens without a "
                           "text, of which grammars know nothing, or what Lark's grammars are refused for by name",
    "unsupported_pattern": "an expression that is not regular",
    "limit_exceeded": "past a limit",
    "unsatisfiable_schema": "no value conforms, and none of the suite's texts is one by its judges",
}

# What grammars written for XGrammar may use beyond EBNF.
UNSUPPORTED = {
    "macro": (r"\b(?:TagDispatch|TokenTagDispatch|Token|ExcludeToken|Regex|Substring)\s*\(", "XGrammar's macros"),
    "attributes": (r"^\s*\w+\[[^\]\n]*\]\s*::=", "XGrammar's attributes of a rule"),
    "lookahead": (r"\(=", "XGrammar's assertion of what follows a rule"),
    "minus one": (r"\{\d+,\s*-1\}", "a repetition without an end as XGrammar prints it"),
}


def skip(reason: str):
    print(f"SKIPPED: peersuites.py {reason}", file=sys.stderr)
    sys.exit(77)


# Judges of schemas --------------------------------------------------------------------------------------------------

def refuse_name(name):  # NaN, a document elsewhere
    raise ValueError(name)


class Repeated(ValueError):
    pass


def unrepeated(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Repeated
    return result


def formats_of(schema) -> set:
    if isinstance(schema, list):
        return set().union(*map(formats_of, schema))
    if not isinstance(schema, dict):
        return set()
    named = {schema["format"]} if isinstance(schema.get("format"), str) else set()
    return named.union(*map(formats_of, schema.values()))


@functools.cache
def judges(spec: str) -> list | None:
    """A function for each package that knows the formats, which tells whether a value conforms; nothing for what is
    no schema."""
    schema = json.loads(spec, parse_constant=refuse_name)
    found = []
    try:
        import jsonschema_rs
        try:
            found.append(jsonschema_rs.validator_for(schema, validate_formats=True, retriever=refuse_name).is_valid)
        except jsonschema_rs.ValidationError:  # not valid by its meta-schema
            return None
        except (jsonschema_rs.ReferencingError, ValueError):
            pass
    except ImportError:
        pass
    try:
        import jsonschema
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError:
            return None
        if formats_of(schema) <= set(kind.FORMAT_CHECKER.checkers) and not re.search(r'"\$ref":\s*"http', spec):
            found.append(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid)
    except ImportError:
        pass
    return found


def opinions(spec: str, text: str) -> set:
    """Whether a text conforms, as the judges have it; nothing where they cannot tell."""
    try:
        found = judges(spec)
    except ValueError:
        return set()
    try:
        value = json.loads(text, parse_constant=refuse_name, object_pairs_hook=unrepeated)
    except Repeated:
        return set()
    except ValueError:
        return {False}
    said = set()
    for judge in found or []:
        try:
            said.add(judge(value))
        except Exception:  # a reference to elsewhere, a pattern of another dialect: it has no opinion
            pass
    return said


def is_contradicted(case) -> bool:
    """Whether every judge has a complete text otherwise than the suite."""
    return case["kind"] == "schema" and case.get("complete") is True and \
        opinions(case["spec"], case["text"]) == {not case["expect"]}


def closed(schema):
    """The schema with every object and array closed that does not say whether it is."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema or "patternProperties" in schema or schema.get("type") == "object":
        if isinstance(schema.get("properties", {}), dict) and "unevaluatedProperties" not in schema:
            result.setdefault("additionalProperties", False)
    if isinstance(schema.get("prefixItems"), list) and "unevaluatedItems" not in schema:
        result.setdefault("items", False)
    return result


def is_closed_out(case) -> bool:
    return is_contradicted(case) and not case["expect"] and \
        opinions(json.dumps(closed(json.loads(case["spec"]))), case["text"]) == {False}


def is_spaced_otherwise(case) -> bool:
    if not is_contradicted(case) or case["expect"]:
        return False
    value = json.loads(case["text"])
    separators = [tuple(case["opts"].get("separators") or (", ", ": "))]
    if case["opts"].get("any_whitespace", True):
        separators += [(",", ":"), (", ", ": ")]
    plain = [json.dumps(value, ensure_ascii=False, indent=case["opts"].get("indent"), separators=pair)
             for pair in separators]
    return case["text"] not in plain


def is_ordered_otherwise(case) -> bool:
    def follows(schema, value):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or not isinstance(value, dict):
            return True
        named = [key for key in value if key in properties]
        return named == [key for key in properties if key in value] and \
            all(follows(properties[key], value[key]) for key in named)

    return is_contradicted(case) and not case["expect"] and \
        not follows(json.loads(case["spec"]), json.loads(case["text"]))


def is_no_schema(case) -> bool:
    return case["kind"] == "schema" and judges(case["spec"]) is None


def is_sound_schema(case) -> bool:
    return case["kind"] == "schema" and case.get("build") is False and judges(case["spec"]) is not None


# Grammars -----------------------------------------------------------------------------------------------------------

def without_texts(spec: str) -> str:
    """A grammar with its literals and classes made empty."""
    return re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', '""', re.sub(r"#.*", "", spec))


def names_tokens(spec: str) -> bool:
    """Whether a grammar has tokens by name or number."""
    plain = re.sub(r"/(?:\\.|[^/\\\n])+/", "", without_texts(spec))
    return re.search(r"<(?:\[[^\]\s]*\]|[^<>\s]+)>", plain) is not None


def recurs_at_its_left(spec: str) -> bool:
    """Whether a rule of a grammar of names, literals and alternatives begins with itself."""
    rules = {match[1]: [part.split() for part in match[2].split("|")] for match in
             re.finditer(r"([\w-]+)\s*::=(.*?)(?=[\w-]+\s*::=|\Z)", without_texts(spec), re.DOTALL)}
    empty = {name for name, alternatives in rules.items() if [] in alternatives}
    first = {name: {part for parts in alternatives for k, part in enumerate(parts) if empty.issuperset(parts[:k])}
             for name, alternatives in rules.items()}
    for _ in first:
        first = {name: names.union(*(first.get(other, set()) for other in names)) for name, names in first.items()}
    return any(name in names for name, names in first.items())


# Chats --------------------------------------------------------------------------------------------------------------

def format_of(case) -> str | None:
    return next((form for part, form in TEMPLATES.items() if part in case["spec"]), None)


def chat_of(case: dict) -> dict:
    """A chat as a case of another kind: what the model is expected to write, to be accepted. What is calls alone
    must be accepted as calls."""
    calls_alone = case["calls"] and not case["content"] and not case["reasoning"]
    return {"suite": case["suite"], "test": "chat", "kind": "chat", "spec": case["template"], "opts": {},
            "text": case["input"], "expect": True, "complete": not case["partial"],
            "tools": [{**tool, "parameters": json.loads(tool["parameters"])} for tool in case["tools"]],
            "choice": "none" if not case["tools"] else "required" if calls_alone else "auto"}


def reasoning_of(case) -> str:
    """Whether a text closes a block of reasoning, and opens it."""
    if format_of(case) == "harmony":
        return "block"
    begin, end = REASONING.get(format_of(case), ("<think>", "</think>"))
    if end not in case["text"]:
        return "no"
    return "block" if case["text"].lstrip().startswith(begin) else "open"


def calls_another(case) -> bool:
    """Whether a message of gpt-oss is to something else than one of the functions."""
    named = re.findall(r"\bto=(\S*?)(?=<\||\s|$)", case["text"])
    return any(name not in {f"functions.{tool['name']}" for tool in case["tools"]} for name in named)


# A case is of a convention for what it is, never for what the program says of it.
CONVENTIONS = {
    "tags": (
        "arguments in a model's own tags, which are call formats here and not JSON",
        lambda case: bool(case["opts"].get("json_format"))),
    "other models": (
        "a model whose calls have no format here",
        lambda case: case["kind"] == "chat" and format_of(case) is None),
    "built-in tools": (
        "gpt-oss calls what is none of the functions that it was given, which is text to llama.cpp and impossible here",
        lambda case: case["kind"] == "chat" and format_of(case) == "harmony" and calls_another(case)),
    "JSON's words": (
        "true and null among Python's values, which are no Python",
        lambda case: case["kind"] == "chat" and format_of(case) == "lfm2"
        and re.search(r"[:=\[,] ?(?:true|false|null)\b", case["text"])),
    "other release": (
        "a string that holds what the tag of the XGrammar that is installed excludes from it",
        lambda case: case["kind"] == "builtin" and case.get("expect") is True
        and re.search(r"<\|sep\|>[^<]*<\|close\|>argument[^<]", case["text"])),
    "not UTF-8": (
        "bytes that no row of JSON can hold",
        lambda case: case["text"] is None),
    "no schema": (
        "built though it is invalid by its own meta-schema",
        is_no_schema),
    "supports less": (
        "valid by its meta-schema, and refused by a library that supports less",
        is_sound_schema),
    "repeated keys": (
        "a repeated key, about which JSON Schema says nothing",
        lambda case: case["kind"] in ("schema", "stag") and case.get("complete") is True and opens_twice(case["text"])),
    "closed objects": (
        "conforms, and is refused by a library that closes objects and arrays of its own accord",
        is_closed_out),
    "order": (
        "conforms, and is refused by a library that has properties in their documented order",
        is_ordered_otherwise),
    "spaces": (
        "conforms, and is refused by a library that has other separators",
        is_spaced_otherwise),
    "own limits": (
        "conforms, and is refused by a limit that the library was given beside the schema",
        lambda case: is_contradicted(case) and not case["expect"] and bool(case["opts"].get("env"))),
    "standard": (
        "contradicts JSON Schema, as every judge has it",
        is_contradicted),
    "formats": (
        "a format that no judge which is installed knows",
        lambda case: case["kind"] == "schema" and judges(case["spec"]) == []),
    "look-around": (
        "XGrammar has no look-around; here what is regular of it is read",
        lambda case: case["kind"] == "regex" and case.get("build") is False and re.search(r"\(\?<?[=!]", case["spec"])),
    "left recursion": (
        "llama.cpp has no left recursion",
        lambda case: case["kind"] == "ebnf" and case.get("build") is False and case["suite"].startswith("llama.cpp")
        and recurs_at_its_left(case["spec"])),
    "long repetition": (
        "llama.cpp has repetitions up to 2,000",
        lambda case: case["kind"] == "ebnf" and case.get("build") is False and case["suite"].startswith("llama.cpp")
        and any(int(count) > 2000 for count in re.findall(r"\{(\d+)", without_texts(case["spec"])))),
    "other vocabulary": (
        "a token of a vocabulary that is not recorded, and texts of such tokens",
        lambda case: case["kind"] in ("lark", "ebnf") and names_tokens(case["spec"])),
    "not recorded": (
        "text that XGrammar was given as tokens, or before its matcher began anew",
        lambda case: case["kind"] == "lark" and case["suite"].startswith("xgrammar")
        and (case["text"] == "" and "expect" in case or "reset_and_fork" in case["test"])),
    "read by llguidance": (
        "llguidance has such flags and names; XGrammar does not",
        lambda case: case["kind"] == "lark" and case.get("build") is False and case["suite"].startswith("xgrammar")
        and re.search(r"/[ims]*x$|suffix=/[^/]*/i|\[capture", case["spec"], re.MULTILINE)),
    "unfinished suffix": (
        "XGrammar ends a text before its suffix",
        lambda case: case["kind"] == "lark" and case["suite"].startswith("xgrammar") and case.get("expect")
        and any(suffix not in case["text"] for suffix in re.findall(r'suffix="([^"]*)"', case["spec"]))),
    "escapes": (
        "a pattern's text with escapes that no writer of JSON has, see SchemaCompiler",
        lambda case: case["kind"] == "lark" and case.get("expect") and '"pattern"' in case["spec"]
        and re.search(r"\\u00", case["text"])),
    "white space": (
        r"ECMA-262's \s is every white space, llguidance's that of ASCII",
        lambda case: case["kind"] == "lark" and case.get("expect") is False and r"\\s" in case["spec"]
        and r"\u00A0" in case["text"]),
    "if alone": (
        "JSON Schema has `if` without `then`, and ignores it; llguidance refuses it",
        lambda case: case["kind"] == "lark" and case.get("build") is False
        and re.search(r'%json \{ "if"', case["spec"])),
    "ignored end": (
        "XGrammar takes what is ignored at every end, llguidance where something may follow",
        lambda case: case["kind"] == "lark" and case["suite"].startswith("xgrammar") and case.get("expect")
        and "%ignore" in case["spec"] and re.search(r"(?:\s|//.*|#.*)$", case["text"])),
    "quantifiers": (
        "XGrammar has one quantifier; GBNF has one after another",
        lambda case: case["kind"] == "ebnf" and case.get("build") is False and case["suite"].startswith("xgrammar")
        and re.search(r"[*+?}]\s*[*+?{]", without_texts(case["spec"]))),
}


def opens_twice(text: str) -> bool:
    try:
        json.loads(text, object_pairs_hook=unrepeated)
    except Repeated:
        return True
    except ValueError:
        pass
    return False


# The program --------------------------------------------------------------------------------------------------------

def builtin_tags():
    """What makes structural tags for model families; nothing where XGrammar cannot be imported."""
    try:
        import xgrammar.builtin_structural_tag as builtin
        return builtin
    except ImportError as error:
        print(f"SKIPPED: peersuites.py runs no cases of the kind builtin: {error}", file=sys.stderr)
        return None


def builtin_of(builtin, case: dict) -> str:
    """The structural tag that XGrammar makes for the case's arguments."""
    given = dict(case["kwargs"])
    if case["spec"] != "get_model_structural_tag":  # what that function makes of its arguments
        for key, kind in (("tools", builtin.FunctionToolParam), ("builtin_tools", builtin.BuiltinToolParam)):
            given[key] = [kind.model_validate(tool) for tool in given[key]]
        given["reasoning"] = "enabled" if given["reasoning"] else "disabled"
    tag = getattr(builtin, case["spec"])(*case["args"], **given)
    return tag.model_dump_json(exclude_none=True)


def read_cases(path: pathlib.Path) -> list:
    cases = []
    builtin = builtin_tags()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            if case["kind"] == "chat":
                case = chat_of(case)
            elif case["kind"] not in KINDS:
                continue
            if case["kind"] == "stag":
                case["spec"] = tag_of(case["spec"])
            if case["kind"] == "builtin":
                if builtin is None:
                    continue
                try:
                    case["spec"] = builtin_of(builtin, case)
                except (TypeError, ValueError):
                    case["spec"] = "{}"  # which is refused, as the suite has it
            try:
                case["text"] = bytes.fromhex(case["text"]).decode() if "text" in case else ""
            except UnicodeDecodeError:
                case["text"] = None
            cases.append(case)
    return cases


def tag_of(arguments: list) -> str:
    """The text of a structural tag, which the suite has as its text, as a value, or as two lists."""
    if len(arguments) == 2:
        structures = [{name.rstrip("_"): value for name, value in one.items()} for one in arguments[0]]
        return json.dumps({"structures": structures, "triggers": arguments[1]})
    return arguments[0] if isinstance(arguments[0], str) else json.dumps(arguments[0])


def row_of(kind: str, number: int, texts: list) -> str:
    """A row of the program's: a specification and its texts. A schema stands in it as it is written."""
    spec, root = texts[0]["spec"], texts[0].get("root", "root")
    tests = json.dumps([{"text": case["text"], "complete": case.get("complete", False)} for case in texts])
    if kind == "schema":
        return f'{{"id": {number}, "schema": {" ".join(spec.splitlines())}, "tests": {tests}}}\n'
    return f'{{"id": {number}, "spec": {json.dumps(spec)}, "root": {json.dumps(root)}, "tests": {tests}}}\n'


def walk(command: list, rows: list) -> tuple:
    """The program's verdicts on rows; what it says at its end in place of those that are missing."""
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "rows.jsonl"
        path.write_text("".join(rows), encoding="utf-8")
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, encoding="utf-8", timeout=1800,
                              check=False)
    verdicts = [json.loads(line) for line in done.stdout.split("\n") if line]
    return verdicts, {"accepted": None, "reason": done.stderr[-300:]}


def run_specified(command: list, kind: str, cases: list) -> None:
    """Puts the program's verdict into each case, as "verdict"; one that is not asked has none."""
    groups = collections.defaultdict(list)
    for case in cases:
        try:
            if kind == "schema":
                json.loads(case["spec"], parse_constant=refuse_name)
        except ValueError:
            case["verdict"] = {"refused": "malformed_json", "reason": "malformed_json: the specification is no JSON"}
            continue
        if case["text"] is not None and not case["opts"].get("json_format"):
            groups[case["spec"], case.get("root", "root")].append(case)
    rows = [row_of(kind, k, texts) for k, texts in enumerate(groups.values())]
    verdicts, ended = walk([*command, "--format", KINDS[kind]], rows)
    for case, verdict in itertools.zip_longest(itertools.chain(*groups.values()), verdicts, fillvalue=ended):
        case["verdict"] = verdict


def run_chats(command: list, cases: list) -> None:
    groups = collections.defaultdict(list)
    for case in cases:
        if format_of(case) is not None:
            groups[format_of(case), reasoning_of(case)].append(case)
    for (form, reasoning), chats in groups.items():
        rows = [json.dumps({"id": k, "functions": chat["tools"], "text": chat["text"], "choice": chat["choice"],
                            "complete": chat["complete"]}) + "\n" for k, chat in enumerate(chats)]
        verdicts, ended = walk([*command, "--format", form, "--reasoning", reasoning], rows)
        for chat, verdict in itertools.zip_longest(chats, verdicts, fillvalue=ended):
            chat["verdict"] = verdict


# Verdicts -----------------------------------------------------------------------------------------------------------

def is_as_expected(case) -> bool:
    verdict = case.get("verdict", {})
    refused = "refused" in verdict
    if "disagreement" in verdict:
        return False
    if "build" in case:
        return refused != case["build"]
    if refused:  # what has no texts accepts none
        return not case["expect"] and verdict["reason"].startswith("unsatisfiable_schema")
    return verdict.get("accepted") == case["expect"]


def classify(case) -> tuple:
    """A column and, but for right and wrong, why."""
    if is_as_expected(case):
        return "right", ""
    verdict = case.get("verdict", {})
    if "disagreement" in verdict:
        return "wrong", ""
    for name, (_, holds) in CONVENTIONS.items():
        if holds(case):
            return "convention", name
    if "refused" in verdict:
        for name, (pattern, _) in UNSUPPORTED.items():
            if case["kind"] == "ebnf" and re.search(pattern, case["spec"], re.MULTILINE):
                return "refused", name
        code = verdict["reason"].split(":")[0]
        conforms = case["kind"] == "schema" and case.get("expect") and True in opinions(case["spec"], case["text"])
        if code in REFUSALS and not (code == "unsatisfiable_schema" and conforms):
            return "refused", code
    return "wrong", ""


def told(case) -> str:
    kind = "" if case.get("complete", True) else " as a beginning"
    expected = f"build {case['build']}" if "build" in case else \
        f"{'accept' if case['expect'] else 'refuse'} {case['text']!r:.200}{kind}"
    verdict = case.get("verdict", {})
    said = verdict.get("disagreement") or verdict.get("reason") or ("accepted" if verdict else "not asked")
    return f"{case['suite']} {case['test']}: {case['spec']!r:.400} {case['opts']} expects to {expected}; {said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true", help="with --cross-check, for some minutes")
    parser.add_argument("--show", metavar="CLASS", help="print every case of a column, a convention or a refusal")
    options = parser.parse_args()
    shared = pathlib.Path(os.environ.get("TOOLDECODE_SHARED_DATA", ROOT / ".." / "shared" / "data"))
    path = shared / "peersuites" / "cases.jsonl.gz"
    if not path.exists():
        skip("needs shared data peersuites/cases.jsonl.gz")
    if not judges("{}"):
        skip("needs the Python package jsonschema or jsonschema-rs")
    cases = read_cases(path)
    command = [options.program, "check", "--vocabulary", str(ROOT / "examples/data/tiny")]
    command += ["--cross-check"] * options.all
    for kind in (*KINDS, "chat"):
        of_kind = [case for case in cases if case["kind"] == kind]
        if kind == "chat":
            run_chats(command, of_kind)
        else:
            run_specified(command, kind, of_kind)
        print(f"  {kind}: walked", file=sys.stderr, flush=True)

    counts = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    wrong = []
    for case in cases:
        column, reason = classify(case)
        for suite in (case["suite"], "all"):
            counts[suite, case["kind"]][column] += 1
        reasons[column, reason] += 1
        if column == "wrong":
            wrong.append(case)
        if options.show in (column, reason):
            print(told(case))
    print(f"{'suite':48}{'kind':8}" + "".join(f"{column:>12}" for column in COLUMNS))
    for (suite, kind), found in sorted(counts.items(), key=lambda entry: (entry[0][0] == "all", entry[0])):
        print(f"{suite:48}{kind:8}" + "".join(f"{found[column]:12}" for column in COLUMNS))
    words = {("convention", name): reason for name, (reason, _) in CONVENTIONS.items()}
    words |= {("refused", name): reason for name, (_, reason) in UNSUPPORTED.items()}
    words |= {("refused", name): reason for name, reason in REFUSALS.items()}
    for (column, name), count in sorted(reasons.items()):
        if name:
            print(f"{column}, {name}: {count}: {words[column, name]}")
    for case in wrong[:20]:
        print(f"wrong: {told(case)}")
    print(f"{len(cases)} cases, {len(wrong)} wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
