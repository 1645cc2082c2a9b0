"""The checkpoints of one training run through lm-eval, one after the other."""
