"""The dataset card of a folder in the canonical form: what makes the hub and `datasets` read it."""

from __future__ import annotations

from pathlib import Path

import yaml

from s2s_tasks.data.parquet import read_metadata


def write_card(folder: Path, title: str) -> None:
    """Write `README.md` beside the Parquet files of a folder, with one configuration a set."""
    tables = sorted(folder.glob("*.parquet"))
    configs = [("default", "*.parquet"), *((table.stem, table.name) for table in tables)]
    head = {
        "configs": [
            {"config_name": name, "data_files": [{"split": "test", "path": path}]}
            for name, path in configs
        ]
    }
    lines = ["---", yaml.safe_dump(head, sort_keys=False).rstrip(), "---", "", f"# {title}", ""]
    lines += [
        "Questions with their recordings, as `s2s-tasks` reads them and `datasets` does:",
        "`load_dataset(folder, name, split='test')`; recordings come as encoded bytes.",
        "",
        "| name | source | licence |",
        "|---|---|---|",
    ]
    for table in tables:
        noted = read_metadata(table)
        lines.append(f"| {table.stem} | {noted['source']} | {noted['licence']} |")
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
