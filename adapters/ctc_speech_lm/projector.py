"""`CTCProjector`: the trained part, which hears LM tokens in Whisper's features."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from s2s_tasks.adapters.ctc_speech_lm.configuration import CTCSpeechLMConfig

BLANK = 0
"""Output that stands for "no new token" (Graves et al. 2006); output i > 0 is token i - 1."""
KERNEL = 5
DROPOUT = 0.1


class CTCProjector(nn.Module):
    """Two strided convolutions, a small transformer, and likeness to the LM's token embeddings.

    It looks 12.5 times a second. The output layer is the LM's own (normalised) embedding matrix, so
    the projector only learns to point at places in the LM's input space.
    """

    vocabulary: torch.Tensor
    """LM token id of each token that can be heard: [V]."""

    def __init__(self, config: CTCSpeechLMConfig, audio_width: int, text_width: int) -> None:
        super().__init__()
        width = config.projector_hidden_size
        self.norm = nn.LayerNorm(audio_width)
        self.conv1 = nn.Conv1d(audio_width, width, KERNEL, stride=2, padding=KERNEL // 2)
        self.conv2 = nn.Conv1d(width, width, KERNEL, stride=2, padding=KERNEL // 2)
        layer = nn.TransformerEncoderLayer(
            width,
            config.projector_heads,
            config.projector_intermediate_size,
            DROPOUT,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.TransformerEncoder(
            layer, config.projector_layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.dropout = nn.Dropout(DROPOUT)
        self.to_text = nn.Linear(width, text_width)
        self.blank = nn.Linear(width, 1)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))
        self.register_buffer("vocabulary", torch.zeros(config.vocabulary_size, dtype=torch.long))

    def forward(
        self, hidden: torch.Tensor, lengths: torch.Tensor, embeddings: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities of blank and tokens.

        Args:
            hidden: the encoder's features at 50 Hz, zeros behind each length:
                [recordings, frames, audio width].
            lengths: frames of each recording: [recordings].
            embeddings: the LM's rows of the vocabulary: [V, text width].

        Returns:
            Log-probabilities [recordings, frames / 4, 1 + V], and how many frames of each count.
        """
        hidden = self.norm(hidden)
        hidden = hidden * _inside(lengths, hidden.shape[1])[..., None]
        hidden = self.dropout(functional.gelu(self.conv1(hidden.transpose(1, 2))))
        lengths = _halved(lengths)
        # The next convolution must find zeros behind the end, as it does in a recording alone.
        hidden = hidden * _inside(lengths, hidden.shape[2])[:, None]
        hidden = functional.gelu(self.conv2(hidden)).transpose(1, 2)
        lengths = _halved(lengths)
        outside = ~_inside(lengths, hidden.shape[1])
        hidden = self.layers(hidden, src_key_padding_mask=outside if outside.any() else None)
        likeness = self.to_text(hidden) @ functional.normalize(embeddings, dim=-1).T
        scores = torch.cat([self.blank(hidden), likeness + self.bias], dim=-1)
        return scores.float().log_softmax(-1), lengths


def collapse(log_probabilities: torch.Tensor) -> torch.Tensor:
    """Return which tokens were heard, each as a distribution over the vocabulary.

    The best path is collapsed as CTC says: neighbours that agree are one token, blanks are
    dropped. A token's distribution is the mean over its frames, blank excluded, renormalised.

    Args:
        log_probabilities: one recording's output, natural logarithms: [frames, 1 + V].

    Returns:
        Probabilities [tokens heard, V]; no row at all where only blanks were heard.
    """
    path = log_probabilities.argmax(-1)
    spoken = path != BLANK
    before = torch.cat([path.new_full((1,), BLANK), path[:-1]])
    opens = spoken & (path != before)
    token = opens.cumsum(0)[spoken] - 1
    weights = log_probabilities.new_zeros(int(opens.sum()), log_probabilities.shape[1] - 1)
    weights.index_add_(0, token, log_probabilities[spoken][:, BLANK + 1 :].exp())
    return weights / weights.sum(-1, keepdim=True)


def _inside(lengths: torch.Tensor, longest: int) -> torch.Tensor:
    return torch.arange(longest, device=lengths.device) < lengths[:, None]


def _halved(lengths: torch.Tensor) -> torch.Tensor:
    return (lengths + 1) // 2
