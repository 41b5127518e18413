"""The page of call formats names every format of the library, and shows for each a text that it accepts.

    python tests/formats.py [PROGRAM]

Without the program only the names are compared.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALL = {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
TOOL = {"name": "get_weather", "description": "Weather forecast for a city.",
        "parameters": {"type": "object", "required": ["city"],
                       "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}


def main() -> int:
    page = (ROOT / "docs/call_formats.md").read_text(encoding="utf-8")
    source = (ROOT / "include/tooldecode/formats/named_format.ipp").read_text(encoding="utf-8")
    names = re.findall(r'^ {6}\{"([^"]+)",', source, flags=re.MULTILINE)
    listed = re.findall(r"^\| \[([^\]]+)\]\(#", page, flags=re.MULTILINE)
    shown = {name: text for name, _, text in
             re.findall(r"^### (\S+)\n(?:\n[^`\n]*`[^\n]*\n)?\n(`{3,})text\n(.*?)\n\2$", page, flags=re.DOTALL | re.MULTILINE)}
    wrong = 0
    for words, found in ("the table", listed), ("the texts", list(shown)):
        for name in sorted(set(names) ^ set(found)):
            wrong += 1
            print(f"docs/call_formats.md, {words}: {name} is only {'in the library' if name in names else 'on the page'}")
    for path in "README.md", "docs/landing.md":
        for count in re.findall(r"(\d+)\s+formats", (ROOT / path).read_text(encoding="utf-8")):
            if int(count) != len(names):
                wrong += 1
                print(f"{path}: there are {len(names)} formats, not {count}")
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder) / "rows.jsonl"
            for name, text in shown.items():
                rows.write_text(json.dumps({"id": name, "functions": [TOOL], "text": text}) + "\n", encoding="utf-8")
                ran = subprocess.run([sys.argv[1], "check", "--vocabulary", str(ROOT / "examples/data/tiny"), "--format", name,
                                      "--calls", str(rows)], capture_output=True, text=True, timeout=60, check=False)
                verdict = json.loads(ran.stdout or "{}")
                if verdict.get("calls") != [CALL]:
                    wrong += 1
                    print(f"docs/call_formats.md: {name}: {ran.stdout.strip() or ran.stderr.strip()}")
    print(f"{len(names)} formats are on their page" if wrong == 0 else f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
