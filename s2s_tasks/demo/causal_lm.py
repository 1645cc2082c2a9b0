"""GGUF → a Hugging Face folder, for the two text models of the demo.

Transformers reads GGUF too, but as a quantised model that it refuses to save, and in more than a
minute for Gemma.

Stored in float16, run in bfloat16 by default. Mean |Δ log p| a token against the de-quantised
float32 model, both run in float32: stored in float16 0.002 (SmolLM2) and 0.001 (Gemma), in bfloat16
0.011 and 0.010. Run in float16 Gemma overflows to NaN, so the configuration says bfloat16, as the
hub's does.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from tqdm import tqdm
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig

from s2s_tasks.demo import gguf_file, gguf_tokenizer
from s2s_tasks.errors import S2STasksError

STORED = torch.float16
RUN = torch.bfloat16

NAMES = {  # GGUF → transformers, inside a layer
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
LLAMA_NAMES = NAMES | {"ffn_norm": "post_attention_layernorm"}
GEMMA3_NAMES = NAMES | {
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def convert(path: Path, folder: Path) -> None:
    """Write configuration, weights and tokenizer of the GGUF file into `folder`."""
    model = gguf_file.read(path)
    match model.metadata["general.architecture"]:
        case "llama":
            config, names = _llama(model), LLAMA_NAMES
            gguf_tokenizer.byte_level(model.metadata).save_pretrained(folder)
        case "gemma3":
            config, names = _gemma3(model), GEMMA3_NAMES
            gguf_tokenizer.gemma(model.metadata).save_pretrained(folder)
        case other:
            raise S2STasksError(f"{path}: no conversion for the GGUF architecture {other!r}")
    config.dtype = RUN
    config.save_pretrained(folder)
    state = {
        _rename(name, names): torch.tensor(_restore(name, tensor.float32(), config), dtype=STORED)
        for name, tensor in tqdm(model.tensors.items(), desc="de-quantising", unit="tensor")
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def _common(model: gguf_file.GGUF) -> dict[str, object]:
    of = model.metadata
    family = of["general.architecture"]
    return {
        "vocab_size": len(of["tokenizer.ggml.tokens"]),
        "hidden_size": of[f"{family}.embedding_length"],
        "intermediate_size": of[f"{family}.feed_forward_length"],
        "num_hidden_layers": of[f"{family}.block_count"],
        "num_attention_heads": of[f"{family}.attention.head_count"],
        "num_key_value_heads": of[f"{family}.attention.head_count_kv"],
        "max_position_embeddings": of[f"{family}.context_length"],
        "rms_norm_eps": float(f"{of[f'{family}.attention.layer_norm_rms_epsilon']:.6g}"),
        "bos_token_id": of["tokenizer.ggml.bos_token_id"],
        "eos_token_id": of["tokenizer.ggml.eos_token_id"],
        "pad_token_id": of["tokenizer.ggml.padding_token_id"],
        "tie_word_embeddings": True,  # neither file has an output matrix
    }


def _llama(model: gguf_file.GGUF) -> LlamaConfig:
    theta = model.metadata["llama.rope.freq_base"]
    return LlamaConfig(
        **_common(model),
        architectures=["LlamaForCausalLM"],
        rope_parameters={"rope_type": "default", "rope_theta": theta},
    )


def _gemma3(model: gguf_file.GGUF) -> Gemma3TextConfig:
    of = model.metadata
    width = of["gemma3.attention.key_length"]
    theta = {"full_attention": of["gemma3.rope.freq_base"], "sliding_attention": 10_000.0}
    return Gemma3TextConfig(
        **_common(model),
        architectures=["Gemma3ForCausalLM"],
        head_dim=width,
        query_pre_attn_scalar=width,
        sliding_window=of["gemma3.attention.sliding_window"],
        rope_parameters={
            kind: {"rope_type": "default", "rope_theta": base} for kind, base in theta.items()
        },
    )


def _rename(name: str, names: dict[str, str]) -> str:
    match name.split("."):
        case ["token_embd", kind]:
            return f"model.embed_tokens.{kind}"
        case ["output_norm", kind]:
            return f"model.norm.{kind}"
        case ["blk", layer, part, kind]:
            return f"model.layers.{layer}.{names[part]}.{kind}"
    raise S2STasksError(f"Unknown GGUF tensor {name!r}")


def _restore(
    name: str, values: NDArray[np.float32], config: PreTrainedConfig
) -> NDArray[np.float32]:
    """Undo what llama.cpp's converter does to the weights of the two families."""
    if config.model_type == "llama" and ".attn_q." in name:
        return _halves(values, config.num_attention_heads)
    if config.model_type == "llama" and ".attn_k." in name:
        return _halves(values, config.num_key_value_heads)
    if config.model_type == "gemma3_text" and "norm" in name:
        return values - 1  # Gemma multiplies by 1 + weight, llama.cpp by the weight
    return values


def _halves(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a rotary projection: (even, odd) pairs side by side → all evens, then all odds."""
    pairs = values.reshape(heads, -1, 2, values.shape[-1])
    return pairs.swapaxes(1, 2).reshape(values.shape)
