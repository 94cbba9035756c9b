"""Knowledge bases: sessions, requests, queries and what they need."""
