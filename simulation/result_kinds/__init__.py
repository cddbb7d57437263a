"""The kinds of results of simulations, one module each."""
