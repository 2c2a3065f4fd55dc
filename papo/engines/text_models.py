"""Frozen models that score texts, as an engine is asked for them: where the score stands, what the model is given.

A reward model is one, and so is an explicit process reward model: both say how good a completion of a question is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from papo.values import value

Activation = Literal["auto", "sigmoid", "softmax", "none"]
Truncate = Literal["left", "middle"]
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")
"""What config.json calls them: most models, GPT-2 and its kin, MPT, the oldest."""
_OFFSET_POSITIONS = ("camembert", "longformer", "roberta", "xlm-roberta", "xlm-roberta-xl", "xmod")
"""Models whose positions are counted from behind their padding's id."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that prompt and completion may have together, what limits them, and what can be done but shorten them."""

    tokens: int
    limit: str
    way_out: str = ""


@value
class Classifier:
    """A sequence classifier, decoder or encoder (`...ForSequenceClassification`): one score a text."""

    kind: Literal["classifier"] = "classifier"
    label: int | str | None = None
    """Which of several labels is the score, by index or name; null: the model has one label."""


@value
class TokenClassifier:
    """A linear head over every token (`...ForTokenClassification`), read at the text's last one: an ORM that predicts
    correctness at every token (Cobbe et al. 2021, arXiv:2110.14168)."""

    kind: Literal["token_classifier"] = "token_classifier"
    label: int | str | None = None
    """Which of several labels is the score, by index or name; null: the model has one label."""


@value
class NextToken:
    """A causal LM that says a good or a bad token behind the text (Math-Shepherd, arXiv:2312.08935): the probability
    of the one against the other."""

    kind: Literal["next_token"] = "next_token"
    good: str = "+"
    """One token of the model's vocabulary."""
    bad: str = "-"
    """Another one."""

    def __post_init__(self) -> None:
        if self.good == self.bad:
            raise ValueError(f"good and bad are both {self.good!r}: name two tokens.")


@value
class ChatInput:
    """Question and completion as a user's and an assistant's message in the model's own chat template."""

    kind: Literal["chat"] = "chat"
    system: str | None = None
    """A system message before a question that has none."""


@value
class PairInput:
    """Question and completion as the two texts of a sentence pair, as encoders take them."""

    kind: Literal["pair"] = "pair"


@value
class TextInput:
    """Question and completion in a text of one's own, with the special tokens that the tokenizer puts around a text."""

    kind: Literal["text"] = "text"
    template: str = "{question}\n{completion}"
    """`{question}` and `{completion}` stand for the two; a special token that the template spells out is one."""

    def __post_init__(self) -> None:
        if self.template.count("{completion}") != 1:
            raise ValueError(f"template is {self.template!r}: it must hold {{completion}} once.")


Head = Classifier | TokenClassifier | NextToken
ModelInput = ChatInput | PairInput | TextInput


def label_names(config: Mapping[str, Any]) -> list[str]:
    """The labels of a classifier by their index, from its config.json."""
    names = config.get("id2label")
    if isinstance(names, Mapping):
        by_index = {int(index): str(name) for index, name in names.items()}
        return [by_index[index] for index in sorted(by_index)]
    # What transformers takes where a config says nothing.
    return [f"LABEL_{index}" for index in range(int(config.get("num_labels") or 2))]


def label_index(label: int | str | None, names: list[str]) -> int:
    """Which score a head's `label` means. Raises ValueError with the labels there are."""
    known = ", ".join(f"{index} ({name})" for index, name in enumerate(names))
    if label is None:
        if len(names) != 1:
            raise ValueError(f"is null, but the model has {len(names)} labels: name one of {known}.")
        return 0
    index = names.index(label) if isinstance(label, str) and label in names else label
    if not isinstance(index, int) or not 0 <= index < len(names):
        raise ValueError(f"is {label!r}, but the model's labels are {known}: name one of them.")
    return index


def room_in(config: Mapping[str, Any]) -> Room | None:
    """How long prompt and completion may be together, from a model's config.json; None where it does not say."""
    positions, switch = positions_in(config), _switch_in(config)
    if switch is not None and (positions is None or switch < positions):
        return Room(
            switch,
            f"{switch} positions before LongRoPE's long_factor takes over and changes the log-probs of all tokens",
            ", or give config.json the same numbers for both, so that every length is computed alike",
        )
    return None if positions is None else Room(positions, f"{positions} positions")


def positions_in(config: Mapping[str, Any]) -> int | None:
    """Tokens that a model takes at most, from its config.json; None where it does not say."""
    found = next((place[key] for place in _places(config) for key in _POSITIONS if place.get(key) is not None), None)
    if not isinstance(found, int):
        return None
    padding = config.get("pad_token_id")
    if config.get("model_type") in _OFFSET_POSITIONS:
        return found - 1 - (padding if isinstance(padding, int) else 1)
    return found


def _switch_in(config: Mapping[str, Any]) -> int | None:
    """The length behind which LongRoPE computes a whole sequence by other factors. Sampling passes it in the middle of
    a row whose first keys are computed already, and the longest row of a batch takes the others with it."""
    for place in _places(config):
        scaling: Any = place.get("rope_parameters") or place.get("rope_scaling")
        if not isinstance(scaling, Mapping):
            continue
        factors = cast("Mapping[str, Any]", scaling)
        short, long = factors.get("short_factor"), factors.get("long_factor")
        found = place.get("original_max_position_embeddings") or factors.get("original_max_position_embeddings")
        if short is not None and long is not None and short != long and isinstance(found, int):
            return found
    return None


def _places(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where config.json may speak of the causal LM: at its top, and apart where the model takes images too."""
    inner = config.get("text_config")
    return [config, *([cast("Mapping[str, Any]", inner)] if isinstance(inner, Mapping) else [])]
