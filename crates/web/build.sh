#!/usr/bin/env bash
# Builds the page into target/page: static files for any file server. Needs the target wasm32-unknown-unknown, node and npm.
# --debug: for tests, as they are built, whatever the size.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
out=$PWD/target/page profile=wasm folder=wasm
[ "${1:-}" != --debug ] || profile=dev folder=debug

cargo build --profile "$profile" --target wasm32-unknown-unknown -p ptxvm-web
rm -rf "$out"
mkdir -p "$out"
cp "$target/wasm32-unknown-unknown/$folder/web.wasm" "$out/ptxvm.wasm"

cd crates/web/page
[ -e node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --ignore-scripts
node build.mjs "$out" "$profile"
