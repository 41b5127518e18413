#!/usr/bin/env bash
# Clients of OpenAI's API against `tooldecode serve`: openai, openai-agents, Pydantic AI, LangChain, Instructor, LiteLLM,
# smolagents.
#
#   bash tests/clients.sh PROGRAM [NAME...]
#
# Their packages are fetched from PyPI once, 400 MB, and kept in ${XDG_CACHE_HOME:-~/.cache}/tooldecode, or in
# $TOOLDECODE_CACHE. Without a network it says so and ends with exit code 77.
set -euo pipefail
program=$(realpath "${1:?the program}")
cd "$(dirname "$0")/.."
source cmake/install_packages.sh
source cmake/fetch.sh

wanted=tests/clients/requirements.txt
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
folder=$cache/clients-$python-$(sha256sum < $wanted | cut -c 1-8)
if [ ! -e "$folder/ready" ]; then
  install_packages python3-venv
  say "the packages of clients: 400 MB"
  rm -rf "$folder"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # All that they need is listed, so that nothing is to be resolved.
  if ! { python3 -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check --no-input --no-deps \
    -r $wanted; } > "$log" 2>&1; then
    rm -rf "$folder"
    grep -qiE 'connection|resolution|retries|network|timed out' "$log" || { cat "$log" >&2; exit 1; }
    say "SKIPPED: clients of the server; PyPI cannot be reached"
    exit 77
  fi
  touch "$folder/ready"
fi
exec "$folder/bin/python" tests/clients/run.py "$program" "${@:2}"
