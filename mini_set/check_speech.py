"""Is the speech of the mini set intelligible? Transcribe every clip and compare with its text.

    python mini_set/check_speech.py OUT [--model FOLDER_OF_whisper-base]

Word error rate for English, character error rate for Mandarin, a line a voice, then the worst
clips. Transcripts are kept in `OUT/transcripts.jsonl` by the clip's checksum: only new clips cost
time. An error may be the synthesiser's or the recogniser's.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import mean, median

import cn2an
import jiwer
import opencc
import torch
from tqdm import tqdm
from transformers import AutoModelForSpeechSeq2Seq, AutoProcessor
from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

from s2s_tasks.audio import probe
from s2s_tasks.demo.weights import model_folder

RATE = 16_000  # Hz, Whisper's
PRONOUNS = str.maketrans("她它", "他他")  # they sound alike


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the folder that synthesise.py made")
    parser.add_argument("--model", type=Path, help="a Whisper; default: the demo's whisper-base")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worst", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    lines = (given.out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    clips = list({clip["id"]: clip for clip in map(json.loads, lines)}.values())
    heard = transcripts(clips, given.out, given.model, given.batch)
    rated = [clip | rate(clip, heard[clip["sha256"]]) for clip in clips]
    print("\n".join([*table(rated), "", *worst(rated, given.worst)]))


def transcripts(clips: Sequence[dict], out: Path, model: Path | None, batch: int) -> dict[str, str]:
    """What Whisper hears in each clip, by the clip's sha256."""
    kept = out / "transcripts.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    heard = {entry["sha256"]: entry["heard"] for entry in map(json.loads, lines)}
    new = [clip for clip in clips if clip["sha256"] not in heard]
    if new:
        bar = tqdm(total=len(new), unit="clip")
        with bar, kept.open("a", encoding="utf-8") as file:
            for clip, text in _hear(new, out, model or model_folder("whisper-base"), batch):
                heard[clip["sha256"]] = text
                entry = {"id": clip["id"], "sha256": clip["sha256"], "heard": text}
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()  # an interrupted check goes on where it stopped
                bar.update()
    return heard


def _hear(clips: Sequence[dict], out: Path, folder: Path, batch: int) -> Iterator[tuple[dict, str]]:
    model = AutoModelForSpeechSeq2Seq.from_pretrained(folder, dtype=torch.bfloat16)
    processor = AutoProcessor.from_pretrained(folder)
    order = sorted(clips, key=lambda clip: clip["seconds"])
    for language, mandarin in (("en", False), ("zh", True)):
        mine = [clip for clip in order if (clip["voice"][0] == "z") == mandarin]
        for start in range(0, len(mine), batch):
            group = mine[start : start + batch]
            samples = [probe(out / clip["file"]).load(RATE) for clip in group]
            inputs = processor(samples, sampling_rate=RATE, return_tensors="pt")
            ids = model.generate(
                inputs.input_features.to(model.dtype), language=language, task="transcribe"
            )
            yield from zip(
                group, processor.batch_decode(ids, skip_special_tokens=True), strict=True
            )


def rate(clip: dict, heard: str) -> dict:
    """The clip's error rate and what was heard."""
    if clip["voice"].startswith("z"):
        error = jiwer.cer(mandarin(clip["text"]), mandarin(heard))
    else:
        error = jiwer.wer(english()(clip["text"]), english()(heard))
    return {"error": error, "heard": heard}


@cache
def english() -> EnglishTextNormalizer:
    """Whisper's own normaliser, less its list of British spellings."""
    return EnglishTextNormalizer({})


@cache
def _simplify() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


def mandarin(text: str) -> str:
    """Simplified characters, numbers written out, nothing but letters; he, she, it as one."""
    text = cn2an.transform(_simplify().convert(text), "an2cn")
    return "".join(filter(str.isalnum, text)).lower().translate(PRONOUNS)


def table(clips: Iterable[dict]) -> Iterator[str]:
    """A Markdown table, a line a voice."""
    voices: dict[str, list[dict]] = defaultdict(list)
    for clip in clips:
        voices[clip["voice"]].append(clip)
    yield "| voice | clips | seconds | median % | mean % | over 20 % |"
    yield "|---|--:|--:|--:|--:|--:|"
    for voice, mine in sorted(voices.items()):
        errors = [100 * clip["error"] for clip in mine]
        seconds = sum(clip["seconds"] for clip in mine)
        bad = sum(error > 20 for error in errors)
        yield (
            f"| {voice} | {len(mine)} | {seconds:.0f} "
            f"| {median(errors):.1f} | {mean(errors):.1f} | {bad} |"
        )


def worst(clips: Iterable[dict], count: int) -> Iterator[str]:
    """The clips that were understood least."""
    for clip in sorted(clips, key=lambda clip: -clip["error"])[:count]:
        yield f"{100 * clip['error']:5.1f} %  {clip['file']}  {clip['voice']}"
        yield f"         {clip['text']}"
        yield f"         {clip['heard'].strip()}"


if __name__ == "__main__":
    main()
