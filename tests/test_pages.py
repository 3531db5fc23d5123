"""Pages of pictures in a real browser: wide and narrow, light and dark, by mouse and by keyboard."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser

from kprobes import Kprobes, Trace, UnicornMachine
from kprobes.pictures.page import ChartView, page
from kprobes.tracing.coverfiles import SourceCoverage, coverage_page
from kprobes.tracing.html import PICTURES, page_of

DEMO = Path(__file__).parent.parent / "examples" / "demo.x86_64"
EVENTS = ("p:fib fib n=$arg1:u32", "r:fib_back fib value=$retval:u32", "p:insert table_insert key=+0($arg1):string",
          "r:inserted table_insert", "p:crc crc32 len=$arg3:u32", "r:crc_back crc32 crc=$retval:x32")
SIZES = ((1200, 800), (400, 800))
LONG = "_Z7measureRKN3geo5ShapeERSt6vectorIiSaIiEEPKc"
CHART = "document.querySelector('main > section:not([hidden]) .chart')"


def recorded(records: int = 1 << 16, stack: bool = True) -> Trace:
    """The demo's run. Its memory is gone, and what was recorded stays."""
    m = UnicornMachine.load(DEMO)
    with Kprobes(m) as k, k.trace(*EVENTS, stack=stack, clock="host", records=records) as t:
        m.run()
    return t


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "demo.html"
    recorded().export(path, "html")
    return path.as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
def test_every_picture_is_drawn(browser: Browser, demo: str, size: tuple[int, int], dark: bool, tmp_path: Path) -> None:
    """Nothing is loaded, nothing fails, nothing is wider than the window, and the theme is the browser's."""
    for key in PICTURES:
        del browser.requests[:], browser.errors[:]
        browser.show(f"{demo}#{key}", *size, dark)
        assert browser.ask(f"{CHART}.dataset.drawn") not in (None, "0"), key
        assert browser.ask("document.querySelector('main > section:not([hidden])').id") == key
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth"), key
        dark_ground = browser.ask("parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 80")
        assert dark_ground == dark
        assert {*browser.requests} <= {f"{demo}#{key}", demo, "about:blank"} and browser.errors == []


def test_flame_graph_by_keyboard(browser: Browser, demo: str) -> None:
    """Search, zoom, all again, reverse; the same theme's other colours."""
    browser.show(f"{demo}#flame", 1200, 800)
    all_boxes = int(browser.ask(f"{CHART}.dataset.drawn"))
    browser.press("/")
    browser.ask("document.activeElement.value = 'fib'; document.activeElement.dispatchEvent(new Event('input'))")
    browser.wait(f"/\\d frames?, [\\d.]+ % of/.test({CHART}.querySelector('.said').textContent)")
    browser.press("Escape")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        browser.press(key)
    assert int(browser.ask(f"{CHART}.dataset.drawn")) < all_boxes
    assert browser.ask(f"{CHART}.querySelector('.details strong').textContent")
    browser.press("Escape")
    assert int(browser.ask(f"{CHART}.dataset.drawn")) == all_boxes
    browser.press("r")
    assert browser.ask("document.querySelector('button[aria-pressed=true]').textContent") == "Reverse"
    browser.press("t")
    assert browser.ask("document.documentElement.dataset.theme") == "dark"
    browser.press("?")
    assert "reverse" in browser.ask("document.querySelector('dialog[open]').textContent")


def test_timeline_by_mouse(browser: Browser, demo: str) -> None:
    """Pointing at a call shows its arguments and how long it took; the wheel looks nearer; n goes to what was found."""
    browser.show(f"{demo}#timeline", 1200, 800)
    browser.press("/")
    browser.ask("document.activeElement.value = 'key='; document.activeElement.dispatchEvent(new Event('input'))")
    browser.wait(f"/[\\d,]+ found/.test({CHART}.querySelector('.said').textContent)")
    browser.press("Escape")
    browser.press("n")
    assert "key" in browser.ask(f"{CHART}.querySelector('.details').textContent")
    browser.press("Escape")
    box = browser.ask(f"(r => [r.x, r.y])({CHART}.querySelector('canvas').getBoundingClientRect())")
    drawn = browser.ask(f"{CHART}.dataset.drawn")
    browser.mouse("mouseWheel", box[0] + 600, box[1] + 60, deltaX=0, deltaY=-400, modifiers=2)
    browser.wait(f"{CHART}.dataset.drawn !== '{drawn}'")
    browser.press("Escape")
    for x in range(20, 1100, 12):
        browser.mouse("mouseMoved", box[0] + x, box[1] + 57)
        if not browser.ask("document.getElementById('tip').hidden"):
            break
    shown = browser.ask("document.getElementById('tip').innerText")
    assert "at " in shown and "task 0" in shown


def test_lost_records_and_hostile_names_are_shown(browser: Browser, tmp_path: Path) -> None:
    t = recorded(records=40, stack=False)
    assert t.lost
    (path := tmp_path / "x.html").write_text(page_of(t, title="<img src=x onerror=document.title='hit'>\x1b[31m"))
    browser.show(path.as_uri(), 1200, 800)
    assert f"{t.lost:,} records were lost" in browser.ask("document.querySelector('.warning').textContent")
    assert browser.ask("document.querySelector('h1').textContent").startswith("<img") and browser.ask("document.title") != "hit"


def test_names_of_cpp_are_read_and_leave_room(browser: Browser, tmp_path: Path) -> None:
    """A long name is demangled, and does not push the numbers beside it out of a narrow window."""
    path = tmp_path / "cpp.html"
    with UnicornMachine.from_code(b"\x90\xc3", arch="x86_64", symbols={LONG: 0x10000}) as m, Kprobes(m) as k, \
            k.trace(f"p:enter {LONG}", f"r:back {LONG}", stack=True, clock="host") as t:
        m.call(LONG)
    t.export(path, "html")
    browser.show(f"{path.as_uri()}#flame", 400, 800)
    assert "measure(geo::Shape const&" in browser.ask("document.querySelector('table.rows').textContent")
    assert "_Z7measure" not in browser.ask("document.body.innerText")
    assert browser.ask("[...document.querySelectorAll('table.rows td.n')].every((e) => e.getBoundingClientRect().right < innerWidth)")


def test_a_difference_is_coloured(browser: Browser, tmp_path: Path) -> None:
    after, before = recorded(), recorded(records=60)
    (path := tmp_path / "x.html").write_text(page_of(after, ["flame"], before))
    browser.show(path.as_uri(), 1200, 800)
    assert "more than before" in browser.ask(f"{CHART}.querySelector('.legend').textContent")
    assert "change" in browser.ask(f"{CHART}.querySelector('thead').textContent")


def test_a_hundred_thousand_slices(browser: Browser, tmp_path: Path) -> None:
    """A page of so many is there within seconds, and drawing anew takes milliseconds."""
    generator = random.Random(26)
    count, names = 100_000, [f"function_{n}" for n in range(300)]
    start, depth = [], [0] * count
    at = 0
    for n in range(count):
        depth[n] = n % 12
        at += generator.randrange(1, 90)
        start.append(at)
    order = sorted(range(count), key=lambda n: (n % 4, depth[n], start[n]))
    data = {"unit": "ns", "begin": 0, "end": at, "names": names, "texts": ["n=1\nreturns to=main"],
            "tasks": [f"task {n}" for n in range(4)], "task": [n % 4 for n in order], "depth": [depth[n] for n in order],
            "name": [n % 300 for n in order], "start": [start[n] for n in order], "length": [40] * count,
            "args": [0] * count, "kind": [0] * count}
    name, deep = [], []
    level = 0
    for _ in range(count):
        name.append(generator.randrange(300))
        deep.append(level)
        level = max(0, min(level + generator.choice((1, 1, 0, -1, -2)), 40, level + 1))
    flame = {"trees": [{"label": "Hits", "unit": "hits", "names": names, "name": name, "depth": deep,
                        "self": [n % 7 for n in range(count)]}]}
    (path := tmp_path / "x.html").write_text(page("Large", [
        ChartView(key="timeline", title="Timeline", chart="timeline", data=data),
        ChartView(key="flame", title="Flame graph", chart="flame", data=flame)]))
    begun = time.monotonic()
    for key in ("timeline", "flame"):
        browser.show(f"{path.as_uri()}#{key}", 1200, 800)
        assert int(browser.ask(f"{CHART}.dataset.drawn")) > 500
        spent = browser.ask("""new Promise(async (done) => { const spent = [];
            for (let i = 0; i < 9; i++) {
                const chart = CHART, key = chart.closest('section').id === 'flame' ? 'u' : i % 2 ? '-' : '+', begun = performance.now();
                delete chart.dataset.drawn;
                document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
                spent.push(chart.dataset.drawn ? performance.now() - begun : 1e9);
                await new Promise(requestAnimationFrame);
            }
            done(spent.sort((a, b) => a - b)); })""".replace("CHART", CHART))
        assert spent[4] < 100, spent
    assert time.monotonic() - begun < 60


def test_calls_narrower_than_a_pixel_have_their_colour(browser: Browser, tmp_path: Path) -> None:
    """Zoomed out, a row of them is as bright as a long call."""
    count = 20_000
    data = {"unit": "ns", "begin": 0, "end": 10 * count, "names": ["leaf"], "texts": [""], "tasks": ["task"], "task": [0] * count,
            "depth": [0] * count, "name": [0] * count, "start": [10 * n for n in range(count)], "length": [9] * count,
            "args": [0] * count, "kind": [0] * count}
    (path := tmp_path / "x.html").write_text(page("Narrow", [ChartView(key="timeline", title="Timeline", chart="timeline", data=data)]))
    browser.show(path.as_uri(), 1200, 800, dark=True)
    seen = browser.ask(f"""(() => {{
        const canvas = {CHART}.querySelector("canvas"), g = canvas.getContext("2d"), row = AXIS_AND_HEAD();
        function AXIS_AND_HEAD() {{  // the row that has the most of one colour
            const paint = document.createElement("canvas").getContext("2d");
            paint.fillStyle = kp.any("leaf", true); paint.fillRect(0, 0, 1, 1);
            const [r, green, b] = paint.getImageData(0, 0, 1, 1).data;
            let best = 0;
            for (let y = 0; y < canvas.height; y++) {{
                const line = g.getImageData(0, y, canvas.width, 1).data;
                let same = 0;
                for (let x = 0; x < line.length; x += 4) same += line[x] === r && line[x + 1] === green && line[x + 2] === b;
                best = Math.max(best, same / canvas.width);
            }}
            return best;
        }}
        return row;
    }})()""")
    assert seen > .97


def test_axes_by_logarithm_have_round_values(browser: Browser, tmp_path: Path) -> None:
    (path := tmp_path / "x.html").write_text(page_of(recorded(), ["heat"]))
    browser.show(path.as_uri(), 1200, 800)
    assert browser.ask("kp.powers(55e3, 4e5, 12)") == [100_000, 200_000]
    assert browser.ask("kp.powers(5, 5000, 12)") == [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert browser.ask("kp.powers(5, 5000, 6)") == [10, 30, 100, 300, 1000, 3000]
    assert browser.ask("kp.powers(1, 1e12, 5)") == [1, 1e3, 1e6, 1e9, 1e12]


def test_the_chosen_tab_is_whole_in_a_narrow_window(browser: Browser, tmp_path: Path) -> None:
    (path := tmp_path / "x.html").write_text(page_of(recorded()))
    browser.show(path.as_uri(), 400, 800)
    count = browser.ask("document.querySelectorAll('[role=tab]').length")
    assert count > 3
    for n in (count - 1, 0, count - 2):
        browser.ask(f"document.querySelectorAll('[role=tab]')[{n}].click()")
        browser.ask("new Promise(done => setTimeout(done, 100))")
        left, right = browser.ask(f"(() => {{ const box = document.querySelectorAll('[role=tab]')[{n}].getBoundingClientRect(); return [box.left, box.right] }})()")
        assert left >= 0 and right <= browser.ask("document.documentElement.clientWidth"), n


def test_names_of_cpp_and_rust_are_shortened_before_they_are_cut(browser: Browser, demo: str) -> None:
    """What tells functions apart is behind namespaces and before arguments."""
    browser.show(demo, 1200, 800)
    for name, plain, last in (
            ("bool nlohmann::detail::parser<nlohmann::json<int> >::parse(bool, std::map<int, int>&) const", "nlohmann::detail::parser::parse", "parse"),
            ("<geo::Table as core::fmt::Display>::fmt", "Table::fmt", "fmt"),
            ("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", "std::operator<<", "operator<<"),
            ("Functor::operator()(int) const", "Functor::operator()", "operator()"),
            ("geo::Table<int>::operator bool() const", "geo::Table::operator bool", "operator bool"),
            ("decltype ((p.key)()) geo::get<0ul, geo::It<x> >(geo::It<x> const&)", "geo::get", "get"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda}::operator()", "operator()"),
            ("(anonymous namespace)::helper(int)", "helper", "helper"),
            ("std::vector<int, std::allocator<int> >::~vector()", "std::vector::~vector", "~vector"),
            ("geo::Table::operator std::vector<int>() const", "geo::Table::operator std::vector", "operator std::vector"),
            ("-[Shape scaledBy:]", "-[Shape scaledBy:]", "-[Shape scaledBy:]"),
            ("main", "main", "main"), ("void (*f(int))(char)", "void (*f(int))(char)", "void (*f(int))(char)")):
        forms = browser.ask(f"kp.shorter({json.dumps(name)})")
        assert forms[0] == name and forms[min(1, len(forms) - 1)] == plain and forms[-1] == last, forms
    assert browser.ask("kp.label(document.createElement('canvas').getContext('2d'), 'void geo::Shape<int>::measure(char const*)', 60)") == "measure"
    assert browser.ask("kp.brief('x'.repeat(100))") == "x" * 63 + "…"
    assert browser.ask("kp.shorter('<'.repeat(20000))[0].length") == 20000  # no compiler's name: the page stands it


def test_hover_boxes_of_long_names_stay_in_the_window(browser: Browser, tmp_path: Path) -> None:
    """Names of thousands of characters, and texts of many lines."""
    name = "geo::Table<" + ", ".join(f"std::pair<int, Type{n}>" for n in range(200)) + ">::find(int) const"
    data = {"unit": "ns", "begin": 0, "end": 100, "names": [name, "_" * 3000], "texts": ["\n".join(f"a{n}={'x' * 900}" for n in range(90))],
            "tasks": ["task"], "task": [0, 0], "depth": [0, 0], "name": [0, 1], "start": [0, 50], "length": [50, 50], "args": [0, 0], "kind": [0, 0]}
    (path := tmp_path / "x.html").write_text(page("Long", [ChartView(key="timeline", title="Timeline", chart="timeline", data=data)]))
    for width, height in ((400, 600), (1200, 800)):
        browser.show(path.as_uri(), width, height)
        left, top, wide = browser.ask(f"(r => [r.x, r.y, r.width])({CHART}.querySelector('canvas').getBoundingClientRect())")
        for share in (.05, .45, .6, .97):
            browser.mouse("mouseMoved", left + wide * share, top + 57)
            box = browser.ask("(r => [r.left, r.top, r.right, r.bottom])(document.getElementById('tip').getBoundingClientRect())")
            assert box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height, (share, box)
            assert box[2] - box[0] > min(300, width / 2), "squeezed"
        browser.click(left + wide * .2, top + 57)
        assert browser.ask(f"{CHART}.querySelector('.details strong').textContent") == "geo::Table::find"
        assert browser.ask(f"{CHART}.querySelector('.details details code').textContent") == name


def test_a_page_opens_at_its_beginning(browser: Browser, demo: str) -> None:
    """An address that names a picture does not scroll to it, past the title."""
    for key in PICTURES:
        browser.show(f"{demo}#{key}", 400, 500)
        browser.ask("new Promise(done => setTimeout(done, 100))")
        assert browser.ask("scrollY") == 0, key


def test_a_large_call_graph_begins_with_what_can_be_read(browser: Browser, tmp_path: Path) -> None:
    """The heaviest functions at a readable size; all of them are one choice, and the whole one key away."""
    count = 70
    data = {"unit": "hits", "names": [f"geo::function_{n}" for n in range(count)], "own": [n % 9 for n in range(count)],
            "weight": [count - n for n in range(count)], "edges": [x for n in range(1, count) for x in ((n - 1) // 3, n, 5)], "left_out": 30}
    (path := tmp_path / "x.html").write_text(page("Graph", [ChartView(key="callgraph", title="Call graph", chart="callgraph", data=data)]))
    scale = f"+{CHART}.querySelector('svg > g').getAttribute('transform').match(/scale\\(([\\d.]+)/)[1]"
    for size in SIZES:
        browser.show(path.as_uri(), *size)
        assert browser.ask(f"{CHART}.dataset.drawn") == "24" and browser.ask(scale) >= .8
        assert "24 heaviest of 100" in browser.ask(f"{CHART}.querySelector('select').textContent")
        last = json.dumps(data["names"][-1])
        browser.ask(f"(i => {{ i.value = {last}; i.dispatchEvent(new Event('input')) }})({CHART}.querySelector('input'))")
        browser.wait(f"{CHART}.querySelector('.said').textContent === 'nothing found, 1 among functions that are not shown'")
        browser.press("Escape")
        browser.ask(f"(s => {{ s.selectedIndex = s.options.length - 1; s.dispatchEvent(new Event('change')) }})({CHART}.querySelector('select'))")
        assert browser.ask(f"{CHART}.dataset.drawn") == str(count)
        browser.press("Escape")
        assert browser.ask(f"""(() => {{ const all = {CHART}.querySelector('svg').getBoundingClientRect();
            return [...{CHART}.querySelectorAll('svg g g')].every((e) => {{ const r = e.getBoundingClientRect();
            return r.left >= all.left - 1 && r.right <= all.right + 1 && r.top >= all.top - 1 && r.bottom <= all.bottom + 1 }}) }})()""")


@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
def test_a_page_of_coverage(browser: Browser, size: tuple[int, int], tmp_path: Path) -> None:
    """A table of files, and of each its lines with their counts; n goes to the next that were not executed."""
    source = tmp_path / "long.c"
    source.write_text("".join(f"line {n} \u001b[31m\f<b>\n" for n in range(1, 30_001)))
    sources = {str(source): SourceCoverage(Counter({n: n % 7 for n in range(2, 30_000, 2)}), {LONG: (70, 3), "other": (900, 0)}),
               "gone.c": SourceCoverage(Counter({5: 0}), {})}
    (path := tmp_path / "x.html").write_bytes(coverage_page(sources, tmp_path))
    del browser.errors[:]
    for dark in (False, True):
        browser.show(f"{path.as_uri()}?theme={'dark' if dark else 'light'}", *size)  # one that was chosen before is kept
        assert "1 of 2 files could not be read" in browser.ask("document.querySelector('.warning').textContent")
        assert browser.ask("parseInt(getComputedStyle(document.body).backgroundColor.slice(4)) < 80") == dark
        begun = time.monotonic()
        browser.ask("document.querySelector('tbody tr').focus()")
        browser.press("Enter")
        assert browser.ask(f"{CHART}.dataset.drawn") == "30000" and time.monotonic() - begun < 5
        assert browser.ask("document.querySelector('#line-8').innerText").split() == ["8", "1", "line", "8", "\\x1b[31m\\x0c<b>"]
        assert browser.ask("document.querySelector('#line-14').className") == "missed"
        assert "measure" in browser.ask("document.querySelector('table.rows').textContent")
        for line in ("14", "28"):
            browser.press("n")
            assert browser.ask("document.querySelector('.at').id") == f"line-{line}"
            inside = "(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('.at').getBoundingClientRect())"
            assert browser.ask(inside)
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
        browser.press("Escape")
        assert browser.ask("document.querySelectorAll('tbody tr').length") == 2
        assert browser.errors == []
