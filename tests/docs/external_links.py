"""Asks for every address outside this repository that its documents name.

    python tests/docs/external_links.py

The status is 1 where one is dead. Where most do not answer at all there is no network but for a few servers: it says
so, and the status is 0.
"""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: seconds that an answer may take, and how often it is asked for
PATIENCE, TRIES = 20, 3
#: answers of servers that do not want programs: a person gets the page
REFUSED = (403, 405, 429)
_ADDRESS = re.compile(r"https?://[^\s)>\"'`\]]+")


def addresses() -> dict[str, list[str]]:
    """Address -> the documents that name it."""
    found: dict[str, list[str]] = {}
    for page in (*ROOT.glob("*.md"), ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")):
        for address in _ADDRESS.findall(page.read_text()):
            if "ADDRESS" not in address:  # a place for one, in a comment
                found.setdefault(address.rstrip(".,;:"), []).append(str(page.relative_to(ROOT)))
    return found


def answer(address: str) -> int | str:
    """The status that its server answers with, or why there is no answer."""
    request = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    why = ""
    for _ in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as page:
                return int(page.status)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return error.code
            why = str(error)
        except OSError as error:
            why = str(error)
    return why


def dead(answers: Mapping[str, int | str]) -> Iterable[str]:
    """The addresses that lead nowhere."""
    for address, said in sorted(answers.items()):
        if isinstance(said, str) or (said >= 400 and said not in REFUSED):
            yield address


def main() -> int:
    """Ask for all, and say which are dead."""
    named = addresses()
    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(named, pool.map(answer, named), strict=True))
    silent = [address for address, said in answers.items() if isinstance(said, str)]
    if 2 * len(silent) > len(answers):
        print(f"there is no network here: {len(silent)} of {len(answers)} addresses do not answer")
        return 0
    lost = list(dead(answers))
    for address in lost:
        print(f"{address}: {answers[address]}, in {', '.join(sorted({*named[address]}))}")
    print(f"{len(answers)} addresses, {len(lost)} dead")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
