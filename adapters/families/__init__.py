"""What is particular to single models of transformers; `table.py` lists them all."""
