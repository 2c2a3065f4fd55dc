"""The reference pages are what the fields say, and every field says something."""

import pytest

from flows.reference import FOLDER, field_docs, pages
from papo.metrics import IterationSummary, UpdateStats
from schemas.config import RunConfig
from schemas.sft import SftConfig
from schemas.shape import entries_of


@pytest.mark.parametrize("name", ["config.md", "sft.md", "metrics.md"])
def test_pages_are_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run: python -m flows.reference"


@pytest.mark.parametrize("config", [RunConfig, SftConfig])
def test_every_config_field_is_documented(config: type) -> None:
    missing: list[str] = []
    seen: list[type] = []
    queue = [config]
    while queue:
        section = queue.pop()
        if section in seen:
            continue
        seen.append(section)
        entries = entries_of(section)
        missing += [
            f"{section.__name__}.{name}" for name in entries if name not in field_docs(section) and name != "kind"
        ]
        for entry in entries.values():
            queue += [*entry.sections, *(entry.of_many.sections if entry.of_many else [])]
    assert missing == []


@pytest.mark.parametrize("kind", [IterationSummary, UpdateStats])
def test_every_metric_is_defined(kind: type) -> None:
    assert set(kind.__dataclass_fields__) == set(field_docs(kind))
