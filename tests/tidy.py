"""The house rules, each a function from one file to what is wrong with it; `test_tidy.py` applies them.

A rule's docstring is its reason. Whatever is said twice in review belongs here.
"""

import ast
import functools
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

ROOT: Final = Path(__file__).parents[1]

FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 400
SUITE_LINES_MAX: Final = 500
LONG_FILES: Final[dict[str, str]] = {}  # path: the reason why it is best read as one

Rule = Callable[["Source"], Iterator[str]]
N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True)
class Source:
    """One text file.

    Attributes:
        path: From the root of the project.
    """

    path: PurePosixPath
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @functools.cached_property
    def _nodes(self) -> dict[type[ast.AST], list[Any]]:
        """All nodes of the tree by their types: each rule looks at a few of them, and there are 1.8 million."""
        nodes: dict[type[ast.AST], list[Any]] = {}
        remaining: list[object] = [self.tree]
        while remaining:
            node = remaining.pop()
            if isinstance(node, list):
                remaining += reversed(node)
            elif isinstance(node, ast.AST):
                nodes.setdefault(type(node), []).append(node)
                remaining += [
                    getattr(node, field, None) for field in reversed(node._fields) if field != "ctx"
                ]
        return nodes

    def nodes(self, *types: type[N]) -> Iterator[N]:
        """The nodes of these types."""
        for type_ in types:
            yield from self._nodes.get(type_, ())

    @functools.cached_property
    def origins(self) -> dict[str, str]:
        """The full name of each imported name: `{"sleep": "asyncio.sleep"}` after `from asyncio import sleep`."""
        origins: dict[str, str] = {}
        for node in self.nodes(ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]
                origins |= {alias.asname: alias.name} if alias.asname else {package: package}
        for node in self.nodes(ast.ImportFrom):
            if node.module and not node.level:
                origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        return origins

    def is_python(self, *folders: str) -> bool:
        """True if this is Python, under one of the folders where any are named."""
        inside = not folders or any(self.path.is_relative_to(folder) for folder in folders)
        return inside and self.path.suffix == ".py"

    def at(self, line: int, complaint: str) -> str:
        """The complaint, with the place in the form that editors follow."""
        return f"{self.path}:{line}: {complaint}"


def all_sources(root: Path) -> Iterator[Source]:
    """Every text file of the project, save what tools made: hidden folders, caches, builds, a worktree's `.git`."""
    for path in sorted(root.iterdir()):
        if path.is_dir() and (path.name == ".ci" or not _is_made_by_a_tool(path)):
            yield from (Source(path.name / source.path, source.text) for source in all_sources(path))
        elif path.is_file() and path.name != ".git" and b"\0" not in (content := path.read_bytes()):
            yield Source(PurePosixPath(path.name), content.decode())


def _is_made_by_a_tool(folder: Path) -> bool:
    return (
        folder.name.startswith((".", "__"))
        or folder.name.endswith(".egg-info")
        or folder.name in {"build", "dist"}
    )


# Clock and random numbers

_BANNED: Final = {
    *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter"),
    *("time.perf_counter_ns", "time.sleep", "asyncio.sleep"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom"),
}


def time_and_randomness_come_in_by_the_front_door(source: Source) -> Iterator[str]:
    """One direct look at the clock, and neither the simulator nor a simulated clock covers that line any more."""
    if not source.is_python("src/redrive") or source.is_python("src/redrive/runtime"):
        return
    for node in source.nodes(ast.Attribute, ast.Name):
        if _reads_time_or_randomness(origin := _origin(source, node)):
            yield source.at(
                node.lineno, f"{origin} outside redrive.runtime: take a Clock, `now`, or a random.Random"
            )
    for node in source.nodes(ast.Call):
        if not node.args and _origin(source, node.func) == "random.Random":
            yield source.at(node.lineno, "random.Random() without a seed: take one from the caller")


def _reads_time_or_randomness(origin: str) -> bool:
    if origin.startswith("random."):
        return not origin.startswith("random.Random")
    return origin in _BANNED or origin.startswith("secrets.")


def _origin(source: Source, node: ast.expr) -> str:
    """The full name of what an expression refers to, or the empty string where it is nothing imported."""
    if isinstance(node, ast.Name):
        return source.origins.get(node.id, "")
    if isinstance(node, ast.Attribute) and (base := _origin(source, node.value)):
        return f"{base}.{node.attr}"
    return ""


def the_loops_time_stays_in_the_server(source: Source) -> Iterator[str]:
    """A connection's time-outs may follow the event loop; a delivery's must follow the Clock."""
    if not source.is_python("src/redrive") or source.is_python(
        "src/redrive/server", "src/redrive/runtime", "src/redrive/endpoints/kept_connection.py"
    ):
        return
    for node in source.nodes(ast.Attribute):
        if node.attr == "time" and _last_name(node.value).endswith("loop"):
            yield source.at(node.lineno, "the event loop's time outside redrive.server: take a Clock")


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last_name(function)
    return ""


def tests_wait_for_signals(source: Source) -> Iterator[str]:
    """A slept second is wasted on a fast machine and too short on a slow one. `sleep(0)` only lets others run."""
    if not source.is_python("tests"):
        return
    for node in source.nodes(ast.Call):
        if _origin(source, node.func) in {"time.sleep", "asyncio.sleep"}:
            seconds = [ast.unparse(argument) for argument in node.args]
            if seconds != ["0"]:
                yield source.at(node.lineno, "a test sleeps: wait for a signal, or move a simulated clock")


# Size and names


def functions_fit_on_a_screen(source: Source) -> Iterator[str]:
    """A function that needs scrolling is read twice. Median under ten lines; this is the wall."""
    if not source.is_python():
        return
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        if _lines(node) > FUNCTION_LINES_MAX:
            yield source.at(
                node.lineno, f"{node.name} has {_lines(node)} lines, the wall is {FUNCTION_LINES_MAX}"
            )


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From `def` to the end, the docstring left out."""
    assert function.end_lineno is not None
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    documented = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
    return function.end_lineno - function.lineno + 1 - documented


def files_are_rooms(source: Source) -> Iterator[str]:
    """A file of 80 to 250 lines is about one thing; past 400 it is about several, or LONG_FILES says why not.

    A suite of tests may have a hundred lines more: cases of one kind are read one at a time.
    """
    lines = source.text.count("\n")
    most = SUITE_LINES_MAX if source.path.parts[0] == "tests" else FILE_LINES_MAX
    excused = str(source.path) in LONG_FILES
    if source.is_python() and lines > most and not excused:
        yield source.at(lines, f"{lines} lines: more than {most} want a reason in LONG_FILES")
    if excused and lines <= most:
        yield source.at(1, "no longer long: take it out of LONG_FILES")


_VAGUE_MODULE: Final = re.compile(r"(managers?|handlers?|utils?|utilities|common|helpers?|data|misc)")
_VAGUE_CLASS: Final = re.compile(r"\w*(Manager|Utils?|Helper)|\w+Handler")


def names_say_what_they_hold(source: Source) -> Iterator[str]:
    """`utils` and `DeliveryManager` fit everything, so everything ends up there. `Handler` alone is HTTP's."""
    if not source.is_python():
        return
    if _VAGUE_MODULE.fullmatch(source.path.stem) or _VAGUE_MODULE.fullmatch(source.path.parent.name):
        yield source.at(1, "a module's name says what is in it")
    for node in source.nodes(ast.ClassDef):
        if _VAGUE_CLASS.fullmatch(node.name):
            yield source.at(node.lineno, f"{node.name}: a class's name says what it is")


def modules_introduce_themselves(source: Source) -> Iterator[str]:
    """The first line of a file tells a reader whether to read on. A file of tests may let its name say it."""
    if not source.is_python() or source.path.name.startswith("test_"):
        return
    if len((ast.get_docstring(source.tree) or "").split()) < 3:
        yield source.at(1, "no docstring that says what this module is")


_OPERATION: Final = (["self", "call", "params"], ["self", "_call", "params"])


def public_methods_of_services_have_docstrings(source: Source) -> Iterator[str]:
    """Like ruff's D102, except for operations, which Amazon's API reference describes."""
    if not source.is_python("src/redrive/aws"):
        return
    classes = [node for node in source.nodes(ast.ClassDef) if node.name[0] != "_"]
    for method in (part for node in classes for part in node.body):
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or method.name[0] == "_":
            continue
        decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
        is_operation = [argument.arg for argument in method.args.args] in _OPERATION
        if not (is_operation or "override" in decorators or ast.get_docstring(method)):
            yield source.at(method.lineno, f"{method.name}: a public method without a docstring")


_CONSTRUCTOR_WORDS_MIN: Final = 11


def docstrings_say_more_than_the_signature(source: Source) -> Iterator[str]:
    """`Do it here.` above `__init__`, and the address of an operation's page, are lines that nobody reads."""
    if not source.is_python("src/redrive"):
        return
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        text = ast.get_docstring(node) or ""
        if re.fullmatch(r"https?://\S+", text):
            yield source.at(node.lineno, "a docstring that is an address alone")
        is_short = "\n" not in text and len(text.split()) < _CONSTRUCTOR_WORDS_MIN
        if node.name == "__init__" and text and is_short and not re.search(r"[`;(]", text):
            yield source.at(node.lineno, "a constructor's docstring that the class's already says")


_LATER_PYTHON: Final = "typing_extensions"  # what `typing` itself has from Python 3.12 on: `@override`


def the_core_needs_only_python(source: Source) -> Iterator[str]:
    """The model and the engine outlive every library: only the standard library and Redrive itself."""
    if not source.is_python("src/redrive/model", "src/redrive/engine"):
        return
    for name, origin in source.origins.items():
        package = origin.partition(".")[0]
        if package not in sys.stdlib_module_names | {"redrive", _LATER_PYTHON}:
            yield source.at(1, f"{name} comes from {package}, outside the standard library")


_OPENING: Final = re.compile(r"(What|Who|Whose|Whom|Whether|Where|When|Which|Why|How|That|It|Its)\b")


def docstrings_begin_with_a_noun_or_a_verb(source: Source) -> Iterator[str]:
    """A docstring that begins with `What` or `Who` talks around the name of a thing, and readers look for the name."""
    if not source.is_python("src/redrive", "tests", "benchmarks"):
        return
    for node in source.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        if opening := _OPENING.match(ast.get_docstring(node) or ""):
            line = getattr(node, "lineno", 1)
            yield source.at(
                line, f"a docstring that begins with {opening[0]}: name the thing, or what it does"
            )


def loops_name_their_elements(source: Source) -> Iterator[str]:
    """`for one in …` makes every reader look up what there is one of."""
    if not source.is_python("src/redrive"):
        return
    for node in source.nodes(ast.For, ast.AsyncFor, ast.comprehension):
        if _last_name(node.target) == "one":
            yield source.at(node.target.lineno, "an element called `one`: name it")


_PRONOUN: Final = re.compile(
    r"test_(what|whatever|who|whoever|whom|whose|which|where|when|whether|why|how|nobody|somebody|anybody|everybody"
    r"|it|its|that)(_|$)"
)


def tests_names_state_the_case(source: Source) -> Iterator[str]:
    """A test that fails is read by its name first: the case and the expectation in nouns, not `what` is done to `it`."""
    if not source.is_python("tests"):
        return
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
        if _PRONOUN.match(node.name):
            yield source.at(node.lineno, f"{node.name}: name the case, and what is expected of it")


_NONE: Final = re.compile(r"\bIt is (none|neither|something else)\b")


def errors_say_what_was_wrong(source: Source) -> Iterator[str]:
    """`It is none` says nothing to a reader who does not know what it should have been."""
    if not source.is_python("src/redrive"):
        return
    for match in _NONE.finditer(source.text):
        line = source.text.count("\n", 0, match.start()) + 1
        yield source.at(line, "say what was wrong with which thing")


@functools.cache
def _glossary() -> str:
    return (ROOT / "docs/reference/glossary.md").read_text()


def classes_stand_in_the_glossary(source: Source) -> Iterator[str]:
    """A word that the engine or the model uses is found in one place, beside what other systems call it."""
    if not source.is_python("src/redrive/engine", "src/redrive/model"):
        return
    for node in source.tree.body:
        if (
            isinstance(node, ast.ClassDef)
            and not node.name.startswith("_")
            and f"`{node.name}`" not in _glossary()
        ):
            yield source.at(node.lineno, f"{node.name} is not in docs/reference/glossary.md")


_PARTICIPLES: Final = frozenset(
    (
        "asked",
        "found",
        "given",
        "gone",
        "kept",
        "made",
        "meant",
        "named",
        "place",
        "said",
        "shown",
        "there",
        "told",
        "wanted",
    )
)
#: How many uses of them as names each package may have; none in those that are not here.
PARTICIPLES_MAX: Final = {"aws": 10, "model": 1}


def participles(source: Source) -> int:
    """The number of arguments, variables and functions of a module that have a participle (or `place`) for a name."""
    names = [
        *(node.arg for node in source.nodes(ast.arg)),
        *(node.id for node in source.nodes(ast.Name)),
        *(node.name for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef)),
    ]
    return sum(name.strip("_") in _PARTICIPLES for name in names)


# Text, in files of every kind

_REGISTRIES: Final = "pypi|pythonhosted|npmjs|docker|ghcr|quay|crates|rubygems|golang"
_LEFTOVERS: Final = (
    (
        re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"),
        "a leftover marker: do it, or write it down as an issue",
    ),
    (re.compile(r"(?<![\w.~/-])/(work|root|home)\b"), "a path of one machine"),
    (re.compile(rf"\b({_REGISTRIES})\.(org|com|io)\b"), "the host name of a package registry"),
)


def nothing_is_left_over(source: Source) -> Iterator[str]:
    """Markers are promises nobody keeps; one machine's paths and mirrors are wrong on every other."""
    for pattern, complaint in _LEFTOVERS:
        for match in pattern.finditer(source.text):
            yield source.at(source.text.count("\n", 0, match.start()) + 1, complaint)


_SUPPRESSION: Final = re.compile(
    r"(ruff:\s*)?noqa(:\s*[A-Z]+\d+([,\s]+[A-Z]+\d+)*)?|type:\s*ignore(\[[\w, -]+\])?|pragma:\s*no cover"
)


def suppressions_give_a_reason(source: Source) -> Iterator[str]:
    """A silenced check is either a false alarm, and then why, or a debt, and then why."""
    if not source.is_python() or _SUPPRESSION.search(source.text) is None:
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            reason, suppressions = _SUPPRESSION.subn("", token.string)
            if suppressions and not re.search(r"[a-z]{3}", reason):
                yield source.at(token.start[0], "a suppression without a reason on its line")


def decisions_are_in_the_index(source: Source) -> Iterator[str]:
    """A decision record that the index does not name is not found by the person who needs it."""
    if not re.fullmatch(r"docs/decisions/\d{4}-.*\.md", str(source.path)):
        return
    if f"({source.path.name})" not in (ROOT / "docs/decisions/README.md").read_text():
        yield source.at(1, "not in docs/decisions/README.md")


RULES: Final[tuple[Rule, ...]] = (
    time_and_randomness_come_in_by_the_front_door,
    the_loops_time_stays_in_the_server,
    tests_wait_for_signals,
    functions_fit_on_a_screen,
    files_are_rooms,
    names_say_what_they_hold,
    modules_introduce_themselves,
    public_methods_of_services_have_docstrings,
    docstrings_say_more_than_the_signature,
    the_core_needs_only_python,
    docstrings_begin_with_a_noun_or_a_verb,
    loops_name_their_elements,
    tests_names_state_the_case,
    errors_say_what_was_wrong,
    classes_stand_in_the_glossary,
    nothing_is_left_over,
    suppressions_give_a_reason,
    decisions_are_in_the_index,
)
