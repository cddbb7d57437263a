"""Serves a model with llama.cpp's own server: python serve_gguf.py MODEL.gguf PORT."""

import signal
import sys

from xllamacpp import CommonParams, Server


def serve(model: str, port: int) -> None:
    params = CommonParams()
    params.model.path = model
    params.model_alias = {"tiny"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 1024
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    # The server runs as long as it is held.
    server = Server(params)
    signal.pause()
    del server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
