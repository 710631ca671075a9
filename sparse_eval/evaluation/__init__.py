"""`evaluate`: inputs of any kind in blocks of users, and the runners that evaluate them."""
