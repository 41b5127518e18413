#!/usr/bin/env bash
# Measures a real model's answers by method, and the cost of a constraint in llama.cpp.
set -euo pipefail
cd "$(dirname "$0")/../.."
source cmake/install_packages.sh

usage() {
  cat << 'END'
bash benchmarks/real_models/run.sh [--rows N] [--methods LIST] [--threads N] PART...

Fetches llama.cpp and the models, builds, and writes benchmarks/results/. DATA is $TOOLDECODE_SHARED_DATA, or ../shared/data.
A call takes seconds, so a part takes an hour or more for all rows. An interrupted part continues where it ended.

  simple    BFCL's calls to one function by the paper's methods; the AST checker of bfcl-eval judges them too
  coder     BFCL's calls that require three or more parameters, and those that require two, by Qwen2.5-Coder-0.5B; a
            call is required, without examples: greedy, constrained, and votes over orders
  coder_1.5 the same calls with three or more parameters by Qwen2.5-Coder-1.5B
  coder_apibank  API-Bank by Qwen2.5-Coder-0.5B, without examples; a call is required
  coder_irrelevant  BFCL's rows for which no function fits, and as many for which one does, by Qwen2.5-Coder-0.5B, which
            may call or not
  paths     RestBench's paths of API calls with and without documentation of the APIs, by SmolLM2 and both of Qwen's
  guesses   how often Qwen2.5-Coder-0.5B guesses the calls of Qwen2.5-Coder-1.5B
  speed     calls of both models: tokens per second of llama.cpp, with its drafts and its grammar, and of tooldecode
  pruned    FR-Spec at a vocabulary of 151,936: what fewer rows of the draft's head cost and save, of an EAGLE layer over
            Qwen2.5-Coder-0.5B, and of this model drafting for Qwen2.5-Coder-1.5B. --rows are prompts of each kind. The
            layer is trained first if it is not there, for two hours: examples/train_draft
  llama_cpp time of a call with llama.cpp's grammar, with tooldecode's masks, and with no grammar
  llama_cpp_text  the same without tools: 12 of GSM8K's test questions
  equality  which answers are equal, token for token: two engines, plain and speculative
  figures   draws the outcomes of simple, coder_1.5 and coder_apibank from benchmarks/results

  --rows N        first rows of each file only
  --methods LIST  argument of `tooldecode eval --method`, instead of the part's methods
  --threads N     threads of the model (1); beside other work more threads are slower
END
}

rows=0
methods=
threads=1
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --rows) rows=$2; shift 2 ;;
    --methods) methods=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --help | -h) usage; exit ;;
    simple | coder | coder_1.5 | coder_apibank | coder_irrelevant | paths | guesses | speed | pruned | \
      llama_cpp | llama_cpp_text | equality | figures) parts+=("$1"); shift ;;
    *) usage >&2; exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || { usage >&2; exit 2; }
data=${TOOLDECODE_SHARED_DATA:-../shared/data}
results=benchmarks/results
made=build/real_models
mkdir -p "$made"

install_packages g++ cmake make ninja-build git pkg-config libeigen3-dev nlohmann-json3-dev catch2 libbenchmark-dev \
  libpcre2-dev libcli11-dev libcpp-httplib-dev zlib1g-dev python3 python3-pip python3-venv
config=$(bash examples/llama_cpp.sh)
bash examples/models.sh smollm2 > /dev/null
configure release -DTOOLDECODE_TESTS=ON -DTOOLDECODE_LLAMA_CPP=ON "-Dllama_DIR=$config"
say "building"
cmake --build build/release --target tooldecode_program benchmark_llama_cpp benchmark_llama_cpp_equality benchmark_pruned_drafts -j "$(nproc)" > "$made/build.log"

evaluate() {  # evaluate <name> <model> <methods> <arguments>...
  build/release/examples/tooldecode eval --model "$2" --limit "$rows" --threads "$threads" \
    --method "${methods:-$3}" --answers "$made/$1.jsonl" --resume --json "$results/$1.json" "${@:4}"
}
judge() {  # judge <name> <--data FILE>...
  python3 -m pip install --quiet --no-deps --target "$made/bfcl_eval" bfcl-eval==2026.3.23
  python3 benchmarks/real_models/judge.py --checker "$made/bfcl_eval" "${@:2}" --into "$results/$1.json" "$made/$1.jsonl"
}
with_llama() {  # with_llama <script> <arguments>...: a Python with the package, and llama-cpp-python around the same llama.cpp
  python3 -m venv "$made/llama"
  CMAKE_ARGS=-DLLAMA_BUILD=OFF "$made/llama/bin/pip" install --quiet numpy llama-cpp-python==0.3.36 .
  LLAMA_CPP_LIB_PATH=${config%/cmake/llama} "$made/llama/bin/python" "$@" --shared "$data" --threads "$threads"
}
for part in "${parts[@]}"; do
  say "$part"
  case $part in
    simple)
      files=(--data "$data/bfcl/simple_python.jsonl")
      evaluate smollm2_bfcl smollm2 greedy,fuzzy-matching,backtrace,tooldec,constrained,tool-decoding \
        --keep-prefix "${files[@]}" --oc 1,4,6,12 --max-tokens 96
      judge smollm2_bfcl "${files[@]}"
      ;;
    coder | coder_1.5)
      python3 benchmarks/real_models/rows.py --shared "$data" --out "$made"
      model=qwen-coder-0.5b
      sets=(three two)
      [ "$part" = coder ] || { model=qwen-coder-1.5b; sets=(three); }
      bash examples/models.sh "$model" > /dev/null
      for set in "${sets[@]}"; do
        oc=1,4,6,12
        [ "$set" != two ] || oc=1,2  # there are no more orders
        [ "$part" = coder ] || oc=1,12  # one order and the most
        evaluate "${model//-/_}_$set" "$model" greedy,constrained,tool-decoding --keep-prefix --choice required \
          --format auto --shots 0 --data "$made/bfcl_$set.jsonl" --oc "$oc" --max-tokens 160 --context-size 16384
      done
      [ "$part" != coder ] || python3 benchmarks/real_models/pooled.py build/release/examples/tooldecode \
        --json "$results/qwen_coder_0.5b_votes.json" "$made/qwen_coder_0.5b_three.jsonl:tool-decoding-oc12" \
        "$made/qwen_coder_0.5b_two.jsonl:tool-decoding-oc2"
      ;;
    coder_apibank)
      bash examples/models.sh qwen-coder-0.5b > /dev/null
      evaluate qwen_coder_0.5b_apibank qwen-coder-0.5b greedy,tooldec,constrained,tool-decoding --keep-prefix --choice required \
        --format auto --shots 0 --data "$data/apibank/level1.jsonl" --data "$data/apibank/level2.jsonl" --oc 1,6 \
        --max-tokens 160 --context-size 16384
      ;;
    coder_irrelevant)
      bash examples/models.sh qwen-coder-0.5b > /dev/null
      evaluate qwen_coder_0.5b_irrelevant qwen-coder-0.5b greedy,constrained --keep-prefix --choice auto --format auto \
        --shots 0 --data "$data/bfcl/irrelevance.jsonl" --max-tokens 160 --context-size 16384
      [ "$rows" != 0 ] || rows=119  # as many for which a function fits
      evaluate qwen_coder_0.5b_fitting qwen-coder-0.5b greedy,constrained --keep-prefix --choice auto --format auto \
        --shots 0 --data "$data/bfcl/simple_python.jsonl" --max-tokens 160 --context-size 16384
      ;;
    paths)
      models=()
      for model in smollm2 qwen-coder-0.5b qwen-coder-1.5b; do models+=("$(bash examples/models.sh $model)"); done
      with_llama benchmarks/real_models/paths.py --model "${models[@]}" --limit "$rows" --answers "$made/restbench.jsonl" \
        --json $results/restbench.json
      ;;
    guesses)
      with_llama benchmarks/real_models/guesses.py --model "$(bash examples/models.sh qwen-coder-1.5b)" \
        --speculator "$(bash examples/models.sh qwen-coder-0.5b)" --answers "$made/guesses.jsonl" \
        --json $results/qwen_coder_guesses.json
      ;;
    speed)
      python3 benchmarks/real_models/rows.py --shared "$data" --out "$made"
      for model in qwen-coder-0.5b qwen-coder-1.5b; do
        bash examples/models.sh "$model" > /dev/null
        build/release/benchmarks/benchmark_llama_cpp --model "$model" --threads "$threads" --limit "$rows" \
          --data "$made/bfcl_three.jsonl" --json "$results/llama_cpp_${model//-/_}.json"
      done
      ;;
    pruned)
      python=$made/draft/bin/python
      if [ ! -x "$python" ]; then
        python3 -m venv "$made/draft"
        "$python" -m pip install --quiet -r examples/train_draft/requirements.txt
      fi
      layer=${TOOLDECODE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tooldecode}/draft/qwen-coder-0.5b/layers/eagle.safetensors
      if [ ! -e "$layer" ]; then
        train=(--model qwen-coder-0.5b --bfloat16)
        "$python" examples/train_draft/states.py "${train[@]}" --final --minutes 60 --shared "$data"
        "$python" examples/train_draft/train_eagle.py "${train[@]}" --minutes 60 --rate 0.008 --width 2432
      fi
      ln -sf "$layer" "$made/qwen_eagle.safetensors"  # so that results name no directory of this machine
      [ -e "$made/prompts.jsonl" ] ||
        "$python" benchmarks/fr_spec/prompts.py --model qwen-coder-0.5b --shared "$data" --out "$made/prompts.jsonl"
      measure=(build/release/benchmarks/benchmark_pruned_drafts --threads "$threads" --limit "$rows"
        --prompts "$made/prompts.jsonl" --corpus "$data/corpus")
      "${measure[@]}" --model qwen-coder-0.5b --eagle "$made/qwen_eagle.safetensors" --json $results/pruned_eagle.json
      bash examples/models.sh qwen-coder-1.5b > /dev/null
      "${measure[@]}" --model qwen-coder-1.5b --draft-model qwen-coder-0.5b --json $results/pruned_model.json
      ;;
    llama_cpp)
      build/release/benchmarks/benchmark_llama_cpp --data "$data/bfcl/simple_python.jsonl" --limit "$rows" \
        --json $results/llama_cpp.json
      ;;
    llama_cpp_text)
      python3 benchmarks/real_models/rows.py --shared "$data" --out "$made"
      build/release/benchmarks/benchmark_llama_cpp --data "$made/gsm8k.jsonl" --limit 12 --max-tokens 128 \
        --json $results/llama_cpp_text.json
      ;;
    equality)
      build/release/benchmarks/benchmark_llama_cpp_equality --data "$data/bfcl/simple_python.jsonl" --limit "$rows" \
        --json $results/llama_cpp_equality.json
      ;;
    figures)
      python3 -m venv "$made/python"
      "$made/python/bin/pip" install --quiet matplotlib==3.11.2
      "$made/python/bin/python" benchmarks/real_models/figures.py
      ;;
  esac
done
