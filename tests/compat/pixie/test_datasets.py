from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import InvalidSuite, UsageError
from proctor.base.json_data import UNSET
from proctor.cases.formats.loading import load
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.compat.pixie.datasets import DatasetStore, file_stem, read_dataset, write_data
from proctor.evaluators.evaluable import Evaluable


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return DatasetStore(tmp_path / "datasets")


def question(text: str = "Hello", **rest: Any) -> Evaluable:
    return Evaluable(eval_input=[NamedData("question", text)], **rest)


def saved(store: DatasetStore, name: str) -> Any:
    path = store.get(name).path
    assert path is not None
    return json.loads(path.read_text(encoding="utf-8"))


def write(store: DatasetStore, file: str, data: Any) -> Path:
    store.folder.mkdir(parents=True, exist_ok=True)
    path = store.folder / file
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_a_new_dataset_is_empty_and_named(store: DatasetStore) -> None:
    made = store.create("Customer FAQ!", runnable="app.py:App", evaluators=["ExactMatch"])
    assert made.path == store.folder / "customer-faq.json"
    assert (made.name, made.items, made.runnable) == ("Customer FAQ!", (), "app.py:App")
    assert made.evaluators == (EvaluatorSpec("ExactMatch"),)
    assert store.get("Customer FAQ!") == made
    assert store.list() == ["Customer FAQ!"]


def test_what_is_appended_is_a_suite_that_runs(store: DatasetStore) -> None:
    store.create("faq", evaluators=["ExactMatch"])
    store.append("faq", question(expectation="Hi", eval_metadata={"tone": "warm"}))
    [suite] = load([store.folder / "faq.json"])
    [case] = suite.cases
    assert case.turns[0].input == {"question": "Hello"}
    assert case.inputs == (NamedData("question", "Hello"),)
    assert case.turns[0].expected.output == "Hi"
    assert case.metadata == {"tone": "warm"}
    [entry] = saved(store, "faq")["entries"]
    assert list(entry) == ["entry_kwargs", "description", "eval_input", "expectation", "eval_metadata"]


def test_what_is_appended_comes_back(store: DatasetStore) -> None:
    store.create("faq")
    whole = Evaluable(
        eval_input=(NamedData("a", 1), NamedData("b", [None])),
        eval_output=(NamedData("answer", {"x": "y"}),),
        expectation=None,
        eval_metadata={"m": True},
        description="Whole",
    )
    bare = question(description="Bare")
    assert store.append("faq", whole, bare).items == (
        whole,
        Evaluable((NamedData("question", "Hello"),), (), UNSET, None, "Bare"),
    )


def test_an_expectation_of_nothing_is_not_the_lack_of_one(store: DatasetStore) -> None:
    store.create("faq")
    items = store.append("faq", question(expectation=None), question()).items
    assert [item.expectation for item in items] == [None, UNSET]


def test_appending_keeps_everything_that_the_file_says(store: DatasetStore) -> None:
    before = {
        "x-owner": "support",
        "name": "faq",
        "runnable": "app.py:App",
        "evaluators": ["ExactMatch", {"Contains": {"any": ["a"], "threshold": 0.8}}],
        "purpose": "unknown here",
        "entries": [
            {"entry_kwargs": {"q": 1}, "eval_input": [{"name": "q", "value": 1}], "description": "one", "note": "ours"}
        ],
    }
    write(store, "faq.json", before)
    store.append("faq", question())
    after = saved(store, "faq")
    assert {**after, "entries": after["entries"][:1]} == before
    assert list(after) == list(before)
    assert len(after["entries"]) == 2


def test_entry_kwargs_are_an_object_input_itself_or_the_inputs_by_name_or_as_said(store: DatasetStore) -> None:
    store.create("faq")
    spread = Evaluable(eval_input=[NamedData("input", {"question": "Hi", "user": 3})])
    several = Evaluable(eval_input=[NamedData("question", "Hi"), NamedData("profile", {"vip": True})])
    store.append("faq", spread, several)
    store.append("faq", several, entry_kwargs={"question": "said"})
    assert [row["entry_kwargs"] for row in saved(store, "faq")["entries"]] == [
        {"question": "Hi", "user": 3},
        {"question": "Hi", "profile": {"vip": True}},
        {"question": "said"},
    ]


def test_entries_can_have_evaluators_of_their_own(store: DatasetStore) -> None:
    store.create("faq", evaluators=["ExactMatch"])
    store.append("faq", question(description="one"), evaluators=["...", {"Contains": {"any": ["a"]}}])
    store.append("faq", question(description="two"), evaluators=["ValidJSON"])
    [suite] = load([store.folder / "faq.json"])
    assert [[spec.name for spec in case.evaluators or ()] for case in suite.cases] == [
        ["ExactMatch", "Contains"],
        ["ValidJSON"],
    ]


@pytest.mark.parametrize(
    ("value", "description"),
    [
        ("Hello", "Hello"),
        ("two\n lines", "two lines"),
        ("", "question"),
        ({"a": 1}, '{"a": 1}'),
        ("x" * 99, "x" * 79 + "…"),
    ],
)
def test_an_entry_without_a_description_is_described_by_its_input(
    store: DatasetStore, value: Any, description: str
) -> None:
    store.create("faq")
    [item] = store.append("faq", Evaluable(eval_input=[NamedData("question", value)])).items
    assert item.description == description


def test_an_entry_without_input_is_refused_and_nothing_is_written(store: DatasetStore) -> None:
    store.create("faq")
    with pytest.raises(ValueError, match="at least one eval_input"):
        store.append("faq", question(), Evaluable())
    assert store.get("faq").items == ()


def test_an_input_given_twice_is_refused(store: DatasetStore) -> None:
    store.create("faq")
    with pytest.raises(ValueError, match="two eval_input named 'a'"):
        store.append("faq", Evaluable(eval_input=[NamedData("a", 1), NamedData("a", 2)]))


@pytest.mark.parametrize(
    "rows",
    [
        {"items": [{"eval_input": "q", "expected_output": "a", "description": "d", "eval_output": "seen"}]},
        {"entries": [{"entry_kwargs": {"q": 1}, "test_case": {"eval_input": [], "description": "d"}}]},
        {"entries": [{"input_data": {"q": 1}, "description": "d"}]},
        {"entries": [{"entry_kwargs": {"q": 1}, "eval_input": [{"name": "q", "value": 1}], "description": "d"}]},
    ],
)
def test_every_generation_is_read_and_can_be_added_to(store: DatasetStore, rows: Any) -> None:
    path = write(store, "old.json", {"evaluators": ["ExactMatch"], **rows})
    assert len(store.get("old").items) == 1
    assert len(store.append("old", question()).items) == 2
    [suite] = load([path])
    assert len(suite.cases) == 2


def test_a_dataset_of_a_later_generation_stays_one(store: DatasetStore) -> None:
    write(store, "new.json", {"entries": [{"input_data": {"q": 1}, "description": "d"}]})
    store.append("new", question())
    assert saved(store, "new")["entries"][1]["input_data"] == {"question": "Hello"}


def test_a_recorded_output_of_the_first_generation_is_the_items_output(store: DatasetStore) -> None:
    write(store, "old.json", {"items": [{"eval_input": "q", "description": "d", "eval_output": ["seen"]}]})
    [item] = store.get("old").items
    assert item.eval_input == [NamedData("input", "q")]
    assert item.eval_output == [NamedData("output", ["seen"])]


def test_entries_are_removed_by_index(store: DatasetStore) -> None:
    store.create("faq")
    store.append("faq", *(question(text) for text in "abc"))
    assert [item.description for item in store.remove("faq", 1).items] == ["a", "c"]


@pytest.mark.parametrize("index", [-1, 1, 99])
def test_an_entry_that_is_not_there_cannot_be_removed(store: DatasetStore, index: int) -> None:
    store.create("faq")
    store.append("faq", question())
    with pytest.raises(IndexError):
        store.remove("faq", index)
    assert len(store.get("faq").items) == 1


def test_removing_the_last_entry_leaves_a_dataset_that_can_be_read(store: DatasetStore) -> None:
    write(store, "faq.json", {"x-owner": 1, "entries": [{"input_data": {}, "description": "d"}]})
    assert store.remove("faq", 0).items == ()
    assert store.get("faq").items == ()


def test_a_deleted_dataset_is_gone(store: DatasetStore) -> None:
    store.create("faq")
    store.delete("faq")
    assert store.list() == []
    with pytest.raises(FileNotFoundError, match=r"^Dataset not found: 'faq'; looked in .*, which has no datasets$"):
        store.delete("faq")


@pytest.mark.parametrize("name", ["nope", "", "日本語", "../outside", "/etc/passwd", "a\0b", "x" * 5000, "\ud800"])
def test_a_dataset_that_is_not_there_is_not_found(store: DatasetStore, name: str) -> None:
    store.folder.mkdir()
    (store.folder.parent / "outside.json").write_text('{"name": "../outside", "entries": []}')
    for call in (store.get, store.delete, store.append, lambda n: store.remove(n, 0)):
        with pytest.raises(FileNotFoundError) as caught:
            call(name)
        assert str(caught.value).startswith(f"Dataset not found: {name!r}; looked in {store.folder}")


@pytest.mark.parametrize("name", ["", "  ", "日本語", "../..", "\0", "x" * 201])
def test_a_name_without_a_file_name_in_it_is_refused(store: DatasetStore, name: str) -> None:
    with pytest.raises(ValueError):
        store.create(name)
    assert store.list() == []


@given(st.text())
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    try:
        made = file_stem(name)
    except ValueError:
        return
    assert Path("folder", f"{made}.json").resolve().parent == Path("folder").resolve()
    assert made and set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize("again", ["faq", "FAQ", "f.a.q"])
def test_a_dataset_is_not_created_twice(store: DatasetStore, again: str) -> None:
    store.create("faq" if again != "f.a.q" else "F A Q")
    with pytest.raises(FileExistsError, match=r"^Dataset already exists: "):
        store.create(again)


def test_a_dataset_is_found_by_the_name_in_its_file(store: DatasetStore) -> None:
    path = write(store, "v2.json", {"name": "faq", "entries": [{"input_data": {}, "description": "d"}]})
    assert store.get("faq").path == path
    assert store.get("v2").path == path
    with pytest.raises(FileExistsError):
        store.create("faq")


def test_what_cannot_be_read_is_left_out_of_lists_and_said_when_asked_for(store: DatasetStore) -> None:
    store.create("good")
    write(store, "broken.json", "{")
    write(store, "other.json", {"hello": 1})
    write(store, "bad.json", {"entries": [{"description": 3}]})
    write(store, ".hidden.json", {"name": "hidden", "entries": []})
    assert store.list() == ["good"]
    for name in ("broken", "other", "bad"):
        with pytest.raises(InvalidSuite):
            store.get(name)


def test_a_file_with_mistakes_is_not_added_to(store: DatasetStore) -> None:
    path = write(store, "bad.json", {"entries": [{"input_data": {}, "description": " "}]})
    before = path.read_bytes()
    with pytest.raises(InvalidSuite, match="must not be blank"):
        store.append("bad", question())
    assert path.read_bytes() == before


def test_details_say_how_many_rows_and_when_they_changed(store: DatasetStore) -> None:
    store.create("faq")
    store.append("faq", question(), question())
    [details] = store.list_details()
    assert (details.name, details.row_count, details.path) == ("faq", 2, store.folder / "faq.json")
    assert len(details.updated_at) == len("2026-04-21 09:30:00")


def test_the_folder_is_given_or_said_by_the_environment_or_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_DATASET_DIR", raising=False)
    monkeypatch.delenv("PIXIE_DATASET_DIR", raising=False)
    assert DatasetStore().folder == Path("datasets")
    monkeypatch.setenv("PIXIE_DATASET_DIR", "theirs")
    assert DatasetStore().folder == Path("theirs")
    monkeypatch.setenv("PROCTOR_DATASET_DIR", "ours")
    assert DatasetStore().folder == Path("ours")
    assert DatasetStore("given").folder == Path("given")


def test_evaluators_that_name_none_are_refused_before_anything_is_written(store: DatasetStore) -> None:
    for wrong in ("", "...", {}, {"A": {}, "B": {}}, 3):
        with pytest.raises(UsageError):
            store.create("faq", evaluators=[wrong])  # type: ignore[list-item]
    assert store.list() == []


def test_values_that_json_has_no_word_for_are_written_all_the_same(store: DatasetStore) -> None:
    store.create("faq")
    odd = {"nan": float("nan"), "half": "\ud800", "set": {2, 1}, "path": Path("x"), "big": 10**30}
    [item] = store.append("faq", Evaluable(eval_input=[NamedData("odd", odd)])).items
    assert item.input == {"nan": "nan", "half": "\ud800", "set": [1, 2], "path": "x", "big": 10**30}


def test_many_at_once_lose_nothing(store: DatasetStore) -> None:
    store.create("faq")
    threads = [threading.Thread(target=store.append, args=("faq", question(str(number)))) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(item.input) for item in store.get("faq").items) == list(range(20))
    assert [path.name for path in store.folder.iterdir()] == ["faq.json"]


@pytest.mark.process
def test_two_programs_that_append_at_the_same_time_lose_nothing(store: DatasetStore) -> None:
    store.create("faq")
    code = (
        "import sys; from proctor import DatasetStore, Evaluable, NamedData\n"
        "for number in range(20):\n"
        "    question = Evaluable(eval_input=(NamedData('question', f'{sys.argv[2]} {number}'),))\n"
        "    DatasetStore(sys.argv[1]).append('faq', question)\n"
    )
    programs = [subprocess.Popen([sys.executable, "-c", code, str(store.folder), name]) for name in ("a", "b")]
    assert [program.wait(120) for program in programs] == [0, 0]
    assert len(store.get("faq").items) == 40


def test_a_write_that_fails_leaves_the_old_file(store: DatasetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("faq")
    path = store.folder / "faq.json"
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(Exception, match="cannot be written: No space left on device"):
        store.append("faq", question())
    assert path.read_bytes() == before
    assert [file.name for file in store.folder.iterdir()] == ["faq.json"]


def test_a_files_permissions_are_kept(store: DatasetStore) -> None:
    store.create("faq")
    path = store.folder / "faq.json"
    path.chmod(0o640)
    store.append("faq", question())
    assert path.stat().st_mode & 0o777 == 0o640


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON_VALUES, expected=JSON_VALUES, output=JSON_VALUES)
def test_any_plain_value_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, value: Any, expected: Any, output: Any
) -> None:
    from proctor.compat.pixie.datasets import make_entry

    path = tmp_path_factory.mktemp("d") / "d.json"
    whole = Evaluable(
        eval_input=(NamedData("q", value),),
        eval_output=(NamedData("a", output),),
        expectation=expected,
        description="d",
    )
    write_data(path, {"entries": [make_entry(whole, "entry_kwargs")]})
    assert read_dataset(path).items == (whole,)
