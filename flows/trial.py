"""`papo try`: one real iteration on two prompts, to find out in a minute what would otherwise show after hours."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from flows.build import open_from
from flows.iteration import genesis, iteration
from flows.proposals import Places, Proposals
from flows.reporters import Live
from flows.samples import described
from papo.correctness import is_predicted
from papo.errors import DataError
from papo.runs import RunView, open_run
from schemas.loading import load_config
from tasks.calling import direct
from tasks.memory import peak_memory
from tasks.opening import close_run
from tasks.run import Run
from tasks.trial import longest_update, preview

PROMPTS = 2
FORCED = ("iterations=1", f"prompts_per_iteration={PROMPTS}", "evaluation=null", "tracking.mlflow=off")


def trial(config: str, *, overrides: Sequence[str], reporter: Live, by: Proposals) -> Iterator[str]:
    """Run it in a folder that is removed afterwards, and say what was seen: prompt, ends, verdicts, memory, seconds."""
    loaded = load_config(Path(config), overrides)
    rows = PROMPTS * loaded.sampling.num_generations
    smaller = [f"engine.shard_size={min(rows, loaded.engine.shard_size)}"]
    if (loaded.algorithm.ppo_mini_batch_size or 0) > rows:
        smaller.append(f"algorithm.ppo_mini_batch_size={rows}")
    with tempfile.TemporaryDirectory(prefix="papo-try-") as folder:
        inside = Places(runs=Path(folder), models=by.places.models)
        run, _ = open_from(
            config, run_id="try", overrides=[*overrides, *FORCED, *smaller], reporter=reporter, places=inside
        )
        try:
            call = direct(run)
            iteration(run, genesis(run, call), call)
            yield from _prompt(run)
            yield from _seen(open_run(inside.run("try")))
            yield from _measured(run)
            _refuse_unscorable(open_run(inside.run("try")))
        finally:
            reporter.end()
            close_run(run)
    yield f"Start it: {by('train', config)}"


def _refuse_unscorable(view: RunView) -> None:
    """Raises DataError where no rollout has a reward: there would be nothing to learn from."""
    rollouts = view.rollouts(0)
    if rollouts["outcome_reward"].null_count() < rollouts.height:
        return
    reasons = rollouts.group_by("status").len().sort("status").iter_rows()
    told = ", ".join(f"{count} {status}" for status, count in reasons)
    raise DataError(
        f"Nothing could be scored: none of the {rollouts.height} rollouts has a reward ({told}), so a run would learn "
        "nothing. Hold the references to the reward (data check), or name another reward or column."
    )


def _prompt(run: Run) -> Iterator[str]:
    seen, stops = preview(run), run.configs(0).sampling.stop_strings
    yield f"The prompt as the policy sees it ({seen.ids} tokens, special ones written out):"
    yield from (f"  | {line}" for line in seen.shown.split("\n"))
    texts = f", or with the text {' or '.join(map(repr, stops))}" if stops else ""
    yield f"Begins      with {seen.begin}"
    yield f"May end     with {' or '.join(seen.ends)}{texts}"


def _seen(view: RunView) -> Iterator[str]:
    rollouts = view.rollouts(0)
    for row in rollouts.group_by("group_id", maintain_order=True).first().iter_rows(named=True):
        yield from described(row)
    cut = int((rollouts["finish_reason"] == "length").sum())
    lengths = rollouts["token_ids"].list.len()
    stopped = int((rollouts["finish_reason"] == "stop_string").sum())
    by_text = f" ({stopped} with a stop string)" if stopped else ""
    yield f"Ends        {rollouts.height - cut} of {rollouts.height} ended by themselves{by_text}, {cut} were cut off"
    yield f"Lengths     {lengths.min()} to {lengths.max()} tokens, mean {lengths.mean():.0f}"
    verdicts = rollouts.group_by("status").len().sort("status").iter_rows()
    predicted = "predicted " if is_predicted(rollouts["judged_by"]) else ""
    counts = ", ".join(f"{count} {status}" for status, count in verdicts)
    yield f"Verdicts    {counts}; {_right(rollouts)} {predicted}right"
    if cut == rollouts.height:
        yield "Warning: every completion was cut off; raise sampling.max_completion_length, or check the end tokens."


def _measured(run: Run) -> Iterator[str]:
    spent = {name: seconds for name, seconds in run.last_seconds.items() if seconds >= 0.05}
    yield f"Seconds     {', '.join(f'{name} {seconds:.1f}' for name, seconds in spent.items())}"
    before = peak_memory(run.engine)
    longest_update(run, [entry.frame_ref for entry in run.head.entries if entry.stage == "generate"])
    after = peak_memory(run.engine)
    if before is not None and after is not None:
        size, limit = run.configs(0).engine.micro_batch_size, run.configs(0).sampling.max_completion_length
        gib = 1024**3
        yield f"Memory      {before / gib:.2f} GiB so far; {after / gib:.2f} GiB with {size} rows of {limit} tokens"


def _right(rollouts: pl.DataFrame) -> int:
    return int(rollouts["correct"].fill_null(False).sum())
