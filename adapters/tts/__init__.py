"""Texts spoken: engines behind one contract, and which of them a `tts=` names."""
