"""Talking to the API server. Nothing here knows what an EPDDeployment is."""
