"""Draws the outcomes of a real model's answers by method: Tool Decoding's Figures 3, 5 and 6 as stacked bars.

    python3 benchmarks/real_models/figures.py [--results FOLDER] [--out FILE.svg]

Needs matplotlib. The numbers are those of the files of benchmarks/results that FILES names.
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "results"
FILES = {"smollm2_bfcl": "SmolLM2-135M, BFCL, one call of one function",
         "qwen_coder_0.5b_apibank": "Qwen2.5-Coder-0.5B, API-Bank, levels 1 and 2",
         "qwen_coder_1.5b_three": "Qwen2.5-Coder-1.5B, BFCL, three and more required parameters"}
PARTS = {"right": "#2a9d55", "value": "#f2c14e", "key": "#f08a4b", "format": "#d1495b", "selection": "#6c5b9e",
         "awareness": "#8d99ae"}


def shares(one: dict) -> dict[str, float]:
    return {"right": one["accuracy"], **{part: one["errors"][part] for part in list(PARTS)[1:]}}


def draw(results: Path, out: Path):
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "real models", "font.size": 8})
    found = {name: json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["methods"] for name in FILES}
    figure, panels = plt.subplots(len(FILES), 1, figsize=(7, 7), sharex=True, layout="constrained",
                                  height_ratios=[len(methods) for methods in found.values()])
    for panel, (name, methods) in zip(panels, found.items(), strict=True):
        left = [0.0] * len(methods)
        for part, colour in PARTS.items():
            widths = [100 * shares(one)[part] for one in methods.values()]
            bars = panel.barh(list(methods), widths, left=left, color=colour, label=part, height=0.7)
            panel.bar_label(bars, [f"{width:.0f}" if width >= 4 else "" for width in widths], label_type="center",
                            fontsize=7)
            left = [at + width for at, width in zip(left, widths, strict=True)]
        panel.invert_yaxis()
        panel.set_title(f"{FILES[name]} ({next(iter(methods.values()))['samples']} rows)", loc="left", fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set(xlim=(0, 100), xlabel="% of answers")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(PARTS), frameon=False)
    figure.savefig(out, metadata={"Date": None})
    print(f"{out}: {sum(map(len, found.values()))} bars")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS / "outcomes.svg")
    options = parser.parse_args()
    try:
        draw(options.results, options.out)
    except (OSError, KeyError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
