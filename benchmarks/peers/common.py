"""Workloads, the running of contenders, and the report of benchmarks/peers/run.sh.

A contender is a program `CONTENDER WORKLOAD ROWS VOCABULARY FIRST` that prints its overheads and what the vocabulary
takes, a warm-up with warm.jsonl beside ROWS included, as one JSON line, {"overhead_ns": {"build", "mask", "advance"},
"vocabulary_ms"}, and for each row of ROWS from FIRST on another line:
{"row", "refused": why} or {"row", "build_first_mask_ns", "mask_ns": [...], "advance_ns": [...], "accepted": [...]}.
"""

import argparse
import base64
import gc
import gzip
import json
import math
import os
import pathlib
import random
import select
import subprocess
import sys
import time

CONTENDERS = ("tooldecode", "xgrammar", "llguidance")
MEASURES = ("build_first_mask", "mask", "advance")
CALLS = ("exec.jsonl", "live_multiple.jsonl.gz", "live_parallel.jsonl", "live_parallel_multiple.jsonl",
         "live_simple.jsonl", "multiple.jsonl", "parallel.jsonl", "parallel_multiple.jsonl", "simple_python.jsonl")


# ---------------------------------------------------------------------------------------------------- contenders' side


class Vocabulary:
    def __init__(self, path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            vocabulary = json.load(file)
        self.tokens = [base64.b64decode(token) for token in vocabulary["tokens_b64"]]
        self.special = [i for i, kind in enumerate(vocabulary["token_types"]) if kind != 1]
        self.end, self.size = vocabulary["eos_id"], vocabulary["model_vocab_size"]
        self.pattern = vocabulary["pre_tokenizer"]["regex"][0]


def overhead(call, count=4000):
    """Nanoseconds that a call which does nothing takes, timed as the others are."""
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[count // 2]


class Refused(Exception):
    """The engine says that it cannot do this schema."""


def serve(make_engine):
    """Runs a peer's engine, made of a workload and a Vocabulary, over the rows of the command line.

    engine.build(schema text) gives a factory of matchers or raises Refused; a matcher has `mask()`, which fills
    engine.bits (int32 words), `advance(token)`, and `check()`, which raises Refused where the engine gave up.
    """
    workload, rows, first = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[4])
    vocabulary = Vocabulary(sys.argv[3])
    start = time.perf_counter()
    engine = make_engine(workload, vocabulary)
    measure(engine, json.loads(rows.with_name("warm.jsonl").read_text(encoding="utf-8")))
    emit({"overhead_ns": engine.overheads, "vocabulary_ms": 1000 * (time.perf_counter() - start)})
    gc.disable()
    with open(rows, encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number >= first:
                emit({"row": number, **measure(engine, json.loads(line))})


def emit(value):
    print(json.dumps(value), flush=True)


def measure(engine, row):
    schema = json.dumps(row["schema"], ensure_ascii=False)
    now = time.perf_counter_ns
    masks, advances, accepted, bits, end = [], [], [], engine.bits, engine.end
    try:
        start = now()
        make = engine.build(schema)
        matcher = make()
        matcher.mask()
        first = now() - start
        matcher.check()
        for number, test in enumerate(row["tests"]):
            if number > 0:
                matcher = make()
            for place, token in enumerate([*test["tokens"], end]):
                if number > 0 or place > 0:
                    start = now()
                    matcher.mask()
                    masks.append(now() - start)
                allowed = bits[token >> 5] >> (token & 31) & 1
                if not allowed or token == end:
                    break
                start = now()
                moved = matcher.advance(token)
                advances.append(now() - start)
                if not moved:
                    allowed = False
                    break
            matcher.check()
            accepted.append(bool(allowed))
    except Exception as reason:  # an engine that gives up refuses, whatever it throws
        return {"refused": str(reason)[:300]}
    return {"build_first_mask_ns": first, "mask_ns": masks, "advance_ns": advances, "accepted": accepted}


# ------------------------------------------------------------------------------------------------------------ workloads


def closed(schema):
    """The schema with no further properties wherever there are properties."""
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


def text(value):
    return json.dumps(value, ensure_ascii=False)


def bfcl(data, any_order):
    """Each function of a valid call once, closed; at most three calls of it, and wrong variants of the first."""
    import jsonschema

    dice = random.Random(1)
    functions = {}
    for name in CALLS:
        opener = gzip.open if name.endswith(".gz") else open
        with opener(data / "bfcl" / name, "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                if not row.get("call_valid"):
                    continue
                calls = row["call_json"]
                for call in calls if isinstance(calls, list) else [calls]:
                    schema = next(f["parameters"] for f in row["functions"] if f["name"] == call["name"])
                    schema = closed(schema)
                    values = functions.setdefault(text(schema), (row["id"], schema, []))[2]
                    value = ordered(call["arguments"], schema)
                    if len(values) < 3 and value not in values:
                        values.append(value)
    rows = []
    for identifier, schema, values in functions.values():
        conforms = jsonschema.Draft202012Validator(schema).is_valid
        values = [value for value in values if conforms(value)]
        if not values:
            continue
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


def jsonschemabench(data, _):
    with gzip.open(data / "jsonschema/jsonschemabench.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [{"id": row["id"], "schema": row["schema"],
                 "tests": [{"valid": test["valid"], "text": text(test["data"])} for test in row["tests"]]}
                for row in map(json.loads, file)]
    random.Random(1).shuffle(rows)  # what a contender reaches in its time is a fair sample
    return rows


WORKLOADS = {"bfcl": bfcl, "bfcl_any_order": bfcl, "jsonschemabench": jsonschemabench}
WORDS = {"bfcl": "BFCL functions, closed objects, documented order, fixed spacing",
         "bfcl_any_order": "BFCL functions, closed objects, any order, fixed spacing",
         "jsonschemabench": "JSONSchemaBench, free spacing"}


WARM = {"schema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"},
                                                     "c": {"type": "array", "items": {"type": "string"}}},
                   "additionalProperties": False},
        "tests": [{"text": '{"a": "some text", "b": -12.5, "c": ["x", "yes"]}'}]}


def prepare(options):
    for name in ["warm", *options.workloads]:
        rows = WORKLOADS[name](options.data, name == "bfcl_any_order")[::options.every] if name != "warm" else [WARM]
        plain = options.build / f"{name}.texts.jsonl"
        plain.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with open(options.build / f"{name}.jsonl", "wb") as file:
            subprocess.run([options.build / "tooldecode", "tokens", plain, options.vocabulary], stdout=file, check=True)


# ------------------------------------------------------------------------------------------------------------- running


def run(command, workload, rows, options, count, deadline):
    """The lines of a contender, one per row. Its process is stopped where a row takes too long, or dies with a row that
    crashes it, and goes on with the next row in a new one. Rows past the deadline are left out."""
    lines, first = {}, 0
    empty = None
    while first < count and time.time() < deadline:
        process = subprocess.Popen([*command, workload, str(rows), str(options.vocabulary), str(first)],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        limit, pending, state = options.start_limit, b"", "running"
        while state == "running":
            ready, _, _ = select.select([process.stdout], [], [], min(limit, max(0.0, deadline - time.time())))
            if not ready:
                state = "late" if time.time() < deadline else "over"
                break
            piece = os.read(process.stdout.fileno(), 1 << 20)
            if not piece:
                state = "ended"
                break
            *whole, pending = (pending + piece).split(b"\n")
            for line in map(json.loads, whole):
                limit = options.limit
                if "overhead_ns" in line:
                    empty = {**line["overhead_ns"], "vocabulary": line["vocabulary_ms"]}
                else:
                    lines[line["row"]] = line
                    first = line["row"] + 1
        process.kill()
        process.stdout.close()
        status = process.wait()
        if state == "over":
            break
        if empty is None:
            sys.exit(f"{command[-1]} does not start (status {status})")
        if first < count:
            why = f"no answer in {options.limit} s" if state == "late" else f"status {status}"
            lines[first] = {"row": first, ("late" if state == "late" else "crashed"): why}
            first += 1
    return lines, empty


def summary(times, with_most=False):
    times = sorted(times)
    if not times:
        return None
    at = lambda share: times[int(share * (len(times) - 1))]  # noqa: E731
    result = {"mean": sum(times) / len(times), "p50": at(0.5), "p99": at(0.99)}
    return {**result, "max": times[-1]} if with_most else result


def judged(rows, lines, empty):
    """The figures of one contender, in microseconds without what its binding costs."""
    times = {measure: [] for measure in MEASURES}
    counts = dict.fromkeys(
        ("right", "refused", "wrong", "not_run", "late", "crashed", "wrongly_accepted", "wrongly_rejected"), 0)
    for number, row in enumerate(rows):
        line = lines.get(number)
        if line is None:
            counts["not_run"] += 1
        elif "crashed" in line:
            counts["wrong"] += 1
            counts["crashed"] += 1
        elif "refused" in line or "late" in line:
            counts["refused"] += 1
            counts["late"] += "late" in line
        else:
            valid = [test["valid"] for test in row["tests"]]
            counts["right" if valid == line["accepted"] else "wrong"] += 1
            counts["wrongly_accepted"] += sum(a and not v for a, v in zip(line["accepted"], valid, strict=True))
            counts["wrongly_rejected"] += sum(v and not a for a, v in zip(line["accepted"], valid, strict=True))
            clear = lambda ns, what: max(0, ns - empty[what]) / 1000  # noqa: E731
            times["build_first_mask"].append(clear(line["build_first_mask_ns"], "build"))
            times["mask"] += [clear(ns, "mask") for ns in line["mask_ns"]]
            times["advance"] += [clear(ns, "advance") for ns in line["advance_ns"]]
    result = {f"{measure}_us": summary(times[measure], measure != "build_first_mask") for measure in MEASURES}
    return {**result, **counts, "schemas": len(rows), "vocabulary_ms": empty.pop("vocabulary"),
            "overhead_us": {call: ns / 1000 for call, ns in empty.items()}}


def compare(options):
    commands = {"tooldecode": [str(options.build / "tooldecode")],
                "xgrammar": [sys.executable, str(pathlib.Path(__file__).with_name("xgrammar_peer.py"))],
                "llguidance": [sys.executable, str(pathlib.Path(__file__).with_name("llguidance_peer.py"))]}
    report, end = {}, time.time() + options.total
    for workload in options.workloads:
        rows_file = options.build / f"{workload}.jsonl"
        with open(rows_file, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        results = {}
        for contender in ("tooldecode", "llguidance", "xgrammar"):  # whose schemas take longest comes last
            start = time.time()
            deadline = min(start + options.budget, end)
            lines, empty = run(commands[contender], workload, rows_file, options, len(rows), deadline)
            if empty is None:
                sys.exit(f"{contender} had no time for {workload}; see --total")
            results[contender] = judged(rows, lines, empty)
            print(f"  {workload}, {contender}: {len(lines)} of {len(rows)} schemas in {time.time() - start:.0f} s",
                  file=sys.stderr, flush=True)
        report[workload] = {name: results[name] for name in CONTENDERS}
        print(table(workload, report[workload]), flush=True)
    return report


# -------------------------------------------------------------------------------------------------------------- report

COLUMNS = (("build_first_mask_us", "mean"), ("build_first_mask_us", "p50"), ("build_first_mask_us", "p99"),
           ("mask_us", "mean"), ("mask_us", "p50"), ("mask_us", "p99"), ("mask_us", "max"),
           ("advance_us", "mean"), ("advance_us", "p50"), ("advance_us", "p99"))


def figure(result, column):
    measure, what = column
    return result[measure][what] if result[measure] else math.nan


def number(value):
    return "-" if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(workload, results):
    heads = ["first mask mean", "p50", "p99", "mask mean", "p50", "p99", "max", "advance mean", "p50", "p99"]
    lines = [f"\n{WORDS[workload]}: {results['tooldecode']['schemas']} schemas, Qwen2, microseconds\n",
             "| | " + " | ".join([*heads, "right", "refused", "wrong"]) + " |",
             "| --- |" + " ---: |" * (len(heads) + 3)]
    for name in CONTENDERS:
        one = results[name]
        cells = [number(figure(one, column)) for column in COLUMNS]
        wrong = str(one["wrong"]) + (f" ({one['not_run']} not reached)" if one["not_run"] else "")
        lines.append(f"| {name} | " + " | ".join([*cells, str(one["right"]), str(one["refused"]), wrong]) + " |")
    for name in CONTENDERS[1:]:
        ratios = [figure(results["tooldecode"], c) / (figure(results[name], c) or math.nan) for c in COLUMNS]
        lines.append(f"| tooldecode / {name} | " + " | ".join(number(ratio) for ratio in ratios) + " | | | |")
    lines.append("\n" + "; ".join(
        f"{name}: {one['wrongly_accepted']} tests wrongly accepted, {one['wrongly_rejected']} wrongly rejected, "
        f"{one['late']} too late, {one['crashed']} crashes, {one['vocabulary_ms']:.0f} ms once per vocabulary"
        for name, one in results.items()))
    return "\n".join(lines)


def plot(report):
    """Bars on a logarithmic axis: a panel per workload."""
    colours = {"tooldecode": "#1b6ca8", "xgrammar": "#d98032", "llguidance": "#5a9e57"}
    shown = (("build_first_mask_us", "p50", "first mask p50"), ("build_first_mask_us", "p99", "first mask p99"),
             ("mask_us", "mean", "mask mean"), ("mask_us", "p99", "mask p99"), ("advance_us", "mean", "advance mean"))
    low, high, height, panel = -2, 7, 240, 520
    y = lambda v: 40 + height * (high - math.log10(min(max(v, 10**low), 10**high))) / (high - low)  # noqa: E731
    parts = []
    for index, (workload, results) in enumerate(report.items()):
        left = 60 + index * panel
        parts.append(f'<text x="{left}" y="20" font-weight="bold">{workload}, microseconds</text>')
        for power in range(low, high + 1):
            parts.append(f'<line x1="{left}" x2="{left + panel - 60}" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}" '
                         f'stroke="#ddd"/><text x="{left - 6}" y="{y(10**power) + 4:.1f}" text-anchor="end">'
                         f'{10**power:g}</text>')
        for group, (measure, what, label) in enumerate(shown):
            at = left + 12 + group * 90
            for bar, name in enumerate(CONTENDERS):
                value = figure(results[name], (measure, what))
                if math.isnan(value):
                    continue
                top = y(value)
                parts.append(f'<rect x="{at + bar * 18}" y="{top:.1f}" width="16" height="{40 + height - top:.1f}" '
                             f'fill="{colours[name]}"><title>{name}: {number(value)}</title></rect>')
            parts.append(f'<text x="{at + 27}" y="{58 + height}" text-anchor="middle">{label}</text>')
        right = [f"{name} {one['right']}/{one['schemas']}" for name, one in results.items()]
        parts.append(f'<text x="{left}" y="{80 + height}">schemas right: {", ".join(right)}</text>')
    for bar, name in enumerate(CONTENDERS):
        parts.append(f'<rect x="{60 + bar * 110}" y="{95 + height}" width="12" height="12" fill="{colours[name]}"/>'
                     f'<text x="{76 + bar * 110}" y="{105 + height}">{name}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{40 + panel * len(report)}" height="{120 + height}" '
            f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the figures")
    parser.add_argument("--plot", type=pathlib.Path, help="write the plot, an SVG")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--every", type=int, default=1, help="only every so many schemas")
    parser.add_argument("--limit", type=float, default=10, help="seconds that a schema and its texts may take")
    parser.add_argument("--budget", type=float, default=700, help="seconds that a contender has for a workload")
    parser.add_argument("--total", type=float, default=840, help="seconds that all of it may take")
    parser.add_argument("--start-limit", type=float, default=60, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.vocabulary = options.data / "vocab/qwen2.json.gz"
    prepare(options)
    report = compare(options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        options.plot.write_text(plot(report), encoding="utf-8")


if __name__ == "__main__":
    main()
