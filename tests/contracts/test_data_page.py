"""The configs on docs/data.md are ones that this version takes."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from schemas.config import RunConfig
from schemas.data import HuggingFaceSource, MixtureSource
from schemas.fieldchecks import check_fields

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BASE: dict[str, Any] = {"model": {"path": "somewhere"}, "reward": {"outcome": {"kind": "answer_match"}}}


@pytest.mark.parametrize(("text", "kind"), list(zip(BLOCKS, (HuggingFaceSource, MixtureSource), strict=True)))
def test_a_block_is_a_valid_data_section(text: str, kind: type) -> None:
    checked = check_fields({**BASE, **yaml.safe_load(text)}, RunConfig)

    assert [str(fault) for fault in checked.faults] == []
    assert checked.config is not None
    assert isinstance(checked.config.data.train, kind)


def test_a_wrong_field_would_be_seen() -> None:
    checked = check_fields({**BASE, "data": {"train": {"kind": "huggingface", "pth": "x"}}}, RunConfig)
    assert checked.faults
