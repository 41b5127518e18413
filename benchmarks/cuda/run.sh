#!/usr/bin/env bash
# The CUDA kernels on the GPU at hand, in one command and under eight minutes: builds tests, benchmark and
# library with nvcc alone, runs the tests, the benchmark and the comparison with PyTorch, then the tests under
# compute-sanitizer, and says which of the aims hold.
#   bash benchmarks/cuda/run.sh [--json OUT]    OUT is benchmarks/results/cuda.json unless given
#   bash benchmarks/cuda/run.sh --pack-headers  copies the headers that tests need beside ours into build/cuda_headers,
#                                               for a machine that lacks them: take that folder along
#   bash benchmarks/cuda/run.sh --help
# Without a GPU it builds all there is and says that nothing was measured. TOOLDECODE_COMMIT names the commit
# where this is no checkout of git.
set -uo pipefail
cd "$(dirname "$0")/../.."
started=$SECONDS
limit=465  # seconds for everything
json=benchmarks/results/cuda.json
build=build/cuda_benchmark
packed=build/cuda_headers

say() { printf '== [%3d s] %s\n' "$((SECONDS - started))" "$*"; }

pack_headers() {
  local folder
  mkdir -p "$packed"
  for folder in /usr/include/catch2 /usr/include/nlohmann /usr/include/eigen3/Eigen; do
    if [ -d "$folder" ]; then cp -r "$folder" "$packed/"; else say "not here: $folder"; fi
  done
  du -sh "$packed"
}

while [ $# -gt 0 ]; do
  case $1 in
    --json) [ $# -gt 1 ] || { echo "--json needs a file" >&2; exit 2; }; json=$2; shift 2 ;;
    --pack-headers) pack_headers; exit ;;
    --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' benchmarks/cuda/run.sh; exit ;;
    *) echo "unknown: $1; see --help" >&2; exit 2 ;;
  esac
done

summary=()
failed=0
note() {  # note <what to say at the end>
  say "$*"
  summary+=("$*")
}

# step <name> <seconds> <command...>: bounded by its own seconds and by what is left of all
step() {
  local name=$1 seconds=$2 left=$((limit - SECONDS + started)) code
  shift 2
  [ "$seconds" -lt "$left" ] || seconds=$left
  if [ "$seconds" -lt 5 ]; then
    note "NOT RUN, no time left: $name"
    return 1
  fi
  say "$name"
  timeout -k 5 "$seconds" "$@"
  code=$?
  case $code in
    0) note "passed: $name" ;;
    124 | 137) failed=1; note "NOT FINISHED in $seconds s: $name" ;;
    *) failed=1; note "FAILED ($code): $name" ;;
  esac
  return $code
}

# ---- what is here

export nvcc
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null) || { echo "nvcc is not here" >&2; exit 2; }
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
python=$(command -v python3)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -1 | tr -d '. ')
build_seconds=240
if ! [[ $capability =~ ^[0-9]+$ ]]; then  # so that nobody waits for the device
  say "no GPU is visible: building for sm_90"
  capability=90 build_seconds=3600
fi

export flags="-std=c++20 -O3 -arch=sm_$capability -Iinclude -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow"
export objects=$build/objects
rm -rf "$build"
mkdir -p "$objects"

# cuBLAS, of the toolkit or of PyTorch's packages.
links_cublas() {  # links_cublas <flags...>
  echo '#include <cublas_v2.h>
int main() { return cublasGetVersion_v2(nullptr, nullptr) == 0; }' > "$build/cublas.cu"
  "$nvcc" -std=c++20 "$build/cublas.cu" "$@" -o "$build/cublas" 2> /dev/null
}
cublas_compile="" cublas_link=""
if links_cublas -lcublas; then
  cublas_compile="-DTOOLDECODE_HAS_CUBLAS" cublas_link="-lcublas"
elif [ -n "$python" ]; then
  for header in $("$python" -c 'import glob, sys
for path in sys.path: print(*glob.glob(path + "/nvidia/*/include/cublas_v2.h"))' 2> /dev/null); do
    folder=$(dirname "$(dirname "$header")")
    file=$(ls "$folder"/lib/libcublas.so* 2> /dev/null | head -1)
    if [ -n "$file" ] && links_cublas -I"$folder/include" "$file" -Xlinker "-rpath=$folder/lib"; then
      cublas_compile="-DTOOLDECODE_HAS_CUBLAS -I$folder/include"
      cublas_link="$file -Xlinker -rpath=$folder/lib"
      break
    fi
  done
fi
[ -n "$cublas_link" ] || note "SKIPPED: cuBLAS, which was not found"
export cublas_compile

# The tests want Catch2, and for the host's twins Eigen and JSON.
test_includes="-Itests -DEIGEN_NO_CUDA"
for folder in /usr/include/eigen3 "$packed"; do
  [ -d "$folder" ] && test_includes+=" -isystem $folder"
done
export test_includes
catch_library=""
echo '#include <support/catch.hpp>
#include <Eigen/Core>
#include <nlohmann/json.hpp>' > "$build/has_headers.cpp"
tests=()
if g++ -std=c++20 -Iinclude $test_includes -E "$build/has_headers.cpp" > /dev/null 2>&1; then
  for source in tests/cuda/*.cu; do
    case $source in */simt.cu) ;; *) tests+=("$(basename "$source" .cu)") ;; esac
  done
  g++ -std=c++20 $test_includes -E "$build/has_headers.cpp" | grep -q catch_all.hpp && catch_library=-lCatch2
else
  note "SKIPPED: the tests, since Catch2, Eigen or nlohmann-json is not here; --pack-headers brings them along"
fi

# ---- build: the longest first, each processor one

compile() {  # compile <kind> <name>
  local kind=$1 name=$2 command spills="-Xptxas=--warn-on-spills,--warning-as-error"
  [ "$name" != frequency_ranks ] || spills=""  # CUB's kernels for whole devices may spill
  case $kind in
    library) command="$nvcc $flags $spills -Xcompiler=-fPIC -c benchmarks/cuda/library.cu" ;;
    benchmark) command="$nvcc $flags $cublas_compile -c benchmarks/cuda/$name.cu" ;;
    test) command="$nvcc $flags $spills $test_includes -c tests/cuda/$name.cu" ;;
    main) command="g++ -std=c++20 -O1 $test_includes -c tests/support/main.cpp" ;;
  esac
  if ! $command -o "$objects/$kind.$name.o" > "$objects/$kind.$name.log" 2>&1; then
    echo "FAILED: $command" >&2
    head -20 "$objects/$kind.$name.log" >&2
    return 1
  fi
}
export -f compile

compile_all() {
  {
    echo library library
    for source in benchmarks/cuda/*.cu; do
      case $source in */library.cu) ;; *) echo benchmark "$(basename "$source" .cu)" ;; esac
    done
    [ ${#tests[@]} -eq 0 ] || { echo main main; printf 'test %s\n' "${tests[@]}"; }
  } | timeout -k 5 $build_seconds xargs -P "$(nproc)" -L 1 bash -c 'compile "$0" "$1"'
}
link_all() {
  local name code=0
  "$nvcc" -arch=sm_"$capability" "$objects"/benchmark.*.o $cublas_link -o "$build/benchmark_cuda" || code=1
  "$nvcc" -arch=sm_"$capability" -shared "$objects"/library.library.o -o "$build/library.so" || code=1
  for name in "${tests[@]}"; do
    [ -e "$objects/test.$name.o" ] && "$nvcc" -arch=sm_"$capability" "$objects/test.$name.o" \
      "$objects/main.main.o" $catch_library -o "$build/test_$name" || code=1
  done
  return $code
}

say "building for sm_$capability with $("$nvcc" --version | grep -o 'release [0-9.]*') in $build"
if compile_all && link_all; then
  note "passed: build without warnings"
else
  failed=1
  note "FAILED: build"
  link_all 2> /dev/null  # what can be linked may still be run
fi

# ---- run

if [ ! -x "$build/benchmark_cuda" ]; then
  say "without the benchmark nothing can be measured"
  exit 1
fi
"$build/benchmark_cuda" --small > "$build/small.log" 2>&1
if [ $? -eq 3 ]; then
  cat "$build/small.log"
  say "everything is built; run this where there is a GPU"
  exit 3
fi

run_tests() {
  local name code=0
  for name in "${tests[@]}"; do
    "$build/test_$name" || code=1
  done
  return $code
}
export -f run_tests
if [ ${#tests[@]} -gt 0 ]; then
  step "tests on the GPU" 60 bash -c "tests=(${tests[*]}); build=$build; run_tests"
fi

commit=${TOOLDECODE_COMMIT:-$(git rev-parse --short HEAD 2> /dev/null)}
mkdir -p "$(dirname "$json")"
log=$build/benchmark.log
measure() { "$1" --json "$2" --commit "$3" --command "bash benchmarks/cuda/run.sh" | tee "$4"; }
export -f measure
step "benchmark" 150 bash -c 'set -o pipefail; measure "$@"' measure "$build/benchmark_cuda" "$json" "$commit" "$log"

if [ -n "$python" ]; then
  compare() { set -o pipefail; PYTHONUNBUFFERED=1 "$1" benchmarks/cuda/peers.py "$2" --json "$3" | tee "$4"; }
  export -f compare
  step "comparison with PyTorch" 90 bash -c 'compare "$@"' compare "$python" "$build/library.so" "$json" \
    "$build/peers.log"
else
  note "SKIPPED: the comparison with PyTorch, since python3 is not here"
fi

sanitizer=$(command -v compute-sanitizer || ls "$toolkit"/bin/compute-sanitizer \
  "$toolkit"/compute-sanitizer/compute-sanitizer 2> /dev/null | head -1)
sanitize() {  # sanitize <tool> <program...>: one program, quiet unless something is wrong
  local tool=$1 log=$build/$1.$(basename "$2").log code
  shift
  timeout -k 5 "$most" "$sanitizer" --tool "$tool" --error-exitcode 9 "$@" > "$log" 2>&1
  code=$?
  if [ $code -eq 124 ]; then echo "not finished in $most s, no error until then: $tool $*"; return 0; fi
  [ $code -eq 0 ] || { echo "FAILED ($code): $tool $*"; grep -m 12 '=========' "$log" || tail -5 "$log"; return 1; }
}
export -f sanitize
export sanitizer build
sanitize_all() {  # sanitize_all <tool> <tests...>: four at a time
  local tool=$1
  shift
  {
    printf "$build/test_%s\n" "$@"
    [ "$tool" = racecheck ] || echo "$build/benchmark_cuda --small"
  } | xargs -P 4 -I {} bash -c "sanitize $tool {}"
}
export -f sanitize_all
if [ -z "$sanitizer" ]; then
  note "SKIPPED: compute-sanitizer, which is not here"
elif [ ${#tests[@]} -gt 0 ]; then
  export most=40
  step "compute-sanitizer memcheck" 75 bash -c 'sanitize_all "$@"' sanitize memcheck "${tests[@]}"
  step "compute-sanitizer racecheck" 75 bash -c 'sanitize_all "$@"' sanitize racecheck "${tests[@]}"
fi

# ---- in words

say "summary"
printf '%s\n' "${summary[@]}"
grep -hE '^(HOLDS|MISSED|NOT MEASURED|FAILED|SKIPPED|IN ALL)' "$log" "$build/peers.log" 2> /dev/null
say "numbers are in $json"
exit $failed
