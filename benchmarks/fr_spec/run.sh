#!/usr/bin/env bash
# FR-Spec's tables for SmolLM2, beside the paper's.
set -euo pipefail
cd "$(dirname "$0")/../.."
source cmake/install_packages.sh

usage() {
  cat << 'END'
bash benchmarks/fr_spec/run.sh [--limit N] [--timed N] [ARGUMENT...]
bash benchmarks/fr_spec/run.sh --sampled [--limit N] [--timed N] [ARGUMENT...]
bash benchmarks/fr_spec/run.sh --equality TOKENS [ARGUMENT...]

Fetches SmolLM2, builds, writes the prompts as tokens, measures the drafts of examples/data/smollm2_draft on one
thread, and writes benchmarks/results/fr_spec_smollm2.json and two charts. DATA is $TOOLDECODE_SHARED_DATA, or
../shared/data. PYTHON is $TOOLDECODE_PYTHON, or one in build/fr_spec with the packages of
examples/train_draft/requirements.txt.

  --limit N   prompts of each of six domains (6); each takes a minute or two
  --timed N   prompts of these that every way decodes (3); the others are decoded plainly, and their answers replayed
  --sampled   temperature 1, EAGLE's drafts and few K; writes benchmarks/results/fr_spec_sampled.json and no chart
  --equality TOKENS
              compares this many tokens of a batch with drafts and of one without, at most those of 840 prompts (half
              an hour), and nothing else; writes benchmarks/results/fr_spec_equality.json

Other arguments go to benchmark_fr_spec, such as --minutes N, after which no prompt starts, or to
benchmark_draft_equality.
END
}

limit=6
timed=3
equality=0
sampled=no
more=()
while [ $# -gt 0 ]; do
  case $1 in
    --limit) limit=$2; shift 2 ;;
    --timed) timed=$2; shift 2 ;;
    --sampled) sampled=yes; shift ;;
    --equality) equality=$2; shift 2 ;;
    --help | -h) usage; exit ;;
    *) more+=("$1"); shift ;;
  esac
done
data=${TOOLDECODE_SHARED_DATA:-../shared/data}
results=benchmarks/results
made=build/fr_spec
mkdir -p "$made"

install_packages g++ cmake make ninja-build pkg-config libeigen3-dev nlohmann-json3-dev libbenchmark-dev libpcre2-dev \
  libcli11-dev libcpp-httplib-dev zlib1g-dev python3-venv
model=$made/SmolLM2-135M-Instruct.Q4_1.gguf
ln -sf "$(bash examples/models.sh smollm2)" "$model"  # so that results name no directory of this machine
configure release
program=benchmark_fr_spec
prompts=$made/prompts.jsonl
of_each_domain=40
if [ "$equality" != 0 ]; then
  program=benchmark_draft_equality
  prompts=$made/prompts_equality.jsonl
  of_each_domain=140
fi
say "building"
cmake --build build/release --target $program -j "$(nproc)" > "$made/build.log"
if [ ! -e "$prompts" ]; then
  python=${TOOLDECODE_PYTHON:-$made/venv/bin/python}
  if [ ! -x "$python" ]; then
    say "installing the packages that write the prompts"
    python3 -m venv "$made/venv"
    "$python" -m pip install --quiet -r examples/train_draft/requirements.txt
  fi
  "$python" benchmarks/fr_spec/prompts.py --shared "$data" --limit $of_each_domain --out "$prompts"
fi
say "measuring"
measure=(build/release/benchmarks/$program --model "$model" --eagle examples/data/smollm2_draft/eagle.safetensors
  --prompts "$prompts" --corpus "$data/corpus")
if [ "$equality" != 0 ]; then
  "${measure[@]}" --tokens "$equality" --json $results/fr_spec_equality.json "${more[@]}"
elif [ $sampled = yes ]; then
  "${measure[@]}" --temperature 1 --rows 0,16384,12288,8192 --limit "$limit" --timed "$timed" \
    --json $results/fr_spec_sampled.json "${more[@]}"
else
  "${measure[@]}" --eagle3 examples/data/smollm2_draft/eagle3.safetensors --medusa examples/data/smollm2_draft/medusa.safetensors --limit "$limit" --timed "$timed" \
    --json $results/fr_spec_smollm2.json --plots $results "${more[@]}"
fi
