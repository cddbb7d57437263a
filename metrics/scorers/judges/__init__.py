"""Language models as judges, behind any endpoint that speaks OpenAI's chat completions.

``grade`` and ``geval`` hold the two scorers and their settings; ``client`` asks the endpoint
within a ``budget``; ``capabilities`` finds out what the endpoint can do; ``samples`` and
``readings`` make a number of its replies.
"""
