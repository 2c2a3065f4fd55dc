"""Two ranks that train an adapter, of which one is killed in the middle of an update; a run that gets more ranks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks.disk import LocalDisk
from tasks.store import RunStore
from tests.drills.runs import wait_until
from tests.drills.test_deepspeed import RUN, SFT, Trained, kill_when

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The undisturbed run."""
    home = tmp_path_factory.mktemp("ranks")
    (home / "sft.yaml").write_text(yaml.safe_dump(SFT))
    model = RUN["model"] | {"lora": {"rank": 4}}
    engine = RUN["engine"] | {"ranks": 2, "zero_stage": 2, "micro_batch_size": 2}
    algorithm = RUN["algorithm"] | {"use_kl_loss": True, "kl_loss_coef": 0.01}
    config = RUN | {"model": model, "engine": engine, "algorithm": algorithm}
    (home / "drill.yaml").write_text(yaml.safe_dump(config))
    run = Trained(home, "straight")
    assert run.run() == 0, run.text
    assert run.optimizer_steps == [0, 1, 2, 3, 4]
    return run


def updating(run: Trained, iteration: int) -> bool:
    """Whether the update of an iteration has all its inputs: nothing else happens between them and its record."""
    folder: Path = run.folder / "iterations" / f"{iteration:05d}"
    return any(folder.glob("advantage-*.json"))


def test_one_rank_killed_in_mid_update_leaves_no_half_applied_step(straight: Trained) -> None:
    run = Trained(straight.home, "wounded")
    process = run.start()
    wait_until(lambda: updating(run, 1) or process.poll() is not None)
    os.kill(list(run.ranks)[1], signal.SIGKILL)
    assert process.wait(300) == 0, run.text
    (death,) = run.events("engine_died")
    assert "rank 1 of the engine was killed by SIGKILL" in death["reason"]
    assert run.hashes == straight.hashes


def test_a_run_killed_in_mid_update_resumes_to_the_same_adapter(straight: Trained) -> None:
    run = Trained(straight.home, "killed")
    kill_when(run, lambda: updating(run, 2))
    assert run.run() == 0, run.text
    assert run.hashes == straight.hashes


def test_a_run_that_is_given_another_rank_goes_on_as_another_lineage(tmp_path: Path) -> None:
    (tmp_path / "sft.yaml").write_text(yaml.safe_dump(SFT))
    (tmp_path / "drill.yaml").write_text(yaml.safe_dump(RUN))
    run = Trained(tmp_path, "wider")
    command = [Path(sys.executable).with_name("papo"), "train", "drill.yaml", "--direct", "--run-id", "wider"]
    places = ["--runs", "runs", "--models", "models"]
    for more in (["--limit", "2"], ["--set", "engine.ranks=2", "--set", "engine.zero_stage=3"]):
        done = subprocess.run([*command, *places, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stdout + done.stderr
    assert run.status.iteration == RUN["iterations"]
    (changed,) = run.events("sums_changed")
    assert (changed["before"]["ranks"], changed["now"]["ranks"], changed["lineage"]) == (1, 2, 1)
    commits = RunStore(LocalDisk(run.folder)).commits()
    assert [commit.lineage for commit in commits] == [0, 0, 0, 1, 1]
    assert run.optimizer_steps == [0, 1, 2, 3, 4]
