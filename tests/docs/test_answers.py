"""Pages answer users' questions, show what they are about, and typeset their formulas."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
mathml = importlib.import_module("mathml")
QUESTIONS = re.findall(r"^\d+\. \[(.+?)\]\(([^)]+)\)$", (DOCS / "questions.md").read_text(), re.M)
# What an answer must hold, question by question.
ANSWERS = (
    "taufit fit", "seconds", "excellent", "convention:", "--map", "Error", "taufit payload",
    "taufit export", "model.gravity", "columns_at", "taufit design", "taufit contact",
    "taufit health", "taufit fleet", "taufit live", "current", "--torque-kind", "MuJoCo",
    "exit code", "interval",
)  # fmt: skip
TASKS = ("Start", "Bring data", "Fit", "Use a model", "Live robots", "Robots and tools")
WITHOUT = {"questions.md", "troubleshooting.md", "glossary.md"}


def nav() -> dict[str, list[dict[str, str]]]:
    parts = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    return {name: entries for part in parts for name, entries in part.items()}


def task_pages() -> list[str]:
    listed = [page for name in TASKS for entry in nav()[name] for page in entry.values()]
    return sorted({*listed} - WITHOUT)


def test_there_are_twenty_questions_two_clicks_from_the_start():
    assert len(QUESTIONS) == len(ANSWERS) == 20
    assert "(questions.md)" in (DOCS / "index.md").read_text("utf-8")


@pytest.mark.parametrize(("question", "target", "answer"), [
    (question, target, answer)
    for (question, target), answer in zip(QUESTIONS, ANSWERS, strict=False)
], ids=[question for question, _ in QUESTIONS])  # fmt: skip
def test_a_question_leads_to_its_answer(question, target, answer):
    page, _, anchor = target.partition("#")
    text = (DOCS / page).read_text("utf-8")
    assert answer in text
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    assert not anchor or anchor in [re.sub(r"\W+", "-", h.lower()).strip("-") for h in headings]


@pytest.mark.parametrize("page", task_pages())
def test_a_task_page_has_a_picture_in_both_schemes(page):
    path = DOCS / page
    shown = re.findall(r"!\[([^\]]*)\]\(([^)#]+)(#only-\w+)?\)", path.read_text("utf-8"))
    assert shown, page
    for words, file, scheme in shown:
        assert len(words) > 8 and (path.parent / file).exists(), file
        if scheme == "#only-light":
            twin = file.replace("_light.", "_dark.")
            assert (path.parent / twin).exists() and f"{twin}#only-dark" in path.read_text("utf-8")


@pytest.mark.parametrize(
    "latex", [r"\begin{aligned} a &= b \end{aligned}", r"\nonsense{x}", "a & b"]
)
def test_unknown_latex_is_refused(latex):
    with pytest.raises(ValueError, match="formula"):
        mathml.to_mathml(latex, block=True)


def test_a_formula_becomes_mathml_with_its_source_for_readers():
    text = mathml.to_mathml(r"\tau = W \theta", block=False)
    assert text.startswith("<math ") and "<mi>&#x003C4;</mi>" in text
    assert r'aria-label="\tau = W \theta"' in text


def test_pages_for_contributors_are_apart():
    apart = {page for entry in nav()["Contributing"] for page in entry.values()}
    assert {"architecture.md", "engine.md", "robustness.md", "reference/messages.md"} == apart
