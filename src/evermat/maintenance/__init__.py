"""Algorithms that keep a materialisation true while facts and rules change."""
