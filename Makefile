PREFIX ?= /usr/local
# Where tools/bootstrap puts a recent cargo ahead of an old one.
export PATH := $(CURDIR)/.venv/rust:$(PATH)

.PHONY: demo program tests test test-all install format clean

# Says what is on a picture, from a bare clone.
demo: program
	build/whimbrel generate --image examples/shapes.png -p "Describe this image."

program:
	tools/bootstrap demo
	cmake --preset release $(if $(wildcard build/CMakeCache.txt),,-DWHIMBREL_DEVELOPER=OFF)
	cmake --build build --target whimbrel

tests:
	tools/bootstrap test
	cmake --preset release -DWHIMBREL_DEVELOPER=ON
	cmake --build build

# Every test that takes less than half an hour on two cores.
test: tests
	tools/run_tests

# The slow ones too: long fuzzing, all that runs under sanitizers.
test-all: tests
	tools/run_tests --all

install: program
	cmake --install build --prefix $(PREFIX)

format:
	tools/bootstrap test
	tools/format
	cargo fmt --manifest-path textkit/Cargo.toml

clean:
	rm -rf build build-*
