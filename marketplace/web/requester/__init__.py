"""The requesters' pages: keys, money, channels."""
