"""Language models as judges, behind any endpoint that speaks OpenAI's chat completions.

``grade`` and ``geval`` hold the two scorers, each beside its settings; ``client`` talks to the
endpoint within ``pacing`` and ``budget``; ``capabilities`` finds out what the endpoint really
does; ``sampling``, ``parsing`` and ``weighting`` make a number of what it says.
"""
