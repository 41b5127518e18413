#!/usr/bin/env bash
# Builds tests, benchmark and library of the CUDA kernels with nvcc alone. Runs the tests, the benchmark, the comparison
# with PyTorch, the tests of its operators, and the tests under compute-sanitizer on the GPU of this machine, and prints
# which of the aims hold. It ends within ten minutes, whatever hangs.
#
#   bash benchmarks/cuda/run.sh --pack    in a checkout: copies the headers that the tests need, and the commit's name,
#                                         into build/cuda_headers; take that directory to a machine that lacks them
#   OUT=FOLDER bash benchmarks/cuda/run.sh [--limit SECONDS] [--quick]
#                                         on the machine with the GPU. --limit is for the whole run (570); each step
#                                         may take its share (with two processors the build alone needs --limit
#                                         3600). --quick skips compute-sanitizer
#   COMMIT=NAME   the commit of the files, if git on that machine names another
#   bash benchmarks/cuda/run.sh --help
#
# Results are in benchmarks/results, below FOLDER if OUT is set. cuda_steps.json has the steps and how they ended, and
# is rewritten after each step. cuda.json has the measurements, and is rewritten after each kernel. cuda_model.json has
# the speed of a whole model, cuda_profile.csv the counters of ncu for the kernels with an aim, cuda.log the output. A
# step that lacks Catch2 or time fails, and the others still run. Exit status: 0 if every step passed, 1 if one did not,
# 2 for wrong arguments, 3 if everything is built and there is no GPU.
set -uo pipefail
cd "$(dirname "$0")/../.."
started=$SECONDS
limit=570
is_quick=""
export build=build/cuda_benchmark packed=build/cuda_headers
export results=${OUT:+$OUT/}benchmarks/results

pack() {
  local folder file missing=0
  rm -rf "$packed"
  mkdir -p "$packed"
  for folder in /usr/include/catch2 /usr/include/nlohmann /usr/include/eigen3/Eigen; do
    cp -r "$folder" "$packed/" || missing=1
  done
  for file in /usr/lib/libCatch2.a /usr/lib/*/libCatch2.a /usr/local/lib/libCatch2.a; do  # of Catch2 3
    [ ! -e "$file" ] || cp "$file" "$packed/"
  done
  git describe --always --dirty > "$packed/commit" || missing=1
  du -sh "$packed"
  return $missing
}

while [ $# -gt 0 ]; do
  case $1 in
    --limit) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "--limit needs seconds" >&2; exit 2; }; limit=$2; shift 2 ;;
    --pack) pack; exit ;;
    --quick) is_quick=yes; shift ;;
    --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' benchmarks/cuda/run.sh; exit ;;
    *) echo "unknown: $1; see --help" >&2; exit 2 ;;
  esac
done

# ---- steps: each is bounded and recorded

mkdir -p "$results" || exit 2
results=$(cd "$results" && pwd)
export log=$results/cuda.log
: > "$log"
rm -f "$results/cuda.json"

say() { printf '== [%3d s] %s\n' "$((SECONDS - started))" "$*" | tee -a "$log"; }

failed=0
names=() outcomes=() seconds_of=()
machine="" driver="" toolkit="" compiler="" commit="" is_complete=false
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)

quoted() { local text=${1//\\/\\\\}; text=${text//\"/\\\"}; printf '"%s"' "${text//[[:cntrl:]]/ }"; }
version() { sed -n 's/.*string_view version.*"\([0-9.]*\)".*/\1/p' include/tooldecode/version.hpp; }
made_by() {  # the record that all results have
  local processor memory system
  processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1)
  memory=$(awk '/^MemTotal/ {printf "%.1f", $2 / 1048576}' /proc/meminfo 2> /dev/null)
  system="$(uname -sr) $(uname -m), $(. /etc/os-release 2> /dev/null && echo "$PRETTY_NAME")"
  printf '{"commit": %s, "date": %s, "compiler": %s, "flags": %s, "tooldecode": %s, "command": %s, ' \
    "$(quoted "${commit/%-dirty/+changes}")" "$(quoted "$date")" \
    "$(quoted "g++ $(g++ -dumpfullversion 2> /dev/null), nvcc $toolkit")" \
    "$(quoted "-std=c++20 -O3 -arch=sm_${target:-}")" "$(quoted "$(version)")" \
    '"bash benchmarks/cuda/run.sh"'
  printf '"machine": {"processor": %s, "cores": %d, "memory_gib": %s, "system": %s, "gpu": %s, "driver": %s}}' \
    "$(quoted "${processor:-$(uname -m)}")" "$(nproc)" "${memory:-0}" "$(quoted "$system")" "$(quoted "$machine")" \
    "$(quoted "$driver")"
}
write_steps() {
  local i comma=""
  {
    echo '{'
    echo ' "question": "What a run of all that concerns the CUDA kernels did, step by step",'
    printf ' "made_by": %s,\n' "$(made_by)"
    for i in date commit machine driver toolkit compiler; do printf ' "%s": %s,\n' "$i" "$(quoted "${!i}")"; done
    printf ' "command": "bash benchmarks/cuda/run.sh",\n "limit_seconds": %d,\n' "$limit"
    printf ' "is_complete": %s,\n "steps": [' "$is_complete"
    for i in "${!names[@]}"; do
      printf '%s\n  {"step": %s, "outcome": %s, "seconds": %d}' "$comma" "$(quoted "${names[i]}")" \
        "$(quoted "${outcomes[i]}")" "${seconds_of[i]}"
      comma=,
    done
    printf '\n ]\n}\n'
  } > "$results/cuda_steps.json.new" && mv "$results/cuda_steps.json.new" "$results/cuda_steps.json"
}
note() {  # note <step> <outcome> [<seconds>]
  names+=("$1") outcomes+=("$2") seconds_of+=("${3:-0}")
  case $2 in passed | passed,* | SKIPPED*) ;; *) failed=1 ;; esac
  say "$2: $1"
  write_steps
}
pid=""
end_all() {  # ends the processes of a step; `timeout` has made a group of them
  [ -z "$pid" ] || kill -KILL -- "-$pid" 2> /dev/null
  pid=""
}
trap 'end_all; note "the run" "BROKEN OFF"; exit 1' TERM INT HUP

# step <name> <share> <function or command...>: bounded by its share of the limit, in seconds of 570, and by the time
# that is left. The run continues even if the driver keeps the process alive. The step's output is in $output.
output=$build/step.log
step() {
  local name=$1 seconds=$((($2 * limit + 569) / 570)) left=$((limit - SECONDS + started)) begun=$SECONDS code seen
  shift 2
  [ "$seconds" -lt "$left" ] || seconds=$left
  if [ "$seconds" -lt 1 ]; then
    note "$name" "NOT RUN, no time left"
    return 1
  fi
  say "$name, at most $seconds s"
  : > "$output"
  timeout -k 2 "$seconds" bash -c '"$@"' bash "$@" < /dev/null > "$output" 2>&1 &
  pid=$!
  while kill -0 $pid 2> /dev/null && [ $((SECONDS - begun)) -le $((seconds + 4)) ]; do sleep 0.1; done
  if kill -0 $pid 2> /dev/null; then code=stuck; else wait $pid; code=$?; fi
  end_all
  cat "$output" >> "$log"
  tail -n 60 "$output"
  seen=$(sed -n 's/^WARNINGS: //p' "$output" | tail -n 1)
  case $code in
    0) note "$name" "passed${seen:+, $seen}" $((SECONDS - begun)) ;;
    124 | 137) note "$name" "NOT FINISHED in $seconds s$(so_far)" $((SECONDS - begun)) ;;
    stuck) note "$name" "STUCK, not to be ended after $seconds s$(so_far)" $((SECONDS - begun)) ;;
    *) note "$name" "FAILED ($code)" $((SECONDS - begun)) ;;
  esac
  [ "$code" = 0 ]
}
so_far() {  # counts tests, which print their names as they end
  local count
  count=$(grep -cE '^ *[0-9.]+ s: ' "$output")
  [ "$count" -eq 0 ] || printf ', after %d tests' "$count"
}

# ---- this machine

rm -rf "$build"
mkdir -p "$build/objects"
export nvcc
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)
if [ -z "$nvcc" ]; then
  note "nvcc" "FAILED: it is not here"
  exit 2
fi
toolkit=$(timeout 20 "$nvcc" --version | sed -n 's/^Cuda compilation tools, //p')
compiler=$(timeout 20 g++ --version 2> /dev/null | head -n 1)
commit=${COMMIT:-$(git describe --always --dirty 2> /dev/null || cat "$packed/commit" 2> /dev/null)}
commit=${commit:-unknown}
python=$(command -v python3)

export capability="" target=""
ask_device() {
  nvidia-smi --query-gpu=compute_cap,driver_version,name,memory.total --format=csv,noheader
}
export -f ask_device
if step "the device" 20 ask_device; then
  IFS=, read -r capability driver machine < <(grep -m 1 -E '^[0-9]+\.[0-9]+,' "$output")
  capability=${capability//./} driver=${driver# } machine=${machine# }
fi
if ! [[ $capability =~ ^[0-9]+$ ]]; then
  say "the device did not say what it is: building for sm_90"
  capability=90
fi
target=$capability
[ "$capability" != 90 ] || target=90a  # which has the products of warpgroups

# cuBLAS from the toolkit or from PyTorch's packages: it must link, load and, if there is a GPU, start.
export cublas_compile="" cublas_link=""
probe_cublas() {  # probe_cublas <flags...>
  local status
  "$nvcc" -std=c++20 "$build/cublas.cu" "$@" -o "$build/cublas" || return 1
  "$build/cublas"
  status=$?
  [ $status -eq 0 ] || echo "cuBLAS links and does not run: $status"
  return $status
}
find_cublas() {
  local header folder file
  cat > "$build/cublas.cu" << 'SOURCE'
#include <cstdio>
#include <cublas_v2.h>
int main() {
  int version = 0, devices = 0;
  cublasHandle_t handle = nullptr;
  if (cublasGetProperty(MAJOR_VERSION, &version) != CUBLAS_STATUS_SUCCESS) return 1;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 2;
  return cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS ? 0 : 3;
}
SOURCE
  if probe_cublas -lcublas; then
    printf '%s\n' "-DTOOLDECODE_HAS_CUBLAS" "-lcublas" > "$build/cublas.flags"
    return 0
  fi
  for header in $(python3 -c 'import glob, sys
for path in sys.path: print(*glob.glob(path + "/nvidia/*/include/cublas_v2.h"))'); do
    folder=$(dirname "$(dirname "$header")")
    file=$(ls "$folder"/lib/libcublas.so* 2> /dev/null | head -n 1)
    if [ -n "$file" ] && probe_cublas -I"$folder/include" "$file" -Xlinker "-rpath=$folder/lib"; then
      printf '%s\n' "-DTOOLDECODE_HAS_CUBLAS -I$folder/include" "$file -Xlinker -rpath=$folder/lib" \
        > "$build/cublas.flags"
      return 0
    fi
  done
  echo "no cuBLAS that links and runs was found"
  return 1
}
export -f probe_cublas find_cublas
if step "cuBLAS" 60 find_cublas; then
  { read -r cublas_compile; read -r cublas_link; } < "$build/cublas.flags"
fi

# The tests need Catch2, and for the host's twins Eigen and JSON. This machine's headers come before packed ones.
export test_includes="-Itests -DEIGEN_NO_CUDA" test_libraries=""
for folder in /usr/include/eigen3 "$packed"; do
  [ -d "$folder" ] && test_includes+=" -isystem $folder"
done
echo '#include <support/catch.hpp>
#include <Eigen/Core>
#include <nlohmann/json.hpp>' > "$build/has_headers.cpp"
look_for_headers() {
  "$nvcc" -std=c++20 -Iinclude $test_includes -x c++ -E "$build/has_headers.cpp" > "$build/has_headers.i"
}
export -f look_for_headers
export has_tests=""
if step "headers of Catch2, Eigen and nlohmann-json" 30 look_for_headers; then
  has_tests=yes
  ! grep -q catch_all.hpp "$build/has_headers.i" || test_libraries="-L$packed -lCatch2"
else
  say "without them no test can be built: --pack, where they are, brings them along in $packed"
fi

# ---- build: the longest first, one per processor; warnings are counted, because compilers differ in their texts

export flags="-std=c++20 -O3 -arch=sm_$target -Iinclude -Xcompiler=-Wall,-Wextra,-Wshadow"
compile() {  # compile <kind> <name>
  local kind=$1 name=$2 command log=$build/objects/$1.$2.log
  case $kind in
    model) command="$nvcc $flags $test_includes -c benchmarks/device_model/main.cu" ;;
    library) command="$nvcc $flags $spills -Xcompiler=-fPIC -c benchmarks/cuda/library.cu" ;;
    operators) command="$nvcc $flags -Xcompiler=-fPIC -DTOOLDECODE_C_BUILD -c $build/operators.cu" ;;
    benchmark) command="$nvcc $flags $cublas_compile -c benchmarks/cuda/$name.cu" ;;
    test) command="$nvcc $flags $spills $test_includes -c tests/cuda/$name.cu" ;;
    main) command="$nvcc -std=c++20 -O1 $test_includes -x c++ -c tests/support/main.cpp" ;;
  esac
  # CUB's kernels for a whole device may spill registers.
  if [ "$name" = frequency_ranks ]; then command=${command/"$spills"/}; fi
  if ! $command -o "$build/objects/$kind.$name.o" > "$log" 2>&1; then
    echo "FAILED: $command"
    head -n 20 "$log"
    return 1
  fi
  grep -i -m 5 'warning' "$log"
  return 0
}
build_all() {
  local code=0 warnings
  echo '__global__ void empty() {}' > "$build/empty.cu"
  export spills="-Xptxas=--warn-on-spills"
  "$nvcc" $flags $spills -c "$build/empty.cu" -o "$build/empty.o" 2> /dev/null || spills=""
  echo '#include <tooldecode/cuda/c_interface.cuh>' > "$build/operators.cu"
  {
    echo library library
    echo operators operators
    [ -z "$has_tests" ] || echo model model
    for source in benchmarks/cuda/*.cu; do
      case $source in */library.cu) ;; *) echo benchmark "$(basename "$source" .cu)" ;; esac
    done
    if [ -n "$has_tests" ]; then
      echo main main
      for source in tests/cuda/*.cu; do
        case $source in */simt.cu) ;; *) echo test "$(basename "$source" .cu)" ;; esac
      done
    fi
  } | xargs -P "$(nproc)" -L 1 bash -c 'compile "$0" "$1"' || code=1
  link_all || code=1
  warnings=$(cat "$build"/objects/*.log | grep -ciE 'warning[ :#]')
  [ "$warnings" -eq 0 ] || echo "WARNINGS: $warnings warnings"
  return $code
}
link_all() {  # if one does not link, the others can still run
  local code=0
  "$nvcc" -arch=sm_"$target" "$build"/objects/benchmark.*.o $cublas_link -o "$build/benchmark_cuda" || code=1
  "$nvcc" -arch=sm_"$target" -shared "$build"/objects/library.library.o -o "$build/library.so" || code=1
  "$nvcc" -arch=sm_"$target" -shared "$build"/objects/operators.operators.o -o "$build/operators.so" || code=1
  [ -z "$has_tests" ] || "$nvcc" -arch=sm_"$target" "$build"/objects/model.model.o -o "$build/device_model" || code=1
  [ -z "$has_tests" ] || "$nvcc" -arch=sm_"$target" "$build"/objects/test.*.o "$build/objects/main.main.o" \
    $test_libraries -o "$build/test_cuda" || code=1
  return $code
}
export -f compile build_all link_all
is_built=""
step "build for sm_$capability" 230 build_all && is_built=yes

# ---- run

# line by line, so that a step that is ended early shows its progress
lines() { stdbuf -oL "$@"; }
export -f lines

if [ ! -x "$build/benchmark_cuda" ]; then
  note "benchmark" "NOT RUN, it is not built"
else
  try_device() { lines "$build/benchmark_cuda" --small; }
  export -f try_device
  step "benchmark, small" 60 try_device
  if grep -q '^no CUDA device' "$output"; then
    is_complete=true
    write_steps
    say "${is_built:+everything is built; }run this where there is a GPU"
    [ -z "$is_built" ] || exit 3
    exit 1
  fi
fi
if [ -x "$build/test_cuda" ]; then
  run_tests() { lines "$build/test_cuda" --durations yes; }
  export -f run_tests
  step "tests" 60 run_tests
else
  note "tests" "NOT RUN, they are not built"
fi

export commit driver date python made
made=$(made_by)
if [ -x "$build/benchmark_cuda" ]; then
  measure() {
    lines "$build/benchmark_cuda" --json "$results/cuda.json" --commit "$commit" --driver "$driver" --date "$date" \
      --command "bash benchmarks/cuda/run.sh" --made-by "$made"
  }
  export -f measure
  step "benchmark" 170 measure
fi
if [ -n "$python" ] && [ -e "$build/library.so" ]; then
  compare() { PYTHONUNBUFFERED=1 "$python" benchmarks/cuda/peers.py "$build/library.so" --json "$results/cuda.json"; }
  export -f compare
  step "comparison with PyTorch" 90 compare
else
  note "comparison with PyTorch" "NOT RUN, python3 or the library is not here"
fi
if [ -n "$python" ] && [ -e "$build/operators.so" ]; then
  test_operators() { PYTHONUNBUFFERED=1 "$python" benchmarks/cuda/operators.py "$build/operators.so"; }
  export -f test_operators
  step "PyTorch operators" 60 test_operators
else
  note "PyTorch operators" "NOT RUN, python3 or the library is not here"
fi

# A Llama model of 1.2 billion made-up weights on the GPU, token by token and in rounds of speculation.
write_model() {
  local line comma=""
  {
    printf '{\n "question": "How fast a Llama model is on the device, plain and in rounds of speculation",\n'
    printf ' "made_by": %s,\n "weights": "made up: the tokens mean nothing, nor does how many are accepted",\n' "$made"
    printf ' "printed": ['
    while IFS= read -r line; do
      printf '%s\n  %s' "$comma" "$(quoted "$line")"
      comma=,
    done < "$output"
    printf '\n ]\n}\n'
  } > "$results/cuda_model.json"
}
if [ -x "$build/device_model" ]; then
  run_model() { lines "$build/device_model"; }
  export -f run_model
  step "model" 90 run_model && write_model
else
  note "model" "NOT RUN, it is not built"
fi

# The limits of the kernels at the sizes of the aims; cuda_profile.csv has the counters.
export profiler
profiler=$(command -v ncu)
profile() {
  local only
  {
    for only in "pruned head, K = 32768, n = 10" "masked softmax, BF16, B = 64" "masked softmax, F32, B = 64" \
      "tree attention, 8192"; do
      "$profiler" --profile-from-start off --clock-control none --csv --print-units base \
        --kernel-name 'regex:multiply_|merge_|softmax|cut_rows|find_tokens|attend_' \
        --section SpeedOfLight --section WarpStateStats --section SchedulerStats --section LaunchStats \
        --section Occupancy --section MemoryWorkloadAnalysis \
        "$build/benchmark_cuda" --profile --only "$only" || return 1
    done
  } > "$results/cuda_profile.csv"
}
export -f profile
if [ -z "$profiler" ]; then
  note "profile" "SKIPPED, ncu is not here"
elif [ -x "$build/benchmark_cuda" ]; then
  step "profile" 90 profile
fi

# One test makes launches that the device refuses: errors of the API, not of memory.
export sanitizer
sanitizer=$(command -v compute-sanitizer || ls "$(dirname "$nvcc")/compute-sanitizer" \
  "$(dirname "$nvcc")/../compute-sanitizer/compute-sanitizer" 2> /dev/null | head -n 1)
sanitize() {  # sanitize <tool> <program...>
  local tool=$1 code
  shift
  lines "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 9 --print-limit 20 "$@"
}
sanitize_tests() { sanitize "$1" "$build/test_cuda" --durations yes; }
sanitize_benchmark() { sanitize memcheck "$build/benchmark_cuda" --small; }
export -f sanitize sanitize_tests sanitize_benchmark
if [ -n "$is_quick" ]; then
  note "compute-sanitizer" "SKIPPED by --quick"
elif [ -z "$sanitizer" ]; then
  note "compute-sanitizer" "NOT RUN, it is not here"
else
  for tool in memcheck racecheck synccheck; do
    if [ -x "$build/test_cuda" ]; then
      step "$tool of the tests" 120 sanitize_tests $tool
    else
      note "$tool of the tests" "NOT RUN, they are not built"
    fi
  done
  [ ! -x "$build/benchmark_cuda" ] || step "memcheck of the benchmark" 60 sanitize_benchmark
fi

# ---- in words

is_complete=true
write_steps
say "summary"
for i in "${!names[@]}"; do echo "${outcomes[i]}: ${names[i]}"; done
grep -hE '^(HOLDS|MISSED|NOT MEASURED|FAILED:|SKIPPED|IN ALL)' "$log" | sort -u
say "results are in $results"
exit $failed
