"""The configs on docs/data.md and in deployments are ones that this version takes, whatever files are there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.config import RunConfig
from schemas.data import FileSource, HuggingFaceSource, MixtureSource, ReasoningGymSource
from schemas.fieldchecks import check_fields
from schemas.loading import cross_faults

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
KINDS = (HuggingFaceSource, ReasoningGymSource, FileSource, MixtureSource)
BASE: dict[str, Any] = {"model": {"path": "somewhere"}, "reward": {"outcome": {"kind": "answer_match"}}}


@pytest.mark.parametrize(("text", "kind"), list(zip(BLOCKS, KINDS, strict=True)))
def test_a_block_is_a_valid_data_section(text: str, kind: type) -> None:
    checked = check_fields({**BASE, **yaml.safe_load(text)}, RunConfig)

    assert [str(fault) for fault in checked.faults] == []
    assert checked.config is not None
    assert isinstance(checked.config.data.train, kind)


@pytest.mark.parametrize("path", sorted((ROOT / "deployments" / "runs").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_run_config_of_the_deployments_is_valid(path: Path) -> None:
    checked = check_fields(yaml.safe_load(path.read_text(encoding="utf-8")), RunConfig)

    assert [str(fault) for fault in checked.faults] == []
    assert checked.config is not None
    assert [str(fault) for fault in cross_faults(checked.config)] == []


def test_a_wrong_field_would_be_seen() -> None:
    checked = check_fields({**BASE, "data": {"train": {"kind": "huggingface", "pth": "x"}}}, RunConfig)
    assert checked.faults
