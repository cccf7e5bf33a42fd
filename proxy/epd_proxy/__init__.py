"""The EPD proxy: walks each request through encode, prefill and decode. A program of its own."""

__version__ = "0.1.0"
