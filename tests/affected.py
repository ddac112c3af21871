"""`python -m tests.affected [BASE]`: the test files that the changes since a commit can reach; `make affected` runs them.

A test reaches what it imports, what its `conftest.py` files import, and what these import in turn; and what it names:
docs/explanation/affected-tests.md says why that is sound, and what it leaves to the whole suite.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

import grimp

from redrive.aws.services import FOLDERS
from tests.tidy import ROOT


def _file(module: str) -> str:
    """The file of a module."""
    stem = ("src/" if module.split(".", maxsplit=1)[0] == "redrive" else "") + module.replace(".", "/")
    return f"{stem}.py" if (ROOT / f"{stem}.py").exists() else f"{stem}/__init__.py"


def _service(folder: str) -> str:
    """The module that stands for a service: what it is composed of, or its one value."""
    composed = f"redrive.composition.{folder.partition('.')[0]}"
    return composed if (ROOT / _file(composed)).exists() else f"redrive.aws.{folder}.service"


#: What these hold can change any test.
_FOR_ALL: Final = frozenset({"pyproject.toml", "constraints.txt", "Makefile", "tests/__init__.py"})
#: They read the tree's text, which no import tells.
_READERS: Final = (
    "tests/test_tidy.py",
    "tests/test_layers.py",
    "tests/test_visible_constants.py",
    "tests/docs",
)
#: What a server imports when it is first asked for, by the word that asks for it.
_ON_DEMAND: Final = {
    **{name: _service(folder) for name, folder in FOLDERS.items()},
    "console": "redrive.composition.console_pages",
}
# Their words ask: tests, and what carries requests out by asking other services. Others tell services apart.
_ASKING: Final = re.compile(
    r"tests\.|redrive\.(?:console|cli)\.|redrive\.aws\.(?:apigateway|cloudformation|cloudwatch|firehose|lambda_|logs|s3)\."
)
# What they name they import for whoever asks, or before anybody does; a server is all that they need.
_LOADERS: Final = frozenset(
    {"redrive.composition.console", "redrive.composition.extensions", "tests.services.server"}
)
_SERVER: Final = "redrive.app"
_COMMANDS: Final = "redrive.cli"  # each is imported by its own name


class Reach:
    """The import graph of the tree, with what names in strings add to it.

    Attributes:
        files: Those in it: the modules of packages.
    """

    def __init__(self) -> None:
        self._graph = grimp.build_graph("redrive", "tests", cache_dir=None)
        self._modules = {_file(module): module for module in self._graph.modules}
        self.files = self._modules.keys()
        for module in self._graph.modules:
            for imported in {*self._named(module), *self._conftests(module)} - {module}:
                self._graph.add_import(importer=module, imported=imported)

    def tests(self, paths: Iterable[str]) -> list[str]:
        """The test files, sorted, that files of the tree can change; `tests` where one changes how all run."""
        changed = frozenset(paths)
        if changed & _FOR_ALL:
            return ["tests"]
        modules = {module for path in changed for module in self._modules_at(PurePosixPath(path))}
        reached = modules.union(*map(self._graph.find_downstream_modules, modules))
        files = (PurePosixPath(_file(module)) for module in reached)
        return sorted({*_READERS, *(str(file) for file in files if file.name.startswith("test_"))})

    def _modules_at(self, path: PurePosixPath) -> Iterator[str]:
        """The modules that change with a file: its own, all of its package, or all that name its folder."""
        if str(path) in self._modules and path.name != "__init__.py":
            yield self._modules[str(path)]
        elif path.parts[0] in {"src", "tests"}:
            yield from self._package(".".join(path.parts[path.parts[0] == "src" : -1]))
        else:
            yield from (module for module, words in self._words.items() if path.parts[0].lower() in words)

    def _package(self, name: str) -> Iterator[str]:
        """The innermost package at a dotted path, with all that is in it."""
        while name and name not in self._graph.modules:
            name = name.rpartition(".")[0]
        if name:
            yield from {name, *self._graph.find_descendants(name)}

    def _named(self, module: str) -> Iterator[str]:
        """The imports of a module by a name in a string: a module's, or a service's that it asks."""
        words = self._words[module]
        if module == "tests.services.server":
            yield from self._graph.find_descendants(_COMMANDS)
        if module in _LOADERS:
            yield from words & {_SERVER}
            return
        yield from words & self._graph.modules
        if _ASKING.match(module):
            yield from (target for word, target in _ON_DEMAND.items() if word in words)

    def _conftests(self, module: str) -> Iterator[str]:
        """The modules that pytest loads before a test file."""
        parts = module.split(".")
        names = (".".join((*parts[:length], "conftest")) for length in range(1, len(parts)))
        return (name for name in names if name in self._graph.modules)

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        """The words in the text constants of each module, dotted names whole."""
        return {module: _words_in((ROOT / file).read_text()) for file, module in self._modules.items()}


def _words_in(source: str) -> frozenset[str]:
    """Of the text constants that are no documentation."""
    texts = list(_texts_in(ast.parse(source)))
    lower = (word for text in texts for word in re.findall(r"[a-z0-9]+", text.lower()))
    return frozenset(lower).union(*(re.findall(r"[\w.]+", text) for text in texts))


def _texts_in(tree: ast.AST) -> Iterator[str]:
    """The text constants of a tree, by a walk of a third of `ast.walk`'s time: the project has 1.8 million nodes."""
    remaining: list[object] = [tree]
    while remaining:
        node = remaining.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value
        elif isinstance(node, list):
            remaining += node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # documentation
        elif isinstance(node, ast.AST) and not isinstance(node, ast.Name):
            remaining += [getattr(node, field, None) for field in node._fields]


def main() -> int:
    """Print the files, one a line."""
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    names = subprocess.run(
        ["git", "diff", "--name-only", base, "--"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    sys.stdout.writelines(f"{file}\n" for file in Reach().tests(names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
