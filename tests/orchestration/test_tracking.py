"""MLflow as a copy: whole when it works, late when it does not, and never in the way."""

import json
import shutil
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run

from schemas.config import TrackingConfig
from tasks.mlflow_copy import MARKER
from tasks.tracking import Follower, start_follower
from tasks.tracking_status import TrackingStatus, read_status
from tests.orchestration.conftest import Training

TIME = 1_700_000_000.0


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables, to be copied: making them takes seconds."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def runs(tmp_path: Path, database: Path) -> Path:
    shutil.copy(database, tmp_path / "mlflow.db")
    return tmp_path


def make_run(runs: Path, *, epochs: list[dict[str, Any]] | None = None, name: str = "run") -> Path:
    folder = runs / name
    folder.mkdir(exist_ok=True)
    write_config(folder, epochs or [{"optimizer": {"learning_rate": 0.1}}])
    return folder


def write_config(folder: Path, configs: list[dict[str, Any]]) -> None:
    epochs = [{"since": 5 * at, "config_sha256": f"{at:064}", "config": config} for at, config in enumerate(configs)]
    (folder / "run.yaml").write_text(yaml.safe_dump({"run_id": folder.name, "epochs": epochs}))


def write(folder: Path, iteration: int, values: dict[str, Any], *, at: float = 0.0) -> None:
    line = {"iteration": iteration, "time": TIME + iteration + at, "values": values}
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def follow(folder: Path, uri: str = "auto", experiment: str = "papo") -> TrackingStatus:
    return start_follower(folder, TrackingConfig(mlflow=uri, experiment=experiment), folder.parent).finish()


def only_run(runs: Path, experiment: str = "papo") -> tuple[MlflowClient, Run]:
    client = MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    (run,) = client.search_runs([found.experiment_id])
    return client, run


def points(client: MlflowClient, run: Run, name: str) -> list[tuple[int, int, float]]:
    history = client.get_metric_history(run.info.run_id, name)
    return sorted((point.step, point.timestamp, point.value) for point in history)


def test_every_attempt_goes_to_one_run_and_no_point_twice(runs: Path) -> None:
    """BUG-125: a resume finds its MLflow run, adds what is new, and changed values are tags and no error. Of an
    iteration that was written twice the last line counts, and a reader can tell that there were two."""
    folder = make_run(runs)
    for iteration in range(-1, 3):
        write(folder, iteration, {"accuracy": iteration / 10})
    assert follow(folder).state == "ok"
    (folder / "tracking.json").unlink()
    write_config(folder, [{"optimizer": {"learning_rate": 0.1}}, {"optimizer": {"learning_rate": 0.2}}])
    write(folder, 2, {"accuracy": 0.25}, at=0.5)
    write(folder, 3, {"accuracy": 0.1})
    write(folder, 3, {"accuracy": 0.3}, at=0.5)
    status = follow(folder)
    assert (status.state, status.behind) == ("ok", 0)
    client, run = only_run(runs)
    moment = [int((TIME + step) * 1000) for step in range(4)]
    assert points(client, run, "accuracy")[1:] == [
        (0, moment[0], 0.0), (1, moment[1], 0.1), (2, moment[2], 0.2),
        (2, moment[2] + 500, 0.25), (3, moment[3] + 500, 0.3),
    ]  # fmt: skip
    assert len(points(client, run, MARKER)) == 6
    assert run.data.tags["papo.rewritten_iterations"] == "2"
    assert run.data.params["optimizer.learning_rate"] == "0.1"
    assert run.data.tags["papo.changed.optimizer.learning_rate"].startswith("0.2 (since iteration 5; noted ")
    assert run.info.status == "FINISHED"


def test_c_01_a_copy_has_an_mlflow_run_of_its_own_with_its_origin(runs: Path) -> None:
    """A folder that was copied with its tracking.json, or renamed, writes nothing into the MLflow run of before."""
    folder = make_run(runs)
    write(folder, 0, {"accuracy": 0.5})
    assert follow(folder).state == "ok"
    client, first = only_run(runs)
    copy = runs / "copy"
    shutil.copytree(folder, copy)
    fields = yaml.safe_load((copy / "run.yaml").read_text())
    (copy / "run.yaml").write_text(yaml.safe_dump({**fields, "run_id": "copy", "origin": ["run"]}))
    write(copy, 1, {"accuracy": 0.75})
    for _ in range(2):
        assert follow(copy).state == "ok"
    found = client.search_runs([first.info.experiment_id])
    (other,) = [run for run in found if run.info.run_id != first.info.run_id]
    assert other.data.tags["papo.run_id"] == "copy"
    assert other.data.tags["papo.origin"] == "run"
    assert other.data.tags["papo.origin_mlflow_run"] == first.info.run_id
    assert [step for step, _, _ in points(client, other, "accuracy")] == [0, 1]
    assert [step for step, _, _ in points(client, first, "accuracy")] == [0]
    assert "papo.origin" not in client.get_run(first.info.run_id).data.tags
    write(folder, 1, {"accuracy": 0.25})
    assert follow(folder).mlflow_run_id == first.info.run_id


def test_names_lengths_and_numbers_are_cleaned_without_loss(runs: Path) -> None:
    """BUG-127, and values that are no finite numbers: counted, not copied."""
    folder = make_run(runs, epochs=[{"long": "x" * 7000, "list": [1, 2], "none": None}])
    names = ["acc@k=8", "correct%", "αβγ", "n" * 300, "a//b", "a@b", "a=b"]
    write(folder, 0, {**dict.fromkeys(names, 1.0), "missing": None, "flag": True})
    status = follow(folder)
    assert (status.state, status.skipped) == ("ok", 1)
    _, run = only_run(runs)
    meant = dict(tag.split(" = ", 1) for name, tag in run.data.tags.items() if name.startswith("papo.name."))
    assert sorted(meant.values()) == sorted(names)
    assert set(run.data.metrics) >= {*meant, "flag"}
    assert run.data.params["long"].startswith("sha256:")
    assert (run.data.params["list"], run.data.params["none"]) == ("[1, 2]", "null")


def test_a_deleted_experiment_is_a_reason_with_a_way_out(runs: Path) -> None:
    """BUG-126: training goes on, the status says what to do, and restoring it is enough."""
    folder = make_run(runs)
    write(folder, 0, {"accuracy": 0.5})
    client = MlflowClient(f"sqlite:///{runs / 'mlflow.db'}")
    experiment = client.create_experiment("papo")
    client.delete_experiment(experiment)
    status = follow(folder)
    assert (status.state, status.behind) == ("degraded", 1)
    assert "mlflow experiments restore" in str(status.reason)
    client.restore_experiment(experiment)
    assert follow(folder).behind == 0


def test_a_closed_port_costs_nothing_but_the_copy(undisturbed: Training, runs: Path) -> None:
    """BUG-121: the run completes, its status says degraded, and the next start with a server that works catches up."""
    training = Training(runs, "run", "--direct", "--mlflow", "http://127.0.0.1:9")
    ended = training.end()
    assert ended.code == 0, ended.said
    assert training.ledger == undisturbed.ledger
    assert training.tracking.state == "degraded"
    assert training.tracking.behind == 4
    assert "Nothing is lost" in ended.said
    assert Training(runs, "run", "--direct", "--mlflow", "auto").end().code == 0
    client, run = only_run(runs)
    assert [step for step, _, _ in points(client, run, MARKER)] == [-1, 0, 1, 2]


def test_a_server_that_never_answers_is_given_up_on(runs: Path) -> None:
    """BUG-121: it accepts and says nothing; the end of the run waits for the follower's own limit, not for it."""
    folder = make_run(runs)
    with closing(socket.create_server(("127.0.0.1", 0))) as hole:
        follower = start_follower(folder, TrackingConfig(mlflow=f"http://127.0.0.1:{hole.getsockname()[1]}"), runs)
        write(folder, 0, {"accuracy": 0.5})
        status = follower.finish()
    assert status.state == "degraded"
    assert follower.process is not None
    assert follower.process.returncode == 0, "it ended by itself"


def test_credentials_in_the_address_are_not_written_down(runs: Path) -> None:
    folder = make_run(runs)
    follow(folder, "http://user:secret@127.0.0.1:9")
    assert "secret" not in (folder / "tracking.json").read_text()


def test_tracking_can_be_off(runs: Path) -> None:
    folder = make_run(runs)
    follower: Follower = start_follower(folder, TrackingConfig(mlflow="off"), runs)
    assert follower.finish().state == "off"
    status = read_status(folder)
    assert status is not None
    assert status.state == "off"
