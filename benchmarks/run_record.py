"""What a file of results says about its making, where a script writes it."""

import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = os.environ.get("TOOLDECODE_SHARED_DATA", str(ROOT / "../shared/data"))


def plain(word):
    """A word of a command line without what differs from one machine to the next."""
    for folder, name in ((DATA, "DATA"), (str(ROOT.parent / "shared/data"), "DATA"), ("../shared/data", "DATA"), (f"{ROOT}/", "")):
        if word.startswith(folder):
            word = name + word[len(folder):]
    return word


def run_record(program, packages, command):
    """The record that `program`, a command of this library's, prints of itself (examples/program/run_record.hpp), with
    the versions of the Python packages that are measured beside it and the command line of who asks."""
    record = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    record["peers"] |= {package: importlib.metadata.version(package) for package in packages}
    record["peers"]["python"] = platform.python_version()
    record["command"] = shlex.join(map(plain, command))
    return record
