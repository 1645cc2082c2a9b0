"""The model, as code for transformers 4 wrote it: see what `families.ultravox.load` mends."""

from __future__ import annotations

from typing import Any

import accelerate
import torch
import transformers
from torch import nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from .ultravox_config import UltravoxConfig


class MaskedEncoder(WhisperEncoder):
    """Whisper's, for as few frames as there are, deaf to padding."""

    def forward(self, input_features: Any, audio_len: Any = None) -> BaseModelOutput:
        hidden = nn.functional.gelu(self.conv1(input_features))
        hidden = nn.functional.gelu(self.conv2(hidden)).transpose(1, 2)
        hidden = hidden + self.embed_positions.weight[: hidden.shape[1]]
        heard = self._get_feat_extract_output_lengths(audio_len)
        mask = torch.arange(hidden.shape[1], device=hidden.device) < heard[:, None]
        mask = self.get_extended_attention_mask(mask, None, dtype=hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden, mask, layer_head_mask=None, output_attentions=False)[0]
        return BaseModelOutput(last_hidden_state=self.layer_norm(hidden))


class Projector(nn.Module):
    """Several frames to one position: a gated layer between two norms."""

    def __init__(self, config: UltravoxConfig) -> None:
        super().__init__()
        self.stack = config.stack_factor
        width = config.audio_config.hidden_size * self.stack
        self.ln_pre = LlamaRMSNorm(width, eps=1e-6)
        self.linear_1 = nn.Linear(width, config.hidden_size, bias=False)
        self.ln_mid = LlamaRMSNorm(config.hidden_size // 2, eps=1e-6)
        self.linear_2 = nn.Linear(
            config.hidden_size // 2, config.text_config.hidden_size, bias=False
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        rows, frames, width = hidden.shape
        hidden = nn.functional.pad(hidden, (0, 0, 0, -frames % self.stack))
        stacked = hidden.reshape(rows, -1, width * self.stack)
        value, gate = self.linear_1(self.ln_pre(stacked)).chunk(2, dim=-1)
        return self.linear_2(self.ln_mid(nn.functional.silu(gate) * value))


class UltravoxModel(transformers.LlamaPreTrainedModel, transformers.GenerationMixin):
    config_class = UltravoxConfig
    _keys_to_ignore_on_load_missing = ("audio_tower.*", "language_model.*")

    def __init__(self, config: UltravoxConfig) -> None:
        super().__init__(config)
        if transformers.modeling_utils._init_weights:
            raise NotImplementedError("this stand-in is always given its weights afterwards")
        with accelerate.init_empty_weights():
            self.audio_tower = MaskedEncoder(config.audio_config)
            self.language_model = transformers.AutoModelForCausalLM.from_config(config.text_config)
        self.multi_modal_projector = Projector(config)
        self.post_init()

    def tie_weights(self) -> None:
        self.language_model.tie_weights()

    def get_input_embeddings(self) -> Any:
        return self.language_model.get_input_embeddings()

    def get_output_embeddings(self) -> Any:
        return self.language_model.get_output_embeddings()

    def get_decoder(self) -> Any:
        return self.language_model.get_decoder()

    def forward(
        self,
        input_ids: torch.Tensor,
        audio_values: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        audio_token_start_idx: Any = None,
        audio_lens: Any = None,
        audio_token_len: Any = None,
        audio_batch_size: Any = None,
        **kwargs: Any,
    ) -> Any:
        if inputs_embeds is None:
            inputs_embeds = self.get_input_embeddings()(input_ids)
        if audio_values is not None:
            windows = (audio_values, audio_lens, audio_token_start_idx, audio_token_len)
            self._put_audio(inputs_embeds, *windows, audio_batch_size)
        return self.language_model.forward(
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            **kwargs,
        )

    def generate(
        self,
        input_ids: torch.Tensor,
        audio_values: torch.Tensor | None = None,
        audio_token_start_idx: Any = None,
        audio_lens: Any = None,
        audio_token_len: Any = None,
        audio_batch_size: Any = None,
        **kwargs: Any,
    ) -> torch.Tensor:
        embedded = self.get_input_embeddings()(input_ids)
        if audio_values is not None:
            windows = (audio_values, audio_lens, audio_token_start_idx, audio_token_len)
            self._put_audio(embedded, *windows, audio_batch_size)
        return self.language_model.generate(input_ids=input_ids, inputs_embeds=embedded, **kwargs)

    def _put_audio(
        self, embedded: Any, values: Any, lens: Any, starts: Any, counts: Any, windows: Any
    ) -> None:
        tower = self.audio_tower.forward(values.to(self.audio_tower.dtype), audio_len=lens)
        made = self.multi_modal_projector(tower.last_hidden_state.to(embedded.dtype))
        rows = torch.arange(len(windows)).repeat_interleave(windows.cpu())
        for row, start, count, window in zip(rows, starts, counts, made, strict=True):
            embedded[row, start : start + count] = window[:count]
