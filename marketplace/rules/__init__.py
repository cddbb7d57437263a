"""What qualifies a worker and what a review policy concludes, computed from plain values."""
