"""Mutants that can be made: `make mutants` takes long, and would tell of a text that has changed only at its end."""

import pytest

from tests.mutants.mutants import MUTANTS
from tests.mutants.run import ROOT


@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_what_a_mutant_replaces_stands_in_its_file_once(number: int) -> None:
    mutant = MUTANTS[number]
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert all((ROOT / test).exists() for test in mutant.tests)
