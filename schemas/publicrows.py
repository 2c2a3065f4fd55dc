"""Pure functions that read a prompt or a reference answer out of a row of a public data set."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from papo.rewards.codechecks import takes_objects
from papo.rewards.extraction import extract, last_box

Values = Mapping[str, Any]
_STEP_ONE = re.compile(r"\s*(?:ки\s*)?Step\s*1\s*:")
_MARKED = re.compile(r"(?:The\s+answer\s+is|####)\s*:?\s*(.+?)\s*([+-]|ки)?\s*$", re.IGNORECASE)
_NO_ANSWER = ("proof", "notfound", "")


class UnmappedError(ValueError):
    """A row that is not as the mapping has it; the message says what is missing and holds no contents."""


def column(*names: str) -> Callable[[Values], Any]:
    """The first of these columns that a row has, as it is."""

    def read(values: Values) -> Any:
        for name in names:
            if name in values:
                return values[name]
        raise UnmappedError(f"no column {' or '.join(map(repr, names))}")

    return read


def after_hashes(values: Values) -> str:
    """GSM8K: what follows the last ####, without the commas of thousands."""
    _, mark, found = _text(values, "answer").rpartition("####")
    if not mark:
        raise UnmappedError("answer has no ####")
    return found.strip().replace(",", "")


def boxed_solution(values: Values) -> str:
    """MATH and NuminaMath: the answer's own column where there is one, else the last box of the solution."""
    if "answer" in values and values["answer"] is not None:
        return _answer(values)
    found = last_box(_text(values, "solution"))
    if found is None:
        raise UnmappedError("solution has no \\boxed{…}")
    return found[0].strip()


def _answer(values: Values) -> Any:
    found = values["answer"]
    if isinstance(found, str) and found.strip().lower() in _NO_ANSWER:
        raise UnmappedError("answer says that there is none (a proof, or not found)")
    return found


def stated_response(values: Values) -> str:
    """UltraInteract: the answer that the response commits to; rows without one (code, proofs) are refused."""
    found = extract(_text(values, "response"), ("boxed", "answer_tag", "hashes", "stated"))
    if not found:
        raise UnmappedError("response commits to no answer")
    return found


def first_final_answer(values: Values) -> Any:
    """OlympiadBench: the final answer, which must be one; sets of several are joined by commas."""
    found = column("final_answer", "answers", "answer")(values)
    if not isinstance(found, list):
        return found
    parts = cast("list[Any]", found)
    if not parts or not all(isinstance(part, str) for part in parts):
        raise UnmappedError("final_answer is no list of texts")
    return ", ".join(cast("list[str]", parts))


def shepherd_question(values: Values) -> str:
    """Math-Shepherd: the question, which stands before step 1 in `input`."""
    return _STEP_ONE.split(_text(values, "input"), maxsplit=1)[0].strip()


def shepherd_answer(values: Values) -> str:
    """Math-Shepherd: the answer that `label` ends in, where its last step is marked good; a wrong one is no gold."""
    found = _MARKED.search(_text(values, "label").rstrip().rpartition("\n")[2][-500:])
    if found is None:
        raise UnmappedError("label does not end in an answer")
    if found.group(2) != "+":
        raise UnmappedError("label does not mark its answer as good, so it is no reference")
    return found.group(1)


def prm_problem(values: Values) -> Any:
    """PRM800K: the problem, nested in `question` as published."""
    return _nested(values, "question", "problem")


def prm_answer(values: Values) -> Any:
    """PRM800K: the ground truth, nested in `question` as published; not what the rated solution came to."""
    return _nested(values, "question", "ground_truth_answer")


def svamp_prompt(values: Values) -> Any:
    """SVAMP: body and question, joined where they are apart."""
    if "question_concat" in values:
        return values["question_concat"]
    body, question = _text(values, "Body").strip(), _text(values, "Question").strip()
    return f"{body}{'' if body.endswith(('.', '?', '!', ',')) else '.'} {question}"


def apps_prompt(values: Values) -> Any:
    """APPS: the question, with the starter code where the function's name is part of the task."""
    question, starter = _text(values, "question"), values.get("starter_code")
    return f"{question.rstrip()}\n\n{starter}" if isinstance(starter, str) and starter.strip() else question


def apps_tests(values: Values) -> Any:
    """APPS: inputs and outputs as JSON, which some copies hold as an object; with starter code that asks for objects of
    LeetCode's classes, by which the reward sees that nothing can be tested."""
    found = column("input_output")(values)
    if isinstance(found, str) and takes_objects(values.get("starter_code")):
        found = _as_json(found)
    if isinstance(found, dict) and takes_objects(values.get("starter_code")):
        found = {**cast("dict[str, Any]", found), "starter_code": values["starter_code"]}
    return json.dumps(_plain(found), ensure_ascii=False) if isinstance(found, dict | list) else found


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # What is wrong with it is for the reward to say.
        return text


def contest_tests(values: Values) -> str:
    """CodeContests: all tests of a problem as JSON, by their groups."""
    found = dict[str, Any]()
    for name in ("public_tests", "private_tests", "generated_tests"):
        group = values.get(name)
        if isinstance(group, dict) and cast("dict[str, Any]", group).get("input"):
            found[name] = group
    if not found:
        raise UnmappedError("there are no tests")
    return json.dumps(found, ensure_ascii=False)


def mbpp_prompt(values: Values) -> str:
    """MBPP: the task and its first test, which says what the function is called."""
    task = column("prompt", "text")(values)
    if not isinstance(task, str):
        raise UnmappedError("prompt is no text")
    return f"{task.rstrip()}\nYour code should pass this test:\n{_tests(values)[0]}"


def mbpp_tests(values: Values) -> str:
    """MBPP: assertions and what they need, as JSON."""
    found: dict[str, Any] = {"test_list": _tests(values)}
    if imports := values.get("test_imports"):
        found["test_imports"] = imports
    if setup := values.get("test_setup_code"):
        found["test_setup_code"] = setup
    return json.dumps(found, ensure_ascii=False)


def humaneval_tests(values: Values) -> str:
    """HumanEval: the test, the function's name and the prompt that precedes the program, as JSON."""
    return json.dumps({name: _text(values, name) for name in ("entry_point", "test", "prompt")}, ensure_ascii=False)


def _tests(values: Values) -> list[str]:
    found = column("test_list")(values)
    tests = cast("list[Any]", found) if isinstance(found, list) else []
    if not tests or not all(isinstance(test, str) for test in tests):
        raise UnmappedError("test_list is no list of assertions")
    return cast("list[str]", tests)


def _text(values: Values, name: str) -> str:
    found = column(name)(values)
    if not isinstance(found, str):
        raise UnmappedError(f"{name} is no text")
    return found


def _plain(value: Any) -> Any:
    """With numbers for their spellings, which are a text of their own kind."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in cast("list[Any]", value)]
    return json.loads(value) if isinstance(value, str) and type(value) is not str else value


def _nested(values: Values, outer: str, inner: str) -> Any:
    found = column(outer)(values)
    if not isinstance(found, dict) or inner not in found:
        raise UnmappedError(f"no {inner} in column {outer!r}")
    return cast("dict[str, Any]", found)[inner]
