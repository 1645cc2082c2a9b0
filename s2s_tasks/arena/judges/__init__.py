"""Judges of battles behind one contract: see `contract.Judge`."""
