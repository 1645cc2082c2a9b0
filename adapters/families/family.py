"""`Family`: what is particular to one architecture, where the conventions do not say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from s2s_tasks.adapters.speaking import Speaker
from s2s_tasks.adapters.speech_processor import load_processor

Source = Mapping[str, Any]
"""`revision` and `trust_remote_code`, as every `from_pretrained` takes them."""


@dataclass(frozen=True)
class Family:
    """One row of the table; every default is what transformers' conventions make of a model."""

    name: str
    """As its authors call it."""
    hub: tuple[str, ...] = ()
    """Ids of published weights."""
    refused: str | None = None
    """Why it cannot be scored."""
    scored_class: str | None = None
    """The class of transformers that gives text logits, where the configuration names another."""
    audio_config: str = "audio_config"
    """What the scored model's configuration calls that of the audio part."""
    batches_audio: bool = True
    """Whether recordings of several prompts may go through the audio part together. Where padding
    is heard, or the model's arguments only fit one prompt, each goes alone, and what comes out is
    put together for the LM."""
    system_option: str | None = None
    """What the chat template calls a system's text, where it takes none as a turn."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `forward` and `generate` are told whenever there is audio."""
    embedder: str | None = None
    """Path of the part that returns a prompt's embeddings with its recordings in them, where what
    follows is not a part of its own."""
    tower: str | None = None
    """Path of the audio tower, where it is not called `audio_tower` or `audio_encoder`."""
    most_positions: int | None = None
    """Positions up to which a cached prefix stays what a full forward makes of it."""
    switched_adapter: bool = False
    """Whether a LoRA inside the model is for audio alone: on after audio, off for text."""
    adjust_config: Callable[[Any], None] | None = None
    """Changes the configuration before the model is built."""
    load_model: Callable[..., Any] | None = None
    """Loads the model as the class's `from_pretrained` would, where that cannot."""
    speaker: type[Speaker] | None = None
    """The parts that speak, of a model that does; loaded where speech is asked for."""
    finish: Callable[[Any, str, Source], None] | None = None
    """Loads what `from_pretrained` leaves out: model, `pretrained`, source."""
    load_processor: Callable[[str, str, Source], Any] = load_processor
    """Loads the processor, or what can be called as one: `pretrained`, model type, source."""
    markup: str | None = None
    """What stands for a recording in a prompt without chat template, where the processor's own
    attributes do not tell: what the model's chat template puts there."""
    arguments: str = ""
    """What `--model_args` needs beside `pretrained`."""
    longest_audio: float | None = None
    """Seconds that its published processor keeps of one recording; None for all. What a loaded
    model keeps is found by trying it: see `hearing`. So are the two that follow."""
    several: bool = True
    """Whether a prompt may have several recordings."""
    keeps_audio: bool = True
    """Whether `audio_cache` can keep what an audio tower makes: there is one, and the LM takes
    embeddings without token ids."""
    chat_roles: tuple[str, ...] = ("system", "user")
    """Who may write in a chat with a recording: whose texts the chat template keeps."""
    needs: str = ""
    """Packages that the model takes beside transformers, as pip names them."""
    remark: str = ""
    """What its users should know, for docs/models.md."""
    verified: str = "tiny weights"
    """How far this was seen to be right."""
