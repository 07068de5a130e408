"""The command `proctor acme-hello`."""

from __future__ import annotations

import click


@click.command("acme-hello")
@click.option("--name", default="you", help="Whom to greet.")
def command(name: str) -> int:
    """Greet from Acme."""
    click.echo(f"Acme says hello to {name}")
    return 0
