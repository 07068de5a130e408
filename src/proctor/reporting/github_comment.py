"""The comment of the GitHub action on a pull request.

There is one comment for each marker, however often the action runs: it is found by its first line and edited. Two jobs
may look for it at the same moment, find none, and both post one; so after posting, the list is read again and every
comment but the oldest is deleted.

`python -m proctor.reporting.github_comment FILE` reads the number of the pull request from GITHUB_EVENT_PATH, and uses
GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_TOKEN, which every step of GitHub Actions has. The first line of FILE is
the marker. A comment that cannot be written is a warning, not a failure: the verdict does not depend on comments.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import click

PAGE_SIZE = 100
ACTIONS_LOGIN = "github-actions[bot]"
"""The author of comments that the token of GitHub Actions writes."""


class GitHub:
    """The requests to GitHub's API that a comment needs."""

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
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            text = response.read()
        return json.loads(text) if text else None

    def login(self) -> str:
        """The account that the token belongs to. The token of GitHub Actions may not ask for it."""
        try:
            return str(self.request("GET", f"{self._address}/user")["login"])
        except urllib.error.HTTPError:
            return ACTIONS_LOGIN

    def own_comments(self, number: int, marker: str, login: str) -> list[int]:
        """The ids of the comments by `login` that begin with the marker, the oldest first."""
        ids: list[int] = []
        page = 1
        while True:
            url = f"{self._root}/{number}/comments?per_page={PAGE_SIZE}&page={page}"
            comments = self.request("GET", url)
            ids += [
                comment["id"]
                for comment in comments
                if (comment.get("body") or "").startswith(marker) and (comment.get("user") or {}).get("login") == login
            ]
            if len(comments) < PAGE_SIZE:
                return sorted(ids)
            page += 1

    def write_comment(self, number: int, marker: str, text: str) -> None:
        """Post the comment, or edit the one that is there; delete a second one that another job posted meanwhile."""
        login = self.login()
        ids = self.own_comments(number, marker, login)
        if not ids:
            self.request("POST", f"{self._root}/{number}/comments", {"body": text})
            ids = self.own_comments(number, marker, login)
            if len(ids) <= 1:
                return
        self.request("PATCH", f"{self._root}/comments/{ids[0]}", {"body": text})
        for second in ids[1:]:
            self.request("DELETE", f"{self._root}/comments/{second}")


def main(path: str) -> int:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    if not isinstance(number, int):
        click.echo("this event is not about a pull request; no comment written")
        return 0
    text = Path(path).read_text(encoding="utf-8")
    address = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    github = GitHub(address, os.environ["GITHUB_REPOSITORY"], os.environ["GITHUB_TOKEN"])
    try:
        github.write_comment(number, text.partition("\n")[0], text)
        click.echo("the comment was written")
    except (OSError, ValueError) as error:
        forbidden = isinstance(error, urllib.error.HTTPError) and error.code == 403
        forks = "; the token needs the permission `pull-requests: write`, which pull requests from forks do not have"
        hint = forks if forbidden else ""
        reason = " ".join(str(error).split())
        click.echo(f"::warning title=Proctor::the comment could not be written: {reason}{hint}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
