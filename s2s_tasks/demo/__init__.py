"""Small real models for the demo and the tests.

`SPEECH_DEMO` is the checkpoint of a small speech LLM of our own. `weights.model_folder` makes
ordinary Hugging Face folders of public weights that ride in Python packages. With a model hub at
hand the packages are not needed.
"""

from __future__ import annotations

from pathlib import Path

SPEECH_DEMO = Path(__file__).parent / "speech-demo"
"""Folder of the demo speech LLM's checkpoint; speech_demo/ in the repository trains it."""
