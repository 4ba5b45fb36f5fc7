"""C functions that a program under test runs in place of a library's (ld.so(8), LD_PRELOAD)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def library(program: str, file: Path) -> Path:
    """The shared library of a C program, made beside a file whose path it knows as FILE_PATH."""
    source, made = file.with_suffix(".c"), file.with_suffix(".so")
    source.write_text(program)
    compiler = shutil.which("cc") or shutil.which("clang")
    assert compiler, "a C compiler is needed"
    subprocess.run([compiler, "-shared", "-fPIC", f'-DFILE_PATH="{file}"', "-o", made, source],
                   check=True)
    return made
