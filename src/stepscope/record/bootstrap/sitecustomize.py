"""Put first on a program's path by `stepscope record`: arms the recorder, then runs the site's own customization."""

import importlib.machinery
import importlib.util
import logging
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - every Python start pays for imports here

try:
    from stepscope.record.autostart import arm
except ImportError:
    logging.getLogger("stepscope").error("stepscope is not installed for %s; nothing is recorded", sys.executable)
else:
    arm()

_elsewhere = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]  # noqa: PTH100
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _elsewhere)
if _spec is not None and _spec.loader is not None:
    _module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
