"""Supervised steps: addressed batches, phases, and a run that may be cut anywhere."""

from pathlib import Path

import polars as pl
import pytest

from papo.engines.requests import Open, SftPhase
from papo.engines.settings import OptimizerSettings
from papo.engines.sft import batch_rows
from papo.errors import DataError, EngineError, NonFinite
from tests.engines import support
from tests.engines.conftest import Bench


@pytest.fixture
def rows(bench: Bench, tmp_path: Path) -> Path:
    bench.open()
    return support.write_pairs(bench.host, bench.model, tmp_path)


def test_steps_cut_into_calls_and_processes_are_the_same_run(bench: Bench, rows: Path, tmp_path: Path) -> None:
    straight = bench.host.sft(support.sft_request(rows, first=0, count=6))
    bench.open()
    first = bench.host.sft(support.sft_request(rows, first=0, count=2))
    bench.host.save(str(tmp_path / "checkpoint"))
    bench.host.close()
    bench.host.start()
    bench.host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
    second = bench.host.sft(support.sft_request(rows, first=2, count=4))
    assert first.losses + second.losses == straight.losses
    assert second.fingerprint == straight.fingerprint == bench.host.held
    assert straight.losses[-1] < straight.losses[0]


def test_steps_that_do_not_follow_are_refused(bench: Bench, rows: Path) -> None:
    with pytest.raises(EngineError, match="step 3 is to follow, but the open policy has taken 0"):
        bench.host.sft(support.sft_request(rows, first=3, count=1))


def test_the_loss_is_the_token_mean_over_completions(bench: Bench, rows: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    request = support.sft_request(rows, first=0, count=1, phases=(SftPhase(share=1.0),))
    (loss,) = bench.host.sft(request).losses
    frame = pl.read_parquet(rows)
    model = AutoModelForCausalLM.from_pretrained(bench.model).eval()
    total, tokens = 0.0, 0
    for row in batch_rows(request, [range(frame.height)], 0):
        prompt, completion = frame["prompt_ids"][row].to_list(), frame["completion_ids"][row].to_list()
        logits = model(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
        total -= float(logits.detach().log_softmax(-1).gather(1, torch.tensor(completion)[:, None]).sum())
        tokens += len(completion)
    assert loss == pytest.approx(total / tokens, rel=1e-5)


def test_each_pass_over_a_phase_visits_every_row_once() -> None:
    request = support.sft_request(Path("r"), first=0, count=12, total=12, batch_size=5)
    pools = [[10, 11, 12, 13], list(range(10))]
    steps = [batch_rows(request, pools, step) for step in range(12)]
    concise = [row for step in steps[:6] for row in step]
    assert sorted(concise[:4]) == sorted(concise[4:8]) == [10, 11, 12, 13]
    rest = [row for step in steps[6:] for row in step]
    assert sorted(rest[:10]) == sorted(rest[10:20]) == list(range(10))
    assert rest[:10] != rest[10:20]


def test_a_phase_without_rows_is_named(bench: Bench, rows: Path) -> None:
    with pytest.raises(DataError, match="style among sloppy"):
        bench.host.sft(support.sft_request(rows, first=0, count=1, phases=(SftPhase(share=1.0, styles=("sloppy",)),)))


def test_a_non_finite_step_is_an_error(bench: Bench, rows: Path) -> None:
    optimizer = OptimizerSettings(learning_rate=1e30, max_grad_norm=None)
    with pytest.raises(NonFinite, match="supervised step"):
        bench.host.sft(support.sft_request(rows, first=0, count=6, optimizer=optimizer))
    assert bench.host.held is None
