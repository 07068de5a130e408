"""`proctor view`: runs, cases, traces and grading in the browser."""

from __future__ import annotations

import click

from proctor.base.errors import UsageError
from proctor.base.installation import install_command
from proctor.cli.grade import reviewer_name
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.options import store_option
from proctor.cli.output import say
from proctor.config import read_configuration
from proctor.viewer.sources import open_sources


@click.command("view", cls=DocumentedCommand, examples=("proctor view", "proctor view last --no-open"))
@click.argument("named", metavar="[RUN|STORE|FILE]...", nargs=-1)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on (default: 127.0.0.1). On any other address, pages need a token.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on (default: any free port)."
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@store_option
def command(named: tuple[str, ...], host: str, port: int, no_open: bool, store: str | None) -> int:
    """Browse runs in the browser: those of the store, or the named runs, stores, exported runs and baselines.

    Only this machine can connect unless --host names another address. Ctrl-C stops the server.
    """
    try:
        from proctor.viewer.server import serve  # the extra `view` may not be installed
    except ImportError as error:
        raise UsageError(f"the viewer needs more packages: {install_command('view')} ({error})") from None
    sources = open_sources(named, read_configuration().store(store))
    try:
        serve(sources, host, port, open_browser=not no_open, say=say, person=reviewer_name(None))
    except KeyboardInterrupt:
        pass
    finally:
        sources.close()
    return 0
