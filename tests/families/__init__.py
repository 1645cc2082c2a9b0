"""One file an architecture: a tiny checkpoint of it, and what its documentation does with audio.

Nothing here uses code of ours, so that what ours computes can be held against it. Each module has

- `save(folder)`: write a tiny random-weight checkpoint, as `from_pretrained` reads it;
- `load(folder)`: the model (eval, fp32) and its processor, by the classes that the docs name;
- `bare(processor, before, waveform, after)`: what `forward` takes for text, a recording
  (mono float32 at `SAMPLING_RATE` Hz, [frames]) and text again, without a chat template;
- `chat(processor, waveform, question, system)`: the same for a user's turn of a recording and a
  question, with or without a system's turn, up to where the assistant's begins;
- `SAMPLING_RATE`: what the processor takes, in Hz;
- `LONGEST`, if the checkpoint hears less of a recording than the published one, in seconds;
- `ARGUMENTS`, if a user must give more than `pretrained`.
"""
