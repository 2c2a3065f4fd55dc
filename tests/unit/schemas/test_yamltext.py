"""YAML as configs mean it."""

import math

import pytest

from schemas.yamltext import NotYaml, read_yaml


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("1e-6", 1e-6),
        ("1.0e-6", 1e-6),
        ("-.5", -0.5),
        (".inf", math.inf),
        ("010", 10),
        ("0o10", "0o10"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
        ("'8'", "8"),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(spelled: str, value: object) -> None:
    read, _ = read_yaml(f"key: {spelled}")

    assert read == {"key": value}
    assert type(read["key"]) is type(value)


def test_a_key_that_stands_twice_is_named_with_its_lines() -> None:
    _, twice = read_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")

    assert sorted(twice) == [
        "a stands twice, in lines 1 and 5: leave one of them out.",
        "c stands twice, in lines 3 and 4: leave one of them out.",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1", "line 2 is indented with a tab"),
        ("a: b: c", "line 1, column 5"),
        ("a: [1", "line 1"),
        ("a: !!python/object:os.system x", "tag"),
        ("a: \x00", "not YAML"),
        ("a: &x [*y]", "undefined alias"),
    ],
)
def test_what_is_not_yaml_is_located(text: str, said: str) -> None:
    with pytest.raises(NotYaml, match=said):
        read_yaml(text)
