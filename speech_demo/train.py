"""Train the demo model's projector, from the sentences to the checkpoint.

    npm pack kokoro-js@1.2.1
    python speech_demo/train.py WORK --kokoro-voices kokoro-js-1.2.1.tgz

Speaks the sentences (speak.py), runs the frozen encoder over them (features.py), and trains the
projector by CTC on the LM's tokens; an hour on two cores. Kill it at any time: run again, it goes
on where it was. `WORK/curves.csv` has the losses.
"""

import argparse
import csv
import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import features
import jiwer
import numpy as np
import speak
import torch
from features import Pack
from text import SENTENCES, words
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer, WhisperModel

from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM, CTCSpeechLMConfig
from s2s_tasks.adapters.ctc_speech_lm.processing import AUDIO_TOKEN
from s2s_tasks.adapters.ctc_speech_lm.projector import BLANK, collapse
from s2s_tasks.demo import SPEECH_DEMO
from s2s_tasks.demo.weights import packages_or_hub

SEED = 3
STEPS = 3000
WARM_UP = 100  # steps
LEARNING_RATE = 1.2e-3
LAST_RATE = 0.02  # of the learning rate, at the end
WEIGHT_DECAY = 0.02
BATCH = 6000  # frames, padding included: two minutes
SHORT, SHORT_EPOCHS = 400, 12  # frames; epochs of packs up to so long, before the others join in
HELD_OUT = 60  # packs
FEATURE_NOISE = 0.05
MASKS, MASK_FRAMES = 2, 10  # stretches a pack of which only noise is left, each shorter than so
LOG_EVERY, LOOK_EVERY = 50, 500  # steps


class Training:
    """The packs as tensors, and the model between its steps."""

    def __init__(self, model: CTCSpeechLM, packs: Sequence[Pack], folder: Path, tokenizer) -> None:
        """Hold out some packs. The projector's vocabulary holds every token of theirs."""
        self.model, self.tokenizer = model, tokenizer
        self.shards = features.open_shards(folder)
        heard = model.projector.vocabulary.tolist()
        self.output = {token: BLANK + 1 + index for index, token in enumerate(heard)}
        self.targets = {
            pack.lines: [self.output[token] for token in tokens(tokenizer, pack.text)]
            for pack in packs
        }
        for pack in packs:
            labels = self.targets[pack.lines]
            repeats = sum(a == b for a, b in itertools.pairwise(labels))  # a blank between
            if len(labels) + repeats > pack.frames // 4:
                raise ValueError(f"{pack}: too short for its {len(labels)} tokens; speak it again")
        self.embeddings = model.heard_embeddings()
        self.held_out, self.train = packs[:HELD_OUT], packs[HELD_OUT:]

    def loss(
        self, packs: Sequence[Pack], output: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        """CTC loss a token of what was listened to."""
        targets = [self.targets[pack.lines] for pack in packs]
        counts = torch.tensor([len(target) for target in targets])
        flat = torch.tensor([label for target in targets for label in target])
        total = functional.ctc_loss(output.transpose(0, 1), flat, lengths, counts, BLANK, "sum")
        return total / counts.sum()

    def listen(
        self, packs: Sequence[Pack], draw: np.random.Generator | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The projector's output for a batch; with `draw`, of features made worse."""
        lengths = torch.tensor([pack.frames for pack in packs])
        width = self.shards[0].shape[1]
        hidden = np.zeros((len(packs), int(lengths.max()), width), np.float32)
        for row, pack in zip(hidden, packs, strict=True):
            row[: pack.frames] = self.shards[pack.shard][pack.start : pack.start + pack.frames]
            if draw is not None:
                for _ in range(MASKS):
                    first = draw.integers(pack.frames)
                    row[first : first + draw.integers(1, MASK_FRAMES)] = 0
                noise = draw.standard_normal((pack.frames, width), dtype=np.float32)
                row[: pack.frames] += FEATURE_NOISE * noise
        with torch.autocast("cpu", torch.bfloat16):
            return self.model.projector(torch.from_numpy(hidden), lengths, self.embeddings)

    @torch.inference_mode()
    def look(self) -> tuple[float, float]:
        """Loss a token and word error rate on the packs held out."""
        self.model.projector.eval()
        losses, said, heard = [], [], []
        for start in range(0, len(self.held_out), 20):
            packs = self.held_out[start : start + 20]
            output, lengths = self.listen(packs, None)
            losses.append(float(self.loss(packs, output, lengths)))
            for pack, row, length in zip(packs, output, lengths, strict=True):
                said.append(" ".join(words(pack.text)))
                heard.append(" ".join(words(self.write(row[:length]))))
        self.model.projector.train()
        return float(np.mean(losses)), jiwer.wer(said, heard)

    def write(self, output: torch.Tensor) -> str:
        """What was heard, as text: of each soft token the likeliest token."""
        heard = collapse(output).argmax(-1)
        return self.tokenizer.decode(self.model.projector.vocabulary[heard])


def tokens(tokenizer, text: str) -> list[int]:
    """A text as the LM reads it after other text."""
    return tokenizer(" " + text, add_special_tokens=False).input_ids


def schedule(packs: Sequence[Pack]) -> Iterator[list[Pack]]:
    """Batches of packs of about the same length, without end: the same in every run.

    Short packs come first: where few tokens can be anywhere, CTC finds out sooner where they are
    (the curriculum of Amodei et al. 2016, Deep Speech 2, section 3.2).
    """
    for epoch in itertools.count():
        draw = np.random.default_rng([SEED, epoch])
        chosen = [pack for pack in packs if pack.frames <= SHORT or epoch >= SHORT_EPOCHS]
        jitter = draw.uniform(0, 60, len(chosen))
        order = sorted(range(len(chosen)), key=lambda i: chosen[i].frames + jitter[i])
        batches: list[list[Pack]] = [[]]
        for pack in (chosen[index] for index in order):
            longest = max([pack.frames, *(other.frames for other in batches[-1])])
            if longest * (len(batches[-1]) + 1) > BATCH and batches[-1]:
                batches.append([])
            batches[-1].append(pack)
        yield from (batches[index] for index in draw.permutation(len(batches)))


def train(training: Training, work: Path, steps: int) -> None:
    """Run the steps that are left; every `LOOK_EVERY` steps the state is kept.

    Raises:
        ValueError: when the state that is there is of another training.
    """
    projector = training.model.projector.requires_grad_(True).train()
    optimizer = torch.optim.AdamW(
        projector.parameters(), LEARNING_RATE, (0.9, 0.98), weight_decay=WEIGHT_DECAY
    )
    state, curves = work / "state.pt", work / "curves.csv"
    digest = hashlib.sha256(repr([steps, [*training.targets.items()]]).encode()).hexdigest()
    done, rows = 0, []
    if state.is_file():
        kept = torch.load(state)
        if kept["digest"] != digest:
            raise ValueError(f"{state} is of another training; move it away, or take another WORK")
        projector.load_state_dict(kept["projector"])
        optimizer.load_state_dict(kept["optimizer"])
        done, rows = kept["step"], kept["rows"]
    begun = time.monotonic() - (rows[-1][1] if rows else 0)
    recent: list[float] = []
    for step, packs in enumerate(schedule(training.train), start=1):
        if step <= done:
            continue
        if step > steps:
            break
        torch.manual_seed(step)  # dropout: a resumed run goes on as one that was not
        rate = LEARNING_RATE * min(1, step / WARM_UP) * max(LAST_RATE, 1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = training.loss(packs, *training.listen(packs, np.random.default_rng([SEED, step])))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(projector.parameters(), 1.0)
        optimizer.step()
        recent.append(float(loss.detach()))
        if step % LOG_EVERY == 0 or step == steps:
            look_now = step % LOOK_EVERY == 0 or step == steps
            look = training.look() if look_now else ("", "")
            seconds = round(time.monotonic() - begun)
            rows.append([step, seconds, round(float(np.mean(recent)), 4), *look])
            print(*rows[-1], flush=True)
            recent.clear()
            if look_now:
                kept = {"projector": projector.state_dict(), "optimizer": optimizer.state_dict()}
                kept |= {"step": step, "rows": rows, "digest": digest}
                torch.save(kept, state.with_suffix(".new"))
                state.with_suffix(".new").replace(state)
                with curves.open("w", newline="") as file:
                    csv.writer(file).writerows(rows)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", type=Path, help="folder for speech, features and states")
    parser.add_argument("--kokoro-voices", type=Path, required=True, help="kokoro-js-1.2.1.tgz")
    parser.add_argument("--out", type=Path, default=SPEECH_DEMO, help="default: the shipped one")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default: {STEPS}")
    given = parser.parse_args()

    lines = speak.cast(SENTENCES.read_text(encoding="utf-8").splitlines())
    speak.speak(lines, given.work / "speech", given.kokoro_voices)

    config = CTCSpeechLMConfig()
    whisper = WhisperModel.from_pretrained(packages_or_hub(config.audio_model_id), dtype="bfloat16")
    packs = features.make(lines, given.work / "speech", given.work / "features", whisper.encoder)

    text_model = packages_or_hub(config.text_model_id)
    tokenizer = AutoTokenizer.from_pretrained(text_model)
    tokenizer.add_tokens([AUDIO_TOKEN], special_tokens=True)
    config.audio_token_id = tokenizer.convert_tokens_to_ids(AUDIO_TOKEN)
    heard = sorted({token for pack in packs for token in tokens(tokenizer, pack.text)})
    config.vocabulary_size = len(heard)
    torch.manual_seed(SEED)
    model = CTCSpeechLM(
        config, whisper.encoder, AutoModelForCausalLM.from_pretrained(text_model, dtype="float32")
    )
    model.projector.vocabulary.copy_(torch.tensor(heard))
    train(Training(model, packs, given.work / "features", tokenizer), given.work, given.steps)
    model.save_pretrained(given.out)
    print(f"{given.out}: {sum(p.numel() for p in model.projector.parameters()):,} parameters")


if __name__ == "__main__":
    main()
