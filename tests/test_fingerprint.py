"""Whatever changes scores changes the fingerprint, and nothing else does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from families import voxtral
from safetensors.torch import load_file, save_file

from s2s_tasks.adapters.fingerprint import checksum
from s2s_tasks.adapters.hf import HFAdapter


def edit_weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return edit


def nudge(weights: dict[str, torch.Tensor]) -> None:
    weights["model.layers.1.mlp.down_proj.weight"][2, 3] += 2**-12


def swap_rows(weights: dict[str, torch.Tensor]) -> None:
    name = "model.layers.0.self_attn.q_proj.weight"
    weights[name] = weights[name][torch.tensor([1, 0, *range(2, len(weights[name]))])]


def edit_config(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rms_norm_eps": 0.5}))


def edit_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    words = json.loads(path.read_text())
    words["model"]["merges"].pop()
    path.write_text(json.dumps(words))


@pytest.mark.parametrize(
    "edit", [edit_weights(nudge), edit_weights(swap_rows), edit_config, edit_tokenizer]
)
def test_a_change_shows(llama: Path, tmp_path: Path, edit: Callable[[Path], None]) -> None:
    folder = tmp_path / "model"
    shutil.copytree(llama, folder)
    before = HFAdapter(str(folder), device="cpu").fingerprint
    assert HFAdapter(str(folder), device="cpu").fingerprint == before
    edit(folder)
    assert HFAdapter(str(folder), device="cpu").fingerprint != before


def edit_tekken(folder: Path) -> None:
    path = folder / "tekken.json"
    words = json.loads(path.read_text())
    words["config"]["pattern"] = r"\p{L}+|\s+|[^\s\p{L}]+"
    path.write_text(json.dumps(words))


def test_a_change_of_a_tokenizer_of_mistrals_shows(tmp_path: Path) -> None:
    voxtral.save(tmp_path)
    before = HFAdapter(str(tmp_path), device="cpu").fingerprint
    edit_tekken(tmp_path)
    assert HFAdapter(str(tmp_path), device="cpu").fingerprint != before


def test_the_dtype_shows(llama: Path) -> None:
    half, whole = (HFAdapter(str(llama), device="cpu", dtype=d) for d in ("float16", "float32"))
    assert half.fingerprint != whole.fingerprint


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
def test_every_type_of_tensor_counts(dtype: torch.dtype) -> None:
    model = torch.nn.Module()
    model.register_buffer("weight", torch.zeros(3, 4).to(dtype))
    model.register_buffer("scalar", torch.tensor(1).to(dtype))
    before = checksum(model)
    model.weight[1, 2] = 1
    assert checksum(model) != before
    assert checksum(model, "a setting") != checksum(model)
