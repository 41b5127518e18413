#!/usr/bin/env bash
# Measures tooldecode, XGrammar and llguidance through the interfaces of vLLM and SGLang. One process runs the three in
# turns at every step, over the same schemas and tokens.
#
#   bash benchmarks/engines/run.sh [--json OUT] [--rows N] [--steps N] [--data DIR] [--program TOOLDECODE] [--wheel FILE]
#   bash benchmarks/engines/run.sh drafts [--engine vllm|sglang] [--cached] [--json OUT] [--rows N] [--drafts N] [--data DIR]
#
# `drafts` measures tokens per step with this package's drafts, by replay of BFCL's calls without a model, see drafts.py.
#
# `first mask` is the time from a schema's text to its first mask; each schema is new to the contender. `fill` is one
# row's share of the masks of a batch of 1, 32 or 256 requests, along texts that all three accept. `accept` reads one
# token. `draft of 4` tries four tokens and goes back. `copies` copies the same masks row by row with numpy, the floor
# of a fill. Figures are medians. Two threads are used as the engine uses them: vLLM fills lots of 16 rows, SGLang has a
# batched fill (XGrammar fills one row at a time there). Needs what tests/python.sh makes with TOOLDECODE_ENGINES=1, and
# the data directory in TOOLDECODE_SHARED_DATA, by default ../shared/data.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${TOOLDECODE_PYTHON:-$root/build/python/engines/bin/python}
if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("tooldecode", "vllm", "sglang"))))'; then
  echo "needs vLLM, SGLang and tooldecode in $python: TOOLDECODE_ENGINES=1 bash tests/python.sh" >&2
  exit 77
fi
script=measure
if [ "${1:-}" = drafts ]; then
  script=drafts
  shift
fi
exec "$python" "$root/benchmarks/engines/$script.py" "$@"
