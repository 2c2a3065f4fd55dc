"""What is trained beside the policy: the critic and the implicit PRM, and what is measured for them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2Model

from papo.advantages import Gae
from papo.algorithm import PAPO, Algorithm
from papo.engines.batching import Example, token_batch
from papo.engines.critic import ValueModel, completion_values
from papo.engines.requests import CriticUpdate, Fingerprint, Open, TrainPrm, UpdateResult, Values
from papo.engines.settings import OptimizerSettings
from papo.errors import EngineError
from papo.losses import ImplicitPrm, RolloutCorrection
from tests.engines import support
from tests.engines.conftest import Bench

FAST = OptimizerSettings(learning_rate=1e-2)
PPO = Algorithm(advantage=Gae(), cliprange_value=None)


@pytest.fixture
def both(bench: Bench, tmp_path: Path) -> Bench:
    """The bench with a critic and an implicit PRM open, and rollouts in tmp_path."""
    model = str(bench.model)
    bench.host.start()
    bench.host.open(Open(model=model, critic=model, implicit_prm=model))
    bench.host.open(Open(state="reference", model=model))
    support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet")
    return bench


def values(bench: Bench, folder: Path) -> pl.DataFrame:
    path = folder / "values.parquet"
    bench.host.values(Values(prompts=str(bench.prompts), rollouts=str(folder / "rollouts.parquet"), output=str(path)))
    return pl.read_parquet(path)


def ppo_update(bench: Bench, folder: Path, **changes: Any) -> UpdateResult:
    """One step whose returns are 1 for odd rows and 0 for even ones."""
    frame = pl.read_parquet(folder / "rollouts.parquet")
    values(bench, folder)
    returns = [[float(row % 2)] * len(ids) for row, ids in enumerate(frame["token_ids"])]
    advantages = support.write_advantages(frame, folder / "advantages.parquet", returns=returns)
    critic = CriticUpdate(optimizer=FAST, values=(str(folder / "values.parquet"),))
    request = support.update_request(
        bench.prompts, folder / "rollouts.parquet", advantages, algorithm=PPO, critic=critic
    )
    return bench.host.update(replace(request, **changes))


def prm_request(bench: Bench, folder: Path, **changes: Any) -> TrainPrm:
    """Odd rows are right."""
    frame = pl.read_parquet(folder / "rollouts.parquet")
    labels = pl.Series("accuracy_reward", [float(row % 2) for row in range(frame.height)])
    frame.select("group_id", "sample_index").with_columns(labels).write_parquet(folder / "outcomes.parquet")
    support.write_logprobs(
        bench.host,
        bench.prompts,
        folder / "rollouts.parquet",
        folder / "ref.parquet",
        state="reference",
        column="ref_logprobs",
    )
    request: dict[str, Any] = {
        "prompts": (str(bench.prompts),),
        "rollouts": (str(folder / "rollouts.parquet"),),
        "outcomes": (str(folder / "outcomes.parquet"),),
        "logprobs": (str(folder / "ref.parquet"),),
        "reference": "ref_logprobs",
        "groups": tuple(range(support.GROUPS)),
        "implicit_prm": ImplicitPrm(),
        "mini_batch_size": None,
        "optimizer": FAST,
        "temperature": 1.0,
        "seed": 5,
    }
    return TrainPrm(**(request | changes))


def test_a_value_is_read_before_its_token_is_seen() -> None:
    """Against one forward pass for each prefix, on a critic whose head is not zero, with rows of unlike lengths."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=32,
    )  # fmt: skip
    critic = ValueModel(Qwen2Model(config)).eval()
    torch.nn.init.normal_(critic.head.weight)
    rows = [Example([1, 2, 3], [4, 5, 6, 7]), Example([8], [9, 10])]
    batch = token_batch(rows, width=16, device=torch.device("cpu"))
    with torch.no_grad():
        before, final = completion_values(critic, batch)
        for row, example in enumerate(rows):
            ids = [*example.prompt, *example.completion]
            for token in range(len(example.completion)):
                prefix = torch.tensor([ids[: len(example.prompt) + token]])
                assert float(before[row, token]) == pytest.approx(float(critic(prefix)[0, -1]), abs=1e-5)
            assert float(final[row]) == pytest.approx(float(critic(torch.tensor([ids]))[0, -1]), abs=1e-5)


def test_a_critic_begins_at_zero_and_learns_the_returns(both: Bench, tmp_path: Path) -> None:
    first = values(both, tmp_path)
    assert first["token_values"].explode().abs().max() == 0.0
    lengths = pl.read_parquet(tmp_path / "rollouts.parquet")["token_ids"].list.len()
    assert first["token_values"].list.len().to_list() == lengths.to_list()
    figures = [ppo_update(both, tmp_path, train_policy=False).stats for _ in range(30)]
    assert figures[0]["explained_variance"] == pytest.approx(0.0, abs=1e-6)
    assert figures[-1]["explained_variance"] > 0.3
    assert figures[-1]["value_loss"] < figures[0]["value_loss"]


def test_while_the_critic_warms_up_the_policy_stays(both: Bench, tmp_path: Path) -> None:
    before = both.host.held
    assert before is not None
    result = ppo_update(both, tmp_path, train_policy=False)
    after = result.fingerprint
    assert (after.policy_sha256, after.optimizer_sha256) == (before.policy_sha256, before.optimizer_sha256)
    assert after.critic != before.critic
    assert not result.stats["no_signal"]
    assert ppo_update(both, tmp_path).fingerprint.policy_sha256 != before.policy_sha256


def test_an_implicit_prm_learns_the_outcomes_and_leaves_the_rest_alone(both: Bench, tmp_path: Path) -> None:
    before = both.host.held
    assert before is not None
    request = prm_request(both, tmp_path)
    losses = [both.host.train_prm(request).stats["loss"] for _ in range(30)]
    assert losses[0] == pytest.approx(0.6931, abs=1e-3), "it starts as its reference, so every reward is 0"
    assert losses[-1] < 0.5
    after = both.host.held
    assert after is not None
    assert after == replace(before, implicit_prm=after.implicit_prm)
    assert after.implicit_prm is not None
    assert after.implicit_prm.optimizer_steps == 30


def test_rows_of_other_groups_do_not_train_the_implicit_prm(both: Bench, tmp_path: Path) -> None:
    stats = both.host.train_prm(prm_request(both, tmp_path, groups=(1,))).stats
    assert stats["rows"] == support.SAMPLES


def both_trained(bench: Bench, folder: Path) -> Fingerprint:
    bench.host.train_prm(prm_request(bench, folder))
    return ppo_update(bench, folder).fingerprint


def test_all_that_is_held_goes_on_from_a_checkpoint_to_the_bit(both: Bench, tmp_path: Path) -> None:
    saved = both_trained(both, tmp_path)
    both.host.save(str(tmp_path / "checkpoint"))
    straight = both_trained(both, tmp_path)
    both.host.close()
    both.host.start()
    model = str(both.model)
    opened = both.host.open(
        Open(model=model, checkpoint=str(tmp_path / "checkpoint"), critic=model, implicit_prm=model)
    )
    assert opened == saved
    both.host.open(Open(state="reference", model=model))
    assert both_trained(both, tmp_path) == straight


def test_without_a_critic_there_are_no_values(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet")
    with pytest.raises(EngineError, match="no critic is open"):
        values(bench, tmp_path)


def test_entropies_and_the_kl_over_the_vocabulary_are_what_torch_says(both: Bench, tmp_path: Path) -> None:
    ppo_update(both, tmp_path)
    rollouts, both_asked = tmp_path / "rollouts.parquet", {"temperature": 0.7}
    said = support.write_logprobs(
        both.host, both.prompts, rollouts, tmp_path / "old.parquet", entropies=True, **both_asked
    )
    kl = support.write_logprobs(
        both.host, both.prompts, rollouts, tmp_path / "ref.parquet", state="reference", column="ref_logprobs",
        full_kl=True, **both_asked,
    )  # fmt: skip
    both.host.export(str(tmp_path / "export"))
    policy = AutoModelForCausalLM.from_pretrained(tmp_path / "export", dtype=torch.float32).eval()
    reference = AutoModelForCausalLM.from_pretrained(both.model, dtype=torch.float32).eval()
    prompts = dict(pl.read_parquet(both.prompts).select("group_id", "prompt_ids").iter_rows())
    frame = pl.read_parquet(rollouts)
    assert float(kl["full_kl"].explode().to_numpy().max()) > 0
    for row in range(3):
        prompt, ids = list(prompts[frame["group_id"][row]]), list(frame["token_ids"][row])
        with torch.no_grad():
            tables = [
                model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1] for model in (policy, reference)
            ]
        log_p, log_q = ((table / 0.7).log_softmax(-1) for table in tables)
        entropy, divergence = -(log_p.exp() * log_p).sum(-1), (log_p.exp() * (log_p - log_q)).sum(-1)
        assert said["entropies"][row].to_list() == pytest.approx(entropy.tolist(), abs=1e-4)
        assert kl["full_kl"][row].to_list() == pytest.approx(divergence.tolist(), abs=1e-5)


def test_rejection_looks_at_whole_rows_before_the_divisor_is_counted(bench: Bench, tmp_path: Path) -> None:
    """One row's sampler is far off: the update equals one without the row."""
    bench.open()
    frame = support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet")
    far = frame.with_columns(
        sampler_logprobs=pl.when(pl.int_range(frame.height) == 3)
        .then(pl.col("sampler_logprobs").list.eval(pl.element() - 2.0))
        .otherwise(pl.col("sampler_logprobs"))
    )
    algorithm = replace(PAPO, rollout_correction=RolloutCorrection(rollout_rs="seq_mean_k1"))
    results: list[UpdateResult] = []
    for rows, chosen in ((far, algorithm), (frame.filter(pl.int_range(frame.height) != 3), PAPO)):
        bench.open()
        rows.write_parquet(tmp_path / "rollouts.parquet")
        support.write_logprobs(bench.host, bench.prompts, tmp_path / "rollouts.parquet", tmp_path / "old.parquet")
        advantages = support.write_advantages(rows, tmp_path / "advantages.parquet", [1.0] * rows.height)
        request = support.update_request(
            bench.prompts, tmp_path / "rollouts.parquet", advantages, algorithm=chosen,
            logprobs=(tmp_path / "old.parquet",),
        )  # fmt: skip
        results.append(bench.host.update(request))
    assert 0 < results[0].stats["rejected_ratio"] < 0.2
    assert results[0].stats["tokens"] == results[1].stats["tokens"]
    assert results[0].stats["grad_norm"] == pytest.approx(results[1].stats["grad_norm"], rel=1e-5)
