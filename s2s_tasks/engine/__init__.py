"""The engine: requests in, scores out, batch by batch.

`plan` groups requests by what they share, `rendering` makes prompts ready, `ahead` of time and in
other threads, `batches` keeps within memory, `run` asks the adapter for scores and `generation` for
replies, `work` counts what was computed, `self_test` decides how far the adapter may be trusted,
`answers` guards what lm-eval keeps between runs.
"""
