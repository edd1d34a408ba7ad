#!/usr/bin/env bash
# Installs the engine client of a real CL (Lodestar) from npm into DIR, for tests/lodestar.rs.
#
# usage: tests/lodestar/prepare.sh DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
cp "$here"/{package.json,hooks.mjs,driver.mjs} .
if [ ! -d bn ]; then
    npm pack @lodestar/beacon-node@1.44.0 --silent
    tar xzf lodestar-beacon-node-1.44.0.tgz
    mv package bn
fi
npm install --no-audit --no-fund --no-package-lock --loglevel=error
