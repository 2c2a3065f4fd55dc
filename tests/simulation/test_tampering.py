"""Damage to every kind of file of a run (C-03): refused by name, mended, or proven to be nothing that is built upon.

Each case says what resume and status do. `REFUSED`: an error that names the file, and nothing has changed. `SAME`: the
run goes on and ends with the commits and the ledger of an undamaged one. docs/runs.md promises these and no others.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from papo.errors import Damaged, PapoError
from papo.runs import open_run as view_of
from schemas.canonical import canonical_json
from tasks.status import status_of
from tests.simulation.world import Silent, config_with
from tests.unit.tasks.bench import Bench, cut, flip

CONFIG = config_with(
    iterations=4,
    algorithm={"advantage": {"kind": "papo", "lambda_process": 0.5}, "use_kl_loss": True, "ppo_epochs": 2},
    checkpoint={"every": 1, "keep_every": 1},
)
DONE = 3
"""Iterations that are committed when the damage is done."""
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], bytes]:
    bench = Bench(tmp_path_factory.mktemp("straight") / "run", CONFIG)
    bench.run()
    return bench.hashes()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("sound") / "run", CONFIG)
    bench.run(limit=DONE)
    (bench.folder / "logs/engine.log").write_text("words\n")
    (bench.folder / "tracking.json").write_text("{}")
    shutil.copytree(bench.folder / "exports/00000", bench.folder / "exports/mine")
    return bench


@pytest.fixture
def bench(sound: Bench, tmp_path: Path) -> Bench:
    return sound.copy(tmp_path / "run")


@dataclass
class Heard(Silent):
    texts: list[str] = field(default_factory=list)

    def message(self, text: str) -> None:
        self.texts.append(text)


def delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b" ")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b'[1, "\xff')


def other_json(path: Path) -> None:
    path.write_bytes(b"[]")


def swap(path: Path) -> None:
    """With its neighbour of the same kind: the next shard, or the same file of the next iteration."""
    kind, _, rest = path.name.partition("-")
    pattern = f"{kind}-*{path.suffix}" if rest else path.name
    siblings = [found for found in sorted(path.parent.glob(pattern)) if found != path]
    siblings += [found for found in sorted(path.parent.parent.glob(f"*/{pattern}")) if found.parent != path.parent]
    other = siblings[0]
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def add_beside(path: Path) -> None:
    (path / "added.json").write_text("{}")


def forge(change: Callable[[dict[str, Any]], None]) -> Damage:
    """Change fields of a JSON record and write it as papo would have."""

    def damage(path: Path) -> None:
        record = json.loads(path.read_bytes())
        change(record)
        path.write_bytes(canonical_json(record))

    return damage


def forged_checkpoint(path: Path) -> None:
    """Other weights, and a manifest with their hash."""
    weights = json.loads((path / "weights.json").read_bytes()) | {"weights": "0" * 64}
    data = json.dumps(weights).encode()
    (path / "weights.json").write_bytes(data)
    forge(lambda manifest: manifest["files"].update({"weights.json": [sha256(data).hexdigest(), len(data)]}))(
        path / "manifest.json"
    )


def rows_of(change: Callable[[list[bytes]], None]) -> Damage:
    def damage(path: Path) -> None:
        rows = path.read_bytes().splitlines(keepends=True)
        change(rows)
        path.write_bytes(b"".join(rows))

    return damage


def swap_rows(rows: list[bytes]) -> None:
    rows[3], rows[4] = rows[4], rows[3]


def forge_ledger(path: Path) -> None:
    """One row changed, and every row after it chained anew."""
    lines, head = [], None
    for number, row in enumerate(path.read_bytes().splitlines()):
        content = json.loads(row)
        if number == 3:
            content["entry"]["output_sha256"] = "0" * 64
        line = canonical_json(content | {"previous": head})
        head = sha256(line).hexdigest()
        lines.append(line + b"\n")
    path.write_bytes(b"".join(lines))


def drop_input(record: dict[str, Any]) -> None:
    record["inputs"] = [ref for ref in record["inputs"] if ref["stage"] != "logprobs"]


def turn_inputs(record: dict[str, Any]) -> None:
    record["inputs"].reverse()


def other_result(record: dict[str, Any]) -> None:
    record["after"]["policy_sha256"] = "0" * 64


def other_policy(manifest: dict[str, Any]) -> None:
    manifest["state"]["policy"]["fingerprint"]["policy_sha256"] = "0" * 64


def drop_row(rows: list[bytes]) -> None:
    del rows[2]


def drop_last_row(rows: list[bytes]) -> None:
    del rows[-1]


REFUSED, SAME = "refused", "same"


@dataclass(frozen=True)
class Case:
    where: str
    damage: Damage
    resume: str = SAME
    status: str = SAME
    """REFUSED: raises; SAME: says nothing; else what it says of it."""
    says: str = ""
    """Of the error, or of a message while the run goes on."""
    replayed: bool = False
    """Without the checkpoints after the first, so that all updates are replayed."""

    @property
    def name(self) -> str:
        what = getattr(self.damage, "__name__", "forged")
        return f"{self.where}-{what}{'-replayed' if self.replayed else ''}"


OLD, NEWEST = "iterations/00000", "iterations/00002"
FRAMES = ("prompts", "rollouts", "logprobs", "outcomes", "scores", "advantages")
RESTED_ON = ("prompts", "rollouts", "logprobs", "advantages")
CASES = [
    # Frames of old and new iterations: not read again by a resume from a checkpoint, missing ones are told.
    *(Case(f"{at}/{kind}-0000-*.parquet", flip) for at in (OLD, NEWEST) for kind in FRAMES),
    *(Case(f"{at}/{kind}-0000-*.parquet", cut) for at in (OLD, NEWEST) for kind in FRAMES),
    *(
        Case(f"{at}/{kind}-0000-*.parquet", delete, status="missing", says="1 committed artifacts are missing")
        for at in (OLD, NEWEST)
        for kind in FRAMES
    ),
    *(Case(f"{OLD}/{kind}-0000-*.parquet", swap) for kind in ("rollouts", "outcomes", "scores")),
    Case("iterations/00001/evaluations-*", flip),
    Case("iterations/00001/evaluations-*", delete, status="missing", says="missing"),
    # The same where a replay needs them.
    *(Case(f"{OLD}/{kind}-0000-*.parquet", flip, REFUSED, says=kind, replayed=True) for kind in RESTED_ON),
    *(Case(f"{NEWEST}/{kind}-0000-*.parquet", cut, REFUSED, says=kind, replayed=True) for kind in RESTED_ON),
    *(Case(f"{OLD}/{kind}-0000-*.parquet", delete, REFUSED, "missing", says=kind, replayed=True) for kind in RESTED_ON),
    *(Case(f"{OLD}/{kind}-0000-*.parquet", swap, REFUSED, says="rollouts", replayed=True) for kind in ("rollouts",)),
    *(Case(f"{OLD}/{kind}-0000-*.parquet", flip, replayed=True) for kind in ("outcomes", "scores")),
    # The genesis: everything rests on it.
    *(Case(f"iterations/genesis/{file}", flip, REFUSED, REFUSED, file[:4]) for file in ("data-0000-*", "data-0001-*")),
    *(Case(f"iterations/genesis/{file}", delete, REFUSED, REFUSED, "missing") for file in ("data-0000-*", "prompts-*")),
    Case("iterations/genesis/prompts-*", flip, REFUSED, REFUSED, "prompts"),
    Case("iterations/genesis/data-0000-*", swap, REFUSED, REFUSED, "data"),
    Case("iterations/genesis/evaluations-*", flip),
    Case("iterations/genesis/prepare-0000-*", flip),
    # Sidecars and records of what is committed.
    *(Case(f"{at}/generate-0000-*", damage) for at in (OLD, NEWEST) for damage in (flip, delete)),
    *(Case(f"{OLD}/update-0000-*", damage) for damage in (flip, delete)),
    *(Case(f"{OLD}/update-0000-*", damage, REFUSED, says="update-0000", replayed=True) for damage in (cut, delete)),
    *(
        Case(f"{OLD}/update-0000-*", forge(change), REFUSED, says="update-0000", replayed=True)
        for change in (drop_input, turn_inputs, other_result)
    ),
    Case(OLD, add_beside),
    # Commits.
    *(
        Case(f"iterations/{at}/commit.json", damage, REFUSED, REFUSED, "commit")
        for at in ("genesis", "00001", "00002")
        for damage in (flip, cut, delete, garbage, forge(lambda commit: commit["summary"].update(accuracy=1.0)))
    ),
    Case("iterations/00001/commit.json", swap, REFUSED, REFUSED, "commit.json"),
    Case("iterations/00002/commit.json", forge(lambda commit: commit.update(fencing_token=10**6))),
    # The ledger: derived from the commits, and their witness.
    *(
        Case("ledger.jsonl", damage, REFUSED, REFUSED, "ledger.jsonl row")
        for damage in (flip, forge_ledger, rows_of(swap_rows), rows_of(drop_row))
    ),
    Case("ledger.jsonl", rows_of(lambda rows: rows.append(rows[-1])), REFUSED, REFUSED, "ledger.jsonl row"),
    *(Case("ledger.jsonl", damage) for damage in (delete, empty, rows_of(drop_last_row))),
    # Checkpoints: a faulty one is passed over for an older one, or refused where its own hashes were forged too.
    Case("checkpoints/00003/weights.json", flip, says="00003 is not used"),
    Case("checkpoints/00003/weights.json", delete, status="is missing", says="weights.json is missing"),
    Case("checkpoints/00003/weights.json", lengthen, status="another size", says="00003 is not used"),
    Case("checkpoints/00003/weights.json", swap, says="00003 is not used"),
    Case("checkpoints/00003", add_beside, says="added.json was not saved with it"),
    Case("checkpoints/00003/manifest.json", garbage, status="manifest.json is not whole"),
    Case("checkpoints/00003/manifest.json", forge(other_policy), says="names another state"),
    Case("checkpoints/00003/manifest.json", cut, status="manifest.json is not whole"),
    Case("checkpoints/00003/manifest.json", delete),
    Case("checkpoints/00003", forged_checkpoint, REFUSED, says="00003 was loaded, but the weights"),
    Case("checkpoints/00003/manifest.json", forge(lambda manifest: manifest.update(accuracy=2.0))),
    *(Case("checkpoints/00001/weights.json", damage) for damage in (flip, delete)),
    Case("checkpoints", delete, says="Replaying"),
    # What the model's folder was, and the reference.
    *(Case("model/tokenizer.json", damage, REFUSED, REFUSED, "tokenizer.json") for damage in (flip, lengthen, delete)),
    Case("model", add_beside, REFUSED, REFUSED, "model/added.json"),
    *(
        Case(f"exports/00000/{file}", damage, REFUSED, says=file)
        for file in ("model.json", "papo.json")
        for damage in (flip, garbage)
    ),
    Case("exports/00000/model.json", delete, REFUSED, says="model.json is missing"),
    Case("exports/00000", delete, REFUSED, says="reference policy, is missing"),
    Case("exports/00000", add_beside, REFUSED, says="added.json"),
    Case("exports/00000/papo.json", forge(lambda record: record.update(policy_sha256="0" * 64)), REFUSED, says="0000"),
    Case("exports/mine/model.json", flip),
    # What the run is.
    *(Case("run.yaml", damage, REFUSED, REFUSED, "run.yaml") for damage in (flip, cut, empty)),
    # Views and scratch: nothing rests on them.
    *(Case("metrics.jsonl", damage) for damage in (flip, cut, delete, garbage)),
    *(Case("events.jsonl", damage) for damage in (flip, cut, delete, garbage)),
    *(Case("tracking.json", damage) for damage in (delete, garbage, other_json)),
    *(Case("lock", damage) for damage in (delete, empty, garbage, other_json)),
    Case("scratch", add_beside),
    Case("logs/engine.log", delete),
]


def test_c_03_there_are_as_many_kinds_as_were_tried() -> None:
    assert len(CASES) >= 67


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.name}" for number, case in enumerate(CASES)])
def test_c_03_nothing_is_silently_built_upon(bench: Bench, straight: tuple[list[str], bytes], case: Case) -> None:
    if case.replayed:
        for path in bench.paths("checkpoints/*"):
            if path.name != "00000":
                shutil.rmtree(path)
    case.damage(bench.paths(case.where)[0])
    before = files_of(bench)

    if case.status == REFUSED:
        with pytest.raises(PapoError, match=case.says):
            status_of(bench.folder)
    else:
        found = status_of(bench.folder)
        assert found is not None
        assert bool(found.faults) == (case.status != SAME)
        assert case.status == SAME or any(case.status in fault for fault in found.faults)
        assert found.checked
        assert found.unchecked

    heard = Heard()
    if case.resume == REFUSED:
        with pytest.raises(PapoError, match=case.says) as raised:
            bench.run(reporter=heard)
        assert "estore" in str(raised.value) or "Use the same" in str(raised.value) or "remove it" in str(raised.value)
        after = files_of(bench)
        assert {path: after.get(path) for path in before} == before
    else:
        bench.run(reporter=heard)
        assert bench.hashes() == straight
        assert case.says in "\n".join(heard.texts)


def files_of(bench: Bench) -> dict[Path, bytes]:
    """All that a refusal must leave as it is."""
    views = ("lock", "events.jsonl", "metrics.jsonl")
    return {path: path.read_bytes() for path in bench.paths("**/*") if path.is_file() and path.name not in views}


def test_lost_lines_of_metrics_are_written_again(bench: Bench) -> None:
    delete(bench.folder / "metrics.jsonl")
    bench.opened(lambda run: None)
    lines = view_of(bench.folder).metrics()
    assert [line["iteration"] for line in lines] == [-1, 0, 1, 2]
    assert lines[-1]["values"] == bench.commits[-1].summary
    assert bench.events("opened")[-1]["metrics_mended"] == 4


def test_the_best_checkpoint_is_chosen_by_the_commits(bench: Bench) -> None:
    """A manifest is not in the chain: what it says of its accuracy must not decide which checkpoint is kept."""
    kept = bench.config.checkpoint.model_copy(update={"keep_every": None})
    bench.config = bench.config.model_copy(update={"checkpoint": kept})
    accuracies = {one.index: one.accuracy for one in bench.opened(lambda run: run.commits.evaluated)}
    worse = 1 if accuracies[2] >= accuracies[0] else 3
    forge(lambda manifest: manifest.update(accuracy=2.0))(bench.folder / f"checkpoints/{worse:05d}/manifest.json")
    bench.run()
    assert not (bench.folder / f"checkpoints/{worse:05d}").exists()


@pytest.mark.parametrize("damage", [flip, cut, delete, swap])
def test_what_is_looked_at_is_what_was_published(bench: Bench, damage: Damage) -> None:
    path = bench.paths(f"{OLD}/rollouts-0000-*")[0]
    damage(path)
    with pytest.raises(Damaged, match=path.name if damage is not swap else "rollouts-000"):
        view_of(bench.folder).rollouts(0)


@pytest.mark.parametrize("file", ["model/tokenizer.json", "iterations/genesis/prompts-*", "ledger.jsonl"])
def test_a_refusal_leaves_run_yaml_as_it_is(bench: Bench, file: str) -> None:
    """An amendment that comes with a damaged run is not half taken."""
    flip(bench.paths(file)[0])
    before = (bench.folder / "run.yaml").read_bytes()
    bench.config = CONFIG.model_copy(update={"iterations": 9})
    with pytest.raises(PapoError):
        bench.run()
    assert (bench.folder / "run.yaml").read_bytes() == before
