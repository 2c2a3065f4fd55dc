"""Reading an answer as mathematics and deciding whether it is the reference, in processes that can be killed.

    extraction → the text a completion commits to       pool, worker → killable processes with limits
    cleaning, tokens, parsing → an expression tree       judging → one pair, here or in a worker
    reading, texts → what kind of answer it is           equality → the same, by kind
    exact, numeric, engines → whether two expressions are equal
    points, critical → at which points they are compared

No text is ever evaluated as a program; trees are built by a parser of our own with limits on length, depth and size.
"""
