"""Ends with 0 where an address of this machine's site answers 200; for health checks of containers.

python deploy/probe.py http://127.0.0.1:8000/readyz
"""

import os
import sys
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen


def main(address: str) -> int:
    # The site answers for the hosts it has, of which 127.0.0.1 need not be one.
    host = urlsplit(os.environ.get("SITE_URL", "")).hostname or "127.0.0.1"
    try:
        with urlopen(Request(address, headers={"Host": host}), timeout=4) as answer:
            return 0 if answer.status == 200 else 1
    except (URLError, OSError):
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
