"""What the tests of clients share: where the server is, and what is asked of it.

Each script takes the server's URL and is run by run.py. Its model is the one that comes with the program, which knows the
tools that are asked for here, and answers what it is told by a tool with a text where that is a farewell.
"""
import importlib.util
import sys
import time

URL = sys.argv[1] + "/v1" if len(sys.argv) > 1 else ""
KEY = "any"
MODEL = "tiny"
WEATHER = "What is the weather in Oslo for two days?"
TABLE = "Please book a table at Luigi's for four people, outdoors."
GOODBYE = "Thank you, that was all."

WEATHER_TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather forecast for a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"], "additionalProperties": False}}}


def need(package):
    """Ends a script whose package is missing, loudly."""
    if importlib.util.find_spec(package) is None:
        print(f"SKIPPED: the package {package} is not installed")
        sys.exit(77)


def run(tests):
    """Runs what a script has of functions test_*."""
    for name, test in list(tests.items()):
        if name.startswith("test_"):
            start = time.monotonic()
            test()
            print(f"{name}: passed in {time.monotonic() - start:.1f} s", flush=True)
