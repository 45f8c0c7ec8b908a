"""APFEx itself. Register here: name -> function with the signature of every other method.

``METHODS["APFEx network"] = apfex_network``, where ``apfex_network(train, validation, test, seed)``
returns a list of ``rivals.common.Point``. Everything in this file counts as ours in the report, and
everything in the other files as a rival.
"""

from __future__ import annotations

from rivals.common import Method

METHODS: dict[str, Method] = {}
