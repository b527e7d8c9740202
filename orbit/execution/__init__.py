"""Trials through harbor: the only package that imports it.

Importing this package imports nothing heavy; its modules do. It turns harbor's usage telemetry and litellm's price
download off before either can be imported, unless the user set the variables.
"""

import os

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
