"""Which rows are drawn: every row once an epoch, every source its share, however drawing is cut into iterations."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from papo.drawing import Part, draw_mixed, draw_rows, mixing_round, whole_weights

WEIGHTS = st.lists(st.integers(1, 12), min_size=1, max_size=5).map(tuple)
CUTS = st.lists(st.integers(1, 17), min_size=1, max_size=8)


@st.composite
def mixtures(draw: st.DrawFn) -> list[Part]:
    weights = draw(WEIGHTS)
    sizes = [draw(st.integers(1, 9)) for _ in weights]
    firsts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [
        Part(name=f"s{index}", weight=weight, first=first, size=size)
        for index, (weight, first, size) in enumerate(zip(weights, firsts, sizes, strict=True))
    ]


def drawn(seed: int, parts: Sequence[Part], cuts: Sequence[int], *, shuffle: bool = True) -> list[int]:
    """All rows of iterations that draw `cuts` rows each, each going on from the cursor alone."""
    rows: list[int] = []
    epoch = offset = 0
    for count in cuts:
        found = draw_mixed(seed, epoch=epoch, offset=offset, count=count, parts=parts, shuffle=shuffle)
        rows += found.rows
        epoch, offset = found.epoch, found.offset
    return rows


def of(part: Part, rows: Sequence[int]) -> list[int]:
    """The draws of one source, as rows of it."""
    return [row - part.first for row in rows if part.first <= row < part.first + part.size]


@given(WEIGHTS)
def test_after_any_number_of_draws_each_source_has_its_share_to_less_than_one(weights: tuple[int, ...]) -> None:
    sources, total = mixing_round(weights), sum(weights)
    limit = 1 - 1 / (2 * len(weights) - 2) if len(weights) > 1 else 0.0
    counts: Counter[int] = Counter()
    for draws, source in enumerate(sources, start=1):
        counts[source] += 1
        for index, weight in enumerate(weights):
            assert abs(counts[index] - draws * weight / total) <= limit + 1e-9
    assert [counts[index] for index in range(len(weights))] == list(weights), "exact at the round's end"


@given(st.integers(0, 5), mixtures(), CUTS)
def test_shares_converge_to_the_weights(seed: int, parts: list[Part], cuts: list[int]) -> None:
    rows, total = drawn(seed, parts, cuts), sum(part.weight for part in parts)
    assert len(rows) == sum(cuts)
    for part in parts:
        assert abs(len(of(part, rows)) - len(rows) * part.weight / total) < 1


@given(st.integers(0, 5), mixtures(), CUTS)
def test_no_row_repeats_within_an_epoch_of_its_source(seed: int, parts: list[Part], cuts: list[int]) -> None:
    """BUG-026: and each is drawn once before any is drawn again."""
    rows = drawn(seed, parts, cuts)
    for part in parts:
        mine = of(part, rows)
        for first in range(0, len(mine), part.size):
            epoch = mine[first : first + part.size]
            assert len(set(epoch)) == len(epoch)


@given(st.integers(0, 5), mixtures(), CUTS)
def test_what_is_drawn_does_not_depend_on_where_the_drawing_was_cut(
    seed: int, parts: list[Part], cuts: list[int]
) -> None:
    assert drawn(seed, parts, cuts) == drawn(seed, parts, [sum(cuts)])
    assert drawn(seed, parts, [*cuts, 3])[: sum(cuts)] == drawn(seed, parts, cuts)


@given(st.integers(0, 5), mixtures(), CUTS)
def test_a_source_s_order_does_not_depend_on_what_it_is_mixed_with(
    seed: int, parts: list[Part], cuts: list[int]
) -> None:
    mixed = of(parts[0], drawn(seed, parts, cuts))
    alone = Part(name=parts[0].name, weight=1, first=0, size=parts[0].size)
    assert mixed == drawn(seed, [alone], [max(1, len(mixed))])[: len(mixed)]


def test_without_shuffling_each_source_is_drawn_in_its_own_order() -> None:
    parts = [Part(name="a", weight=1, first=0, size=2), Part(name="b", weight=3, first=2, size=4)]
    assert drawn(0, parts, [8], shuffle=False) == [2, 0, 3, 4, 5, 1, 2, 3]


def test_epochs_and_sources_are_shuffled_apart_and_reproducibly() -> None:
    parts = [Part(name="a", weight=1, first=0, size=50), Part(name="b", weight=1, first=50, size=50)]
    rows = drawn(3, parts, [200])
    epochs = [of(part, rows)[first : first + 50] for part in parts for first in (0, 50)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert all(one != other for one, other in combinations(epochs, 2))
    assert rows == drawn(3, parts, [200])
    assert rows != drawn(4, parts, [200])


@given(st.integers(0, 5), st.integers(1, 30), CUTS, st.booleans())
def test_one_source_is_drawn_row_by_row_and_epoch_by_epoch(
    seed: int, size: int, cuts: list[int], shuffle: bool
) -> None:
    rows: list[int] = []
    epoch = offset = 0
    for count in cuts:
        found = draw_rows(seed, epoch=epoch, offset=offset, count=count, size=size, shuffle=shuffle)
        rows += found.rows
        epoch, offset = found.epoch, found.offset
    assert (epoch, offset) == divmod(sum(cuts), size)
    for first in range(0, len(rows) - size + 1, size):
        assert sorted(rows[first : first + size]) == list(range(size))


def test_weights_are_taken_as_they_are_spelled() -> None:
    assert whole_weights([0.1, 0.2, 0.7]) == (1, 2, 7)
    assert whole_weights([2.0, 6.0]) == (1, 3)
    assert whole_weights([0.125, 1e-3]) == (125, 1)
