"""What makes a function a stage: a name and a declared version, which enter the key of all that it makes.

A stage is load, call, save. It is a plain function of a run and references; flows wrap it as a Prefect task, and the
store, not Prefect, decides whether its work is done already. Bump the version when its output changes for equal inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Generic, ParamSpec, TypeVar

from tasks.run import Run

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Stage(Generic[P, R]):
    name: str
    version: int
    body: Callable[Concatenate[Run, P], R]

    def __call__(self, run: Run, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.body(run, *args, **kwargs)


def stage(*, version: int) -> Callable[[Callable[Concatenate[Run, P], R]], Stage[P, R]]:
    """Name a function as a stage, by its own name."""

    def wrap(body: Callable[Concatenate[Run, P], R]) -> Stage[P, R]:
        return Stage(name=body.__name__, version=version, body=body)

    return wrap
