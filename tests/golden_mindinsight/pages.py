"""All pages that have a counterpart here."""

from __future__ import annotations

import pages_advice
import pages_input
import pages_operators
import pages_steps
import pages_usage

PAGES = {**pages_steps.PAGES, **pages_input.PAGES, **pages_usage.PAGES, **pages_operators.PAGES, **pages_advice.PAGES}
