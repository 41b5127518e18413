"""The scripts run."""
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name, expected", [("masks.py", ["[get_weather("]), ("streaming.py", ["call_begin"]),
                                            ("generate.py", ["name='get_weather'", "\n{'city': '"]), ("vote.py", ["book_table"])])
def test_script(name, expected, tiny):
    if name in ("generate.py", "vote.py"):
        pytest.importorskip("transformers")
    ran = subprocess.run([sys.executable, SCRIPTS / name], capture_output=True, text=True, timeout=300, check=True)
    assert all(text in ran.stdout for text in expected), ran.stdout


def test_the_guide_is_cut_from_the_scripts(tiny):
    guide = (SCRIPTS.parent / "docs/python.md").read_text()
    scripts = [path.read_text() for path in SCRIPTS.glob("*.py")]
    blocks = guide.split("```python\n")[1:]
    assert len(blocks) == 7 and all(any(block.split("```")[0] in script for script in scripts) for block in blocks)
