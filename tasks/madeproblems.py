"""Problems that papo makes itself: digit chains, and those of reasoning-gym."""

from papo.errors import DataError
from papo.gym import make_problems
from schemas.data import ChainsSource, MadeSource


def made_problems(source: MadeSource, where: str) -> list[tuple[str, bool, str]]:
    """prompt, is_messages and reference_answer of each. Raises DataError where they cannot be made."""
    try:
        if isinstance(source, ChainsSource):
            found = source.task.problems(source.seed, source.count, source.split)
            return [(problem.prompt, False, problem.reference_answer) for problem in found]
        made = make_problems(source.task, source.settings, seed=source.seed, count=source.count, split=source.split)
        return [(problem.prompt, False, problem.reference_answer) for problem in made]
    except ValueError as error:
        smaller = " Use a smaller count, or more steps." if isinstance(source, ChainsSource) else ""
        raise DataError(f"{where} cannot be made: {error}{smaller}") from None
