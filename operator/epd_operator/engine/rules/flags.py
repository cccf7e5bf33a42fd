"""Rules about the user's flags that vLLM's own argument parser refuses."""

from collections.abc import Collection, Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.capabilities import Capabilities, capabilities, known_minors
from epd_operator.engine.flags import ArgumentProblem
from epd_operator.engine.instance import Instance
from epd_operator.engine.release import Release
from epd_operator.engine.rules.arguments import OWNED
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

PARSER = "vLLM utils/argparse_utils.py and engine/arg_utils.py, each release; asked of each"


def _problems(wiring: Wiring, kinds: Collection[str]) -> Iterator[tuple[str, ArgumentProblem, Instance]]:
    """Problems of some kinds, each with its place and its instance."""
    for instance in wiring.instances.values():
        for problem in instance.args.problems:
            owned = problem.flag is not None and problem.flag.name in OWNED
            if problem.kind in kinds and not owned:
                yield instance.arg_path(problem), problem, instance


def looked_at(wiring: Wiring, flag: str) -> bool:
    """Whether vLLM compares a flag's value with anything: those of media only where the model is multimodal.

    Source: config/model.py, 0.28 to 0.33: MultiModalConfig, which holds the limits, is made only then.
    """
    return wiring.takes_media or not (flag.startswith("--mm-") or flag == "--video-pruning-rate")


@rule(
    id="args-unknown",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Every flag in args is one of vLLM's, of the release that runs.",
    why="vLLM refuses to start: unrecognized arguments.",
    source=PARSER,
    proved=True,
    needs_release=True,
)
def unknown(wiring: Wiring) -> Iterator[Broken]:
    """A flag that the release's parser does not know, or an abbreviation of several."""
    for path, problem, instance in _problems(wiring, ("unknown-flag", "ambiguous-flag")):
        word = instance.words[problem.index]
        if problem.kind == "ambiguous-flag":
            several = _shortened(problem.expected.removeprefix("one of "))
            message = f"vLLM {wiring.release} takes it for an abbreviation of several flags and refuses to start"
            yield Broken(path, word, message, f"write one of them in full: {several}")
            continue
        others = _releases_with(problem.found, wiring)
        if others:
            message = f"vLLM {wiring.release} has no such flag and refuses to start; {others}"
        else:
            message = f"vLLM {wiring.release} has no such flag and refuses to start"
        remedy = f"write {problem.nearest}" if problem.nearest and not others else "remove it"
        yield Broken(path, word, message, remedy)


def _releases_with(spelling: str, wiring: Wiring) -> str:
    """The releases that do know a flag, in words; empty where none does."""
    minors = [minor for minor in known_minors() if capabilities(Release(*minor)).flag(spelling)]
    if not minors or wiring.release is None:
        return ""
    first, last = (f"{minor[0]}.{minor[1]}" for minor in (minors[0], minors[-1]))
    return f"it exists from {first}" if minors[0] > wiring.release.minor_key else f"it is gone since {last}"


def _shortened(names: str) -> str:
    known = names.split(", ")
    return ", ".join(known[:4]) + (" ..." if len(known) > 4 else "")


@rule(
    id="args-malformed",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="A flag that takes a value has one, a flag that takes none has none, and no value stands alone.",
    why="vLLM refuses to start: expected one argument, or unrecognized arguments.",
    source=PARSER,
    proved=True,
    needs_release=True,
)
def malformed(wiring: Wiring) -> Iterator[Broken]:
    """A value too few or too many."""
    for path, problem, instance in _problems(wiring, ("missing-value", "unexpected-value", "stray-value")):
        word = instance.words[problem.index]
        if problem.kind == "missing-value":
            message = "the flag needs a value and none follows (vLLM refuses to start)"
            yield Broken(path, word, message, "add the value as the next item, or after an equals sign")
        elif problem.kind == "unexpected-value":
            message = f"the flag must be {problem.expected} (vLLM refuses to start)"
            yield Broken(path, word, message, f"write {problem.flag.name if problem.flag else 'the flag'} alone")
        else:
            message = "it belongs to no flag (vLLM refuses to start: unrecognized arguments)"
            yield Broken(path, word, message, _instead(instance, problem.index, wiring.capabilities))


def _instead(instance: Instance, index: int, known: Capabilities) -> str:
    """What was most likely meant by a word that belongs to no flag."""
    word = instance.words[index]
    bare = word.strip().strip("'\"")
    head, _, value = bare.partition(" ")
    if value and known.flag(head.partition("=")[0]):
        return f"write {head} and its value as two items"
    if bare != word and known.flag(bare.partition("=")[0]):
        return f"write {bare.partition('=')[0]} without quotes or blanks around it"
    before = known.flag(instance.words[index - 1]) if index else None
    if before is not None and not before.takes_value:
        return f"remove it, since {before.name} takes no value"
    return "remove it, or put its flag before it"


@rule(
    id="args-value",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Every value in args is of the type, among the choices and within the bounds of its flag.",
    why="vLLM refuses to start.",
    source=PARSER,
    proved=True,
    needs_release=True,
)
def value(wiring: Wiring) -> Iterator[Broken]:
    """A value that the flag does not take."""
    kinds = ("invalid-type", "invalid-choice", "out-of-bounds", "unknown-field", "invalid-field")
    for path, problem, instance in _problems(wiring, kinds):
        if problem.kind == "out-of-bounds" and problem.flag and not looked_at(wiring, problem.flag.name):
            continue
        if problem.kind == "unknown-field":
            message = f"{problem.found} is not {problem.expected} in vLLM {wiring.release} (vLLM refuses to start)"
            remedy = f"rename it to {problem.nearest}" if problem.nearest else f"remove {problem.found}"
        else:
            found = f"{problem.found or 'the empty text'} is given and " if problem.kind == "invalid-field" else ""
            message = f"{found}the value must be {_shortened(problem.expected)} (vLLM refuses to start)"
            remedy = f"write {problem.nearest}" if problem.nearest else "use another value, or remove the flag"
        yield Broken(path, _written(instance, problem), message, remedy)


def _written(instance: Instance, problem: ArgumentProblem) -> str:
    argument = next((given for given in instance.args.arguments if given.index == problem.index), None)
    return instance.written(argument) if argument else instance.words[problem.index]


def _configs(wiring: Wiring, *, ignored: bool) -> Iterator[tuple[str, str]]:
    """Every --config, by whether vLLM reads the file: only where the flag is a word of its own."""
    for instance in wiring.instances.values():
        for given in instance.args.all("--config"):
            if ("=" in instance.words[given.index]) is ignored:
                yield instance.arg_path(given), instance.written(given)


@rule(
    id="args-config-ignored",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="--config and its file are two items of args.",
    why="vLLM accepts --config=FILE and never reads the file.",
    source="vLLM 0.28 to 0.33 utils/argparse_utils.py, parse_args",
    proved=True,
)
def config_ignored(wiring: Wiring) -> Iterator[Broken]:
    """--config=FILE."""
    for path, written in _configs(wiring, ignored=True):
        message = "with an equals sign vLLM never reads the file, and says no word about it"
        yield Broken(path, written, message, "write --config and the file as two items, or write its flags into args")


@rule(
    id="args-config-unchecked",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="Flags are in args, not in a file that only the container has.",
    why="What the file says is checked by nobody before the engine starts; flags in args win over it.",
    source="the plan",
)
def config_unchecked(wiring: Wiring) -> Iterator[Broken]:
    """--config FILE."""
    for path, written in _configs(wiring, ignored=False):
        message = "the file is in the container only, so no rule sees what it says"
        yield Broken(path, written, message, "write its flags into args")


@rule(
    id="args-deprecated",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="Flags that a release warns about are replaced before a later one lacks them.",
    why="A later release refuses to start with them.",
    source="vLLM engine/arg_utils.py, each release",
    needs_release=True,
)
def deprecated(wiring: Wiring) -> Iterator[Broken]:
    """A flag that the release still takes and warns about."""
    for instance in wiring.instances.values():
        for given in instance.args.arguments:
            words = wiring.capabilities.deprecated.get(given.name)
            if words is not None:
                message = f"vLLM {wiring.release} says: {words.replace('. ', '; ').rstrip('.')}"
                yield Broken.at(instance, given, message, "replace or remove it")


@rule(
    id="args-help",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="No flag asks vLLM for its help.",
    why="vLLM prints its flags and ends, again and again, without an error.",
    source="Python argparse (-h, --help)",
    unproved="it neither refuses nor serves: it prints and ends without an error",
)
def asks_for_help(wiring: Wiring) -> Iterator[Broken]:
    """-h or --help."""
    message = "vLLM prints its flags and ends, again and again, without an error"
    for instance in wiring.instances.values():
        for given in instance.args.all("--help"):
            yield Broken.at(instance, given, message, "remove it")


RULES = (unknown, malformed, value, asks_for_help, config_ignored, config_unchecked, deprecated)
