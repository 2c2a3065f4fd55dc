"""Configs that used to fail once a model was loaded, or in the middle of a run, are refused by `papo validate`."""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

from flows.cli import app

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}="
COLUMNS = {"prompt": "question", "reference_answer": "answer"}
Damage = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config whose data and model folder are right; of the weights there is only what is looked at."""
    model = tmp_path / "model"
    model.mkdir()
    vocab = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {sign: 3 + at for at, sign in enumerate("0123456789+=")}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens(["<pad>", "<eos>"])
    tokenizer.save(str(model / "tokenizer.json"))
    write(model / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast", chat_template=TEMPLATE)
    write(model / "config.json", model_type="qwen2", vocab_size=15, max_position_embeddings=4096, eos_token_id=1)
    header = json.dumps(
        {"model.embed_tokens.weight": {"dtype": "F32", "shape": [15, 2], "data_offsets": [0, 120]}}
    ).encode()
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(120))
    rows(tmp_path, [(f"{at}+{at}=", str(2 * at)) for at in range(12)])
    return tmp_path


def write(path: Path, **fields: Any) -> None:
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **fields}))


def rows(folder: Path, given: list[tuple[str, str]]) -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in given))


def validated(folder: Path, *overrides: str) -> tuple[int, str]:
    config = {
        "data": {"train": {"kind": "file", "path": "rows.jsonl", "columns": COLUMNS}},
        "model": {"path": "model"},
        "reward": {"outcome": {"kind": "math_answer"}},
        "algorithm": {"advantage": {"kind": "grpo"}},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    words = [word for text in overrides for word in ("--set", text)]
    done = CliRunner().invoke(app, ["validate", str(folder / "run.yaml"), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def nothing(folder: Path) -> None:
    """The folder stays right."""


def cut(folder: Path) -> None:
    path = folder / "model" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])


CASES: list[tuple[str, Damage, list[str], str]] = [
    ("references", lambda at: rows(at, [("1+1=", "So 1+1=2.\n#### 2")] * 3), [], "mapping: gsm8k"),
    ("a tokenizer too large", lambda at: write(at / "model" / "added_tokens.json", late=15), [], "'late' of id 15"),
    ("positions", nothing, ["sampling.max_completion_length=9000"], "4096 positions"),
    ("weights cut short", cut, [], "model.path is model, which has model.safetensors, wh"),
    ("a nameless experiment", nothing, ["tracking.experiment=' '"], "tracking.experiment is ' '"),
    ("a tracker's password", nothing, ["tracking.mlflow=http://me:word@host"], "MLFLOW_TRACKING_PASSWORD"),
    ("a tracker that is none", nothing, ["tracking.mlflow=offf"], "tracking.mlflow is 'offf'"),
    ("prompts all too long", nothing, ["sampling.max_prompt_length=2"], "No prompt of data.train"),
    ("a prompt too long", nothing, ["sampling.max_prompt_length=6"], "2 of the 12 prompts of data.train"),
    (
        "a template that refuses",
        lambda at: write(at / "model" / "tokenizer_config.json", chat_template="{{ raise_exception('no system') }}"),
        ["data.prompt.chat=always"],
        "no system",
    ),
    ("a tokenizer cut short", lambda at: (at / "model" / "tokenizer.json").write_text("{"), [], "tokens of"),
    ("more rows than there are", nothing, ["data.train.take=200"], "take is 200, but rows.jsonl has 12 rows"),
    ("no such data", nothing, ["data.train.path=gone.jsonl"], "data.train.path is gone.jsonl"),
    ("no such column", nothing, ["data.train.columns.prompt=task"], "no column 'task'"),
    ("no such model", nothing, ["model.path=gone"], "model.path is gone"),
    (
        "a reward that is not there",
        nothing,
        ["reward.outcome={kind: custom, target: 'no_such_module:judge'}"],
        "no_such_module:judge fails on a sample completion (ModuleNotFoundError",
    ),
    (
        "a reward model that is not there",
        nothing,
        ["reward.outcome={kind: reward_model, path: gone}"],
        "reward.outcome.path is gone",
    ),
    ("decay that AdamW refuses", nothing, ["optimizer.betas=[0.9, 1.5]"], "optimizer.betas is [0.9, 1.5]"),
    ("no epsilon", nothing, ["optimizer.eps=-1.0"], "optimizer.eps is -1.0"),
]


def test_the_config_without_a_fault_is_valid(folder: Path) -> None:
    code, said = validated(folder)
    assert code == 0, said
    assert "Start it: " in said


@pytest.mark.parametrize(("damage", "overrides", "part"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_c_17_what_fails_late_is_refused(folder: Path, damage: Damage, overrides: list[str], part: str) -> None:
    damage(folder)
    code, said = validated(folder, *overrides)
    assert code == 2, said
    assert part in said
    assert "word@" not in said


def test_c_17_a_check_of_all_that_can_be_seen_loads_no_model(folder: Path) -> None:
    validated(folder)
    script = (
        "import sys\nfrom flows.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "engines = {'torch', 'transformers', 'deepspeed', 'prefect', 'mlflow'} & sys.modules.keys()\n"
        "sys.exit(f'imported {engines}' if engines else code)"
    )
    command = [sys.executable, "-c", script, "validate", str(folder / "run.yaml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
