"""The program's ranking of tokens, judged by texts whose tokens can be told by eye.

    python tests/ranks.py PROGRAM
"""
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TINY = pathlib.Path(__file__).parent.parent / "examples/data/tiny"
SHARES = (32, 24, 16, 8, 4, 2, 1)  # thirty-seconds of the vocabulary


def run(*arguments, status=0):
    command = [sys.argv[1], "ranks", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=100)
    assert done.returncode == status, (command, done.returncode, done.stderr)
    if status == 0:
        return done.stdout
    assert done.stderr.startswith("tooldecode: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_counts(folder):
    """Digits, spaces and ends of lines are tokens of their own, and so are short words."""
    tokenizer = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))
    ids = tokenizer["model"]["vocab"]
    (folder / "a.txt").write_text("1 2 1\n1 the\n", encoding="utf-8")
    with gzip.open(folder / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("2\n3\nthe\n")
    expected = {"1": 3, "Ċ": 5, "2": 2, "Ġ": 2, "3": 1, "the": 1, "Ġthe": 1}
    by_id = {ids[token]: count for token, count in expected.items()}
    counted = sorted(by_id, key=lambda token: (-by_id[token], token))
    always = sorted(token["id"] for token in tokenizer["added_tokens"])
    text = run("--text", folder / "a.txt", folder / "b.txt.gz", "--out", folder / "r.json")
    ranks = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert ranks["ids"] == always + counted, ranks
    assert ranks["counts"] == [0] * len(always) + [by_id[token] for token in counted], ranks
    assert ranks["always"] == len(always) and ranks["total"] == 15, ranks
    assert ranks["source"] == "a.txt, b.txt.gz (20 bytes)", ranks
    assert "15 tokens, 7 of 8192 different ones" in text, text


def test_held_out(folder):
    """Of two texts each is covered by the other's ranks alone: those that always rank first, and what both have."""
    (folder / "a.txt").write_text("1 1 1 the", encoding="utf-8")
    (folder / "b.txt").write_text("1 2 2 2 cat", encoding="utf-8")
    both = ("--text", folder / "a.txt", folder / "b.txt", "--held-out")
    rows = json.loads(run(*both, "--json"))["held_out"]
    ids = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert [row["text"] for row in rows] == ["a.txt", "b.txt"], rows
    counts = []
    for name in ("a.txt", "b.txt"):
        run("--text", folder / name, "--out", folder / "r.json")
        ranks = json.loads((folder / "r.json").read_text(encoding="utf-8"))
        counts.append(dict(zip(ranks["ids"], ranks["counts"])))
        counts[-1]["order"] = ranks["ids"] + sorted(set(ids.values()) - set(ranks["ids"]))
    for row, own, other in ((rows[0], counts[0], counts[1]), (rows[1], counts[1], counts[0])):
        total = sum(count for token, count in own.items() if token != "order")
        assert len(row["coverage"]) == len(SHARES)
        for entry in row["coverage"]:
            held = sum(own.get(token, 0) for token in other["order"][: entry["k"]])
            assert abs(entry["share"] - held / total) < 1e-9, (row, entry, held, total)
    assert rows[0]["coverage"][-1]["share"] < 1, "a word of one text alone ranks low in the other"
    assert "| a.txt | 100.00 % |" in run(*both)
    assert "--held-out" in run("--text", folder / "a.txt", "--held-out", status=2)


def test_coverage(folder):
    text = "".join(json.loads(line)["prompt"] + "\n" for line in (TINY / "heldout.jsonl").open(encoding="utf-8"))
    (folder / "text.txt").write_text(text, encoding="utf-8")
    (folder / "text.gz").write_bytes(gzip.compress(text.encode()))
    report = json.loads(run("--text", folder / "text.txt", "--json", "--out", folder / "one.json", "--threads", 1,
                            "--plot", folder / "plot.svg", "--vocabulary", TINY / "tokenizer.json"))
    ranks = json.loads((folder / "one.json").read_text(encoding="utf-8"))
    size = report["vocabulary_size"]
    assert size == 8192 and report["bytes"] == len(text.encode()), report
    assert report["tokens"] == ranks["total"] == sum(ranks["counts"]), report
    assert report["distinct"] == sum(count > 0 for count in ranks["counts"]), report
    for row, saved, share in zip(report["coverage"], ranks["coverage"], SHARES, strict=True):
        held = sum(ranks["counts"][: size * share // 32]) / ranks["total"]
        assert row["k"] == saved["k"] == size * share // 32, row
        assert abs(row["share"] - held) < 1e-12 and abs(saved["share"] - held) < 1e-6, (row, held)
    table = run("--text", folder / "text.gz", "--out", folder / "three.json", "--threads", 3)
    for row in report["coverage"]:
        assert f"| {row['k']} | {100 * row['share']:.2f} % |" in table, table
    again = json.loads((folder / "three.json").read_text(encoding="utf-8"))
    assert {**ranks, "source": ""} == {**again, "source": ""}
    plot = " ".join(xml.etree.ElementTree.parse(folder / "plot.svg").getroot().itertext())
    for words in ("coverage, % of the text", "frequency, % of the text", "25 %", "6.25 %", "10000"):
        assert words in plot, plot


def test_refusals(folder):
    (folder / "empty").write_text("", encoding="utf-8")
    (folder / "text").write_text("text", encoding="utf-8")
    (folder / "short.gz").write_bytes(gzip.compress(bytes(range(256)) * 40)[:-20])
    for arguments, words in (
            ((), "--text is required"), (("--text", folder / "none"), "file_unreadable"),
            (("--text", folder), "file_unreadable"), (("--text", folder / "empty"), "invalid_option: --text"),
            (("--text", folder / "short.gz"), "short.gz: byte"),
            (("--text", folder / "text", "--vocabulary", folder / "text"), "malformed_json"),
            (("--text", folder / "text", "--threads", "x"), "--threads"),
            (("--text", folder / "text", "--out", folder / "none/r.json"), "cannot be written"),
            (("--text", folder / "text", "--plot", folder), "cannot be written")):
        assert words in run(*arguments, status=2), words
    assert "--vocabulary" in run("--help")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as temporary:
                test(pathlib.Path(temporary))
            print(f"{name}: passed")
