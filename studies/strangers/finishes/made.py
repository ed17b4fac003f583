"""Finishes made up for training: words of many manners (parts.toml), put together at random."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random
from typing import Any

_RAW = tomllib.loads((Path(__file__).parent / "parts.toml").read_text("utf-8"))
FORMS = {name: text.strip().split("\n") for name, text in _RAW.pop("forms").items()}
PARTS = {name: text.strip().split("\n") for name, text in _RAW.items()}
REASONS = {
    "service_failure": 25,
    "tool_unavailable": 22,
    "contradictory_request": 17,
    "not_found": 26,
    "other": 10,
}
KINDS = {"answer": 27, "refusal": 35, "question": 22, "none": 16}
LIGHT = {
    "service_failure": (
        '{"error":{"code":"unavailable","message":"The backend has been decommissioned."}}',
    ),
    "not_found": ('{"error":{"code":"not_found","message":"There is no such entry."}}', "[]"),
    "tool_unavailable": (
        "Removed today without a successor: {tool}.",
        '{"error":{"code":"unknown_tool"}}',
    ),
    "contradictory_request": ("",),
    "": ("",),
}
IDENTIFIERS = ("CR-{}", "MRN{}", "bin_{}", "LAB{}", "BK-8-{}", "REF{}", "X4-{}")
LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"


def weighed(rng: Random, table: dict[str, int]) -> str:
    """One of the names, by weight."""
    return rng.choices(list(table), list(table.values()))[0]


def code(rng: Random) -> str:
    """A code as answers are."""
    return "-".join("".join(rng.choices(LETTERS, k=4)) for _ in range(2))


def cased(text: str) -> str:
    """With a capital at the start."""
    return text[:1].upper() + text[1:]


class Made:
    """One finish in the making: the words of its task, and the random source."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        want, other = rng.sample(PARTS["wants"], 2)
        a, b = rng.sample(PARTS["values"], 2)
        self.words = {
            "want": want, "other": other, "code": code(rng), "way": code(rng), "a": a, "b": b,
            "thing": rng.choice(PARTS["things"]), "slot": rng.choice(PARTS["slots"]),
            "tool": rng.choice(PARTS["tools"]), "number": rng.randint(3, 400),
        }  # fmt: skip

    def part(self, *names: str) -> str:
        """A part of one of these lists, filled in."""
        return self.rng.choice(PARTS[self.rng.choice(names)]).format(**self.words)

    def maybe(self, share: float, *names: str) -> str:
        """A part, or nothing."""
        return self.part(*names) if self.rng.random() < share else ""

    def form(self, name: str) -> str:
        """A finish as data or as a call written out."""
        return self.rng.choice(FORMS[name]).format(**self.words)

    def lead(self) -> str:
        """How it begins; at times with thoughts that leaked."""
        if self.rng.random() < 0.2:
            names = ("thoughts", "thoughts", "detours", "service_failure", "not_found")
            said = [self.part(*names).rstrip(".") + "." for _ in range(self.rng.randint(1, 3))]
            return " ".join(map(cased, said))
        return self.maybe(0.5, "leads")

    def put(self, *parts: str) -> str:
        """The parts in one of many layouts."""
        held, layout = [part for part in parts if part], self.rng.random()
        if layout < 0.12:
            return self.letter(held)
        if layout < 0.22:
            return self.report(held)
        if layout < 0.6:
            ends = tuple(".?!:,\n`*}")
            return " ".join(p if p.endswith(ends) else f"{p}." for p in map(cased, held))
        if layout < 0.68:
            return "\n\n".join(map(cased, held))
        if layout < 0.75:
            return "\n".join(f"- {cased(part)}" for part in held)
        if layout < 0.81:
            return " ".join(held).lower()
        if layout < 0.93:
            return (", " if layout < 0.86 else " - ").join(part.rstrip(".") for part in held)
        return f"**{cased(held[0])}**\n" + " ".join(map(cased, held[1:]))

    def letter(self, held: list[str]) -> str:
        """The parts as an e-mail."""
        body = " ".join(p if p.endswith(tuple(".?!:,`*}")) else f"{p}." for p in map(cased, held))
        return (
            f"{self.part('greetings')}\n\n{body}\n\n{self.part('closings')}\n{self.part('signers')}"
        )

    def report(self, held: list[str]) -> str:
        """The parts as points under headings."""
        mark, item = self.rng.choice(("## ", "# ", "**")), self.rng.choice("-*")
        lines = []
        for number, part in enumerate(held):
            if number == 0 or self.rng.random() < 0.5:
                head = self.part("heads")
                lines.append(f"{mark}{head}{'**' if mark == '**' else ''}")
            lines.append(part if part.startswith("#") else f"{item} {cased(part)}")
        return "\n".join(lines)

    def hedged(self, part: str) -> str:
        """A part, at times with words that limit what it says."""
        chance = self.rng.random()
        if not part or chance > 0.14:
            return part
        hedge = self.part("hedges")
        return f"{cased(hedge)}, {part}" if chance < 0.07 else f"{part.rstrip('.')}. {cased(hedge)}"

    def refusal(self, reason: str) -> str:
        """A cause, what follows from it, and at times an offer."""
        rng, lead, cause = self.rng, self.lead(), self.hedged(self.part(reason))
        stops = [self.part("stops") for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        if reason == "other" and not stops:
            stops = [self.part("stops")]
        if rng.random() < 0.2:
            want = self.words["want"]
            stops = [rng.choice((self.part("stops"), f"the {want} was not", f"but no {want}"))]
            lead = self.part("ways")
        offer, order = self.maybe(0.4, "offers"), rng.random()
        if order < 0.65:
            return self.put(lead, cause, *stops, offer)
        if order < 0.85 and stops:
            link = rng.choice((": ", ", because ", " since ", ", as ", ". Reason: "))
            return self.put(
                lead, self.maybe(0.15, "claims"), stops[0].rstrip(".") + link + cause, offer
            )
        return self.put(lead, *stops, cause, offer)

    def question(self) -> str:
        """A question, at times after a failure that it is about."""
        tails = ("", "", "", "Thanks!", "Thank you.", "I look forward to your reply.")
        cause = self.maybe(0.3, *REASONS)
        return self.put(self.lead(), cause, self.part("asks"), self.rng.choice(tails))

    def answer(self) -> str:
        """A value, at times after a detour, with an offer behind it."""
        offer = self.maybe(0.3, "offers")
        parts = (
            self.maybe(0.4, "detours", "ways"),
            self.maybe(0.25, "claims"),
            self.hedged(self.part("says")),
        )
        before, between, value = parts
        said = (value, between, before) if self.rng.random() < 0.3 else parts
        return self.put(self.lead(), *said, "" if "another one" in offer else offer)

    def none(self) -> str:
        """A claim, an announcement or an echo, without a value."""
        echo = self.request()
        if self.rng.random() < 0.35:
            return f"{echo} {self.rng.choice(('', self.part('claims'), echo))}".strip()
        lead = self.lead()
        lead = "" if str(self.words["way"]) in lead else lead
        return self.put(
            lead,
            self.hedged(self.part("claims")),
            self.maybe(0.45, "claims"),
            self.maybe(0.3, "offers"),
        )

    def request(self) -> str:
        """What the user asks for."""
        return "Please tell me the {want} of {thing}.".format(**self.words)

    def shown(self, kind: str, light: str) -> list[str]:
        """Results: codes, under the field that was asked for or another, and what came to light."""
        rng, way = self.rng, str(self.words["other"]).split(maxsplit=1)[0]
        field = str(self.words["want"] if rng.random() < 0.85 else rng.choice(PARTS["wants"]))
        key, results = field.split(maxsplit=1)[0], []
        if kind == "answer" or rng.random() < 0.25:
            codes = self.words["code"], self.words["way"]
            results = [f'{{"{key}_ref":"{codes[0]}","{way}_ref":"{codes[1]}"}}']
        elif rng.random() < 0.6:
            results = [f'{{"{way}_ref":"{self.words["way"]}","record_id":"AB1234"}}']
        if kind == "answer" and rng.random() < 0.15:
            self.words["code"] = rng.choice(IDENTIFIERS).format(rng.randint(1000, 99999))
        return [*results, rng.choice(LIGHT[light]).replace("{tool}", str(self.words["tool"]))]


def finish(rng: Random) -> dict[str, Any]:
    """A finish with its context and its label, in the form of the samples."""
    made, kind = Made(rng), weighed(rng, KINDS)
    reason = weighed(rng, REASONS) if kind == "refusal" else ""
    light = rng.choice(("", "", "", "", "", "", "", *LIGHT))
    if kind == "refusal" and reason in LIGHT and rng.random() < 0.8:
        light = reason
    shown = made.shown(kind, light)
    if rng.random() < 0.14:
        text = made.form(reason or kind)
    else:
        text = made.refusal(reason) if reason else getattr(made, kind)()
    said = [{"role": "user", "text": made.request()}]
    if light == "contradictory_request":
        torn = "The {slot} has to be {a} and it also has to be {b}.".format(**made.words)
        said.append({"role": "user", "text": torn})
    said += [{"role": "result", "text": result} for result in shown if result]
    if rng.random() < 0.15:
        said = []  # so that the words alone decide, too
    label = {"kind": kind, "reason": reason}
    return {"family": "made", "context": said, "finish": text, **label}


def finishes(number: int, seed: int) -> list[dict[str, Any]]:
    """So many finishes; the same for the same seed."""
    rng = Random(seed)
    return [finish(rng) for _ in range(number)]
