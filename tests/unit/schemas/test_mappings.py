"""Each public mapping on rows of our own making in the shape of its data set, and on rows that lack what it needs."""

import json
from typing import Any, get_args

import pytest

from schemas.data import FileSource
from schemas.mappings import MAPPINGS, MappingName
from schemas.publicrows import UnmappedError

BOX = "We add them, so $\\boxed{\\frac{3}{4}}$."
TESTS = json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})
OBJECTS = "class Solution:\n    def f(self, head: ListNode) -> int:\n        "
GROUP = {"input": ["1 2\n"], "output": ["3\n"]}
SHEPHERD = "Tom has 2 pens and buys 3. How many? Step 1: 2 + 3 = 5 ки\nStep 2: The answer is: 5 ки"
LABEL = "Tom has 2 pens and buys 3. How many? Step 1: 2 + 3 = 5 +\nStep 2: The answer is: 5 +"

ROWS: list[tuple[MappingName, dict[str, Any], Any, Any, Any]] = [
    ("gsm8k", {"question": "Q", "answer": "1000 + 234 = <<1000+234=1234>>1234\n#### 1,234"}, "Q", "1234", None),
    ("math", {"problem": "Q", "level": "Level 1", "type": "Algebra", "solution": BOX}, "Q", "\\frac{3}{4}", None),
    ("math", {"problem": "Q", "solution": "First \\boxed{1}, then \\boxed{2}"}, "Q", "2", None),
    ("math500", {"problem": "Q", "answer": "p - q", "unique_id": "test/1.json"}, "Q", "p - q", "test/1.json"),
    ("numinamath", {"source": "olympiads", "problem": "Q", "solution": BOX}, "Q", "\\frac{3}{4}", None),
    ("numinamath", {"problem": "Q", "solution": "…", "answer": "(1,2)"}, "Q", "(1,2)", None),
    ("ultrainteract", {"id": "u1", "instruction": "Q", "response": "Step 1: …\nAnswer:\n12"}, "Q", "12", "u1"),
    ("deepscaler", {"problem": "Q", "answer": "7", "solution": "…"}, "Q", "7", None),
    ("openr1", {"problem": "Q", "answer": "7", "uuid": "a-b"}, "Q", "7", "a-b"),
    (
        "apps",
        {"problem_id": "3", "question": "Add.\n", "input_output": TESTS, "starter_code": ""},
        "Add.\n",
        TESTS,
        "3",
    ),
    (
        "apps",
        {"problem_id": "4", "question": "Add.", "input_output": TESTS, "starter_code": "def add(a, b):"},
        "Add.\n\ndef add(a, b):",
        TESTS,
        "4",
    ),
    (
        "apps",
        {"problem_id": "5", "question": "Sum.", "input_output": TESTS, "starter_code": OBJECTS},
        f"Sum.\n\n{OBJECTS}",
        json.dumps({**json.loads(TESTS), "starter_code": OBJECTS}),
        "5",
    ),
    (
        "codecontests",
        {"description": "Add.", "public_tests": GROUP, "private_tests": {"input": [], "output": []}},
        "Add.",
        json.dumps({"public_tests": GROUP}),
        None,
    ),
    (
        "prm800k",
        {"question": {"problem": "Q", "ground_truth_answer": "28800", "pre_generated_answer": "1"}, "label": {}},
        "Q",
        "28800",
        None,
    ),
    ("math_shepherd", {"input": SHEPHERD, "label": LABEL}, "Tom has 2 pens and buys 3. How many?", "5", None),
    ("aime", {"id": 60, "problem": "Q", "answer": "204", "solution": "…"}, "Q", "204", 60),
    ("aime", {"ID": "2024-I-1", "Problem": "Q", "Answer": "204"}, "Q", "204", "2024-I-1"),
    ("amc", {"problem": "Q", "answer": "14.0"}, "Q", "14.0", None),
    ("olympiadbench", {"id": 1606, "question": "Q", "final_answer": ["2"]}, "Q", "2", 1606),
    ("olympiadbench", {"question": "Q", "final_answer": ["2", "-3"]}, "Q", "2, -3", None),
    (
        "svamp",
        {"ID": "c-1", "Body": "He has 2", "Question": "How many?", "Answer": "2"},
        "He has 2. How many?",
        "2",
        "c-1",
    ),
    ("svamp", {"question_concat": "He has 2. How many?", "Answer": "2"}, "He has 2. How many?", "2", None),
    (
        "mbpp",
        {"task_id": "2", "text": "Add.", "test_list": ["assert add(1, 2) == 3"], "test_setup_code": ""},
        "Add.\nYour code should pass this test:\nassert add(1, 2) == 3",
        json.dumps({"test_list": ["assert add(1, 2) == 3"]}),
        "2",
    ),
    (
        "humaneval",
        {
            "task_id": "H/0",
            "prompt": "def f():\n",
            "test": "def check(c): pass",
            "entry_point": "f",
            "canonical_solution": "x",
        },
        "def f():\n",
        json.dumps({"entry_point": "f", "test": "def check(c): pass", "prompt": "def f():\n"}),
        "H/0",
    ),
]
FAULTY: list[tuple[MappingName, dict[str, Any], str]] = [
    ("gsm8k", {"question": "Q", "answer": "5"}, "no ####"),
    ("gsm8k", {"answer": "#### 5"}, "no column 'question'"),
    ("math", {"problem": "Q", "solution": "no box \\boxed{1"}, "no \\boxed"),
    ("numinamath", {"problem": "Q", "solution": BOX, "answer": "proof"}, "there is none"),
    ("ultrainteract", {"instruction": "Q", "response": "I do not know."}, "no answer"),
    ("codecontests", {"description": "Add.", "public_tests": {"input": [], "output": []}}, "no tests"),
    ("prm800k", {"question": {"problem": "Q"}}, "no ground_truth_answer"),
    ("math_shepherd", {"input": SHEPHERD, "label": LABEL[:-1] + "-"}, "not mark its answer as good"),
    ("math_shepherd", {"input": SHEPHERD, "label": "Step 1: 5 +"}, "not end in an answer"),
    ("olympiadbench", {"question": "Q", "final_answer": []}, "no list of texts"),
    ("mbpp", {"text": "Add.", "test_list": []}, "no list of assertions"),
    ("humaneval", {"prompt": "def f():", "test": "…"}, "no column 'entry_point'"),
]


@pytest.mark.parametrize(("name", "row", "prompt", "reference", "prompt_id"), ROWS)
def test_a_row_is_read(name: MappingName, row: dict[str, Any], prompt: Any, reference: Any, prompt_id: Any):
    found = MAPPINGS[name].mapped(row)
    assert (found["prompt"], found["reference_answer"], found.get("prompt_id")) == (prompt, reference, prompt_id)


@pytest.mark.parametrize(("name", "row", "prompt", "reference", "prompt_id"), ROWS)
def test_a_mapping_reads_only_the_columns_it_names(
    name: MappingName, row: dict[str, Any], prompt: Any, reference: Any, prompt_id: Any
):
    named = {column: held for column, held in row.items() if column in MAPPINGS[name].columns}
    assert MAPPINGS[name].mapped(named) == MAPPINGS[name].mapped(row)


@pytest.mark.parametrize(("name", "row", "fault"), FAULTY)
def test_a_row_without_what_it_needs_is_refused(name: MappingName, row: dict[str, Any], fault: str):
    with pytest.raises(UnmappedError) as raised:
        MAPPINGS[name].mapped(row)
    assert fault in str(raised.value)


def test_every_name_has_a_mapping_and_a_row_here():
    assert set(MAPPINGS) == set(get_args(MappingName)) == {name for name, *_ in ROWS}


def test_columns_beside_a_mapping_are_refused():
    with pytest.raises(ValueError, match="leave columns out"):
        FileSource.model_validate({"path": "x.jsonl", "mapping": "gsm8k", "columns": {"prompt": "q"}})
