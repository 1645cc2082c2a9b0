"""The sub-commands of `s2s-tasks`, one module each; `cli.COMMANDS` lists them."""
