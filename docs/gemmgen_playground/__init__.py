"""gemmgen in the browser: what the page's worker calls, its puzzles, and how they are bundled."""
