"""Write what the calls of the net return: ``python tests/net/write.py [GROUP ...]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from calls import GROUPS, processor, returned

for group in sys.argv[1:] or GROUPS:
    found = {name: json.dumps(value) for name, value in returned(group).items()}
    lines = ",\n".join(f"{json.dumps(name)}: {value}" for name, value in found.items())
    (Path(__file__).parent / f"{group}.json").write_text(f"{{\n{lines}\n}}\n")
(Path(__file__).parent / "processor.json").write_text(json.dumps(processor()) + "\n")
