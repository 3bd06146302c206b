"""Whether the built site is whole: `python -m website.check build/site`.

Files alone: every link and picture leads to something, every picture has a text, every page a language, a title and one
first heading, nothing is fetched from elsewhere. With Chromium, where there is one: every page opens from the file
system without an error in the console, its text stands out (4.5 to 1, light and dark), all of it fits a telephone, a
tablet and a screen; the search finds what strangers type, keys reach the search and the links, a page prints.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from website.browser import Browser, found

PALETTES = {"dark": "slate", "light": "default"}
# What strangers type -> a page that is then among the first three.
SOUGHT = {
    "hipaa": "reference/words", "gdpr": "reference/words", "dpia": "reference/words",
    "anonymous": "answer/questions", "personal data": "answer/questions", "how many records": "howto/epsilon",
    "noise": "noise", "federated": "reference/words", "crash": "reference/words", "windows": "reference/words",
    "kubernetes": "reference/words", "docker": "howto/services", "firewall": "network", "excel": "reference/words",
    "missing values": "data", "duplicates": "reference/words", "csv": "start/hospitals",
    "exit code": "reference/exit-codes", "resume": "howto/failures", "malicious": "reference/words",
    "renyi": "reference/words", "kaplan": "reference/words",
    "overfitting": "reference/words", "neural network": "howto/index", "install": "project/install",
    "epsilon": "howto/epsilon", "xgboost": "reference/words", "jupyter": "reference/words", "smpc": "reference/words",
    "imbalance": "reference/words", "license": "reference/words", "oracle": "reference/words",
    "fairness": "reference/words", "budget": "howto/budgets", "report": "answer/report", "audit": "answer/questions",
}  # fmt: skip
WIDTHS = {"telephone": 360, "tablet": 800, "screen": 1280}  # pixels
CONTRAST, FITS = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("contrast.js", "fits.js"))


class Page(HTMLParser):
    """What a page holds: links, places that links may name, and what it lacks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.lacks: list[str] = []
        self.headings = 0
        self.language = self.title = False
        self.feed(text)
        self.lacks += ["no language"] * (not self.language) + ["no title"] * (not self.title)
        if self.headings != 1:
            self.lacks.append(f"{self.headings} first headings instead of one")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.places |= {str(values[name]) for name in ("id", "name") if values.get(name)}
        self.language |= tag == "html" and bool(values.get("lang"))
        self.title |= tag == "title"
        self.headings += tag == "h1"
        if tag == "img" and not (values.get("alt") or "").strip():
            self.lacks.append(f"a picture without a text: {values.get('src')}")
        link = (
            values.get("href")
            if tag in ("a", "link")
            else values.get("src")
            if tag in ("img", "script", "iframe")
            else None
        )
        if link is None:
            return
        outside = urlsplit(link).scheme in ("http", "https") or link.startswith("//")
        if outside and tag != "a" and values.get("rel") != "canonical":
            self.lacks.append(f"fetched from elsewhere: {link}")
        elif not outside and not link.startswith(("data:", "mailto:", "javascript:")):
            self.links.append(link)


def faults(site: Path) -> Iterator[str]:
    """What is wrong with the files."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        yield from (f"{name}: {lack}" for lack in page.lacks)
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{name}: {link} names no place there"


def unfit(browser: Browser) -> list[str]:
    """What of the page that is open does not fit a telephone, a tablet or a screen: `the telephone: what`."""
    wrong = []
    for device, width in WIDTHS.items():
        browser.wide(width)
        wrong += [f"the {device}: {each}" for each in browser.run(FITS)]
    browser.call("Emulation.clearDeviceMetricsOverride")
    return wrong


def pages_seen(site: Path, command: str, scheme: str) -> list[str]:
    """What is wrong with pages as one of the two palettes shows them."""
    wrong: list[str] = []
    with Browser(command) as browser:  # a new one, that has chosen nothing yet
        browser.scheme(scheme)
        for page in sorted(site.rglob("*.html")):
            name = page.relative_to(site).as_posix()
            if name == "404.html":
                continue  # it is served, with names from the root
            browser.open(page.resolve().as_uri())
            if browser.run("document.body.dataset.mdColorScheme") != PALETTES[scheme]:
                wrong.append(f"{name}: who wants it {scheme} does not get it")
            wrong += [f"{name}, {scheme}: stands out too little: {text}" for text in browser.run(CONTRAST)]
            wrong += [f"{name}, {scheme}: does not fit {each}" for each in unfit(browser)]
        other = next(each for each in PALETTES if each != scheme)  # the system changes: pages follow, the first too
        browser.scheme(other)
        browser.open((site / "index.html").resolve().as_uri())
        if browser.run("document.body.dataset.mdColorScheme") != PALETTES[other]:
            wrong.append(f"who wanted it {scheme} and wants it {other} does not get it")
        return wrong + browser.trouble


def hits(browser: Browser, home: str, words: str) -> list[str]:
    """The pages that the search finds, best first."""
    browser.open(f"{home}/index.html?q={quote(words)}")
    browser.wait("document.querySelectorAll('.md-search-result__item').length > 0")
    links = "[...document.querySelectorAll('.md-search-result__item a:first-child')].map(a => a.href)"
    places = (unquote(urlsplit(link).path) for link in browser.run(links))
    return list(dict.fromkeys(place.removeprefix(f"{unquote(urlsplit(home).path)}/") for place in places))


def seen(site: Path, command: str) -> Iterator[str]:
    """What is wrong in a browser."""
    home = site.resolve().as_uri()
    with ThreadPoolExecutor() as pool:
        for wrong in pool.map(lambda scheme: pages_seen(site, command, scheme), PALETTES):
            yield from wrong
    with Browser(command) as browser:
        for words, page in SOUGHT.items():
            first = hits(browser, home, words)[:3]
            if f"{page}.html" not in first:
                yield f"the search for '{words}' finds {first}, and not {page}.html among the first"
        browser.open(f"{home}/index.html")
        browser.key("Tab", 9)
        if browser.run("document.activeElement.tagName") != "A":
            yield "the first key of Tab reaches no link"
        browser.key("/", 191)
        if not browser.wait("document.activeElement.matches('input.md-search__input')", 5):
            yield "the key / does not reach the search"
        browser.open(f"{home}/answer/promise.html")
        if not browser.printed().startswith(b"%PDF"):
            yield "a page does not print"
        yield from browser.trouble


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """The command. Returns 1 where something is wrong."""
    site = Path(arguments[0])
    wrong = list(faults(site))
    command = found()
    wrong += list(seen(site, command)) if command else []
    for line in wrong:
        say(line)
    how = f"seen in {Path(command).name}" if command else "not seen in a browser: there is no Chromium here"
    say(f"{len(list(site.rglob('*.html')))} pages, {len(wrong)} faults; {how}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
