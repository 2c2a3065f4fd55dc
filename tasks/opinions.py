"""Second opinions: what the rules rejected is put before the run's judge, and how a judge that fails is met.

Nothing here is written to disk but events: an opinion counts once its row's frame is published, and what is made again
after a crash asks again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import polars as pl

from papo.errors import JudgeAway, WayOut
from papo.judges import Ask, Failure, Reply
from papo.metrics import OpinionFigures
from papo.rewards import Opinion, OutcomeReward, Verdict
from papo.rewards.second_opinion import ASKED_OF, LONGEST_KEPT, corrected, read_reply, undecided
from schemas.config import RunConfig
from schemas.judges import SecondOpinionConfig
from tasks.run import Run

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds between two looks at a judge that is away: doubled each time."""
_WITHOUT = "reward.second_opinion.on_failure=rule"
"""The amendment by which a run goes on without its judge."""
MOST_TRIES = 3
"""Times that a question, asked alone, may fail while the judge answers a sample: then there is no opinion on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A verdict after the second opinion, where there was one."""

    verdict: Verdict
    opinion: Opinion | None = None
    reply: str | None = None


Consider = Callable[[Iterable[Verdict], pl.DataFrame], Iterable[Considered]]
"""From the verdicts on rows, which have question and reference_answer, to what they are after a second opinion."""
Stage = Literal["verify", "evaluate"]


def by_rules_alone(verdicts: Iterable[Verdict], rows: pl.DataFrame) -> Iterable[Considered]:
    """No second opinion: each verdict as it comes."""
    return (Considered(verdict=verdict) for verdict in verdicts)


def second_opinions(run: Run, config: RunConfig, outcome: OutcomeReward, *, stage: Stage, iteration: int) -> Consider:
    """How a run considers its verdicts. May raise JudgeAway, after which nothing is lost but this shard."""
    settings = config.reward.second_opinion
    if settings is None or outcome.kind not in ASKED_OF:
        return by_rules_alone
    desk = _Desk(run, settings, stage, iteration)

    def consider(verdicts: Iterable[Verdict], rows: pl.DataFrame) -> Iterable[Considered]:
        about = rows.select("question", "reference_answer").iter_rows()
        return considered(list(verdicts), list(about), settings, desk.ask_all)

    return consider


def considered(
    verdicts: Sequence[Verdict],
    about: Sequence[tuple[str, str] | None],
    settings: SecondOpinionConfig,
    ask_all: Callable[[Sequence[Ask]], Sequence[Reply]],
) -> list[Considered]:
    """The verdicts after a second opinion. `about`: question and reference of each; None: not to be asked about."""
    asks = [
        None if of is None else settings.opinion.ask(verdict, question=of[0], reference_answer=of[1])
        for verdict, of in zip(verdicts, about, strict=True)
    ]
    replies = iter(ask_all([ask for ask in asks if ask is not None]))
    return [
        Considered(verdict=verdict) if ask is None else _settled(verdict, next(replies), settings)
        for verdict, ask in zip(verdicts, asks, strict=True)
    ]


def opinion_version(config: RunConfig) -> list[str]:
    """What a key says of the second opinion: nothing where there is none, so that such keys stay as they were."""
    settings = config.reward.second_opinion
    return [] if settings is None else [settings.opinion.version]


def opinion_figures(config: RunConfig, rows: pl.DataFrame, *, prefix: str = "") -> dict[str, float | None]:
    """What second opinions did to `rows` (Outcomes or Evaluations), by the definitions of `OpinionFigures`; empty where
    the config has none."""
    if config.reward.second_opinion is None:
        return {}
    asked, scorable = rows["llm_verdict"].drop_nulls().to_list(), rows["correct"].count()
    figures = OpinionFigures(
        llm_asked=len(asked) / max(1, rows.height),
        llm_corrected=asked.count("equivalent") / scorable if scorable else None,
        llm_failed=sum(opinion in ("failed", "unclear") for opinion in asked) / len(asked) if len(asked) else None,
    )
    return {f"{prefix}{name}": number for name, number in asdict(figures).items()}


def _settled(verdict: Verdict, reply: Reply, settings: SecondOpinionConfig) -> Considered:
    if reply.text is not None:
        opinion = read_reply(reply.text)
        kept = reply.text[-LONGEST_KEPT:]
        return Considered(verdict=corrected(verdict, opinion), opinion=opinion, reply=kept)
    # A question that is refused stays wrong: else an answer that is refused would be worth more than a wrong one.
    if settings.on_failure == "undecided" and _away(reply):
        verdict = undecided(verdict, _failure(reply).reason)
    return Considered(verdict=verdict, opinion="failed")


def _away(reply: Reply) -> bool:
    return reply.failure is not None and reply.failure.cause != "request"


def _failure(reply: Reply) -> Failure:
    assert reply.failure is not None, "a reply without a text says why"
    return reply.failure


class _Desk:
    """Where a stage's questions are asked, and where it waits for a judge that is away."""

    def __init__(self, run: Run, settings: SecondOpinionConfig, stage: Stage, iteration: int) -> None:
        self._run = run
        self._settings = settings
        self._where: dict[str, str | int] = {"stage": stage, "iteration": iteration}

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """One reply a question. Raises JudgeAway where the run waits for its judge and it stays away too long."""
        if not asks:
            return []
        replies = self._asked(asks)
        if self._settings.on_failure == "pause":
            replies = self._completed(asks, replies)
        failed = [_failure(reply) for reply in replies if reply.failure is not None]
        if failed:
            self._run.journal.event("judge_failed", **self._where, rows=len(failed), reason=failed[0].reason)
        return replies

    def _asked(self, asks: Sequence[Ask]) -> list[Reply]:
        judge = self._run.judge
        if judge is None:
            # The run was amended to have none, and this is of an iteration that still had one.
            gone = Failure(cause="request", reason="the run has no judge any more")
            return [Reply(failure=gone)] * len(asks)
        return judge.ask_all(asks, self._run.progress)

    def _completed(self, asks: Sequence[Ask], replies: list[Reply]) -> list[Reply]:
        """The replies, waiting as often as the judge goes away. What fails together is asked in ever smaller parts, and
        a question that fails alone again and again is left without an opinion: nobody may stop a run by an answer."""
        clock, tries, stalled = self._run.clock, [0] * len(asks), 0
        away_since = clock.elapsed()
        while pending := [row for row, reply in enumerate(replies) if _away(reply) and tries[row] < MOST_TRIES]:
            self._wait(away_since, [_failure(replies[row]) for row in pending], first=FIRST_WAIT * 2.0**stalled)
            part = pending[: max(1, len(pending) >> stalled)]
            stalled += 1
            for row, reply in zip(part, self._asked([asks[row] for row in part]), strict=True):
                replies[row] = reply
                tries[row] += len(part) == 1
                if not _away(reply):
                    away_since, stalled = clock.elapsed(), 0
        return replies

    def _wait(self, away_since: float, failures: Sequence[Failure], *, first: float) -> None:
        """Until the judge answers a sample. Raises JudgeAway at the limit."""
        run, judge, limit = self._run, self._run.judge, self._settings.pause_seconds
        reason = next((failure.reason for failure in failures if failure.cause == "endpoint"), failures[0].reason)
        run.journal.event("judge_away", **self._where, rows=len(failures), reason=reason)
        pause, sample = min(first, LONGEST_WAIT), self._settings.opinion.sample(same=True)
        while judge is not None:
            waited = run.clock.elapsed() - away_since
            if waited >= limit:
                raise JudgeAway(
                    f"The judge of second opinions did not answer for {limit:.0f} s (reward.second_opinion."
                    f"pause_seconds): {reason}. {len(failures)} rejected answers of {self._where['stage']} in iteration"
                    f" {self._where['iteration']} wait for it; all that was published is kept. Bring it back and"
                    f" resume the run, or go on without it (--amend {_WITHOUT}).",
                    ways_out=[
                        WayOut(
                            text="Without it",
                            command="resume",
                            arguments=(self._run.run_id,),
                            options=(("--amend", _WITHOUT),),
                        )
                    ],
                )
            run.reporter.message(
                f"{self._where['stage']} waits for the judge of second opinions ({len(failures)} answers): {reason}."
                f" Next look in {pause:.0f} s, for {limit - waited:.0f} s more; then the run stops and can be resumed."
                f" To go on without it: stop the run, then resume it with --amend {_WITHOUT}"
            )
            run.clock.sleep(min(pause, limit - waited))
            pause = min(2.0 * pause, LONGEST_WAIT)
            found = judge.probe(sample)
            if not all(_away(reply) for reply in found.values()):
                break
            reason = next(_failure(reply).reason for reply in found.values())
        run.journal.event("judge_back", **self._where, rows=len(failures))
        run.reporter.message("The judge of second opinions answers again.")
