"""C-25: equal where it can be decided, never by samples that miss where the sides differ. The reference comes first."""

from typing import Any

import pytest
from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]  # mpmath has no types

from papo.rewards import MathAnswer
from papo.verifiers.critical import critical_values
from papo.verifiers.judging import check_reference
from papo.verifiers.points import Undecided, equal_at_points
from papo.verifiers.reading import read

MATH = MathAnswer()
CONTEXT: Any = MPContext()
CONTEXT.dps = 330
PI = CONTEXT.nstr(CONTEXT.pi, 300)
"""300 digits of it, which differ from π beyond any fixed precision."""
SAME = [
    (r"\lfloor\frac{n}{777}\rfloor+1", r"\lceil\frac{n+1}{777}\rceil"),
    (r"\lfloor x\rfloor+1", r"\lfloor x+1\rfloor"), (r"\lceil x\rceil", r"-\lfloor -x\rfloor"),
    (r"\lfloor 3x\rfloor", r"\lfloor x\rfloor+\lfloor x+\frac13\rfloor+\lfloor x+\frac23\rfloor"),
    (r"\lfloor\log_3 n\rfloor+1", r"\lceil\log_3(n+1)\rceil"),
    (r"\lfloor\sqrt n\rfloor", r"\lceil\sqrt{n+1}\rceil-1"), (r"\max(a,b)+\min(a,b)", "a+b"),
    (r"|x-5|", r"\max(x-5,5-x)"), (r"\binom{n}{4}", r"\binom{n}{n-4}"),
    (r"\gcd(n,12)\cdot\operatorname{lcm}(n,12)", "12n"), (r"\sum_{k=0}^{n}\binom nk", "2^n"),
    (r"\sqrt{x^2}", r"\max(x,-x)"), (r"\operatorname{sgn}(x)|x|", "x"),
    (r"\sum_{k=1}^n k^3", r"\left(\frac{n(n+1)}{2}\right)^2"), (r"\binom{n+1}{3}-\binom{n}{3}", r"\binom n2"),
    (r"\sec^2 x", r"1+\tan^2 x"), (r"|\sin x|", r"\sqrt{1-\cos^2 x}"), (r"\frac{n!}{(n-2)!}", "n^2-n"),
    ("1", r"\lfloor\frac{\log 8}{\log 2}-2\rfloor"), ("e^{-2000}", r"\frac{1}{e^{2000}}"),
    (r"\tanh(1000)", r"\frac{\sinh(1000)}{\cosh(1000)}"), ("10^{-400}", r"\frac{1}{10^{400}}"),
    ("x+10^{-300}", r"10^{-300}+x"), (r"\cos(10^{-300})", r"\sin(\frac{\pi}{2}-10^{-300})"),
    (r"\sum_{n=0}^{500}2^n", "2^{501}-1"), ("0", r"\operatorname{sgn}(\sin(3\pi))"),
]  # fmt: skip
DIFFERENT = [
    (r"\binom{n}{7}", "0"), ("2^n", r"2^n+\binom{n}{8}"), (r"\lfloor\frac{n}{64}\rfloor", "0"),
    ("|x-2024|", "2024-x"), (r"\lfloor x\rfloor+1", r"\lceil x\rceil"), (r"\lfloor\frac{n}{10^{30}}\rfloor", "0"),
    (r"\min(x,10^{40})", "x"), (r"\binom{n}{400}", "0"), ("n!", r"n!+\binom{n}{600}"), (r"\gcd(n,1009)", "1"),
    ("|x+10^9|", "x+10^9"), (r"\lfloor\frac{\log_{10} n}{50}\rfloor", "0"),
    ("0", r"\lfloor\frac{2}{2+(x-3)^2}\rfloor"), ("1", r"\operatorname{sgn}(x^2)"), (r"\sqrt{(x-3000)^2}", "3000-x"),
    ("y=|x-10^6|", "y=10^6-x"), ("2^n", r"2^n+\binom{n}{30000}"), (r"\max(x,y)", r"\max(x,y)+\max(0,x-y-500)"),
    ("n^2", r"n^2+\lceil\frac{n-900}{10^9}\rceil"), (r"\sum_{k=1}^n k", r"\sum_{k=1}^n k+\lfloor\frac{n}{99}\rfloor"),
    ("x", r"\sqrt{x^2+10^{-600}}"), ("1", r"\coth(900)"), ("y=2x", r"y=(2+10^{-300})x"), ("x=0", r"x=10^{-900}"),
    (r"\frac{1}{e^{900}}", r"\frac{1}{2\cosh 900}"), (r"\lfloor \sin x\rfloor", r"\lfloor\frac{\sin x}{2}\rfloor"),
    (r"\pi", PI), (r"\sin y=2\sin x", r"\sin y=(2+10^{-300})\sin x"),
    # Neither side is written with a number at which they differ: only the ends of the pieces tell.
    ("x", r"x+\max(0,\frac{x}{10^{12}}-3)"), ("x", r"\min(x,\frac x2+3\cdot 10^{12})"),
]  # fmt: skip
WITHOUT_VALUE = [
    r"\infty-\infty", r"\frac{\infty}{\infty}", r"0\cdot\infty", r"5+0\cdot\infty", r"\infty^0", r"\frac{0}{0}",
    r"\frac{x-x}{x-x}", r"0\cdot\frac{1}{0}", r"5+\frac{1}{0}-\frac{1}{0}", r"0\cdot\ln 0", r"0\cdot 0^{-1}", r"0^0",
]  # fmt: skip


def same(reference: str, answer: str) -> bool | None:
    return MATH.compare(reference, answer).correct


@pytest.mark.parametrize(("reference", "answer"), SAME)
def test_c_25_identities_are_found(reference: str, answer: str) -> None:
    assert same(reference, answer)
    assert same(answer, reference)


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT)
def test_c_25_a_difference_is_found_however_far_away(reference: str, answer: str) -> None:
    assert same(reference, answer) is False
    assert same(answer, reference) is False


@pytest.mark.parametrize("answer", WITHOUT_VALUE)
def test_c_25_what_has_no_value_is_no_answer_and_no_reference(answer: str) -> None:
    assert [same(reference, answer) for reference in ("0", "1", "5", "x")] == [False] * 4
    assert check_reference(answer) is not None


def test_c_25_a_piece_that_cannot_be_worked_out_leaves_the_pair_undecided() -> None:
    """2^n is too large where C(n, 30000) begins: no verdict, and so no pass."""
    with pytest.raises(Undecided):
        equal_at_points(read("2^n"), read(r"2^n+\binom{n}{30000}"))


def test_critical_values_are_those_next_to_which_a_piece_ends() -> None:
    ends, others = critical_values(True, read(r"\lfloor\frac{n}{2024}\rfloor"))
    assert {2023, 2024} <= set(ends)
    assert {1, 39, 2025} <= set(others)
    ends, _ = critical_values(False, read("|x-2024|"))
    assert 2024 in ends
    assert critical_values(False, read("x^2"))[0] == []


@pytest.mark.parametrize(
    "answer",
    [
        r"\sum_{k=1}^{n}\lfloor\frac{k}{7}\rfloor\binom{n}{k}", r"\lfloor n^{n^{n}}\rfloor", r"\binom{n^9}{n^8}",
        r"|x-1||x-2||x-3||x-4||x-5||x-6||x-7||x-8||x-9|", r"\gcd(n!,2^n)", r"\tanh(10^{300})", r"\cosh(e^{e^{x}})",
        r"\lfloor 10^{4000} x\rfloor", r"\lfloor\sqrt{a+b+c+d+n}\rfloor",
        r"\max(" + ",".join(f"x^{power}" for power in range(1, 30)) + ")",
    ],
)  # fmt: skip
def test_hostile_pieces_end_within_the_limits_and_pass_nothing(answer: str) -> None:
    for other in ("x+n", f"{answer}+1", f"\\frac{{2({answer})+1}}{{2}}"):
        assert MATH.compare(answer, other).correct is not True
