"""YAML as configs mean it: the 1.2 core rules, each key once, faults with their line.

PyYAML alone reads `off` as false, `1e-6` as text, `010` as eight and lets the last of two equal keys win.
"""

import re
from typing import Any

import yaml


class NotYaml(ValueError):
    """The text cannot be read; the message says where and why."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2, collecting keys that stand twice."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # type: ignore[misc]  # noqa: RUF012  # replaces the base's 1.1 table

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        lines: dict[Any, int] = {}
        for key, _ in node.value:
            line = int(key.start_mark.line) + 1
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in lines:
                self.twice.append(
                    f"{key.value} stands twice, in lines {lines[key.value]} and {line}: leave one of them out."
                )
            lines.setdefault(key.value, line)
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _first_letters = ["" if letter == "\0" else letter for letter in _first]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first_letters)


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    spelled = loader.construct_scalar(node).lower()
    return float(spelled.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)


def read_yaml(text: str) -> tuple[Any, list[str]]:
    """The value of `text`, and a sentence for each key that stands twice. Raises NotYaml."""
    try:
        loader = _Loader(text)
        value = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        raise NotYaml(_explained(error, text)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(f"the text is not YAML: {str(error).splitlines()[0]}") from None
    return value, loader.twice


def _explained(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"the text is not YAML: {error.problem}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return f"line {mark.line + 1} is indented with a tab: YAML takes blanks only. Replace it by two blanks a level."
    context = f" {error.context}" if error.context else ""
    at = f"line {mark.line + 1}, column {mark.column + 1}"
    return (
        f"{at} is not YAML ({error.problem}{context}): {line.strip()[:80]!r}. "
        "Check the indentation, the blank after each colon, and quotes around text that holds : or #."
    )
