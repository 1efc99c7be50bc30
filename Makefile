# SPDX-License-Identifier: MIT
# The front door only: every target hands over to CMake (CMakePresets.json) or to a script.
# JOBS=N limits the parallel jobs; WERROR=ON turns warnings into errors; PREFIX is for install.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
WERROR ?= OFF
PREFIX ?= /usr/local
export JOBS WERROR

.PHONY: help build demo test quick soak bench fuzz lint format install clean

help:
	@echo "make build    release build: build/unfrag, test programs in build/tests/"
	@echo "make demo     set up, build, and compare settings on a bundled recording"
	@echo "make test     set up, build, and run the quick and full tests (also under sanitizers)"
	@echo "make quick    the tests that take under a minute"
	@echo "make soak     the long tests, by hand"
	@echo "make bench    measure, and write bench/README.md"
	@echo "make fuzz     run every libFuzzer target (SECONDS_EACH=60)"
	@echo "make lint     layers, docs, layout (clang-format) and clang-tidy"
	@echo "make format   lay out the sources with clang-format"
	@echo "make install  install under PREFIX=$(PREFIX)"
	@echo "make clean    remove all build trees"

build:
	@scripts/setup build
	@scripts/build release

demo:
	@scripts/setup demo
	@scripts/build release
	@scripts/demo

test:
	@scripts/setup test
	@scripts/run_tests full

quick:
	@scripts/setup test
	@scripts/run_tests quick

soak:
	@scripts/setup test
	@scripts/run_tests soak

bench:
	@scripts/setup test
	@scripts/build release
	@bench/run
	@bench/alloc

fuzz:
	@scripts/setup lint
	@scripts/fuzz

lint:
	@scripts/setup lint
	@scripts/build release
	@scripts/lint

format:
	@scripts/setup lint
	@scripts/format

install: build
	@cmake --install build --prefix "$(PREFIX)"

clean:
	rm -rf build build-*
