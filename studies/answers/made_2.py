"""Writes `made_2.jsonl.xz`: 160 more made-up finishes, written when the rule stood and read once.

The words that the rule knows were not looked at while these were written, but the author is the same:
so this says how the rule does on sentences that it was not mended on, and not how it does on agents.

    python studies/answers/made_2.py      # rewrites made_2.jsonl.xz, the same bytes each time
"""
# ruff: noqa: E501 - one template a line

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from made import drawn, filled

from toolshift.core.files import pack

SEED = 20261129
HERE = Path(__file__).parent

# As in `made.py`: language, type, draw, request, results, wanted, right ones, wrong ones.
FACTS: list[tuple[str, str, Any, str, Any, str, list[str], list[str]]] = [
    ("en", "number", "few", "How many tickets does the Meyer family still have?",
     {"family": "Meyer", "tickets_left": "{A[n]}#", "tickets_used": "{C[n]}#"}, "{A[n]}",
     ["They still have {A[n]} tickets.", "{A[n]} left, {C[n]} used.", "Meyer: {A[w]}.", "I checked the account; {A[n]} remain.",
      "The Meyers used {C[n]} and have {A[n]} left.", "Sure - {A[n]}!", "answer = {A[n]}", "They can still come {A[n]} times."],
     ["They still have {C[n]} tickets.", "{C[n]} left, {A[n]} used.", "Meyer: {B[w]}.", "I checked the account; {B[n]} remain.",
      "The Meyers used {A[n]} and have {C[n]} left.", "Sure - {C[n]}!", "They have used {A[n]} tickets.", "Fewer than {A[n]}."]),
    ("en", "amount", "money", "What do I owe the workshop?",
     {"repair": "{C[raw]}#", "total_due": "{A[raw]}#", "already_paid": "{B[raw]}#", "currency": "USD"}, "${A[en]}",
     ["You owe ${A[en]}.", "${A[en]}", "The total due is {A[en]} USD.", "The repair was ${C[en]}; with tax you owe ${A[en]}.",
      "{A[en]} dollars, please.", "Your open balance comes to ${A[en]}.", "Due: ${A[en]} (paid so far: ${B[en]})", "It's ${A[raw]} altogether."],
     ["You owe ${C[en]}.", "${B[en]}", "The total due is {C[en]} USD.", "The repair was ${A[en]}; with tax you owe ${C[en]}.",
      "{B[en]} dollars, please.", "You have already paid ${A[en]}.", "Due: ${B[en]} (paid so far: ${A[en]})", "It's €{A[raw]} altogether."]),
    ("en", "date", "day", "When was the bridge last inspected?",
     {"bridge": "B-4", "last_inspection": "{A[iso]}", "next_inspection": "{B[iso]}"}, "{A[iso]}",
     ["It was inspected on {A[mdy]}.", "The last inspection took place on {A[en]}.", "{A[iso]}", "Last: {A[iso]}; next: {B[iso]}.",
      "On {A[md]}.", "Inspectors were there on {A[mdy]}, and they'll be back on {B[mdy]}.", "{A[dots]}", "The record says {A[en]}."],
     ["It was inspected on {B[mdy]}.", "The last inspection took place on {B[en]}.", "{C[iso]}", "Last: {B[iso]}; next: {A[iso]}.",
      "On {C[md]}.", "Inspectors were there on {B[mdy]}, and they'll be back on {A[mdy]}.", "The next one is on {A[mdy]}.", "The record says {C[en]}."]),
    ("en", "yes_no", ["yes"], "Has my parcel left Hamburg?", {"parcel": "P-1", "left_hamburg": True}, "yes",
     ["Yes, it has.", "It has left Hamburg.", "Yes - this morning.", "Your parcel has left Hamburg.", "Yep.", "Correct, it's on its way.", "It has.", "true"],
     ["No, it hasn't.", "It has not left Hamburg.", "Not yet.", "Your parcel hasn't left Hamburg.", "Nope.", "It's still in the depot there.", "It hasn't.", "false"]),
    ("en", "text", ["Birch Hall", "Cedar Room", "Maple Studio", "Willow Loft"], "Where does the choir meet?",
     {"choir": "{A}", "orchestra": "{B}", "before_2026": "{C}"}, "{A}",
     ["The choir meets in {A}.", "{A}.", "In the {A}; the orchestra is in {B}.", "They've moved: it's {A} now.", "Go to {A}, please.", "It meets at {A} every week.",
      "Location: {A}", "You'll find the singers in {A}."],
     ["The choir meets in {B}.", "{C}.", "In the {B}; the orchestra is in {A}.", "They've moved from {A} to {D}.", "Go to {B}, please.", "It no longer meets in {A}.",
      "Location: {C}", "The orchestra is in {A}."]),
    ("en", "id", "code", "Which locker is mine?", [{"user": "me", "locker": "{A[n]}"}, {"user": "Tom", "locker": "{B[n]}"}], "{A[n]}",
     ["Yours is {A[n]}.", "Locker {A[n]}", "It's {A[low]}.", "You have {A[n]}, Tom has {B[n]}.", "{A[n]} - right by the door.", "**{A[n]}**", "Please use locker {A[n]}.", "The system lists {A[n]} for you."],
     ["Yours is {B[n]}.", "Locker {C[n]}", "It's {B[low]}.", "You have {B[n]}, Tom has {A[n]}.", "{C[n]} - right by the door.", "Tom's is {A[n]}.", "Please use locker {B[n]}.", "{A[n]} is not yours."]),
    ("de", "time", "clock", "Wann schließt die Bibliothek heute?", {"heute": "{A[iso]}", "samstag": "{B[iso]}"}, "{A[iso]}",
     ["Um {A[Uhr]}.", "Die Bibliothek schließt um {A[uhr]}.", "{A[iso]}", "Heute um {A[iso]}, samstags um {B[iso]}.", "Sie ist bis {A[iso]} geöffnet.", "Schluss ist um {A[Uhr]}.", "Heute: {A[iso]}", "Um {A[iso]} macht sie zu."],
     ["Um {B[Uhr]}.", "Die Bibliothek schließt um {B[uhr]}.", "{C[iso]}", "Heute um {B[iso]}, samstags um {A[iso]}.", "Sie ist bis {B[iso]} geöffnet.", "Schluss ist um {C[Uhr]}.", "Samstag: {A[iso]}", "Nicht um {A[iso]}."]),
    ("fr", "amount", "money", "Combien coûte l'abonnement ?", {"abonnement": "{A[raw]}#", "etudiant": "{B[raw]}#", "devise": "EUR"}, "{A[raw]} EUR",
     ["L'abonnement coûte {A[fr]} €.", "{A[fr]} euros", "Il est à {A[fr]} €.", "Abonnement : {A[fr]} € ; étudiant : {B[fr]} €.", "{A[raw]} EUR", "Vous payez {A[fr]} €.", "Le prix est de {A[fr]} €.", "C'est {A[fr]} € par an."],
     ["L'abonnement coûte {B[fr]} €.", "{B[fr]} euros", "Il est à {C[fr]} €.", "Abonnement : {B[fr]} € ; étudiant : {A[fr]} €.", "{C[raw]} EUR", "Vous payez {B[fr]} €.", "Il ne coûte pas {A[fr]} €.", "C'est {C[fr]} € par an."]),
    ("nl", "date", "day", "Wanneer is de vergadering?", {"vergadering": "{A[iso]}", "borrel": "{B[iso]}"}, "{A[iso]}",
     ["De vergadering is op {A[nl]}.", "Op {A[nl_]}.", "{A[iso]}", "Vergadering: {A[nl]}, borrel: {B[nl]}.", "Die is {A[nl]}.", "{A[slash]}", "We vergaderen op {A[nl]}.", "Het is {A[nl]}."],
     ["De vergadering is op {B[nl]}.", "Op {C[nl_]}.", "{B[iso]}", "Vergadering: {B[nl]}, borrel: {A[nl]}.", "Die is {C[nl]}.", "{C[slash]}", "Niet op {A[nl]}.", "Het is {B[nl]}."]),
    ("es", "yes_no", ["no"], "¿Está abierta la farmacia?", {"farmacia": "cerrada"}, "no",
     ["No.", "No, está cerrada.", "La farmacia no está abierta.", "No está abierta.", "Lo siento, no.", "Está cerrada.", "No, abre mañana.", "false"],
     ["Sí.", "Sí, está abierta.", "La farmacia está abierta.", "Está abierta.", "Claro que sí.", "Sí, hasta las nueve.", "Sí, puede ir.", "true"]),
]  # fmt: skip


def made() -> list[dict[str, Any]]:
    """The 160 finishes."""
    rng = random.Random(SEED)
    rows = []
    for number, (lang, kind, what, request, shown, wanted, right, wrong) in enumerate(FACTS):
        for is_right, templates in ((True, right), (False, wrong)):
            for place, template in enumerate(templates):
                values = drawn(what, rng)
                if isinstance(what, list):
                    values["D"] = rng.choice([v for v in what if v not in values.values()] or what)
                rows.append({
                    "id": f"{number:02}-{'r' if is_right else 'w'}{place}",
                    "made_up": True, "language": lang, "as": kind, "request": request,
                    "shown": json.dumps(filled(shown, values), ensure_ascii=False),
                    "wanted": wanted.format(**values), "answer": template.format(**values),
                    "right": is_right,
                })  # fmt: skip
    return rows


if __name__ == "__main__":
    rows = made()
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / "made_2.jsonl.xz").write_bytes(pack(text.encode(), ".xz"))
    print(len(rows), sum(row["right"] for row in rows))
