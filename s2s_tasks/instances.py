"""lm-eval's instances: what they ask, and what of it is refused."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

from lm_eval.api.instance import Instance
from lm_eval.models.utils import normalize_gen_kwargs

from s2s_tasks.adapters.contract import Adapter, AdapterError, Generation
from s2s_tasks.audio import is_handle
from s2s_tasks.prompt import Prompt, parse_request


def refuse_unheard(
    adapter: Adapter, requests: Sequence[Instance], prompts: Sequence[Prompt]
) -> None:
    """Refuse, before any work, questions with more recordings than the model takes.

    Raises:
        AdapterError: when there are some; the message names their tasks.
    """
    numbered = enumerate(zip(requests, prompts, strict=True))
    spoken = [(number, instance, prompt) for number, (instance, prompt) in numbered if prompt.audio]
    if not spoken:
        return
    if adapter.sampling_rate is None:
        tasks = ", ".join(sorted({i.task_name or "requests of your own" for _, i, _ in spoken}))
        raise AdapterError(
            f"{tasks}: these tasks ask with recordings, but {adapter.name} only reads text; run "
            "their _t2t variants, or put an ASR before the model: "
            "--model speech-cascade --model_args asr=…,lm=…"
        )
    several = [name_of(i, number) for number, i, p in spoken if len(p.audio) > 1]
    if several and not adapter.hears_several:
        raise AdapterError(
            f"{len(set(several))} question(s) ask with several recordings, {several[0]} among "
            f"them, and {adapter.name} takes one a prompt; leave --num_fewshot out"
        )


def refuse_unfinished(requests: Sequence[Instance], logprobs: Sequence[float]) -> None:
    """Refuse scores that are not numbers: lm-eval's file of answers would keep them.

    Raises:
        AdapterError: when there are some; the message names their questions.
    """
    broken = {
        name_of(instance, number)
        for number, (instance, logprob) in enumerate(zip(requests, logprobs, strict=True))
        if not math.isfinite(logprob)
    }
    if broken:
        raise AdapterError(
            f"the model's scores of {len(broken)} question(s) are not finite numbers: "
            f"{', '.join(sorted(broken)[:20])}{' …' if len(broken) > 20 else ''}. "
            "Try dtype=float32 or bfloat16, and look at the weights."
        )


def name_of(instance: Instance, number: int) -> str:
    """Name a request in a message: by its question, or by its number (from 0) without a task."""
    if instance.task_name is None:
        return f"request {number}"
    return f"{instance.task_name} {instance.doc.get('id', instance.doc_id)}"


def question_of(instance: Instance) -> tuple[str, int | None]:
    """Return which question of which task a request belongs to."""
    return str(instance.task_name), instance.doc_id


def prompts_of(requests: Sequence[Instance]) -> list[Prompt]:
    """Return the prompt of each request, one object for all continuations of a question.

    Text without recordings is never searched for any.

    Raises:
        AdapterError: when what lies beside a context is not recordings as `Audio.to_json` writes
            them.
        S2STasksError: when a context and its recordings do not fit.
    """
    known: dict[Hashable, Prompt] = {}
    prompts = []
    for number, instance in enumerate(requests):
        context, _, *media = instance.args
        recordings = _recordings(media[0], name_of(instance, number)) if media else []
        key = (context, *(tuple(handle.items()) for handle in recordings))
        if key not in known:
            known[key] = parse_request(context, recordings) if recordings else Prompt.of(context)
        prompts.append(known[key])
    return prompts


def _recordings(media: Any, name: str) -> list[dict[str, Any]]:
    """Return what lm-eval's arguments say of recordings, once it is known to be that."""
    handles = media.get("audio", []) if isinstance(media, Mapping) else None
    if handles is None or media.keys() - {"audio"} or not isinstance(handles, list | tuple):
        problem = f"{media!r:.100}"
    else:
        problem = next((f"{{'audio': [{h!r:.100}]}}" for h in handles if not is_handle(h)), "")
    if problem:
        raise AdapterError(
            f"{name}: beside the context stands {problem}, which says of no recording where it is; "
            'write {"audio": [s2s_tasks.audio.probe("a.wav").to_json()]}'
        )
    return list(handles or [])


def generation_of(gen_kwargs: dict[str, Any]) -> Generation:
    """Return how to continue a prompt, from lm-eval's `generation_kwargs`."""
    options = dict(normalize_gen_kwargs(gen_kwargs))
    until = options.pop("until", [])
    max_new_tokens = options.pop("max_gen_toks")
    if not options.get("do_sample"):
        options.pop("temperature", None)
    return Generation(cast(int, max_new_tokens), tuple(cast(list[str], until)), options)
