"""The page of a recording: what it carries, and what it does in a real browser."""

import base64
import hashlib
import json
import re
import struct
import zlib
from collections import defaultdict
from os.path import dirname

import pytest
from browser import Browser, find_browser
from recordings import (
    MIB,
    Machine,
    live_after,
    losing,
    random_recording,
    training_recording,
    without_first,
)

import genesis
from genesis import _recording as r
from genesis._recording import ALLOC, EVENT, FREE, Frame, Recording, place_of
from genesis._timeline_page import BLOCK, TEMPLATE, write_page

EVIL = "</script><img src=x onerror='window.pwned=1'><!--\u2028\"&amp;${1}`"


def read_page(path) -> tuple[dict, bytes]:
    """The header and the records that a page carries."""
    payload = re.search(r'id="payload">([^<]*)</script>', path.read_text())[1]
    raw = zlib.decompress(base64.b64decode(payload, validate=True))
    (length,) = struct.unpack_from("<I", raw)
    header = json.loads(raw[4 : 4 + length])
    middle = 4 + length + header["count"] * EVENT.size
    data = from_planes(raw[4 + length : middle], EVENT.size)
    header["blocks"] = list(BLOCK.iter_unpack(from_planes(raw[middle:], BLOCK.size)))
    return header, data


def from_planes(planes: bytes, size: int) -> bytes:
    count = len(planes) // size
    data = bytearray(len(planes))
    for plane in range(size):
        data[plane::size] = planes[plane * count : (plane + 1) * count]
    return bytes(data)


def read_stacks(header: dict) -> list:
    texts = header["texts"]
    return [
        tuple(
            r.Frame(texts[flat[i]], texts[flat[i + 1]], flat[i + 2]) for i in range(0, len(flat), 3)
        )
        for flat in header["sites"]
    ]


# ---- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2000])
def test_the_page_carries_the_whole_recording(tmp_path, steps):
    recording, _ = random_recording(seed=3, steps=steps)
    write_page(recording, tmp_path / "page.html")
    header, data = read_page(tmp_path / "page.html")
    assert data == recording.data
    assert header["count"] * EVENT.size == len(data)
    assert read_stacks(header) == recording.sites
    for name in ("annotations", "devices", "lost"):
        assert header[name] == getattr(recording, name)
    assert int(header["unix_ns"]) == recording.unix_ns
    held = [b for b in recording.blocks if b["state"] in ("live", "pending")]
    keys = ("address", "nbytes", "requested", "stream_id", "site", "device")
    assert [block[:6] for block in header["blocks"]] == [tuple(b[k] for k in keys) for b in held]
    assert [block[6] for block in header["blocks"]] == [b["state"] == "pending" for b in held]
    assert sum(s[2] for s in header["segments"]) == sum(
        now["reserved_bytes"] for now in recording.statistics.values()
    )


def test_a_million_events_would_fit(tmp_path):
    recording, _ = random_recording(steps=20_000)
    count = len(recording.data) // EVENT.size
    write_page(recording, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < TEMPLATE.stat().st_size + 40 * count


def test_nothing_of_the_recording_is_markup(tmp_path):
    machine = Machine([EVIL])
    machine.mark(EVIL)
    machine.alloc(4096, site=machine.site((EVIL, EVIL + "\udcff", 1)))
    write_page(machine.recording(), tmp_path / "evil.html")
    write_page(Recording(), tmp_path / "empty.html")
    pages = [(tmp_path / name).read_text() for name in ("evil.html", "empty.html")]
    bare = [re.sub(r'id="payload">[^<]*<', 'id="payload"><', page) for page in pages]
    assert bare[0] == bare[1]
    header, _ = read_page(tmp_path / "evil.html")
    assert header["texts"] == [EVIL, EVIL + "\udcff"]


def test_the_page_loads_nothing_and_runs_one_script(tmp_path):
    write_page(Recording(), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert not re.search(r"https?://|@import|\bsrc=|innerHTML|insertAdjacentHTML", page)


# ---- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    if find_browser() is None:
        pytest.skip("no Chromium (Debian: apt-get install chromium)")
    with Browser() as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of a recording in place of the one before, which must not have complained."""
    pages = []

    def finish():
        while pages:
            page = pages.pop()
            page.settle()
            page.close()
            assert page.complaints == []

    def show(recording, **options):
        finish()
        write_page(recording, tmp_path / "page.html")
        pages.append(browser.open(tmp_path / "page.html", **options))
        return pages[-1]

    yield show
    finish()


def values(page, name: str, count: int) -> list:
    """Bytes after each event, as the page has them."""
    return page.run(f"Array.from(state.model.{name}).slice(1, {count + 1})")


def chart_point(page, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
    """A place of the plot in the window, from shares of its width and height."""
    box = page.run(
        "(() => { const b = $('front').getBoundingClientRect(), p = state.picture.plot;"
        "return [b.left + p.left, b.top + p.top, p.width, p.height]; })()"
    )
    return box[0] + x * box[2], box[1] + (1 - y) * box[3]


def view(page) -> tuple[float, float]:
    return tuple(page.run("[state.x0, state.x1]"))


@pytest.mark.parametrize("seed", range(4))
def test_bytes_equal_the_model_at_every_event(show, seed):
    recording, truth = random_recording(seed)
    first = [0, 0, 1, 700][seed]
    page = show(without_first(recording, first))
    truth = truth[first:]
    for device in range(len(recording.devices)):
        page.choose("device", str(device))
        for name in ("live", "pending", "reserved"):
            expected = [getattr(now[device], name) for now in truth]
            assert values(page, name, len(truth)) == expected, name


def test_bytes_are_exact_after_the_last_lost_event(show):
    recording, truth = random_recording(seed=5)
    partial, left = losing(recording, thread=2, events=150)
    page = show(partial)
    page.choose("device", "0")
    horizon = page.run("state.recording.horizon")
    assert 0 < horizon < len(left) and EVENT.unpack_from(partial.data, horizon * EVENT.size)[7] == 2
    live = values(page, "live", len(left))
    assert live[horizon:] == [truth[place][0].live for place in left[horizon:]]
    assert "150 events were lost" in page.text("notes")


def test_every_column_is_a_true_state_and_peaks_are_seen(show):
    recording, truth = random_recording(seed=7, steps=6000, devices=("cuda:0",))
    page = show(recording)
    for axis in ("time", "event"):
        page.choose("axis", axis)
        moments = page.run("Array.from(state.picture.columns.moments)")
        drawn = page.run("Array.from(state.picture.view.sums)")[: len(moments)]
        assert drawn == [truth[m][0].live for m in moments]
        assert max(drawn) == max(now[0].live for now in truth)
    page.wheel(*chart_point(page, 0.7), -600)
    # What is drawn as blocks and what is in the band make up the height of each column.
    heights = page.run(
        "(() => { const { width, height, picks, scale } = state.picture.painter, rows = [];"
        "for (let c = 0; c < width; c++) { let n = 0; for (let y = 0; y < height; y++)"
        "n += picks[y * width + c] !== -1; rows.push(n / scale); } return rows; })()"
    )
    pixel = page.run("1 / state.picture.painter.scale")
    drawn = page.run("Array.from(state.picture.view.sums)")
    assert all(abs(h - d) <= pixel for h, d in zip(heights, drawn, strict=False))


def test_zoom_pan_and_reset(show):
    page = show(random_recording()[0])
    whole = view(page)
    page.wheel(*chart_point(page, 0.25), -300)
    low, high = view(page)
    assert whole[0] < low < high < whole[1]
    assert (low + (high - low) / 4) == pytest.approx(whole[1] / 4, rel=0.02)  # stays under it
    page.drag(*chart_point(page, 0.2), *chart_point(page, 0.6))
    zoomed = view(page)
    assert zoomed[1] - zoomed[0] == pytest.approx((high - low) * 0.4, rel=0.02)
    page.drag(*chart_point(page, 0.6), *chart_point(page, 0.4), shift=True)
    panned = view(page)
    assert panned[1] - panned[0] == pytest.approx(zoomed[1] - zoomed[0])
    assert panned[0] > zoomed[0]
    for button, wider in (("in", False), ("out", True)):
        before = view(page)
        page.run(f"$('{button}').click()")
        page.settle()
        after = view(page)
        assert (after[1] - after[0] > before[1] - before[0]) == wider
    page.run("$('reset').click()")
    page.settle()
    assert view(page) == whole


def test_sizes_can_be_zoomed(show):
    page = show(random_recording()[0])
    x, y = chart_point(page, 0)
    before = page.run("state.picture.range")
    page.wheel(x - 30, y, -300)
    assert page.run("state.picture.range") < before
    page.run("$('reset').click()")
    page.settle()
    assert page.run("state.picture.range") == before


def largest_alloc(recording) -> tuple[int, tuple]:
    """The ALLOC event of the device 0 that is seen best: large and long-lived."""
    events = list(EVENT.iter_unpack(recording.data))
    ends = {}
    best = (0, 0)
    for place, event in reversed(list(enumerate(events))):
        if event[9] or event[8] > r.FREE_REQUESTED:
            continue
        if event[8] == r.ALLOC:
            weight = event[2] * (ends.pop(event[1], len(events)) - place)
            best = max(best, (weight, place)) if event[5] else best
        else:
            ends[event[1]] = place
    return best[1], events[best[1]]


@pytest.mark.parametrize("scale", [1, 1.5, 2])
def test_hover_tells_about_the_block(show, scale):
    recording, _ = random_recording(seed=2, devices=("cuda:0",))
    page = show(recording, scale=scale)
    place, event = largest_alloc(recording)
    where = page.run(f"timeline.find({place})")
    page.hover(where["x"], where["y"])
    tip = page.text("tip")
    assert f"{event[2]:,} bytes" in tip and f"{event[3]:,} bytes" in tip
    assert hex(event[1]) in tip
    assert f"Thread\n{event[7]}" in tip and f"Stream\n{event[4]}" in tip
    assert (recording.annotations[event[6]] or "none") in tip
    for frame in recording.sites[event[5]]:
        assert f"{frame.filename}:{frame.line} {frame.name}" in tip
    page.hover(5, 5)
    assert page.run("getComputedStyle($('tip')).visibility") == "hidden"


def chosen_bytes(page) -> int:
    """Bytes of the blocks that the table of holders is about."""
    return page.run(
        "livesAt(state.moment, false).filter(i => state.model.mask[i])"
        ".reduce((sum, i) => sum + state.model.lives.size[i], 0)"
    )


@pytest.mark.parametrize(
    ("control", "value", "keeps"),
    [
        ("minimum", "1 MiB", lambda rec, e: e[2] >= MIB),
        ("minimum", "4096", lambda rec, e: e[2] >= 4096),
        ("stream", "7", lambda rec, e: e[4] == 7),
        ("stream", "0", lambda rec, e: e[4] == 0),
        ("annotation", "-", lambda rec, e: e[6] == 0),
        (
            "annotation",
            "=forward",
            lambda rec, e: rec.annotations[e[6]].split("/")[0] == "forward",
        ),
        ("text", "EMBED.py", lambda rec, e: any("embed.py" in f[1] for f in rec.sites[e[5]])),
    ],
)
def test_filters(show, control, value, keeps):
    recording, truth = random_recording(seed=11, steps=3000, devices=("cuda:0",))
    page = show(recording)
    moment = page.run("state.moment")
    assert truth[moment][0].live == max(now[0].live for now in truth)  # opens at the peak
    live = live_after(recording, moment).values()
    assert chosen_bytes(page) == sum(e[2] for e in live)
    page.choose(control, value)
    expected = sum(e[2] for e in live if keeps(recording, e))
    assert chosen_bytes(page) == expected
    # The picture is about the same blocks as the table.
    assert max(page.run("Array.from(state.picture.view.sums)")) >= expected
    column = page.run("state.picture.columns.moments.indexOf(state.moment)")
    assert page.run(f"state.picture.view.sums[{column}]") == expected
    page.run("$('clear').click()")
    page.settle()
    assert chosen_bytes(page) == truth[moment][0].live


def holders_by_top(recording, live) -> list[tuple[int, int]]:
    """Bytes and counts by the line of the stack, largest first."""
    groups = defaultdict(lambda: [0, 0])
    for event in live.values():
        stack = recording.sites[event[5]]
        group = groups[place_of(stack)]
        group[0] += event[2]
        group[1] += 1
    return sorted(map(tuple, groups.values()), reverse=True)


@pytest.mark.parametrize("package", [f"{dirname(genesis.__file__)}/", "/x/site-packages/genesis/"])
def test_lines_are_the_users(show, package):
    """What the package's own files did has the line that called them; paths keep their end."""
    path = "/home/user/" + "long/" * 15 + "model.py"
    stack = (Frame("empty", f"{package}_tensor.py", 9), Frame("train", path, 45))
    events = [(10, 4096, 1 << 20, 1 << 20, 0, 1, 0, 0, ALLOC, 0, 1)]
    events.append((20, 4096, 1 << 20, 1 << 20, 0, 1, 0, 0, FREE, 0, 2))
    data = b"".join(EVENT.pack(*one) for one in events)
    page = show(Recording(data, [(), stack], [""], ["cuda:0"]))
    assert page.run("state.recording.topNames") == ["stack not known", f"{path}:45 train"]
    assert page.run("blockLabel(0)") == "train  1 MiB"
    shown, title = page.run(
        "Array.from($('legend').children).filter(one => one.title.includes('model.py'))"
        ".map(one => [one.textContent, one.title])[0]"
    )
    assert title == f"{path}:45 train"
    assert shown.startswith("\u2026/long/") and shown.endswith("/model.py:45 train")
    assert len(shown) <= 48


def test_a_click_shows_holders_and_layout(show):
    recording, truth = random_recording(seed=13, steps=3000, devices=("cuda:0",))
    page = show(recording)
    page.click(*chart_point(page, 0.4, 0.1))
    moment = page.run("state.moment")
    assert 0 < moment < len(truth)
    live = live_after(recording, moment)
    groups = page.run(
        "groupHolders(livesAt(state.moment, false)).map(group => [group.bytes, group.count])"
    )
    assert [tuple(group) for group in groups] == holders_by_top(recording, live)
    rows = page.run("document.querySelectorAll('#holders tbody tr').length")
    assert rows == min(20, len(groups))
    first = page.run("document.querySelector('#holders tbody tr').cells[2].textContent")
    assert first == str(groups[0][1])
    now = truth[moment][0]
    layout = page.run(
        "layoutAt(state.moment).rows.map(row => [row.address, row.bytes, row.used, row.held.map("
        "i => [state.model.lives.address[i], state.model.lives.size[i]])])"
    )
    assert page.run("layoutAt(state.moment).outside.length") == 0
    assert sum(row[1] for row in layout) == now.reserved
    assert sum(row[2] for row in layout) == now.live + now.pending
    for address, size, _, held in layout:
        at = address
        for block, block_size in held:
            assert at <= block
            at = block + block_size
        assert at <= address + size
    assert {(a, e[2]) for a, e in live.items()} <= {tuple(h) for row in layout for h in row[3]}
    assert page.run("document.querySelectorAll('#layout canvas').length") == min(24, len(layout))


def test_a_segment_that_grew_is_shorter_before(show):
    base = 0x7F0000000000
    machine = Machine()
    machine.wait(1000)
    machine.emit(r.SEGMENT_MAP, address=base + 2 * MIB, size=2 * MIB)
    machine.wait(1000)
    machine.emit(r.SEGMENT_UNMAP, address=base + 64 * MIB, size=8 * MIB)
    recording = machine.recording()
    free = {"address": base, "nbytes": 4 * MIB, "requested": 0, "state": "global_cached"}
    where = {"segment_id": 1, "segment_address": base, "segment_bytes": 4 * MIB}
    recording.blocks = [free | where | {"stream_id": 0, "device": 0, "site": 0}]
    page = show(recording)
    shapes = [
        page.run(f"segmentsAt(state.recording, state.model, {moment})") for moment in (-1, 0, 1)
    ]
    other = [base + 64 * MIB, 8 * MIB]
    assert shapes == [
        [[base, 2 * MIB], other],
        [[base, 4 * MIB], other],
        [[base, 4 * MIB]],
    ]
    assert page.run("[-1, 0, 1].map(timeline.reservedAt)") == [10 * MIB, 12 * MIB, 4 * MIB]


def test_a_block_across_pieces_that_were_mapped_one_by_one(show):
    base = 0x7F0000000000
    machine = Machine()
    for index in range(3):
        machine.wait(1000)
        machine.emit(r.SEGMENT_MAP, address=base + index * 2 * MIB, size=2 * MIB)
    machine.wait(1000)
    machine.emit(r.ALLOC, address=base, size=6 * MIB, requested=6 * MIB)
    machine.wait(1000)
    machine.emit(r.FREE, address=base, size=6 * MIB, requested=6 * MIB)
    for index in range(3):
        machine.emit(r.SEGMENT_UNMAP, address=base + index * 2 * MIB, size=2 * MIB)
    page = show(machine.recording())
    rows = page.run("layoutAt(3).rows.map(row => [row.address, row.bytes, row.used])")
    assert rows == [[base, 6 * MIB, 6 * MIB]]


def test_a_holder_opens_to_its_stacks(show):
    recording, _ = training_recording(1, fails=False)
    page = show(recording)
    page.run("document.querySelector('#holders details').open = true")
    page.settle()
    assert "train.py:88 main" in page.text("holders")


def test_keys_reach_everything(show):
    recording, truth = random_recording(devices=("cuda:0",))
    page = show(recording)
    page.run("$('front').focus()")
    page.press("Home")
    assert page.run("state.moment") == 0
    page.press("End")
    assert page.run("state.moment") == len(truth) - 1
    page.press("ArrowLeft")
    assert page.run("state.moment") < len(truth) - 1
    page.press("ArrowUp")
    assert "0x7f" in page.text("block")
    whole = view(page)
    page.press("+")
    zoomed = view(page)
    assert zoomed[1] - zoomed[0] < whole[1] - whole[0]
    page.press("ArrowLeft", shift=True)
    assert view(page)[0] < zoomed[0]
    page.press("0")
    assert view(page) == whole


def test_marks_annotations_and_out_of_memory(show):
    recording, _ = training_recording()
    page = show(recording)
    assert "Out of memory" in page.text("moments") and "checkpoint" in page.text("moments")
    names = page.run("state.spans.spans.map(s => state.recording.annotations[s.annotation])")
    assert names[:3] == ["build", "step 0", "step 0/forward"]
    depths = page.run("state.spans.spans.map(s => s.depth)")
    assert depths[:3] == [0, 0, 1]
    x, y = page.run(
        "(() => { const b = $('front').getBoundingClientRect(), i = state.model.points.at(-1);"
        "return [b.left + plotX(xOf(i)), b.top + 8]; })()"
    )
    page.hover(x, y)
    assert f"{96 * MIB:,} bytes" in page.text("tip") and "matmul" in page.text("tip")


def test_evil_names_are_only_text(show):
    machine = Machine([EVIL])
    machine.begin(EVIL)
    machine.mark(EVIL)
    machine.alloc(4 * MIB, site=machine.site((EVIL, EVIL, 1)))
    machine.wait(1000)
    machine.out_of_memory(MIB, 0, site=1)
    machine.end()
    page = show(machine.recording())
    page.hover(*chart_point(page, 0.5, 0.05))
    page.click(*chart_point(page, 0.5, 0.05))
    assert EVIL.replace("\u2028", "") in page.text("tip").replace("\u2028", "").replace("\n", " ")
    assert page.run("window.pwned") is None
    assert page.run("document.images.length") == 0


def test_an_empty_recording(show):
    page = show(Recording(devices=["cuda:0"]))
    assert "The recording is empty" in page.text("notes")
    page = show(Recording())
    assert "The recording is empty" in page.text("notes")
    for key in ("ArrowLeft", "ArrowUp", "+", "0", "End"):
        page.run("$('front').focus()")
        page.press(key)
    page.hover(*chart_point(page))
    page.click(*chart_point(page))
    page.choose("axis", "event")


def test_blocks_without_events(show):
    recording, truth = random_recording(devices=("cuda:0",))
    page = show(without_first(recording, len(truth)))
    assert "no events" in page.text("notes")
    assert page.run("timeline.liveAt(-1)") == truth[-1][0].live
    groups = page.run("groupHolders(livesAt(-1, false)).map(group => [group.bytes, group.count])")
    live = live_after(recording, len(truth))
    assert [tuple(group) for group in groups] == holders_by_top(recording, live)
    assert chosen_bytes(page) == truth[-1][0].live


def test_a_single_event(show):
    machine = Machine()
    machine.mark("only")
    page = show(machine.recording())
    page.wheel(*chart_point(page), -500)
    assert "only" in page.text("moments")


def test_a_broken_file_says_so(browser, tmp_path):
    path = tmp_path / "page.html"
    write_page(random_recording()[0], path)
    text = path.read_text()
    start = text.index('id="payload">') + 13
    path.write_text(text[: start + 400] + text[text.index("</script>", start) :])
    with pytest.raises(RuntimeError):
        browser.open(path)
    page = list(browser.pages.values())[-1]
    assert "cannot be shown" in page.text("notes")
    page.close()


def test_light_and_dark(show):
    recording, _ = training_recording(1)
    grounds = [
        show(recording, dark=dark).run("getComputedStyle(document.body).backgroundColor")
        for dark in (False, True)
    ]
    assert grounds == ["rgb(246, 247, 249)", "rgb(18, 21, 27)"]
