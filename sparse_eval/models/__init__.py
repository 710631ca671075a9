"""Models of any kind: opened, saved, ranked, evaluated, and given new users."""
