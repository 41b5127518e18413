#!/usr/bin/env bash
# Runs XGrammar, llguidance and tooldecode on the same schemas, vocabulary and tokens, one thread each, and prints what
# they take and what they get right.
#
#   bash benchmarks/peers/run.sh [--json OUT] [--plot OUT] [--readme FILE] [--workloads NAME...] [--peers NAME...]
#                                [--every N] [--limit SECONDS] [--total SECONDS]
#
# The data's folder is TOOLDECODE_SHARED_DATA, by default ../shared/data; workloads.py has the workloads, contender.py
# what is measured, report.py the table of aims, printed last. A schema is right where every one of its tests gets the
# right verdict, wrong where one does not or the contender's process dies, and refused where the contender says that it
# cannot do it, or has not answered in `--limit` seconds (10): "too late", and in no time below. That no text conforms is
# a verdict on every test. Schemas of the test suite that refer to its own documents have them beside them, for contenders
# that take any. Everything together has
# `--total` seconds (840); schemas that are not reached are counted by themselves, and the long workloads are shuffled, so
# that those reached are a fair sample. Times are without what an empty call of the same kind takes. Ours is a new
# constraint for each row, on one VocabularyIndex, made before; llguidance has one tokenizer; XGrammar a new compiler for
# each schema and, in a row of its own, one compiler that keeps what it has compiled. Each has one thread.
# Needs Python 3.10, g++ 12, Eigen, PCRE2 and zlib.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/peers
data=${TOOLDECODE_SHARED_DATA:-$root/../shared/data}
mkdir -p "$build"
if [ ! -e "$data/vocab/qwen2.json.gz" ]; then
  echo "needs shared data: $data/vocab/qwen2.json.gz (set TOOLDECODE_SHARED_DATA)" >&2
  exit 77
fi

packages="apache-tvm-ffi numpy pydantic jsonschema tiktoken matplotlib"
if [ "$(cat "$build/venv/ready" 2>/dev/null)" != "$packages" ]; then
  echo "Installing XGrammar and llguidance into $build/venv" >&2
  python3 -m venv "$build/venv"
  # xgrammar's own dependencies include torch, which its masks on the host do not need (see xgrammar_peer.py).
  "$build/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps xgrammar llguidance
  # shellcheck disable=SC2086
  "$build/venv/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" > "$build/venv/ready"
fi

program=$build/tooldecode
if [ ! -e "$program" ] || [ -n "$(find "$here/tooldecode.cpp" "$root/include" "$root/examples/program" -newer "$program" -print -quit)" ]; then
  echo "Compiling $program" >&2
  eigen=$(pkg-config --cflags-only-I eigen3 2>/dev/null || echo -I/usr/include/eigen3)
  flags="-std=c++20 -O3 -march=native -DNDEBUG"
  # shellcheck disable=SC2086
  ${CXX:-g++} $flags -DTOOLDECODE_COMPILER_FLAGS="\"$flags\"" -DTOOLDECODE_EXAMPLE_DATA="\"$root/examples/data\"" \
    -I"$root/include" -I"$root/examples" ${eigen//-I/-isystem } "$here/tooldecode.cpp" "$root/examples/program/paths.cpp" "$root/examples/program/run_record.cpp" \
    -o "$program" -lpcre2-8 -lz -pthread
fi

"$build/venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -E '^(xgrammar|llguidance) ' >&2
exec "$build/venv/bin/python" "$here/compare.py" --build "$build" --data "$data" "$@"
