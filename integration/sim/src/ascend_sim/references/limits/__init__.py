# SPDX-License-Identifier: Apache-2.0
"""What the hardware refuses: a data table (one YAML file per family in this folder) and the checks that read it.

:class:`~ascend_sim.references.limits.rows.Row` describes the form of a row, ``docs/limits.md`` shows all of them.
References are wrapped by :func:`guard`, which checks a call against its operator's row before it runs.
"""

from __future__ import annotations

from ascend_sim.references.limits.check import check_call, check_dtype, guard
from ascend_sim.references.limits.errors import ORACLE_VARIABLE, not_simulated, oracle_mode, refuse
from ascend_sim.references.limits.rows import Kind, Row, Rule
from ascend_sim.references.limits.soc import Family, active_family, as_family, family_of
from ascend_sim.references.limits.table import merge, numbers, table

__all__ = [
    "ORACLE_VARIABLE",
    "Family",
    "Kind",
    "Row",
    "Rule",
    "active_family",
    "as_family",
    "check_call",
    "check_dtype",
    "family_of",
    "guard",
    "merge",
    "not_simulated",
    "numbers",
    "oracle_mode",
    "refuse",
    "table",
]
