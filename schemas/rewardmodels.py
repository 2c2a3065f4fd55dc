"""What a reward model's own files say about a run config: its head, labels, template and positions, nothing loaded."""

import json
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer

from papo.engines.text_models import ChatInput, NextToken, label_index, label_names, positions_in
from papo.errors import ConfigError
from papo.rewards import RewardModel, Verifier
from schemas.config import RunConfig
from schemas.faults import Fault, Field
from schemas.filechecks import resolve
from schemas.modelchecks import template_of
from schemas.rewardchecks import judges_of

_CLASSES: dict[str, tuple[str, ...]] = {
    "classifier": ("ForSequenceClassification",),
    "token_classifier": ("ForTokenClassification",),
    "next_token": ("ForCausalLM", "LMHeadModel"),
}


def reward_model_faults(config: RunConfig, base: Path) -> list[Fault]:
    """Every fault of every reward model of a run, where its folder is there."""
    found: list[Fault] = []
    for place, judge in judges_of(config):
        if isinstance(judge, RewardModel):
            found += _faults(place, judge, resolve(judge.path, base))
    return found


def prediction_faults(config: RunConfig) -> list[Fault]:
    """Where a prediction would be taken for what it is not."""
    found: list[Fault] = []
    target = config.stop.target_accuracy
    if target is not None and config.held_out is not None and isinstance(config.held_out_outcome, RewardModel):
        text = (
            f"is {target}, but a reward model judges the held-out rows, and its predictions are no accuracy to reach: "
            "give evaluation.outcome a verifier, or leave the target out (plateau_evaluations takes predictions)."
        )
        found.append(Fault(("stop", "target_accuracy"), text, (("evaluation",), ("reward", "outcome"))))
    judge = config.reward.outcome
    if isinstance(judge, RewardModel) and judge.activation == "none" and config.algorithm.needs.implicit_prm:
        text = "is none, but the implicit PRM is trained towards rewards from 0 to 1 as its labels: use sigmoid."
        found.append(Fault(("reward", "outcome", "activation"), text, (("algorithm", "advantage"),)))
    return found


def prediction_warnings(config: RunConfig) -> list[str]:
    """What is legal but hardly meant with a reward model, one sentence each."""
    if config.held_out is None or not isinstance(config.held_out_outcome, RewardModel):
        return []
    return [
        "a reward model judges the held-out rows: what is optimised is also what measures it, and a policy that fools "
        "it looks good. Where the data has reference answers, give evaluation.outcome a verifier."
    ]


def verifier_of(config: RunConfig) -> Verifier | None:
    """The verifier of a run config, for what is judged without an engine: the training's, or else the evaluation's;
    None where reward models alone judge."""
    verifiers = [judge for _, judge in judges_of(config) if not isinstance(judge, RewardModel)]
    return next(iter(verifiers), None)


def verifier_in(config: RunConfig, *, named: str) -> Verifier:
    """The same. Raises ConfigError where there is none."""
    found = verifier_of(config)
    if found is not None:
        return found
    raise ConfigError(
        f"{named} has no verifier: reward.outcome is a reward model, which runs on the engine alone "
        "and verifies nothing. Give evaluation.outcome one, such as {kind: math_answer}: it is what is used here."
    )


def _faults(place: Field, judge: RewardModel, folder: Path) -> list[Fault]:
    config = _object_in(folder / "config.json")
    if config is None:
        return []
    found = _head_faults(place, judge, config) if not judge.trust_remote_code else []
    head, positions = judge.head, positions_in(config)
    if not isinstance(head, NextToken):
        names = label_names(config)
        try:
            label_index(head.label, names)
        except ValueError as error:
            found.append(Fault((*place, "head", "label"), str(error)))
        if judge.activation == "softmax" and len(names) == 1:
            text = "is softmax, but the model has one label, whose softmax is always 1: use sigmoid."
            found.append(Fault((*place, "activation"), text))
    else:
        found += _token_faults(place, head, folder)
    if isinstance(judge.input, ChatInput) and template_of(folder) is None:
        text = f"is chat, but the tokenizer in {judge.path} has no chat template: use pair, or text with a template."
        found.append(Fault((*place, "input", "kind"), text))
    if judge.max_length is not None and positions is not None and judge.max_length > positions:
        text = f"is {judge.max_length}, but the model in {judge.path} has {positions} positions: use at most so many."
        found.append(Fault((*place, "max_length"), text))
    return found


def _head_faults(place: Field, judge: RewardModel, config: dict[str, Any]) -> list[Fault]:
    declared = [str(name) for name in cast("list[Any]", config.get("architectures") or [])]
    wanted = _CLASSES[judge.head.kind]
    if any(name.endswith(wanted) for name in declared):
        return []
    fitting = [kind for kind, ends in _CLASSES.items() if any(name.endswith(ends) for name in declared)]
    there = f"is a {' and a '.join(declared)}" if declared else "names no architecture in its config.json"
    way_out = f"use {fitting[0]}" if fitting else "name the folder of one that has this head"
    text = f"is {judge.head.kind}, a ...{wanted[0]}, but the model in {judge.path} {there}: {way_out}."
    return [Fault((*place, "head", "kind"), text)]


def _token_faults(place: Field, head: NextToken, folder: Path) -> list[Fault]:
    file = folder / "tokenizer.json"
    if not file.is_file():
        return []
    found: list[Fault] = []
    tokenizer = Tokenizer.from_file(str(file))
    for name, text in (("good", head.good), ("bad", head.bad)):
        count = len(tokenizer.encode(text, add_special_tokens=False).ids)
        if count != 1:
            said = f"is {text!r}, which is {count} tokens of the model: name a text that is one."
            found.append(Fault((*place, "head", name), said))
    return found


def _object_in(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
