"""`papo data check`: every finding by row, nothing changed; `papo data prepare`: clean files, the same each time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from typer.testing import CliRunner

from flows.cli import app
from papo.engines.settings import PromptFormat
from papo.errors import DataError
from papo.rewards import AnswerMatch, CustomReward, MathAnswer, Verifier
from schemas.data import Columns, FileSource, MixtureSource
from tasks.datacheck import Checked, check_data
from tasks.dataprepare import COLUMNS, prepare_data
from tasks.datareport import page_of, report_of
from tasks.datarows import DataRow, data_rows
from tasks.difficulty import TIERS, PassRate, read_rates, stratified, tier_of
from tasks.promptlengths import prompt_lengths
from tasks.sources import read_source
from tests.simulation.world import CONFIG

RULE = AnswerMatch()
CLEAN: list[dict[str, Any]] = [
    {"prompt": "What is one and one?", "answer": "2"},
    {"prompt": "What is two and two?", "answer": 4},
    {"prompt": "What is three and three?", "answer": "6"},
]
LONG = "A train leaves the old station at noon and arrives in the evening of the same day, how far is it?"


def written(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def checked(
    folder: Path,
    rows: Sequence[Any],
    held_out: Sequence[Any] | None = None,
    *,
    reward: Verifier | None = RULE,
    **more: Any,
) -> Checked:
    found: dict[str, list[DataRow]] = {}
    for split, given in (("train", rows), ("evaluation", held_out)):
        if given is not None:
            written(folder / f"{split}.jsonl", given)
            found[split] = data_rows(FileSource(path=f"{split}.jsonl"), folder, split=split)
    return check_data(found, reward, **more)


def named(found: Checked) -> list[tuple[str, str]]:
    return [(finding.row.place, finding.reason) for finding in found.findings]


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_clean_rows_have_no_findings(tmp_path: Path) -> None:
    found = checked(tmp_path, CLEAN, [{"prompt": "What is nine and nine?", "answer": "18"}])
    assert named(found) == []
    assert len(found.clean("train")) == 3


def test_faults_of_all_kinds_are_listed_with_their_rows(tmp_path: Path) -> None:
    """BUG-130 and BUG-129: nothing stops at the first fault, and nothing is converted to be none."""
    rows = [*CLEAN, {"prompt": "q"}, {"prompt": " ", "answer": "1"}, {"prompt": "r", "answer": None}, "[]",
            {"prompt": "s", "answer": False}, {"prompt": "t", "answer": " "}]  # fmt: skip
    found = checked(tmp_path, rows)
    assert [(finding.row.place, finding.reason, finding.detail) for finding in found.findings] == [
        ("line 4", "faulty", "no column 'answer'"),
        ("line 5", "faulty", "prompt is blank"),
        ("line 6", "faulty", "reference_answer is null: use text or a number"),
        ("line 7", "faulty", "not a JSON object"),
        ("line 8", "faulty", "reference_answer is true or false: use text or a number"),
        ("line 9", "faulty", "reference_answer is blank"),
    ]
    assert [row.place for row in found.clean("train")] == ["line 1", "line 2", "line 3"]


def test_a_file_without_rows_is_an_error(tmp_path: Path) -> None:
    """BUG-130: zero rows."""
    with pytest.raises(DataError, match=r"data\.train has no rows"):
        checked(tmp_path, [])


def test_references_that_do_not_verify_are_found(tmp_path: Path) -> None:
    numeric = AnswerMatch(compare="numeric")
    found = checked(tmp_path, [*CLEAN, {"prompt": "q", "answer": "a few"}], reward=numeric)
    assert named(found) == [("line 4", "unverifiable")]
    assert "is not a number" in found.findings[0].detail


def test_a_reward_that_raises_is_a_finding(tmp_path: Path) -> None:
    reward = CustomReward(target=f"{__file__}:raises")
    found = checked(tmp_path, CLEAN[:1], reward=reward)
    assert named(found) == [("line 1", "unverifiable")]


def raises(completion: str, reference_answer: str) -> float:
    raise RuntimeError(completion + reference_answer)


def test_golds_of_several_values_are_flagged_and_stay(tmp_path: Path) -> None:
    """BUG-133: unclear golds are told at preparation; a grouped number and a coordinate of digits are told apart."""
    rows = [
        *CLEAN,
        {"prompt": "q", "answer": "3 or 4"},
        {"prompt": "r", "answer": "1,000"},
        {"prompt": "s", "answer": "x=1, y=2"},
    ]
    found = checked(tmp_path, rows)
    assert named(found) == [("line 4", "unclear"), ("line 6", "unclear")]
    assert len(found.clean("train")) == 6


def test_duplicates_keep_the_first_and_conflicts_keep_none(tmp_path: Path) -> None:
    """BUG-132: equal after case, space and unicode folding; 7.0 and 7 are one reference, 7 and 8 are two."""
    rows = [
        *CLEAN,
        {"prompt": "  what is  ONE and\none? ", "answer": "2.0"},
        {"prompt": "Ｗhat is two and two?", "answer": "5"},
        {"prompt": "other", "answer": "1"},
    ]
    found = checked(tmp_path, rows)
    assert named(found) == [("line 2", "conflict"), ("line 4", "duplicate"), ("line 5", "conflict")]
    others = [finding.other.place for finding in found.findings if finding.other]
    assert others == ["line 5", "line 1", "line 2"]
    assert [row.place for row in found.clean("train")] == ["line 1", "line 3", "line 6"]


def test_ids_that_stand_twice_are_found(tmp_path: Path) -> None:
    rows = [{**row, "id": "a"} for row in CLEAN]
    written(tmp_path / "rows.jsonl", rows)
    source = FileSource(path="rows.jsonl", columns=Columns(prompt_id="id"))
    found = check_data({"train": data_rows(source, tmp_path, split="train")}, RULE)
    assert named(found) == [("line 2", "repeated_id"), ("line 3", "repeated_id")]


def test_overlap_with_the_evaluation_data(tmp_path: Path) -> None:
    """BUG-132: a whole prompt after folding, and eight words in a row; seven are none."""
    rows = [
        *CLEAN,
        {"prompt": LONG.upper().replace(" ", "  "), "answer": "1"},
        {"prompt": "Once, the old station at noon and arrives in the end.", "answer": "1"},
        {"prompt": "Once, the old station at noon and arrives too late.", "answer": "1"},
    ]
    found = checked(tmp_path, rows, [{"prompt": "another", "answer": "1"}, {"prompt": LONG, "answer": "300"}])
    assert named(found) == [("line 4", "overlap_exact"), ("line 5", "overlap_words")]
    assert [finding.other and finding.other.split for finding in found.findings] == ["evaluation"] * 2
    assert len(found.clean("evaluation")) == 2


def test_an_instruction_that_half_of_the_prompts_share_is_no_overlap(tmp_path: Path) -> None:
    tail = "Think step by step and put the final answer in a box."
    held_out = [{"prompt": f"Item {number}. {tail}", "answer": "1"} for number in range(12)]
    found = checked(tmp_path, [{"prompt": f"Something else. {tail}", "answer": "2"}], held_out)
    assert named(found) == []
    assert found.common > 0
    few = checked(tmp_path, [{"prompt": f"Something else. {tail}", "answer": "2"}], held_out[:3])
    assert named(few) == [("line 1", "overlap_words")]


def test_rows_of_a_mixture_are_named_by_their_source(tmp_path: Path) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.jsonl", CLEAN[:1])
    members = [{"name": name, "source": {"kind": "file", "path": f"{name}.jsonl"}} for name in ("a", "b")]
    rows = data_rows(MixtureSource.model_validate({"sources": members}), tmp_path, split="train")
    found = check_data({"train": rows}, RULE)
    assert [row.prompt_id for row in rows] == ["a/0", "b/0"]
    assert named(found) == [("b line 1", "duplicate")]


def test_prompts_over_the_limit_are_found_by_their_tokens(tmp_path: Path) -> None:
    rows = {("train", f"line {number}"): number for number in (1, 2, 3)}
    found = checked(tmp_path, CLEAN, lengths=rows, limit=2)
    assert [(finding.row.place, finding.detail) for finding in found.findings] == [("line 3", "3 tokens, 2 allowed")]


def test_tokens_are_counted_after_the_template_by_the_folder(tmp_path: Path) -> None:
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    written(tmp_path / "rows.jsonl", [*CLEAN, "[]"])
    rows = data_rows(FileSource(path="rows.jsonl"), tmp_path, split="train")
    found = prompt_lengths(rows, tmp_path, PromptFormat(prefix="Say : "))
    assert found == {("train", "line 1"): 7, ("train", "line 2"): 7, ("train", "line 3"): 7}
    with pytest.raises(DataError, match=r"data\.prompt\.chat: never"):
        prompt_lengths(rows, tmp_path, PromptFormat(chat="always"))


def test_the_report_has_every_finding_and_the_same_hash_each_time(tmp_path: Path) -> None:
    rows = [*CLEAN, CLEAN[0], {"prompt": "q", "answer": None}]
    records = [report_of(checked(tmp_path, rows), reward_version="v") for _ in range(2)]
    assert records[0] == records[1]
    assert records[0]["splits"] == {"train": {"rows": 5, "clean": 3}}
    assert records[0]["reasons"] == {"duplicate": 1, "faulty": 1}
    assert records[0]["findings"][0] == {
        "split": "train",
        "prompt_id": "3",
        "place": "line 4",
        "reason": "duplicate",
        "detail": "prompt and reference of an earlier row",
        "other": {"split": "train", "prompt_id": "0", "place": "line 1"},
    }
    other = report_of(checked(tmp_path, CLEAN), reward_version="v")
    assert other["sha256"] != records[0]["sha256"]


def test_the_page_escapes_what_rows_hold(tmp_path: Path) -> None:
    evil = {"prompt": "<script>alert('x')</script>&", "answer": '"><img src=x onerror=y> or 2'}
    page = page_of(checked(tmp_path, [evil, evil]), title="<b>title</b>")
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>title" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;" in page
    assert "http" not in page


def test_prepared_files_are_what_a_run_reads(tmp_path: Path) -> None:
    """BUG-134 and BUG-135: each row keeps its own reference; the manifest's hash is of what a run gets."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And five?"}]
    rows = [*CLEAN, CLEAN[0], {"prompt": messages, "answer": "7.0"}]
    found = checked(tmp_path, rows, [{"prompt": "Held out?", "answer": "1"}])
    manifest = prepare_data(found, tmp_path / "clean", reward_version="v")
    assert manifest["splits"]["train"]["read"] == 5
    assert manifest["splits"]["train"]["kept"] == 4
    assert manifest == json.loads((tmp_path / "clean" / "manifest.json").read_text())
    again = read_source(FileSource(path="clean/train.jsonl", columns=COLUMNS), tmp_path, split="train")
    assert again.sha256 == manifest["splits"]["train"]["sha256"]
    assert again.frame["reference_answer"].to_list() == ["2", "4", "6", "7.0"]
    assert again.frame["prompt_id"].to_list() == ["0", "1", "2", "4"]
    assert sorted(path.name for path in (tmp_path / "clean").iterdir()) == [
        "evaluation.jsonl", "manifest.json", "report.html", "report.json", "train.jsonl",
    ]  # fmt: skip
    prepare_data(found, tmp_path / "again", reward_version="v")
    for path in (tmp_path / "clean").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    found = checked(tmp_path, CLEAN)
    as_lines = prepare_data(found, tmp_path / "a", reward_version="v")
    as_table = prepare_data(found, tmp_path / "b", reward_version="v", form="parquet")
    assert pl.read_parquet(tmp_path / "b" / "train.parquet").columns == ["prompt_id", "prompt", "answer"]
    assert as_lines["splits"]["train"]["sha256"] == as_table["splits"]["train"]["sha256"]


def test_nothing_is_left_behind_or_written_over(tmp_path: Path) -> None:
    found = checked(tmp_path, [CLEAN[0], {**CLEAN[0], "answer": "3"}])
    with pytest.raises(DataError, match="No row of train is left"):
        prepare_data(found, tmp_path / "clean", reward_version="v")
    (tmp_path / "taken").mkdir()
    with pytest.raises(DataError, match="is there already"):
        prepare_data(checked(tmp_path, CLEAN), tmp_path / "taken", reward_version="v")
    mixed = [CLEAN[0], {"prompt": [{"role": "user", "content": "x"}], "answer": "1"}]
    with pytest.raises(DataError, match="use jsonl"):
        prepare_data(checked(tmp_path, mixed), tmp_path / "clean", reward_version="v", form="parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken", "train.jsonl"]


@pytest.mark.parametrize(
    ("share", "tier"),
    [(0, None), (0.01, "hardest"), (0.125, "hardest"), (0.126, "hard"), (0.375, "hard"), (0.5, "middle"),
     (0.625, "middle"), (0.75, "easy"), (0.875, "easy"), (0.9, "easiest"), (1, "easiest")],
)  # fmt: skip
def test_tiers_are_those_of_papos_stratified_set(share: float, tier: str | None) -> None:
    assert tier_of(share) == tier


def test_rows_that_were_never_solved_go_and_those_always_solved_are_flagged(tmp_path: Path) -> None:
    """BUG-133: 0 % and 100 % over the tries are listed with their ids."""
    rates = {"0": PassRate(share=0, tries=8), "1": PassRate(share=1, tries=8), "2": PassRate(share=0.5)}
    found = checked(tmp_path, CLEAN, rates=rates)
    assert [(finding.row.prompt_id, finding.reason, finding.detail) for finding in found.findings] == [
        ("0", "never_solved", "pass rate 0 of 8 tries"),
        ("1", "always_solved", "pass rate 1 of 8 tries"),
    ]
    manifest = prepare_data(found, tmp_path / "clean", reward_version="v", rates=rates)
    assert manifest["splits"]["train"]["kept"] == 2
    lines = (tmp_path / "clean" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line)["tier"] for line in lines] == ["easiest", "middle"]


def test_a_stratified_set_has_as_many_rows_of_each_tier(tmp_path: Path) -> None:
    rows = [{"prompt": f"Question number {number}", "answer": str(number)} for number in range(50)]
    bounds = [bound for _, bound in TIERS]
    rates = {str(number): PassRate(share=bounds[number % 5]) for number in range(49)}
    found = checked(tmp_path, rows).clean("train")
    drawn = stratified(found, rates, per_tier=4)
    shares = [rates[row.prompt_id].share for row in drawn]
    assert [shares.count(bound) for bound in bounds] == [4] * 5
    assert drawn == [row for row in found if row in drawn]
    shuffled = stratified(found[::-1], rates, per_tier=4)
    assert {row.prompt_id for row in shuffled} == {row.prompt_id for row in drawn}
    with pytest.raises(DataError, match="easiest has 9"):
        stratified(found, rates, per_tier=10)


def test_faults_of_a_file_of_pass_rates_are_told_at_once(tmp_path: Path) -> None:
    rows = [
        {"prompt_id": 1, "pass_rate": 0.5, "tries": 8},
        {"prompt_id": 2, "pass_rate": 1.5},
        {"prompt_id": 1, "pass_rate": 0},
        {"pass_rate": 1},
        "[",
        {"prompt_id": 3, "pass_rate": 1, "tries": 1.5},
    ]
    path = written(tmp_path / "rates.jsonl", rows)
    with pytest.raises(DataError) as raised:
        read_rates(path)
    assert "has 5 faults" in str(raised.value)
    path = written(path, [{"prompt_id": 1, "pass_rate": 0.5, "tries": 8}])
    assert read_rates(path) == {"1": PassRate(share=0.5, tries=8)}


def test_the_data_of_a_run_config(tmp_path: Path) -> None:
    """By the config's sources and reward, relative to its folder; the model's tokenizer counts."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.save(str(model / "tokenizer.json"))
    (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    written(tmp_path / "rows.jsonl", [*CLEAN, {"prompt": LONG, "answer": "1"}])
    data = {"train": {"kind": "file", "path": "rows.jsonl"}}
    sampling = {**CONFIG["sampling"], "max_prompt_length": 10}
    config = {**CONFIG, "model": {"path": "model"}, "data": data, "sampling": sampling}
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    code, said = run("check", tmp_path / "run.yaml")
    assert code == 4, said
    assert "overlong 1: line 4" in said


def test_the_commands(tmp_path: Path) -> None:
    """BUG-132: conflicts fail unless they are dropped, overlap is dropped unless it is to fail."""
    rows = [*CLEAN, {"prompt": "What is one and one?", "answer": "3"}, {"prompt": LONG, "answer": "1"}]
    train = written(tmp_path / "train.jsonl", rows)
    test = written(tmp_path / "test.jsonl", [{"prompt": LONG, "answer": "1"}])
    report, page, folder = tmp_path / "report.json", tmp_path / "page.html", tmp_path / "clean"
    code, said = run("check", train, "--against", test, "--output", report, "--html", page)
    assert code == 4
    assert "remove  conflict 2: line 1, line 4" in said
    assert "3 rows would be left out" in said
    assert json.loads(report.read_text())["reasons"] == {"conflict": 2, "overlap_exact": 1}
    assert page.read_text().startswith("<!doctype html>")
    code, said = run("prepare", train, "--against", test, "--output", folder)
    assert (code, folder.exists()) == (2, False)
    assert "2 rows are in conflict" in said
    code, said = run(
        "prepare", train, "--against", test, "--output", folder, "--conflicts", "drop", "--overlap", "fail"
    )
    assert (code, folder.exists()) == (2, False)
    code, said = run("prepare", train, "--against", test, "--output", folder, "--conflicts", "drop")
    assert code == 0
    assert "train: 2 of 5 rows" in said
    assert run("check", folder / "train.jsonl")[0] == 0


def test_a_mapped_file_and_a_task(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [{"question": "1+1=", "answer": "#### 2"}])
    assert run("check", path, "--mapping", "gsm8k")[0] == 0
    puzzles = written(tmp_path / "puzzles.jsonl", [{"q": "Make 25", "a": "5 + 24 - 4"}, {"q": "Make 1", "a": "1/0"}])
    code, said = run("check", puzzles, "--prompt", "q", "--reference-answer", "a", "--task", "countdown")
    assert code == 4
    assert "unverifiable 1: line 2" in said
    tests = written(tmp_path / "tests.jsonl", [{"prompt": "def f():", "test": "def check(f): ...", "entry_point": "f"}])
    assert run("check", tests, "--mapping", "humaneval")[0] == 0, "a set of programs was held to mathematics"


def test_why_rows_are_left_out_is_said_without_a_report(tmp_path: Path) -> None:
    """A wrong --mapping called every row of a clean file faulty, and nothing told why."""
    path = written(tmp_path / "rows.jsonl", [*CLEAN, {"prompt": "What?", "answer": "all of the things you can see"}])
    assert "4 × no column 'question'" in run("check", path, "--mapping", "gsm8k")[1]
    assert "1 × the reference answer" in run("check", path)[1]
    assert "1 further reasons" in run("check", written(path, ["x", "[]", "", {}, {"prompt": "", "answer": "1"}]))[1]


def test_a_folder_that_is_there_is_refused_before_the_data_is_read(tmp_path: Path) -> None:
    assert "is there already" in run("prepare", tmp_path / "nothing.jsonl", "--output", tmp_path)[1]
    assert "is a folder: name the file" in run("check", tmp_path)[1]


def test_all_options_that_cannot_be_are_told_at_once(tmp_path: Path) -> None:
    wrong = ("--mapping", "gsm9k", "--task", "poetry", "--max-prompt-length", "9", "--per-tier", "4", "--format", "csv")
    said = run("prepare", tmp_path / "rows.jsonl", "--output", tmp_path, *wrong)[1]
    told = (
        "use one of gsm8k",
        "use one of math",
        "go together",
        "needs --pass-rates",
        "jsonl, parquet",
        "there already",
    )
    assert [words for words in told if words not in said] == []
    assert run("prepare", tmp_path / "rows.jsonl", "--output", tmp_path, "--per-tier", "0")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--mapping", "gsm9k"), "use one of gsm8k"),
        (("--task", "poetry"), "use one of math"),
        (("--max-prompt-length", "9"), "go together"),
    ],
)
def test_options_that_cannot_be_are_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    path = written(tmp_path / "rows.jsonl", CLEAN)
    code, said = run("check", path, *arguments)
    assert code == 2
    assert told in said


def test_references_verify_wherever_the_reward_looks_for_answers(tmp_path: Path) -> None:
    """A reward that reads one place alone called every reference of a clean file unverifiable."""
    settings = (AnswerMatch(extract=("boxed",)), AnswerMatch(extract=("answer_tag",)))
    for reward in settings:
        rows = [*CLEAN, {"prompt": CLEAN[0]["prompt"], "answer": "2.0"}]
        found = checked(tmp_path, rows, reward=reward)
        assert named(found) == [("line 4", "duplicate")]
    assert named(checked(tmp_path, CLEAN, reward=MathAnswer(extract=("hashes",)))) == []


def test_where_a_reward_model_alone_judges_references_are_not_looked_at(tmp_path: Path) -> None:
    """Everything else is: one prompt twice is a duplicate, whatever stands beside it."""
    rows = [*CLEAN, {"prompt": "What is 1 + 2?", "answer": "no number at all"}, {**CLEAN[0], "answer": "3"}]
    assert named(checked(tmp_path, rows, reward=None)) == [("line 5", "duplicate")]
