"""One object becomes the plan of everything that will exist, as a frozen value."""
