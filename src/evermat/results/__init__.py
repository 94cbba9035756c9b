"""What queries and updates give back."""
