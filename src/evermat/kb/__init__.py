"""Knowledge bases: sessions, requests, queries and their supporting modules."""
