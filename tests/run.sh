#!/usr/bin/env bash
# All tests: kernels with nvcc, where it is, and on a GPU, where there is one; a clang++ build of every header, the
# program, the benchmarks and the examples, which run; what threads share with the thread sanitizer; all unit tests
# with address and undefined-behaviour sanitizers; with optimisation the program and what computes.
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

# What a machine may lack goes first, so that what ends the run are tests that it has run.
PATH=$PATH:/usr/local/cuda/bin  # where the toolkit is, unless it is on the path already
if command -v nvcc > /dev/null; then
  if step "1/11 nvcc: kernels, for three architectures" configure cuda "-DCMAKE_CUDA_ARCHITECTURES=75;90;100" &&
    cmake --build build/cuda --target compiled_with_nvcc -j "$jobs"; then
    step "2/11 nvcc: tests on a GPU" ctest --test-dir build/cuda --output-on-failure -L gpu
  else
    failed+=("nvcc")
  fi
else
  say "SKIPPED: nvcc is not installed"
fi
if command -v clang++ > /dev/null; then
  if step "3/11 clang++: every header, the program, the examples and the benchmarks" configure clang &&
    cmake --build build/clang --target compiled_with_clang -j "$jobs"; then
    step "4/11 clang++: what the examples print" \
      ctest --test-dir build/clang --output-on-failure -j "$jobs" -L examples
  else
    failed+=("clang++")
  fi
else
  say "SKIPPED: clang++ is not installed"
fi
if step "5/11 thread sanitizer: build" configure tsan &&
  cmake --build build/tsan --target test_threads -j "$jobs"; then
  step "6/11 thread sanitizer: test" ctest --test-dir build/tsan --output-on-failure -R '^threads$'
else
  failed+=("thread sanitizer")
fi
# clang++ compiles sanitized code in half of g++'s time, and has libFuzzer: a minute for each reader of outside input.
sanitizing=()
command -v clang++ > /dev/null && sanitizing=(-DCMAKE_CXX_COMPILER=clang++ -DTOOLDECODE_FUZZ=ON)
if step "7/11 sanitizers: build" configure asan "${sanitizing[@]}" &&
  cmake --build build/asan --target unit_tests -j "$jobs"; then
  step "8/11 sanitizers: tests" \
    ctest --test-dir build/asan --output-on-failure -j "$jobs" -L unit
else
  failed+=("sanitizers")
fi
if step "9/11 g++: configure" configure release &&
  step "10/11 g++: build" cmake --build build/release --target optimised_tests -j "$jobs"; then
  step "11/11 g++: tests" \
    ctest --test-dir build/release --output-on-failure -j "$jobs" -LE 'sanitized|threads|examples'
fi

if [ ${#failed[@]} -eq 0 ]; then
  say "all tests passed"
else
  say "failed: ${failed[*]}"
  exit 1
fi
