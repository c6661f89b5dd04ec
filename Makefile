# What a contributor runs; CI runs `test` and `lint`, and what `proof` has besides `test`. `exhaustive` is everything.
.PHONY: lint test proof exhaustive format mutants names proof-gpu ladder cublas tensor_cores docs playground browse

test:
	pytest -n auto

proof:
	pytest -n auto --proof

exhaustive:
	pytest -n auto --exhaustive

lint:
	black --check .
	ruff check .
	pyright
	vulture
	lint-imports

format:
	black .
	ruff check --fix .

mutants:
	python -m tests.mutants --each 24 --seed 20261124 --budget 3600 --update docs/proof.md

names:
	python -m tests.hostile.names --count 20000 --compile 500 --run 10

proof-gpu:
	pytest tests/gpu --proof -n auto -m "not timing"
	pytest tests/gpu --proof -m timing

ladder:
	gemmgen ladder --size 1024 --size 2048 --size 4096 --update docs/performance.md

cublas:
	python benchmarks/against_cublas.py --json docs/data/cublas.json
	python benchmarks/against_cublas.py --readme

tensor_cores:
	python benchmarks/tensor_cores.py --json docs/data/tensor_cores.json
	python benchmarks/tensor_cores.py --readme

docs:
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

playground:
	python docs/gemmgen_playground/bundle.py
	$(MAKE) docs

browse:
	python docs/browse.py
