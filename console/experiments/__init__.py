"""What the pages of simulated experiments show, and what their forms ask for."""
