"""The layers behind rules and limits: failures, withdrawals, rules in force, and their wording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.tool import Hint, Result, Tool, error

TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "train": {
        "busy": (
            "The service is temporarily unavailable. Repeat the call.",
            "The server has too much to do. Please retry.",
            "No connection was free in the pool. Retry in a second.",
            "Timeout while a worker was awaited; you may call again.",
            "The node is restarting. Call it again.",
            "Overload protection is active. Send the same thing again.",
            "Another session held the lock. Try the same call again.",
            "Short maintenance window. Please repeat.",
            "Too many callers at the moment. Once more, please.",
            "The cache was being rebuilt. Ask again.",
            "A replica fell behind; a second try reads from another.",
            "Lost the connection to the database for a moment. Retry the call.",
            "Deployment in progress. Try again right away.",
            "The request was shed under load. Repeat it as it is.",
        ),
        "dead": (
            "The service has shut down permanently. There is no way to complete this call.",
            "This system was switched off and will not come back.",
            "The contract with the provider has ended; the data are not available to anyone now.",
            "All records behind this function were deleted and cannot be restored.",
            "The facility burned down. No further calls will be served.",
            "The office behind this was closed. It takes no more orders, now or later.",
            "The vendor went out of business, so this can never be completed.",
            "Service retired, without replacement. Calls are not processed any longer.",
            "The data centre was dismantled. Nothing here can be fetched, now or ever.",
            "Permanently closed by order of the court. No data are given out.",
            "This was the last copy, and it is destroyed. The request cannot be served.",
            "Our company has ceased to exist. Nobody will process this.",
            "Switched off for good on Friday. There is no other source.",
            "The archive was erased by mistake and there is no copy of it.",
            "End of service. What you ask for cannot be had any more.",
            "Fatal: the storage is lost, recovery was given up.",
            "The licence to these data was withdrawn for ever; no one may read them.",
            "This function ended with the old system. It has no equivalent.",
        ),
        "withdrawn": (
            "These tools have been withdrawn and will not return: {names}.",
            "Not available from now on, and not coming back: {names}.",
            "The following were taken out of the toolset permanently: {names}.",
            "Access to these tools has ended, there are no others for it: {names}.",
            "Discontinued without replacement: {names}.",
            "Deleted from the catalogue, with no other way to do the same: {names}.",
            "No longer offered, and nothing will take over: {names}.",
            "We have removed {names}. There is no other way to do this.",
            "Switched off for ever: {names}.",
            "The owner has taken back {names} and gives nothing in return.",
            "{names}: out of use from this minute, without substitute.",
            "Licence ended for {names}. Nothing else does the same.",
            "These are gone for good: {names}.",
            "Tools lost in the incident, not to be rebuilt: {names}.",
        ),
        "rule": (
            "The code of the rule in force is {code}.",
            "The rule has been updated. From now on its code is {code}.",
        ),
    },
    "dev": {
        "busy": ("Backend overloaded; try once more.",),
        "dead": ("Backend decommissioned for good; the operation cannot be carried out any more.",),
        "withdrawn": ("Removed today without a successor: {names}.",),
        "rule": (
            "House rules apply under code {code}.",
            "New house rules just took effect, code {code}; older codes are void.",
        ),
    },
    "test": {
        "busy": ("Gateway hiccup, kindly reissue the request.",),
        "dead": ("Gateway closed for ever, nobody will answer this request again.",),
        "withdrawn": ("Gone from this interface, nothing takes their place: {names}.",),
        "rule": (
            "Regulation {code} governs this session.",
            "Regulation {code} has replaced the former one as of this moment.",
        ),
    },
}


def said(scene: Scene, what: str) -> str:
    """What is said of it in this scene, in the words of its pool."""
    return seeds.rng(scene.task.id, "said", what).choice(TEXTS[scene.task.pool][what])


@dataclass(frozen=True)
class Fatal(Layer):
    """A tool fails some times with an offer to retry, and then for good or not at all."""

    tool: str
    times: int
    fatal: bool
    busy: str
    dead: str

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        if name != self.tool:
            return below(name, arguments)
        failures = memory.get("failures", 0)
        memory["failures"] = failures + 1
        if failures < self.times:
            return error("unavailable", self.busy, Hint("retry"), provoked=True)
        if self.fatal:
            return error("unavailable", self.dead, Hint("fatal"), provoked=True)
        return below(name, arguments)


@dataclass(frozen=True)
class Withdrawn(Layer):
    """Tools go after the first successful call, with a notice."""

    names: tuple[str, ...]
    text: str

    def phase(self, memory: Memory) -> int:
        return int(memory["calls"] > 0)

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        if not self.phase(memory):
            return tools
        return tuple(t.with_(retired=True) if t.name in self.names else t for t in tools)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        gone = self.phase(memory)
        notice = self.text.format(names=", ".join(self.names))
        if gone and name in self.names:
            return error("gone", notice, provoked=True)
        result = below(name, arguments)
        if gone or not self.phase(memory):
            return result
        return result.with_(notice=f"{result.notice} {notice}".strip())


@dataclass(frozen=True, eq=False)
class Policed:
    """Lets a call through that carries the code of the rule in force at this request."""

    tool: Tool
    codes: tuple[str, ...]

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        own = {name: value for name, value in arguments.items() if name != "rule_code"}
        if arguments["rule_code"] != self.codes[memory["asks"]]:
            return error("rule_outdated", f"{arguments['rule_code']} is not the rule in force.")
        return below(self.tool.name, own)
