"""`GapTask`: every question asked twice, written and spoken, with the same words around it."""

from __future__ import annotations

from typing import Any

from lm_eval.api.instance import Instance

from s2s_tasks.prompt import placeholder
from s2s_tasks.tasks.choice import ChoiceTask


class GapTask(ChoiceTask):
    """Ask for the endings after the written context, then after the spoken one.

    The written prompt is the spoken one with the context's text in place of its recording, so that
    nothing but the modality differs. With `text_alone` among `dataset_kwargs` it is that text and
    nothing else, as in the published comparison.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Build the task from its YAML configuration."""
        self._spoken = True
        super().__init__(config)

    @property
    def spoken(self) -> bool:
        """Whether the question being built is a spoken one."""
        return self._spoken

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """Return the prompt of a question, or of an example before it, in the mode being built."""
        text = super().doc_to_text(doc, doc_to_text)
        if self._spoken:
            return text
        if self.config.dataset_kwargs.get("text_alone"):
            return doc["context"]
        return text.replace(placeholder(0), doc["context"])

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, **kwargs: Any) -> Any:
        """Build both contexts: written, spoken. The examples are the same, in the same mode."""
        contexts = []
        drawn = self.sampler.rnd.getstate() if num_fewshot else None
        for self._spoken in (False, True):
            if drawn:
                self.sampler.rnd.setstate(drawn)
            contexts.append(super().fewshot_context(doc, num_fewshot, **kwargs))
        return contexts

    def construct_requests(
        self, doc: dict[str, Any], ctx: str | list[str], **kwargs: Any
    ) -> list[Instance]:
        """Build a request an ending and mode, those of the written context first."""
        requests: list[Instance] = []
        for self._spoken, context in zip((False, True), ctx, strict=True):
            for request in super().construct_requests(doc, context, **kwargs):
                request.idx = len(requests)
                if not self._spoken:
                    request.arguments = request.arguments[:2]
                requests.append(request)
        return requests
