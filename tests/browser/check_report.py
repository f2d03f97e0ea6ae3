"""The HTML report in a real browser. Run by ``make test-browser``, since it needs chromium and chromedriver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tilegg import lower, parse
from tilegg.extract.lowered import Lowered
from tilegg.extract.report_html import to_html

from .browser import Opened, browser

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quant_int8.py"
BOX = ".graph .box"


@pytest.fixture(scope="module")
def driver() -> Iterator[webdriver.Chrome]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def example() -> Lowered:
    return lower(parse(EXAMPLE.read_text(encoding="utf-8"), "quant_int8.py"), "a5")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, example: Lowered) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(example, EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    return path


@pytest.fixture
def page(driver: webdriver.Chrome, report: Path) -> Iterator[Opened]:
    """The page, opened anew; at the end it must have said nothing and asked for nothing but itself."""
    opened = Opened(driver, report)
    yield opened
    opened.listen()
    assert opened.console == []
    assert opened.requests == [opened.url]


def boxes(page: Opened) -> int:
    return len(page.driver.find_elements(By.CSS_SELECTOR, BOX))


def test_costs_and_graph_are_there(page: Opened, example: Lowered) -> None:
    now, plain = example.totals, example.plain
    assert now.cycles < plain.cycles
    assert page.driver.title == "QuantInt8 on a5"
    cards = [c.text for c in page.driver.find_elements(By.CSS_SELECTOR, ".card")]
    saved = f"{now.cycles / plain.cycles - 1:.1%} from {plain.cycles:.0f} as written"
    assert f"cycles\n{now.cycles:.0f}\n{saved}" in cards
    cells = page.driver.find_elements(By.CSS_SELECTOR, "#instructions td.bar")
    costs = [int(c.text) for c in cells]
    assert len(costs) >= now.instructions and sum(costs) == pytest.approx(now.cycles, abs=len(costs))
    steps = [s.text for s in page.driver.find_elements(By.CSS_SELECTOR, "#steps tbody tr td:nth-child(2)")]
    assert steps[0] == f"{plain.cycles:.0f}" and steps[-1] == f"{now.cycles:.0f}"
    assert [int(s) for s in steps] == sorted(map(int, steps), reverse=True) and len(steps) > 3
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#pareto svg circle")) > 2
    assert boxes(page) > 10
    drawn = page.driver.find_element(By.CSS_SELECTOR, ".graph svg").text
    assert "narrow INT8 [16, 256]" in drawn and "✓ cast[FP16→INT8, rint]" in drawn


def test_the_policy_lets_nothing_be_loaded(page: Opened) -> None:
    script = """
      const done = arguments[arguments.length - 1];
      document.addEventListener('securitypolicyviolation', e => done(e.violatedDirective));
      const image = new Image(); image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; document.body.append(image);
      setTimeout(() => done('loaded'), 2000);
    """
    assert page.driver.execute_async_script(script) == "img-src"
    page.listen()
    page.console, page.requests = [], [page.url]


def test_folding_counts_what_is_hidden(page: Opened) -> None:
    said = page.driver.find_element(By.CSS_SELECTOR, ".hidden-nodes")
    hidden, total = (int(w) for w in said.text.split() if w.isdigit())
    assert 0 < hidden < total
    before = boxes(page)
    page.driver.find_element(By.CSS_SELECTOR, "[data-act=unfold]").click()
    assert boxes(page) > before
    assert int(said.text.split()[0]) < hidden / 4
    page.driver.find_element(By.CSS_SELECTOR, "[data-act=fold]").click()
    assert boxes(page) == before and int(said.text.split()[0]) == hidden


def test_a_class_unfolds_by_pointer_and_by_keys(page: Opened) -> None:
    before = boxes(page)
    box = next(b for b in page.driver.find_elements(By.CSS_SELECTOR, BOX) if b.text.startswith("narrow INT8"))
    number = box.get_attribute("data-class")
    assert box.get_attribute("aria-expanded") == "false"
    again = f".box[data-class='{number}']"
    page.run("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", box)
    box = page.driver.find_element(By.CSS_SELECTOR, again)
    assert box.get_attribute("aria-expanded") == "true" and boxes(page) > before
    assert "cast[FP32→INT8, rint]" in box.text
    assert page.run("return document.activeElement.getAttribute('data-class')") == number
    ActionChains(page.driver).send_keys(Keys.ENTER).perform()
    assert page.driver.find_element(By.CSS_SELECTOR, again).get_attribute("aria-expanded") == "false"
    assert boxes(page) == before
    ActionChains(page.driver).send_keys(Keys.ARROW_UP).perform()
    moved = page.run("return document.activeElement.getAttribute('data-class')")
    assert moved not in (None, number)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, ".box[tabindex='0']")) == 1


def test_searching_filters_instructions_classes_and_rules(page: Opened) -> None:
    ActionChains(page.driver).send_keys("/").perform()
    find = page.driver.find_element(By.ID, "find")
    assert page.driver.switch_to.active_element == find and find.get_attribute("value") == ""
    find.send_keys("integer-narrowing")
    rows = page.driver.find_elements(By.CSS_SELECTOR, "#instructions tbody tr")
    assert [r.text.split()[0] for r in rows if r.is_displayed()] == ["29"]
    rules = page.driver.find_elements(By.CSS_SELECTOR, "#rules tbody tr")
    assert [r.find_element(By.TAG_NAME, "b").text for r in rules if r.is_displayed()] == ["cast.fuse.integer-narrowing"]
    classes = page.driver.find_elements(By.CSS_SELECTOR, ".class")
    assert 0 < sum(c.is_displayed() for c in classes) < len(classes)
    assert page.driver.find_elements(By.CSS_SELECTOR, ".box.hit")
    assert page.driver.find_elements(By.CSS_SELECTOR, ".box.miss")
    assert page.driver.find_element(By.ID, "found").text.split()[1] == "of"
    find.send_keys(Keys.ESCAPE)
    assert all(r.is_displayed() for r in page.driver.find_elements(By.CSS_SELECTOR, "#instructions tbody tr"))
    assert not page.driver.find_elements(By.CSS_SELECTOR, ".box.miss")


def test_lines_that_belong_together_light_up(page: Opened) -> None:
    line = page.driver.find_element(By.CSS_SELECTOR, "#program [data-line='29']")
    ActionChains(page.driver).scroll_to_element(line).move_to_element(line).perform()
    lit = page.driver.find_elements(By.CSS_SELECTOR, ".lit")
    assert len(lit) >= 4


def test_details_open_with_the_keyboard(page: Opened) -> None:
    summary = page.driver.find_element(By.CSS_SELECTOR, "#instructions details summary")
    summary.send_keys(Keys.ENTER)
    fold = page.driver.find_element(By.CSS_SELECTOR, "#instructions details")
    assert fold.get_attribute("open") is not None and " exact\n" in fold.text


def test_a_long_kernel_is_small_and_quick(driver: webdriver.Chrome, tmp_path: Path) -> None:
    """About a hundred operations: under 2 MB, open within two seconds, also when its graph is unfolded."""
    text = (ROOT / "benchmarks" / "corpus" / "sinkhorn.py").read_text(encoding="utf-8")
    lowered = lower(parse(text, "sinkhorn.py"), "a5")
    assert lowered.totals.instructions > 90
    path = tmp_path / "long.html"
    path.write_text(to_html(lowered, text), encoding="utf-8")
    assert path.stat().st_size < 2_000_000
    opened = Opened(driver, path)
    assert opened.milliseconds() < 2000
    opened.driver.find_element(By.CSS_SELECTOR, "[data-act=unfold]").click()
    assert boxes(opened) > 90
    opened.listen()
    assert opened.console == [] and opened.requests == [opened.url]
