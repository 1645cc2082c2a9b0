"""A speech LLM of three parts: Whisper encoder, CTC projector, causal LM; both ends are frozen.

The projector hears tokens of the LM's own vocabulary and hands them over as *soft tokens*:
mixtures of the LM's input embeddings, weighted by how likely each token is (LegoSLM, arXiv
2505.11352). There is no transcript in between, and no second pass.

Importing this makes transformers' `AutoConfig` and `AutoProcessor` know the checkpoints.
"""

from __future__ import annotations

import transformers

from s2s_tasks.adapters.ctc_speech_lm.configuration import CTCSpeechLMConfig
from s2s_tasks.adapters.ctc_speech_lm.modeling import CTCSpeechLM
from s2s_tasks.adapters.ctc_speech_lm.processing import CTCSpeechLMProcessor

__all__ = ["CTCSpeechLM", "CTCSpeechLMConfig", "CTCSpeechLMProcessor"]

transformers.AutoConfig.register(CTCSpeechLMConfig.model_type, CTCSpeechLMConfig, exist_ok=True)
transformers.AutoProcessor.register(CTCSpeechLMConfig, CTCSpeechLMProcessor, exist_ok=True)
