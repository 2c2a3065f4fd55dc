"""A run of the real command, measured from outside: seconds by stage, tokens, memory, and the FLOPs of its updates."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl
import psutil

from papo.runs import RunView, open_run
from tasks.journal import EVENTS, METRICS, read_lines

ROOT = Path(__file__).parents[1]
LOOK_SECONDS = 0.25
GIB = 1024**3
DENSE_TFLOPS = {
    "H200": 989.0, "H100 PCIe": 756.0, "H100": 989.0, "A100": 312.0, "L40S": 362.0, "RTX 4090": 165.0, "A10": 125.0,
    "L4": 121.0,
}  # fmt: skip
"""bfloat16 matrix products without sparsity, from the vendor's data sheets, by a part of the device's name."""


class RunFailed(Exception):
    """The measured command did not end well; the message has the end of what it said."""


@dataclass(frozen=True)
class Figures:
    """What a run cost. Seconds and rates leave its first iteration out, where it has another: that one warms up."""

    iterations: int
    rollouts: int
    """Of an iteration."""
    prompt_tokens: float
    """Mean of a prompt."""
    completion_tokens: float
    """Mean of a completion."""
    generate_tokens_per_second: float
    """Sampled tokens by the seconds of `generate`, those of the weight sync left out."""
    loop_tokens_per_second: float
    """Sampled tokens by all seconds of an iteration."""
    iteration_seconds: float
    seconds: dict[str, float]
    """By stage, mean of an iteration."""
    sync_seconds: float | None
    """Mean of a weight sync with its checks; null where the learner samples."""
    server_start_seconds: float | None
    update_tflops: float
    """Model FLOPs of an update by its seconds, fingerprint of the new weights included."""
    mfu: float | None
    """Those by the device's peak; null where that is not known."""
    host_gib: float
    """Largest resident memory of all processes together."""
    gpu_gib: float | None
    """Largest memory in use on the GPUs, others' use included."""
    sampler_gap_mean: float | None
    """|log-prob of the trainer − of the sampler|, in nats, last iteration."""


def train(config: Path, folder: Path, *, run_id: str, timeout: float, arguments: tuple[str, ...] = ()) -> "Watch":
    """`papo train` without Prefect; the run is in `folder`/runs. Raises RunFailed."""
    command = [sys.executable, "-m", "flows.cli", "train", str(config), "--direct", "--run-id", run_id]
    command += ["--runs", str(folder / "runs"), "--models", str(folder / "models"), *arguments]
    log = folder / f"{run_id}.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=_environment())
        with Watch(process.pid) as watch:
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.terminate()
                code = process.wait(60)
                raise RunFailed(f"{run_id} was not done after {timeout:.0f} s.\n{_tail(log)}") from None
            finally:
                if process.poll() is None:
                    process.terminate()
    if code:
        raise RunFailed(f"{run_id} ended with exit code {code}.\n{_tail(log)}")
    return watch


def figures(run: Path, watch: "Watch", *, model: Path, peak_tflops: float | None) -> Figures:
    """The figures of a finished run."""
    view = open_run(run)
    lines = {line["iteration"]: line["values"] for line in read_lines((run / METRICS).read_bytes())}
    events = read_lines((run / EVENTS).read_bytes())
    counted = view.iterations[1:] or view.iterations
    rows = pl.concat([_lengths(view, iteration) for iteration in counted])
    stages: dict[str, float] = {}
    for iteration in counted:
        for name, value in lines[iteration].items():
            if name.startswith("seconds/") and value is not None:
                stage = name.removeprefix("seconds/")
                stages[stage] = stages.get(stage, 0.0) + value / len(counted)
    syncs = _syncs(events)
    took = [sync["seconds"] for iteration, sync in syncs if iteration in counted]
    starts = [sync["start_seconds"] for _, sync in syncs]
    beside = sum(sync["seconds"] + sync["start_seconds"] for iteration, sync in syncs if iteration in counted)
    sampled = int(rows["completion"].sum()) / len(counted)
    flops = model_flops(model, rows) / len(counted)
    tflops = flops / stages["update"] / 1e12
    return Figures(
        iterations=len(view.iterations),
        rollouts=rows.height // len(counted),
        prompt_tokens=float(rows["prompt"].sum()) / rows.height,
        completion_tokens=float(rows["completion"].sum()) / rows.height,
        generate_tokens_per_second=sampled / (stages["generate"] - beside / len(counted)),
        loop_tokens_per_second=sampled / sum(stages.values()),
        iteration_seconds=sum(stages.values()),
        seconds=dict(sorted(stages.items(), key=lambda item: -item[1])),
        sync_seconds=sum(took) / len(took) if took else None,
        server_start_seconds=max(starts, default=None),
        update_tflops=tflops,
        mfu=None if peak_tflops is None else tflops / peak_tflops,
        host_gib=watch.host / GIB,
        gpu_gib=None if watch.gpu is None else watch.gpu / GIB,
        sampler_gap_mean=lines[counted[-1]].get("update/sampler_logprob_gap_mean"),
    )


def model_flops(model: Path, rows: pl.DataFrame) -> float:
    """Floating point operations of forward and backward over the rows' own tokens, padding left out.

    6 for each weight of a matrix and token, and 6·layers·width·length² for causal attention (as in PaLM,
    arXiv:2204.02311 appendix B, with the causal half). The embedding counts once, as the head.
    """
    config = json.loads((model / "config.json").read_text())
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    block = hidden * (2 * queries + 2 * keys) + 3 * hidden * config["intermediate_size"]
    weights = layers * block + config["vocab_size"] * hidden
    lengths = (rows["prompt"] + rows["completion"]).to_numpy().astype(float)
    return float(6 * weights * lengths.sum() + 6 * layers * queries * (lengths**2).sum())


def peak_of(device: str) -> float | None:
    """Dense bfloat16 TFLOP/s of a device by its name; None for one that is not listed."""
    return next((peak for name, peak in DENSE_TFLOPS.items() if name.lower() in device.lower()), None)


class Watch:
    """Looks at a process and all it has started, a few times a second, and keeps the largest memory it saw."""

    def __init__(self, pid: int) -> None:
        self.host = 0
        self.gpu: int | None = None
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.host = max(self.host, _resident(self._pid))
            used = gpu_memory()
            if used is not None:
                self.gpu = max(self.gpu or 0, used)


def gpu_memory() -> int | None:
    """Bytes in use on all GPUs; None where there is none."""
    if shutil.which("nvidia-smi") is None:
        return None
    asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return sum(int(line) for line in done.stdout.split()) * 1024**2 if done.returncode == 0 else None


def as_table(named: dict[str, Figures]) -> str:
    """The figures as a Markdown table, a column a run."""
    rows: dict[str, dict[str, str]] = {}
    for name, each in named.items():
        for field, value in asdict(each).items():
            parts: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
            for part, number in parts.items():
                rows.setdefault(f"{field} {part}".strip().replace("_", " "), {})[name] = _shown(number)
    head = f"| | {' | '.join(named)} |\n|---|{'---:|' * len(named)}"
    return "\n".join(
        [head, *(f"| {row} | {' | '.join(cells.get(n, '–') for n in named)} |" for row, cells in rows.items())]
    )


def _shown(number: Any) -> str:
    if number is None:
        return "–"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _syncs(events: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Each weight sync with the iteration whose `generate` it came before."""
    found: list[tuple[int, dict[str, Any]]] = []
    iteration = -1
    for event in events:
        if event["event"] == "making" and event["stage"] == "generate":
            iteration = event["iteration"]
        elif event["event"] == "synced":
            found.append((iteration, event))
    return found


def _lengths(view: RunView, iteration: int) -> pl.DataFrame:
    """Tokens of each rollout's prompt and completion."""
    prompts = view.frame(iteration, "sample").select("group_id", pl.col("prompt_ids").list.len().alias("prompt"))
    rollouts = view.frame(iteration, "generate").select("group_id", pl.col("token_ids").list.len().alias("completion"))
    return rollouts.join(prompts, on="group_id", how="left")


def _resident(pid: int) -> int:
    total = 0
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-25:])
