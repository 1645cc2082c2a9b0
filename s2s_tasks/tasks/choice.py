"""`ChoiceTask`: lm-eval's multiple choice, with a recording for each ending's context."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, cast

import datasets
from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask

from s2s_tasks import __version__
from s2s_tasks.audio import Audio
from s2s_tasks.data.rows import Row, digest
from s2s_tasks.data.sources import load_rows, mini_rows, topic_rows
from s2s_tasks.errors import S2STasksError
from s2s_tasks.prompt import placeholder

log = logging.getLogger(__name__)

_FEATURES = datasets.Features(
    {
        "id": datasets.Value("string"),
        "language": datasets.Value("string"),
        "subject": datasets.Value("string"),
        "pair_id": datasets.Value("string"),
        "source_ids": datasets.List(datasets.Value("string")),
        "context": datasets.Value("string"),
        "endings": datasets.List(datasets.Value("string")),
        "gold": datasets.Value("int64"),
        **{
            column: datasets.List(
                {
                    "path": datasets.Value("string"),
                    "sha256": datasets.Value("string"),
                    "sampling_rate": datasets.Value("int64"),
                    "frames": datasets.Value("int64"),
                    "channels": datasets.Value("int64"),
                    "cell": datasets.Value("string"),
                    "language": datasets.Value("string"),
                }
            )
            for column in ("context_audio", "ending_audio")
        },
    }
)


class ChoiceTask(ConfigurableTask):
    """Score every ending after its context; `dataset_kwargs` says which questions.

    - `set`: `sstorycloze`, `zh_sstorycloze` or `scmmlu`
    - `mini`: the questions embedded in the package instead of S2SBench's
    - `topic_endings`: take that many false endings from other stories
    - `data_dir`: where S2SBench lies; `--metadata '{"data_dir": …}'` and the environment
      variable `S2SBENCH_DATA` say it too
    - `by_subject`: report `pair_acc` for each subject as well
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Build the task from its YAML configuration."""
        self._asked: str | None = None
        self._example_audio: list[dict[str, Any]] = []
        super().__init__(config={key: value for key, value in config.items() if key != "class"})

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Load the questions; recordings stay where they are."""
        options = dict(dataset_kwargs or {})
        data_dir = (self.config.metadata or {}).get("data_dir", options.get("data_dir"))
        name = options["set"]
        rows = mini_rows(name) if options.get("mini") else load_rows(name, data_dir)
        if count := options.get("topic_endings"):
            rows = topic_rows(rows, count)
        if self.config.doc_to_audio:
            _require_speech(rows, self.config.task)
        self.config.metadata = (self.config.metadata or {}) | {
            "data_sha256": digest(rows),
            "s2s_tasks": __version__,
        }
        self.subjects = (
            sorted({row.subject for row in rows if row.subject})
            if options.get("by_subject")
            else []
        )
        self.dataset = {
            "test": datasets.Dataset.from_list([_to_doc(row) for row in rows], features=_FEATURES)
        }

    @property
    def spoken(self) -> bool:
        """Whether the question being built is a spoken one."""
        return bool(self.config.doc_to_audio)

    def build_all_requests(self, *, cache_requests: bool = False, **kwargs: Any) -> None:
        """Build the requests anew: lm-eval's cache of them does not know the data they are of."""
        if cache_requests:
            log.warning(
                "%s: --cache_requests is ignored, because lm-eval would return requests of "
                "another copy of the data",
                self.config.task,
            )
        super().build_all_requests(cache_requests=False, **kwargs)

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, **kwargs: Any) -> Any:
        """Build the context; in a spoken task the examples are spoken too."""
        self._asked, self._example_audio = doc["id"], []
        return super().fewshot_context(doc, num_fewshot, **kwargs)

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """Return a question's text; an example's recording is numbered after the question's own."""
        text = super().doc_to_text(doc, doc_to_text)
        if not self.spoken or doc["id"] == self._asked:
            return text
        heard = self.doc_to_audio(doc)
        self._example_audio.append(_handle(heard[doc["gold"] if len(heard) > 1 else 0]))
        return text.replace(placeholder(0), placeholder(len(self._example_audio)))

    def construct_requests(
        self, doc: dict[str, Any], ctx: str | list[str], **kwargs: Any
    ) -> list[Instance] | Instance:
        """Build one request an ending, each with the recordings that belong to it."""
        requests = super().construct_requests(doc, ctx, **kwargs)
        if self.spoken:
            # One object for all endings of a recording: there may be tens of thousands.
            media = [
                {"audio": [_handle(heard), *self._example_audio]}
                for heard in self.doc_to_audio(doc)
            ]
            for index, request in enumerate(requests):
                context, continuation, _ = request.arguments
                own = media[index if len(media) > 1 else 0]
                request.arguments = (context, continuation, own)
        return requests

    def apply_filters(self) -> list[Instance] | None:
        """Apply lm-eval's filters, once every answer is known to be a number.

        Raises:
            S2STasksError: when a score is NaN or infinite; every such question is named.
        """
        broken = {
            request.doc["id"]
            for request in self.instances
            if not math.isfinite(request.resps[0][0])
        }
        if broken:
            raise S2STasksError(
                f"{self.config.task}: the model's scores of {len(broken)} question(s) are not "
                f"finite numbers: {', '.join(sorted(broken)[:20])}"
                f"{' …' if len(broken) > 20 else ''}. "
                "Try dtype=float32 or bfloat16, and look at the weights."
            )
        return cast(list[Instance] | None, super().apply_filters())

    def aggregation(self) -> dict[str, Callable[..., float]]:
        """Average what is reported by subject, beside the YAML's metrics."""
        declared: dict[str, Callable[..., float]] = super().aggregation()
        return declared | {subject_metric(name): mean for name in self.subjects}

    def higher_is_better(self) -> dict[str, bool]:
        """Say the direction of what is reported by subject, beside the YAML's metrics."""
        declared: dict[str, bool] = super().higher_is_better()
        return declared | {subject_metric(name): True for name in self.subjects}


def _handle(heard: dict[str, Any]) -> dict[str, Any]:
    return Audio.from_json(heard).to_json()


def subject_metric(subject: str) -> str:
    """Return the name under which one subject's `pair_acc` is reported."""
    return f"pair_acc_{subject}"


def _to_doc(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "language": row.language,
        "subject": row.subject,
        "pair_id": row.pair_id,
        "source_ids": list(row.source_ids),
        "context": row.context,
        "endings": list(row.endings),
        "gold": row.gold,
        "context_audio": [asdict(replace(a, language=row.language)) for a in row.context_audio],
        "ending_audio": [asdict(replace(a, language=row.language)) for a in row.ending_audio],
    }


def _require_speech(rows: list[Row], task: str) -> None:
    silent = [row.id for row in rows if not row.context_audio]
    if silent:
        raise S2STasksError(
            f"{task}: {len(silent)} question(s) have no spoken context: "
            f"{', '.join(silent[:10])}{' …' if len(silent) > 10 else ''}"
        )
