"""Words that several readers look for, defined once: negation, offers of help, opposites, keys.

A reader that needs a wider meaning adds words to these; it does not list them again.
"""

from __future__ import annotations

import re

NEGATIVE = ("not", "never", "neither", "nor", "cannot", "without")
"""Words that negate a clause. "No" negates only the noun behind it, so readers add it by name."""
NO_THING = ("none", "nothing", "nobody")
"""What is said of an empty set. Between options "none" is an answer, so readers add it by name."""
INSTEAD = r"rather than|instead of"
"""What sets aside only the thing behind it ("X, not Y"); the words above negate a whole clause."""
SETS_ASIDE = rf"\bnot|n't|\bnever|\b(?:{INSTEAD})"
"""What says, shortly before a name or a code, that this is not the one."""

CONTRACTIONS = (
    (re.compile(r"\bwo ?n't\b"), "will not"),
    (re.compile(r"(\w) ?n't\b"), r"\1 not"),
    (re.compile(r"'re\b"), " are"),
)
"""Short forms and their full words; each reader adds its own form of "can not"."""


def negation(*further: str) -> str:
    """A pattern for what negates: the common words, "n't", and the words of one reader."""
    return rf"(?:\b(?:{'|'.join((*NEGATIVE, *further))})\b|n't\b)"


# Three patterns for offers, for they answer three questions. OFFER: does a sentence only propose to
# act ("Shall I book it?"), so that it states nothing? FURTHER_HELP: does a question propose help
# beside the task ("Anything else?"), so that it needs no answer? "May I have your name?" is the
# first and not the second. OFFER_BEHIND: does a question begin with a statement, and only end in an
# offer ("It is 5, shall I book it?")? "A park, a gallery, something else?" states nothing.
_MAY_I = r"(?:can|may|could|shall|should) i\b"
OFFER = re.compile(
    rf"\b(?:anything|something|someone|somebody) (?:else|more|further)|{_MAY_I}|"
    r"want me to|would you like|do you want|do you (?:also )?need (?:any|more|further|help|her|his|"
    r"their|its)\b|does (?:that|this|it) help|will that be all|"
    r"let me know (?:if|should)|(?:if|should) you (?:need|have|want|would)|feel free|happy to help|"
    r"is there anything|any (?:other|more|further) questions",
    re.IGNORECASE,
)
FURTHER_HELP = re.compile(
    r"\b(anything|something|what|someone|somebody) (else|more|further)|can i (help|assist)|"
    r"shall i (try|look|check|\w+( you| for)? (another|a different))|want me to|"
    r"would you like me|do you want me|try again|e-?mail|later\b|notify|"
    r"colleague|(does|did) (that|this|it) help",
    re.IGNORECASE,
)
OFFER_BEHIND = re.compile(
    r"(?:,|-|\band\b)\s*(?:\w+\s+)?(?:(?:can|may|shall|should) i\b|(?:do you|would you|"
    r"is there|anything|want me|need|will that|does that|ok|okay)\b)",
    re.IGNORECASE,
)


def key(text: str) -> str:
    """The words of a text in small letters, for comparing: neither signs nor spaces matter."""
    return " ".join(re.findall(r"[\w']+", text.casefold()))


def singular(word: str) -> str:
    """A word in small letters and in its singular: "Cities" is "city", "days" is "day"."""
    word = word.lower()
    return word.removesuffix("ies") + "y" if word.endswith("ies") else word.removesuffix("s")


# Two tables of opposites, for they answer two questions. OPPOSITES are words of tools that exclude
# each other: an edit from one to the other changes what a tool does. SCALES are words that compare:
# each lies on a scale, and any two of one scale and of different direction are opposites.
OPPOSITES = (
    ("add", "remove"),
    ("add", "delete"),
    ("add", "subtract"),
    ("create", "delete"),
    ("create", "remove"),
    ("insert", "delete"),
    ("set", "unset"),
    ("set", "clear"),
    ("set", "reset"),
    ("open", "close"),
    ("start", "stop"),
    ("begin", "end"),
    ("start", "end"),
    ("pause", "resume"),
    ("suspend", "resume"),
    ("activate", "deactivate"),
    ("lock", "unlock"),
    ("enable", "disable"),
    ("allow", "deny"),
    ("allow", "block"),
    ("block", "unblock"),
    ("ban", "unban"),
    ("mute", "unmute"),
    ("grant", "revoke"),
    ("subscribe", "unsubscribe"),
    ("follow", "unfollow"),
    ("like", "unlike"),
    ("pin", "unpin"),
    ("star", "unstar"),
    ("publish", "unpublish"),
    ("mount", "unmount"),
    ("register", "unregister"),
    ("register", "deregister"),
    ("install", "uninstall"),
    ("archive", "restore"),
    ("archive", "unarchive"),
    ("delete", "restore"),
    ("hide", "show"),
    ("book", "cancel"),
    ("confirm", "cancel"),
    ("schedule", "cancel"),
    ("approve", "reject"),
    ("accept", "reject"),
    ("accept", "decline"),
    ("push", "pull"),
    ("send", "receive"),
    ("send", "unsend"),
    ("import", "export"),
    ("upload", "download"),
    ("encrypt", "decrypt"),
    ("encode", "decode"),
    ("compress", "decompress"),
    ("increase", "decrease"),
    ("increment", "decrement"),
    ("raise", "lower"),
    ("buy", "sell"),
    ("borrow", "return"),
    ("lend", "borrow"),
    ("credit", "debit"),
    ("charge", "refund"),
    ("pay", "refund"),
    ("deposit", "withdraw"),
    ("attach", "detach"),
    ("connect", "disconnect"),
    ("link", "unlink"),
    ("bind", "unbind"),
    ("assign", "unassign"),
    ("merge", "split"),
    ("join", "leave"),
    ("login", "logout"),
    ("upgrade", "downgrade"),
    ("promote", "demote"),
    ("commit", "rollback"),
    ("apply", "revert"),
    ("do", "undo"),
    ("increase", "reduce"),
    ("raise", "reduce"),
    ("hire", "fire"),
    ("win", "lose"),
    ("on", "off"),
    ("up", "down"),
    ("in", "out"),
    ("public", "private"),
    ("internal", "external"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("least", "most"),
    ("lower", "upper"),
    ("before", "after"),
    ("since", "until"),
    ("older", "newer"),
    ("oldest", "newest"),
    ("first", "last"),
    ("next", "previous"),
    ("asc", "desc"),
    ("ascending", "descending"),
    ("include", "exclude"),
    ("from", "to"),
    ("source", "target"),
    ("source", "destination"),
    ("src", "dst"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("payer", "payee"),
    ("origin", "destination"),
    ("parent", "child"),
    ("left", "right"),
    ("dev", "prod"),
    ("test", "prod"),
    ("staging", "prod"),
    ("staging", "production"),
    ("test", "production"),
    ("test", "live"),
    ("sandbox", "live"),
    ("sandbox", "production"),
    ("draft", "final"),
    ("old", "new"),
    ("all", "one"),
    ("free", "paid"),
    ("gross", "net"),
    ("lat", "lon"),
    ("lat", "lng"),
    ("latitude", "longitude"),
)
"""Pairs of words of tools that exclude each other."""

Scale = tuple[str, int]
"""What is compared, and in which direction: ("time", -1) is "earlier"."""

_LESS_AND_MORE = {
    "time": (
        "earlier earliest first sooner soonest older oldest",
        "later latest last newer newest younger youngest second third",
    ),
    "amount": (
        "less least fewer fewest lower lowest smaller smallest",
        "more most higher highest larger largest bigger biggest greater greatest",
    ),
    "price": ("cheaper cheapest", "pricier priciest costlier costliest dearer"),
    "length": ("shorter shortest", "longer longest taller tallest"),
    "distance": ("nearer nearest closer closest", "farther farthest further furthest"),
    "weight": ("lighter lightest", "heavier heaviest"),
    "heat": ("colder coldest cooler coolest", "warmer warmest hotter hottest"),
    "quality": ("worse worst", "better best"),
    "speed": ("slower slowest", "faster fastest quicker quickest"),
}
SCALES: dict[str, Scale] = {
    word: (name, sign)
    for name, pair in _LESS_AND_MORE.items()
    for sign, words in zip((-1, 1), pair, strict=True)
    for word in words.split()
}
QUALITIES: dict[str, Scale] = {
    "recent": ("time", 1), "expensive": ("price", 1), "costly": ("price", 1),
    "affordable": ("price", -1), "distant": ("distance", 1), "remote": ("distance", 1),
}  # fmt: skip
"""What "more" and "less" may stand before; anything else is an amount of it."""
