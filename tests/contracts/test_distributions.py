"""No other distribution may provide our top-level names: the first on the path would win in silence (ADR 0004)."""

import importlib.util
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("flows", "tasks", "schemas", "papo")


def top_level_names(distribution: Distribution) -> set[str]:
    declared = (distribution.read_text("top_level.txt") or "").split()
    recorded = [file.parts[0] for file in distribution.files or () if file.suffix == ".py"]
    return {name.removesuffix(".py") for name in (*declared, *recorded)}


def foreign_providers(path: list[str] | None = None) -> dict[str, set[str]]:
    """Those of our names that another distribution provides, by its name; `path` is searched instead of sys.path."""
    found = distributions() if path is None else distributions(path=path)
    named = {each.metadata["Name"]: top_level_names(each) & set(OURS) for each in found}
    return {name: taken for name, taken in named.items() if taken and name != "papo"}


def test_nobody_else_provides_our_names() -> None:
    assert foreign_providers() == {}


@pytest.mark.parametrize("evidence", ["top_level.txt", "RECORD"])
def test_a_foreign_provider_is_seen(tmp_path: Path, evidence: str) -> None:
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "__init__.py").touch()
    (info / evidence).write_text({"top_level.txt": "tasks\n", "RECORD": "tasks/__init__.py,,\n"}[evidence])

    assert foreign_providers([str(tmp_path)]) == {"other": {"tasks"}}


@pytest.mark.parametrize("name", OURS)
def test_the_name_is_this_checkout(name: str) -> None:
    spec = importlib.util.find_spec(name)

    assert spec is not None
    assert [Path(folder) for folder in spec.submodule_search_locations or ()] == [ROOT / name]
