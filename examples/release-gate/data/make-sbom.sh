#!/bin/sh
# Writes writ.cdx.json, the bill of materials of writ's own module graph.
#
# cyclonedx-gomod wants a git checkout with a version, and go commands may touch
# go.mod; so it works in a copy. Needs the network the first time.
set -eu

version=${1:-v0.1.0}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here" && git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

git -C "$root" archive HEAD | tar -x -C "$work"
cd "$work"
git init -q .
git add -A
git -c user.name=writ -c user.email=writ@invalid commit -q -m "copy for the bill of materials"
git tag "$version"
# The copy's own go.mod stays as it is: the tool is built outside of it.
bin=$work/.git/bin
mkdir -p "$bin"
(cd / && GOBIN="$bin" GOFLAGS= go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0)
"$bin/cyclonedx-gomod" mod -json -licenses -std -short-purls -noserial -notimestamp \
	-disable-html-escape -type application -output "$here/writ.cdx.json" .
