"""The operator: what is there, compared with what shall be there, and the difference written. It plans nothing."""
