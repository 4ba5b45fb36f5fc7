# shellcheck shell=bash
# Sourced by deploy/run and deploy/test: builds with the commit embedded, for the metric
# pinfold_build_info.

# build_with_revision ARGUMENTS...: runs `swift build` with Revision+Generated.swift, which exists only
# during the build, so that no later build claims this commit.
build_with_revision() {
    local file=Sources/CommandLine/pinfold/Revision+Generated.swift commit
    commit="$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)"
    printf 'extension Revision {\n    static let commit = "%s"\n}\n' "$commit" >"$file"
    local code=0
    swift build "$@" >&2 || code=$?
    rm -f "$file"
    return "$code"
}
