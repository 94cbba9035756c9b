"""What concerns the process: interrupts, limits on files and input."""
