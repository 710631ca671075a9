"""From inputs of any kind to an `Evaluation`: blocks of users, and who evaluates them."""
