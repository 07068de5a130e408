"""Naming code: `file.py:name` and `package.module:name`, run once, with mistakes said in the author's own terms."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import proctor
from proctor.base.errors import UsageError, is_user_file, one_line, user_location
from proctor.base.fingerprints import source_fingerprint
from proctor.base.references import find_file, is_reference, load_file, locate, resolve

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("app.py:agent", True),
        ("a/b/app.py:Class.method", True),
        ("package.module:name", True),
        ("/abs/app.py:agent", True),
        ("http://localhost:8000", False),
        ("https://host/path", False),
        ("C:name", False),
        ("app.py", False),
        ("app.py:", False),
        (":name", False),
        ("a::b", False),
        ("cmd: run", False),
        ("", False),
        (":", False),
    ],
)
def test_references_and_urls_are_distinguished(text: str, is_one: bool) -> None:
    assert is_reference(text) is is_one


def test_a_file_is_executed_once_and_its_state_is_shared(write: Write, tmp_path: Path) -> None:
    counting = "log.write_text((log.read_text() if log.exists() else '') + 'x')\n"
    text = f"import pathlib\nlog = pathlib.Path(__file__).with_name('log')\n{counting}"
    write("app.py", text + "state = []\ndef agent(q):\n    return q\n")
    agent = resolve("app.py:agent", tmp_path)
    resolve("app.py:state", tmp_path).append(1)
    assert resolve(f"{tmp_path}/app.py:agent") is agent
    assert resolve("../" + tmp_path.name + "/app.py:state", tmp_path) == [1]
    assert (tmp_path / "log").read_text() == "x"
    assert sys.modules[agent.__module__].agent is agent


def test_a_file_loaded_from_many_threads_is_executed_once(write: Write, tmp_path: Path) -> None:
    write("slow.py", "import threading\nbarrier = threading.Event()\nbarrier.wait(0.05)\nthing = object()\n")
    objects: list[object] = []
    threads = [threading.Thread(target=lambda: objects.append(resolve("slow.py:thing", tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, objects))) == 1


def test_dataclasses_and_models_of_a_file_resolve_their_annotations(write: Write, tmp_path: Path) -> None:
    write(
        "typed.py",
        "from __future__ import annotations\nimport dataclasses, typing\nimport pydantic\n"
        "class Word(str):\n    pass\n"
        "@dataclasses.dataclass\nclass Box:\n    word: Word\n"
        "class Model(pydantic.BaseModel):\n    inner: Inner | None = None\n"
        "class Inner(pydantic.BaseModel):\n    n: int\n"
        "hints = typing.get_type_hints(Box)\n",
    )
    assert resolve("typed.py:hints", tmp_path)["word"].__name__ == "Word"
    assert resolve("typed.py:Model", tmp_path)(inner={"n": 1}).inner.n == 1


def test_a_file_can_import_files_next_to_it(write: Write, tmp_path: Path) -> None:
    write("neighbour_of_app.py", "value = 7\n")
    write("app2.py", "from neighbour_of_app import value\n")
    assert resolve("app2.py:value", tmp_path) == 7


def test_files_are_looked_for_next_to_the_suite_and_then_in_the_working_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("suite/a.py", "where = 'suite'\n")
    write("cwd/a.py", "where = 'cwd'\n")
    write("cwd/b.py", "where = 'cwd'\n")
    monkeypatch.chdir(tmp_path / "cwd")
    assert resolve("a.py:where", tmp_path / "suite") == "suite"
    assert resolve("a.py:where") == "cwd"
    assert resolve("b.py:where", tmp_path / "suite") == "cwd"
    with pytest.raises(UsageError) as error:
        find_file("c.py", tmp_path / "suite")
    assert str(error.value) == f"no file 'c.py'; looked for {tmp_path}/suite/c.py, {tmp_path}/cwd/c.py"


def test_two_files_with_the_same_name_are_two_modules(write: Write, tmp_path: Path) -> None:
    first, second = write("x/app.py", "n = 1\n"), write("y/app.py", "n = 2\n")
    assert load_file(first) is not load_file(second)
    assert (load_file(first).n, load_file(second).n) == (1, 2)


def test_a_dotted_name_reaches_attributes(write: Write, tmp_path: Path) -> None:
    write("app.py", "class Bot:\n    class Inner:\n        value = 5\n    def answer(self): ...\n")
    assert resolve("app.py:Bot.Inner.value", tmp_path) == 5
    with pytest.raises(UsageError, match="'Bot' has no 'anwser'; did you mean 'answer'"):
        resolve("app.py:Bot.anwser", tmp_path)


def test_modules_are_imported_by_name(write: Write, tmp_path: Path) -> None:
    assert resolve("json:dumps.__name__") == "dumps"
    write("package_here/__init__.py", "")
    write("package_here/inner.py", "value = 3\n")
    assert resolve("package_here.inner:value", tmp_path) == 3
    with pytest.raises(UsageError, match="module nowhere_at_all could not be imported: ModuleNotFoundError"):
        resolve("nowhere_at_all:x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nraise RuntimeError('no\\n key')\n", ":2 could not be loaded: RuntimeError: no key"),
        ("x = 1\n\ndef f(:\n", ":3 could not be loaded: SyntaxError"),
        ("import sys\nsys.exit('bye')\n", ":2 could not be loaded: SystemExit: bye"),
        ("def f():\n    return 1 / 0\n\nf()\n", ":2 could not be loaded: ZeroDivisionError"),
        ("import nowhere_at_all\n", ":1 could not be loaded: ModuleNotFoundError"),
        ("x = '\\ud800'.encode()\n", ":1 could not be loaded: UnicodeEncodeError"),
    ],
)
def test_the_error_about_a_file_that_cannot_be_loaded_has_the_line(
    write: Write, tmp_path: Path, text: str, message: str
) -> None:
    path = write("app.py", text)
    with pytest.raises(UsageError) as error:
        resolve("app.py:x", tmp_path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_file_that_failed_to_load_is_loaded_again_once_it_is_fixed(write: Write, tmp_path: Path) -> None:
    write("app.py", "raise RuntimeError\n")
    with pytest.raises(UsageError):
        resolve("app.py:x", tmp_path)
    write("app.py", "x = 1  # mended, and of another length\n")
    assert resolve("app.py:x", tmp_path) == 1


def test_the_error_about_a_missing_name_suggests_a_similar_one(write: Write, tmp_path: Path) -> None:
    write("app.py", "def my_agent(q): ...\n")
    with pytest.raises(UsageError, match=r"app\.py has no 'my_agnet'; did you mean 'my_agent'"):
        resolve("app.py:my_agnet", tmp_path)
    for text in ("app.py", "app.py:", ":x", ""):
        with pytest.raises(UsageError, match="is not a reference"):
            resolve(text, tmp_path)


def test_a_module_attribute_that_raises_is_an_error_about_the_reference(write: Write, tmp_path: Path) -> None:
    write("lazy.py", "def __getattr__(name):\n    raise ImportError('install the extra')\n")
    with pytest.raises(UsageError, match="install the extra"):
        resolve("lazy.py:thing", tmp_path)


def test_the_fingerprint_of_code_changes_with_its_file(write: Write, tmp_path: Path) -> None:
    import functools

    path = write("app.py", "def f(): ...\ndef g(): ...\nclass C: ...\n")
    f, g, c = (resolve(f"app.py:{name}", tmp_path) for name in "fgC")
    before = source_fingerprint(f)
    assert before == source_fingerprint(functools.partial(f)) != source_fingerprint(g)
    assert source_fingerprint(c) == source_fingerprint(c())
    path.write_text("def f(): return 1\ndef g(): ...\nclass C: ...\n")
    assert source_fingerprint(f) != before


def test_an_exception_is_described_in_one_line() -> None:
    assert one_line(ValueError("a\n  b\tc")) == "ValueError: a b c"
    assert one_line(ValueError()) == "ValueError"


def test_an_error_raised_inside_proctor_has_the_line_of_the_users_call(write: Write, tmp_path: Path) -> None:
    write(
        "app.py",
        "from proctor.cases.suite import EvaluatorSpec\n"
        "from proctor.evaluators.registry import resolve_evaluator\n\n"
        "def call():\n"
        "    resolve_evaluator(EvaluatorSpec('no such evaluator'))\n",
    )
    call = resolve("app.py:call", tmp_path)
    with pytest.raises(UsageError) as raised:
        call()
    assert user_location(raised.value) == " (app.py:5)"


def test_code_is_located_without_being_run(write: Write, tmp_path: Path) -> None:
    path = write("marks.py", "raise SystemExit('run')\n\ndef agent(q): ...\n\nif True:\n    check, other = 1, 2\n")
    assert locate("marks.py:agent", tmp_path) == locate("marks:check", tmp_path) == path
    with pytest.raises(UsageError, match=r"marks\.py has no 'agnet'; did you mean 'agent'\?"):
        locate("marks.py:agnet", tmp_path)
    with pytest.raises(UsageError, match="no file 'missing"):
        locate("missing.py:agent", tmp_path)
    with pytest.raises(UsageError, match="module missing_module could not be found"):
        locate("missing_module:agent", tmp_path)
    assert locate("math:floor") is None


def test_a_file_with_dynamic_names_is_located(write: Write, tmp_path: Path) -> None:
    path = write("late.py", "def __getattr__(name): ...\n")
    assert locate("late.py:anything", tmp_path) == path
    write("broken.py", "def agent(:\n")
    with pytest.raises(UsageError, match=r"broken\.py:1 could not be loaded: SyntaxError"):
        locate("broken.py:agent", tmp_path)


def test_code_next_to_proctor_or_below_the_prefix_of_python_is_user_code(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(proctor.__file__).parent
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert is_user_file(f"{package}_demo/agent.py")
    assert is_user_file("/usr/src/app/agent.py")
    assert not is_user_file(str(package / "api.py"))
    assert not is_user_file(json.__file__)
    assert not is_user_file(pytest.__file__)
    assert not is_user_file("<string>")


def test_an_edit_within_the_same_second_and_of_the_same_length_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "agent.py"
    for answer in (1, 2):
        file.write_text(f"answer = {answer}\n", encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        module = load_file(file)
        assert module.answer == answer
        del sys.modules[module.__name__]
