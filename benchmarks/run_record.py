"""The record of how a file of results was made, for scripts that write one."""

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
    """A word of a command line without what differs between machines."""
    for folder, name in ((DATA, "DATA"), (str(ROOT.parent / "shared/data"), "DATA"), ("../shared/data", "DATA"), (f"{ROOT}/", "")):
        if word.startswith(folder):
            word = name + word[len(folder):]
    return word


def run_record(program, packages, command):
    """The record that `program` prints about itself (examples/program/run_record.hpp), with the versions of the
    measured Python packages and the command line of the script."""
    record = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    record["peers"] |= {package: importlib.metadata.version(package) for package in packages}
    record["peers"]["python"] = platform.python_version()
    record["command"] = shlex.join(map(plain, command))
    return record
