"""A folder of suites: nothing that was meant to be a suite disappears, and nothing else becomes an error."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from proctor.base.errors import InvalidSuite
from proctor.cases.formats import folders
from proctor.cases.formats.folders import SkippedFile
from proctor.cases.formats.loading import load

GOOD = "cases:\n  - {input: hi, expected: hello}\n"
ROW = "  - {input: hi, expected: hello}\n"
PYTHON_AGENT = "name: shop\nagent: app.py:agent\n"

BROKEN: dict[str, str | bytes] = {
    "misspelled.yaml": f"casess:\n{ROW}",
    "capital.yaml": f"Cases:\n{ROW}",
    "upper.yaml": f"CASES:\n{ROW}",
    "singular.yaml": f"case:\n{ROW}",
    "swapped.yaml": f"csaes:\n{ROW}",
    "short.yaml": f"caes:\n{ROW}",
    "tests.yaml": f"tests:\n{ROW}",
    "test.yaml": f"test:\n{ROW}",
    "testcases.yaml": f"testcases:\n{ROW}",
    "test-cases.yaml": f"test-cases:\n{ROW}",
    "named.yaml": f"name: shop\ntest_cases:\n{ROW}",
    "examples.yaml": f"examples:\n{ROW}",
    "questions.yaml": "questions:\n  - {question: hi, expected: hello}\n",
    "no_value.yaml": "name: shop\ncasess:\n",
    "empty_list.json": '{"casess": []}',
    "without.yaml": PYTHON_AGENT,
    "agnet.yaml": "name: shop\nagnet: app.py:agent\n",
    "only_agent.yml": "agent: https://shop.example/chat\n",
    "only_evaluators.yaml": "name: shop\nevaluators: [ExactMatch]\n",
    "open_bracket.yaml": "name: [\n",
    "open_brace.yml": "name: shop\nagent: {\n",
    "tab.yaml": "cases:\n\t- input: hi\n",
    "twice.yaml": f"cases:\n{ROW}cases:\n{ROW}",
    "twice_name.yaml": f"name: a\nname: b\nCases:\n{ROW}",
    "no_colon.yaml": "cases\n  - input: hi\n    expected: hello\n",
    "two_documents.yaml": f"name: a\n---\ncases:\n{ROW}",
    "byte_order_mark.yaml": b"\xef\xbb\xbfcasess:\n  - {input: hi, expected: hello}\n",
    "utf16.yaml": GOOD.encode("utf-16"),
    "utf16_be.json": b"\xfe\xff" + '{"cases": [{"input": "hi", "expected": "x"}]}'.encode("utf-16-be"),
    "latin1.yaml": "cases:\n  - {input: caf\xe9, expected: hello}\n".encode("latin-1"),
    "capital.json": '{"Cases": [{"input": "hi", "expected": "hello"}]}',
    "comma.json": '{"name": "shop", "agent": "app.py:agent",}',
    "cut_off.json": '{"cases": [{"input": "hi", "expec',
    "rows.json": '[{"inptu": "hi", "expected": "hello"}]',
    "rows.yaml": "- Input: hi\n  expected: hello\n",
    "rows.jsonl": '{"inptu": "hi", "expected": "hello"}\n',
    "one.jsonl": '{"inptu": "hi"}\n',
    "capital.ndjson": '{"Input": "hi", "Expected": "hello"}\n',
    "half.jsonl": '{"input": "hi", "expected": "hello"\n',
    "misspelled.csv": "inptu,expected\nhi,hello\n",
    "capital.csv": "Input,Expected\nhi,hello\n",
    "expcted.csv": "id,input,expcted\n1,hi,hello\n",
    "output.csv": "id,input,output\n1,hi,hello\n",
    "question.csv": "question,expected\nhi,hello\n",
    "inputs.csv": "inputs,expected\nhi,hello\n",
    "named_by_windows.yaml.txt": GOOD,
    "named_by_windows.csv.txt": "input,expected\nhi,hello\n",
    "without_ending": GOOD,
    "semicolons.csv": "input;expected\nhi;hello\n",
    "tabs.csv": "input\texpected\nhi\thello\n",
    "tabs.tsv": "input\texpected\nhi\thello\n",
    "ragged.csv": "input,expected\nhi\n",
    "suite.toml": '[[cases]]\ninput = "hi"\nexpected = "hello"\n',
    "comments.jsonc": '{\n  // ours\n  "cases": [{"input": "hi", "expected": "hello"}]\n}\n',
    "suite.yaml": "",
    "empty.yaml": "",
    "nested.yaml": "suite:\n  name: shop\n  cases:\n    - {input: hi, expected: hello}\n",
    "one_case.yaml": "id: a\ninput: hi\nexpected: hello\n",
    "one_case.json": '{"input": "hi", "expected": {"contains": "hello"}}',
    "cases.json": b"\0" * 4096,
    "refund_cases.csv": "\n",
    "agent.yaml": "name: shop\nmodel: {provider: openai, name: gpt}\ninstructions: {inline: hi}\n",
    "set.json": '{"evalSetID": "set", "evalCase": []}',
    "shop.test.json": '{"rows": []}',
    "shop.proctor.yaml": "x: 1\n",
}
"""Files that people meant to be suites."""

ORDINARY: dict[str, str] = {
    "not_written.json": "",
    "blank_log.jsonl": "\n \n",
    "docker-compose.yml": "name: shop\nservices:\n  web: {image: nginx, depends_on: [db]}\n  db: {image: postgres}\n",
    "workflow.yml": "name: CI\non: [push]\njobs:\n  test:\n    runs-on: ubuntu\n    steps: [{run: make test}]\n",
    "action.yml": "name: Setup\ndescription: Set up\ninputs:\n  version: {required: true}\nruns: {using: node20}\n",
    "mkdocs.yml": "site_name: Shop\nnav:\n  - Home: index.md\nmarkdown_extensions:\n  - e: !!python/name:m.x\n",
    "openapi.yaml": "openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {}\ncomponents: {examples: {a: 1}}\n",
    "swagger.json": '{"swagger": "2.0", "info": {"title": "t"}, "paths": {}, "tags": [{"name": "a"}]}',
    "deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n",
    "manifests.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\n",
    "kustomization.yaml": "bases:\n  - ../base\nresources: [a.yaml]\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\ndescription: A chart\nversion: 0.1.0\n",
    "chart/values.yaml": "replicaCount: 1\nimage: {repository: nginx}\nagent: {enabled: true}\n",
    "chart/templates/web.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n",
    "chart/tests/web_test.yaml": "suite: web\ntests:\n  - it: works\n    asserts: [{isKind: {of: Pod}}]\n",
    "environment.yml": "name: shop\nchannels: [conda-forge]\ndependencies: [python]\n",
    "meta.yaml": "package: {name: x, version: '1'}\ntest: {imports: [x]}\nabout: {license: MIT}\n",
    "recipe.yaml": "package: {name: x}\ntests:\n  - script: [pytest]\n  - python: {imports: [x]}\n",
    "dbt_project.yml": "name: shop\nversion: '1'\nmodels: {}\ntests: {+store_failures: true}\n",
    "schema.yml": "version: 2\nmodels:\n  - name: orders\n    columns: [{name: id, tests: [unique]}]\n",
    "playbook.yml": "- name: web\n  hosts: all\n  tasks:\n    - name: install\n      apt: {name: nginx}\n",
    "buildkite.yml": "agents: {queue: default}\nsteps:\n  - input: Release?\n    fields: [{text: Name, key: name}]\n",
    "elastic-agent.yml": "agent: {logging: {level: debug}}\n",
    "agents.yaml": "agents:\n  - {name: researcher, goal: Look}\nname: crew\n",
    "jenkins.yaml": "agent: any\nstages: [{stage: build}]\n",
    "azure-pipelines.yml": "trigger: [main]\npool: {vmImage: ubuntu}\nsteps: [{script: make}]\n",
    "gitlab.yml": "stages: [test]\ntest:\n  script: [pytest]\n",
    "circleci.yml": "version: 2.1\njobs: {build: {docker: [{image: python}]}}\nworkflows: {main: {jobs: [build]}}\n",
    "cloudformation.yaml": "AWSTemplateFormatVersion: '2010-09-09'\nResources:\n  A: {Type: x, Ref: !Ref B}\n",
    "serverless.yml": "service: shop\nprovider: {name: aws}\nfunctions: {hello: {handler: h.x}}\n",
    "vector.yaml": "sources: {a: {type: x}}\ntests:\n  - name: t\n    inputs: [{insert_at: a}]\n    outputs: []\n",
    "promptfooconfig.yaml": "prompts: ['{{q}}']\ntests:\n  - vars: {q: hi}\n    assert: [{type: x}]\n",
    "artillery.yml": "config: {target: https://x}\nscenarios:\n  - name: a\n    flow: [{get: {url: /}}]\n",
    "Taskfile.yml": "version: '3'\ntasks: {test: {cmds: [pytest]}}\n",
    "codecov.yml": "coverage: {status: {project: {default: {target: 80%}}}}\n",
    "prometheus.yml": "global: {scrape_interval: 15s}\nscrape_configs: [{job_name: a}]\n",
    "issue_form.yml": "name: Bug\ndescription: Report a bug\nbody:\n  - type: input\n    id: x\n",
    "crew_tasks.yaml": "research:\n  description: Look\n  expected_output: A list\n  agent: researcher\n",
    "tsconfig.base.json": '{\n  // comment\n  "compilerOptions": {"strict": true},\n}',
    "package.json": '{"name": "shop", "scripts": {"test": "jest"}, "cases": 1}',
    "composer.json": '{"name": "a/b", "description": "x", "require": {}}',
    "angular.json": '{"version": 1, "projects": {"shop": {"architect": {"test": {}}}}}',
    "renovate.json": '{"$schema": "https://docs.renovatebot.com/renovate-schema.json", "extends": ["config:base"]}',
    "person.json": '{"name": "Ann", "description": "a customer"}',
    "form.schema.json": '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {}}',
    "covid.json": '{"country": "AT", "cases": 1200, "deaths": 3}',
    "users.json": '[{"id": 1, "name": "Ann", "tags": ["a"], "description": "x"}]',
    "faq.json": '[{"question": "Where?", "answer": "Here."}]',
    "notebook.json": '{"cells": [], "metadata": {}, "nbformat": 4}',
    "geo.json": '{"type": "FeatureCollection", "features": []}',
    "classes.yaml": "classes:\n  - {name: cat}\n  - {name: dog}\n",
    "phases.yaml": "phases:\n  - {name: build}\ncaches: [{path: x}]\n",
    "log.jsonl": '{"level": "info", "msg": "started", "suite": "a"}\n{"level": "info", "inputs": 2}\n',
    "finetune.jsonl": '{"messages": [{"role": "user", "content": "hi"}]}\n',
    "batch.jsonl": '{"custom_id": "1", "method": "POST", "url": "/v1", "body": {}}\n',
    "completions.jsonl": '{"prompt": "hi", "completion": "hello"}\n',
    "sales.csv": "date,region,amount\n2024-01-01,AT,3\n",
    "verkauf.csv": "datum;region;betrag\n2024-01-01;AT;3\n",
    "faq.csv": "question,answer\nWhere?,Here.\n",
    "alpaca.csv": "instruction,input,output\nSum,1 2,3\n",
    "people.csv": "id,description,tags\n1,x,y\n",
    "power.csv": "time,input_voltage,output_voltage\n1,2,3\n",
    "genes.tsv": "gene\tcount\nA\t3\n",
    "pyproject.toml": '[project]\nname = "shop"\ndescription = "in some cases"\n',
    "Cargo.toml": '[package]\nname = "shop"\n',
    "comments.yaml": "# nothing yet\n",
    "notes.md": "cases:\n",
}
"""Files of real projects that are next to suites and are none."""


def put(folder: Path, files: dict[str, str | bytes] | dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def problems_of(folder: Path) -> list[str]:
    with pytest.raises(InvalidSuite) as error:
        load([folder])
    return [str(problem) for problem in error.value.problems]


@pytest.mark.needs("adk", "holodeck")
def test_every_broken_suite_of_a_folder_is_an_error_with_its_file(tmp_path: Path) -> None:
    put(tmp_path, {"good.yaml": GOOD, **BROKEN})
    named = {problem.removeprefix(f"{tmp_path}/").partition(":")[0] for problem in problems_of(tmp_path)}
    assert (len(BROKEN), sorted(BROKEN.keys() - named)) == (65, [])
    assert named == BROKEN.keys()


def test_no_ordinary_file_of_a_project_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, {"good.yaml": GOOD, **ORDINARY})
    skipped: list[SkippedFile] = []
    [suite] = load([tmp_path], skipped=skipped)
    assert (suite.path, len(ORDINARY)) == (tmp_path / "good.yaml", 67)
    unlisted = {"package.json", "notes.md", "genes.tsv", "pyproject.toml", "Cargo.toml"}
    assert {item.path.relative_to(tmp_path).as_posix() for item in skipped} == ORDINARY.keys() - unlisted


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.yaml", f"name: x\ncasess:\n{ROW}", ["a.yaml:2:", "'casess'; did you mean 'cases'?"]),
        ("a.yaml", f"tests:\n{ROW}", ["a.yaml:1:", "did you mean 'cases'?"]),
        ("a.csv", "inptu,expected\nhi,hello\n", ["a.csv:1:", "'inptu' is not known; did you mean 'input'?"]),
        ("a.csv", "input;expected\nhi;hello\n", ["a.csv:1:", "separated by semicolons; separate them by commas"]),
        ("a.yml.txt", GOOD, ["a.yml.txt:", "looks like a suite; call it a.yml"]),
        ("refunds", GOOD, ["refunds:", "looks like a suite; call it refunds.yaml"]),
        ("a.jsonl", '\n{"inptu": "hi", "expected": "x"}\n', ["a.jsonl:2:", "did you mean 'input'?"]),
        ("a.yaml", "name: [\n", ["a.yaml:1:", "is not valid YAML"]),
        ("a.yaml", PYTHON_AGENT, ["a.yaml:2:", "'agent' and no 'cases'; add a list of cases"]),
        ("a.yaml", GOOD.encode("utf-16"), ["a.yaml:1:", "UTF-16; save it as UTF-8"]),
    ],
)
def test_a_broken_suite_is_named_with_its_line_and_the_likely_fix(
    tmp_path: Path, name: str, content: str | bytes, words: list[str]
) -> None:
    put(tmp_path, {"good.yaml": GOOD, name: content})
    problem = problems_of(tmp_path)[0]
    assert [word for word in words if word not in problem] == []


@pytest.mark.parametrize("name", ["B.YAML", "b.YML", "B.Json", "b.JSONL", "B.CSV"])
def test_the_ending_of_a_suite_may_be_in_capitals(tmp_path: Path, name: str) -> None:
    contents = {
        ".json": '{"cases": [{"input": "hi", "expected": "x"}]}',
        ".jsonl": '{"input": "hi", "expected": "x"}\n',
        ".csv": "input,expected\nhi,x\n",
    }
    put(tmp_path, {name: contents.get(Path(name).suffix.lower(), GOOD)})
    assert [suite.path for suite in load([tmp_path])] == [tmp_path / name]
    assert len(load([tmp_path / name])[0].cases) == 1


def test_links_pipes_and_sockets_are_listed_and_not_opened(tmp_path: Path) -> None:
    put(tmp_path, {"suites/good.yaml": GOOD, "elsewhere/data.yaml": "rows: [1, 2]\n"})
    folder = tmp_path / "suites"
    (folder / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "back").symlink_to(folder, target_is_directory=True)
    (folder / "unmounted").symlink_to(tmp_path / "unmounted", target_is_directory=True)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        place = os.open(folder, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{place}/socket.csv")
        os.close(place)
        skipped: list[SkippedFile] = []
        assert len(load([folder], skipped=skipped)) == 1
    reasons = {item.path.name: item.reason for item in skipped}
    links = {"linked", "back", "unmounted"}
    assert reasons.keys() == links | {"pipe.yaml", "device.yaml", "socket.csv"}
    assert "link to a folder; pass it by its own name" in reasons["linked"]
    assert "leads nowhere" in reasons["unmounted"]


def test_a_link_that_leads_nowhere_and_may_be_a_suite_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, {"good.yaml": GOOD})
    (tmp_path / "refunds.yaml").symlink_to(tmp_path / "nowhere.yaml")
    (tmp_path / "circle.json").symlink_to(tmp_path / "circle.json")
    (tmp_path / "more_suites").symlink_to(tmp_path / "unmounted", target_is_directory=True)
    names = [problem.removeprefix(f"{tmp_path}/").partition(" leads nowhere")[0] for problem in problems_of(tmp_path)]
    assert names == [f"{name}: is a link that" for name in ("circle.json", "more_suites", "refunds.yaml")]


def test_a_link_to_a_folder_with_a_suite_is_an_error_unless_that_is_tested_too(tmp_path: Path) -> None:
    put(tmp_path, {"suites/good.yaml": GOOD, "suites/more/next.yaml": GOOD, "elsewhere/deep/other.yaml": GOOD})
    folder = tmp_path / "suites"
    (folder / "again").symlink_to(folder / "more", target_is_directory=True)
    (folder / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere" / "back").symlink_to(folder, target_is_directory=True)
    assert problems_of(folder) == [
        f"{folder}/linked: is a link to a folder with a suite (other.yaml), and links to folders are not followed; "
        "pass that folder as well"
    ]
    skipped: list[SkippedFile] = []
    assert len(load([folder, folder / "linked"], skipped=skipped)) == 3
    assert {item.path.name for item in skipped} == {"again", "linked", "back"}


def test_what_cannot_be_read_is_an_error_because_it_may_be_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"good.yaml": GOOD, "secret.yaml": GOOD, "private/a.yaml": GOOD})
    open_file, list_folder = Path.open, Path.iterdir

    def refuse(path: Path, name: str) -> None:  # root may read everything, so the test refuses by itself
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(
        Path, "open", lambda path, *args, **kw: refuse(path, "secret.yaml") or open_file(path, *args, **kw)
    )
    monkeypatch.setattr(Path, "iterdir", lambda path: refuse(path, "private") or list_folder(path))
    with pytest.raises(InvalidSuite) as error:
        load([tmp_path])
    assert sorted(str(problem) for problem in error.value.problems) == [
        f"{tmp_path}/{name}: cannot be read: Permission denied; make it readable, or pass the suites one by one"
        for name in ("private", "secret.yaml")
    ]
    assert [suite.path for suite in error.value.partial_suites] == [tmp_path / "good.yaml"]


def test_a_large_file_of_data_is_listed_and_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "LARGE_BYTES", 1000)
    put(tmp_path, {"data.json": f"[{'1,' * 1000}1]", "big.yaml": GOOD + ROW.replace("hi", "x" * 1000)})
    skipped: list[SkippedFile] = []
    assert [suite.path for suite in load([tmp_path], skipped=skipped)] == [tmp_path / "big.yaml"]
    assert [item.path.name for item in skipped] == ["data.json"]


def test_a_suite_in_python_is_listed_with_the_command_that_tests_it(tmp_path: Path) -> None:
    code = "import proctor\n\nsuite = proctor.Suite('shop', [])\n"
    put(tmp_path, {"good.yaml": GOOD, "shop.py": code, "app.py": "def agent(text): return text\n"})
    skipped: list[SkippedFile] = []
    load([tmp_path], skipped=skipped)
    assert [(item.path.name, "pass its name: proctor test" in item.reason) for item in skipped] == [("shop.py", True)]


def test_a_python_suite_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, {"shop.py": "import nowhere_at_all\nimport proctor\nsuite = proctor.Suite('shop', [])\n"})
    with pytest.raises(InvalidSuite, match="nowhere_at_all"):
        load([tmp_path / "shop.py"])
