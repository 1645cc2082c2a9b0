"""Granite Speech's features without torchaudio, which transformers' own extractor needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import transformers
from transformers import SequenceFeatureExtractor
from transformers.audio_utils import mel_filter_bank

from s2s_tasks.audio import Waveform


class GraniteSpeechFeatures(SequenceFeatureExtractor):
    """What `GraniteSpeechFeatureExtractor` computes: pairs of log-mel frames.

    The mel spectrogram is that of `torchaudio.transforms.MelSpectrogram` with its defaults: power,
    HTK filters without normalisation, reflected at the ends.
    """

    model_input_names: tuple[str, ...] = ("input_features",)

    def __init__(
        self,
        melspec_kwargs: Mapping[str, int],
        sampling_rate: int = 16000,
        projector_window_size: int = 15,
        projector_downsample_rate: int = 5,
        **options: Any,
    ) -> None:
        """Take the settings in a checkpoint's `preprocessor_config.json`."""
        options = {"padding_value": 0.0} | options | {"feature_size": melspec_kwargs["n_mels"]}
        super().__init__(sampling_rate=sampling_rate, **options)
        self.melspec_kwargs = dict(melspec_kwargs)
        self.projector_window_size = projector_window_size
        self.projector_downsample_rate = projector_downsample_rate

    def __call__(
        self, audios: Sequence[Waveform] | Waveform, device: str = "cpu"
    ) -> dict[str, torch.Tensor]:
        """Return features of recordings [frames] each, the shorter ones padded with silence.

        Returns:
            `input_features` [recordings, pairs of frames, 2 x mel bins], `audio_embed_sizes`
            [recordings], and as `input_features_mask` which positions are heard.
        """
        waveforms = [torch.as_tensor(audio, device=device) for audio in audios]
        sizes = torch.tensor([self._positions(len(waveform)) for waveform in waveforms])
        padded = torch.nn.utils.rnn.pad_sequence(waveforms, batch_first=True)
        return {
            "input_features": self._pairs(padded),
            "audio_embed_sizes": sizes,
            "input_features_mask": torch.arange(int(sizes.max())) < sizes[:, None],
        }

    def _positions(self, frames: int) -> int:
        """Return how many positions the projector makes: a few for each window begun."""
        pairs = (frames // self.melspec_kwargs["hop_length"] + 1) // 2
        window = self.projector_window_size
        return math.ceil(pairs / window) * (window // self.projector_downsample_rate)

    def _pairs(self, waveforms: torch.Tensor) -> torch.Tensor:
        settings = self.melspec_kwargs
        n_fft, bins, rate = settings["n_fft"], settings["n_mels"], settings["sample_rate"]
        spectrum = torch.stft(
            waveforms.float(),
            n_fft,
            hop_length=settings["hop_length"],
            win_length=settings["win_length"],
            window=torch.hann_window(settings["win_length"], device=waveforms.device),
            return_complex=True,
        )
        filters = mel_filter_bank(n_fft // 2 + 1, bins, 0.0, rate / 2, rate, mel_scale="htk")
        mel = torch.as_tensor(filters.T, dtype=torch.float32) @ spectrum.abs().square()
        logs = mel.transpose(1, 2).clamp(min=1e-10).log10()
        logs = torch.maximum(logs, logs.amax(dim=(1, 2), keepdim=True) - 8.0) / 4 + 1
        even = logs[:, : logs.shape[1] // 2 * 2]
        return even.reshape(len(even), -1, 2 * bins)


def load_processor(pretrained: str, model_type: str, source: Mapping[str, Any]) -> Any:
    """Load transformers' processor of Granite Speech with these features."""
    del model_type
    settings, _ = GraniteSpeechFeatures.get_feature_extractor_dict(pretrained, **source)
    words = transformers.AutoTokenizer.from_pretrained(pretrained, **source)
    return transformers.GraniteSpeechProcessor(GraniteSpeechFeatures(**settings), words)
