"""Which errors say that an accelerator's memory ran out; no torch is needed to ask."""

_LIBRARIES = (
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
)
"""Of CUDA's libraries, which allocate past torch's allocator and whose errors torch passes on as RuntimeError."""


def ran_out(error: BaseException) -> bool:
    """Whether `error` is one of them."""
    # By its name, as whoever asks may be the process that has not imported torch.
    if type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _LIBRARIES)
