"""The mutants: sign, ddof, eps, mask, the wrong set, off by one, the wrong divisor, and mixed-up names; and of what
decides about rewards: a check left out, whose word it was, an answer that runs."""

from dataclasses import dataclass

_GOLDEN = ("tests/golden/test_by_hand.py", "tests/golden/test_families.py")
GROUP = (*_GOLDEN, "tests/golden/test_advantages.py", "tests/unit/papo/advantages")
TOKEN = (*_GOLDEN, "tests/unit/papo/advantages/test_family.py")
LAWS = (*GROUP, "tests/properties/test_advantages.py")
TOKEN_LAWS = (*TOKEN, "tests/properties/test_token_advantages.py")
LOSS = ("tests/golden/test_loss_families.py", "tests/golden/test_losses.py", "tests/unit/papo/losses")
LOSS_LAWS = (*LOSS, "tests/properties/test_losses.py")
_RATES, _WORDS = "tests/unit/papo/test_passrates.py", "tests/unit/papo/test_correctness.py"
REWARDS = "tests/unit/papo/rewards"
_DECIDED = "tests/unit/papo/verifiers/test_decided.py"
OUT = ("tests/golden/test_rows_out.py", "tests/properties/test_rows_out.py")
CODE = (f"{REWARDS}/test_code_values.py", f"{REWARDS}/test_code_tests.py")
HAND = ("tests/golden/test_by_hand.py", *LOSS)


@dataclass(frozen=True)
class Mutant:
    """`old`, which `file` has exactly once, replaced by `new`; `tests` are run in this order until one fails."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _of(folder: str, file: str, tests: tuple[str, ...], *pairs: tuple[str, str]) -> list[Mutant]:
    return [Mutant(f"papo/{folder}/{file}.py", old, new, tests) for old, new in pairs]


MUTANTS: list[Mutant] = [
    *_of(
        "advantages",
        "normalize",
        LAWS,
        ("(len(values) - ddof)", "len(values)"),
        (") + eps\n", ") - eps\n"),
        (" and values[m].max() != values[m].min()", ""),
        ("kept & (group == group_id)", "(group == group_id)"),
        ("known & where", "known"),
        ('if scale != "none"', "if True"),
        ('if scale == "group" else batch_scale', 'if scale == "batch" else batch_scale'),
        (
            "(count * values[members] - fsum(values[members])) / (count - 1)",
            "values[members] - fsum(values[members]) / count",
        ),
        (
            "(count * values[members] - fsum(values[members])) / (count - 1)",
            "(count * values[members] - fsum(values[members])) / count",
        ),
        ("(level + 1) / 2", "level"),
        ("own[None, :] < own[:, None]", "own[None, :] > own[:, None]"),
        ("m.sum() >= at_least", "m.sum() > at_least"),
    ),
    *_of(
        "advantages",
        "papo",
        LAWS,
        ("rollouts.correct & rollouts.scorable\n        active", "rollouts.scorable\n        active"),
        ("at_least=self.min_correct", "at_least=2"),
        (
            "weights * self._normalized(rollouts.process, rollouts, where=active)",
            "-weights * self._normalized(rollouts.process, rollouts, where=active)",
        ),
        (
            "self.outcome_weight * self._normalized(rollouts.outcome, rollouts)",
            "self._normalized(rollouts.outcome, rollouts)",
        ),
        ("where=active) + 0.0", "where=active)"),
        ("/ max(1, of_group)", "/ max(1, int(members.sum()))"),
        ("wrong]).max() + self", "wrong]).min() + self"),
        ("+ self.order_guard_margin", "- self.order_guard_margin"),
    ),
    *_of(
        "advantages",
        "order",
        GROUP,
        ("(num_generations - ddof)", "num_generations"),
        ("for k in range(2, num_generations)]\n    worst", "for k in range(2, num_generations - 1)]\n    worst"),
    ),
    *_of(
        "advantages",
        "tokens",
        TOKEN_LAWS,
        ("mask & (rollouts.token_mask.values != 0)", "mask"),
        ("discount * table[:, at + 1]", "table[:, at + 1]"),
        ("* count / (count - 1)", ""),
        ("1.0 / sqrt(variance + eps)", "1.0 / sqrt(variance)"),
        ("+ count_eps) * count", ") * count"),
        ("self.counts > 0]\n\n    def sums", "self.counts >= 0]\n\n    def sums"),
        ("outcome - outcome_means[tokens.row]", "outcome"),
        ("rewards[tokens.last] += rollouts", "rewards[tokens.last] -= rollouts"),
        ("rollouts.outcome + tokens.sums(", "rollouts.outcome - tokens.sums("),
        ("np.maximum(counts, 1)", "np.maximum(counts, 2)"),
    ),
    *_of(
        "advantages",
        "gae",
        TOKEN_LAWS,
        ("self.gamma * following - values", "self.gamma * following + values"),
        ("discount=self.gamma * self.lam", "discount=self.lam"),
        ("tokens.spread(advantages + values)", "tokens.spread(advantages)"),
        ('cut if self.truncation == "mask"', 'cut if self.truncation == "terminal"'),
        ("ends[bootstrapped] = rollouts.final_values[bootstrapped]", "pass"),
        ("following[tokens.last] = ends[tokens.counts > 0]", "pass"),
    ),
    *_of(
        "advantages",
        "grpo_process",
        TOKEN_LAWS,
        ("int(last) + 1] = number", "int(last)] = number"),
        ("begin = int(last) + 1", "begin = int(last)"),
        ("np.cumsum(present[::-1])[::-1]", "np.cumsum(present)"),
        ("np.where(known, rewards, np.inf)", "np.where(known, rewards, 0.0)"),
        ("np.maximum(np.cumsum(known[::-1])[::-1], 1)", "len(rewards)"),
        ("ddof=self.std_ddof, eps", "ddof=1, eps"),
    ),
    *_of(
        "advantages",
        "prpo",
        TOKEN_LAWS,
        ("(score_of - mean) / std", "(score_of - mean) * std"),
        ("known[own].sum() * raised / raised.sum() - 1", "raised / raised.sum()"),
        ("process - tokens.means(process)[tokens.row]", "process"),
        (
            'case "center":\n                return group_normalize(rewards, group, scale="none")',
            'case "center":\n                return group_normalize(rewards, group)',
        ),
        ("rewards + tokens.means(score_of", "rewards - tokens.means(score_of"),
        ("tokens.means(score_of, where=has_score), group", "tokens.means(score_of), group"),
    ),
    *_of(
        "advantages",
        "prime",
        TOKEN_LAWS,
        ("(total - means[tokens.row[own]]) / (count - 1)", "total / count"),
        ("(total - means[tokens.row[own]]) / (count - 1)", "(total - means[tokens.row[own]]) / count"),
        ("rewards[own] * count - total", "rewards[own] * count + total"),
        (
            "tokens.suffix_sums(rewards, discount=self.gamma_outcome)",
            "tokens.suffix_sums(rewards, discount=self.gamma_process)",
        ),
        ("self.reward_gt_coef * self._outcome_returns", "self.reward_dpo_coef * self._outcome_returns"),
        ("means = tokens.means(rewards)", "means = tokens.sums(rewards)"),
    ),
    *_of("advantages", "mult", GROUP, ("rollouts.outcome * rollouts.process", "rollouts.outcome + rollouts.process")),
    *_of(
        "advantages", "papo_fullnorm", GROUP, ("np.where(rollouts.correct, rollouts.process, 0.0)", "rollouts.process")
    ),
    *_of("advantages", "sum", LAWS, ("rollouts.outcome + rollouts.process", "rollouts.outcome - rollouts.process")),
    *_of("advantages", "rloo", TOKEN, ("penalised_outcome(rollouts)", "rollouts.outcome")),
    *_of("advantages", "reinforce_plus_plus", TOKEN, ("where=has_peers(rewards, rollouts.group)", "where=None")),
    *_of(
        "advantages",
        "filters",
        LAWS,
        ("<= right <=", "< right <="),
        ("return bool(values.max() != values.min())", "return bool(values.any())"),
        ("(~terms.silent[members]).any()", "(~terms.silent[members]).all()"),
    ),
    *_of(
        "advantages",
        "kl_reward",
        TOKEN,
        ("values=-kl_coef", "values=kl_coef"),
        ("0.5 * difference**2", "difference**2"),
        ("np.clip(-difference,", "np.clip(difference,"),
    ),
    *_of(
        "advantages",
        "implicit_rewards",
        TOKEN,
        ("reward_lambda * rewards[at + 1]", "rewards[at + 1]"),
        ("rewards[-1:] = 0.0", "rewards[:1] = 0.0"),
        ("(largest + 1e-6)", "max(largest, 1.0)"),
        (".astype(np.int64) + 1]", ".astype(np.int64)]"),
    ),
    *_of("advantages", "multi_reward", TOKEN, ("* np.array(self.reward_weights)", "")),
    *_of("advantages", "schedules", TOKEN, ("iteration >= self.iterations", "iteration > self.iterations")),
    *_of(
        "advantages",
        "normalize",
        OUT,
        ("weights=kept)[index] > 1", "weights=kept)[index] > 0"),
        ("_std(advantages[where], ddof=ddof)", "_std(advantages, ddof=ddof)"),
        ("    if deviation > 0:\n", "    if True:\n"),
    ),
    *_of(
        "advantages",
        "prime",
        OUT,
        ('self.prime_form == "reinforce"\n', "False\n"),
        ("None if alone_too else has_peers(rollouts.outcome, rollouts.group)", "None"),
        ("if means[members].min() == means[members].max():", "if False:"),
    ),
    *_of("advantages", "rloo", OUT, ("where=has_peers(rewards, rollouts.group)", "where=rollouts.scorable")),
    *_of(
        "advantages",
        "multi_reward",
        OUT,
        ("np.array([fsum(row) for row in weighted])", "weighted.sum(axis=1)"),
        ("where=compared", "where=known"),
    ),
    *_of(
        "advantages",
        "grpo_process",
        OUT,
        ("rollouts.group, where=has_steps", "rollouts.group"),
        ("np.where(compared[row], scores.values, np.nan)", "np.where(rollouts.scorable[row], scores.values, np.nan)"),
    ),
    *_of(
        "advantages",
        "implicit_rewards",
        OUT,
        ("counted = rewards if where is None else", "counted = rewards if True else"),
    ),
    *_of(
        "losses",
        "aggregation",
        LOSS_LAWS,
        ('== "exclude" else', '!= "exclude" else'),
        ("return rows * lengths", "return lengths"),
        ("rows * float(constant)", "float(constant)"),
        ("np.full_like(lengths, lengths.sum())", "np.full_like(lengths, lengths.max())"),
    ),
    *_of(
        "losses",
        "clip",
        LOSS_LAWS,
        ("ratio.clamp(1 - low, 1 + high)", "ratio.clamp(1 - high, 1 + low)"),
        ("unclipped.maximum(", "unclipped.minimum("),
        ("ratio.clamp(max=delta)", "ratio.clamp(min=delta)"),
        ("(advantages < 0) & ", ""),
        ("mask & (pessimistic > unclipped)", "mask & (pessimistic >= unclipped)"),
        ("ceiling = -dual * advantages", "ceiling = dual * advantages"),
        ("keep(inputs.advantages, inputs.completion_mask)", "inputs.advantages * inputs.completion_mask"),
    ),
    *_of(
        "losses",
        "ratio",
        (*HAND, "tests/properties/test_losses.py"),
        ("return keep(logprobs - other, mask)", "return (logprobs - other) * mask"),
        ("mask.sum(-1).clamp(min=1)", "mask.shape[-1]"),
        ('if norm == "mean"', 'if norm == "sum"'),
        ('level == "token" else', 'level != "token" else'),
        ("log_ratio.clamp(-log_ratio_clamp, log_ratio_clamp)", "log_ratio.clamp(max=log_ratio_clamp)"),
    ),
    *_of(
        "losses",
        "gspo",
        LOSS_LAWS,
        ("of_row + (log_ratio - log_ratio.detach())", "of_row + log_ratio"),
        ('level="sequence"', 'level="token"'),
        ("sequence_log_ratio(log_ratio.detach(), mask", "sequence_log_ratio(log_ratio, mask"),
    ),
    *_of(
        "losses",
        "cispo",
        LOSS,
        (
            "ratio.detach().clamp(min=self.cispo_ratio_min, max=self.cispo_ratio_max)",
            "ratio.clamp(min=self.cispo_ratio_min, max=self.cispo_ratio_max)",
        ),
        ("min=self.cispo_ratio_min, max", "max"),
        ("losses = -weight", "losses = weight"),
    ),
    *_of(
        "losses",
        "kl",
        LOSS_LAWS,
        ("else -difference", "else difference"),
        ("return 0.5 * difference.square()", "return difference.square()"),
        ("exponent.exp() - exponent - 1", "exponent.exp() + exponent - 1"),
        ("exponent.clamp(-clamp, clamp)", "exponent.clamp(-10, 10)"),
        ("(gradient - gradient.detach())", "gradient"),
        ('kl_type.startswith("k3")', "False"),
    ),
    *_of(
        "losses",
        "objective",
        LOSS_LAWS,
        ("loss - algorithm.entropy_coeff", "loss + algorithm.entropy_coeff"),
        ("loss + algorithm.kl_loss_coef", "loss - algorithm.kl_loss_coef"),
        ("kl = kl * ratio", "kl = kl * ratio.detach()"),
        ("(~has_signal, 0.0)", "(has_signal, 0.0)"),
        ("return losses * made.weights, sums", "return losses, sums"),
        (
            "masked_difference(inputs.old_logprobs, inputs.logprobs.detach(), mask)",
            "masked_difference(inputs.logprobs.detach(), inputs.old_logprobs, mask)",
        ),
    ),
    *_of(
        "losses",
        "value",
        LOSS_LAWS,
        ("loss = 0.5 * (row", "loss = (row"),
        ("plain.maximum(other)", "plain.minimum(other)"),
        (
            "value.clamp(old - cliprange_value, old + cliprange_value)",
            "value.clamp(target - cliprange_value, target + cliprange_value)",
        ),
        ("1 - of_residual / of_returns", "of_residual / of_returns"),
    ),
    *_of(
        "losses",
        "correction",
        LOSS_LAWS,
        ("uncapped.clamp(max=high)", "uncapped.clamp(min=high)"),
        ("(uncapped > high) | (uncapped < low)", "(uncapped > high)"),
        ("masked_difference(old, sampler", "-masked_difference(old, sampler"),
        (
            'return sequence_log_ratio(log_ratio, mask, norm="sum")',
            'return sequence_log_ratio(log_ratio, mask, norm="mean")',
        ),
        ("(worst_low.exp() < low) | (worst_high.exp() > high)", "(worst_high.exp() > high)"),
        ("log_ratio.exp() - log_ratio - 1", "log_ratio.exp() - 1"),
        ("weights * count / total", "weights / total"),
        ("kept.sum().square() /", "kept.sum() /"),
    ),
    *_of(
        "losses",
        "implicit_prm",
        HAND,
        ("- labels * rewards", "+ labels * rewards"),
        ("share ** (size - 1)", "share**size"),
        (
            "labels[None, :] < labels[:, None], labels[None, :] > labels[:, None]",
            "labels[None, :] > labels[:, None], labels[None, :] < labels[:, None]",
        ),
        ("_softplus(rejected - chosen)", "_softplus(chosen - rejected)"),
        ("0.5 * _softplus(chosen)", "_softplus(chosen)"),
        ("weight_right * (baseline - rewards)", "weight_right * (rewards - baseline)"),
        ("pairs = later & (gap > 0)", "pairs = gap > 0"),
    ),
    *_of(
        "losses",
        "full_kl",
        LOSS_LAWS,
        ("(policy - reference)", "(reference - policy)"),
        ("(precise / temperature)", "precise"),
        ("(means >= low) & (means <= high)", "(means <= high)"),
    ),
    *_of("losses", "kl_control", TOKEN, ("1 + error * steps", "1 - error * steps"), ("-0.2), 0.2)", "-0.2), 0.3)")),
    *_of(
        "losses",
        "logprobs",
        LOSS,
        ("logits[:, start - 1 : -1]", "logits[:, start:]"),
        ("precise / temperature", "precise * temperature"),
        ("scaled.logsumexp(-1) - (scaled", "scaled.logsumexp(-1) + (scaled"),
    ),
    *_of(
        "gym",
        "guards",
        ("tests/unit/papo/gym/test_guards.py",),
        ("if odd is not None:", "if odd is None and text is None:"),
        ("node.id in FUNCTIONS if is_called else", "True if is_called else"),
        ("or _SYMBOL.fullmatch(node.id)", "or node.id"),
        ("type(node.value) in (int, float)", "isinstance(node.value, int | float | str)"),
        ("node.keywords or not isinstance(node.func, ast.Name)", "node.keywords"),
    ),
    *_of(
        "rewards",
        "boxes",
        (f"{REWARDS}/test_boxes.py",),
        ("if box[2].strip() and not _is_denied(text, box)", "if box[2].strip()"),
        ("if not are_one_answer(between):", "if between.strip():"),
        ("if _TAKEN_BACK.search(plain):", "if not plain:"),
        ("if any(map(_GOES_ON.match, sentences if words <= _FEW else [last])):", "if not words:"),
        ("return words <= _FEW and not concludes and", "return"),
        ("words < (_CONCLUSION if concludes else _NEW_STATEMENT)", "words < _NEW_STATEMENT"),
        ('unicodedata.category(c)[0] != "C"', "True"),
        ('words = ["," if word == "or" else word for word in words]', "pass"),
    ),
    *_of(
        "verifiers",
        "critical",
        (_DECIDED,),
        ("yield from ((low, True), (high, True))", "yield from ((low, False), (high, False))"),
        ("yield _minus(*part.args), False", "yield from ()"),
        ("for first, second in combinations(arguments(part), 2)", "for first, second in ()"),
        ("if isinstance(part, Num) and part.value:", "if isinstance(part, Num) and part.value > 9**99:"),
        ("others |= dict.fromkeys(turn for turn in turns if isinstance(turn, Op))", "pass"),
    ),
    *_of(
        "verifiers",
        "points",
        (_DECIDED,),
        ('if needed and "large" in causes:', "if False:"),
        ("return _has_pieces(*nodes) or", "return False and"),
        ("if use.bits_needed <= bits:", "if True:"),
    ),
    *_of(
        "verifiers",
        "numeric",
        (_DECIDED,),
        ("        if use.bits_needed <= bits:", "        if use.bits_needed <= bits or True:"),
        ("self.smallest = max(self.smallest, bottom.bit_length())", "pass"),
        ("self.note_size(-size)", "pass"),
        ("return self.context.mpf(0) if tiny else found", "return found"),
    ),
    *_of("verifiers", "functions", (_DECIDED,), ("return nearest if abs(value - nearest) <= noise else", "return")),
    *_of(
        "verifiers",
        "undefined",
        (_DECIDED,),
        ('raise Unreadable("infinity inside an expression")', "continue"),
        ('if part.head in ("div", "log"):', 'if part.head == "div":'),
        ("exponent.value <= 0", "exponent.value < 0"),
    ),
    *_of(
        "verifiers",
        "spelled",
        ("tests/unit/papo/verifiers/test_spelled.py",),
        ("0 < _UNITS[word] < 10", "_UNITS[word] < 10"),
        ("_SCALES[word] < smallest", "_SCALES[word]"),
        ("return None if _GOES_ON.match(text, end) else (value, end)", "return value, end"),
        ('word == "and" and last in ("hundred", "scale")', 'word == "and" and last'),
    ),
    *_of(
        "rewards",
        "codevalues",
        CODE,
        ("len(json.dumps(expected)) + OF_A_VALUE", "2**30 + OF_A_VALUE"),
        ('letter in ("l", "t") and all(', "all("),
        ("len(known) == len(body) == len({key for key, _ in known})", "len(known) == len(body)"),
    ),
    *_of(
        "rewards",
        "structured",
        (f"{REWARDS}/test_countdown.py", f"{REWARDS}/test_knights.py", f"{REWARDS}/test_zebra.py"),
        ("if found is not None and found.strip():", "if found is not None:"),
        ("if len(found) < len(pairs):", "if len(found) > len(pairs):"),
        ("found = text[start : match.end()] if level == 0 else found", "found = text[start : match.end()]"),
    ),
    *_of(
        "rewards",
        "second_opinion",
        (f"{REWARDS}/test_second_opinion.py",),
        (
            'verdict.correct is not False or verdict.status != "ok"',
            'verdict.correct is not False or verdict.status == ""',
        ),
        ('if opinion != "equivalent":', 'if opinion == "different":'),
        ("values_in(answer) > values_in(reference_answer)", "values_in(answer) < 0"),
        ('text.rpartition("</think>")[2]', "text"),
        (".translate(_LOOKALIKES)", ""),
    ),
    *_of(
        "rewards",
        "reward_model",
        (f"{REWARDS}/test_reward_model.py",),
        ("score >= self.correct_from", "score > self.correct_from"),
        ('if finish_reason == "length" and self.truncated == "zero":', 'if self.truncated == "none":'),
    ),
    Mutant("papo/passrates.py", 'pl.col("pass_rate") == 0.0', 'pl.col("pass_rate") <= 0.5', (_RATES,)),
    Mutant("papo/passrates.py", 'pl.struct("iteration", "group_id")', 'pl.struct("group_id")', (_RATES,)),
    Mutant("papo/correctness.py", 'return "reward_model" in judged_by', 'return "llm" in judged_by', (_WORDS,)),
]

EXPLAINED: dict[tuple[str, str], str] = {
    ("papo/advantages/tokens.py", "np.maximum(self.counts, 2)"): (
        "changes rows of one token only, whose mean is set to their one value right after"
    )
}
"""(file, new) of a mutant that no test can kill, with the reason."""
