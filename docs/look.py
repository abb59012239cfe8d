"""Open every page of the built documentation in headless Chromium: `make look`, after `make docs`.

A page passes if nothing extends beyond the window at 1280 and at 390 pixels, if every picture loads, and if
every text has a contrast of at least 4.5 to its background, 3 for large type, in light and in dark mode. The
limits of contrast are those of WCAG 2.1, level AA. ``--shots FOLDER`` also saves a picture of every page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parent / "_build"
WIDTHS = (1280, 390)
THEMES = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PER_PAGE = 3
"""Findings that are reported for one page, width and theme."""

FINDINGS = """
() => {
  const found = [];
  const name = e => e.tagName.toLowerCase() + (e.className && e.className.baseVal === undefined
    ? "." + e.className.trim().split(/\\s+/).join(".") : "");
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("main *")].filter(
      e => e.getBoundingClientRect().right > root.clientWidth + 1);
    found.push(`overflow: ${root.scrollWidth} of ${root.clientWidth} pixels, ${wide.slice(0, 3).map(name)}`);
  }
  const scrolls = "div.math, pre, .pst-scrollable-table-container";
  for (const e of document.querySelectorAll("main h1, main h2, main h3, main p, main li, main dt, main td"))
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth && getComputedStyle(e).overflowX === "visible"
        && getComputedStyle(e).display !== "inline" && !e.closest(scrolls))
      found.push(`text is cut: ${name(e)} "${e.textContent.trim().slice(0, 30)}"`);
  for (const e of document.images)
    if (e.complete && !e.naturalWidth) found.push(`picture does not load: ${e.src}`);
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const background = e => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      const alpha = colour.length > 3 ? colour[3] : 1;
      if (alpha) layers.push([colour, alpha]);
      if (alpha === 1) break;
    }
    let mixed = root.dataset.theme === "dark" ? [20, 24, 31] : [255, 255, 255];
    for (const [colour, alpha] of layers.reverse())
      mixed = mixed.map((v, k) => alpha * colour[k] + (1 - alpha) * v);
    return mixed;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility({checkVisibilityCSS: true})) continue;
    const style = getComputedStyle(e);
    if (e.closest("mjx-container, dialog, script, style, button, [aria-hidden=true]")) continue;
    const colour = parse(style.color), behind = background(e);
    const alpha = colour.length > 3 ? colour[3] : 1;
    const front = behind.map((v, k) => alpha * colour[k] + (1 - alpha) * v);
    const [a, b] = [luminance(front), luminance(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const text = walker.currentNode.textContent.trim().slice(0, 30);
      if (!seen.has(name(e))) found.push(`contrast ${ratio.toFixed(2)}: ${name(e)} "${text}"`);
      seen.add(name(e));
    }
  }
  return found;
}
"""


def browser_path() -> str:
    """Return the path of an installed Chromium; exit with a message if there is none."""
    for name in (os.environ.get("CHROMIUM", ""), *BROWSERS):
        if name and (path := shutil.which(name)):
            return path
    sys.exit(
        "make look needs Chromium; none was found. Install it (apt-get install chromium), or set CHROMIUM."
    )


def look(page: Page, path: Path, shots: Path | None) -> list[str]:
    """Return the findings about one page, at every width and in every theme."""
    found = []
    page.goto(path.as_uri(), wait_until="load")
    if page.locator("span.math, div.math").count():
        page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        page.evaluate("() => MathJax.startup.promise")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for theme in THEMES:
            page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
            case = f"{path.relative_to(SITE)} at {width} pixels, {theme}"
            found += [f"{case}: {text}" for text in page.evaluate(FINDINGS)[:PER_PAGE]]
            if shots:
                stem = str(path.relative_to(SITE).with_suffix("")).replace("/", "-")
                page.screenshot(path=shots / f"{stem}-{width}-{theme}.png", full_page=True)
    return found


def main() -> None:
    """Look at all pages, print the findings, and exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description="Check the built documentation in a browser.")
    parser.add_argument("--shots", type=Path, help="folder for a picture of every page")
    parser.add_argument("names", nargs="*", help="pages, such as index.html (default: all)")
    options = parser.parse_args()
    pages = [SITE / name for name in options.names] or sorted(
        set(SITE.rglob("*.html")) - set((SITE / "_static").rglob("*.html"))
    )
    if not pages:
        sys.exit(f"{SITE} has no pages. Run make docs first.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=OPTIONS)
        page = browser.new_page()
        page.on("pageerror", lambda error: found.append(f"{page.url}: script error {error}"))
        found: list[str] = []
        for path in pages:
            found += look(page, path, options.shots)
        browser.close()
    print("\n".join(found) or f"{len(pages)} pages at {WIDTHS} pixels, light and dark: nothing to report")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
