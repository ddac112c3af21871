"""Reading of templates: from their text to nodes, in one pass without backtracking."""

import re
from collections.abc import Sequence
from typing import Final

from redrive.aws.apigateway.mapping.velocity.expressions import (
    Break,
    Expression,
    Foreach,
    If,
    InterpolatedText,
    ListLiteral,
    Literal,
    MapLiteral,
    MethodCall,
    Negation,
    Negative,
    RangeLiteral,
    Reference,
    Set,
    Stop,
    TemplateElement,
    TemplateMember,
    TemplateNode,
    TemplateOperation,
    VerbatimText,
)
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed

DEPTH_MAX: Final = 40
_NUMBER_CHARS_MAX: Final = 19  # of Java's longs
_TEXT: Final = re.compile(r"[^$#\\]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MEMBER: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)")
_REFERENCE: Final = re.compile(r"\$!?\{?(?=[A-Za-z_])")
_DIRECTIVE: Final = re.compile(r"#(?:\{([a-z]+)\}|([a-z]+))")
_ESCAPED: Final = re.compile(r"\\+(?=[$#])")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SPACE: Final = re.compile(r"\s*")
_LINE_END: Final = re.compile(r"[ \t]*\r?\n")
_WORDS: Final = {"true": True, "false": False, "null": None}
_WORD_OPERATORS: Final = {
    "and": "&&",
    "or": "||",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
#: From the loosest to the tightest.
_OPERATORS: Final = (("||",), ("&&",), ("==", "!="), ("<=", ">=", "<", ">"), ("+", "-"), ("*", "/", "%"))
_DIRECTIVES: Final = frozenset({"set", "if", "foreach", "elseif", "end", "else", "break", "stop", "return"})
_UNSUPPORTED: Final = frozenset({"macro", "include", "parse", "evaluate", "define"})


class TemplateReader:
    """Reads a template."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth

    def template(self) -> Sequence[TemplateNode]:
        """Read the whole template; raises TemplateFailed if that is impossible."""
        nodes, end = self._block()
        if end:
            raise self._failure(f"#{end} without a beginning")
        return nodes

    # ---- blocks ----------------------------------------------------------------------------------------------

    def _block(self) -> tuple[Sequence[TemplateNode], str]:
        """The nodes up to a directive that ends the block, and the directive's name; empty at the end of the text."""
        nodes: list[TemplateNode] = []
        self._enter()
        while self._at < len(self._text):
            if (match := self._match(_TEXT)) is not None:
                nodes.append(VerbatimText(match))
            elif (node := self._special()) is not None:
                if isinstance(node, str):
                    self._depth -= 1
                    return nodes, node
                nodes.append(node)
        self._depth -= 1
        return nodes, ""

    def _special(self) -> TemplateNode | str | None:
        """The node at a `$`, `#` or backslash; the name of a directive that ends a block; None for a comment."""
        if (escapes := self._match(_ESCAPED)) is not None:
            # Two backslashes are one; a last single one makes the mark after it a plain character.
            pairs, single = divmod(len(escapes), 2)
            mark = self._text[self._at] if single else ""
            self._at += len(mark)
            return VerbatimText("\\" * pairs + mark)
        if self._text[self._at] == "$" and _REFERENCE.match(self._text, self._at):
            return self._reference()
        if self._text.startswith("##", self._at):
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end + 1
            return None
        for begin, end_mark in (("#*", "*#"), ("#[[", "]]#")):
            if self._text.startswith(begin, self._at):
                inner = self._until(begin, end_mark)
                return None if begin == "#*" else VerbatimText(inner)
        directive = _DIRECTIVE.match(self._text, self._at)
        if directive is not None:
            return self._directive(directive)
        self._at += 1
        return VerbatimText(self._text[self._at - 1])

    def _until(self, begin: str, end_mark: str) -> str:
        """Read from one mark, which is next, to another; returns what is between."""
        end = self._text.find(end_mark, self._at + len(begin))
        if end < 0:
            raise self._failure(f"{begin} without {end_mark}")
        inner = self._text[self._at + len(begin) : end]
        self._at = end + len(end_mark)
        return inner

    def _directive(self, match: re.Match[str]) -> TemplateNode | str:
        """The node of a directive; its name if it ends a block."""
        name = match[1] or match[2]
        if name in _UNSUPPORTED:
            raise self._failure(f"#{name} is not offered")
        if name not in _DIRECTIVES:
            self._at += 1
            return VerbatimText("#")
        self._at = match.end()
        node: TemplateNode | str
        match name:
            case "if":
                return self._if()
            case "foreach":
                return self._foreach()
            case "elseif":
                return name
            case "set":
                node = self._set()
            case "break":
                node = Break()
            case "stop" | "return":
                node = Stop()
            case _:
                node = name
        self._match(_LINE_END)
        return node

    def _set(self) -> TemplateNode:
        self._expect("(")
        self._match(_SPACE)
        reference = self._reference()
        self._expect("=")
        expression = self._expression()
        self._expect(")")
        return Set(reference, expression)

    def _if(self) -> TemplateNode:
        """Read the branches of `#if` to its `#end`; the branch without a condition is `#else`."""
        branches: list[tuple[Expression | None, Sequence[TemplateNode]]] = []
        condition: Expression | None = self._condition()
        while True:
            nodes, end = self._block()
            branches.append((condition, nodes))
            match end:
                case "end":
                    return If(branches)
                case "elseif" if condition is not None:
                    condition = self._condition()
                case "else" if condition is not None:
                    condition = None
                case _:
                    raise self._failure("#if without #end")

    def _condition(self) -> Expression:
        self._expect("(")
        condition = self._expression()
        self._expect(")")
        self._match(_LINE_END)
        return condition

    def _foreach(self) -> TemplateNode:
        self._expect("(")
        self._match(_SPACE)
        reference = self._reference()
        self._match(_SPACE)
        if self._match(_NAME) != "in" or reference.steps:
            raise self._failure("#foreach without in")
        items = self._expression()
        self._expect(")")
        self._match(_LINE_END)
        nodes, end = self._block()
        if end != "end":
            raise self._failure("#foreach without #end")
        return Foreach(reference.name, items, nodes)

    # ---- references ------------------------------------------------------------------------------------------

    def _reference(self) -> Reference:
        begin = _REFERENCE.match(self._text, self._at)
        if begin is None:
            raise self._failure("a reference is missing")
        self._at = begin.end()
        self._enter()
        name = self._match(_NAME) or ""
        steps: list[TemplateMember | TemplateElement | MethodCall] = []
        while (step := self._step()) is not None:
            steps.append(step)
        if begin[0].endswith("{"):
            self._expect("}")
        self._depth -= 1
        return Reference(name, steps)

    def _step(self) -> TemplateMember | TemplateElement | MethodCall | None:
        """Read the next step of a reference, `.member`, `.method(…)` or `[index]`; None: there is no more."""
        match = _MEMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            if not self._text.startswith("(", self._at):
                return TemplateMember(match[1])
            self._at += 1
            return MethodCall(match[1], self._expressions(")"))
        if not self._text.startswith("[", self._at):
            return None
        self._at += 1
        index = self._expression()
        self._expect("]")
        return TemplateElement(index)

    # ---- expressions -----------------------------------------------------------------------------------------

    def _expression(self, level: int = 0) -> Expression:
        """Read operands of one level of operators; those of later levels bind tighter."""
        if level == len(_OPERATORS):
            return self._unary()
        left = self._expression(level + 1)
        while (operator := self._operator(_OPERATORS[level])) is not None:
            left = TemplateOperation(operator, left, self._expression(level + 1))
        return left

    def _operator(self, operators: Sequence[str]) -> str | None:
        """Read one of some operators, or the word for it, as `and`; None: none of them is next."""
        self._match(_SPACE)
        for operator in operators:
            if self._text.startswith(operator, self._at):
                self._at += len(operator)
                return operator
        word = _NAME.match(self._text, self._at)
        if word is not None and _WORD_OPERATORS.get(word[0]) in operators:
            self._at = word.end()
            return _WORD_OPERATORS[word[0]]
        return None

    def _unary(self) -> Expression:
        self._match(_SPACE)
        self._enter()
        mark = self._text[self._at : self._at + 1]
        operand: Expression
        if mark == "!" or _is_word(self._text, self._at, "not"):
            self._at += 1 if mark == "!" else len("not")
            operand = Negation(self._unary())
        elif mark == "-":
            self._at += 1
            operand = Negative(self._unary())
        elif mark == "(":
            self._at += 1
            operand = self._expression()
            self._expect(")")
        else:
            operand = self._primary(mark)
        self._depth -= 1
        return operand

    def _primary(self, mark: str) -> Expression:
        """Read an operand without signs, which begins with `mark`."""
        if mark == "$":
            return self._reference()
        if mark in {"'", '"'}:
            return self._quoted(mark)
        if mark == "[":
            self._at += 1
            return self._list_or_range()
        if mark == "{":
            self._at += 1
            return self._map()
        if (number := self._match(_NUMBER)) is not None:
            if len(number) > _NUMBER_CHARS_MAX:
                raise self._failure("a number is too long")
            return Literal(float(number) if "." in number else int(number))
        word = self._match(_NAME)
        if word not in _WORDS:
            raise self._failure("an expression is missing")
        return Literal(_WORDS[word])

    def _quoted(self, mark: str) -> Expression:
        """A text in quotes, which are doubled in it; backslashes have no meaning."""
        begin = self._at + 1
        end = self._text.find(mark, begin)
        while end >= 0 and self._text.startswith(mark, end + 1):
            end = self._text.find(mark, end + 2)
        if end < 0:
            raise self._failure("a text without its end")
        self._at = end + 1
        text = self._text[begin:end].replace(mark * 2, mark)
        if mark == "'" or ("$" not in text and "#" not in text):
            return Literal(text)
        return InterpolatedText(TemplateReader(text, self._depth).template())

    def _list_or_range(self) -> Expression:
        """Read `[1, 2]` or `[1..2]`, behind the bracket that begins it."""
        self._match(_SPACE)
        if self._text.startswith("]", self._at):
            self._at += 1
            return ListLiteral([])
        first = self._expression()
        self._match(_SPACE)
        if self._text.startswith("..", self._at):
            self._at += 2
            last = self._expression()
            self._expect("]")
            return RangeLiteral(first, last)
        if self._text.startswith(",", self._at):
            self._at += 1
            return ListLiteral([first, *self._expressions("]")])
        self._expect("]")
        return ListLiteral([first])

    def _map(self) -> Expression:
        """Read `{"a": 1}`, behind the brace that begins it."""
        items: list[tuple[Expression, Expression]] = []
        self._match(_SPACE)
        while not self._text.startswith("}", self._at):
            key = self._expression()
            self._expect(":")
            items.append((key, self._expression()))
            self._match(_SPACE)
            if self._text.startswith(",", self._at):
                self._at += 1
                self._match(_SPACE)
            elif not self._text.startswith("}", self._at):
                raise self._failure("} is missing")
        self._at += 1
        return MapLiteral(items)

    def _expressions(self, end: str) -> list[Expression]:
        """The expressions up to a closing mark, which is consumed."""
        items: list[Expression] = []
        self._match(_SPACE)
        if self._text.startswith(end, self._at):
            self._at += 1
            return items
        while True:
            items.append(self._expression())
            self._match(_SPACE)
            if self._text.startswith(",", self._at):
                self._at += 1
                continue
            self._expect(end)
            return items

    # ---- tokens ----------------------------------------------------------------------------------------------

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        """Read what a pattern matches here; None: nothing."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _expect(self, mark: str) -> None:
        self._match(_SPACE)
        if not self._text.startswith(mark, self._at):
            raise self._failure(f"{mark} is missing")
        self._at += len(mark)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._failure("it is nested too deeply")

    def _failure(self, why: str) -> TemplateFailed:
        line = self._text.count("\n", 0, self._at) + 1
        return TemplateFailed(f"Unable to parse the template, line {line}: {why}")


def _is_word(text: str, at: int, word: str) -> bool:
    match = _NAME.match(text, at)
    return match is not None and match[0] == word
