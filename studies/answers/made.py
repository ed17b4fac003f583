# ruff: noqa: E501 - one template a line
"""Writes `made.jsonl.xz`: 400 made-up finishes with known truth, half of them right.

Nothing here is a model's. Twenty requests in ten languages, each with what the tools returned and with
templates that were written by hand before the typed comparison was; the values are drawn by the
seed. `R` are right, `W` are wrong. Half of the wrong ones state another value plainly, as agents that
erred do; the others are the harder half: two values swapped, former values, denials, guesses, bounds.

    python studies/answers/made.py        # rewrites made.jsonl.xz, the same bytes each time
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from toolshift.core.files import pack

SEED = 20261128
HERE = Path(__file__).parent
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
}  # fmt: skip
WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def day(rng: random.Random) -> dict[str, str]:
    """A day in the forms in which people write it."""
    y, m, d = 2027, rng.randint(1, 12), rng.randint(13, 28)
    forms = {"iso": f"{y}-{m:02}-{d:02}", "dot": f"{d}.{m}.{y}", "dots": f"{d:02}.{m:02}.{y}"}
    forms |= {"slash": f"{d:02}/{m:02}/{y}", "us": f"{m}/{d}/{y}", "ja": f"{y}年{m}月{d}日"}
    for lang, names in MONTHS.items():
        name = names.split()[m - 1]
        forms[lang] = f"{d}. {name} {y}" if lang == "de" else f"{d} {name} {y}"
        forms[f"{lang}_"] = f"{d}. {name}" if lang == "de" else f"{d} {name}"
    month = MONTHS["en"].split()[m - 1]
    forms["mdy"], forms["md"] = f"{month} {d}, {y}", f"{month} {d}th".replace("21th", "21st")
    forms["md"] = forms["md"].replace("22th", "22nd").replace("23th", "23rd")
    forms["es"] = forms["es"].replace(" ", " de ")
    forms["pt"] = forms["pt"].replace(" ", " de ")
    return forms


def clock(rng: random.Random) -> dict[str, str]:
    """A time of day, in the forms in which people write it."""
    h, m = rng.randint(13, 21), rng.choice((5, 10, 20, 25, 35, 40, 50, 55))
    return {
        "iso": f"{h}:{m:02}", "pm": f"{h - 12}:{m:02} pm", "PM": f"{h - 12}:{m:02} p.m.",
        "h": f"{h}h{m:02}", "hh": f"{h} h {m:02}", "uhr": f"{h}.{m:02} Uhr", "Uhr": f"{h}:{m:02} Uhr",
        "sec": f"{h}:{m:02}:00", "uur": f"{h}.{m:02} uur",
    }  # fmt: skip


def money(rng: random.Random) -> dict[str, str]:
    """An amount over a thousand, in the forms of several countries."""
    whole, cents = rng.randint(1100, 8900), rng.choice((5, 20, 50, 75, 90))
    k, rest = divmod(whole, 1000)
    return {
        "raw": f"{whole}.{cents:02}", "en": f"{k},{rest:03}.{cents:02}", "de": f"{k}.{rest:03},{cents:02}",
        "fr": f"{k}\u202f{rest:03},{cents:02}", "ch": f"{k}'{rest:03}.{cents:02}",
    }  # fmt: skip


def few(rng: random.Random) -> dict[str, str]:
    """A small number, in figures and in English."""
    n = rng.randint(3, 12)
    return {"n": str(n), "w": WORDS[n], "raw": str(n)}


def big(rng: random.Random) -> dict[str, str]:
    """A number over ten thousand, with its separators."""
    n = rng.randint(11_000, 89_000)
    return {
        "n": str(n),
        "en": f"{n:,}",
        "de": f"{n:,}".replace(",", "."),
        "fr": f"{n:,}".replace(",", " "),
    }


def code(rng: random.Random) -> dict[str, str]:
    """An identifier of an order."""
    n = rng.randint(10_000, 99_999)
    return {"n": f"BK-{n}", "low": f"bk-{n}", "sp": f"BK {n}"}


DRAWS = {"day": day, "clock": clock, "money": money, "few": few, "big": big, "code": code}

# Of each: language, type, what is drawn (or the words to choose from), request, results,
# the wanted answer, right templates, wrong templates. A is wanted, B is the same field of another
# record or time, C another field of the same type.
FACTS: list[tuple[str, str, Any, str, Any, str, list[str], list[str]]] = [
    ("en", "number", "few", "How many bikes are free at the harbour station?",
     [{"station": "harbour", "free_bikes": "{A[n]}#", "docks": "{C[n]}#"}, {"station": "old town", "free_bikes": "{B[n]}#", "docks": 20}],
     "{A[n]}",
     ["{A[n]}", "There are {A[w]} bikes free at the harbour right now.", "**{A[n]}** free bikes.",
      "{{\"free_bikes\": {A[n]}}}", "Harbour station: {A[n]} bikes, {C[n]} docks.", "Quick check done - {A[n]} bikes are waiting for you there!",
      "Not {B[n]}, as I first thought (that's the old town); the harbour has {A[n]}.", "I see {A[n]} available. Shall I reserve one of them for you?",
      "The station has {C[n]} docks in total and {A[n]} free bikes.", "Free bikes at harbour = {A[n]}\nSource: station feed"],
     ["{B[n]}", "There are {B[w]} bikes free at the harbour right now.", "**{B[n]}** free bikes.", "Harbour station: {C[n]} bikes, {A[n]} docks.",
      "It had {A[n]} this morning, but now there are {B[n]}.", "The harbour station has {C[n]} bikes available.", "Somewhere between {A[n]} and {B[n]}.",
      "There are not {A[n]} bikes free.", "{A[n]} or {B[n]}, I can't tell which.", "I count {B[n]} bikes there. Enjoy your ride!"]),
    ("en", "number", "big", "How many steps did I walk in May?",
     {"may": "{A[n]}#", "april": "{B[n]}#", "goal": "{C[n]}#"}, "{A[n]}",
     ["{A[en]}", "You walked {A[en]} steps in May.", "May: {A[n]}", "In May your count was {A[n]} steps, against {B[en]} in April.",
      "Steps (May) -> {A[en]}", "Your goal was {C[en]}; you made {A[en]}.", "That comes to {A[n]} steps. Well done!", "{A[n]} steps.",
      "<think>April was {B[n]}. May is what they ask.</think>You did {A[en]} steps.", "| Month | Steps |\n|---|---|\n| May | {A[en]} |"],
     ["{B[en]}", "You walked {B[en]} steps in May.", "May: {C[n]}", "In May your count was {B[n]} steps, against {A[en]} in April.",
      "Your goal was {A[en]}; you made {C[en]}.", "About {C[n]} steps.", "More than {A[en]} steps.", "{C[n]} steps.",
      "You did {B[en]} steps.", "I was not able to see May. April had {B[en]}."]),
    ("en", "amount", "money", "What is the deposit for the flat in Mill Lane?",
     {"flat": "Mill Lane", "deposit": "{A[raw]}#", "rent": "{C[raw]}#", "currency": "EUR", "previous_deposit": "{B[raw]}#"}, "EUR {A[en]}",
     ["EUR {A[en]}", "The deposit is €{A[en]}.", "{A[de]} €", "You'd pay a deposit of {A[raw]} euros.", "Deposit: {A[en]} EUR; rent: {C[en]} EUR.",
      "They ask for €{A[raw]}, which is due when you sign.", "It used to be €{B[en]}, but the deposit is €{A[en]} now.", "{{\"deposit\": {A[raw]}, \"currency\": \"EUR\"}}",
      "Happy to help! Mill Lane's deposit comes to **€{A[en]}**.", "€{A[en]} (refundable)"],
     ["EUR {C[en]}", "The deposit is €{C[en]}.", "{B[de]} €", "You'd pay a deposit of {B[raw]} euros.", "Deposit: {C[en]} EUR; rent: {A[en]} EUR.",
      "They ask for ${A[en]}.", "It used to be €{A[en]}, but the deposit is €{B[en]} now.", "At most €{A[en]}, perhaps less.",
      "Mill Lane's deposit comes to **€{C[en]}**.", "The rent is €{A[en]}. I found nothing on a deposit."]),
    ("en", "date", "day", "When does my passport expire?",
     {"document": "passport", "issued": "{C[iso]}", "expires": "{A[iso]}", "visa_expires": "{B[iso]}"}, "{A[iso]}",
     ["{A[iso]}", "Your passport expires on {A[mdy]}.", "It runs out {A[md]}, so renew it soon.", "{A[en]}", "Expiry date: {A[slash]}",
      "It was issued on {C[mdy]} and expires on {A[mdy]}.", "Passport: {A[iso]}. Visa: {B[iso]}.", "You can travel until {A[en]}.",
      "It's valid through {A[mdy]} :)", "{A[us]}"],
     ["{B[iso]}", "Your passport expires on {B[mdy]}.", "It runs out {C[md]}, so renew it soon.", "{C[en]}", "It was issued on {A[mdy]} and expires on {C[mdy]}.",
      "Passport: {B[iso]}. Visa: {A[iso]}.", "Some time before {A[mdy]}.", "It does not expire on {A[mdy]}.", "Either {A[en]} or {B[en]}.", "{C[us]}"]),
    ("en", "time", "clock", "When is high water at the pier today?",
     {"low_water": "{C[iso]}", "high_water": "{A[iso]}", "tomorrow_high": "{B[iso]}"}, "{A[iso]}",
     ["{A[iso]}", "High water is at {A[pm]}.", "At {A[PM]} today.", "High: {A[iso]}, low: {C[iso]}.", "The tide peaks at {A[iso]}, a good moment to sail.",
      "Low water comes at {C[iso]}, high water at {A[iso]}.", "{A[sec]}", "high_water={A[iso]}", "Today it's {A[pm]}; tomorrow {B[pm]}.", "It'll be high at {A[pm]}, captain."],
     ["{C[iso]}", "High water is at {C[pm]}.", "At {B[PM]} today.", "High: {C[iso]}, low: {A[iso]}.", "The tide peaks at {B[iso]}, a good moment to sail.",
      "Low water comes at {A[iso]}, high water at {C[iso]}.", "After {A[iso]}.", "Today it's {B[pm]}; tomorrow {A[pm]}.", "{B[sec]}", "Is it {A[pm]} that you mean?"]),
    ("en", "yes_no", ["yes"], "Is berth 3 free on Saturday?", {"berth": 3, "day": "Saturday", "free": True}, "yes",
     ["Yes", "Yes, it is free.", "Berth 3 is free on Saturday.", "It's available, go ahead!", "Yep - nobody has booked it.", "free: true",
      "Good news: it is free all day.", "Yes. No boat is there on Saturday.", "There's no booking for it, so yes.", "{{\"free\": true}}"],
     ["No", "No, it isn't.", "Berth 3 is not free on Saturday.", "Sorry, it's taken.", "Nope - somebody has booked it.", "free: false",
      "It is occupied all day.", "I doubt it.", "Yes and no.", "{{\"free\": false}}"]),
    ("en", "yes_no", ["no"], "Does the 14 tram stop at the museum?", {"line": 14, "stops": ["Market", "Castle", "Station"]}, "no",
     ["No", "No, it doesn't.", "The 14 does not stop at the museum.", "Unfortunately not.", "No. It stops at Market, Castle and Station.", "It goes straight past it.",
      "false", "Nope, take another line.", "I'm afraid the 14 doesn't.", "The museum isn't one of its stops."],
     ["Yes", "Yes, it does.", "The 14 stops at the museum.", "It does!", "Sure, get off at Museum.", "It stops there.", "true",
      "Of course it does.", "Maybe not, maybe yes.", "No problem, it stops right there."]),
    ("en", "choice", ["paid", "overdue", "cancelled", "draft"], "What state is invoice 88 in: draft, paid, overdue or cancelled?",
     {"invoice": 88, "state": "{A}", "previous_state": "{C}"}, "{A}",
     ["{A}", "Invoice 88 is {A}.", "It's **{A}**.", "The state is \"{A}\".", "It's {A}, no longer {C}.", "state: {A}", "Currently {A} - tell me if I should act on it.",
      "It was {C} until last week and is {A} now.", "Not {B}: it's {A}.", "That one is marked as {A}."],
     ["{B}", "Invoice 88 is {B}.", "It's **{C}**.", "The state is \"{B}\".", "It's {C}, no longer {A}.", "state: {C}", "It is not {A}.",
      "It was {A} until last week and is {B} now.", "{A}, {B}, {C}: one of these.", "That one is marked as {B}."]),
    ("en", "id", "code", "What is the booking number of my trip to Oslo?",
     [{"trip": "Oslo", "booking": "{A[n]}"}, {"trip": "Bergen", "booking": "{B[n]}", "old_booking": "{C[n]}"}], "{A[n]}",
     ["{A[n]}", "Your booking number is {A[n]}.", "{A[low]}", "Oslo: {A[n]}, Bergen: {B[n]}.", "It's `{A[n]}`.", "Booking {A[n]}, all confirmed.",
      "{{\"booking\": \"{A[n]}\"}}", "The number for Oslo is {A[sp]}.", "You'll find it under {A[n]}. Have a nice trip!", "{A[n]} (not {B[n]}, which is Bergen)"],
     ["{B[n]}", "Your booking number is {B[n]}.", "{C[low]}", "Oslo: {B[n]}, Bergen: {A[n]}.", "It's `{B[n]}`.", "Booking {C[n]}, all confirmed.",
      "It isn't {A[n]}.", "{A[n]} or {B[n]}.", "{A[n]} was replaced by {C[n]}.", "{B[n]} (not {A[n]}, which is Bergen)"]),
    ("en", "text", ["Ines Duarte", "Milo Brandt", "Farah Aziz", "Tove Lind"], "Who is the head of the lab?",
     {"head": "{A}", "deputy": "{B}", "former_head": "{C}"}, "{A}",
     ["{A}", "The head of the lab is {A}.", "{A} runs the lab, with {B} as deputy.", "It's {A}!", "Head: {A}", "That would be {A}, who took over from {C}.",
      "You should write to {A}.", "{A} leads it; {B} is the deputy.", "After {C} left, {A} became head.", "{{\"head\": \"{A}\"}}"],
     ["{B}", "The head of the lab is {C}.", "{B} runs the lab, with {A} as deputy.", "It's {C}!", "Head: {B}", "That would be {C}, who took over from {A}.",
      "Not {A}.", "{B} leads it; {A} is the deputy.", "After {A} left, {C} became head.", "Perhaps {A}, perhaps {B}."]),
    ("en", "text", ["window seat", "aisle seat", "bulkhead seat"], "Which seat did they give me?",
     {"seat_type": "{A}", "meal": "vegetarian", "options": ["{A}", "{B}", "{C}"]}, "{A}",
     ["{A}", "You have a {A}.", "They gave you the {A}, with a vegetarian meal.", "A {A}.", "seat type: {A}", "You got a {A} instead of the {B}.",
      "Seat: {A}; meal: vegetarian.", "You are booked in a {A}. Anything else?", "Good news, it's a {A}.", "I can confirm the {A}."],
     ["{B}", "You have a {B}.", "They gave you the {C}, with a vegetarian meal.", "A {B}.", "seat type: {C}", "You got a {B} instead of the {A}.",
      "I could ask for a {A}.", "You don't have a {A}.", "Good news, it's a {B}.", "{A} or {C}, it depends."]),
    ("de", "date", "day", "Wann läuft der Vertrag aus?", {"vertrag": "V-7", "beginn": "{C[iso]}", "ende": "{A[iso]}", "kuendigung_bis": "{B[iso]}"}, "{A[iso]}",
     ["Der Vertrag läuft am {A[de]} aus.", "{A[dots]}", "Am {A[de_]}.", "Er begann am {C[de]} und endet am {A[de]}.", "Ende: {A[dot]}; kündbar bis {B[dot]}."],
     ["Der Vertrag läuft am {C[de]} aus.", "{B[dots]}", "Am {C[de_]}.", "Er begann am {A[de]} und endet am {C[de]}.", "Nicht am {A[de]}."]),
    ("de", "amount", "money", "Wie hoch ist die Jahresgebühr?", {"jahresgebuehr": "{A[raw]}#", "vorjahr": "{B[raw]}#", "waehrung": "EUR"}, "{A[raw]} EUR",
     ["{A[de]} €", "Die Gebühr beträgt {A[de]} Euro.", "Jahresgebühr: EUR {A[de]}", "Sie zahlen {A[de]} € statt {B[de]} € im Vorjahr.", "Das sind {A[fr]} EUR pro Jahr."],
     ["{B[de]} €", "Die Gebühr beträgt {B[de]} Euro.", "Jahresgebühr: EUR {B[de]}", "Sie zahlen {B[de]} € statt {A[de]} € im Vorjahr.", "Höchstens {A[de]} €."]),
    ("fr", "date", "day", "Quand arrive mon colis ?", {"expedie": "{C[iso]}", "livraison": "{A[iso]}", "retour_avant": "{B[iso]}"}, "{A[iso]}",
     ["Votre colis arrive le {A[fr]}.", "Le {A[fr_]}.", "{A[slash]}", "Expédié le {C[fr]}, livré le {A[fr]}.", "Livraison prévue : {A[fr]}"],
     ["Votre colis arrive le {B[fr]}.", "Le {C[fr_]}.", "{C[slash]}", "Expédié le {A[fr]}, livré le {B[fr]}.", "Pas le {A[fr]}, en tout cas."]),
    ("fr", "yes_no", ["yes"], "Le musée est-il ouvert le lundi ?", {"lundi": "ouvert"}, "yes",
     ["Oui", "Oui, il est ouvert.", "Le musée est ouvert le lundi.", "Oui, tout à fait !", "Oui : de dix heures à midi."],
     ["Non", "Non, il est fermé.", "Le musée n'est pas ouvert le lundi.", "Hélas non.", "Il est fermé le lundi."]),
    ("es", "number", ["7", "8", "9", "5"], "¿Cuántas plazas quedan en el curso?", {"plazas_libres": "{A}#", "plazas": 20, "lista_de_espera": "{B}#"}, "{A}",
     ["{A}", "Quedan {A} plazas.", "Hay {A} plazas libres de 20.", "Plazas libres: {A}; en espera: {B}.", "Todavía {A}, ¡date prisa!"],
     ["{B}", "Quedan {B} plazas.", "Hay {C} plazas libres de 20.", "Plazas libres: {B}; en espera: {A}.", "No quedan {A} plazas."]),
    ("es", "text", ["Lucía Robles", "Iván Prieto", "Carmen Soto"], "¿Quién firma el contrato?", {"firma": "{A}", "testigo": "{B}"}, "{A}",
     ["{A}", "Lo firma {A}.", "{A} firma; {B} es testigo.", "La persona que firma es {A}.", "Firma: {A}"],
     ["{B}", "Lo firma {B}.", "{B} firma; {A} es testigo.", "No es {A}.", "{A} o {B}."]),
    ("it", "time", "clock", "A che ora parte il traghetto?", {"partenza": "{A[iso]}", "arrivo": "{C[iso]}"}, "{A[iso]}",
     ["Alle {A[iso]}.", "Il traghetto parte alle {A[iso]}.", "Parte alle {A[iso]} e arriva alle {C[iso]}.", "Partenza: {A[iso]}", "{A[sec]}"],
     ["Alle {C[iso]}.", "Il traghetto parte alle {C[iso]}.", "Parte alle {C[iso]} e arriva alle {A[iso]}.", "Partenza: {B[iso]}", "Non alle {A[iso]}."]),
    ("pt", "date", "day", "Quando é a consulta?", {"consulta": "{A[iso]}", "exame": "{B[iso]}"}, "{A[iso]}",
     ["A consulta é em {A[pt]}.", "{A[slash]}", "Dia {A[pt_]}.", "Consulta: {A[slash]}, exame: {B[slash]}.", "É no dia {A[pt]}, não se esqueça!"],
     ["A consulta é em {B[pt]}.", "{B[slash]}", "Dia {C[pt_]}.", "Consulta: {B[slash]}, exame: {A[slash]}.", "Não é em {A[pt]}."]),
    ("ja", "date", "day", "返却期限はいつですか。", {"貸出日": "{C[iso]}", "返却期限": "{A[iso]}"}, "{A[iso]}",
     ["{A[ja]}です。", "返却期限は{A[ja]}です。", "{A[iso]}", "期限：{A[ja]}", "貸出日は{C[ja]}、返却期限は{A[ja]}です。"],
     ["{C[ja]}です。", "返却期限は{B[ja]}です。", "{C[iso]}", "期限：{B[ja]}", "{A[ja]}ではありません。"]),
]  # fmt: skip


def filled(value: Any, values: dict[str, Any]) -> Any:
    """Results with the drawn values in place; `#` behind a slot makes a number of it."""
    if isinstance(value, dict):
        return {key: filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, values) for inner in value]
    if isinstance(value, str) and "{" in value:
        text = value.format(**values)
        return json.loads(text[:-1]) if text.endswith("#") else text
    return value


def drawn(what: Any, rng: random.Random) -> dict[str, Any]:
    """Three different values: the wanted one, and two others."""
    if isinstance(what, list):
        pool = rng.sample(what, len(what))
        return dict(zip("ABC", [*pool, *pool, *pool], strict=False))
    values: list[dict[str, str]] = []
    while len(values) < 3:
        value = DRAWS[what](rng)
        if value not in values:
            values.append(value)
    return dict(zip("ABC", values, strict=True))


def made() -> list[dict[str, Any]]:
    """The 400 finishes."""
    rng = random.Random(SEED)
    rows = []
    for number, (lang, kind, what, request, shown, wanted, right, wrong) in enumerate(FACTS):
        for round_ in range(1 if lang == "en" else 2):
            for is_right, templates in ((True, right), (False, wrong)):
                for place, template in enumerate(templates):
                    values = drawn(what, rng)
                    rows.append({
                        "id": f"{number:02}-{round_}-{'r' if is_right else 'w'}{place}",
                        "made_up": True, "language": lang, "as": kind, "request": request,
                        "shown": json.dumps(filled(shown, values), ensure_ascii=False),
                        "wanted": wanted.format(**values), "answer": template.format(**values),
                        "right": is_right,
                    })  # fmt: skip
    return rows


if __name__ == "__main__":
    rows = made()
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / "made.jsonl.xz").write_bytes(pack(text.encode(), ".xz"))
    print(len(rows), sum(row["right"] for row in rows))
