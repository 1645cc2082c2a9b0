"""Handles on recordings: what is decoded, and what is refused."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from published_layout import encode, tone

from s2s_tasks.audio import Audio, AudioError, decode, probe, probe_bytes, read_cell, resample
from s2s_tasks.truncation import truncation

FORMATS = {
    "wav int16": ("WAV", "PCM_16", 16000, 1),
    "wav int24": ("WAV", "PCM_24", 44100, 2),
    "wav float": ("WAV", "FLOAT", 8000, 1),
    "flac": ("FLAC", "PCM_16", 16000, 2),
    "ogg opus": ("OGG", "OPUS", 24000, 1),
    "ogg vorbis": ("OGG", "VORBIS", 44100, 1),
    "mp3": ("MP3", "MPEG_LAYER_III", 24000, 1),
}


def file(path: Path, data: bytes) -> Audio:
    path.write_bytes(data)
    return probe(path)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_probed_and_decoded(tmp_path: Path, format_: str) -> None:
    container, subtype, rate, channels = FORMATS[format_]
    data = tone(440, seconds=0.5, rate=rate, channels=channels, format=container, subtype=subtype)
    audio = file(tmp_path / "sound", data)
    assert (audio.sampling_rate, audio.channels) == (rate, channels)
    assert audio.seconds == pytest.approx(0.5)
    signal = audio.load(16000)
    assert signal.dtype == np.float32 and signal.shape == (8000,)
    assert np.abs(signal).max() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_samples_of_every_width_have_one_scale(subtype: str) -> None:
    ramp = np.array([-1.0, -0.5, 0.0, 0.5])
    assert decode(encode(ramp, 16000, subtype=subtype), "x") == pytest.approx(ramp, abs=0.01)


def test_floats_beyond_full_scale_stay() -> None:
    loud = np.array([-1.5, 0.0, 2.0])
    assert decode(encode(loud, 16000, subtype="FLOAT"), "x").tolist() == loud.tolist()


def test_channels_are_averaged() -> None:
    stereo = np.stack([np.full(100, 0.5), np.full(100, -0.25)], axis=1)
    assert decode(encode(stereo, 16000), "x") == pytest.approx(np.full(100, 0.125), abs=1e-4)


@settings(deadline=None)
@given(st.integers(1, 5000), st.sampled_from([8000, 16000, 24000, 44100]))
def test_resampling_keeps_the_duration(frames: int, rate: int) -> None:
    signal = resample(np.zeros(frames, np.float32), rate, 16000)
    assert abs(len(signal) - frames * 16000 / rate) <= 1


def test_resampling_keeps_a_tone() -> None:
    there = np.sin(2 * np.pi * 440 * np.arange(44100) / 44100).astype(np.float32)
    wanted = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    assert resample(there, 44100, 16000)[500:-500] == pytest.approx(wanted[500:-500], abs=1e-3)


def test_the_json_form_round_trips(tmp_path: Path) -> None:
    audio = file(tmp_path / "a.wav", tone())
    embedded = dataclasses.replace(audio, cell="context_audio/3/0")
    for handle in (audio, embedded):
        assert Audio.from_json(json.loads(json.dumps(handle.to_json()))) == handle
    assert "cell" not in audio.to_json()
    assert embedded.name == f"{tmp_path}/a.wav#context_audio/3/0"


def test_a_recording_that_changed_is_refused(tmp_path: Path) -> None:
    audio = file(tmp_path / "a.wav", tone(200))
    (tmp_path / "a.wav").write_bytes(tone(300))
    with pytest.raises(AudioError, match=r"a\.wav: the recording changed"):
        audio.load(16000)
    (tmp_path / "a.wav").unlink()
    with pytest.raises(AudioError, match=r"a\.wav: cannot read"):
        audio.load(16000)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"gone\.wav: cannot read"):
        probe(tmp_path / "gone.wav")
    for data, message in [
        (b"", r"x: the recording is empty \(0 bytes\)"),
        (b"<html>not found</html>", "x: not a recording that can be decoded"),
        (encode(np.zeros(0), 16000), "x: the recording has no samples"),
    ]:
        with pytest.raises(AudioError, match=message):
            probe_bytes(data, path="x")
    with pytest.raises(AudioError, match="does not decode"):
        decode(b"<html>not found</html>", "x")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_cut_recording_is_noticed(format_: str, share: float) -> None:
    container, subtype, rate, channels = FORMATS[format_]
    whole = tone(seconds=2, rate=rate, channels=channels, format=container, subtype=subtype)
    assert truncation(whole) is None
    cut = whole[: int(len(whole) * share)]
    with pytest.raises(AudioError, match=r"x: .*(truncated|decode)"):
        probe_bytes(cut, path="x")
        decode(cut, "x")


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
def test_a_wav_written_to_a_pipe_is_no_cut_one(size: int) -> None:
    data = bytearray(tone())
    at = data.index(b"data") + 4
    data[at : at + 4] = struct.pack("<I", size)
    assert truncation(bytes(data)) is None


def encoded_mp3(bitrate_mode: str) -> bytes:
    file = io.BytesIO()
    noise = np.random.default_rng(0).normal(size=24000) * 0.1
    signal = np.concatenate([np.sin(np.arange(24000) / 10) / 4, noise])
    how = {"bitrate_mode": bitrate_mode, "compression_level": 0.5}
    soundfile.write(file, signal, 24000, "MPEG_LAYER_III", format="MP3", **how)
    return file.getvalue()


@pytest.mark.parametrize("before", [b"", b"ID3\4\0\0\0\0\1\2" + bytes(130)], ids=["bare", "ID3"])
def test_an_mp3_whose_length_libsndfile_would_guess_is_refused(before: bytes) -> None:
    whole = encoded_mp3("VARIABLE")
    assert truncation(before + whole) is None
    without_length = whole[whole.index(whole[:2], 10) :]
    with pytest.raises(AudioError, match=r"bit rate varies .* convert it to flac"):
        probe_bytes(before + without_length, path="x")
    constant = encoded_mp3("CONSTANT")
    without_length = constant[constant.index(constant[:2], 10) :]
    assert probe_bytes(before + without_length, path="x").seconds == pytest.approx(2, abs=0.1)


def test_odd_containers_are_told_apart() -> None:
    wav = tone()
    assert truncation(wav[:30]) == "it ends before its samples begin"
    chunk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    assert truncation(wav[:12] + chunk + wav[12:]) is None
    ogg = tone(format="OGG", subtype="VORBIS")
    last = ogg.rindex(b"OggS")
    assert truncation(ogg[:last]) == "its end-of-stream page is missing"
    assert truncation(ogg[: last + 10]) == "its last page is cut"
    assert truncation(b"") is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    data = encode(np.array([0.1, value], np.float32), 16000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"x: .*not finite"):
        decode(data, "x")


def test_cells_of_a_parquet_file(tmp_path: Path) -> None:
    path = str(tmp_path / "sounds.parquet")
    cell = {"bytes": tone(), "path": None}
    table = pa.table({"a": [[cell], [cell, cell], [{"bytes": None, "path": "b"}]]})
    pq.write_table(table, path, row_group_size=1)
    assert read_cell(path, "a/1/1") == tone()
    audio = probe_bytes(tone(), path=path, cell="a/0/0")
    assert audio.load(16000).shape == (1600,)
    for missing in ("a/3/0", "a/0/1", "a/2/0", "none/0/0"):
        with pytest.raises(AudioError, match=f"sounds.parquet#{missing}: cannot read"):
            dataclasses.replace(audio, cell=missing).read()


def test_a_parquet_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "sounds.parquet"
    for pitch in (200, 300, 400):
        pq.write_table(pa.table({"a": [[{"bytes": tone(pitch), "path": None}]]}), path)
        assert read_cell(str(path), "a/0/0") == tone(pitch)
