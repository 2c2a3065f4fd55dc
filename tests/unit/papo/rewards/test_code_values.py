"""Honest programs pass, exceptions fail tests, rows that cannot be tested are unscorable: C-26, C-28, C-29."""

import base64
import json
import zlib
from math import inf, nan
from typing import Any

import pytest

from papo.rewards import CodeTests, codejudge
from papo.rewards.codeblocks import extract_program
from papo.rewards.codevalues import close, longest_reply, matches, same_text
from papo.sandbox import Limits, box, chosen, transfer
from papo.sandbox.isolation import python

# ruff: noqa: E501  # programs, as they are
REWARD = CodeTests(cpu_seconds=3.0, wall_seconds=12.0)
LISTS = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next

def list_node(values):
    if not values:
        return None
    head = ListNode(values[0])
    at = head
    for value in values[1:]:
        at.next = ListNode(value)
        at = at.next
    return head

def is_same_list(one, other):
    while one and other and one.val == other.val:
        one, other = one.next, other.next
    return one is None and other is None

def total(values):
    at, found = list_node(values), 0
    while at:
        at, found = at.next, found + at.val
    return found
"""
"""What sets of LeetCode's problems put before their tests."""


def leet(test: str, prompt: str = LISTS) -> dict[str, Any]:
    return {"prompt": prompt, "entry_point": "Solution().f", "test": f"def check(candidate):\n    {test}\n"}


HONEST: dict[str, Any] = {
    "leet": (
        "class Solution:\n def f(self, a: List[int]) -> Optional[int]:\n  return max(a)",
        {"fn_name": "f", "inputs": [[[1, 3]]], "outputs": [3]},
    ),
    "bare self": (
        "def f(self, a: List[int]) -> int:\n return self.g(a)\ndef g(self,a): return max(a)",
        {"fn_name": "f", "inputs": [[[1, 3]]], "outputs": [3]},
    ),
    "gen": ("def f(a):\n yield from a", {"fn_name": "f", "inputs": [[[1, 3]]], "outputs": [[1, 3]]}),
    "map": ("def f(a): return map(str,a)", {"fn_name": "f", "inputs": [[[1, 3]]], "outputs": [["1", "3"]]}),
    "zip": ("def f(a): return zip(a,a)", {"fn_name": "f", "inputs": [[[1, 3]]], "outputs": [[[1, 1], [3, 3]]]}),
    "range": ("def f(a): return range(a)", {"fn_name": "f", "inputs": [[3]], "outputs": [[0, 1, 2]]}),
    "named": (
        "from collections import namedtuple\nP=namedtuple('P','x y')\ndef f(a): return P(a,a)",
        {"fn_name": "f", "inputs": [[3]], "outputs": [[3, 3]]},
    ),
    "fraction": (
        "from fractions import Fraction as F\ndef f(a): return F(1,2)",
        {"fn_name": "f", "inputs": [[3]], "outputs": [0.5]},
    ),
    "fraction3": (
        "def f(a): return [Fraction(1,3), Decimal('0.1'), Fraction(4,2)]",
        {"fn_name": "f", "inputs": [[3]], "outputs": [[0.3333333333333333, 0.1, 2]]},
    ),
    "deque": ("def f(a): return deque([a])", {"fn_name": "f", "inputs": [[3]], "outputs": [[3]]}),
    "counter": ("def f(a): return Counter(a)", {"fn_name": "f", "inputs": [["aa"]], "outputs": [{"a": 2}]}),
    "dd": (
        "def f(a):\n d=defaultdict(list)\n d[1].append(2)\n return d",
        {"fn_name": "f", "inputs": [["aa"]], "outputs": [{"1": [2]}]},
    ),
    "inplace": ("def f(a): a.sort()", {"fn_name": "f", "inputs": [[[3, 1, 2]]], "outputs": [[1, 2, 3]]}),
    "deep rec": ("def f(n): return 0 if n==0 else 1+f(n-1)", {"fn_name": "f", "inputs": [[5000]], "outputs": [5000]}),
    "big": (
        "def f(n): return 10**n",
        {
            "fn_name": "f",
            "inputs": [[300]],
            "outputs": [
                1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
            ],
        },
    ),
    "surr": ("def f(n): return '\\ud800'+n", {"fn_name": "f", "inputs": [["x"]], "outputs": ["\ud800x"]}),
    "inf": ("def f(n): return inf", {"fn_name": "f", "inputs": [[1]], "outputs": [inf]}),
    "nan": ("def f(n): return float('nan')", {"fn_name": "f", "inputs": [[1]], "outputs": [nan]}),
    "-0": ("def f(n): return -0.0", {"fn_name": "f", "inputs": [[1]], "outputs": [0]}),
    "intkeys": ("def f(d): return d[1]", {"fn_name": "f", "inputs": [[{"1": 5}]], "outputs": [5]}),
    "a int": ("def f(a, t): return [x for x in a if type(x) is t]", {"test_list": ["assert f([1,'a'], int)==[1]"]}),
    "a len": ("def f(a, t): return t(a)", {"test_list": ["assert f([1,'a'], len)==2"]}),
    "a iter": (
        "def f(a): return sum(a)",
        {"test_list": ["assert f(iter([1,2]))==3", "assert f(x for x in (1,2))==3", "assert f({1:2}.keys())==1"]},
    ),
    "gen in assert": (
        "def f(a):\n n=0\n while True:\n  yield n\n  n+=1",
        {"test_list": ["import itertools\nassert list(itertools.islice(f(1),3))==[0,1,2]", "assert next(f(1))==0"]},
    ),
    "curry": ("def f(a): return lambda b: a+b", {"test_list": ["assert f(1)(2)==3"]}),
    "frac assert": (
        "from fractions import Fraction\ndef f(a): return Fraction(a,2)",
        {"test_list": ["from fractions import Fraction\nassert f(1)==Fraction(1,2)"]},
    ),
    "raises": (
        "def f(a): raise ValueError('neg')",
        {"test_list": ["try:\n    f(-1)\n    assert False\nexcept ValueError as e:\n    assert str(e)=='neg'"]},
    ),
    "raises2": (
        "class N(KeyError): pass\ndef f(a): raise N('neg')",
        {"test_list": ["ok=False\ntry:\n    f(-1)\nexcept KeyError as e:\n    ok = e.args==('neg',)\nassert ok"]},
    ),
    "raises3": (
        "def f(a): raise StopIteration",
        {
            "test_list": [
                "def r():\n    try:\n        f(-1)\n    except StopIteration:\n        return True\n    return False\nassert r()"
            ]
        },
    ),
    "assertRaises": (
        "def f(a): raise StopIteration",
        {"test_list": ["import unittest\nwith unittest.TestCase().assertRaises(StopIteration):\n    f(1)"]},
    ),
    "in place assert": ("def f(a): a.reverse()", {"test_list": ["a=[1,2]\nf(a)\nassert a==[2,1]"]}),
    "same": (
        "class A: pass\na=A()\ndef f(): return a\ndef g(x): return x",
        {"test_list": ["assert f() is f()\nassert g(f())==f()"]},
    ),
    "tuple sub": (
        "class P(tuple):\n @property\n def x(s): return s[0]\ndef f(): return P((1,2))\ndef g(p): return p.x",
        {"test_list": ["p=f()\nassert p==(1,2) and g(p)==1"]},
    ),
    "headless": (
        "def g(x):\n    return x",
        {"prompt": "import math\n\ndef g(x):\n", "entry_point": "g", "test": "def check(c):\n    assert c(1)==1"},
    ),
    "leetset": (
        "class Solution:\n def g(self,x):\n    return x",
        {
            "prompt": "import math\n",
            "entry_point": "Solution().g",
            "test": "def check(candidate):\n    assert candidate(x=1)==1",
        },
    ),
    "own values": (
        "class Solution:\n def f(self,x):\n    return sum(x)",
        leet("assert candidate([total([1, 2]), 3]) == total([1, 2, 3])"),
    ),
    "starter": (
        "class Solution:\n def f(self,x):\n    return sum(x)",
        {
            "starter_code": "class Solution:\n    def f(self, x: List[int]) -> int:\n        ",
            "fn_name": "f",
            "inputs": [[[1, 2]]],
            "outputs": [3],
        },
    ),
    "print float": ("print(1.50)", {"inputs": ["1"], "outputs": ["1.5000"]}),
    "exit0": ("import sys\nprint(1)\nsys.exit(0)", {"inputs": ["1"], "outputs": ["1"]}),
    "main": (
        "import sys\ndef main():\n    print(sys.stdin.read().strip())\nif __name__ == '__main__':\n    main()",
        {"inputs": ["1\r\n2"], "outputs": ["1\r\n2\r\n"]},
    ),
    "class": (
        "class S:\n def __init__(self,n): self.n=n\n def add(self,x):\n  self.n+=x\n  return self.n",
        {"test_list": ["s=S(2)\ns.add(3)\nassert s.n==5 and s.add(1)==6 and not hasattr(s,'zz')"]},
    ),
    "named attr": (
        "from collections import namedtuple\nP=namedtuple('P','x y')\ndef f(): return P(1,2)",
        {"test_list": ["assert f().x==1 and f()==(1,2) and f()[1]==2 and isinstance(f(), tuple)"]},
    ),
}
"""C-28: programs that public harnesses accept, and their tests."""
WRONG: dict[str, Any] = {
    "stop": (
        "def f(x): raise StopIteration",
        {"test_list": ["cases=[(1,2)]\nassert all(map(lambda c: f(c[0]) == c[1], cases))"]},
    ),
    "stop list": ("def f(x): raise StopIteration", {"test_list": ["assert list(map(f,[1,2])) == []"]}),
    "stop for": ("def f(x): raise StopIteration", {"test_list": ["for a in map(f,[1]): assert a==2"]}),
    "next default": ("def f(x): raise StopIteration", {"test_list": ["assert next(map(f,[1]), 5) == 5"]}),
    "attr": (
        "def f(x): raise AttributeError('z')",
        {"test_list": ["class A:\n    @property\n    def p(self): return f(1)\nassert getattr(A(),'p',5)==5"]},
    ),
    "index": (
        "def f(x): raise IndexError",
        {
            "test_list": [
                "class A:\n    def __getitem__(self,i): return f(i)\nassert list(A())==[]",
                "class A:\n    def __getitem__(self,i): return f(i)\nassert 3 not in A()",
            ]
        },
    ),
    "key pass": ("def f(x): raise KeyError", {"test_list": ["try:\n    assert f(1)==2\nexcept KeyError:\n    pass"]}),
    "finally": (
        "def f(x): raise KeyError",
        {"test_list": ["def g():\n    try:\n        return f(1)==2\n    finally:\n        return True\nassert g()"]},
    ),
    "suppress": (
        "def f(x): raise KeyError",
        {"test_list": ["import contextlib\nwith contextlib.suppress(KeyError):\n    assert f(1)==2"]},
    ),
    "genexit": (
        "def f(x): raise GeneratorExit",
        {"test_list": ["def g():\n    yield f(1)\nassert all(v==2 for v in g())"]},
    ),
    "sysexit": ("def f(x): raise SystemExit(0)", {"test_list": ["assert f(1)==2"]}),
    "kbd": ("def f(x): raise KeyboardInterrupt", {"test_list": ["assert f(1)==2"]}),
    "gen attr": (
        "class E:\n __eq__=lambda s,o: True\n __hash__=lambda s: 5\n __len__=lambda s:2\n __iter__=lambda s: iter([])\n __bool__=lambda s: True\ndef f(x): return E()",
        {"test_list": ["assert f(1)==2"]},
    ),
    "inf tol": ("def f(x): return 7.0", {"fn_name": "f", "inputs": [[1]], "outputs": [inf]}),
    "prelude is no answer": ("x=1", {"fn_name": "gcd", "inputs": [[4, 6]], "outputs": [2]}),
}
"""C-29, and values that are not the expected one."""
UNTESTABLE: dict[str, Any] = {
    "int": {"fn_name": "gcd", "inputs": [5], "outputs": [2]},
    "dict": {"fn_name": "gcd", "inputs": [{"a": 5}], "outputs": [2]},
    "lambda": {"test_list": ["assert f(lambda x: x)==2"]},
    "np": {"test_list": ["assert f(3)==2"], "test_imports": ["import numpy as np"]},
    "cls": {"test_list": ["class A: pass\nassert f(A())==2"]},
    "null": {"fn_name": "gcd", "inputs": [[5]], "outputs": [None]},
    "list node": leet("assert candidate(head=list_node([1, 2])) == 3"),
    "list nodes": leet("assert candidate([list_node([1]), list_node([2])]) == 3"),
    "list nodes made": leet("assert candidate([list_node(x) for x in ([1], [2])]) == 3"),
    "list node named": leet("head = list_node([1])\n    assert candidate(head) == 1"),
    "list node back": leet("assert is_same_list(candidate([1, 2]), list_node([1, 2]))"),
    "list node alone": leet("assert candidate([1]) == ListNode(1)"),
    "list node said": {
        "prompt": f"{LISTS}\ndef f(head: 'Optional[ListNode]') -> int:\n",
        "entry_point": "f",
        "test": "def check(candidate):\n    assert candidate(None) == 0\n",
    },
    "starter": {
        "starter_code": "class Solution:\n    def f(self, root: Optional[TreeNode]) -> int:\n        ",
        "fn_name": "f",
        "inputs": [[[1, 2]]],
        "outputs": [3],
    },
    "setup": {"test_list": ["assert f(root)==2"], "test_setup_code": "root=Node(1)"},
}
"""C-28: tests that no program can pass, or any would."""


def judged(code: str, tests: Any, reward: CodeTests = REWARD) -> Any:
    return reward(code, reference_answer=json.dumps(tests), finish_reason="stop")


@pytest.mark.parametrize("name", HONEST)
def test_c_28_honest_programs_pass(name: str) -> None:
    verdict = judged(*HONEST[name])
    assert verdict.correct, verdict


@pytest.mark.parametrize("name", WRONG)
def test_c_29_what_a_program_raises_is_no_control_flow_of_the_tests(name: str) -> None:
    verdict = judged(*WRONG[name])
    assert (verdict.accuracy, verdict.status) == (0.0, "ok")


@pytest.mark.parametrize("name", UNTESTABLE)
def test_c_28_rows_that_cannot_be_tested_are_unscorable_and_found_before_a_run(name: str) -> None:
    text = json.dumps(UNTESTABLE[name])
    assert REWARD.check_reference(text) is not None
    verdict = REWARD("def f(*a): return 1", reference_answer=text, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")


def test_c_28_the_prelude_is_a_setting() -> None:
    code, tests = HONEST["leet"]
    assert judged(code, tests, CodeTests(prelude="never")).reason == "raised NameError when loaded"


def test_c_28_infinity_and_no_number_equal_themselves_only() -> None:
    for tolerance in (0.0, 0.5, 10.0):
        assert close(inf, inf, tolerance)
        assert close(nan, nan, tolerance)
        for other in (7.0, -inf, nan, 10**400, 1e308):
            assert not close(other, inf, tolerance)
            assert not close(inf, other, tolerance)
        assert same_text("Infinity", "inf", tolerance=tolerance)
        assert not same_text("1e308", "inf", tolerance=tolerance)


@pytest.mark.parametrize(
    "reply",
    [
        b'{"value":{"t":[{"s":[' + b",".join(b"%d" % (i * (2**61 - 1)) for i in range(20000)) + b"]}]}}",
        b"9" * 2**20,
        b"0." + b"1" * 2**20,
        b"[" * 2**20,
        b'{"value": ' + b"{" * 2**20,
        b'{"a":1,"b":2,"c":3}',
        b'{"value":1,"value":2}',
        b"\xff\xfe\x00",
        b'{"value":"' + b"\\ud800" * 2**17,
    ],
)
def test_c_26_a_reply_is_read_only_up_to_the_bound_of_the_expected_value(
    reply: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes given to the decoder are counted: none beyond what an equal value may have."""
    read: list[int] = []
    parse = transfer.parse
    monkeypatch.setattr(transfer, "parse", lambda line: read.append(len(line)) or parse(line))
    packed = base64.b64encode(zlib.compress(reply)).decode()
    code = f"import base64, os, zlib\ndef f(x):\n    view = memoryview(zlib.decompress(base64.b64decode('{packed}')) + b'\\n')\n"
    code += "    while view: view = view[os.write(4, view):]\n"
    verdict = judged(code, {"fn_name": "f", "inputs": [[71]], "outputs": [5041]})
    assert verdict.accuracy == 0.0
    assert all(size <= longest_reply(5041) for size in read)


def test_c_26_a_reply_in_single_bytes_does_not_keep_its_reader_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    take = box.Box._take  # pyright: ignore[reportPrivateUsage]  # the reads are what is counted
    monkeypatch.setattr(box.Box, "_take", lambda self, name: (reads.append(1), take(self, name))[1])
    code = "import os\nwhile True: os.write(4, b' ')"
    limits = Limits(cpu_seconds=0.5, wall_seconds=4.0)
    files = {"main.py": code.encode()}
    isolation = chosen(allow_unsandboxed=False)
    with box.Box(
        [python(), "-I", "{program}/main.py"], files=files, limits=limits, isolation=isolation, talking=True
    ) as running:
        assert running.ask(b"x", longest=100) is None
    assert len(reads) <= 2 * box.QUICK_READS + (box.SETUP_SECONDS + 6) / box.INTERVAL


def test_c_26_a_longer_line_comes_back_cut() -> None:
    code = "import os\nos.write(4, b'x' * 5000 + b'\\n' + b'y\\n')"
    files = {"main.py": code.encode()}
    isolation = chosen(allow_unsandboxed=False)
    with box.Box(
        [python(), "-I", "{program}/main.py"], files=files, limits=Limits(), isolation=isolation, talking=True
    ) as running:
        assert running.ask(b"x", longest=100) == b"x" * 101
        assert running.hear(longest=100) == b"y"


def test_c_26_assertions_are_carried_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the reply to loading the program is decoded in the trainer."""
    read: list[bytes] = []
    parse = transfer.parse
    monkeypatch.setattr(codejudge.transfer, "parse", lambda line: read.append(line) or parse(line))
    assert judged("def f(x): return {1, x}", {"test_list": ["assert f(2) == {1, 2}"]}).correct
    assert read == [b'{"value": null}']


@pytest.mark.parametrize("text", ["```a\n" * 20000, "`" * 100000, "``` \n~~~\n" * 20000, "\t" * 100000 + "```"])
def test_c_26_programs_are_found_in_hostile_texts(text: str) -> None:
    extract_program(text, "python")


def test_matching_is_led_by_the_expected_value() -> None:
    assert not matches({"d": [[{}, 1], ["a", 1]]}, {"a": 1}, 0.0)
    assert not matches({"d": [["a", 1], ["a", 1]]}, {"a": 1, "b": 1}, 0.0)
    assert not matches({"i": "1" * 2**19}, 1, 0.0)
