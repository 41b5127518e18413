"""Clients of OpenAI's API, each asking one and the same server as its users do.

    python tests/clients/run.py PROGRAM [NAME...]

Each is a script of its own, with_NAME.py, run at the same time as the others; one whose package is missing is skipped,
loudly. tests/clients.sh has the packages.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import serve  # noqa: E402  pylint: disable=wrong-import-position


def main():
    serve.ARGUMENTS.program, *names = sys.argv[1:]
    scripts = [path for path in sorted(HERE.glob("with_*.py"))
               if not names or path.stem.removeprefix("with_") in names]
    assert scripts, names
    failed, skipped = [], []
    with serve.Server("--timeout", "300") as server:
        running = [(script, subprocess.Popen([sys.executable, script, server.url], stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True, encoding="utf-8"))
                   for script in scripts]
        for script, process in running:
            text, _ = process.communicate(timeout=600)
            print(f"{script.stem}:\n{text}", end="", flush=True)
            if process.returncode == 77:
                skipped.append(script.stem)
            elif process.returncode != 0:
                failed.append(script.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")
    if skipped:
        print(f"SKIPPED: {', '.join(skipped)}; all else passed")
        sys.exit(77)


if __name__ == "__main__":
    main()
