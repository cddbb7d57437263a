"""What the pages of test collections show, and what their forms ask for."""
