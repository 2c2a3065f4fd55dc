"""One MLflow run that is a copy of one papo run, over all its attempts. Imports MLflow: only the follower does so.

Every write can be repeated. A point carries the journal's time, so the same line gives the same (key, step, time,
value), which the SQL stores keep once; and a marker metric, last in its line's batch, tells which lines are there.
"""

import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from papo.version import papo_version
from tasks.mlflow_names import clean_name, clean_names, digest, flatten, numbers, parameter_value

MARKER = "journal/iteration"
SKIPPED = "journal/skipped"
BATCH = 900
"""Metrics a batch; MLflow takes 1,000."""
TAGS = 90
Line = dict[str, Any]
Point = tuple[int, int]
"""Step and time in ms."""
logger = logging.getLogger(__name__)


class TrackingFault(Exception):
    """What the user has to mend."""


class MlflowCopy:
    """The connection to the MLflow run; made new after any failure."""

    def __init__(
        self,
        *,
        uri: str,
        experiment: str,
        artifacts: str | None,
        run_yaml: Path,
        key: str,
        known: str | None,
        origin: str | None = None,
    ) -> None:
        """`artifacts`: where a new experiment keeps them (None: the server decides). `key` tells runs of one id apart.
        `known`: the MLflow run that this run was copied to before, if that is remembered; else its tags find it.
        `origin`: the MLflow run of what this run is a copy of."""
        self._client = MlflowClient(tracking_uri=uri)
        self._run_yaml = run_yaml
        run_file = yaml.safe_load(run_yaml.read_text())
        self._experiment_id = self._experiment(experiment, artifacts, uri)
        before = [*map(str, run_file.get("origin", []))]
        tags = {"papo.origin": ", ".join(before)} if before else {}
        tags |= {} if origin is None else {"papo.origin_mlflow_run": origin}
        run_id = str(run_file["run_id"])
        run = self._find(run_id, key, known) or self._create(run_id, key, tags)
        self.run_id: str = run.info.run_id
        self._client.update_run(self.run_id, status="RUNNING")
        self._names: set[str] = {name for name in run.data.tags if name.startswith("papo.name.")}
        self._rewritten: set[int] = _numbers_in(run.data.tags.get("papo.rewritten_iterations", ""))
        self._describe(run, run_file)
        self._copied = {(point.step, point.timestamp) for point in self._client.get_metric_history(self.run_id, MARKER)}
        self._steps = {step for step, _ in self._copied}

    @property
    def experiment_id(self) -> str:
        return self._experiment_id

    def holds(self, line: Line) -> bool:
        """Whether this journal line is there already."""
        return point_of(line) in self._copied

    def push(self, lines: list[Line]) -> int:
        """Copy journal lines, the last of each iteration; returns how many of their values are no finite numbers."""
        latest = {line["iteration"]: line for line in lines if not self.holds(line)}
        skipped, batch, points = 0, list[Metric](), list[Point]()
        for iteration in sorted(latest):
            metrics, missing = _metrics(latest[iteration])
            skipped += missing
            self._note(latest[iteration])
            if batch and len(batch) + len(metrics) > BATCH:
                self._log(batch, points)
                batch, points = [], []
            batch += metrics
            points.append(point_of(latest[iteration]))
        if batch:
            self._log(batch, points)
        return skipped

    def end(self, status: str) -> None:
        self._client.set_terminated(self.run_id, status=status)

    def _log(self, batch: list[Metric], points: list[Point]) -> None:
        for first in range(0, len(batch), BATCH):
            self._client.log_batch(self.run_id, metrics=batch[first : first + BATCH])
        self._copied.update(points)
        self._steps.update(step for step, _ in points)

    def _note(self, line: Line) -> None:
        """Tags for what the points do not tell: changed names, and iterations that were logged twice."""
        for cleaned, name in clean_names(list(line["values"])).items():
            tag = f"papo.name.{digest(name)}"
            if tag not in self._names:
                self._client.set_tag(self.run_id, tag, f"{cleaned} = {name}")
                self._names.add(tag)
        iteration = int(line["iteration"])
        if iteration in self._steps and iteration not in self._rewritten:
            self._rewritten.add(iteration)
            text = ",".join(map(str, sorted(self._rewritten)))
            self._client.set_tag(self.run_id, "papo.rewritten_iterations", text)

    def _experiment(self, name: str, artifacts: str | None, uri: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return self._client.create_experiment(name, artifact_location=artifacts)
            except MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            raise TrackingFault(
                f"the MLflow experiment {name!r} was deleted, and its name is still taken. Restore it (mlflow "
                f"experiments restore --experiment-id {found.experiment_id}, with MLFLOW_TRACKING_URI={uri}) or name "
                "another: --set tracking.experiment=NAME"
            )
        return found.experiment_id

    def _find(self, run_id: str, key: str, known: str | None) -> Run | None:
        if known is not None:
            try:
                run = self._client.get_run(known)
                if run.info.lifecycle_stage == "active":
                    return run
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
        query = f"tags.`papo.run_key` = '{key}'"
        found = self._client.search_runs([self._experiment_id], query, ViewType.ACTIVE_ONLY, max_results=10)
        return next((run for run in found if run.data.tags.get("papo.run_id") == run_id), None)

    def _create(self, run_id: str, key: str, origin: dict[str, str]) -> Run:
        """A new MLflow run; that of a copy says whose copy it is."""
        tags = {"papo.run_id": run_id, "papo.run_key": key, "papo.run_dir": str(self._run_yaml.parent)} | origin
        return self._client.create_run(self._experiment_id, run_name=run_id, tags=tags)

    def _describe(self, run: Run, run_file: dict[str, Any]) -> None:
        """Parameters, once; what changed since, as tags, for MLflow's parameters cannot change."""
        first, last = run_file["epochs"][0], run_file["epochs"][-1]
        had = run.data.params
        leaves = {clean_name(name): parameter_value(value) for name, value in flatten(first["config"]).items()}
        new = [Param(name, value) for name, value in leaves.items() if name not in had]
        for at in range(0, len(new), TAGS):
            self._client.log_batch(self.run_id, params=new[at : at + TAGS])
        tags = {"papo.version": papo_version()}
        tags |= {f"papo.config_epoch.{epoch['since']}": str(epoch["config_sha256"]) for epoch in run_file["epochs"]}
        when = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
        for name, value in flatten(last["config"]).items():
            cleaned, now = clean_name(name), parameter_value(value)
            tag = clean_name(f"papo.changed.{cleaned}")
            if had.get(cleaned, leaves.get(cleaned)) != now and not run.data.tags.get(tag, "").startswith(f"{now} "):
                tags[tag] = f"{now} (since iteration {last['since']}; noted {when})"
        new_tags = [RunTag(name, value) for name, value in tags.items() if run.data.tags.get(name) != value]
        for at in range(0, len(new_tags), TAGS):
            self._client.log_batch(self.run_id, tags=new_tags[at : at + TAGS])
        if not had or len(run_file["epochs"]) > 1:
            self._keep_config()

    def _keep_config(self) -> None:
        try:
            self._client.log_artifact(self.run_id, str(self._run_yaml))
        except Exception:
            # A server may take numbers and have no store for files; run.yaml stays where it is.
            logger.exception("run.yaml was not copied")


def point_of(line: Line) -> Point:
    """Where and when a journal line's numbers stand in MLflow."""
    return int(line["iteration"]), int(float(line["time"]) * 1000)


def _metrics(line: Line) -> tuple[list[Metric], int]:
    step, when = point_of(line)
    finite, skipped = numbers(line["values"])
    metrics = [Metric(name, number, when, step) for name, number in finite.items()]
    # The marker last: a line that is there only in part is copied again.
    return [*metrics, Metric(SKIPPED, float(skipped), when, step), Metric(MARKER, float(step), when, step)], skipped


def _numbers_in(text: str) -> set[int]:
    return {int(part) for part in text.split(",") if part}
