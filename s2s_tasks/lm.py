"""`SpeechLM`: lm-eval's requests in, the engine's scores out. It knows no model family."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import postprocess_generated_text
from tqdm import tqdm

from s2s_tasks.adapters.contract import Adapter, Message, Prefix, Reply
from s2s_tasks.arguments import check_arguments
from s2s_tasks.data.excerpts import excerpts
from s2s_tasks.engine.answers import claim, flush
from s2s_tasks.engine.batches import Budget, in_batches, parse_budget
from s2s_tasks.engine.generation import generate
from s2s_tasks.engine.run import score_requests
from s2s_tasks.engine.self_test import Findings, examine
from s2s_tasks.engine.work import Work
from s2s_tasks.instances import (
    generation_of,
    prompts_of,
    question_of,
    refuse_unfinished,
    refuse_unheard,
)
from s2s_tasks.logs import follow_lm_eval
from s2s_tasks.processes import Processes
from s2s_tasks.prompt import Prompt, Request
from s2s_tasks.recordings import recordings_of, refuse_unusable
from s2s_tasks.score import Score
from s2s_tasks.speech_out import SpeechFolder
from s2s_tasks.windows import Window, window_length, windows_of

log = logging.getLogger(__name__)

SELF_TEST_SECONDS = 2.0
"""How much a model hears when it is tried: enough for a few words."""


class SpeechLM(TemplateLM):
    """Answer requests with and without audio in one run, through an adapter."""

    MULTIMODAL = True
    adapter_class: ClassVar[Callable[..., Adapter]]

    def __init__(
        self,
        *,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        exact: bool = False,
        speech: str | None = None,
        **arguments: Any,
    ) -> None:
        """Load the model and try it.

        Args:
            batch_size: prefixes that go through the model at once; `auto` for as many as fit.
            max_batch_size: most of them, with `auto`.
            device: where to compute; a launcher of several processes gives each its own.
            exact: a full forward for each request, nothing shared.
            speech: folder where the speech of answers goes; without it they are only written.
            **arguments: the adapter's own.

        Raises:
            AdapterError: when an argument is not the adapter's, or the model does not load.
        """
        super().__init__()
        follow_lm_eval()
        budget = parse_budget(batch_size, max_batch_size)
        build = type(self).adapter_class
        check_arguments(build, arguments)
        self._processes = Processes(device)
        arguments |= {"speaks": True} if speech else {}
        self.adapter = build(device=self._processes.device or device, **arguments)
        self._speech = SpeechFolder(speech, self.adapter) if speech else None
        self._device = self.adapter.device
        self._usable_recordings: set[str] = set()
        self._chatted = False
        log.info("Trying the model on a short item")
        findings = self._examine(exact)
        self._asked_exact = exact
        self.exact = not findings.shares
        self._budget = budget if findings.batches else Budget(1)

    @property
    def batch_size(self) -> int:
        """Most prefixes that go through the model at once."""
        return self._budget.items

    @property
    def rank(self) -> int:
        """Which of the run's processes this is."""
        return self._processes.rank

    @property
    def world_size(self) -> int:
        """How many processes share the run."""
        return self._processes.count

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensors of all processes in one."""
        return self._processes.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """Return the objects of all processes to one of them."""
        return self._processes.gather_object(obj, dst)

    def barrier(self) -> None:
        """Wait for the other processes."""
        self._processes.wait()

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Take lm-eval's file of answers (`--use_cache`), if they are this model's.

        Raises:
            AdapterError: when they are another's, or speech goes to a folder.
        """
        if cache_hook.dbdict is not None:
            if self._speech:
                self._speech.refuse_cache()
            claim(cache_hook.dbdict, self.adapter.fingerprint, exact=self._asked_exact)
        super().set_cache_hook(cache_hook)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the text side."""
        return self.adapter.tokenizer

    @property
    def tokenizer_name(self) -> str:
        """What lm-eval's cache of requests tells models apart by."""
        return self.adapter.fingerprint.replace("/", "__")

    @property
    def eot_token_id(self) -> int:
        """Id of the token that ends a text."""
        return cast(int, self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """Id of the token that stands before a text without context."""
        bos = self.tokenizer.bos_token_id
        return self.eot_token_id if bos is None else cast(int, bos)

    @property
    def max_length(self) -> int:
        """Tokens that the model can attend to."""
        return self.adapter.max_length

    def get_model_info(self) -> dict[str, str]:
        """Return what lm-eval stores beside the results."""
        return {"model_fingerprint": self.adapter.fingerprint}

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Score continuations after contexts, with or without audio; see `LM.loglikelihood`."""
        prompts = self._usable_prompts(requests, disable_tqdm)
        asked = [
            Request(prompt, instance.args[1])
            for prompt, instance in zip(prompts, requests, strict=True)
        ]
        answers: dict[int, Score] = {}
        work = Work()
        waiting = Counter(map(question_of, requests))
        with self._bar("Scoring", len(waiting), "question", disable_tqdm) as bar:
            batches = score_requests(self.adapter, asked, self._budget, work, exact=self.exact)
            for batch in batches:
                for index, score in batch:
                    answers[index] = score
                    if math.isfinite(score[0]):
                        self._keep("loglikelihood", requests[index], score)
                    question = question_of(requests[index])
                    waiting[question] -= 1
                    bar.update(not waiting[question])
                flush(self.cache_hook.dbdict)
                if work.asked.audio_seconds:
                    bar.set_postfix_str(f"{work.speed:.1f} s of audio/s", refresh=False)
        log.info("%s", work)
        for note in self.adapter.notes():
            log.info("%s", note)
        refuse_unfinished(requests, [answers[index][0] for index in range(len(requests))])
        return [answers[index] for index in range(len(requests))]

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Score whole texts in windows as long as the model; see `LM.loglikelihood_rolling`."""
        texts = [self.tok_encode(instance.args[0]) for instance in requests]
        windows = windows_of(texts, self.prefix_token_id, self.max_length)
        totals = [0.0] * len(requests)
        waiting = Counter(index for index, _, _ in windows)

        def run(batch: list[Window]) -> list[Score]:
            return self.adapter.score([(prefix, ids) for _, prefix, ids in batch])

        with self._bar("Scoring texts", len(windows), "window", disable_tqdm) as bar:
            for batch, scores in in_batches(windows, run, self._budget, window_length):
                for (index, _, _), score in zip(batch, scores, strict=True):
                    totals[index] += score[0]
                    waiting[index] -= 1
                    if not waiting[index] and math.isfinite(totals[index]):
                        self._keep("loglikelihood_rolling", requests[index], totals[index])
                    bar.update()
                flush(self.cache_hook.dbdict)
        refuse_unfinished(requests, totals)
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Continue contexts, with or without audio; see `LM.generate_until`."""
        prompts = self._usable_prompts(requests, disable_tqdm)
        answers: dict[int, str] = {**self._speech.begin(requests, prompts)} if self._speech else {}
        alike: dict[str, list[int]] = {}
        for index in sorted(set(range(len(requests))) - answers.keys()):
            alike.setdefault(repr(sorted(requests[index].args[1].items())), []).append(index)
        with self._bar("Generating", len(requests), "question", disable_tqdm) as bar:
            bar.update(len(answers))
            for indices in alike.values():
                how = generation_of(requests[indices[0]].args[1])
                for batch, replies in generate(self.adapter, prompts, indices, self._budget, how):
                    for index, reply in zip(batch, replies, strict=True):
                        text = postprocess_generated_text(reply, list(how.until), None)
                        answers[index] = self._answered(index, requests[index], reply, text)
                        bar.update()
                    flush(self.cache_hook.dbdict)
        if self._speech:
            log.info("%s", self._speech)
        return [answers[index] for index in range(len(requests))]

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Render a conversation with the model's own template; placeholders stay in place."""
        if not self._chatted:
            log.info("Prompts go through the chat template of %s", self.adapter.name)
            self._chatted = True
        history: Sequence[Message] = chat_history
        return self.adapter.chat(history, add_generation_prompt=add_generation_prompt)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """Return the template that prompts go through, for lm-eval's results; None without."""
        return self.adapter.chat_template if chat_template else None

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **kwargs: Any
    ) -> list[int]:
        """Tokenize text; special tokens are added as the tokenizer does by itself."""
        add = True if add_special_tokens is None else add_special_tokens
        return cast(list[int], self.tokenizer.encode(string, add_special_tokens=add, **kwargs))

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **_: Any
    ) -> list[tuple[float, bool]]:
        return list(self.adapter.score([(Prefix(context), ids) for _, context, ids in requests]))

    def _usable_prompts(self, requests: Sequence[Instance], quiet: bool) -> list[Prompt]:
        """Return the requests' prompts, once their recordings are known to be heard as they are.

        Raises:
            AdapterError: when some are not.
        """
        prompts = prompts_of(requests)
        refuse_unheard(self.adapter, requests, prompts)
        known = self._usable_recordings
        asked = recordings_of(requests, prompts)
        new = {audio: name for audio, name in asked.items() if audio.sha256 not in known}
        with self._bar("Checking recordings", len(new), "recording", quiet or not new) as bar:
            refuse_unusable(self.adapter, new, bar.update)
        known |= {audio.sha256 for audio in new}
        return prompts

    def _answered(self, index: int, instance: Instance, reply: Reply, text: str) -> str:
        if self._speech:
            return self._speech.keep(index, instance, reply, text)
        self._keep("generate_until", instance, text)
        return text

    def _examine(self, exact: bool) -> Findings:
        if not self.adapter.embeds_audio:
            return examine(self.adapter, [], exact=exact)
        seconds = min(SELF_TEST_SECONDS, self.adapter.longest_audio or math.inf)
        with excerpts(seconds, 0.6 * seconds, seconds) as recordings:
            return examine(self.adapter, recordings, exact=exact)

    def _bar(self, what: str, total: int, unit: str, disable: bool) -> tqdm[Any]:
        return tqdm(total=total, desc=what, unit=unit, disable=disable or self.rank != 0)

    def _keep(self, kind: str, instance: Instance, answer: Any) -> None:
        """Hand an answer to lm-eval's file under the arguments that lm-eval looks it up by."""
        self.cache_hook.add_partial(kind, instance.args, answer)
