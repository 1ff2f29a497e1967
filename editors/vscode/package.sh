#!/usr/bin/env bash
# Packages the extension as editors/vscode/ptxvm.vsix, which `code --install-extension` takes. Needs node, and npm's registry.
set -euo pipefail
cd "$(dirname "$0")"
[ -d node_modules ] || npm install --no-audit --no-fund --silent --no-package-lock
cp ../../LICENSE-MIT LICENSE
trap 'rm -f LICENSE' EXIT
npx vsce package --no-update-package-json --allow-missing-repository --skip-license --out ptxvm.vsix
