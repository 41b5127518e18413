#!/usr/bin/env bash
# Compares XGrammar, llguidance and tooldecode on the same schemas, vocabulary and tokens, with one thread each: times,
# memory and verdicts.
#
#   bash benchmarks/peers/run.sh [--json OUT] [--plot OUT] [--readme FILE] [--workloads NAME...] [--peers NAME...]
#                                [--every N] [--limit SECONDS] [--total SECONDS]
#
# TOOLDECODE_SHARED_DATA names the data directory, by default ../shared/data. workloads.py makes the workloads,
# contender.py measures, report.py prints the tables, the aims last.
#
# A schema is right if each of its tests gets the right verdict. It is wrong if one does not, or if the contender's
# process dies. It is refused if the contender says that it cannot enforce it, or does not answer within `--limit`
# seconds (10): "too late", which is in no time below. "No text conforms" is a verdict on every test. Contenders that
# accept documents beside a schema get those of the test suite.
#
# The whole run has `--total` seconds (840). Schemas that are not reached are counted separately; the long workloads are
# shuffled, so the schemas that are reached are a fair sample. The time of an empty call of the same kind is subtracted.
# tooldecode makes a new constraint for each row, on one VocabularyIndex made before; llguidance has one tokenizer;
# XGrammar has a new compiler for each schema and, in a separate row, one compiler that keeps what it has compiled.
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
  # xgrammar depends on torch, which its masks on the host do not need (see xgrammar_peer.py).
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
    -I"$root/include" -I"$root/examples" ${eigen//-I/-isystem } "$here/tooldecode.cpp" "$root/examples/program/files.cpp" "$root/examples/program/paths.cpp" "$root/examples/program/run_record.cpp" \
    -o "$program" -lpcre2-8 -lz -pthread
fi

"$build/venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -E '^(xgrammar|llguidance) ' >&2
exec "$build/venv/bin/python" "$here/compare.py" --build "$build" --data "$data" "$@"
