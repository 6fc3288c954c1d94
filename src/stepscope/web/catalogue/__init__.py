"""Which runs there are below some directories: found, read in the background, analysed beforehand, opened when asked.

`survey.py` looks at files, `finding.py` turns them into inputs, `listing.py` into entries; `worker.py` is the process
that reads and analyses, `helpers.py` its other end; `catalogue.py` puts them together.
"""

from stepscope.web.catalogue.catalogue import Catalogue
from stepscope.web.catalogue.entry import STATES, Entry, State

__all__ = ["STATES", "Catalogue", "Entry", "State"]
