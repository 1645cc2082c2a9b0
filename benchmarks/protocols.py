"""Ways to score the same requests: the published one, the lower limit, and the baselines' rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.questions import Question

MARKUP = "<|audio_bos|><|AUDIO|><|audio_eos|>"


@torch.inference_mode()
def published(model: Any, processor: Any, questions: Sequence[Question]) -> list[list[float]]:
    """Score as the published script does (undobug/S2SBench, s2t_infer_ppl.py).

    Batch 1, a forward for each ending, the recording read, transformed and encoded for each.
    Returns the log-probabilities of each ending's tokens.
    """
    scores = []
    for question in questions:
        for ending in question.endings:
            inputs = processor(
                text=question.prefix + MARKUP + ending,
                audio=question.audio.load(processor.feature_extractor.sampling_rate),
                sampling_rate=processor.feature_extractor.sampling_rate,
                return_tensors="pt",
            )
            targets = processor.tokenizer(ending, return_tensors="pt").input_ids[0]
            logits = model(**inputs).logits[0]
            logprobs = logits[-len(targets) - 1 : -1].float().log_softmax(-1)
            scores.append(logprobs.gather(1, targets[:, None])[:, 0].tolist())
    return scores


class LowerLimit:
    """Forwards over each recording once and each token once: no score can be had for less.

    A question is one row: its context, then the tokens of all its endings behind one another.
    Features and tokens are ready, nothing is padded that need not be, and the output layer sees
    the positions that predict a token, no others.
    """

    def __init__(
        self, model: Any, tokenizer: Any, processor: Any | None, questions: Sequence[Question]
    ) -> None:
        """Prepare the rows; with a processor the contexts are spoken."""
        self.model = model
        self._spoken = processor is not None
        self._rows = [
            self._spoken_row(processor, question)
            if processor is not None
            else (torch.tensor(tokenizer(question.text).input_ids), {})
            for question in questions
        ]
        self._endings = [
            [torch.tensor(tokenizer(ending).input_ids) for ending in question.endings]
            for question in questions
        ]

    @torch.inference_mode()
    def __call__(self, batch_size: int) -> None:
        """Run the forwards."""
        for start in range(0, len(self._rows), batch_size):
            rows = self._rows[start : start + batch_size]
            endings = self._endings[start : start + batch_size]
            whole = [
                torch.cat([ids, *(ending[:-1] for ending in several)])
                for (ids, _), several in zip(rows, endings, strict=True)
            ]
            batch = pad_sequence(whole, batch_first=True)
            lengths = torch.tensor([len(row) for row in whole])
            mask = (torch.arange(batch.shape[1]) < lengths[:, None]).long()
            features = {name: torch.cat([made[name] for _, made in rows]) for name in rows[0][1]}
            hidden = self.model.model(
                input_ids=batch, attention_mask=mask, use_cache=False, **features
            ).last_hidden_state
            predicting = [
                hidden[row, len(ids) - 1 : len(line)]
                for row, ((ids, _), line) in enumerate(zip(rows, whole, strict=True))
            ]
            self.model.lm_head(torch.cat(predicting)).float().log_softmax(-1)

    @property
    def unique_tokens(self) -> int:
        """Positions that have to be read."""
        return sum(
            len(ids) + sum(len(ending) - 1 for ending in several)
            for (ids, _), several in zip(self._rows, self._endings, strict=True)
        )

    @property
    def repeated_tokens(self) -> int:
        """Positions that a forward for each ending reads."""
        return sum(
            len(ids) + len(ending) - 1
            for (ids, _), several in zip(self._rows, self._endings, strict=True)
            for ending in several
        )

    def _spoken_row(self, processor: Any, question: Question) -> tuple[torch.Tensor, dict]:
        rate = processor.feature_extractor.sampling_rate
        inputs = processor(
            text=question.prefix + MARKUP,
            audio=question.audio.load(rate),
            sampling_rate=rate,
            return_tensors="pt",
        )
        ids = inputs.pop("input_ids")[0]
        inputs.pop("attention_mask")
        return ids, dict(inputs)
