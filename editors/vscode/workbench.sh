#!/usr/bin/env bash
# The extension in VS Code itself: code-server, which is VS Code's workbench in a browser with its extension host beside it, and a Chromium
# without a screen (workbench.mjs). It leaves pictures in target/vscode/pictures; with PTXVM_WRITE_DOCS=1 those of the book are written
# again. Needs node 20, npm's registry, a C++ compiler and Chromium, and two minutes the first time, so it is not a part of `.ci/run`.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD place=$PWD/target/vscode
mkdir -p "$place/pictures"
editors/vscode/package.sh
cargo build -q -p ptxvm-command

# The native modules that VS Code cannot start without are built. Those of the terminal, of the search in files and of Kerberos are not.
code=$place/node_modules/code-server
if [ ! -d "$place/ready" ]; then
    (cd "$place" && npm install --ignore-scripts --no-audit --no-fund --silent code-server@4.100.3 puppeteer-core@25 && npm rebuild argon2)
    (cd "$code/lib/vscode" && npm install --ignore-scripts --omit=dev --no-audit --no-fund --silent &&
        npm rebuild @vscode/spdlog native-watchdog @parcel/watcher)
    mkdir "$place/ready"
fi

folder=$(mktemp -d)
server=("node" "$code/out/node/entry.js" --config "$folder/config.yaml" --user-data-dir "$folder/data" --extensions-dir "$folder/extensions")
trap 'kill $! 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
mkdir "$folder/kernels"
"${server[@]}" --install-extension editors/vscode/ptxvm.vsix >"$folder/install.log" 2>&1 || { cat "$folder/install.log" >&2; exit 1; }
"${server[@]}" --auth none --bind-addr 127.0.0.1:8123 --disable-telemetry --disable-update-check --disable-workspace-trust \
    --disable-getting-started-override >"$folder/server.log" 2>&1 &
for _ in $(seq 100); do
    node -e 'fetch("http://127.0.0.1:8123/healthz").catch(() => process.exit(1))' && break
    sleep 0.1
done
cp editors/vscode/workbench.mjs "$place"
SERVER=http://127.0.0.1:8123 FOLDER=$folder/kernels ROOT=$root PICTURES=$place/pictures PTXVM=$root/target/debug/ptxvm \
    timeout 200 node "$place/workbench.mjs"
