"""What importing a layer brings along, seen in a fresh interpreter.

import-linter reads our source; this also sees what a third party drags in.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINES = {"torch", "transformers", "deepspeed", "accelerate"}
EFFECTS = {"prefect", "mlflow"}
SCRIPT = """
import importlib, sys
forbidden, modules = (names.split(",") for names in sys.argv[1:])
for module in modules:
    importlib.import_module(module)
    if brought := [name for name in forbidden if name in sys.modules]:
        sys.exit(f"importing {module} brings {', '.join(brought)}")
"""


def import_in_child(modules: list[str], *, forbidden: set[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, ",".join(sorted(forbidden)), ",".join(modules)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def modules_of(package: str) -> list[str]:
    paths = sorted((ROOT / package).rglob("*.py"))
    dotted = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.stem != "__main__"]
    return [name.removesuffix(".__init__") for name in dotted]


def in_an_engine(module: str) -> bool:
    # The follower's half is imported in the follower's process alone; it is an engine for MLflow.
    return module.startswith("papo.engines.") or module == "tasks.mlflow_copy"


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        pytest.param("papo", ENGINES | EFFECTS | {"pandera", "pydantic"}, id="papo"),
        pytest.param("schemas", ENGINES | EFFECTS, id="schemas"),
        pytest.param("tasks", ENGINES | EFFECTS, id="tasks"),
        pytest.param("flows", ENGINES, id="flows", marks=pytest.mark.slow),
    ],
)
def test_a_layer_brings_only_what_it_may(package: str, forbidden: set[str]) -> None:
    modules = [name for name in modules_of(package) if not in_an_engine(name)]

    child = import_in_child(modules, forbidden=forbidden)

    assert child.returncode == 0, child.stderr


def test_a_forbidden_import_is_seen() -> None:
    child = import_in_child(["email", "json"], forbidden={"json"})

    assert child.returncode != 0
    assert "importing json brings json" in child.stderr


def test_every_module_is_looked_at() -> None:
    assert {"papo.errors", "papo.values"} <= set(modules_of("papo"))
