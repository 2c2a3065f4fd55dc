"""DAPO's soft overlong punishment (arXiv:2503.14476 eq. 13): close to the token limit the reward falls."""


def overlong_penalty(
    length: int, *, max_completion_length: int, overlong_buffer_len: int, overlong_penalty_factor: float = 1.0
) -> float:
    """What is added to the outcome reward, within [−overlong_penalty_factor, 0].

    0 up to max_completion_length − overlong_buffer_len tokens, then falling in a straight line to −factor at
    max_completion_length, and −factor beyond. A buffer of 0 only punishes what is longer than allowed. Correctness
    stays apart: the accuracy of a row is not shaped.
    """
    if length > max_completion_length:
        return -overlong_penalty_factor
    free = max_completion_length - overlong_buffer_len
    if length <= free:
        return 0.0
    return overlong_penalty_factor * (free - length) / overlong_buffer_len
