"""What runs inside vLLM's own environment. Its folder is put on PYTHONPATH there: nothing here imports papo."""
