#!/usr/bin/env bash
# Runs tooldecode, XGrammar and llguidance behind the interfaces of vLLM and SGLang, in one process, one after the other
# at every step and in turns, over the same schemas and tokens, and prints what they take.
#
#   bash benchmarks/engines/run.sh [--json OUT] [--rows N] [--steps N] [--data DIR]
#   bash benchmarks/engines/run.sh drafts [--cached] [--json OUT] [--rows N] [--drafts N] [--data DIR]
#
# The second: tokens per step of vLLM with this package's proposer, by replay of BFCL's calls without a model, see drafts.py.
#
# `first mask`: from a schema's text to its first mask, each schema new to the contender; `fill`: a row's share of the
# masks of a batch of 1, 32 or 256 requests, along texts that all three accept; `accept`: one token; `draft of 4`: trying
# four tokens and going back; `copies`: the same masks copied row by row by numpy, the floor of a fill. Every figure is a
# median. Two threads are what the engine has for them: vLLM's lots of 16 rows, SGLang's batched fill (XGrammar has one
# row at a time there). Needs what tests/python.sh makes with TOOLDECODE_ENGINES=1, and the data's folder in
# TOOLDECODE_SHARED_DATA, by default ../shared/data.
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
