// Runs a program for wasm32-unknown-unknown: `cargo test --target wasm32-unknown-unknown -p ptxvm --test in_process`
// (.cargo/config.toml). It has nobody to print to: what it panics on is a trap, and shown with the names of its functions.
import { readFileSync } from "node:fs";

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
const code = instance.exports.main(0, 0);
console.log(`main returned ${code}, with ${instance.exports.memory.buffer.byteLength >> 20} MiB of memory`);
process.exit(code);
