"""The engine: requests in, scores out, batch by batch."""
