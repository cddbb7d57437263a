"""The XML that travels: questions on the way in, answers on the way out."""
