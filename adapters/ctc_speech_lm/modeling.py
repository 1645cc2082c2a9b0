"""`CTCSpeechLM`: the three parts put together."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from transformers import AutoModelForCausalLM, WhisperModel
from transformers.utils import cached_file

from s2s_tasks.adapters.ctc_speech_lm.configuration import CTCSpeechLMConfig
from s2s_tasks.adapters.ctc_speech_lm.parts import load_part
from s2s_tasks.adapters.ctc_speech_lm.projector import CTCProjector, collapse
from s2s_tasks.adapters.whole import load_whole
from s2s_tasks.demo.weights import packages_or_hub

WEIGHTS = "model.safetensors"


class CTCSpeechLM(nn.Module):
    """A frozen Whisper encoder, a trained CTC projector, a frozen causal LM.

    A checkpoint holds the projector alone, and names the frozen parts in its configuration.
    """

    audio_encoder: Any
    language_model: Any
    identity: str = "untrained"
    """The checkpoint's checksum, and where the frozen parts came from."""

    def __init__(self, config: CTCSpeechLMConfig, audio_encoder: Any, language_model: Any) -> None:
        """Put the parts together; the projector's weights are drawn at random."""
        super().__init__()
        self.config = config
        self.audio_encoder = audio_encoder.requires_grad_(False)
        self.language_model = language_model.requires_grad_(False)
        config.audio_config = self.audio_encoder.config
        config.text_config = self.language_model.config
        embeddings = self.language_model.get_input_embeddings().weight
        self.projector = CTCProjector(config, config.audio_config.d_model, embeddings.shape[1])

    @classmethod
    def from_pretrained(
        cls,
        pretrained: str | Path,
        *,
        dtype: torch.dtype | str = "auto",
        attn_implementation: str | None = None,
        revision: str | None = None,
        **_: Any,
    ) -> CTCSpeechLM:
        """Load a checkpoint, and the frozen parts that its configuration names.

        The projector computes in float32 whatever `dtype` says: it is small, and its decisions
        are hard ones.
        """
        config = CTCSpeechLMConfig.from_pretrained(pretrained, revision=revision)
        options = {"dtype": dtype, "attn_implementation": attn_implementation}
        text = load_part(partial(load_whole, AutoModelForCausalLM), config.text_model_id, **options)
        options["dtype"] = text.dtype
        audio = load_part(partial(load_whole, WhisperModel), config.audio_model_id, **options)
        weights = cached_file(pretrained, WEIGHTS, revision=revision)
        try:
            model = cls(config, audio.encoder, text)
            model.projector.load_state_dict(load_file(weights))
            if int(model.projector.vocabulary.max()) >= text.config.vocab_size:
                raise ValueError(f"it hears tokens that {config.text_model_id} does not have")
        # Sizes that make no projector fail in torch, each in its own way.
        except (SafetensorError, RuntimeError, ValueError, TypeError, AssertionError) as error:
            raise OSError(
                f"{weights} is not the projector that config.json describes: {error}\n"
                "Fetch the checkpoint again; if it comes with s2s-tasks, install that again."
            ) from error
        whole = Path(weights).read_bytes() + repr(config.own()).encode()
        digest = hashlib.sha256(whole).hexdigest()[:8]
        parts = (packages_or_hub(config.audio_model_id), packages_or_hub(config.text_model_id))
        model.identity = "+".join([digest, *(Path(part).name for part in parts)])
        return model.eval()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the configuration, and the projector in float16."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        CTCSpeechLMConfig(**self.config.own()).save_pretrained(folder)
        weights = {
            name: weight.half() if weight.is_floating_point() else weight
            for name, weight in self.projector.state_dict().items()
        }
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    @property
    def dtype(self) -> torch.dtype:
        """Of the LM."""
        return cast(torch.dtype, self.language_model.dtype)

    def get_input_embeddings(self) -> nn.Module:
        """Return the LM's: token ids go in there."""
        return cast(nn.Module, self.language_model.get_input_embeddings())

    def get_output_embeddings(self) -> nn.Module:
        """Return the layer that makes logits."""
        return cast(nn.Module, self.language_model.get_output_embeddings())

    @torch.inference_mode()
    def embed_audio(
        self, input_features: torch.Tensor, feature_lengths: torch.Tensor
    ) -> list[torch.Tensor]:
        """Return each recording's soft tokens [tokens heard, width], at their places in time.

        Args:
            input_features: log-mel spectrograms at 100 Hz: [recordings, mel bins, frames].
            feature_lengths: frames of each: [recordings].
        """
        embeddings = self.heard_embeddings()
        tokens = []
        for spectrogram, frames in zip(input_features, feature_lengths.tolist(), strict=True):
            hidden = self.encode_audio(spectrogram[:, :frames]).float()[None]
            lengths = torch.tensor([hidden.shape[1]], device=hidden.device)
            log_probabilities, _ = self.projector(hidden, lengths, embeddings)
            tokens.append(collapse(log_probabilities[0]) @ embeddings)
        return tokens

    def encode_audio(self, spectrogram: torch.Tensor) -> torch.Tensor:
        """Run the encoder on one recording; see `encode`."""
        return encode(self.audio_encoder, spectrogram)

    def heard_embeddings(self) -> torch.Tensor:
        """Return the LM's embeddings of the tokens that can be heard, in float32: [V, width]."""
        return cast(torch.Tensor, self.get_input_embeddings()(self.projector.vocabulary).float())

    def forward(
        self,
        input_ids: torch.Tensor,
        *,
        audio_embeds: torch.Tensor | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **inputs: Any,
    ) -> Any:
        """Run the LM on text and soft tokens.

        Args:
            input_ids: token ids, `config.audio_token_id` where soft tokens go: [rows, positions].
            audio_embeds: the soft tokens of all rows, row by row: [all their positions, width].
            logits_to_keep: as transformers' models take it.
            **inputs: the LM's own: `attention_mask`, `position_ids`, `past_key_values` …
        """
        return self.language_model(
            inputs_embeds=self._embed(input_ids, audio_embeds),
            logits_to_keep=logits_to_keep,
            **inputs,
        )

    @torch.inference_mode()
    def generate(
        self, input_ids: torch.Tensor, *, audio_embeds: torch.Tensor | None = None, **options: Any
    ) -> torch.Tensor:
        """Continue text and soft tokens; returns `input_ids` with the new ones behind."""
        new = self.language_model.generate(
            inputs_embeds=self._embed(input_ids, audio_embeds), **options
        )
        return torch.cat([input_ids, new], dim=1)

    def _embed(self, input_ids: torch.Tensor, audio_embeds: torch.Tensor | None) -> torch.Tensor:
        heard = input_ids == self.config.audio_token_id
        embedded = cast(torch.Tensor, self.get_input_embeddings()(input_ids.masked_fill(heard, 0)))
        if audio_embeds is None:
            return embedded
        return embedded.masked_scatter(heard[..., None], audio_embeds.to(embedded.dtype))


def encode(encoder: Any, spectrogram: torch.Tensor) -> torch.Tensor:
    """Run a Whisper encoder on a recording as long as it is, not padded to 30 s.

    `WhisperEncoder.forward` refuses anything but 30 s; its layers don't need it. Ultravox
    (ModifiedWhisperEncoder) does the same.

    Args:
        encoder: transformers' `WhisperEncoder`.
        spectrogram: [mel bins, frames at 100 Hz], at most 30 s.

    Returns:
        [frames at 50 Hz, width].
    """
    hidden = functional.gelu(encoder.conv1(spectrogram[None].to(encoder.dtype)))
    hidden = functional.gelu(encoder.conv2(hidden)).transpose(1, 2)
    hidden = hidden + encoder.embed_positions.weight[: hidden.shape[1]]
    for layer in encoder.layers:
        output = layer(hidden, None)
        hidden = output[0] if isinstance(output, tuple) else output  # before transformers 5.4
    return cast(torch.Tensor, encoder.layer_norm(hidden)[0])
