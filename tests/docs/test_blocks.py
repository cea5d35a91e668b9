"""README and documentation are true: every block runs as pasted, links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil

import matplotlib as mpl
import pytest
from tests.docs.blocks import NOT_RUN, ROOT, SHOWN_ONLY, blocks, pages, run
from tests.docs.test_upgrade import resolve

mpl.use("Agg")
PAGES = pages()
# `make docs-check` runs what takes minutes, too.
ALSO = ("takes minutes",) if os.environ.get("TAUFIT_ALL_BLOCKS") == "1" else ()
SHARED = "needs the shared recordings"
# Run by tests/packaging/test_open_benchmark.py in a copy.
CHECKOUT = "in a checkout"
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.fixture(scope="session")
def example_files(tmp_path_factory):
    """What `taufit demo --files` writes, made once."""
    from taufit.cli.app import main

    folder = tmp_path_factory.mktemp("files")
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--files", "-o", str(folder)])
    assert not stop.value.code
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
@pytest.mark.unchecked
def test_every_block_of_a_page_runs_in_order(page, example_files, tmp_path):
    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)
    shutil.copy(ROOT / "examples/arms/palletiser.yaml", tmp_path)
    run(page, tmp_path, ALSO)


@pytest.fixture
def shared_files(data_dir, tmp_path):
    """A folder with what blocks that need the shared recordings are about."""
    pair = "ur10e/identification_data/ur-20_02_19_14harm50sec*"
    for pattern in (
        "staubli_tx40/*",
        "kuka_lwr4/*",
        "kuka_kr300/*",
        "xmate7p/*",
        "dvrk_psm/*",
        pair,
    ):
        for file in data_dir.glob(pattern):
            shutil.copy(file, tmp_path)
    for file in (*ROOT.glob("examples/arms/*"), *ROOT.glob("examples/columns/*")):
        shutil.copy(file, tmp_path)
    return tmp_path


def test_arms_that_are_not_bundled_need_two_commands(shared_files):
    run(ROOT / "docs/foreign_arms.md", shared_files, (SHARED,))
    for name in ("lwr4", "xmate", "tx40"):
        assert (shared_files / f"{name}.html").stat().st_size > 100_000
        assert (shared_files / f"{name}.json").stat().st_size > 10_000


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "foreign_arms.md"], ids=str
)
def test_blocks_that_need_the_shared_recordings_run_on_them(page, request):
    if not any(block.title == SHARED for block in blocks(page)):
        return
    assert run(page, request.getfixturevalue("shared_files"), only=SHARED) > 0


def test_commands_are_not_hidden_in_blocks_that_are_only_shown():
    for page in PAGES:
        for block in blocks(page):
            if block.language in SHOWN_ONLY:
                hidden = re.findall(r"^(?:taufit|make|pip|python) .*", block.text, re.M)
                assert not hidden, f"{page.name}:{block.line}: {hidden[0]}"


def test_blocks_say_what_they_are():
    for page in PAGES:
        for block in blocks(page):
            where = f"{page.name}:{block.line}"
            assert block.language in {"bash", "python", *SHOWN_ONLY}, f"{where}: {block.language!r}"


def test_blocks_that_are_not_run_are_few_and_say_why():
    titles = [(page.name, block) for page in PAGES for block in blocks(page) if block.title]
    for name, block in titles:
        assert block.title in NOT_RUN or block.language in SHOWN_ONLY, f"{name}:{block.line}"
    left_out = [block for _, block in titles if block.title in NOT_RUN - {SHARED, CHECKOUT}]
    run_there = sum(
        block.language not in SHOWN_ONLY and block.title not in NOT_RUN
        for page in PAGES
        for block in blocks(page)
    )
    # Five of them are for simulators and viewers that are not installed here.
    assert len(left_out) <= 20 and run_there >= 4 * len(left_out)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=[*NAMES, "CONTRIBUTING.md"]
)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"(https?:|mailto:|#)", target):
            continue
        path = target.partition("#")[0]
        generated = path.startswith("reference/") or "/reference/" in path
        assert generated or (page.parent / path).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(
    "page",
    # That page lists former names; its own test resolves the present ones.
    [page for page in PAGES if page.name != "upgrade.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_names_in_the_text_of_a_page_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    for name in set(re.findall(r"`(taufit(?:\.[A-Za-z_]\w*)+)[`(]", text)):
        resolve(name)


def test_a_former_name_is_not_taken_for_an_existing_one():
    with pytest.raises(AttributeError):
        resolve("taufit.dynamics.base_of_regressor")
