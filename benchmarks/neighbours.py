"""Exact neighbours of many targets in blocks of a file: ``python -m benchmarks.neighbours``.

Beside it, numpy's matrix product over the same blocks with the same running top, timed on some of
the targets and scaled up. Times are the processor's, which other work on the machine does not
lengthen. Memory is what the process itself holds at most (anonymous pages), and what is resident
with the pages of the mapped file, which the system takes back when it needs them.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.commands import in_background, parse_options, say
from retrieval.pools.sources import Similarity, nearest
from retrieval.pools.vectors import BLOCK_ROWS, Vectors
from stats.arguments import Integers

TARGETS_TIMED = 200
MEGABYTE = 1024**2


def main() -> None:
    options = parse_options(
        __doc__,
        targets=(10_000, "whose neighbours are found"),
        documents=(1_000_000, "of the file"),
        dimensions=(256, "of a vector"),
        k=(100, "neighbours of each target"),
        similarity=(("cosine", "inner", "l2"), "of vectors"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        write_normal(path, options.documents, options.dimensions)
        run(np.load(path, mmap_mode="r"), options.targets, options.k, options.similarity)


def write_normal(path: Path, n: int, dimensions: int) -> None:
    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, dimensions))
    centres = rng.normal(size=(1000, dimensions)).astype(np.float32)
    for start in range(0, n, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, n - start)
        array[start : start + rows] = centres[rng.integers(1000, size=rows)]
        array[start : start + rows] += rng.standard_normal((rows, dimensions), dtype=np.float32)
    array.flush()


def run(array: NDArray[np.float32], n_targets: int, k: int, similarity: Similarity) -> None:
    rng = np.random.default_rng(1)
    own = np.sort(rng.choice(len(array), n_targets, replace=False))
    queries = np.asarray(array[own], dtype=np.float64)
    vectors = Vectors([str(number) for number in range(len(array))], array)
    nearest(queries[:2], vectors, k, similarity=similarity)  # the file is in the system's cache
    with peak_memory() as peak:
        start, begin = process_time(), perf_counter()
        found = nearest(queries, vectors, k, similarity=similarity, own=own)
        seconds, elapsed = process_time() - start, perf_counter() - begin
    some = min(TARGETS_TIMED, n_targets)
    start = process_time()
    expected = by_numpy(queries[:some], vectors, k, similarity, own[:some])
    other = (process_time() - start) * n_targets / some
    same = np.mean([set(a) == set(b) for a, b in zip(found.position[:some], expected, strict=True)])
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    say(
        f"{n_targets:,} targets, {len(array):,} x {array.shape[1]}, first {k}, {similarity}, "
        f"threads: {threads}: {seconds:.1f} s ({elapsed:.1f} s elapsed), "
        f"{peak[0] / MEGABYTE:,.0f} MB ({peak[1] / MEGABYTE:,.0f} MB with the file's pages); "
        f"numpy {other:.1f} s, {other / seconds:.1f} times as long; the same {k} for {same:.1%}"
    )


def by_numpy(
    queries: NDArray[np.float64], vectors: Vectors, k: int, similarity: Similarity, own: Integers
) -> Integers:
    ready = queries.astype(np.float32)
    if similarity == "cosine":
        ready /= np.linalg.norm(ready, axis=1)[:, None]
    best = np.full((len(ready), k), -np.inf, dtype=np.float32)
    position = np.full((len(ready), k), -1)
    for start, block in vectors.blocks():
        if similarity == "cosine":
            block = block / np.linalg.norm(block, axis=1)[:, None]
        score = ready @ block.T
        if similarity == "l2":
            score = 2 * score - np.square(block).sum(axis=1)
        rows = np.flatnonzero((own >= start) & (own < start + len(block)))
        score[rows, own[rows] - start] = -np.inf
        top = np.argpartition(-score, k, axis=1)[:, :k]
        together = np.hstack([best, np.take_along_axis(score, top, axis=1)])
        keep = np.argpartition(-together, k, axis=1)[:, :k]
        best = np.take_along_axis(together, keep, axis=1)
        position = np.take_along_axis(np.hstack([position, start + top]), keep, axis=1)
    return position


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The most bytes that the process has of its own, and in all, looked at every 10 ms."""
    peak = [0, 0]

    def watch(is_over: Event) -> None:
        while not is_over.wait(0.01):
            status = Path("/proc/self/status").read_text().splitlines()
            sizes = {line.split(":")[0]: line.split() for line in status if line.startswith("Rss")}
            anonymous = int(sizes["RssAnon"][1]) * 1024
            resident = sum(int(size[1]) for size in sizes.values()) * 1024
            peak[:] = max(peak[0], anonymous), max(peak[1], resident)

    with in_background(watch):
        yield peak


if __name__ == "__main__":
    main()
