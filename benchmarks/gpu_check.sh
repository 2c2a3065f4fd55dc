#!/usr/bin/env bash
# One check of a machine with a single GPU, in under ten minutes: the CUDA tests, then a random-weight Qwen2 through the
# whole loop with each generator that is there. Figures: benchmarks/results/*.json and *.md.
#
#   benchmarks/gpu_check.sh                                        # 0.5B
#   benchmarks/gpu_check.sh --size 1.5b
#   benchmarks/gpu_check.sh --device cpu --size tiny               # the same script without a GPU
#
# It takes the environment that there is: PYTHON=..., else .venv, else python3; nothing is downloaded. Where packages are
# missing it says which, and INSTALL=1 lets it make .venv by `make setup` (which needs a package index). vLLM is measured
# where its environment is there (--vllm FOLDER, default engines/vllm; `papo engines install-vllm` makes it).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ "${INSTALL:-0}" = 1 ] && { make setup || exit 1; }
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || command -v python3)}
missing=$("$PYTHON" - <<'PY'
from importlib.util import find_spec
needed = "accelerate deepspeed httpx jaxtyping mlflow numpy pandera polars prefect psutil pydantic rich safetensors tokenizers torch transformers typer yaml"
print(" ".join(name for name in needed.split() if find_spec(name) is None))
PY
) || { echo "$PYTHON is no Python that runs."; exit 1; }
if [ -n "$missing" ]; then
  echo "$PYTHON lacks: $missing"
  echo "Name another interpreter (PYTHON=...), or let this make .venv: INSTALL=1 $0 $*"
  exit 1
fi

export PYTHONPATH="$PWD" HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
code=0
case " $* " in
  *" --device cpu "*) echo "Without a GPU: the CUDA tests are left out." ;;
  *)
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader || true
    if "$PYTHON" -c 'import pytest' 2>/dev/null; then
      PAPO_GPU_TESTS_ON=cuda timeout 240 "$PYTHON" -m pytest -q -o addopts="--import-mode=importlib" tests/gpu || code=1
    else
      echo "pytest is not installed: the CUDA tests were not run."
    fi
    ;;
esac
"$PYTHON" -m benchmarks.gpu_check "$@" || code=1
exit $code
