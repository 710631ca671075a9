"""What is evaluated and against what: rankings, relevance and the data beside them."""
