#!/bin/sh
# Lays out the release gate over real data in a new folder:
#
#   ./real.sh DIR [DATA]
#
# DATA holds proton-bridge-1.8.0.cdx.json and osv-go.tar.gz; default $WRIT_DATA,
# else ../shared/data beside the repository. Then: writ run DIR/flow.yaml
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: $0 DIR [DATA]" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
data=${2:-${WRIT_DATA:-$root/../shared/data}}
for file in proton-bridge-1.8.0.cdx.json osv-go.tar.gz; do
	if [ ! -f "$data/$file" ]; then
		echo "real.sh: error: no $file in $data" >&2
		echo "real.sh: hint: name the folder that has it: $0 DIR DATA" >&2
		exit 1
	fi
done
if [ -e "$1" ]; then
	echo "real.sh: error: $1 exists" >&2
	exit 1
fi

mkdir -p "$1/data" "$1/modules"
dir=$(cd "$1" && pwd)
# The same flow under its own name; a dataset's version names its bytes, so the
# versions differ too.
sed -e 's/^flow_id: .*/flow_id: release-gate-real/' \
	-e 's/^    version: v0\.1\.0$/    version: "1.8.0"/' \
	-e 's/^    version: "2026-12-01"$/    version: "2026-08-21"/' \
	-e 's/writ\.cdx\.json/proton-bridge.cdx.json/' "$here/flow.yaml" >"$dir/flow.yaml"
cp "$data/proton-bridge-1.8.0.cdx.json" "$dir/data/proton-bridge.cdx.json"
tar -xzf "$data/osv-go.tar.gz" -C "$dir/data" osv
chmod -R u+w "$dir/data"
(cd "$root" && go run ./modules/build -o "$dir/modules" inventory advisories licences notify rules forbidden-licence)
echo "laid out in $dir; next: writ run $dir/flow.yaml"
