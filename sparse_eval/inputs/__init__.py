"""Read inputs of any form into arrays: lists, relevant items, candidates, data about items."""
