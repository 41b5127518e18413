"""A plugin of pytest for llama.cpp's tools/server/tests, which leaves their files as they are, see ../llama_cpp.sh.

Models of the network are replaced by local files, a test that needs another kind of model is skipped, and the server alone
gets LLAMA_CPP_PRELOAD as its LD_PRELOAD. What each test came to, what its server said of grammars and what it answered is
written to LLAMA_CPP_REPORT.
"""
import json
import os
import re
import sys

import pytest

SMALL, CODER = os.environ["LLAMA_CPP_SMALL_MODEL"], os.environ["LLAMA_CPP_CODER_MODEL"]
PRELOAD = os.environ["LLAMA_CPP_PRELOAD"]
# What a model must be able to do that neither local file can.
OTHERS = {"bert-bge": "embeddings", "jina-reranker": "ranking", "tinygemma3": "images", "test-preset-ci": "a preset of the network",
          "DeepSeek-R1": "reasoning", "-00001-of-": "a file in parts"}
tests = {}
current = None


def local_model(name):
    """The file for a model's name; a test whose model has no stand-in is skipped."""
    for part, what in OTHERS.items():
        if part in name:
            pytest.skip(f"no local model: {what} ({name})")
    return CODER if "Qwen2.5" in name else SMALL


def plain(body):
    """What a server answered, without times and names that differ from one run to the next."""
    if not isinstance(body, dict):
        return body if isinstance(body, str) else None
    kept = {key: body[key] for key in ("content", "tokens", "stop_type", "error", "prompt") if key in body}
    choices = [{"text": choice.get("text"), "finish_reason": choice.get("finish_reason"),
                "delta": choice.get("delta"), "message": choice.get("message")} for choice in body.get("choices") or []]
    text = json.dumps(kept | {"choices": choices}, sort_keys=True)
    return re.sub(r'"id": "[^"]*"', '"id": ""', text)


def patch(utils):
    start, request, stream = (getattr(utils.ServerProcess, name) for name in ("start", "make_request", "make_stream_request"))

    def start_local(self, *arguments, **named):
        if self.model_hf_repo or self.model_url:
            self.model_file = local_model(f"{self.model_hf_repo or self.model_url} {self.model_hf_file or ''}")
            self.model_hf_repo = self.model_hf_file = self.model_url = None
        self.offline, self.n_threads = True, 1  # threads that wait for each other crawl beside other work
        if self.mmproj_url:
            pytest.skip("no local model: images")
        if not PRELOAD:
            return start(self, *arguments, **named)
        os.environ["LD_PRELOAD"] = PRELOAD
        try:
            return start(self, *arguments, **named)
        finally:
            del os.environ["LD_PRELOAD"]

    def noted(answer):
        if current and answer[0] != "/health":  # which is asked until there is a server
            tests[current]["answers"].append(answer)

    def make_request(self, method, path, *arguments, **named):
        result = request(self, method, path, *arguments, **named)
        noted([path, result.status_code, plain(result.body)])
        return result

    def make_stream_request(self, method, path, *arguments, **named):
        for part in stream(self, method, path, *arguments, **named):
            noted([path, "stream", plain(part)])
            yield part

    def download_file(url, output_file_path=None):
        if "lora" in url.lower():
            pytest.skip(f"no local model: {url}")
        return local_model(url)

    utils.ServerProcess.start, utils.ServerProcess.make_request = start_local, make_request
    utils.ServerProcess.make_stream_request = make_stream_request
    utils.download_file = download_file
    utils.ServerPreset.load_all = staticmethod(lambda: None)


def pytest_configure(config):
    sys.path.insert(0, os.getcwd())
    import utils

    patch(utils)


def pytest_runtest_logstart(nodeid):
    global current
    current = nodeid
    tests[nodeid] = {"outcome": "passed", "why": "", "enforced": 0, "refused": [], "answers": []}


def pytest_runtest_logreport(report):
    one = tests[report.nodeid]
    if report.outcome != "passed" and one["outcome"] == "passed":
        one["outcome"] = report.outcome
        one["why"] = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)[-400:]
    if report.when == "teardown":  # has what the server wrote until it was stopped
        one["enforced"] = len(re.findall("enforces this program's grammars", report.capstdout))
        one["refused"] = re.findall(r"llama\.cpp enforces this grammar itself: (.*)", report.capstdout)


def pytest_sessionfinish():
    with open(os.environ["LLAMA_CPP_REPORT"], "w", encoding="utf-8") as file:
        json.dump(tests, file)
