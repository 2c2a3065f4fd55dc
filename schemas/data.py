"""Where a run's rows come from, as sections of the run config: files, Hugging Face datasets, made ones, mixtures."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from papo.chains import ChainTask
from papo.drawing import LONGEST_ROUND, whole_weights
from papo.engines.settings import PromptFormat
from schemas.mappings import MappingName
from schemas.section import LATER, OPERATIONAL, Section


class Columns(Section):
    """Which column of the file or dataset holds what."""

    prompt: str = "prompt"
    """Text, or a list of chat messages {role, content}."""
    reference_answer: str = "answer"
    """Text, or a JSON number, which counts as it is spelled."""
    prompt_id: str | None = None
    """None: the row's number in the file."""


class RowsSource(Section):
    """What sources of rows have in common."""

    mapping: Annotated[MappingName | None, LATER] = None
    """A public data set whose columns are known by name (docs/data.md); null: as `columns` says."""
    columns: Columns = Columns()
    """Which column holds what."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "RowsSource":
        if self.mapping is not None and self.columns != Columns():
            raise ValueError(f"mapping {self.mapping} says which columns are read: leave columns out, or mapping.")
        return self


class FileSource(RowsSource):
    """Rows of a local JSONL or Parquet file."""

    kind: Literal["file"] = "file"
    path: Annotated[str, OPERATIONAL]
    """Where; what it holds enters keys as a hash."""
    skip: int = Field(default=0, ge=0)
    """Rows left out at the start of the file."""
    take: int | None = Field(default=None, ge=1)
    """Rows used after those; None: all that follow."""


class HuggingFaceSource(RowsSource):
    """Rows of a Hugging Face dataset; needs the extra `datasets`."""

    kind: Literal["huggingface"] = "huggingface"
    path: Annotated[str, OPERATIONAL]
    """A local folder (of save_to_disk, or with data files), else a name on the hub (owner/name). What it holds enters
    keys as a hash, and so do the rows that the next three fields choose."""
    subset: Annotated[str | None, OPERATIONAL] = None
    """The dataset's configuration, where it has several."""
    split: Annotated[str, OPERATIONAL] = "train"
    """Which split of it."""
    revision: Annotated[str | None, OPERATIONAL] = None
    """Branch, tag or commit on the hub; null: its default branch. A commit is the one that stays what it is."""
    skip: int = Field(default=0, ge=0)
    """Rows left out at the start of the split."""
    take: int | None = Field(default=None, ge=1)
    """Rows used after those; null: all that follow."""


class ChainsSource(Section):
    """Digit chains made locally (`papo.chains`)."""

    kind: Literal["chains"] = "chains"
    task: ChainTask = ChainTask()
    """Which problems."""
    count: int = Field(default=4096, ge=1)
    """How many."""
    split: Literal["train", "heldout"] = "train"
    """The two never share a problem."""
    seed: int = 0
    """Of the problems; apart from the run's seed, so that runs of several seeds see the same data."""


class ReasoningGymSource(Section):
    """Problems made by the library reasoning-gym; needs the extra `reasoning-gym`, and the reward of that name."""

    kind: Literal["reasoning_gym"] = "reasoning_gym"
    task: str
    """Which of the library's tasks (countdown, simple_equations, …)."""
    settings: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """The task's own settings, by name."""
    count: int = Field(default=4096, ge=1)
    """How many problems; no two have the same question."""
    split: Literal["train", "heldout"] = "train"
    """The two never share a question."""
    seed: int = 0
    """Of the problems; apart from the run's seed, so that runs of several seeds see the same data."""


MadeSource = ChainsSource | ReasoningGymSource
PlainSource = Annotated[FileSource | ChainsSource | ReasoningGymSource | HuggingFaceSource, Field(discriminator="kind")]


class Member(Section):
    """One source of a mixture."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    """Stands on each of its rows, before their prompt_id and in the metrics."""
    weight: float = Field(default=1.0, gt=0.0)
    """Share of the draws, relative to the other sources'. Evaluation uses every row once and no weight."""
    source: PlainSource
    """Its rows."""


class MixtureSource(Section):
    """Several sources. Any number of draws has each source's share, exact to less than one draw; within its share a
    source is drawn from by epochs of its own (docs/data.md)."""

    kind: Literal["mixture"] = "mixture"
    sources: tuple[Member, ...] = Field(min_length=1)
    """Which."""

    @property
    def weights(self) -> tuple[int, ...]:
        """The smallest whole numbers in the ratio of the weights."""
        return whole_weights([member.weight for member in self.sources])

    @model_validator(mode="after")
    def _fits(self) -> "MixtureSource":
        names = [member.name for member in self.sources]
        if len(set(names)) < len(names):
            raise ValueError(f"two sources have one name ({', '.join(names)}): give each its own.")
        if sum(self.weights) > LONGEST_ROUND:
            raise ValueError(
                f"the weights are in the ratio {':'.join(map(str, self.weights))}, which comes out only after"
                f" {sum(self.weights)} draws: round them to a ratio of {LONGEST_ROUND} or less, such as 0.3 and 0.7."
            )
        return self


DataSource = Annotated[
    FileSource | ChainsSource | ReasoningGymSource | HuggingFaceSource | MixtureSource, Field(discriminator="kind")
]


class DataConfig(Section):
    train: DataSource
    """Rows that iterations draw from."""
    evaluation: DataSource | None = None
    """Held-out rows, all used at each evaluation; null: no evaluation."""
    prompt: PromptFormat = PromptFormat()
    """How a row becomes the policy's prompt."""
    shuffle: bool = True
    """A new order each epoch, addressed by (seed, source, epoch); false: the source's order."""
    overlong_prompts: Literal["fail", "drop"] = "fail"
    """What preparation does with prompts above `sampling.max_prompt_length` tokens after the template."""


def plain_sources(data: DataConfig) -> list[tuple[tuple[str | int, ...], PlainSource]]:
    """Every source that has rows of its own, with its place in the config."""
    found: list[tuple[tuple[str | int, ...], PlainSource]] = []
    for split, source in (("train", data.train), ("evaluation", data.evaluation)):
        if isinstance(source, MixtureSource):
            places = enumerate(source.sources)
            found += [(("data", split, "sources", index, "source"), member.source) for index, member in places]
        elif source is not None:
            found.append((("data", split), source))
    return found
