#!/usr/bin/env bash
# A real model's answers, method by method, and what a constraint costs in llama.cpp.
set -euo pipefail
cd "$(dirname "$0")/../.."
source cmake/install_packages.sh

usage() {
  cat << 'END'
bash benchmarks/real_models/run.sh [--rows N] [--methods LIST] PART...

Fetches llama.cpp and SmolLM2, builds, and writes benchmarks/results/. DATA is $TOOLDECODE_SHARED_DATA, or ../shared/data.
One thread; hours for all rows, since a call takes seconds.

  bfcl      BFCL: simple, multiple and parallel calls, judged by the AST checker of bfcl-eval as well
  apibank   API-Bank: levels 1 and 2
  names     names among FuncQA's 13 and KAMEL's 234 tools
  gemma     BFCL's simple calls by Gemma 3 270M, a base model
  llama_cpp llama.cpp's own grammar, the library's, and none: time of a call

  --rows N        first rows of each file only
  --methods LIST  what `tooldecode eval --method` takes
END
}

rows=0
methods=greedy,beam,self-consistency,fuzzy-matching,backtrace,tooldec,tooldec-schema,constrained,tool-decoding
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --rows) rows=$2; shift 2 ;;
    --methods) methods=$2; shift 2 ;;
    --help | -h) usage; exit ;;
    bfcl | apibank | names | gemma | llama_cpp) parts+=("$1"); shift ;;
    *) usage >&2; exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || { usage >&2; exit 2; }
data=${TOOLDECODE_SHARED_DATA:-../shared/data}
results=benchmarks/results
made=build/real_models
mkdir -p "$made"

install_packages g++ cmake make ninja-build git pkg-config libeigen3-dev nlohmann-json3-dev catch2 libbenchmark-dev \
  libpcre2-dev libcli11-dev libcpp-httplib-dev zlib1g-dev python3 python3-pip
config=$(bash examples/llama_cpp.sh)
bash examples/models.sh smollm2 > /dev/null
configure release -DTOOLDECODE_TESTS=ON -DTOOLDECODE_LLAMA_CPP=ON "-Dllama_DIR=$config"
say "building"
cmake --build build/release --target tooldecode_program benchmark_llama_cpp -j "$(nproc)" > "$made/build.log"

evaluate() {  # evaluate <name> <model> <arguments>...
  build/release/examples/tooldecode eval --model "$2" --limit "$rows" --method "$methods" --max-tokens 96 \
    --answers "$made/$1.jsonl" --json "$results/$1.json" "${@:3}"
}
for part in "${parts[@]}"; do
  say "$part"
  case $part in
    bfcl)
      files=(--data "$data/bfcl/simple_python.jsonl" --data "$data/bfcl/multiple.jsonl" --data "$data/bfcl/parallel.jsonl")
      evaluate smollm2_bfcl smollm2 "${files[@]}" --order reversed,shuffled
      python3 -m pip install --quiet --no-deps --target "$made/bfcl_eval" bfcl-eval==2026.3.23
      python3 benchmarks/real_models/judge.py --checker "$made/bfcl_eval" "${files[@]}" --into $results/smollm2_bfcl.json \
        "$made/smollm2_bfcl.jsonl"
      ;;
    apibank)
      evaluate smollm2_apibank smollm2 --data "$data/apibank/level1.jsonl" --data "$data/apibank/level2.jsonl"
      ;;
    names)
      python3 benchmarks/real_models/rows.py --shared "$data" --out "$made"
      for name in funcqa kamel; do evaluate "smollm2_$name" smollm2 --data "$made/$name.jsonl" --oc 1 --context-size 8192; done
      ;;
    gemma)
      bash examples/models.sh gemma3 > /dev/null
      evaluate gemma3_bfcl gemma3 --data "$data/bfcl/simple_python.jsonl"
      ;;
    llama_cpp)
      build/release/benchmarks/benchmark_llama_cpp --data "$data/bfcl/simple_python.jsonl" --limit "$rows" \
        --json $results/llama_cpp.json
      ;;
  esac
done
