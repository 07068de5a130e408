"""Writes a file as the comment of a pull request on GitHub: the comment that an earlier run made is written anew.

`post_comment.py FILE` reads the pull request from GITHUB_EVENT_PATH and uses GITHUB_API_URL, GITHUB_REPOSITORY and
GITHUB_TOKEN, as every step of GitHub Actions has them. The first line of FILE is the marker by which the comment is
found. What cannot be written is a warning and no failure: the verdict is not about comments.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PAGE = 100
ACTIONS = "github-actions[bot]"
"""Whose name the usual token writes in."""


class GitHub:
    """The few requests that a comment needs."""

    def __init__(self, address: str, repository: str, token: str) -> None:
        self._root = f"{address}/repos/{repository}/issues"
        self._address = address
        self._token = token

    def request(self, method: str, url: str, data: Any = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "proctor",
            "Content-Type": "application/json",
        }
        asked = urllib.request.Request(url, body, headers, method=method)  # noqa: S310  the runner names the address
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None

    def login(self) -> str:
        """Who the token belongs to; that of GitHub Actions may not ask."""
        try:
            return str(self.request("GET", f"{self._address}/user")["login"])
        except urllib.error.HTTPError:
            return ACTIONS

    def own_comments(self, number: int, marker: str, login: str) -> list[int]:
        """The ids of the comments that begin with the marker and were written by this token, the oldest first."""
        found: list[int] = []
        page = 1
        while True:
            url = f"{self._root}/{number}/comments?per_page={PAGE}&page={page}"
            comments = self.request("GET", url)
            found += [
                item["id"]
                for item in comments
                if (item.get("body") or "").startswith(marker) and (item.get("user") or {}).get("login") == login
            ]
            if len(comments) < PAGE:
                return sorted(found)
            page += 1

    def write(self, number: int, marker: str, text: str) -> str:
        """Write the one comment; a second one, which another job made at the same moment, is taken away again."""
        login = self.login()
        known = self.own_comments(number, marker, login)
        if not known:
            self.request("POST", f"{self._root}/{number}/comments", {"body": text})
            known = self.own_comments(number, marker, login)
            done = "written"
            if len(known) <= 1:
                return done
        self.request("PATCH", f"{self._root}/comments/{known[0]}", {"body": text})
        for second in known[1:]:
            self.request("DELETE", f"{self._root}/comments/{second}")
        return "written anew"


def main(path: str) -> int:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    if not isinstance(number, int):
        print("this is no pull request, so there is nothing to comment on")  # noqa: T201
        return 0
    text = Path(path).read_text(encoding="utf-8")
    address = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    github = GitHub(address, os.environ["GITHUB_REPOSITORY"], os.environ["GITHUB_TOKEN"])
    try:
        print(f"the comment was {github.write(number, text.partition(chr(10))[0], text)}")  # noqa: T201
    except (OSError, ValueError) as error:
        forks = "; the token of a pull request from a fork may not write" if "403" in str(error) else ""
        reason = " ".join(str(error).split())
        print(f"::warning title=Proctor::the comment could not be written: {reason}{forks}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
