"""Runs on a scheduler that is there already, with Dask's own commands as a user starts them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.running.cluster.options import check_cluster_options
from proctor.running.settings import ClusterOptions

pytestmark = pytest.mark.process

Command = Callable[..., Any]

AGENT = """
import os
import pathlib


def agent(question):
    return f"{question} from {pathlib.Path(__file__).parent} by {os.getpid()}"
"""
SUITE = "agent: place.py:agent\ncases:\n  - {id: one, input: hello, expected: {contains: [hello]}}\n"
KEY = "sk-never-to-be-shown-1234567890"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


HOSTILE = """
import pickle
from pathlib import Path

from proctor.running.cluster import agent_host


class Hostile:
    def __reduce__(self):
        return (Path.touch, (Path({marker!r}),))


async def send(self, key, turn):
    return Hostile()


async def call(self, number, method, arguments):
    return Hostile() if method == "send" else await agent_host.original(self, number, method, arguments)


original = getattr(agent_host.AgentHost, "call", None)
if original is not None and original.__module__ == agent_host.__name__:  # Dask may run this file twice
    agent_host.AgentHost.call, agent_host.original = call, original
agent_host.AgentHost.send = send
"""


async def workers_joined(address: str, tls: dict[str, str], count: int) -> None:
    from distributed import Client, Security

    files = {"tls_ca_file": "--tls-ca-file", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
    security = Security(**{name: tls[option] for name, option in files.items()}) if tls else None  # type: ignore[no-untyped-call]
    async with Client(address, security=security, asynchronous=True, set_as_default=False, timeout=60) as client:  # type: ignore[no-untyped-call]
        await client.wait_for_workers(count, timeout=60)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def cluster(folder: Path, protocol: str = "tcp", *tls: str, preload: Path | None = None) -> Iterator[str]:
    """A scheduler and one worker, as processes of their own that were started in another folder than the run.

    With `preload`, there is another worker that runs this file first.
    """
    address = f"{protocol}://127.0.0.1:{free_port()}"
    quiet = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false", "SOME_API_KEY": KEY}
    commands = [
        ["dask_scheduler", "--host", address, "--no-dashboard", *tls],
        ["dask_worker", address, "--host", "127.0.0.1", "--no-dashboard", "--no-nanny", "--nthreads", "1", *tls],
    ]
    if preload is not None:
        commands.append([*commands[1], "--name", "rogue", "--preload", str(preload)])
    commands[1] += ["--name", "bench"]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", *arguments],
            cwd=folder,
            env=os.environ | quiet,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name, *arguments in commands
    ]
    try:
        asyncio.run(workers_joined(address, dict(zip(tls[::2], tls[1::2], strict=True)), len(started) - 1))
        yield address
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGKILL)
            process.wait(30)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("elsewhere")) as address:
        yield address


@pytest.fixture
def place(project: Path) -> Path:
    (project / "place.py").write_text(AGENT, encoding="utf-8")
    (project / "place.yaml").write_text(SUITE, encoding="utf-8")
    return project


def said(folder: Path) -> str:
    (trial,) = json.loads((folder / "report.json").read_text(encoding="utf-8"))["trials"]
    return str(trial["replies"][0]["text"])


def test_workers_of_a_scheduler_ask_the_agent_of_the_same_folder(proctor: Command, place: Path, scheduler: str) -> None:
    ended = proctor("test", "place.yaml", "--cluster", scheduler, "--json", "report.json")

    assert ended.code == 0, ended.out + ended.err
    assert str(place) in said(place)
    assert f"by {os.getpid()}" not in said(place)


def test_uploaded_code_is_run_from_where_it_was_put(proctor: Command, place: Path, scheduler: str) -> None:
    ended = proctor("test", "place.yaml", "--cluster", scheduler, "--upload", "--json", "report.json")

    assert ended.code == 0, ended.out + ended.err
    assert str(place) not in said(place)
    assert not Path(said(place).split(" from ")[1].split(" by ")[0]).exists()


def test_doctor_says_of_each_worker_what_it_has_and_of_keys_only_the_names(
    proctor: Command, place: Path, scheduler: str
) -> None:
    ended = proctor("doctor", "place.yaml", "--load", "--cluster", scheduler)

    assert ended.code == 0, ended.out + ended.err
    assert "worker bench: ready" in ended.out
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in ended.out
    assert "SOME_API_KEY" in ended.out
    assert KEY not in ended.out
    assert "distributed" in ended.out


def test_doctor_says_which_worker_cannot_use_the_agent_and_why(proctor: Command, project: Path, scheduler: str) -> None:
    (project / "own.py").write_text(
        "import os\n\nclass Agent:\n    name = 'own'\n    fingerprint = f'process {os.getpid()}'\n"
        "    def session(self, case): ...\n\nagent = Agent()\n",
        encoding="utf-8",
    )
    (project / "own.yaml").write_text(SUITE.replace("place.py", "own.py"), encoding="utf-8")
    ended = proctor("doctor", "own.yaml", "--load", "--cluster", scheduler)

    assert ended.code == 2
    assert f"here process {os.getpid()}" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "2", "--cluster", "tcp://127.0.0.1:9"], "--cluster cannot be combined"),
        (["--cluster", "localhost"], "is not the address of a scheduler"),
        (["--workers", "2", "--upload"], "need --cluster"),
        (["--upload"], "--upload needs --cluster"),
        (["--workers", "2", "--isolate"], "cannot be combined with --workers"),
        (["--cluster", "tcp://127.0.0.1:9", "--tls-ca", "ca.pem"], "need a scheduler at tls://"),
        (["--cluster", "tls://127.0.0.1:9", "--tls-ca", "ca.pem"], "no such file"),
        (["--cluster", "tcp://8.8.8.8:8786"], "public address (8.8.8.8) without TLS"),
        (["--cluster", "tcp://[2001:4860:4860::8888]:8786"], "allow_plain_tcp = true"),
        (["--rate", "0"], "0"),
    ],
)
def test_options_that_do_not_fit_together_are_refused_before_anything_starts(
    proctor: Command, place: Path, arguments: list[str], message: str
) -> None:
    ended = proctor("test", "place.yaml", *arguments)

    assert ended.code == 2
    assert message in ended.err
    assert not (place / ".proctor").exists()


def test_score_on_workers_is_accepted_and_said_to_have_no_effect(proctor: Command, place: Path) -> None:
    ended = proctor("test", "place.yaml", "--score-on-workers")

    assert ended.code == 0
    assert "--score-on-workers has no effect" in ended.err
    assert "--score-on-workers" not in proctor("test", "--help").out


def test_a_scheduler_that_is_not_there_is_said_and_leaves_no_run_behind(
    proctor: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.running.cluster.connection.CONNECT_SECONDS", 0.3)
    ended = proctor("test", "place.yaml", "--cluster", f"tcp://127.0.0.1:{free_port()}")

    assert ended.code == 2
    assert "cannot connect to the scheduler at tcp://127.0.0.1:" in ended.err
    assert "20" not in proctor("runs").out


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with the openssl command")
def test_a_scheduler_behind_tls_is_reached_with_the_certificates_that_are_given(proctor: Command, place: Path) -> None:
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem".split(),
        check=True,
        capture_output=True,
    )
    files = [str(place / name) for name in ("cert.pem", "cert.pem", "key.pem")]
    with cluster(place, "tls", "--tls-ca-file", files[0], "--tls-cert", files[1], "--tls-key", files[2]) as address:
        given = ["--tls-ca", files[0], "--tls-cert", files[1], "--tls-key", files[2]]
        ended = proctor("test", "place.yaml", "--cluster", address, *given)
        assert ended.code == 0, ended.out + ended.err
        assert "note: set tls_ca, tls_cert, tls_key under [tool.proctor.cluster]" in ended.err
        (place / "proctor.toml").write_text(
            "[cluster]\ntls_ca = 'cert.pem'\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n"
        )
        ended = proctor("test", "place.yaml", "--cluster", address)

    assert ended.code == 0, ended.out + ended.err
    assert "note:" not in ended.err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with the openssl command")
def test_a_scheduler_whose_certificate_is_a_strangers_is_refused(proctor: Command, place: Path) -> None:
    for name in ("own", "stranger"):
        options = f"-subj /CN={name} -keyout {name}-key.pem -out {name}.pem"
        subprocess.run(
            f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {options}".split(), check=True, capture_output=True
        )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("stranger.pem", "stranger-key.pem")
    (place / "proctor.toml").write_text(
        "[cluster]\ntls_ca = 'own.pem'\ntls_cert = 'own.pem'\ntls_key = 'own-key.pem'\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:

        def accept() -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(server.accept()[0], server_side=True).close()

        threads.submit(accept)
        ended = proctor("test", "place.yaml", "--cluster", f"tls://127.0.0.1:{server.getsockname()[1]}")

    assert ended.code == 2
    assert "certificate" in ended.err.lower()


def test_which_addresses_need_tls() -> None:
    def accepted(address: str, **options: bool) -> bool:
        try:
            check_cluster_options(ClusterOptions(address=f"{address}:8786", **options))
        except UsageError:
            return False
        return True

    private = ["localhost", "127.0.0.1", "10.0.0.5", "172.16.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1"]
    assert [host for host in [*private, "[::1]", "[fd00::1]", "[fe80::1]"] if not accepted(f"tcp://{host}")] == []
    public = ["8.8.8.8", "172.32.0.1", "[2001:4860:4860::8888]"]
    assert [host for host in public if accepted(f"tcp://{host}")] == []
    assert all(accepted(f"tls://{host}") and accepted(f"tcp://{host}", allow_plain_tcp=True) for host in public)


def test_a_worker_that_answers_with_a_pickle_runs_nothing_here_and_is_not_used_any_more(
    proctor: Command, place: Path
) -> None:
    (place / "rogue.py").write_text(HOSTILE.format(marker=str(place / "unpickled")), encoding="utf-8")
    cases = "".join(f"  - {{id: c{n}, input: hello {n}, expected: {{contains: [hello {n}]}}}}\n" for n in range(4))
    (place / "place.yaml").write_text(f"agent: place.py:agent\ncases:\n{cases}", encoding="utf-8")
    with cluster(place, preload=place / "rogue.py") as address:
        ended = proctor("test", "place.yaml", "--cluster", address, "-j", "1", "--json", "report.json")

    assert not (place / "unpickled").exists()
    assert ended.code == 0, ended.out + ended.err
    notes = [line for line in (ended.out + ended.err).splitlines() if "rogue" in line]
    assert len(notes) == 1
    assert "it sent a result that is not data" in notes[0]
