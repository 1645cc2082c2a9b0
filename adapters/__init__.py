"""Adapters: one file a model family, behind the contract in `contract.py`."""
