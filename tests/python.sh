#!/usr/bin/env bash
# Builds the Python package's wheel, installs it where nothing else is, and runs its tests.
#
#   bash tests/python.sh [WHEEL]     the tests of a wheel that is there already
#
# With NumPy and pytest alone, with llama-cpp-python and SmolLM2, and with the torch, transformers, vLLM and SGLang that
# this Python has. TOOLDECODE_ENGINES=1 fetches those from PyPI once, 7 GB, into build/python. What is left out is said.
# Without a network it says so and ends with exit code 77.
set -euo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
install_packages g++ ninja-build ccache libeigen3-dev libpcre2-dev python3-venv python3-dev

folder=$PWD/build/python
mkdir -p "$folder"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
log=$folder/log

venv() {  # venv <name> <packages...>: one that has these, made anew where they are others
  local at=$folder/$1
  shift
  [ "$(cat "$at/ready" 2> /dev/null)" = "$*" ] && return
  rm -rf "$at"
  python3 -m venv ${system:+--system-site-packages} "$at" && "$at/bin/pip" install -q "$@" > "$log" 2>&1 ||
    { cat "$log" >&2; return 1; }
  echo "$*" > "$at/ready"
}
venv_add() {  # venv_add <name> <packages...>: without what they say they need
  local at=$folder/$1
  shift
  [ "$(cat "$at/added" 2> /dev/null)" = "$*" ] && return
  "$at/bin/pip" install -q --no-deps "$@" > "$log" 2>&1 || { cat "$log" >&2; return 1; }
  echo "$*" > "$at/added"
}
has() { "$1/bin/python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$2') is None)"; }
tests() {  # tests <venv> <files...>
  local at=$folder/$1
  shift
  "$at/bin/pip" install -q --no-deps --force-reinstall "$wheel"
  (cd python/tests && HF_HUB_OFFLINE=1 "$at/bin/python" -m pytest -q -rs -p no:cacheprovider "$@")
}

# At fixed places, so that ccache knows what it has compiled.
if ! venv builder scikit-build-core==1.1.2 nanobind==3.1.0; then
  grep -qiE 'connection|resolution|retries|network|timed out' "$log" || exit 1
  say "SKIPPED: the Python package; PyPI cannot be reached"
  exit 77
fi
# What judges structural tags in tests/structural_tags.py, without the torch that it says it needs.
judge="xgrammar==0.2.8 apache-tvm-ffi==0.1.11 numpy pydantic"
if [ "$(cat "$folder/judge/ready" 2> /dev/null)" != "$judge" ]; then
  rm -rf "$folder/judge"
  # shellcheck disable=SC2086
  "$folder/builder/bin/pip" install -q --target "$folder/judge" ${judge#* } &&
    "$folder/builder/bin/pip" install -q --target "$folder/judge" --no-deps ${judge%% *}
  echo "$judge" > "$folder/judge/ready"
fi
if [ $# -gt 0 ]; then
  wheel=$1
else
  rm -rf "$folder/wheel"
  say "the wheel"
  CMAKE_GENERATOR=Ninja CMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true) \
    CMAKE_BUILD_PARALLEL_LEVEL=${TOOLDECODE_JOBS:-$(nproc)} PATH=$folder/builder/bin:$PATH \
    "$folder/builder/bin/pip" wheel --no-build-isolation --no-deps -w "$folder/wheel" . > "$log" 2>&1 ||
    { tail -60 "$log" >&2; exit 1; }
  wheel=$(echo "$folder"/wheel/*.whl)
  say "$(basename "$wheel"), $(stat -c %s "$wheel") bytes"
fi
venv plain pytest==9.2.0 numpy
tests plain

# Around the llama.cpp that examples/llama_cpp.sh has built, in place of one that takes minutes more.
if config=$(bash examples/llama_cpp.sh) && bash examples/models.sh smollm2 > /dev/null; then
  CMAKE_ARGS=-DLLAMA_BUILD=OFF venv llama_cpp pytest==9.2.0 numpy llama-cpp-python==0.3.36
  LLAMA_CPP_LIB_PATH=${config%/cmake/llama} tests llama_cpp test_llama_cpp.py
else
  say "SKIPPED: tests with llama-cpp-python"
fi

if [ "${TOOLDECODE_ENGINES:-}" = 1 ]; then
  engines=$folder/engines
  # What importing their structured outputs and their servers asks for, of hundreds of packages that serving would.
  say "torch, transformers, vLLM and SGLang: 7 GB, unless they are there"
  venv engines torch==2.14.0 transformers==5.19.0 numpy pytest==9.2.0 apache-tvm-ffi==0.1.11 lark==1.2.2 \
    interegular==0.3.3 openai==2.25.0 aiohttp blake3 cachetools cbor2 cloudpickle einops fastapi jsonschema msgspec orjson \
    partial_json_parser pillow prometheus_client psutil py-cpuinfo pydantic pyzmq regex requests uvicorn watchfiles
  venv_add engines vllm==0.33.0 sglang==0.5.23 xgrammar==0.2.8 llguidance==1.9.1 compressed-tensors==0.20.0 dill==0.4.1 \
    gguf==0.19.0 ijson==3.6.0 ipython==9.18.1 loguru==0.7.3 mistral_common==1.13.1 openai-harmony==0.0.8 pybase64==1.5.1 \
    pycountry==26.2.16 pydantic-extra-types==2.11.1 sentencepiece==0.2.3 torchvision==0.29.2 traitlets uvloop==0.23.0 \
    cffi==2.1.1 pycparser==3.12 python-multipart==0.0.34 setproctitle==1.3.8 soundfile==0.13.1
  tests engines
  exit
fi
system=yes venv other pytest==9.2.0 numpy
if has "$folder/other" transformers && has "$folder/other" torch; then
  tests other
else
  say "SKIPPED: tests with transformers, vLLM and SGLang: not installed for $(command -v python3); TOOLDECODE_ENGINES=1 fetches them"
fi
