"""What of a release's wire between encoder, proxy and consumers a proxy must know, read in its sources."""

from __future__ import annotations

import re
from pathlib import Path

CHAT = ("entrypoints/chat_utils.py", "renderers/chat_utils.py", "renderers/chat_utils/types.py")
EXAMPLE = ("distributed/ec_transfer/ec_connector/example_connector.py",)
REPORT = ("distributed/ec_transfer/ec_connector/utils.py",)
PULL = ("distributed/ec_transfer/ec_connector/cpu/scheduler/__init__.py",)
SIGNS = {
    "items-in-order": (EXAMPLE, r'return False, \{"ec_items"'),  # metadata beside mm_hash, in a list
    "items-by-hash": (REPORT, r"setdefault\(\s*feature\.identifier|items\[\s*feature\.identifier"),
    "item-indices": (REPORT, r'"item_indices"'),  # several items a request can be told apart
    "modality": (REPORT, r'"modality": feature\.modality'),  # audio in a video is reported as an item of its own
    "json-metadata": (CHAT, r"MultiModalEmbedsPayload\b.* = str \| dict\[str, str \| list\[int \| float\]\]"),
    "video-metadata": (CHAT, r'"video_embeds"'),
    "shape-required": (PULL, r'remote\["shape"\]'),  # a consumer refuses an announcement without it
}
"""Feature -> files of the package that may hold it, and what in them shows it."""


def features(root: Path) -> list[str]:
    """The features of the release whose package lies in `root`."""
    found = []
    for feature, (files, sign) in SIGNS.items():
        texts = [path.read_text(encoding="utf-8") for file in files if (path := root / file).is_file()]
        if any(re.search(sign, text) for text in texts):
            found.append(feature)
    return sorted(found)
