"""What every room uses: checks of arrays, exact sums, hashing, threads, files, progress."""
