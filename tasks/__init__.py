"""Effects: one module for each stage of the DAG (load, call, save), the store, ledger and commits, and tracking."""
