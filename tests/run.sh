#!/usr/bin/env bash
# All tests: with optimisation the program, the examples and what computes; all unit tests with address
# and undefined-behaviour sanitizers; what threads share with the thread sanitizer; and a clang++ build of every
# header, the program and the benchmarks.
#   bash tests/run.sh
set -uo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
jobs=$(nproc)
failed=()

step() {  # step <name> <command...>
  local name=$1
  shift
  say "$name"
  if ! "$@"; then
    failed+=("$name")
    say "FAILED: $name"
    return 1
  fi
}
configure() {  # configure <preset> [<CMake arguments>...]
  cmake --preset "$1" -DTOOLDECODE_TESTS=ON -DTOOLDECODE_UNITY_TESTS=ON "${@:2}" > "build/$1.log" 2>&1 ||
    { cat "build/$1.log" >&2; return 1; }
}

install_packages g++ cmake make git pkg-config libeigen3-dev nlohmann-json3-dev catch2 libbenchmark-dev \
  libpcre2-dev libcli11-dev libcpp-httplib-dev zlib1g-dev clang libclang-rt-dev clang-format-16 \
  python3 python3-jsonschema || exit 1
mkdir -p build

if step "1/8 g++: configure" configure release &&
  step "2/8 g++: build" cmake --build build/release --target tooldecode_program examples optimised_tests -j "$jobs"; then
  step "3/8 g++: tests" \
    ctest --test-dir build/release --output-on-failure -j "$jobs" -LE 'sanitized|threads'
fi
# clang++ compiles sanitized code in half of g++'s time.
sanitizing=()
command -v clang++ > /dev/null && sanitizing=(-DCMAKE_CXX_COMPILER=clang++)
if step "4/8 sanitizers: build" configure asan "${sanitizing[@]}" &&
  cmake --build build/asan --target unit_tests -j "$jobs"; then
  step "5/8 sanitizers: tests" \
    ctest --test-dir build/asan --output-on-failure -j "$jobs" -L unit
else
  failed+=("sanitizers")
fi
if step "6/8 thread sanitizer: build" configure tsan &&
  cmake --build build/tsan --target test_threads -j "$jobs"; then
  step "7/8 thread sanitizer: test" ctest --test-dir build/tsan --output-on-failure -R '^threads$'
else
  failed+=("thread sanitizer")
fi
if command -v clang++ > /dev/null; then
  if step "8/8 clang++: every header, the program and the benchmarks" configure clang; then
    cmake --build build/clang --target header_tests tooldecode_program benchmarks -j "$jobs" || failed+=("clang++")
  fi
else
  say "SKIPPED: clang++ is not installed"
fi

if [ ${#failed[@]} -eq 0 ]; then
  say "all tests passed"
else
  say "failed: ${failed[*]}"
  exit 1
fi
