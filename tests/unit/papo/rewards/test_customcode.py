"""What counts as the code of a custom reward, and what its hash tells apart (C-05)."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from papo.rewards import CustomReward
from papo.rewards.custom import load_edited
from papo.rewards.customcode import code_sha256

REWARD = "def right(completion, *, reference_answer, finish_reason):\n    return completion == reference_answer\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], Path]]:
    """Writes modules into a folder that can be imported from; what was imported of it is forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def written(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()
        return tmp_path

    yield written
    for name in set(sys.modules) - before:
        del sys.modules[name]


def names(target: str) -> list[str]:
    return sorted(CustomReward(target=target).sources())


def test_c_05_a_file_is_its_own_code_and_a_line_of_it_is_another_hash(write: Callable[..., Path]) -> None:
    file = write({"c05_own.py": REWARD}) / "c05_own.py"
    reward = CustomReward(target=f"{file}:right")
    assert reward.sources() == {"c05_own.py": REWARD.encode()}
    first = code_sha256(reward.sources())
    assert code_sha256(reward.sources()) == first
    file.write_text(REWARD.replace("==", "!="))
    assert code_sha256(reward.sources()) != first
    file.write_text(REWARD)
    assert code_sha256(reward.sources()) == first


def test_c_05_what_it_imports_of_ones_own_belongs_to_it(write: Callable[..., Path]) -> None:
    """Modules, packages with those above them, relative imports, and what these import in turn."""
    folder = write(
        {
            "c05_top.py": "from c05_pack.inner import tidy\nimport c05_plain as plain\n" + REWARD,
            "c05_plain.py": "import json\nimport numpy\n",
            "c05_pack/__init__.py": "",
            "c05_pack/inner/__init__.py": "from .deep import tidy\nfrom .. import beside\n",
            "c05_pack/inner/deep.py": "from ..beside import WORDS\n\ndef tidy(text):\n    return text\n",
            "c05_pack/beside.py": "WORDS = ()\n",
            "c05_pack/unused.py": "",
        }
    )
    expected = [
        "c05_pack/__init__.py", "c05_pack/beside.py", "c05_pack/inner/__init__.py", "c05_pack/inner/deep.py",
        "c05_plain.py", "c05_top.py",
    ]  # fmt: skip
    assert names("c05_top:right") == expected
    assert names(f"{folder / 'c05_top.py'}:right") == expected
    reward = CustomReward(target="c05_top:right")
    before = code_sha256(reward.sources())
    for path in expected:
        text = (folder / path).read_text()
        (folder / path).write_text(text + "# one more line\n")
        assert code_sha256(reward.sources()) != before, f"{path} does not count"
        (folder / path).write_text(text)
        assert code_sha256(reward.sources()) == before
    (folder / "c05_pack/unused.py").write_text("1\n")
    assert code_sha256(reward.sources()) == before


def test_c_05_a_decorator_of_another_module_does_not_hide_the_code(write: Callable[..., Path]) -> None:
    write(
        {
            "c05_deco.py": (
                "import functools\n\n"
                "def bare(function):\n    def call(*args, **named):\n        return function(*args, **named)\n"
                "    return call\n\n"
                "def wrapped(function):\n    return functools.wraps(function)(bare(function))\n"
            ),
            "c05_bare.py": f"import c05_deco\n\n@c05_deco.bare\n{REWARD}",
            "c05_wrapped.py": f"from c05_deco import wrapped\n\n@wrapped\n{REWARD}",
            "c05_partial.py": f"from functools import partial\n\n{REWARD}\nstrict = partial(right)\n",
            "c05_class.py": (
                "class Right:\n    def __call__(self, completion, *, reference_answer, finish_reason):\n"
                "        return True\n\nright = Right()\n"
            ),
            "c05_front.py": "from c05_class import right\n",
        }
    )
    assert names("c05_bare:right") == ["c05_bare.py", "c05_deco.py"]
    assert names("c05_wrapped:right") == ["c05_deco.py", "c05_wrapped.py"]
    assert names("c05_partial:strict") == ["c05_partial.py"]
    assert CustomReward(target="c05_partial:strict").self_test() is None
    assert names("c05_front:right") == ["c05_class.py", "c05_front.py"]


def test_c_05_what_is_installed_is_not_followed_nor_imported(write: Callable[..., Path]) -> None:
    folder = write(
        {
            "site-packages/c05_lib/__init__.py": "import c05_own_too\n",
            "site-packages/c05_lib/inner.py": "raise RuntimeError\n",
            "c05_own_too.py": "",
            "c05_uses.py": REWARD + "    import c05_lib.inner\n    import json.tool\n    import papo.chains\n",
        }
    )
    sys.path.insert(0, str(folder / "site-packages"))
    try:
        assert names("c05_uses:right") == ["c05_uses.py"]
        assert "c05_lib" not in sys.modules
    finally:
        sys.path.remove(str(folder / "site-packages"))


def test_c_05_the_self_test_leaves_a_changed_code_to_the_run(write: Callable[..., Path]) -> None:
    file = write({"c05_self.py": REWARD}) / "c05_self.py"
    assert CustomReward(target=f"{file}:right", code="0" * 64).self_test() is None


@pytest.mark.parametrize("spelled", ["c05_edit:right", "{folder}/c05_edit.py:right"])
def test_c_05_edited_code_is_loaded_anew_in_a_process_that_has_it(write: Callable[..., Path], spelled: str) -> None:
    """Of the same length and within the same second."""
    folder = write(
        {
            "c05_edit.py": "from c05_number import number\n\ndef right(completion, **_):\n    return number()\n",
            "c05_number.py": "def number():\n    return 1.0\n",
        }
    )
    reward = CustomReward(target=spelled.format(folder=folder))

    def judged() -> float | None:
        return reward("x", reference_answer="2", finish_reason="stop").accuracy

    assert judged() == 1.0
    write({"c05_number.py": "def number():\n    return 0.5\n"})
    assert judged() == 1.0
    load_edited(reward.target)
    assert judged() == 0.5
