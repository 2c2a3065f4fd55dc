"""Whether formal proofs can be judged on this machine."""

import shutil

import pytest

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or shutil.which("coqchk") is None, reason="Coq is not installed (apt-get install coq)"
)
