"""Makes figures, tables, aims and the plot from the contenders' output."""

import math

MEASURES = ("build_first_mask", "mask", "advance", "chain", "next_mask", "request")
COLUMNS = (("build_first_mask_us", "mean", "first mask mean"), ("build_first_mask_us", "p50", "p50"),
           ("build_first_mask_us", "p99", "p99"), ("mask_us", "mean", "mask mean"), ("mask_us", "p50", "p50"),
           ("mask_us", "p99", "p99"), ("mask_us", "max", "max"), ("advance_us", "mean", "advance mean"),
           ("advance_us", "p99", "p99"), ("chain_us", "mean", "chain mean"))


def summary(times):
    times = sorted(times)
    if not times:
        return None
    at = lambda share: times[int(share * (len(times) - 1))]  # noqa: E731
    return {"mean": sum(times) / len(times), "p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": times[-1]}


def judged(rows, lines, empty):
    """The figures of one contender in microseconds, without the cost of its binding."""
    nothing = empty["overhead_ns"]
    times = {measure: [] for measure in MEASURES}
    forced = dict.fromkeys(("asked", "right", "wrong"), 0)
    counts = dict.fromkeys(("right", "refused", "wrong", "not_run", "late", "crashed", "wrongly_accepted",
                            "wrongly_rejected", "memory_bytes"), 0)
    cases, wrong_ids = {}, []
    timed = [(number, row) for number, row in enumerate(rows) if not row.get("untimed")]
    for number, row in timed:
        line = lines.get(number)
        if line is None:
            counts["not_run"] += 1
        elif "crashed" in line:
            counts["wrong"] += 1
            counts["crashed"] += 1
            wrong_ids.append(row["id"])
        elif "refused" in line or "late" in line:
            counts["refused"] += 1
            counts["late"] += "late" in line
        elif "unsatisfiable" in line:  # a verdict on every text
            valid = [test["valid"] for test in row["tests"]]
            counts["wrong" if any(valid) else "right"] += 1
            counts["wrongly_rejected"] += sum(valid)
            if any(valid):
                wrong_ids.append(row["id"])
        else:
            valid = [test["valid"] for test in row["tests"]]
            counts["right" if valid == line["accepted"] else "wrong"] += 1
            if valid != line["accepted"]:
                wrong_ids.append(row["id"])
            counts["wrongly_accepted"] += sum(a and not v for a, v in zip(line["accepted"], valid, strict=True))
            counts["wrongly_rejected"] += sum(v and not a for a, v in zip(line["accepted"], valid, strict=True))
            counts["memory_bytes"] = max(counts["memory_bytes"], line["memory_bytes"])
            clear = lambda ns, what: max(0, ns - nothing[what]) / 1000  # noqa: E731
            first = clear(line["build_first_mask_ns"], "build")
            masks = [clear(ns, "mask") for ns in line["mask_ns"]]
            times["build_first_mask"].append(first)
            times["mask"] += masks
            times["advance"] += [clear(ns, "advance") for ns in line["advance_ns"]]
            if row["tests"] and valid[0] and line["accepted"][0]:
                # The first text: a request whose states no other text of its row has visited.
                tokens = len(row["tests"][0]["tokens"])
                times["next_mask"] += masks[:tokens]
                advances = [clear(ns, "advance") for ns in line["advance_ns"][:tokens]]
                times["request"].append(first + sum(masks[:tokens]) + sum(advances))
            times["chain"] += [clear(ns, "chain") for ns in line.get("chain_ns", ())]
            for what in forced:
                forced[what] += line.get("forced", forced | {what: 0})[what]
            if len(timed) < 30:
                cases[row["id"]] = {"build_first_mask_us": first, "right": valid == line["accepted"],
                                    "mask_us": summary(masks)}
    return {**{f"{measure}_us": summary(times[measure]) for measure in MEASURES},
            **counts, "schemas": len(timed), "wrong_ids": wrong_ids[:20],
            **({"forced": forced} if forced["asked"] else {}), **({"cases": cases} if cases else {}),
            "vocabulary_ms": empty["vocabulary_ms"], "overhead_us": {call: ns / 1000 for call, ns in nothing.items()}}


def figure(result, measure, what):
    return result[measure].get(what, math.nan) if result and result.get(measure) else math.nan


def number(value):
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(words, results):
    heads = [head for _, _, head in COLUMNS]
    lines = [f"\n{words}: {results['tooldecode']['schemas']} rows, Qwen2, microseconds\n",
             "| | " + " | ".join([*heads, "right", "refused", "wrong"]) + " |",
             "| --- |" + " ---: |" * (len(heads) + 3)]
    for name, one in results.items():
        cells = [number(figure(one, measure, what)) for measure, what, _ in COLUMNS]
        wrong = str(one["wrong"]) + (f" ({one['not_run']} not reached)" if one["not_run"] else "")
        lines.append(f"| {name.replace('_', ', ')} | " + " | ".join([*cells, str(one["right"]), str(one["refused"]), wrong]) + " |")
    for name, one in results.items():
        if name != "tooldecode":
            ratios = [figure(results["tooldecode"], measure, what) / (figure(one, measure, what) or math.nan)
                      for measure, what, _ in COLUMNS]
            lines.append(f"| tooldecode / {name.replace('_', ', ')} | " + " | ".join(map(number, ratios)) + " | | | |")
    lines.append("\n" + "; ".join(
        f"{name.replace('_', ', ')}: {one['wrongly_accepted']} texts wrongly accepted, {one['wrongly_rejected']} wrongly rejected, "
        f"{one['late']} too late, {one['crashed']} crashes, {one['memory_bytes'] / 2**20:.0f} MiB for a row at most"
        + (f", {share(one['forced']['right'], one['forced']['asked'])} of tokens forced, {one['forced']['wrong']} times "
           "not the tokenizer's" if "forced" in one else "") for name, one in results.items()))
    return "\n".join(lines)


def cases(results):
    """The figures of each case."""
    lines = ["\n| case: first mask; mask mean / max, microseconds | " + " | ".join(results) + " |",
             "| --- |" + " ---: |" * len(results)]
    for case in dict.fromkeys(case for one in results.values() for case in one.get("cases", ())):
        cells = []
        for one in results.values():
            case_of = one["cases"].get(case) if "cases" in one else None
            cells.append("refused or late" if case_of is None else
                         f"{number(case_of['build_first_mask_us'])}; {number(figure(case_of, 'mask_us', 'mean'))} / "
                         f"{number(figure(case_of, 'mask_us', 'max'))}" + ("" if case_of["right"] else " (wrong)"))
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bindings(results):
    """The cost of the binding, which is subtracted, and of a vocabulary."""
    lines = ["\n| once per vocabulary, ms; subtracted from each build, mask, advance, chain, microseconds | |", "| --- | ---: |"]
    first = next(one for name, one in results.items() if name not in ("threads", "made_by"))
    for name, one in first.items():
        calls = ", ".join(number(one["overhead_us"][call]) for call in ("build", "mask", "advance", "chain"))
        lines.append(f"| {name.replace('_', ', ')} | {one['vocabulary_ms']:.0f}; {calls} |")
    return "\n".join(lines)


def aims(results):
    """Each aim with the measured value and whether it holds."""
    ours = lambda workload, measure, what: figure(results.get(workload, {}).get("tooldecode"), measure, what)  # noqa: E731
    theirs = lambda workload, measure, what: [figure(results.get(workload, {}).get(peer), measure, what)  # noqa: E731
                                              for peer in ("llguidance", "xgrammar")]
    rows = []

    def at_most(aim, value, bound, unit=""):
        rows.append((aim, "-" if math.isnan(value) else number(value) + unit, None if math.isnan(value) else value <= bound))

    def ratio(aim, workload, measure, what, bound, peers=None):
        mine, best = ours(workload, measure, what), theirs(workload, measure, what)
        best = min([best[0]] if peers == "llguidance" else [value for value in best if not math.isnan(value)] or [math.nan])
        at_most(aim, mine / best if best else math.nan, bound, f" ({number(mine)} against {number(best)} us)")

    ratio("BFCL: first mask p50 at most 1/12 of the better peer's", "bfcl", "build_first_mask_us", "p50", 1 / 12)
    at_most("any order: first mask p50 at most 2 of documented order's",
            ours("bfcl_any_order", "build_first_mask_us", "p50") / ours("bfcl", "build_first_mask_us", "p50"), 2)
    ratio("mask mean at most 1/15 of the better peer's", "bfcl", "mask_us", "mean", 1 / 15)
    ratio("mask p99 at most 1/2 of the better peer's", "bfcl", "mask_us", "p99", 1 / 2)
    ratio("advance mean at most 1/5 of the better peer's", "bfcl", "advance_us", "mean", 1 / 5)
    ratio("draft chain mean at most 1/3 of the better peer's", "bfcl", "chain_us", "mean", 1 / 3)
    ratio("200 tools, cold: first mask at most 1/4 of llguidance's", "tools_200", "build_first_mask_us", "mean", 1 / 4,
          "llguidance")
    at_most("one of 200 replaced: first mask p50 at most 200 us", ours("tools_replaced", "build_first_mask_us", "p50"), 200, " us")
    at_most("200 tools: mask mean at most 3 us", ours("tools_200", "mask_us", "mean"), 3, " us")
    at_most("200 tools: mask max at most 150 us", ours("tools_200", "mask_us", "max"), 150, " us")
    for workload, title in COLD.items():
        ratio(f"cold request, {title}: p50 at most 1/4 of the better peer's", workload, "request_us", "p50", 1 / 4)
        ratio(f"cold request, {title}: sum at most 1/4 of the better peer's", workload, "request_us", "mean", 1 / 4)
    for workload, mean, p99 in (("bfcl", 8, 60), ("bfcl_default", 8, 60), ("tools_200_drawn", math.inf, 500)):
        title = COLD[workload]
        if mean < math.inf:
            at_most(f"{title}: next masks of a cold request at most {mean} us in the mean",
                    ours(workload, "next_mask_us", "mean"), mean, " us")
        at_most(f"{title}: their p99 at most {p99} us", ours(workload, "next_mask_us", "p99"), p99, " us")
    at_most("900 tools: first mask at most 8 ms", ours("tools_900", "build_first_mask_us", "mean") / 1000, 8, " ms")
    many = results.get("tools_10000", {}).get("tooldecode")
    at_most("10,000 tools: first mask at most 80 ms", figure(many, "build_first_mask_us", "mean") / 1000, 80, " ms")
    at_most("10,000 tools: at most 20 MB", many["memory_bytes"] / 1e6 if many else math.nan, 20, " MB")
    at_most("10,000 tools: mask p99 at most 50 us", figure(many, "mask_us", "p99"), 50, " us")
    first = results.get("bfcl", {}).get("tooldecode")
    at_most("per vocabulary at most 60 ms", first["vocabulary_ms"] if first else math.nan, 60, " ms")
    bench = results.get("jsonschemabench", {})
    if bench:
        mine = bench["tooldecode"]
        reached = {name: one["right"] / ((one["schemas"] - one["not_run"]) or 1) for name, one in bench.items()}
        rows.append(("JSONSchemaBench: more schemas right than either peer",
                     ", ".join(f"{name} {100 * right:.1f} %" for name, right in reached.items()),
                     reached["tooldecode"] == max(reached.values())))
        rows.append(("at least 90 % of them right", share(mine["right"], mine["schemas"]), mine["right"] >= 0.9 * mine["schemas"]))
        rows.append(("none silently wrong", f"{mine['wrong']} wrong", mine["wrong"] == 0))
        at_most("mask p99 at most 150 us", figure(mine, "mask_us", "p99"), 150, " us")
        at_most("first mask p99 at most 5 ms", figure(mine, "build_first_mask_us", "p99") / 1000, 5, " ms")
    for workload, title in (("jsonschemabench", "JSONSchemaBench"), ("test_suite", "JSON Schema Test Suite")):
        at_most(f"{title}: mask p99.9 at most 300 us", ours(workload, "mask_us", "p999"), 300, " us")
        at_most(f"{title}: mask max at most 1 ms", ours(workload, "mask_us", "max") / 1000, 1, " ms")
        at_most(f"{title}: first mask max at most 10 ms", ours(workload, "build_first_mask_us", "max") / 1000, 10, " ms")
    hard = results.get("stress", {}).get("tooldecode", {}).get("cases", {})
    case = lambda name, measure: (hard[name][measure] if name in hard else None)  # noqa: E731
    at_most("maxLength 500: first mask at most 200 us", case("maxLength 500", "build_first_mask_us") or math.nan, 200, " us")
    at_most("maxLength 500: mask mean at most 10 us", figure(hard.get("maxLength 500"), "mask_us", "mean"), 10, " us")
    at_most("enum of 5,000: first mask at most 2 ms", (case("enum 5000", "build_first_mask_us") or math.nan) / 1000, 2, " ms")
    forced = {name: one["forced"] for name, one in results.get("bfcl", {}).items() if "forced" in one}
    if "tooldecode" in forced and "llguidance" in forced:
        mine, other = forced["tooldecode"], forced["llguidance"]
        rows.append(("forced tokens: each the tokenizer's own", f"{mine['wrong']} others", mine["wrong"] == 0))
        rows.append(("forced tokens: at least llguidance's share", share(mine["right"], mine["asked"]) + " against "
                     + share(other["right"], other["asked"]),
                     mine["right"] * other["asked"] >= other["right"] * mine["asked"]))
    suite = results.get("test_suite", {}).get("tooldecode")
    if suite:
        rows.append(("JSON Schema Test Suite: every test right or its schema refused",
                     f"{suite['right']} right, {suite['refused']} refused, {suite['wrong']} wrong", suite["wrong"] == 0))
    if "threads" in results:
        gain = results["threads"]["2"] / results["threads"]["1"]
        rows.append(("two threads: at least 1.7 of one's masks per second", f"{gain:.2f} ({results['threads']['1'] / 1e6:.2f} "
                     f"and {results['threads']['2'] / 1e6:.2f} million)", gain >= 1.7))
    says = {True: "met", False: "missed", None: "not measured"}
    return "\n".join(["\n| aim | measured | |", "| --- | ---: | --- |",
                      *(f"| {aim} | {measured} | {says[met]} |" for aim, measured, met in rows)])


COLD = {"bfcl": "BFCL, fixed spacing", "bfcl_default": "BFCL, any order, free spacing",
        "tools_200_drawn": "200 tools", "jsonschemabench": "JSONSchemaBench"}


def cold(results):
    """The table of requests with a new constraint, from the documents to the last mask, each state once."""
    lines = ["", "| cold request, microseconds | | first mask p50 | p99 | next masks mean | p50 | p99 | whole request mean | p50 |",
             "| --- | --- |" + " ---: |" * 7]
    for workload, title in COLD.items():
        for name, one in results.get(workload, {}).items():
            cells = [number(figure(one, measure, what)) for measure, what in (
                ("build_first_mask_us", "p50"), ("build_first_mask_us", "p99"), ("next_mask_us", "mean"), ("next_mask_us", "p50"),
                ("next_mask_us", "p99"), ("request_us", "mean"), ("request_us", "p50"))]
            lines.append(f"| {title if name == 'tooldecode' else ''} | {name.replace('_', ', ')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def readme(results):
    """The tables of benchmarks/README.md."""
    words = {"bfcl": "BFCL", "bfcl_any_order": "BFCL, any order", "jsonschemabench": "JSONSchemaBench",
             "test_suite": "JSON Schema Test Suite"}
    shown = [column for column in COLUMNS if column[:2] not in (("build_first_mask_us", "mean"), ("advance_us", "p99"))]
    lines = ["![First masks, masks and advances of the three engines](results/peers.svg)", "",
             "| microseconds | | first mask p50 | p99 | mask mean | p50 | p99 | max | advance | draft chain | right | "
             "refused | wrong |", "| --- | --- |" + " ---: |" * 11]
    for workload, title in words.items():
        for name, one in results.get(workload, {}).items():
            cells = [number(figure(one, measure, what)) for measure, what, _ in shown]
            wrong = str(one["wrong"]) + (f" ({one['not_run']} not reached)" if one["not_run"] else "")
            lines.append(f"| {title if name == 'tooldecode' else ''} | {name.replace('_', ', ')} | "
                         + " | ".join([*cells, str(one["right"]), str(one["refused"]), wrong]) + " |")
    lines += ["", "| must call one of N tools | | first mask, ms | mask mean, us | p99 | max | memory, MiB |",
              "| --- | --- |" + " ---: |" * 5]
    for workload, many in results.items():
        if workload.startswith("tools_"):
            title = {"tools_replaced": "one of 200 replaced"}.get(workload, f"{int(workload[6:]):,}" if workload[6:].isdigit() else "")
            for name, one in many.items():
                first = figure(one, "build_first_mask_us", "mean") / 1000
                cells = [number(first)] + [number(figure(one, "mask_us", what)) for what in ("mean", "p99", "max")]
                lines.append(f"| {title if name == 'tooldecode' else ''} | {name} | " + " | ".join(cells)
                             + f" | {one['memory_bytes'] / 2**20:.0f} |")
    lines.append(cold(results))
    if "stress" in results:
        lines.append(cases(results["stress"]))
    lines.append(aims(results))
    return "\n".join(lines)


def plot(results, path):
    """Bars on a logarithmic axis, a panel per workload."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "peers", "font.size": 8})
    import matplotlib.pyplot as plt

    colours = {"tooldecode": "#1b6ca8", "xgrammar": "#d98032", "llguidance": "#5a9e57"}
    shown = (("build_first_mask_us", "p50", "first mask\np50"), ("build_first_mask_us", "p99", "first mask\np99"),
             ("mask_us", "mean", "mask\nmean"), ("mask_us", "p99", "mask\np99"), ("advance_us", "mean", "advance\nmean"))
    panels = [name for name in ("bfcl", "bfcl_any_order", "tools_200", "jsonschemabench") if name in results]
    figure_, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.2), sharey=True, squeeze=False)
    for axis, workload in zip(axes[0], panels, strict=True):
        for bar, (name, colour) in enumerate(colours.items()):
            one = results[workload].get(name)
            values = [figure(one, measure, what) for measure, what, _ in shown]
            axis.bar([at + 0.27 * (bar - 1) for at in range(len(shown))], values, 0.25, color=colour,
                     label=f"{name}: {one['right']} of {one['schemas']} right" if one else name)
        axis.set(yscale="log", title=workload.replace("_", " "), xticks=range(len(shown)))
        axis.set_xticklabels([label for _, _, label in shown], fontsize=7)
        axis.minorticks_off()
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.legend(fontsize=6, loc="upper right")
    axes[0][0].set_ylabel("microseconds")
    figure_.tight_layout()
    figure_.savefig(path, metadata={"Date": None})
