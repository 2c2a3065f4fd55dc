import json

import pytest

from papo.rewards import ZebraGrid
from papo.rewards.structured import last_object

HEADER = ["Position", "Music-Genre", "Pet"]
ROWS = [["1", "hip-hop", "guinea-pig"], ["2", "folk", "cat"]]
GOLD = json.dumps({"header": HEADER, "rows": ROWS})
RULE, CELLS = ZebraGrid(), ZebraGrid(score="cells")


def judge(grid: object, rule: ZebraGrid = RULE) -> float | None:
    text = grid if isinstance(grid, str) else json.dumps(grid)
    return rule(f"So: <answer>{text}</answer>", reference_answer=GOLD, finish_reason="stop").accuracy


def test_spellings_of_the_grid():
    assert judge(GOLD) == 1.0
    assert judge({"Rows": ROWS, " HEADER": HEADER}) == 1.0
    assert (
        judge({"header": ["position", "music-genre ", "PET"], "rows": [[1, " Hip-Hop", "guinea-pig"], ROWS[1]]}) == 1.0
    )
    assert judge({"header": HEADER, "rows": ROWS[::-1]}) == 1.0
    swapped = [[name, pet, music] for name, music, pet in ROWS]
    assert judge({"header": ["Position", "Pet", "Music-Genre"], "rows": swapped}) == 1.0
    assert judge(f"```json\n{GOLD}\n```") == judge(f"```\n{GOLD}\n```") == 1.0


@pytest.mark.parametrize(
    "grid",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"header": 1, "rows": 2}',
        {"header": HEADER, "rows": []},
        {"header": HEADER, "rows": [*ROWS, ROWS[0]]},
        {"header": HEADER, "rows": [*ROWS, ["3", "folk", "cat"]]},
        {"header": [*HEADER, "Pet"], "rows": [[*row, "cat"] for row in ROWS]},
        {"header": [*HEADER, "Job"], "rows": [[*row, "cat"] for row in ROWS]},
        {"header": HEADER, "rows": [["1", "hip-hop"], ROWS[1]]},
        {"header": HEADER, "rows": [["1", "hip-hop", ["guinea-pig"]], ROWS[1]]},
        f"{GOLD} {GOLD}",
        GOLD[:-1],
        GOLD.replace('"rows"', '"rows": [["1", "folk", "cat"]], "rows"'),
        GOLD.replace('"rows"', '"Rows": [["1", "folk", "cat"]], "rows"'),
    ],
)
def test_grids_that_are_no_one_answer_are_wrong_by_either_score(grid: object):
    """Extra rows, columns and keys could hold every guess at once."""
    assert judge(grid) == judge(grid, CELLS) == 0.0


def test_the_share_of_cells_does_not_count_the_names_of_rows():
    one_wrong = {"header": HEADER, "rows": [ROWS[0], ["2", "folk", "dog"]]}
    assert (judge(one_wrong), judge(one_wrong, CELLS)) == (0.0, 0.75)
    one_row = {"header": HEADER, "rows": [ROWS[0]]}
    assert (judge(one_row), judge(one_row, CELLS)) == (0.0, 0.5)
    all_wrong = {"header": HEADER, "rows": [["1", "x", "x"], ["2", "x", "x"]]}
    assert judge(all_wrong, CELLS) == 0.0
    verdict = CELLS(f"<answer>{json.dumps(one_wrong)}</answer>", reference_answer=GOLD, finish_reason="stop")
    assert verdict.correct is False


def test_the_places_in_their_order():
    wrong = GOLD.replace("cat", "dog")

    def status_of(completion: str, finish_reason: str = "stop") -> tuple[str, float | None]:
        verdict = RULE(completion, reference_answer=GOLD, finish_reason=finish_reason)
        return verdict.status, verdict.accuracy

    assert status_of(f"First {wrong} and then {GOLD}.") == ("ok", 1.0)
    assert status_of(f"{GOLD} <answer>{wrong}</answer>") == ("ok", 0.0)
    assert status_of(f"\\boxed{{{GOLD}}} {wrong}") == ("ok", 1.0)
    assert status_of(f"<think>{GOLD}</think> I do not know") == ("no_answer", 0.0)
    assert status_of(GOLD, "length") == ("truncated", 0.0)


@pytest.mark.parametrize("gold", ["", "7", "[]", GOLD[:-1], json.dumps({"header": HEADER, "rows": [["1"]]})])
def test_a_reference_that_is_no_grid_is_never_a_free_reward(gold: str):
    assert RULE.check_reference(gold) is not None
    verdict = RULE(f"<answer>{gold}</answer>", reference_answer=gold, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")


def test_an_object_that_was_cut_off_is_no_answer() -> None:
    """Nor is one that stands complete inside of it."""
    assert last_object('so {"header": {"a": 1}, "rows": [') is None
    assert last_object('{"a": {"b": 1}} and {"c": {"d": 2}') == '{"a": {"b": 1}}'
