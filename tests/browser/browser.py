"""A headless Chromium with nothing in it, and what a page did in it: console messages and requests."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--window-size=1400,1000",
)  # fmt: skip
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """Start a browser with a new, empty profile."""
    if BROWSER is None or DRIVER is None:
        raise SystemExit("the browser test needs chromium and chromedriver: apt-get install chromium chromium-driver")
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            driver.get("about:blank")
            yield driver
        finally:
            driver.quit()


class Opened:
    """A page that a browser has opened: everything it says and asks for is kept."""

    def __init__(self, driver: webdriver.Chrome, path: Path) -> None:
        self.driver = driver
        self.url = path.as_uri()
        self.console: list[dict[str, Any]] = []
        self.requests: list[str] = []
        driver.get_log("performance")
        driver.get(self.url)

    def listen(self) -> None:
        """Take up what has been said and asked for since."""
        self.console += self.driver.get_log("browser")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                request = message["params"]
                # The browser's own start page may still be at work.
                if not request["documentURL"].startswith("chrome:"):
                    self.requests.append(request["request"]["url"])

    def run(self, script: str, *args: object) -> Any:
        """Run a script in the page and return its value."""
        return self.driver.execute_script(script, *args)

    def milliseconds(self) -> float:
        """Return how long loading took, from navigation to the end of the load event."""
        entry = self.run("const e = performance.getEntriesByType('navigation')[0]; return e.loadEventEnd - e.startTime")
        return float(entry)
