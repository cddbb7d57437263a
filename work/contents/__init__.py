"""What is large of a row: files that were sent, pictures, reports, logs and checkpoints.

It is in the row, or, where OBJECTS_URL names a storage, an object there by its digest, to which
the row refers. Which of both it is, nobody who reads a row sees.
"""
