"""The pictures of docs/pictures/: what happens at a hit, and the state machines, drawn from the core's own tables."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from math import hypot
from typing import Any

from kprobes.core.hit import ctlblk
from kprobes.core.patch import arming

HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" font-family="sans-serif" '
        'font-size="12">\n'
        # on a dark page light and dark change places, and colours stay
        '<style>@media (prefers-color-scheme: dark) {{ svg {{ filter: invert(.93) hue-rotate(180deg) }} }}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#444444"/></marker></defs>\n<rect width="100%" height="100%" fill="#ffffff"/>\n')
ARROW = 'stroke="#444444" stroke-width="1.3" fill="none" marker-end="url(#tip)"'


def words(x: float, y: float, text: str, more: str = "") -> str:
    """Text in the middle of a place."""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle"{more}>{text}</text>'


def box(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A box around a place."""
    return (f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"'
            f' fill="{fill}" stroke="#444444"/>')


# --- what happens, in order

LANES = {"guest": "#e8f1fa", "machine": "#eef7ea", "core": "#fdf3e1", "handlers": "#f6eaf5"}
LANE, STEP = 226, 44

#: picture -> its title, and (from, to, what) in order; where both are the same it happens there
STORIES: Mapping[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {
    "hit": ("A hit with a post-handler: two traps", (
        ("guest", "machine", "executes the breakpoint"),
        ("machine", "core", "trap(regs): pc is the probepoint"),
        ("core", "handlers", "pre-handlers, the newest first"),
        ("core", "guest", "pc = the slot"),
        ("guest", "guest", "the displaced instruction"),
        ("guest", "machine", "executes the trap behind it"),
        ("machine", "core", "trap(regs): end of the slot"),
        ("core", "handlers", "post-handlers: pc is the next one"),
        ("core", "guest", "pc = the next instruction"),
    )),
    "boosted": ("Boosted: one trap, the slot ends in a jump back", (
        ("guest", "machine", "executes the breakpoint"),
        ("machine", "core", "trap(regs): pc is the probepoint"),
        ("core", "handlers", "pre-handlers"),
        ("core", "guest", "pc = the slot, and the hit is over"),
        ("guest", "guest", "displaced instruction, jump back"),
    )),
    "optimized": ("Optimized: no trap, the guest never stops", (
        ("guest", "guest", "jumps to the call site"),
        ("guest", "machine", "a call from within its code"),
        ("machine", "handlers", "pre-handlers, in place"),
        ("machine", "guest", "goes on where it stands"),
        ("guest", "guest", "displaced instructions, jump back"),
    )),
    "return": ("A return probe: an entry, and a return", (
        ("guest", "machine", "reaches the function's entry"),
        ("machine", "core", "a hit like every other"),
        ("core", "handlers", "entry_handler; an instance is taken"),
        ("core", "guest", "return address = trampoline"),
        ("guest", "guest", "the function, and what it calls"),
        ("guest", "machine", "returns to the trampoline"),
        ("machine", "core", "whose frame is it?"),
        ("core", "handlers", "handler(ri, regs)"),
        ("core", "guest", "pc = the true return address"),
    )),
}


def story(title: str, steps: tuple[tuple[str, str, str], ...]) -> str:
    """Lanes from top to bottom, arrows between them in the order of time."""
    across = {lane: LANE * (n + 0.5) for n, lane in enumerate(LANES)}
    height = 86 + STEP * len(steps)
    out = [HEAD.format(LANE * len(LANES), height), words(LANE * len(LANES) / 2, 20, title,
                                                         ' font-size="15" font-weight="bold"')]
    for lane, x in across.items():
        out += [f'<path d="M{x:.0f} 58V{height - 12}" stroke="#bbbbbb" stroke-dasharray="4 4"/>',
                box(x, 45, LANE * 0.6, 26, LANES[lane]), words(x, 49, lane, ' font-weight="bold"')]
    for n, (start, end, what) in enumerate(steps):
        y = 92 + STEP * n
        if start == end:
            out += [box(across[start], y, LANE - 12, 24, LANES[start]), words(across[start], y + 4, f"{n + 1}. {what}")]
            continue
        out += [f'<path d="M{across[start]:.0f} {y}H{across[end]:.0f}" {ARROW}/>',
                words((across[start] + across[end]) / 2, y - 6, f"{n + 1}. {what}")]
    return "\n".join([*out, "</svg>\n"])


# --- state machines

WIDE, HIGH = 150, 34
LABEL = 0.66  # of the way: where many arrows cross, less stands there than in the middle
Place = tuple[float, float]
#: where states are drawn; what is not a state of the table stands for several
CONTROL: Mapping[str, Place] = {"IDLE": (90, 70), "HIT_ACTIVE": (330, 70), "HIT_SS": (570, 70),
                                "HIT_SSDONE": (570, 210), "REENTER": (330, 330), "POP": (90, 210)}
ARMING: Mapping[str, Place] = {"DISARMED": (90, 70), "ARMED": (330, 70), "OPTIMIZING": (600, 70),
                               "OPTIMIZED": (600, 230),
                               "UNOPTIMIZING": (330, 230), "GONE": (90, 230), "any other": (90, 330)}
FILLS = {"POP": "#eeeeee", "any other": "#eeeeee", "IDLE": "#eef7ea", "DISARMED": "#eef7ea", "GONE": "#f6eaf5"}


def edges(table: Mapping[tuple[Any, Any], enum.Enum], states: type[enum.Enum]) -> dict[tuple[str, str], list[str]]:
    """(state, state) -> events; what leads from every state to one is drawn once."""
    found: dict[tuple[str, str], list[str]] = {}
    for (state, event), target in table.items():
        leads = {s for (s, e), t in table.items() if e is event and t is target}
        everywhere = leads == {*states} - {target}
        events = found.setdefault(("any other" if everywhere else state.name, target.name), [])
        if event.name not in events:
            events.append(event.name)
    return found


def machine(title: str, found: Mapping[tuple[str, str], list[str]], places: Mapping[str, Place],
            notes: Mapping[str, str]) -> str:
    """States as boxes, events as arrows. notes: what stands below a state's name."""
    width, height = max(x for x, _ in places.values()) + WIDE / 2 + 30, max(y for _, y in places.values()) + 40
    out = [HEAD.format(width, height), words(width / 2, 22, title, ' font-size="15" font-weight="bold"')]
    for (start, end), events in found.items():
        out += edge(places[start], places[end], " ".join(events), both=(end, start) in found)
    for name, (x, y) in places.items():
        note = notes.get(name)
        out += [box(x, y, WIDE, HIGH, FILLS.get(name, "#e8f1fa")),
                words(x, y + (-1 if note else 4), name, ' font-weight="bold"')]
        out += [words(x, y + 12, note, ' font-size="9.5"')] if note else []
    return "\n".join([*out, "</svg>\n"])


def edge(start: Place, end: Place, label: str, both: bool) -> Iterable[str]:
    """An arrow from box to box, aside where another one goes back; its label has a white ground."""
    (x, y), (to_x, to_y) = start, end
    length = hypot(to_x - x, to_y - y)
    side_x, side_y = -(to_y - y) / length * 13 * both, (to_x - x) / length * 13 * both
    first, last = border(start, end, side_x, side_y), border(end, start, side_x, side_y)
    part = 0.5 if y == to_y else LABEL
    at_x, at_y = first[0] + (last[0] - first[0]) * part, first[1] + (last[1] - first[1]) * part
    wide = 6.9 * len(label) + 6
    return (f'<path d="M{first[0]:.0f} {first[1]:.0f}L{last[0]:.0f} {last[1]:.0f}" {ARROW}/>',
            f'<rect x="{at_x - wide / 2:.0f}" y="{at_y - 8:.0f}" width="{wide:.0f}" height="15" '
            'fill="#ffffff"/>',
            words(at_x, at_y + 4, label, ' font-size="10.5"'))


def border(box: Place, towards: Place, side_x: float, side_y: float) -> Place:
    """Where the line between two boxes leaves one, moved aside."""
    dx, dy = towards[0] - box[0], towards[1] - box[1]
    scale = min(WIDE / 2 / abs(dx) if dx else 9, HIGH / 2 / abs(dy) if dy else 9)
    return box[0] + dx * scale + side_x, box[1] + dy * scale + side_y


def pictures() -> dict[str, str]:
    """File name -> what is to be there."""
    drawn = {f"{name}.svg": story(title, steps) for name, (title, steps) in STORIES.items()}
    popped = {"POP": "the interrupted hit, or IDLE"}
    drawn["control-block.svg"] = machine("The control block of a CPU", edges(ctlblk.TABLE, ctlblk.HitState), CONTROL,
                                         popped)
    patch = {state.name: str(state.value).partition(",")[0] for state in arming.Arming}
    drawn["arming.svg"] = machine("A probepoint's patch", edges(arming.TABLE, arming.Arming), ARMING, patch)
    return drawn
