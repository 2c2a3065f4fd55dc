"""Equality of answers by kind, on pairs of our own. The reference comes first."""

import pytest

from papo.verifiers.engines import Engines
from papo.verifiers.judging import check_reference, decide
from papo.verifiers.reading import read
from papo.verifiers.rules import Rules

EXACT = Rules()
ENGINES = Engines()
SAME = [
    ("3.14", r"22/7 \approx 3.14"), (r"\pi", r"3.14 \approx \pi"), ("700", r"697.3 \approx 700"),
    ("3:30 pm", "3:30 p.m."),
    ("3:30", "3:30 pm"), (r"12\frac12\%", r"12.5\%"), (r"12\frac12\%", r"12 1/2 \%"), ("$5", "500 cents"), ("$5", "5"),
    (r"20^\circ C", "20 degrees Celsius"), ("5", r"5\text{ two-digit numbers}"), ("B", "B. Carbon"),
    ("B", "(B) I and II only"), (r"\frac{639}{40}", r"15\frac{39}{40} or \frac{639}{40}"), ("0.5", "1/2 or 0.5"),
    (r"\frac{3}{4}", "0.75"), (r"\frac{3}{4}", "3/4"), (r"\frac{3}{4}", r"\frac{6}{8}"),
    (r"\frac{3}{4}", r"\tfrac{3}{4}"), ("0.5", r"\frac12"), ("0.5", r"50\%"), (r"\sqrt{2}", r"\sqrt 2"),
    (r"\frac{7}{2}", r"3 \frac{1}{2}"), (r"\frac{7}{2}", "3½"), (r"\frac{7}{2}", r"3\tfrac12"),
    (r"25\%", "25 percent"), (r"25\%", r"\frac{1}{4}"), (r"12.5\%", r"\frac18"), (r"5\text{ cm}", "5"),
    (r"5\text{ cm}", "5 cm"), (r"5\text{ cm}", r"5\,\text{centimeters}"), (r"5\text{ cm}", r"0.05\text{ m}"),
    (r"5\text{ cm}", "50 mm"), (r"20\,\text{cm}^2", r"20\text{ cm}^2"), (r"20\,\text{cm}^2", "20 cm^2"),
    (r"20\,\text{cm}^2", "20 square centimeters"), ("40", "40 degrees"), (r"60^{\circ}", "60°"),
    (r"60^{\circ}", r"\frac{\pi}{3}"), (r"\$18.90", "18.9 dollars"), (r"\$18.90", "1890 cents"),
    ("1,234,567", "1{,}234{,}567"), ("1,234,567", r"1\,234\,567"), ("10{,}080", "10,080"), ("10{,}080", r"10,\!080"),
    ("1,000", "10^3"), (r"\sqrt{2}", r"\frac{2}{\sqrt{2}}"), (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt{3}}{3}"), (r"\sqrt[3]{8}", "2"), (r"2\pi", "2*pi"), (r"\ln 2", r"\log_e 2"),
    (r"\ln 8", r"3\ln 2"), (r"\log_2 8", "3"), ("e^{2}", r"\exp(2)"), ("2+3i", "3i + 2"), (r"e^{i\pi}", "-1"),
    ("i^2", "-1"), (r"\frac{1+i}{1-i}", "i"), (r"3\times10^{5}", r"3 \cdot 10^5"), (r"3\times10^{5}", "3e5"),
    (r"3\times10^{5}", "300,000"), (r"\{1,2,3\}", r"\{1, 3, 2\}"), (r"\{1,2,3\}", "1, 2, 3"), (r"\{1,2\}", "{1, 2}"),
    (r"\emptyset", r"\varnothing"), (r"\emptyset", "∅"), ("1, -2", "-2, 1"), ("1, -2", "x = 1, -2"),
    ("1, -2", "x = -2 or x = 1"), ("1, -2", "1 and -2"), ("1, -2", r"\{1,-2\}"), ("(2,5)", "2<x<5"),
    ("(2,5)", r"x \in (2,5)"), ("(2,5)", "]2,5["), ("(2,5)", r"\{x : 2 < x < 5\}"),
    ("(2,5)", r"\{x \mid 2 < x < 5\}"), (r"(-\infty,3]", r"x\leqslant 3"),
    (r"(-\infty,0)\cup(0,\infty)", r"\mathbb{R}\setminus\{0\}"),
    (r"(-\infty,0)\cup(0,\infty)", r"x<0 \text{ or } x>0"), (r"[0,\infty)", r"x \ge 0"), (r"[0,1]\cup[1,2]", "[0,2]"),
    (r"\mathbb{R}", "all real numbers"), (r"\mathbb{R}", r"x \in \mathbb{R}"), (r"x\in[1,4]", "[1,4]"),
    ("(1,-2)", r"\left(1, -2\right)"), ("(1,-2)", "x=1, y=-2"), ("(1,-2)", "(x,y) = (1,-2)"),
    ("(1,-2)", r"\langle 1, -2 \rangle"), ("(0.5, 1)", r"(\frac12, 1)"), ("x=1,y=2", "(1,2)"),
    ("x=1,y=2", r"x = 1 \text{ and } y = 2"), ("(1,2),(3,4)", "(1,2) and (3,4)"), ("(1,2),(3,4)", r"\{(3,4),(1,2)\}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \\ \end{pmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{array}{cc}1&2\\3&4\end{array}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"), ("2x+4y-3=0", "4x+8y=6"),
    ("2x+4y-3=0", r"y = \frac{3-2x}{4}"), ("2x+4y-3=0", "3-2x-4y=0"), ("y=2x+3", "y=3+2x"), ("y=2x+3", "2x-y+3=0"),
    ("x=5", "x = 5.0"), ("x=5", "5=x"), ("x>3", r"(3,\infty)"), ("x^2+y^2=4", "x^2+y^2-4=0"),
    (r"\frac{x^2}{9}+\frac{y^2}{5}=1", "5x^2+9y^2=45"), (r"\sin^2x+\cos^2x", "1"), (r"\sin 2x", r"2\sin x\cos x"),
    (r"\cos 2x", r"1-2\sin^2 x"), (r"\tan x", r"\frac{\sin x}{\cos x}"), ("n(n+1)/2", r"\frac{n(n+1)}{2}"),
    (r"\binom{5}{2}", r"\binom{5}{3}"), (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"), ("5!", r"5\cdot4\cdot3\cdot2"),
    ("2^{10}", "2^{10} = 1024"), ("x_1+x_2", "x_1 + x_2"), ("f(x)=x^2", r"f(x) = x\cdot x"),
    (r"\frac{1}{2}\ln|x|+C", r"\frac{\ln|x|}{2}+C"), (r"\frac{1}{2}\ln|x|+C", r"\frac{\ln|x|}{2}+K"),
    (r"\frac{a}{b}", "a/b"), (r"\sum_{k=1}^{10}k", "55"), ("|x|", r"\sqrt{x^2}"), (r"\pm 2", "2, -2"),
    (r"\pm 2", r"\{-2,2\}"), (r"\pm 2", r"x=\pm 2"), (r"\pm\sqrt{3}", r"\sqrt{3}, -\sqrt{3}"),
    (r"1\pm\sqrt{2}", r"1+\sqrt2, 1-\sqrt2"), ("B", "(B)"), ("B", "B."), ("B", r"\text{(B)}"), ("B", r"(B)\ 12"),
    ("B", r"\textbf{(B)}\ 12"), ("B", "B: 12"), ("B", "b"), (r"\text{even}", "Even"), (r"\text{odd}", "odd"),
    ("odd", r"\text{odd}"), (r"\text{Yes}", "YES"), ("Tuesday", "tuesday"), (r"\text{no solution}", "no solution"),
    (r"\text{13}", r"\text{13}"), ("True", "true"), ("5", r"\displaystyle{5}"), ("5", r"\mathrm{5}"),
    ("5", r"\text{5}"), ("5", r"\boldsymbol{5}"), ("5", r"\textcolor{red}{5}"), ("5", r"5\quad"), ("5", "~5~"),
    ("5", "{5}"), ("5", "(5)"), ("5", "5.0"), ("5", "+5"), ("5", r"\underline{5}"), ("5", r"\phantom{x}5"),
    ("5", r"\large 5"), ("5", "５．０"), ("5", "５。"), (r"\frac{1}{2}", r"\frac{1}{2}\,."),
    (r"\frac{1}{2}", r"\frac{ 1 }{ 2 }"), (r"\frac{1}{2}", r"{1 \over 2}"), (r"\frac{1}{2}", "1/2"),
    (r"\frac{1}{2}", "½"), ("(1,2)", r"\big( 1, 2 \big)"), ("x+1", "1+x"), ("x+1", r"x+1\text{.}"), ("12", "１２"),
    ("12", "12元"), ("12", "12 个"), (r"\text{甲}", r"\text{甲}"), ("-7", "−7"), ("-7", "–7"), ("-7", "－7"),
    ("-7", "(-7)"), ("-7", "-(7)"), ("0", "0.0"), ("0", "+0"), (r"-\frac{1}{2}", r"\frac{-1}{2}"),
    (r"-\frac{1}{2}", r"\frac{1}{-2}"), (r"-\frac{1}{2}", "-0.5"), (r"\infty", "∞"), ("n=2,3,5", "2,3,5"),
    (r"18, 47, \text{ and } 83", "18, 47, 83"), ("11:00", "11:00"), ("11:00", "11:00 a.m."), ("11-i", "11 - 1i"),
    (r"31\%", "0.31"), ("8", "8 = 8"), ("2516_8", "2516_{8}"), ("2k", "2k"),
    (r"\frac{270}7\text{ degrees}", r"\frac{270}{7}^\circ"), (r"864 \mbox{ inches}^2", "864"),
    (r"864 \mbox{ inches}^2", r"864 \text{ in}^2"), (r"864 \mbox{ inches}^2", r"6 \text{ square feet}"),
    (r"\{1\pm\sqrt{5},-2\}", r"\{-2, 1+\sqrt5, 1-\sqrt5\}"), (r"3 \pm 2 \sqrt{2}", r"3+2\sqrt2, 3-2\sqrt2"),
    ("1:2", "2:4"), ("1:2", "1/2"), ("5x - 7y + 11z + 4 = 0", "-5x+7y-11z-4=0"),
    (r"\frac{\log 2}{\log 2-\log 3}", r"\frac{\ln 2}{\ln 2 - \ln 3}"), ("$f(x)=x$,$f(x)=2-x$", "f(x)=2-x, f(x)=x"),
    (r"$x=\frac{1}{6} \pi+\pi k, \frac{1}{3} \pi+\pi k$", r"x = \frac{\pi}{3}+k\pi, \frac{\pi}{6}+k\pi"),
    (r"\lceil n / 2\rceil+1", r"\lfloor (n+1)/2 \rfloor + 1"), ("2^{1009}", "2^{1010}/2"),
    (r"\frac{100!}{2^{50}}", r"100!\cdot 2^{-50}"), ("10^{100}, 10^{1/100}", "10^{1/100}, 10^{100}"),
    ("5000000", "5 million"), ("24", "2 dozen"), ("3 hours", "180 minutes"), ("5 apples", "5 apple"),
    (r"90^\circ", "90"), ("5 m/s", r"5 \text{ meters per second}"), ("36 km/h", "10 m/s"),
    (r"\sqrt{ab}", r"\sqrt{a}\sqrt{b}"), ("x^{2/3}", r"\sqrt[3]{x^2}"), (r"\frac{1}{x^2}", "x^{-2}"),
    ("(a+b)^2", "a^2+2ab+b^2"), ("xy", "yx"), ("2(x+1)", "2x+2"), (r"\log_{10} 100", "2"),
    (r"\cos 60^\circ", r"\frac12"), (r"0.\overline{142857}", "1/7"), (r"0.1\overline{6}", r"\frac16"),
    (r"\int_0^1 x^2 dx", r"\frac13"), (r"\sum_{n=1}^\infty \frac{1}{n^2}", r"\frac{\pi^2}{6}"),
    (r"\lim_{n\to\infty}(1+1/n)^n", "e"), (r"(2,\infty)", "x>2"), (r"x \neq 0", r"(-\infty,0)\cup(0,\infty)"),
    (r"(-\infty, 2) \cup (3, \infty)", r"x<2\text{ or }x>3"), ("[-2,7]", r"-2 \le x \le 7"), ("y = -2x", "y=-2x"),
    ("y = -2x", "2x+y=0"), ("p - q", "-(q-p)"), ("6 - 5i", "6-5i"),
    ("4027", "x + y = 4027"), ("16", "|r-s| = 16"), ("0", "I(6,3) = 0"), ("f(z)=z^2", "f(n) = n^2"),
    ("f(z)=z", r"f(n) = n \text{ for all positive integers } n"), (r"k\pi", r"k\pi \text{ for } k \in \mathbb{Z}"),
    (r"k\pi", r"k\pi, k \in \mathbb{Z}"), ("166", r"166 \text{ $cm^2$}"), (r"9.8\text{ m/s}^2", r"9.8 \text{ m/s}^2"),
    ("153", "**153**"), ("2^n", "2^n, where $n$ is an integer"), ("y=2x", "x=y/2"),
    ("300000", "3 x 10^5"), ("300000", "3 × 10^5"), (r"(-\infty,-1)\cup(2,\infty)", "(-oo, -1) U (2, oo)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,2],[3,4]]"), (r"\begin{pmatrix}1\\2\end{pmatrix}", "[[1],[2]]"),
    ("[1,2]", "[1,2]"), ("[[1,2,3]]", r"\begin{pmatrix}1&2&3\end{pmatrix}"),
    ("5", "(" * 64 + "5" + ")" * 64),
    ("11-i", "11 - 1.0*I"), ("12", "twelve"), ("12", r"\text{twelve}"), ("three", "3"),
    ("1, -2", "x_1 = 1, x_2 = -2"),
    (r"\frac{1}{2}\begin{pmatrix}2\\4\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
    (r"-\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}-1\\-2\end{pmatrix}"), ("90 km/hr", "90 km/h"),
    ("5 min", "300 sec"), ("5 min", "5 minutes"), (r"5\text{ min}", "5"), (r"\min(3,4)", "3"), (r"\max(3,4)", "4"),
    (r"\gcd(12,18)", "6"), (r"2\sin 30^\circ", "1"), (r"25^\circ C", r"25 \text{°C}"), ("x^2-4=0", "x^2=4"),
    (r"\frac{x}{2}+\frac{y}{3}=1", "3x+2y=6"), ("y-3=2(x-1)", "y=2x+1"), (r"\sqrt[4]{16}", "2"), (r"\binom52", "10"),
    (r"{5 \choose 2}", "10"), ("1.5E-3", "0.0015"), ("1 000 000", "10^6"), ("(2,5]", r"2<x\le 5"),
    (r"\{x\in\mathbb{R}: x>3\}", r"(3,\infty)"), ("x>3", r"x \in (3, \infty)"), (r"\{1,2,3\}", "1, 2 and 3"),
    (r"\{(1,2),(3,4)\}", "(1,2),(3,4)"), ("7", r"\text{The answer is } 7"), ("7", r"\approx 7"),
    ("3.14", r"x \approx 3.14"), ("x²", "x^2"), ("x₁", "x_1"), (r"\frac{\pi}{2}", r"90^\circ"), (r"2\pi r", "2πr"),
    (r"\pi r^2", "πr²"), ("ab+bc", "bc + ab"), ("10!", "3628800"), (r"\frac{10!}{5!5!}", "252"), (r"e^{2\pi i}", "1"),
    (r"\sqrt{-4}", "2i"), ("(1+i)^2", "2i"), ("a_n = 2n+1", "2n+1"), (r"\overline{AB}", r"\overline{AB}"),
    (r"\angle ABC = 60^\circ", r"60^\circ"), (r"-\infty", "-∞"), (r"1\frac{1}{2}", r"1\frac12"),
    (r"-1\frac{1}{2}", "-1.5"), (r"0.\overline{9}", "1"), (r"\frac{1}{3}", r"33.\overline{3}\%"),
    (r"1+\frac{1}{1+\frac{1}{2}}", r"\frac{5}{3}"),
    (r"x=\frac{-b\pm\sqrt{b^2-4ac}}{2a}", r"\frac{-b+\sqrt{b^2-4ac}}{2a}, \frac{-b-\sqrt{b^2-4ac}}{2a}"),
    (r"2\sqrt{3}", r"\sqrt{12}"), (r"\sin\theta", r"\sin(\theta)"), (r"\sin^{-1}(1)", r"\frac{\pi}{2}"),
    (r"\tan^{-1} x", r"\arctan x"), (r"\log_2(8)", "3"), (r"\ln(e^2)", "2"), (r"\frac{d}{2}", "d/2"), (r"100\%", "1"),
    (r"5 \%", "0.05"), ("no", "No"), (r"x\le-1\text{ or }x\ge 2", r"(-\infty,-1]\cup[2,\infty)"),
    (r"\frac{3}{x+1}", r"\frac{-3}{-x-1}"), ("4x^3", "4x³"), ("1:2:3", "2:4:6"), ("3:2", "1.5"), ("4,5", "5,4"),
    (r"\langle 1,2,3\rangle", "(1,2,3)"), ("i+2j", "2j+i"), (r"\hat{i}+2\hat{j}", r"2\hat{j}+\hat{i}"),
    (r"\vec{v}", r"\vec{v}"), (r"\triangle ABC", r"\triangle ABC"),
]  # fmt: skip
DIFFERENT = [
    ("700", r"700 \approx 701"), ("42", r"42 \approx 42.1 \approx 42.2"), ("2.34", r"7/3 \approx 2.34"),
    ("698", r"697 \approx 698 \approx 699"), ("11:00 am", "11:00 pm"), ("11:00", "11:00 x"), ("3:30 pm", "3:30 a.m."),
    ("B", "B: C"), ("B", "(B) C"), ("B", "B) A B C D"), ("B", "B: not this, C"), ("C", "C: D, E"),
    ("A", "A. or maybe C"),
    ("62", r"12 1/2 \%"), ("5", "5 halves"), ("5", "5 squared"), ("5", "5 point five"), ("5", "5 six seven"),
    ("2", "2, 2"), ("5", "5 factorial"), ("$5", "5 cents"), ("$5", "€5"),
    (r"2\pi", "6.283185307179586..."), (r"\{1,2,3\}", r"\{1,2\}"), (r"\{1,2,3\}", "(1,2,3)"), ("1, -2", "1"),
    (r"\{2,3\}\cup\{5\}", r"\{2,3\}"), ("(2,5)", "(2,5]"), (r"(-\infty,3]", r"(-\infty, 3)"),
    (r"[0,\infty)", r"(0,\infty)"), ("(1,-2)", "(1, -2, 0)"), ("x=1,y=2", "x=2,y=1"), ("(1,2),(3,4)", "(1,2),(4,3)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"),
    (r"\frac{x+1}{x^2-1}", r"\frac{1}{x+1}"), ("y=2x+3", "y=2x-3"), ("x=5", "y=5"), ("x=5", "x=-5"), ("x>3", "x>4"),
    ("x>3", "x<3"), ("x^2+y^2=4", "(x^2+y^2)=2"), ("n(n+1)/2", r"\frac{n(n-1)}{2}"), ("7", "5=7"), ("a+b", "a-b"),
    ("x_1+x_2", "x_1+x_3"), ("f(x)=x^2", "f(x)=x^3"), (r"\frac{1}{2}\ln|x|+C", r"\frac12 \ln x + C"),
    ("x^2+C", "x^2"), (r"\frac{a}{b}", r"\frac{b}{a}"), (r"\sum_{k=1}^{n}k", r"\frac{n(n-1)}{2}"), ("|x|", "-x"),
    (r"\pm 2", "-2"), (r"1\pm\sqrt{2}", r"1+\sqrt2"), ("3", r"\pm 3"), ("B", "A"), ("B", "(A) or (B)"),
    (r"\text{even}", r"\text{odd}"), (r"\text{Yes}", "No"), ("Tuesday", "Monday"), ("-3^2", "(-3)^2"),
    (r"\infty", r"-\infty"), ("6", r"6\sqrt{3}"), (r"m\ge\sqrt{3}", r"m>\sqrt3"),
    (r"Y(x)=-x+C+\frac{D}{x}", r"Y(x)=x+A+\frac{B}{x}"), (r"\frac{x^2+x}{x}", "x-1"), ("2516_8", "2516"),
    ("2^{1009}", "2^{1008}"), ("7", "7 or more"), ("7", "at least 7"), ("7", r"7 \text{ or } 8"), ("7", "not 7"),
    ("7", "7x"), ("7", r"\geq 7"), ("7", "77"), ("7", "7^7"), ("5", "5 million"), ("5 apples", "5 oranges"),
    (r"\frac{\pi^2}{6}", "1.6449"), ("999999999999", "10^{12}"), ("3.14159", r"\pi"), ("6 - 5i", "6+5i"),
    ("1.5", "1,5"), (r"\frac{1}{2}\ln|x|+C", r"\frac{1}{2}\ln|x|"), ("11:00", "11"),
]  # fmt: skip

MISLEADING = [
    ("7", "7 or more"), ("7", "7 is wrong"), ("7", "7 + 1"), ("7", "5 = 7"), ("7", "x = 5 = 7"), ("7", "6, 7"),
    ("7", "7!"), ("7", "7.0001"), ("7", "7_8"), ("7", "7 \\pmod{9}"), ("7", "7\\ldots"), ("7", "7:1:1"),
    ("7", "7 < 8"), ("7", "|x| = 7"), ("2C", "2K"), ("C", "K"), ("xC", "xA + 1"), ("\\lfloor x \\rfloor", "x"),
    ("\\lfloor x \\rfloor", "\\lceil x \\rceil"), ("x", "\\sqrt{x^2}"), ("\\ln x^2", "2 \\ln x"), ("x>3", "y>3"),
    ("x=5", "y=5"), ("y=2x", "y=x/2"), ("A", "A: 12, B: 13"), ("A", "(A)(B)"), ("A", "A and B"), ("A", "(A), (B)"),
    ("12", "1 2"), ("12", "1,2"), ("0.25", "25"), ("0.25", "0.25\\%"), ("(1,2)", "1,2"), ("1,2", "(1,2)"),
    ("1,1,2", "1,2"), ("(1,2,3)", "\\{1,2,3\\}"), ("[2,5]", "2<x<5"), ("x<3", "x>3"), ("e", "2.718281828459045"),
    ("\\frac{355}{113}", "\\pi"), ("2^{1000}+\\sqrt{2}", "2^{1000}+\\sqrt{3}"), ("e^{-1000}", "e^{-1001}"),
    ("e^{\\pi\\sqrt{163}}", "262537412640768744"), ("\\frac{1}{1999!}", "\\frac{1}{2000!}"),
    ("2^{20000}", "2^{20001}"), ("9^{9^{9}}", "9^{9^{8}}"), ("\\sin 1", "\\sin 1^\\circ"), ("x^2+1", "x^2+1.0000001"),
    ("5 kg", "5 g"), ("5 kg", "5 m"), ("5\\text{ cm}", "5\\text{ cm}^2"), ("\\$5", "5 euros"),
    ("5 hours", "5 minutes"), ("30^\\circ", "\\frac{\\pi}{3}"), ("11:00", "11:30"), ("3:4", "4:3"),
    ("Tuesday", "Tuesday or Monday"), ("\\text{even}", "not even"), ("y=x^2", "y^2=x"),
    ("x^2+y^2=1", "x^2+y^2\\le 1"), ("x+y<1", "x+y>1"), ("x+y<1", "-x-y<-1"), ("x=1,y=2", "x=1,y=3"),
    ("x=1,y=2", "x=1"), ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "(1,2,3,4)"),
    ("\\frac{22}{7} \\approx 3.14", "5"), ("3", "\\frac{22}{7} \\approx 3.14"), ("3.14", "3.14 = \\pi"),
    ("\\emptyset", "0"), ("\\emptyset", "\\{0\\}"), ("(-\\infty,\\infty)", "x \\ne 0"), ("[0,1)\\cup(1,2]", "[0,2]"),
    ("\\mathbb{R}", "\\mathbb{Z}"), ("ab", "a+b"), ("12", "12 million"), ("5 \\text{ cm}", "5 \\text{ apples}"),
    ("x_1", "x_2"), ("x_1", "x"), ("f(x)=2x", "g(x)=2x"), ("1.5", "1,5"), ("15", "1.5"),
    ("10", "2x = 10"), ("5", "x+y=6"), ("f(z)=z^2", "g(n)=n^2"), ("x+y=5", "5"), (r"k\pi", r"n\pi"),
    ("f(x)=x", "f(2)=2"), ("|x-20|", "20-x"), (r"\sqrt{(x-20)^2}", "20-x"),
    (r"\lfloor\sqrt{n-1}\rfloor", r"\lfloor\sqrt{n-2}\rfloor"),
    (r"\lfloor n/7 \rfloor", r"\lfloor (n-1)/7 \rfloor"), (r"\arcsin(\sin x)", "x"), (r"\sqrt[3]{x^3}", "|x|"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,3],[2,4]]"), ("x_1=1, x_2=2", "x_1=2,x_2=1"), ("1,2", "x=1,y=2"),
    (r"25^\circ C", r"25^\circ F"), (r"\{(1,2)\}", r"\{1,2\}"), ("a_n=2n+1", "a_n = 2n-1"),
    (r"2\frac{3}{4}", r"2\cdot\frac34"), ("0.999", "1"), (r"\frac{22}{7}", r"\pi"), ("3", "3.00000000001"),
    ("10^{-10}", "0"), ("(4,5)", "(5,4)"),
]  # fmt: skip


def same(reference: str, answer: str, rules: Rules = EXACT) -> bool:
    assert check_reference(reference) is None
    return decide(reference, answer, rules=rules, engine=ENGINES).same


@pytest.mark.parametrize(("reference", "answer"), SAME)
def test_the_same(reference: str, answer: str) -> None:
    assert same(reference, answer)


@pytest.mark.parametrize(("reference", "answer"), DIFFERENT + MISLEADING)
def test_different(reference: str, answer: str) -> None:
    assert not same(reference, answer)


@pytest.mark.parametrize("reference", dict.fromkeys(reference for reference, _ in SAME + DIFFERENT + MISLEADING))
def test_every_reference_is_itself(reference: str) -> None:
    """BUG-061."""
    assert same(reference, reference)


def test_percent_is_a_value_or_a_unit_by_the_setting() -> None:
    unit = Rules(percent="unit")
    assert [same("25\\%", answer) for answer in ("25", "0.25")] == [False, True]
    assert [same("25\\%", answer, unit) for answer in ("25", "0.25", "2.5")] == [True, True, False]
    assert same("25", "25\\%", unit)
    assert not same("25", "25\\%")


def test_tolerance_is_of_the_difference_and_of_the_reference() -> None:
    assert not same("3.14159", "3.1416")
    assert same("3.14159", "3.1416", Rules(tolerance=1e-4))
    assert not same("3.14159", "3.15", Rules(tolerance=1e-4))
    assert same("2000", "2019", Rules(relative_tolerance=0.01))
    assert not same("2000", "2021", Rules(relative_tolerance=0.01))
    assert same("\\pi", "3.14159", Rules(tolerance=1e-4))
    assert not same("7", "x", Rules(tolerance=1e9))


def test_the_reference_is_the_first_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """BUG-057: checkers are not symmetric."""
    seen: list[tuple[object, object]] = []

    class Spy(Engines):
        def equal(self, gold: object, answer: object) -> bool:
            seen.append((gold, answer))
            return False

    decide("\\sqrt{2}", "\\sqrt{3}", rules=EXACT, engine=Spy())
    assert seen == [(read("\\sqrt{2}"), read("\\sqrt{3}"))]


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "  ",
        "the answer is unknowable",
        "see the picture above",
        "\\frac{1}{",
        "((((1",
        "f(x)=ax+b, where $b$ is any",
    ],
)
def test_what_no_rule_can_read_is_no_reference(reference: str) -> None:
    """BUG-056."""
    assert check_reference(reference) is not None
