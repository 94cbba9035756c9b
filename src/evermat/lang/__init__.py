"""The language: programs as text and as objects, and what is said about them."""
