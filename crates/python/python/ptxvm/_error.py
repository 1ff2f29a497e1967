"""What goes wrong, and what there is to say about PTX."""

from typing import NamedTuple, Optional


class Diagnostic(NamedTuple):
    """One message about one place of a PTX file. Lines and columns count from 1; the end is behind the last character."""

    code: str
    severity: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    help: Optional[str]
    notes: list
    labels: list
    rendered: str

    def __str__(self):
        return self.rendered.rstrip()


class Error(Exception):
    """Why PTX could not be compiled, or a kernel not launched or not run to its end. Its text shows the line with a caret."""

    def __init__(
        self,
        rendered,
        *,
        code="error",
        message=None,
        file=None,
        line=None,
        column=None,
        kernel=None,
        block=None,
        thread=None,
        address=None,
        diagnostics=(),
        findings=None,
        trace=None,
        watch=None,
        first_nan=None,
    ):
        super().__init__(rendered)
        self.rendered = rendered
        self.code = code
        self.message = rendered.split("\n", 1)[0] if message is None else message
        self.file = file
        self.line = line
        self.column = column
        self.kernel = kernel
        self.block = None if block is None else tuple(block)
        self.thread = None if thread is None else tuple(thread)
        self.address = address
        self.diagnostics = list(diagnostics)
        #: What the launch saw until it ended, if it was asked to look.
        self.findings = findings
        self.trace = trace
        self.watch = watch
        self.first_nan = first_nan

    def __str__(self):
        return self.rendered

    def __reduce__(self):
        return _again, (type(self), self.rendered, {k: v for k, v in self.__dict__.items() if k != "rendered"})


class ArgumentError(Error, TypeError):
    """The arguments of a launch do not fit the kernel's parameters."""


class KernelNotFoundError(Error, KeyError):
    """A module has no kernel of this name, or several."""


# Tracebacks name classes as programs do.
for _class in (Diagnostic, Error, ArgumentError, KernelNotFoundError):
    _class.__module__ = "ptxvm"


def _again(kind, rendered, facts):
    return kind(rendered, **facts)
