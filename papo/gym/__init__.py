"""Problems of the library reasoning-gym (an optional extra), and its scorers behind walls.

The library is never imported by papo's own processes: problems are made, and answers scored, in children of a fixed
hash seed. Some of its scorers evaluate the answer as Python; `papo.gym.guards` takes that away from them.
"""

from papo.gym.problems import GymProblem, make_problems
from papo.gym.references import GymReference, read_reference

__all__ = ["GymProblem", "GymReference", "make_problems", "read_reference"]
