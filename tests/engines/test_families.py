"""C-02, C-07, C-23: each family of causal LMs straight through generation, update, checkpoint, resume and export.

Two engines do all of them one after another, whole and with adapters; both are started again before they resume.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from papo.algorithm import PAPO
from papo.engines.batching import Example, plan, position_limits, token_batch
from papo.engines.forward import score_completions
from papo.engines.host import EngineHost
from papo.engines.learner import module_fingerprint
from papo.engines.model_folder import kept_files
from papo.engines.requests import Fingerprint, Open
from papo.engines.settings import LoraSettings
from tests.engines import support
from tests.engines.families import FAMILIES, make

KL = replace(PAPO, use_kl_loss=True, kl_loss_coef=0.5)
LARGEST_GAP = 1e-4
"""Between log-probs that were sampled with a cache and those of the training pass: float32 sums in another order."""


@dataclass(frozen=True)
class Straight:
    """What an engine that nobody interrupted made of a family."""

    start: Fingerprint
    reference_sha256: str
    first: Fingerprint
    second: Fingerprint
    kl_loss: float
    gap: float
    sampled: pl.DataFrame
    """The rollouts after the checkpoint."""
    exported: pl.DataFrame
    """Their log-probs at the end, under the weights that the export has."""


FEW, FEWER = ("Gemma 3", "GPT-2", "GPT-NeoX", "Mixtral", "Phi-3", "Qwen3-MoE"), ("GPT-2", "Mixtral")
"""Those that are least like the model of all other tests: tied heads, merged experts, learned positions, windows."""
KINDS = {
    "whole": FEW,
    "adapters": FEWER,
    "more-whole": tuple(family for family in FAMILIES if family not in FEW),
    "more-adapters": tuple(family for family in FAMILIES if family not in FEWER),
}
CASES = [
    pytest.param(kind, family, marks=[pytest.mark.long] if kind.startswith("more") else [], id=f"{kind}-{family}")
    for kind, families in KINDS.items()
    for family in families
]


@dataclass(frozen=True)
class Ran:
    is_whole: bool
    folder: Path
    host: EngineHost
    prompts: Path
    straight: dict[str, Straight | Exception]

    def of(self, family: str) -> tuple[Straight, Path]:
        found = self.straight[family]
        if isinstance(found, Exception):
            raise found
        return found, self.folder / family


@pytest.fixture(scope="module")
def ran_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Ran]]:
    """Each kind is made when it is first asked for, and once: pytest would make a parameter's anew for each family."""
    made: dict[str, Ran] = {}

    def of(kind: str) -> Ran:
        if kind not in made:
            for other in made.values():
                other.host.close()
            made[kind] = _ran(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    yield of
    for each in made.values():
        each.host.close()


def _ran(kind: str, folder: Path) -> Ran:
    is_whole = kind.endswith("whole")
    host = support.new_host(folder, lora=None if is_whole else LoraSettings(rank=4, alpha=8.0))
    make("Llama", folder / "tokenizer")
    prompts = support.write_prompts(host, folder / "tokenizer", folder)
    straight = {family: _attempt(partial(_straight, host, prompts, family, folder / family)) for family in KINDS[kind]}
    host.close()
    return Ran(is_whole, folder, host, prompts, straight)


def _attempt(work: Callable[[], Straight]) -> Straight | Exception:
    try:
        return work()
    except Exception as error:  # it is the test of this family that fails, not those of all
        return error


def _straight(host: EngineHost, prompts: Path, family: str, folder: Path) -> Straight:
    """Open, update under a KL to the start model, save, update again, export."""
    make(family, folder / "model")
    _keep(folder / "model", folder / "kept")
    host.start()
    start = host.open(Open(model=str(folder / "model")))
    frame, first = _iteration(host, prompts, folder, 0)
    ours = support.write_logprobs(host, prompts, folder / "rollouts-0.parquet", folder / "ours.parquet")
    host.export(str(folder / "reference"))
    reference = host.open(Open(state="reference", model=str(folder / "reference")))
    kl = {"state": "reference", "column": "ref_logprobs"}
    support.write_logprobs(host, prompts, folder / "rollouts-0.parquet", folder / "kl.parquet", **kl)
    updated = host.update(replace(first, algorithm=KL, logprobs=(str(folder / "kl.parquet"),)))
    host.save(str(folder / "checkpoint"))
    sampled, second = _iteration(host, prompts, folder, 1)
    end = host.update(second)
    host.export(str(folder / "export"))
    path = folder / "rollouts-1.parquet"
    return Straight(
        start=start,
        reference_sha256=reference.policy_sha256,
        first=updated.fingerprint,
        second=end.fingerprint,
        kl_loss=updated.stats["kl_loss"],
        gap=_apart(frame["sampler_logprobs"], ours["old_logprobs"]),
        sampled=sampled,
        exported=support.write_logprobs(host, prompts, path, folder / "exported.parquet"),
    )


def _keep(model: Path, kept: Path) -> None:
    """What a run keeps of a model folder."""
    kept.mkdir()
    for name, data in kept_files(model).items():
        (kept / name).write_bytes(data)


def _iteration(host: EngineHost, prompts: Path, folder: Path, number: int) -> tuple[pl.DataFrame, Any]:
    path = folder / f"rollouts-{number}.parquet"
    frame = support.sample(host, prompts, path, rows=support.addresses(seed=number), max_completion_length=48)
    return frame, support.update_request(
        prompts, path, support.write_advantages(frame, folder / f"advantages-{number}.parquet")
    )


def _apart(left: pl.Series, right: pl.Series) -> float:
    return float((left.explode() - right.explode()).abs().max() or 0.0)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_c_02_c_07_c_23_a_family_goes_straight_through(
    ran_of: Callable[[str], Ran], kind: str, family: str, record_property: Callable[[str, object], None]
) -> None:
    """The table in docs/learner.md is made of the properties that each family notes."""
    ran = ran_of(kind)
    straight, folder = ran.of(family)
    record_property("gap", straight.gap)
    _check_resumed_is_straight(ran, straight, folder)
    record_property("resumed", True)
    # Log-probs of generation and training agree, also where prompt and completion end at the last position (C-23).
    assert straight.gap < LARGEST_GAP
    _check_reference_is_the_start_model(straight, folder)
    record_property("reference", True)
    _check_export_reloads_in_plain_transformers(ran, straight, folder)
    record_property("exported", True)


def _check_resumed_is_straight(ran: Ran, straight: Straight, folder: Path) -> None:
    # A checkpoint of an adapter does not hold the base.
    kept = folder / ("kept" if ran.is_whole else "model")
    ran.host.start()
    assert ran.host.open(Open(model=str(kept), checkpoint=str(folder / "checkpoint"))) == straight.first
    sampled, request = _iteration(ran.host, ran.prompts, folder, 1)
    assert sampled.equals(straight.sampled)
    # One of the two end tokens is declared in generation_config.json alone.
    ends = set(sampled.filter(pl.col("finish_reason") == "stop")["token_ids"].list.last())
    assert ends == {1, 5}
    assert ran.host.update(request).fingerprint == straight.second


def _check_reference_is_the_start_model(straight: Straight, folder: Path) -> None:
    start: Any = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    assert straight.reference_sha256 == module_fingerprint(start).policy_sha256
    # The policy is its own reference still.
    assert straight.kl_loss == pytest.approx(0.0, abs=1e-6)
    assert straight.first != straight.start


def _check_export_reloads_in_plain_transformers(ran: Ran, straight: Straight, folder: Path) -> None:
    plain: Any = AutoModelForCausalLM.from_pretrained(folder / "export").eval()
    if ran.is_whole:
        assert module_fingerprint(plain).policy_sha256 == straight.second.policy_sha256
    theirs = _plain_logprobs(plain, ran.prompts, straight.exported, folder)
    assert _apart(theirs, straight.exported["old_logprobs"]) < 1e-5
    before, after = ({p.name: p.read_bytes() for p in (folder / name).iterdir()} for name in ("model", "export"))
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"model.safetensors", "config.json"}
    assert AutoTokenizer.from_pretrained(folder / "export").eos_token_id == 1


def _plain_logprobs(plain: Any, prompts: Path, scored: pl.DataFrame, folder: Path) -> pl.Series:
    rollouts = pl.read_parquet(folder / "rollouts-1.parquet", columns=["group_id", "sample_index", "token_ids"])
    ids = pl.read_parquet(prompts, columns=["group_id", "prompt_ids"])
    rows = rollouts.join(ids, on="group_id", how="left", maintain_order="left")
    assert rows.select("group_id", "sample_index").equals(scored.select("group_id", "sample_index"))
    examples = [Example(*row) for row in rows.select("prompt_ids", "token_ids").iter_rows()]
    found: list[list[float]] = [[] for _ in examples]
    (batches,) = plan([row.length for row in examples], micro_batch_size=8, ranks=1, limits=position_limits(plain))
    for batch in batches:
        tokens = token_batch([examples[row] for row in batch.rows], width=batch.width, device=torch.device("cpu"))
        with torch.no_grad():
            table = score_completions(plain, tokens, temperature=1.0).logprobs.tolist()
        for row, cells in zip(batch.rows, table, strict=True):
            found[row] = cells[: len(examples[row].completion)]
    return pl.Series("logprobs", found, dtype=pl.List(pl.Float32))
