"""benchmarks/constraint/hostile.py: what it measures of this library's own program, and the record in its file.

python tests/hostile.py build/release/examples/tooldecode
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "hostile.json"
        done = subprocess.run([sys.executable, ROOT / "benchmarks/constraint/hostile.py", sys.argv[1], "--only", "enum of 80,000",
                               "--peers", "tooldecode", "--json", out], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        results = json.loads(out.read_text(encoding="utf-8"))
    assert results["made_by"]["command"].startswith("python3 benchmarks/constraint/hostile.py "), results["made_by"]
    assert results["made_by"]["peers"].keys() == {"python"}, results["made_by"]
    (name, family), = results["families"].items()
    taken = family["tooldecode"]
    # 80,000 texts of six bytes: no automaton of them is smaller than the text, none needs a gigabyte.
    assert taken["answer"] == "built" and family["bytes"] > 500_000, (name, family)
    assert 2 < taken["memory_mb"] < 500 and taken["memory_mb"] < taken["peak_mb"], (name, family)
    assert f"{taken['memory_mb']:.0f} MB" in done.stdout, done.stdout
    print(f"{name}: {taken['memory_mb']} MB")


if __name__ == "__main__":
    main()
