"""What clients see while parts of a deployment die or are changed; `make faults` writes it down."""
