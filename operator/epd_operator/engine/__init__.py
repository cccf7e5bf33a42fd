"""What vLLM is: releases and their capabilities, connectors, flags, rules, and the command line of one instance."""
