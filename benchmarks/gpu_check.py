"""One check of a machine with a GPU: a random-weight Qwen2 through the full loop, measured. See gpu_check.sh.

    python -m benchmarks.gpu_check --size 0.5b --minutes 9
    python -m benchmarks.gpu_check --device cpu --size tiny        # the same script where there is no GPU

Writes NAME.json and NAME.md to --results. A run on a CPU is marked as not run on a GPU.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Figures, RunFailed, as_table, figures, peak_of, train
from papo.engines.vllm_install import read_stamp

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("torch", "transformers", "deepspeed", "polars")
LEAST_SECONDS = 60.0
"""With less time left than this no further run is begun."""
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"prompts": 2, "group": 4, "prompt": 24, "completion": 16, "micro": 4},
    "0.5b": {"prompts": 16, "group": 8, "prompt": 256, "completion": 512, "micro": 8},
    "1.5b": {"prompts": 16, "group": 8, "prompt": 256, "completion": 512, "micro": 4},
}
"""Of an iteration; every completion is sampled to its limit, for random weights hardly ever say the end token."""


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0, or 1 where a run failed; what was measured until then is written all the same."""
    given = _parser().parse_args(arguments)
    began = time.monotonic()
    device = _device(given.device)
    peak = given.peak_tflops or peak_of(device)
    done: dict[str, Figures] = {}
    failed: dict[str, str] = {}
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="papo-gpu-check-", dir=given.work) as scratch:
        folder = Path(scratch)
        model = _model(given.size, folder)
        for name in ("embedded", "vllm"):
            left = given.minutes * 60 - (time.monotonic() - began)
            if reason := _not_now(name, given, left):
                skipped[name] = reason
                continue
            config = folder / f"{name}.yaml"
            config.write_text(json.dumps(_config(name, given, model)))
            try:
                watch = train(config, folder, run_id=name, timeout=left)
                done[name] = figures(folder / "runs" / name, watch, model=model, peak_tflops=peak)
                _say(f"{name}: {done[name].generate_tokens_per_second:,.0f} tokens/s sampled")
            except RunFailed as error:
                failed[name] = str(error)
                _say(f"{name} failed:\n{error}")
    record = _record(given, device, peak, done, failed, skipped, seconds=time.monotonic() - began)
    _write(given.results, record, done)
    return 1 if failed or not done else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--size", choices=sorted(SHAPES), default="0.5b")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=8.0, help="limit on all runs together")
    parser.add_argument("--vllm", type=Path, default=Path("engines/vllm"), help="vLLM's environment")
    parser.add_argument("--peak-tflops", type=float, help="of the device, dense bfloat16; default: by its name")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, help="where to put models and runs; default: the temporary folder")
    return parser


def _device(kind: str) -> str:
    """The device's name. Ends the program where there is no GPU and one was asked for."""
    if kind == "cpu":
        lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    if not name:
        raise SystemExit(
            "torch sees no GPU here. Look at nvidia-smi and torch's build, or use --device cpu --size tiny."
        )
    return name


def _model(size: str, folder: Path) -> Path:
    """Made in a process of its own, which gives its memory back."""
    model = folder / "model"
    subprocess.run([sys.executable, "-m", "benchmarks.random_model", size, str(model)], check=True)
    return model


def _not_now(name: str, given: argparse.Namespace, left: float) -> str | None:
    if left < LEAST_SECONDS:
        return f"only {left:.0f} s of --minutes {given.minutes:g} were left"
    if name == "vllm" and not read_stamp(str(given.vllm)):
        return f"there is no vLLM environment in {given.vllm}: papo engines install-vllm --folder {given.vllm}"
    return None


def _config(name: str, given: argparse.Namespace, model: Path) -> dict[str, Any]:
    shape, gpu = SHAPES[given.size], given.device == "cuda"
    data = model.parent / "rows.jsonl"
    # Byte by byte, so that every prompt has the same number of tokens.
    rows = [{"prompt": f"{row:08d} ".ljust(shape["prompt"], "x"), "answer": "1"} for row in range(256)]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    generator: dict[str, Any] = {"kind": "embedded"}
    if name == "vllm":
        generator = {"kind": "vllm", "environment": str(given.vllm.absolute()), "gpu_memory_utilization": 0.4}
    return {
        "iterations": given.iterations,
        "prompts_per_iteration": shape["prompts"],
        "data": {"train": {"kind": "file", "path": str(data)}, "prompt": {"chat": "never"}},
        "model": {"path": str(model)},
        "sampling": {
            "num_generations": shape["group"],
            "max_prompt_length": shape["prompt"],
            "max_completion_length": shape["completion"],
        },
        "reward": {"outcome": {"kind": "answer_match"}},
        # No completion is ever right: the KL term makes the update a real one, and weight decay moves the weights, so
        # that there is something to sync.
        "algorithm": {"advantage": {"kind": "grpo"}, "use_kl_loss": True, "kl_loss_coef": 0.001},
        "optimizer": {"weight_decay": 0.1},
        "engine": {
            "dtype": "bfloat16" if gpu else "float32",
            "device": given.device,
            "shard_size": shape["prompts"] * shape["group"],
            "micro_batch_size": shape["micro"],
        },
        "generator": generator,
        "stop": {"all_truncated": 1000, "no_signal": None},
        "checkpoint": {"every": 1000},
        "tracking": {"mlflow": "off"},
    }


def _record(
    given: argparse.Namespace,
    device: str,
    peak: float | None,
    done: dict[str, Figures],
    failed: dict[str, str],
    skipped: dict[str, str],
    *,
    seconds: float,
) -> dict[str, Any]:
    return {
        "ran_on_gpu": given.device == "cuda",
        "device": device,
        "size": given.size,
        "shape": SHAPES[given.size],
        "peak_tflops": peak,
        "runs": {name: asdict(each) for name, each in done.items()},
        "failed": failed,
        "skipped": skipped,
        "seconds": round(seconds, 1),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "vllm": read_stamp(str(given.vllm)),
    }


def _write(folder: Path, record: dict[str, Any], done: dict[str, Figures]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{'gpu' if record['ran_on_gpu'] else 'cpu'}-{record['size']}"
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    mark = (
        ""
        if record["ran_on_gpu"]
        else "\n**Not run on a GPU**: this shows that the script works, not how fast papo is.\n"
    )
    shape = ", ".join(f"{key} {value}" for key, value in record["shape"].items())
    notes = [f"- {kind}: {text.splitlines()[0]}" for kind, text in {**record["failed"], **record["skipped"]}.items()]
    page = [
        f"# {record['size']} on {record['device']}",
        mark,
        f"Random weights; {shape}. {record['date']}, commit {record['commit']}, by `benchmarks/gpu_check.sh`;"
        " what each row means: `Figures` in `benchmarks/measure.py`.",
        "",
        as_table(done) if done else "Nothing was measured.",
        "",
        *(["Not measured:", "", *notes, ""] if notes else []),
    ]
    (folder / f"{name}.md").write_text("\n".join(page))
    _say(f"{folder / name}.json and .md")


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
