# shellcheck shell=bash
# Sourced by deploy/run, deploy/test and deploy/package: builds with the commit embedded, for the
# metric pinfold_build_info and for `pinfold --version`.

# build_with_revision ARGUMENTS...: `swift build` with Revision+Generated.swift in place only while it
# runs, however it ends, so that no later build claims this commit.
build_with_revision() (
    file=Sources/CommandLine/pinfold/Revision+Generated.swift
    trap 'rm -f "$file"' EXIT
    commit="$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)"
    printf 'extension Revision {\n    static let commit = "%s"\n}\n' "$commit" >"$file"
    swift build "$@" >&2
)
