"""The Requester API 2017-01-17 on the wire: AWS JSON 1.1, Signature Version 4."""
