"""The command line. Exit codes: 0 good, 1 a check failed or nothing could be
measured, 2 a usage error, 3 an inconclusive gate, 4 a gate that was not measured,
130 interrupted."""

from __future__ import annotations

import sys

try:
    import os
    import shlex
    from typing import NoReturn

    import click

    from toolshift.cli.group import ReaderGone, toolshift
    from toolshift.cli.stopping import forbid_silent_end, stop_on_sigterm
    from toolshift.core.errors import MissingPlugin, ShiftFault, UsageError, outside
    from toolshift.core.files import NO_ROOM
    from toolshift.core.redaction import without_secrets
    from toolshift.core.terminal import say
    from toolshift.core.text import visible
except KeyboardInterrupt:  # before there is a command that could be stopped
    sys.stderr.write("Stopped.\n")
    sys.exit(130)

__all__ = ["main", "toolshift"]


MAKE_ROOM = "What was written is kept. Free some space, and run the same command again."


def main() -> NoReturn:
    """Runs the command line; every error is a sentence, unless TOOLSHIFT_TRACEBACK is set."""
    stop_on_sigterm()
    forbid_silent_end()
    try:
        sys.exit(_run())
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(2)
    except (UsageError, ShiftFault) as wrong:
        if os.environ.get("TOOLSHIFT_TRACEBACK"):
            raise
        say(f"Error: {visible(without_secrets(str(wrong)))}{_advice(wrong)}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        say("Stopped.", err=True)
        sys.exit(130)
    except (BrokenPipeError, ReaderGone):
        os._exit(141)  # nobody reads on, so there is nothing left to flush
    except OSError as fault:
        if os.environ.get("TOOLSHIFT_TRACEBACK"):
            raise
        if fault.filename:
            what = f"{fault.filename}: {fault.strerror or fault}"
            full = fault.errno in NO_ROOM
            said = (
                f"{what}. "
                f"{MAKE_ROOM if full else 'Make it readable or writable, or name another one.'}"
            )
        else:
            said = str(fault.strerror or fault)
        say(f"Error: {visible(said)}", err=True)
        sys.exit(2)


def _run() -> int:
    """Runs the command; returns its exit code."""
    try:
        return int(toolshift(standalone_mode=False) or 0)
    except click.NoSuchOption as wrong:
        if wrong.option_name != "--plugin":
            raise
        words = "toolshift --plugin FILE.py COMMAND ..."
        raise UsageError(f"--plugin must come before the command: {words}") from None
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):  # rich ends with 1, a "fail"
            raise BrokenPipeError from None
        # One that comes from a worker has a cause, and no line of its own.
        from_worker = "a worker process" if done.__cause__ is not None else ""
        place = outside(done, called_by_us=True) or from_worker
        if not place:
            raise
        raise UsageError(
            f"code that is not ToolShift's ended the program with exit code {done.code} "
            f"({place}): it must return or raise an exception instead"
        ) from None


def _advice(wrong: Exception) -> str:
    """The same command with the plugins that a run needs."""
    if not isinstance(wrong, MissingPlugin):
        return ""
    words = [word for each in wrong.plugins for word in ("--plugin", each)]
    return f": {visible(shlex.join(['toolshift', *words, *sys.argv[1:]]))}"
