"""Public data sets by name: which of their columns are the prompt and the reference, and the reference's small rule.

A mapping reads rows as their publishers (or the usual copies) have them. What it finds is then held to the same rules
as any row. Column names are tried in the order in which they are given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from schemas import publicrows
from schemas.publicrows import Values, column

MappingName = Literal[
    "gsm8k",
    "math",
    "math500",
    "numinamath",
    "ultrainteract",
    "deepscaler",
    "openr1",
    "apps",
    "codecontests",
    "prm800k",
    "math_shepherd",
    "aime",
    "amc",
    "olympiadbench",
    "svamp",
    "mbpp",
    "humaneval",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicMapping:
    """How a row of one public data set becomes prompt, reference answer and, where the set has one, an id."""

    columns: tuple[str, ...]
    """Columns it may look at; a copy of the set rarely has all."""
    prompt: Callable[[Values], Any]
    reference_answer: Callable[[Values], Any]
    ids: tuple[str, ...] = ()
    """Columns that name a row; without any, its number does."""

    def mapped(self, values: Values) -> dict[str, Any]:
        """`prompt`, `reference_answer` and maybe `prompt_id`, not yet checked. Raises UnmappedError."""
        found = {"prompt": self.prompt(values), "reference_answer": self.reference_answer(values)}
        named = next((values[name] for name in self.ids if values.get(name) is not None), None)
        return found if named is None else {**found, "prompt_id": named}


_PROBLEM = column("problem", "question", "Problem")
_SOLVED = PublicMapping(
    columns=("problem", "question", "solution", "answer"), prompt=_PROBLEM, reference_answer=publicrows.boxed_solution
)
_ANSWERED = PublicMapping(
    columns=("problem", "question", "Problem", "answer", "Answer", "id", "ID", "uuid", "unique_id"),
    prompt=_PROBLEM,
    reference_answer=column("answer", "Answer"),
    ids=("unique_id", "uuid", "id", "ID"),
)

MAPPINGS: dict[MappingName, PublicMapping] = {
    "gsm8k": PublicMapping(
        columns=("question", "answer"), prompt=column("question"), reference_answer=publicrows.after_hashes
    ),
    "math": _SOLVED,
    "math500": _ANSWERED,
    "numinamath": _SOLVED,
    "ultrainteract": PublicMapping(
        columns=("id", "instruction", "response"),
        prompt=column("instruction"),
        reference_answer=publicrows.stated_response,
        ids=("id",),
    ),
    "deepscaler": _ANSWERED,
    "openr1": _ANSWERED,
    "apps": PublicMapping(
        columns=("problem_id", "id", "question", "starter_code", "input_output"),
        prompt=publicrows.apps_prompt,
        reference_answer=publicrows.apps_tests,
        ids=("problem_id", "id"),
    ),
    "codecontests": PublicMapping(
        columns=("description", "public_tests", "private_tests", "generated_tests"),
        prompt=column("description"),
        reference_answer=publicrows.contest_tests,
    ),
    "prm800k": PublicMapping(
        columns=("question",), prompt=publicrows.prm_problem, reference_answer=publicrows.prm_answer
    ),
    "math_shepherd": PublicMapping(
        columns=("input", "label"), prompt=publicrows.shepherd_question, reference_answer=publicrows.shepherd_answer
    ),
    "aime": _ANSWERED,
    "amc": _ANSWERED,
    "olympiadbench": PublicMapping(
        columns=("id", "question", "problem", "final_answer", "answers", "answer"),
        prompt=column("question", "problem"),
        reference_answer=publicrows.first_final_answer,
        ids=("id",),
    ),
    "svamp": PublicMapping(
        columns=("ID", "Body", "Question", "question_concat", "Answer"),
        prompt=publicrows.svamp_prompt,
        reference_answer=column("Answer"),
        ids=("ID",),
    ),
    "mbpp": PublicMapping(
        columns=("task_id", "text", "prompt", "test_list", "test_setup_code", "test_imports"),
        prompt=publicrows.mbpp_prompt,
        reference_answer=publicrows.mbpp_tests,
        ids=("task_id",),
    ),
    "humaneval": PublicMapping(
        columns=("task_id", "prompt", "test", "entry_point"),
        prompt=column("prompt"),
        reference_answer=publicrows.humaneval_tests,
        ids=("task_id",),
    ),
}
PROGRAMS: frozenset[str] = frozenset({"apps", "codecontests", "mbpp", "humaneval"})
"""Sets whose references are unit tests; those of all others are answers in mathematics."""
