"""Every config and command of the topologies in docs/vllm.md is one that this version takes."""

import re
import shlex
from pathlib import Path
from typing import Any, cast

import pytest
import typer
import yaml

from flows.cli import app
from schemas.config import RunConfig
from schemas.generators import VllmGenerator
from schemas.loading import load_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "vllm.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Topologies") : PAGE.index("## Measured")]
TOPOLOGY = re.compile(r"^\*\*(?P<name>[^*]+)\.\*\*(?P<text>.*?)(?=^\*\*|\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?P<kind>yaml|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BASE: dict[str, Any] = {
    "data": {"train": {"kind": "chains"}},
    "model": {"cold_start": str(ROOT / "deployments" / "sft" / "arithmetic-vllm.yaml")},
    "reward": {"outcome": {"kind": "answer_match"}},
    "scorer": {"kind": "chain_rubric"},
}


def blocks(kind: str) -> list[Any]:
    """Each block of a kind with the name of its topology."""
    return [
        pytest.param(block["text"], id=topology["name"])
        for topology in TOPOLOGY.finditer(SECTION)
        for block in BLOCK.finditer(topology["text"])
        if block["kind"] == kind
    ]


def loaded(text: str, folder: Path, overrides: list[str]) -> RunConfig:
    path = folder / "RUN.yaml"
    path.write_text(yaml.safe_dump({**BASE, **yaml.safe_load(text)}))
    return load_config(path, overrides)


def commands(text: str) -> list[list[str]]:
    """The words of each call of papo, without what the shell does around it."""
    joined = text.replace("\\\n", " ").replace("$((8000 + gpu))", "8000")
    found = [re.sub(r"\s*&$", "", line.strip()) for line in joined.splitlines() if "papo " in line]
    return [shlex.split(line[line.index("papo ") :], comments=True)[1:] for line in found]


def test_there_are_five_topologies_each_with_a_config_and_a_command() -> None:
    names = [topology["name"] for topology in TOPOLOGY.finditer(SECTION)]
    assert len(names) == 5
    assert len(blocks("yaml")) == 5
    assert len(blocks("sh")) >= 5


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_topology_s_config_is_valid(text: str, tmp_path: Path) -> None:
    config = loaded(text, tmp_path, [])
    assert isinstance(config.generator, VllmGenerator)
    assert set(yaml.safe_load(text)) <= {"engine", "generator", "algorithm"}, "nothing that a topology does not decide"


@pytest.mark.parametrize("text", blocks("sh"))
def test_a_topology_s_commands_are_those_of_the_command_line(text: str) -> None:
    found = commands(text)
    assert found
    for words in found:
        parsed = parsed_by_the_command_line(words)
        config = parsed.get("config")
        if config is not None and config != "RUN.yaml":
            assert load_config(ROOT / config, parsed.get("set_") or [])


def parsed_by_the_command_line(words: list[str]) -> dict[str, Any]:
    """The parameters of the command that `words` call. Raises what typer raises for a word that it does not know."""
    # Any: typer brings a click of its own, whose classes are private.
    command: Any = typer.main.get_command(app)
    rest = words
    while hasattr(command, "resolve_command"):
        _, command, rest = command.resolve_command(command.context_class(command), rest)
    return cast("dict[str, Any]", command.make_context(command.name, rest).params)


def test_a_wrong_config_and_a_wrong_command_would_be_seen(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="gpus names 1 of the 2 servers"):
        loaded('generator: {kind: vllm, num_servers: 2, gpus: ["1"]}', tmp_path, [])
    for wrong in (["train", "RUN.yaml", "--ranks", "4"], ["engines", "serve-vlm", "models/MODEL"]):
        with pytest.raises(Exception, match="No such"):
            parsed_by_the_command_line(wrong)
