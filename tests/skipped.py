"""What tests/run.sh says at its end of tests that were left out.

python tests/skipped.py [PROGRAM]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="x">
<testcase name="fine" status="run"><system-out>ok</system-out></testcase>
<testcase name="grammars" status="run"><system-out>SKIPPED: Grammar: reads what it needs needs shared data vocab/a.gz
SKIPPED: Grammar: reads &lt;b&gt; needs shared data vocab/b.gz
SKIPPED: Grammar: reads c needs shared data bfcl/c.json
SKIPPED: Grammar: reads d needs llama.cpp's files
All tests passed</system-out></testcase>
<testcase name="python.serve" status="run"><system-out>SKIPPED: the package openai is not installed; all else passed
</system-out></testcase>
<testcase name="python.lark" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>SKIPPED: lark.py needs a package
</system-out></testcase>
<testcase name="cuda_device" status="notrun"><skipped message="x"/><system-out>warning:
  SKIPPED: no CUDA device
warning:
  SKIPPED: no CUDA device
</system-out></testcase>
<testcase name="mute" status="notrun"><skipped message="x"/><system-out></system-out></testcase>
</testsuite>
"""
EXPECTED = """grammars, in part: 3 need shared data: vocab, bfcl; 1 needs llama.cpp's files
python.serve, in part: the package openai is not installed; all else passed
python.lark: lark.py needs a package
cuda_device: no CUDA device
mute: says no reason
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        results, noted = pathlib.Path(folder) / "results.xml", pathlib.Path(folder) / "noted"
        results.write_text(RESULTS, encoding="utf-8")
        listed = subprocess.run([sys.executable, ROOT / "tests/support/skipped.py", results], capture_output=True, text=True,
                                check=True, timeout=60).stdout
        assert listed == EXPECTED, listed
        # The steps that run.sh's scripts skip.
        subprocess.run(["bash", "-c", 'source cmake/install_packages.sh; say "SKIPPED: nvcc is not here"; say built'],
                       check=True, cwd=ROOT, timeout=60, capture_output=True,
                       env={**os.environ, "TOOLDECODE_SKIPPED": str(noted)})
        assert noted.read_text(encoding="utf-8") == "nvcc is not here\n", noted.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
