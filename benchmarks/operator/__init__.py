"""What an operator costs on a real API server."""
