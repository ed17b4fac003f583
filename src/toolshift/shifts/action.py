"""Shifts: Which tools are shown, and how.

Severity says how far a shift reaches: 1 is one tool that the task needs, 2 every tool that it
needs, 3 every tool that is shown. What is said of a tool stays true throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from toolshift.core.layer import Layer, Memory
from toolshift.core.names import short
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import DESCRIPTION, NAME, Param, Result, Tool
from toolshift.shifts import wording
from toolshift.shifts.described_names import described_names
from toolshift.shifts.surface import Surface

ONLY_NAME, ONLY_DESCRIPTION = frozenset((NAME,)), frozenset((DESCRIPTION,))

# -- names -------------------------------------------------------------------------------------


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="Kubernetes 1.16: Deployment in extensions/v1beta1 is now served as apps/v1 only",
)
def tool_name_noise(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Put noise on tool names (case, then a version, then a prefix) that leaves them readable."""
    return rename(scene, reach(scene, rng, severity), lambda name: noisy(name, scene, severity))


@shift(
    tier="perception",
    dimension="action",
    level=1,
    version=2,
    imitates="Slack Web API: the channels.* and groups.* methods are replaced by conversations.*",
)
def semantic_rename(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give tools other names of the same meaning, of one of many name sets."""
    names = same_meaning(scene, name_set(scene, rng))
    hit = reach(scene, rng, severity, lambda tool: tool.name in names)
    return rename(scene, hit, names.__getitem__)


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="An MCP gateway that hashes tool names to fit a client's limit on their length",
)
def identity_erasure(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give tools names that say nothing, so that only their descriptions tell what they do."""
    hit = reach(scene, rng, severity, lambda tool: tool.channels >= {NAME, DESCRIPTION})
    return rename(scene, hit, lambda _: wording.opaque(scene.task.pool, rng), ONLY_DESCRIPTION)


@shift(
    tier="perception",
    dimension="action",
    level=1,
    version=2,
    imitates="Python 3.0: raw_input() is renamed to input(), and the old input() is gone",
)
def semantic_trap(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give tools names that suggest another tool that is shown; the descriptions stay true."""

    def honest(tool: Tool) -> bool:
        return tool.channels >= {NAME, DESCRIPTION}

    ring = reach(scene, rng, severity, honest)
    rest = [tool for tool in scene.tools if honest(tool) and tool not in ring]
    if severity < 3 and rest:
        ring.append(rng.choice(rest))
    if len(ring) < 2:
        raise NotApplicable("there is no other tool whose name could mislead")
    rng.shuffle(ring)
    reworded_name, free = name_set(scene, rng), free_names(scene)

    def suggestion(name: str) -> str:
        other = reworded_name(name)
        return free(other if other != name else noisy(name, scene, 1))

    lent = {tool.name: suggestion(ring[place - 1].name) for place, tool in enumerate(ring)}
    return change(Surface(names=lent, channels=dict.fromkeys(lent, ONLY_DESCRIPTION)))


# -- parameters and schemas --------------------------------------------------------------------


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="OpenAI API: max_tokens is replaced by max_completion_tokens",
)
def parameter_rename(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give the parameters of tools other names of the same meaning."""
    hit = reach(scene, rng, severity, lambda tool: bool(tool.params))
    return change(Surface(params={tool.name: reworded_params(tool, scene) for tool in hit}))


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,
    imitates="Spring AI: compiled without -parameters, tools take arg0 and arg1",
)
def opaque_parameters(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give parameters names that say nothing, so that only their descriptions tell what they take.

    One that several tools take has one name in all. Those stay that have no description, or the
    same as another of their tool.
    """
    hit = reach(scene, rng, severity, lambda tool: bool(_told_apart(tool)))
    taken = {param.name for tool in scene.tools for param in tool.params}
    names: dict[str, str] = {}
    for param in (param for tool in hit for param in _told_apart(tool)):
        while (new := wording.opaque(scene.task.pool, rng)) in {*names.values(), *taken}:
            pass
        names.setdefault(param, new)
    params = {tool.name: {name: names[name] for name in _told_apart(tool)} for tool in hit}
    return change(Surface(params=params))


def _told_apart(tool: Tool) -> list[str]:
    """The parameters that would be known from those beside them by their descriptions alone."""
    said = {p.name: " ".join(str(p.schema.get("description") or "").split()) for p in tool.params}
    texts = list(said.values())
    return [name for name, text in said.items() if text and texts.count(text) == 1]


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="OpenAI API: chat completions take the optional parameters metadata and store",
)
def schema_noise(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Add optional parameters that do nothing, and documentation that is beside the point."""
    pool, hit = scene.task.pool, reach(scene, rng, severity)
    noise = [Param(p["name"], "", p["schema"], False) for p in wording.TABLES["surplus"][pool]]
    surface = Surface(
        descriptions={tool.name: padded(tool, pool, severity, rng) for tool in hit},
        was=described(hit),
        surplus={
            tool.name: tuple(p for p in noise[:severity] if p.name not in names_of(tool))
            for tool in hit
        },
    )
    return change(surface)


# -- descriptions ------------------------------------------------------------------------------


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="An MCP server release that rewords its tool descriptions for other models",
)
def description_paraphrase(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Say in other words what tools do: in another frame, and from severity 2 with synonyms."""
    pool = scene.task.pool
    hit = reach(scene, rng, severity, lambda tool: bool(tool.description))

    def say(text: str) -> str:
        words = wording.reword_text(text, pool) if severity > 1 else text
        return wording.pick("frames", pool, rng).replace("%s", words.removesuffix("."))

    return change(
        Surface(descriptions={t.name: say(t.description) for t in hit}, was=described(hit))
    )


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="An OpenAPI export whose operations leave out summary and description",
)
def description_removal(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Show tools without a description, so that only their names tell what they do."""

    def spare(tool: Tool) -> bool:
        return tool.channels >= {NAME, DESCRIPTION} and not is_ranked(tool, scene)

    hit = reach(scene, rng, severity, spare)
    return change(
        Surface(
            descriptions={tool.name: "" for tool in hit},
            was=described(hit),
            channels={tool.name: ONLY_NAME for tool in hit},
        )
    )


@shift(
    tier="perception",
    dimension="action",
    level=1,
    version=2,
    imitates="Google Maps Platform: Place Details (Legacy) stays listed beside Place Details (New)",
)
def distractor_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Show near twins of needed tools: alike in name and schema; the documentation decides.

    One at severity 1, one for each needed tool at 2, two for each at 3. Which data a twin has, and
    so that it is the wrong tool, stands at the end of its description.
    """
    samples = observed(scene)
    likes = reach(scene, rng, 1 if severity == 1 else 2, lambda tool: tool.name in samples)
    count = 2 if severity == 3 else 1
    free = free_names(scene)
    extra = {
        free(name): (like, {"description": text})
        for like in likes
        for name, text in zip(
            twin_names(like.name, scene, rng),
            rng.sample(wording.TABLES["twins"][scene.task.pool], count),
            strict=False,
        )
    }
    return beside(scene, rng, extra, samples)


def beside(
    scene: Scene,
    rng: Random,
    extra: Mapping[str, tuple[Tool, Mapping[str, str]]],
    samples: Mapping[str, Result],
) -> Change:
    """The change that shows further tools, each like one of the scene, in an order of chance."""
    tools = tuple(resembling(like, name, form) for name, (like, form) in extra.items())
    answers = {
        tool.name: samples[like.name].with_(fields=tool.returns, notice="", hint=None)
        for tool, (like, _) in zip(tools, extra.values(), strict=True)
    }
    order = [tool.name for tool in (*scene.tools, *tools)]
    rng.shuffle(order)
    seed = rng.getrandbits(32)
    return change(Surface(extra=tools, answers=answers, order=tuple(order), seed=seed))


# -- which tools ---------------------------------------------------------------------------------


@shift(
    tier="none",
    dimension="none",
    level=1,
    imitates="An MCP client that offers its model only the tools that look relevant, in any order",
)
def tool_subset(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Hide a third, two thirds or all of the tools that the task does not need; shuffle the rest.

    Of no tier, for nothing that matters is changed: training sets are made diverse with it.
    """
    if not scene.solvable:
        raise NotApplicable("what an unsolvable task would have needed cannot be known")
    called = {step.name for step in scene.calls}
    spare = [tool.name for tool in scene.tools if tool.name not in called]
    if not called <= {tool.name for tool in scene.tools}:
        raise NotApplicable("tools come in mid-episode, and those that they replace must be shown")
    if not spare:
        raise NotApplicable("the task needs every tool that is shown")
    hidden = frozenset(rng.sample(spare, max(1, round(len(spare) * severity / 3))))
    order = [tool.name for tool in scene.tools if tool.name not in hidden]
    rng.shuffle(order)
    return Change(layer=Subset(hidden, tuple(order)))


@dataclass(frozen=True)
class Subset(Layer):
    """Some tools are not shown; the others stand in this order, new ones last."""

    hidden: frozenset[str]
    order: tuple[str, ...]

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """What is left, reordered."""
        place = {name: number for number, name in enumerate(self.order)}
        left = [tool for tool in tools if tool.name not in self.hidden]
        return tuple(sorted(left, key=lambda tool: place.get(tool.name, len(place))))


# -- what they share ---------------------------------------------------------------------------


def reach(
    scene: Scene,
    rng: Random,
    severity: int,
    fits: Callable[[Tool], bool] = lambda tool: True,
) -> list[Tool]:
    """The tools to touch: one that the task needs, all that it needs, or all that are shown."""
    called = {step.name for step in scene.calls}
    fitting = [tool for tool in scene.tools if fits(tool)]
    needed = [tool for tool in fitting if tool.name in called or not called]
    if not needed:
        raise NotApplicable("no tool that the task needs can be changed this way")
    return [rng.choice(needed)] if severity == 1 else needed if severity == 2 else fitting


def rename(
    scene: Scene,
    tools: list[Tool],
    new: Callable[[str], str],
    channels: frozenset[str] | None = None,
) -> Change:
    """New names for tools, none of which is taken."""
    free = free_names(scene)
    names = {tool.name: free(new(tool.name)) for tool in tools}
    return change(Surface(names=names, channels=dict.fromkeys(names, channels) if channels else {}))


def change(surface: Surface) -> Change:
    """The change that a surface makes."""
    return Change(layer=surface)


def free_names(scene: Scene) -> Callable[[str], str]:
    """A function that keeps names apart from each other and from those that tools have."""
    taken = {tool.name for tool in (*scene.open().tools(), *scene.clean.truth.tools)}

    def free(name: str) -> str:
        number, found = 2, short(name)
        while found in taken:
            number, found = number + 1, short(f"{name}_{number}")
        taken.add(found)
        return found

    return free


def noisy(name: str, scene: Scene, strength: int) -> str:
    """A name under the noise of the scene's pool."""
    return wording.noisy(name, scene.task.pool, strength)


def reworded(name: str, scene: Scene) -> str:
    """A name in the synonyms of the scene's pool."""
    return wording.reword_name(name, scene.task.pool)


def name_set(scene: Scene, rng: Random) -> Callable[[str], str]:
    """What gives names in the words of one name set of the scene's pool."""
    number, pool = rng.randrange(wording.NAME_SETS), scene.task.pool
    return lambda name: wording.reword_by_set(name, pool, number)


def twin_names(name: str, scene: Scene, rng: Random) -> list[str]:
    """Names that could as well be those of a tool: another verb for the same thing, and so on."""
    pool = scene.task.pool
    verb, _, thing = name.partition("_")
    verbs = wording.verbs_of(verb, pool) if thing else []
    near = [f"{other}_{thing}" for other in verbs] + [f"{thing}_{other}" for other in verbs]
    far = [form["name"] % name for form in wording.TABLES["distractors"][pool]]
    return [*rng.sample(near, len(near)), *rng.sample(far, len(far))]


def same_meaning(scene: Scene, other: Callable[[str], str]) -> dict[str, str]:
    """For each tool that has one, another name of the same meaning."""
    synonyms = {tool.name: other(tool.name) for tool in scene.tools}
    known = {name: new for name, new in synonyms.items() if new != name}
    if scene.world.names_from == ("synonyms",):
        return known
    described = described_names(scene.tools, scene.task.pool)
    described_first = scene.world.names_from[0] == "description"
    return known | described if described_first else described | known


def reworded_params(tool: Tool, scene: Scene) -> Mapping[str, str]:
    """New names for the parameters of a tool, those that would coincide left as they are."""
    names: dict[str, str] = {}
    for param in tool.params:
        other = wording.reword_param(param.name, scene.task.pool)
        if other not in names.values() and other not in names_of(tool):
            names[param.name] = other
    return names


def names_of(tool: Tool) -> set[str]:
    """The names of a tool's parameters."""
    return {param.name for param in tool.params}


def described(tools: list[Tool]) -> dict[str, str]:
    """The descriptions of tools as they are."""
    return {tool.name: tool.description for tool in tools}


def padded(tool: Tool, pool: str, sentences: int, rng: Random) -> str:
    """A tool's description, and after it sentences that are beside the point."""
    return followed(tool.description, rng.sample(wording.TABLES["boilerplate"][pool], sentences))


def followed(text: str, sentences: Sequence[str]) -> str:
    """A text with a stop at its end, and sentences after it."""
    if text and not text.endswith((".", "!", "?", "…", ":", "。", "！", "？")):
        text = f"{text}."
    return " ".join(filter(None, (text, *sentences)))


def is_ranked(tool: Tool, scene: Scene) -> bool:
    """Whether another tool yields the same, and the documentation says which is preferred."""
    facts = {field.fact for field in tool.returns}
    return any(
        other.authority != tool.authority and any(other.yields(fact) for fact in facts)
        for other in scene.tools
    )


def observed(scene: Scene) -> dict[str, Result]:
    """What each tool that the task needs has answered the first time it succeeded."""
    session, found = scene.open(), dict[str, Result]()
    for step in scene.calls:
        session.tools()
        arguments: Any = step.arguments
        result = session.call(step.name, arguments)
        if result.ok:
            found.setdefault(step.name, result)
    return found


def resembling(like: Tool, name: str, form: Mapping[str, str]) -> Tool:
    """A distractor: a tool like another, whose fields are facts of something else."""
    text = form["description"] % like.description.removesuffix(".")
    returns = tuple(
        field.__class__(field.path, f"{name}.{field.fact}", field.type, field.scale, field.unit)
        for field in like.returns
    )
    return like.with_(
        name=name,
        description=text.removeprefix(", ").capitalize() if text.startswith(", ") else text,
        returns=returns,
        effect="read",
        origin=(),
        authority=0,
    )
