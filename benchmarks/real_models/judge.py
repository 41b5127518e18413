"""Judges answers with the AST checker of the Berkeley leaderboard's package.

python3 benchmarks/real_models/judge.py --checker FOLDER --data ROWS.jsonl [--data ...] [--into FILE] ANSWERS.jsonl

ANSWERS.jsonl is the output of `tooldecode eval --answers` for those rows; Python's `ast` reads the calls from its
texts. FOLDER has the package `bfcl-eval`, unpacked or installed without its dependencies, which the checker does not
need:

python3 -m pip install --no-deps --target FOLDER bfcl-eval==2026.3.23
"""

import argparse
import ast
import collections
import json
import pathlib
import sys
import types


def load_checker(folder):
    sys.path.insert(0, folder)
    # The checker imports a table of models' settings, with every provider's client, only to see whether a model writes
    # "_" for "." in names. These models do not.
    settings = types.ModuleType("bfcl_eval.constants.model_config")
    settings.MODEL_CONFIG_MAPPING = collections.defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
    sys.modules[settings.__name__] = settings
    try:
        from bfcl_eval.constants.enums import Language
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    except ImportError as error:
        sys.exit(f"judge.py: {folder} has no bfcl-eval: {error}")
    return lambda *row, category: ast_checker(*row, Language.PYTHON, category, "tooldecode")


def read_calls(text):
    """Calls in the checker's form, a list of {name: {parameter: value}}; ValueError if the text is not one."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python: {error}")
    calls = []
    for node in body.elts if isinstance(body, (ast.List, ast.Tuple)) else [body]:
        if not isinstance(node, ast.Call):
            raise ValueError("no call")
        arguments = {}
        for keyword in node.keywords:
            try:
                arguments[keyword.arg] = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, SyntaxError, RecursionError):
                arguments[keyword.arg] = ast.unparse(keyword.value)
        if node.args:
            raise ValueError("an argument without a name")
        calls.append({ast.unparse(node.func): arguments})
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--checker", required=True, help="directory of the package bfcl-eval")
    parser.add_argument("--data", action="append", required=True, help="rows, as eval read them")
    parser.add_argument("--into", type=pathlib.Path, help="add the counts to this file of `eval --json`")
    parser.add_argument("answers")
    arguments = parser.parse_args()
    check = load_checker(arguments.checker)
    rows = {}
    for path in arguments.data:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[row["id"]] = row

    counts = collections.defaultdict(collections.Counter)
    others = collections.defaultdict(list)
    for line in pathlib.Path(arguments.answers).read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        row = rows.get(answer.get("id"))  # the first line has the settings
        if row is None:
            continue
        key = (row["category"], answer["method"])
        # The leaderboard's documents have its names for types.
        documents = [{**function, "parameters": function["original_parameters"]} for function in row["functions"]]
        try:
            verdict = check(documents, read_calls(answer["text"]), row["answers"], category=row["category"])
            valid, why = verdict["valid"], verdict.get("error_type", "")
        except ValueError as error:
            valid, why = False, str(error)
        counts[key]["rows"] += 1
        counts[key]["right"] += valid
        counts[key]["classify"] += answer["class"] == "correct"
        if valid != (answer["class"] == "correct"):
            counts[key]["apart"] += 1
            others[why or answer["class"] + ": " + answer["difference"]].append(answer["id"])
    if not counts:
        sys.exit("judge.py: no answer is of a row of the data")

    print("| rows of | method | rows | right | by classify | judged differently |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for (category, method), count in counts.items():
        share = 100 / count["rows"]
        print(f"| {category} | {method} | {count['rows']} | {count['right'] * share:.1f} % | "
              f"{count['classify'] * share:.1f} % | {count['apart']} |")
    for why, ids in sorted(others.items(), key=lambda item: -len(item[1]))[:20]:
        print(f"judged differently, {len(ids)}: {why} ({ids[0]})")
    if arguments.into:
        results = json.loads(arguments.into.read_text(encoding="utf-8"))
        results["judged"] = [{"category": category, "method": method, **count}
                             for (category, method), count in counts.items()]
        arguments.into.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
