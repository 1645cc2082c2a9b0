"""Ultravox: code of its own repository, written for transformers 4, around an LM of another."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import accelerate
import torch
import transformers
from transformers.dynamic_module_utils import get_class_from_dynamic_module
from transformers.modeling_utils import load_state_dict
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file
from transformers.utils.hub import get_checkpoint_shard_files

from s2s_tasks.adapters.contract import AUDIO, AdapterError
from s2s_tasks.adapters.holding import holding
from s2s_tasks.adapters.speech_processor import accept_any_part
from s2s_tasks.adapters.whole import load_whole
from s2s_tasks.audio import Waveform

Weights = dict[str, torch.Tensor]


class UltravoxProcessor:
    """Ultravox's processor, called as those of other models are."""

    audio_token = "<|audio|>"

    def __init__(self, processor: Any) -> None:
        """Take the processor of the model's repository."""
        self._processor = processor
        self.tokenizer = processor.tokenizer
        self.feature_extractor = processor.audio_processor.feature_extractor
        # What stands there is never read; the model's own processor puts this.
        self.filler_id: int = self.tokenizer.eos_token_id

    def __call__(
        self, text: Sequence[str], audio: Sequence[Waveform], *, sampling_rate: int, **options: Any
    ) -> dict[str, torch.Tensor]:
        """Return what `forward` takes for one prompt, `AUDIO` at audio positions of `input_ids`.

        Features are of windows of 30 s: `audio_values` [windows, mel bins, frames].
        """
        # The processor itself begins no text.
        begin = self.tokenizer.encode("") if options.get("add_special_tokens", True) else []
        made = self._processor(
            text=self.tokenizer.decode(begin) + text[0],
            audios=list(audio),
            sampling_rate=sampling_rate,
        )
        starts, counts = made["audio_token_start_idx"], made["audio_token_len"]
        for start, count in zip(starts, counts, strict=True):
            made["input_ids"][0, start : start + count] = AUDIO
        return dict(made)

    def to_json_string(self) -> str:
        """Return what changes features: nothing that the configurations leave out."""
        return "UltravoxProcessor"


def load_processor(
    pretrained: str, model_type: str, source: Mapping[str, Any]
) -> UltravoxProcessor:
    """Load Ultravox's processor.

    Raises:
        AdapterError: for one that takes a single recording, as those before February 2025.
    """
    del model_type
    # It holds a WhisperProcessor, where transformers 5 wants a feature extractor.
    with holding(transformers.ProcessorMixin, "check_argument_for_proper_class", accept_any_part):
        processor = transformers.AutoProcessor.from_pretrained(pretrained, **source)
    if "audios" not in inspect.signature(processor.__call__).parameters:
        raise AdapterError(f"{pretrained}: its code is older than the Ultravox that is known here")
    return UltravoxProcessor(processor)


def load_model(
    pretrained: str,
    *,
    dtype: Any,
    attn_implementation: str | None,
    trust_remote_code: bool,
    revision: str | None,
    **placement: Any,
) -> Any:
    """Build the model without weights, and fill in each part's.

    Its own `from_pretrained` would load parts of other repositories while the model is built, which
    transformers 5 forbids, and leave them as they were drawn.

    Raises:
        AdapterError: when a part has no weights, the code is not as we know it, or is not to run.
    """
    if not trust_remote_code:
        raise AdapterError(
            f"{pretrained} brings its own code: add trust_remote_code=true if you trust it"
        )
    if placement:
        raise AdapterError(
            f"{pretrained}: Ultravox is placed whole: leave device_map and quantisation out"
        )
    source = {"revision": revision, "trust_remote_code": trust_remote_code}
    config = transformers.AutoConfig.from_pretrained(pretrained, **source)
    if dtype != "auto":
        config.dtype = dtype
    config.dtype = config.dtype or torch.float32
    if attn_implementation:
        # Newer code reads the second, older code the first.
        config._attn_implementation = attn_implementation
        config.text_config._attn_implementation = attn_implementation
    own = _own_weights(pretrained, revision)
    try:
        code = get_class_from_dynamic_module(
            config.auto_map["AutoModel"], pretrained, revision=revision
        )
        model = _build_empty(code, config)
        _fill(model, own)
        _mend_tower(model)
    except (AssertionError, AttributeError, KeyError, TypeError) as error:
        raise AdapterError(
            f"{pretrained}: its code is not the Ultravox that is known here, or does not run with "
            f"transformers {transformers.__version__}: {error}"
        ) from error
    return model


def _build_empty(code: Any, config: Any) -> Any:
    """Build the model, its weights on no device."""
    inside = transformers.modeling_utils
    with (
        accelerate.init_empty_weights(),
        # Older code loads parts while it builds the model.
        holding(config, "text_model_id", None),
        holding(config, "audio_model_id", None),
        # Newer code asks transformers whether to; older code tells it not to draw weights.
        holding(inside, "_init_weights", False),
        holding(inside, "no_init_weights", nullcontext),
    ):
        return _adapted(code)(config)


def _adapted(code: Any) -> Any:
    """Return the repository's class, so that transformers 5 and we can call it."""

    def tie_weights(self: Any, *_: Any, **__: Any) -> None:
        # transformers 5 hands over options, which are of no use to the LM.
        self.language_model.tie_weights()

    def forward(self: Any, input_ids: Any = None, **inputs: Any) -> Any:
        # Token ids were required, embeddings or not.
        return code.forward(self, input_ids, **inputs)

    return type(code.__name__, (code,), {"tie_weights": tie_weights, "forward": forward})


def _fill(model: Any, own: Weights) -> None:
    """Give each part its weights: those of other repositories first, then the model's own."""
    config, dtype = model.config, model.config.dtype
    # A repository that was trained whole names the others still.
    if config.text_model_id and not _complete(model, own, "language_model"):
        model.language_model = load_whole(
            transformers.AutoModelForCausalLM,
            config.text_model_id,
            dtype=dtype,
            attn_implementation=config.text_config._attn_implementation,
        )
    if config.audio_model_id and not _complete(model, own, "audio_tower"):
        hearing = load_whole(transformers.AutoModel, config.audio_model_id, dtype=dtype)
        tower = getattr(hearing, "encoder", hearing)
        model.audio_tower.load_state_dict(tower.state_dict(), assign=True)
    cast = {name: w.to(dtype) if w.is_floating_point() else w for name, w in own.items()}
    homeless = model.load_state_dict(cast, strict=False, assign=True).unexpected_keys
    model.tie_weights()
    tensors = (*model.named_parameters(), *model.named_buffers())
    empty = [name for name, tensor in tensors if tensor.is_meta]
    if empty or homeless:
        raise AdapterError(
            f"{config.name_or_path}: {len(empty)} tensors have no weights {empty[:3]}, and "
            f"{len(homeless)} weights have no place {homeless[:3]}"
        )


def _complete(model: Any, own: Weights, part: str) -> bool:
    """Tell whether the repository has all weights of a part, but for those that are tied."""
    names = {name for name, _ in model.named_parameters() if name.startswith(f"{part}.")}
    return names <= own.keys()


def _mend_tower(model: Any) -> None:
    """Make the repository's own encoder run, and see that it does."""
    tower = model.audio_tower
    if "audio_len" not in inspect.signature(tower.forward).parameters:
        raise TypeError("its audio tower takes no audio_len")
    if not hasattr(tower, "get_extended_attention_mask"):
        # transformers 5 has dropped it.
        tower.get_extended_attention_mask = _extend
    for layer in tower.layers:
        # Layers return a tensor since transformers 5; the code reads the first of a tuple.
        layer.register_forward_hook(lambda _, __, out: out if isinstance(out, tuple) else (out,))
    silence = torch.zeros(1, tower.config.num_mel_bins, 20, dtype=tower.dtype)
    with torch.no_grad():
        heard = tower.eval()(silence, audio_len=torch.tensor([10])).last_hidden_state
    if heard.shape != (1, 10, model.config.audio_config.hidden_size):
        raise TypeError(f"its audio tower returns {tuple(heard.shape)} for 20 frames")


def _extend(mask: torch.Tensor, *_: Any, dtype: torch.dtype, **__: Any) -> torch.Tensor:
    """Return what is added to attention: [rows, positions] to [rows, 1, 1, positions]."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(
        ~mask.bool(), torch.finfo(dtype).min
    )[:, None, None]


def _own_weights(pretrained: str, revision: str | None) -> Weights:
    """Read the weights in a repository: without other repositories' parts, or with them."""
    one = cached_file(
        pretrained,
        SAFE_WEIGHTS_NAME,
        revision=revision,
        _raise_exceptions_for_missing_entries=False,
    )
    if one:
        return dict(load_state_dict(one))
    index = cached_file(pretrained, SAFE_WEIGHTS_INDEX_NAME, revision=revision)
    files, _ = get_checkpoint_shard_files(pretrained, index, revision=revision)
    return {name: tensor for file in files for name, tensor in load_state_dict(file).items()}
