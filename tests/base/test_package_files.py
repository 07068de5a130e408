"""Files inside packages, loaded by their path: relative imports work as when the package is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.base.errors import UsageError
from proctor.base.references import resolve

Write = Callable[..., None]


@pytest.fixture(autouse=True)
def clean_modules() -> Iterator[None]:
    modules, path = dict(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_files(**files: str) -> None:
        for name, content in files.items():
            path = tmp_path.joinpath(*name.split("__"))
            path = path.with_name(path.name.replace("init", "__init__") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return write_files


def agent_of(reference: str, folder: Path) -> Any:
    return resolve(reference, folder)("hi")


HELP = "ANSWER = 'from help'\n"


@pytest.mark.parametrize("with_init", [True, False], ids=["regular", "namespace"])
def test_relative_imports_work_in_a_file_named_by_its_path(write: Write, tmp_path: Path, with_init: bool) -> None:
    write(
        mypkg__inner__main="from .help import ANSWER\nfrom ..other import more\n\n"
        "def agent(q):\n    return ANSWER + more(q)\n",
        mypkg__inner__help=HELP,
        mypkg__other="from .deep.er import E\n\ndef more(q):\n    return E + q\n",
        mypkg__deep__er="E = ' and other '\n",
    )
    if with_init:
        write(mypkg__init="", mypkg__inner__init="", mypkg__deep__init="")
    assert agent_of("mypkg/inner/main.py:agent", tmp_path) == "from help and other hi"
    run = proctor.run(
        [{"id": "a", "input": "hi", "expected": "from help and other hi"}],
        str(tmp_path / "mypkg/inner/main.py") + ":agent",
    )
    assert run.passed, run.reason


def test_a_folder_without_init_inside_a_package_belongs_to_it(write: Write, tmp_path: Path) -> None:
    write(
        mypkg__init="NAME = 'top'\n",
        mypkg__inner__main="from .help import ANSWER\n\ndef agent(q):\n    return ANSWER\n",
        mypkg__inner__help="from .. import NAME\nANSWER = NAME\n",
    )
    assert agent_of("mypkg/inner/main.py:agent", tmp_path) == "top"


def test_relative_and_absolute_imports_find_the_same_modules(write: Write, tmp_path: Path) -> None:
    write(
        shop__init="",
        shop__state="RUNS = []\nRUNS.append(1)\n",
        shop__main="from .state import RUNS\nfrom shop.state import RUNS as SAME\nimport shop.main\n\n"
        "def agent(q):\n    return RUNS is SAME and len(RUNS) == 1 and shop.main.agent is agent\n",
    )
    assert agent_of("shop/main.py:agent", tmp_path) is True


def test_two_packages_of_one_name_are_two_packages(write: Write, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(
            **{
                f"{folder}__bot__init": "",
                f"{folder}__bot__main": "from .help import ANSWER\n\ndef agent(q):\n    from .late import LATE\n"
                "    return ANSWER + LATE\n",
                f"{folder}__bot__help": f"ANSWER = '{folder} '\n",
                f"{folder}__bot__late": f"LATE = '{folder}'\n",
            }
        )
    first, second = resolve("bot/main.py:agent", tmp_path / "one"), resolve("bot/main.py:agent", tmp_path / "two")
    assert (first(""), second(""), first("")) == ("one one", "two two", "one one")


def test_a_package_that_is_named_like_an_installed_one_hides_nothing(write: Write, tmp_path: Path) -> None:
    write(
        httpx2__main="from .help import ANSWER\nimport httpx2\n\n"
        "def agent(q):\n    return ANSWER + httpx2.Client.__name__\n",
        httpx2__help=HELP,
        json__main="from .help import ANSWER\nimport json\n\ndef agent(q):\n    return json.dumps(ANSWER)\n",
        json__help=HELP,
    )
    assert agent_of("httpx2/main.py:agent", tmp_path) == "from helpClient"
    assert agent_of("json/main.py:agent", tmp_path) == '"from help"'


def test_a_folder_whose_name_is_no_identifier_is_a_package_too(write: Write, tmp_path: Path) -> None:
    (tmp_path / "my-agent.v2").mkdir()
    (tmp_path / "my-agent.v2/main.py").write_text("from .help import ANSWER\n\ndef agent(q):\n    return ANSWER\n")
    (tmp_path / "my-agent.v2/help.py").write_text(HELP)
    assert agent_of("my-agent.v2/main.py:agent", tmp_path) == "from help"


def test_a_package_itself_can_be_named(write: Write, tmp_path: Path) -> None:
    write(mypkg__init="from .help import ANSWER\n\ndef agent(q):\n    return ANSWER\n", mypkg__help=HELP)
    assert agent_of("mypkg/__init__.py:agent", tmp_path) == "from help"


def test_a_file_is_executed_once_however_it_is_named(write: Write, tmp_path: Path) -> None:
    write(mypkg__init="", mypkg__main="from . import help\n\ndef agent(q):\n    return help.ANSWER\n", mypkg__help=HELP)
    assert resolve("mypkg/main.py:agent", tmp_path) is resolve(f"{tmp_path}/mypkg/main.py:agent")
    assert resolve("mypkg.main:agent", tmp_path) is resolve("mypkg/main.py:agent", tmp_path)


def test_a_module_that_is_missing_is_named_with_the_line(write: Write, tmp_path: Path) -> None:
    write(mypkg__init="", mypkg__main="\nfrom .halp import ANSWER\n", mypkg__help=HELP)
    with pytest.raises(UsageError, match=r"main\.py:2 could not be loaded: ModuleNotFoundError.*mypkg\.halp"):
        resolve("mypkg/main.py:agent", tmp_path)
    write(mypkg__main="from .help import ANSWER\n\ndef agent(q):\n    return ANSWER\n")
    assert agent_of("mypkg/main.py:agent", tmp_path) == "from help"


def test_a_plain_import_of_a_file_with_relative_imports_says_what_to_write(write: Write, tmp_path: Path) -> None:
    write(
        mypkg__main="import helper\n\ndef agent(q):\n    return 1\n",
        mypkg__helper="from .words import W\n",
        mypkg__words="W = 1\n",
    )
    with pytest.raises(UsageError, match=r"helper\.py has relative imports, so import it .*: from \.helper import"):
        resolve("mypkg/main.py:agent", tmp_path)
