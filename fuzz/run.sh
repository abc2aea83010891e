#!/bin/sh
# Builds the fuzz targets and runs each of them for a bounded time: fuzz/run.sh [seconds-per-target]
# Exit status: 0 without a finding, 1 with one, 2 where the nightly toolchain is missing.
set -eu

seconds=${1:-60}
cd "$(dirname "$0")"
target=x86_64-unknown-linux-gnu
built=${CARGO_TARGET_DIR:-target}/$target/release
work=${CARGO_TARGET_DIR:-target}/fuzz

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: needs a nightly toolchain for the sanitizers: rustup toolchain install nightly" >&2
    exit 2
fi

# libFuzzer links from a crate, so cargo-fuzz is not needed; these are the flags that it would set.
flags="--cfg fuzzing -Cpasses=sancov-module -Zsanitizer=address"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$option"
done
RUSTFLAGS=$flags cargo +nightly build --release --bins --locked --target "$target"

findings=0
for name in head chunks connection against_hyper; do
    corpus=$work/corpus/$name
    artifacts=$work/artifacts/$name
    mkdir -p "$corpus" "$artifacts"
    log=$work/$name.log
    if "$built/$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -max_len=4096 \
        -print_final_stats=1 -dict=http.dict -artifact_prefix="$artifacts/" \
        "$corpus" "corpus-seeds/$name" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz: $name: no finding in $runs runs"
    else
        findings=$((findings + 1))
        echo "fuzz: $name: FINDING, see $log and $artifacts" >&2
        grep -m 5 -A 3 -E "panicked at|ERROR: " "$log" >&2 || tail -n 20 "$log" >&2
    fi
done
[ "$findings" -eq 0 ]
