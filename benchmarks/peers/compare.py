"""Runs tooldecode and its peers over workloads, see run.sh, workloads.py and contender.py."""

import argparse
import json
import os
import pathlib
import select
import subprocess
import sys
import time

import report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_record import run_record  # noqa: E402
from workloads import WARM, WORKLOADS

HERE = pathlib.Path(__file__).parent


def prepare(options):
    """Writes the rows with the tokens of their texts."""
    for name in ["warm", *options.workloads]:
        rows = WORKLOADS[name].rows(options.data) if name != "warm" else [WARM]
        rows = [row for i, row in enumerate(rows) if row.get("untimed") or i % options.every == 0 or len(rows) < 30]
        plain = options.build / f"{name}.texts.jsonl"
        plain.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with open(options.build / f"{name}.jsonl", "wb") as file:
            subprocess.run([options.build / "tooldecode", "tokens", plain, options.vocabulary], stdout=file, check=True)


def run(command, warm, workload, options, count, deadline):
    """The output lines of a contender, one per row, and the cost of its empty calls and its vocabulary. If a row takes
    too long or crashes the process, a new process continues with the next row. Rows after the deadline are left out."""
    rows = options.build / f"{workload}.jsonl"
    lines, first = {}, 0
    empty = None
    while first < count and time.time() < deadline:
        process = subprocess.Popen([*command, workload, str(rows), str(options.vocabulary), str(first), *warm],
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
                    empty = line
                else:
                    lines[line["row"]] = line
                    first = max(first, line["row"] + 1)
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


def compare(options):
    commands = {"tooldecode": [str(options.build / "tooldecode")],
                "xgrammar": [sys.executable, str(HERE / "xgrammar_peer.py")],
                "llguidance": [sys.executable, str(HERE / "llguidance_peer.py")]}
    results, end = {}, options.started + options.total
    for workload in options.workloads:
        with open(options.build / f"{workload}.jsonl", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        results[workload] = {}
        peers = [peer for peer in WORKLOADS[workload].peers if options.peers is None or peer in options.peers]
        for contender in ("tooldecode", *peers):
            start = time.time()
            deadline = min(start + WORKLOADS[workload].share * options.total, end)
            name, _, warm = contender.partition("_")
            lines, empty = run(commands[name], [warm] if warm else [], workload, options, len(rows), deadline)
            if empty is None:
                print(f"  {workload}, {contender}: no time left", file=sys.stderr, flush=True)
                continue
            results[workload][contender] = report.judged(rows, lines, empty)
            print(f"  {workload}, {contender}: {len(lines)} of {len(rows)} schemas in {time.time() - start:.0f} s",
                  file=sys.stderr, flush=True)
        print(report.table(WORKLOADS[workload].words, results[workload]), flush=True)
        if workload == "stress":
            print(report.cases(results[workload]), flush=True)
    return results


def threads(options):
    """Masks per second of one and of two threads that share a constraint of 200 tools."""
    done = subprocess.run([options.build / "tooldecode", "threads", options.build / "tools_200.jsonl", options.vocabulary],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the figures")
    parser.add_argument("--plot", type=pathlib.Path, help="write the plot, an SVG")
    parser.add_argument("--readme", type=pathlib.Path, help="write the tables between the marks `peers` of this file")
    parser.add_argument("--from-json", type=pathlib.Path, help="print and plot the figures of this file")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--peers", nargs="*", help="only these peers")
    parser.add_argument("--every", type=int, default=1, help="only every Nth schema of the long workloads")
    parser.add_argument("--limit", type=float, default=10, help="maximum seconds for a schema and its texts")
    parser.add_argument("--total", type=float, default=840, help="maximum seconds for the whole run")
    parser.add_argument("--start-limit", type=float, default=60, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.started = time.time()
    options.vocabulary = options.data / "vocab/qwen2.json.gz"
    if options.from_json:
        results = json.loads(options.from_json.read_text(encoding="utf-8"))
        for workload in WORKLOADS:
            if workload in results:
                print(report.table(WORKLOADS[workload].words, results[workload]))
    else:
        prepare(options)
        results = compare(options)
        if "tools_200" in options.workloads:
            results["threads"] = threads(options)
        peers = {name.partition("_")[0] for one in results.values() for name in one} & {"xgrammar", "llguidance"}
        # run.sh puts --build and --data before its arguments.
        results["made_by"] = run_record([options.build / "tooldecode", "record"], sorted(peers),
                                        ["bash", "benchmarks/peers/run.sh", *sys.argv[5:]])
    print(report.cold(results))
    print(report.bindings(results))
    print(report.aims(results))
    if options.readme:
        whole = options.readme.read_text(encoding="utf-8")
        before, _, rest = whole.partition("<!-- peers -->\n")
        _, _, after = rest.partition("<!-- end of peers -->\n")
        options.readme.write_text(f"{before}<!-- peers -->\n{report.readme(results)}\n<!-- end of peers -->\n{after}",
                                  encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        report.plot(results, options.plot)


if __name__ == "__main__":
    main()
