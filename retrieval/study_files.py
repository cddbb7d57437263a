"""The files of studies that retrieval registers: `annotation.study_files` imports this module."""

import retrieval.exports.released_layout  # noqa: F401
