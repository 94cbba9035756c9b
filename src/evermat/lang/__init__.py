"""The rule language: parsing, checking, normalising and printing of programs.

Text to program: `parse_program`, `parse_file`, `parse_rules`, `parse_query`. Program to
text: `str`, `rule_text`, `program_text`; `format_source` keeps comments. The classes of
programs are in `evermat.lang.syntax`. A program is validated by `check_program` or
`require_valid`, then prepared by `normalise` and `stratify`.
"""

from __future__ import annotations

from evermat.lang.checks import CheckReport, check_program, require_valid
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_file, parse_program, parse_query, parse_rules
from evermat.lang.printer import format_source, program_text, rule_text
from evermat.lang.strata import Stratification, Stratum, stratify
from evermat.lang.syntax import canonical, is_auxiliary

__all__ = [
    "CheckReport",
    "Stratification",
    "Stratum",
    "canonical",
    "check_program",
    "format_source",
    "is_auxiliary",
    "normalise",
    "parse_file",
    "parse_program",
    "parse_query",
    "parse_rules",
    "program_text",
    "require_valid",
    "rule_text",
    "stratify",
]
