"""The names of torch shapes. Torch stays unimported: it comes in with the tensors that a caller passes."""

from typing import TYPE_CHECKING, Any

from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

Tokens = Float[Tensor, "rollouts tokens"]
TokenMask = Bool[Tensor, "rollouts tokens"]
Rows = Float[Tensor, " rollouts"]
Scalar = Float[Tensor, ""]

__all__ = ["Rows", "Scalar", "Tensor", "TokenMask", "Tokens"]
