import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

/// Writes files into a folder, creates the folders on the way, and sets the modes that matter.
func write(_ files: [String: String], in folder: String) throws {
    for (name, text) in files {
        let inner = (name as NSString).deletingLastPathComponent
        if !inner.isEmpty { try makeFolder(inner, in: folder) }
        try write(text, to: name, in: folder)
        chmod(folder + "/" + name, 0o644)
    }
}

/// The errors of `main.yaml` in a folder, without the folder's name.
func fileErrors(
    in folder: String, variables: [String: String] = [:]
) -> [String] {
    do {
        _ = try ConfigurationLoader(environment: environment(with: variables))
            .load(file: folder + "/main.yaml")
        return []
    } catch {
        return error.errors.map {
            $0.description.replacingOccurrences(of: folder + "/", with: "")
        }
    }
}

func loadFile(
    in folder: String, variables: [String: String] = [:]
) throws -> LoadedConfiguration {
    try ConfigurationLoader(environment: environment(with: variables)).load(
        file: folder + "/main.yaml")
}

@Suite("Included files")
struct IncludeTests {
    // MARK: Merging

    /// A document on one line: `{a=1 b=[2 3]}`.
    private static func shown(_ node: ConfigNode) -> String {
        switch node.content {
        case .null: "~"
        case .scalar(let text, _): text
        case .sequence(let values): "[\(values.map(shown).joined(separator: " "))]"
        case .mapping(let entries):
            "{\(entries.map { "\($0.key)=\(shown($0.value))" }.joined(separator: " "))}"
        }
    }

    private static func merged(_ texts: [String]) throws -> String {
        let validation = ConfigurationValidation(environment: testEnvironment, folder: "/")
        validation.files = texts.indices.map { "\($0)" }
        var root = try YAMLDocument.parse(Array(texts[0].utf8), name: "0")
        for (index, text) in texts.enumerated().dropFirst() {
            ConfigurationMerge(validation: validation).add(
                try YAMLDocument.parse(Array(text.utf8), name: "\(index)"), to: &root)
        }
        let errors = validation.sortedErrors
        return errors.isEmpty
            ? shown(root) : errors.map(\.description).joined(separator: "\n")
    }

    @Test(
        arguments: [
            (["a: 1", "b: 2"], "{a=1 b=2}"),
            (["a: [1, 2]", "a: [3]", "a: [0]"], "{a=[1 2 3 0]}"),
            (["a: {b: 1}", "a: {c: 2}"], "{a={b=1 c=2}}"),
            (["a: {b: {c: [1]}}", "a: {b: {d: 2, c: [3]}}"], "{a={b={c=[1 3] d=2}}}"),
            (["a: [{b: 1}]", "a: [{b: 1}]"], "{a=[{b=1} {b=1}]}"),
            // No value is nothing.
            (["a:", "a: 1"], "{a=1}"), (["a: 1", "a:"], "{a=1}"), (["a:", "a: ~"], "{a=~}"),
            (["a:", "a: {b: 1}", "a: {c: 2}"], "{a={b=1 c=2}}"), (["a: []", "a: [1]"], "{a=[1]}"),
            (["a: {}", "a: {b: 1}"], "{a={b=1}}"), (["{}", "{}"], "{}"),
            // Twice, in files or within one.
            (
                ["a: 1", "a: 1"],
                "1:1: a: is written twice, first in 0:1; expected it once, in one "
                    + "of the files"
            ),
            (
                ["\na: {b: 1}", "a:\n  b: 2"],
                "1:2: a.b: is written twice, first in 0:2; expected it "
                    + "once, in one of the files"
            ),
            (
                ["a: any", "a: [1]"],
                "1:1: a: is written twice, first in 0:1; expected it once, in "
                    + "one of the files"
            ),
            (
                ["a: {b: 1}", "a: [1]"],
                "1:1: a: is written twice, first in 0:1; expected it once, "
                    + "in one of the files"
            ),
            (
                ["b: 1", "a: 1", "a: 2", "a: 3"],
                "2:1: a: is written twice, first in 1:1; expected "
                    + "it once, in one of the files\n3:1: a: is written twice, first in 1:1; "
                    + "expected it once, in one of the files"
            ),
            // A key that one file has twice is left for the checks.
            (["a: 1\na: 2", "b: 1"], "{a=1 a=2 b=1}"),
            (["a: [1]", "a: [2]\na: [3]"], "{a=[1 2] a=[3]}"),
            // Included files include no others.
            (
                ["{}", "include: [x]"],
                "1:1: include: is in an included file; expected it only in "
                    + "the file that is named on the command line"
            ),
        ] as [([String], String)])
    func `are merged key by key, lists one after the other`(texts: [String], expected: String)
        throws
    {
        #expect(try Self.merged(texts) == expected)
    }

    @Test func `name the other file of a duplicate key`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: [a.yaml]\nhosts: [{ match: [a] }]\n",
                    "a.yaml": "\nhosts: [{ match: [b] }]\nhosts: [{ match: [c] }]\n",
                ], in: folder)
            #expect(
                fileErrors(in: folder) == [
                    "a.yaml:3: hosts: duplicate key (first in main.yaml:2); expected each key once"
                ])
        }
    }

    // MARK: Which files, in which order

    @Test func `are read in the order of the patterns and the bytes of their names`() throws {
        try withTemporaryFolder { folder in
            func entry(_ name: String) -> String { "hosts: [{ match: [\(name)] }]\n" }
            try write(
                [
                    "main.yaml": "include: [last.yaml, 'conf.d/*.yaml', 'more/*/[ab].yaml']\n"
                        + entry("main"),
                    "last.yaml": entry("last"), "conf.d/10.yaml": entry("ten"),
                    "conf.d/9.yaml": entry("nine"), "conf.d/B.yaml": entry("big"),
                    "conf.d/a.yaml": entry("small"), "conf.d/ä.yaml": entry("umlaut"),
                    // What is no part of it.
                    "conf.d/x.yml": entry("yml"), "conf.d/.hidden.yaml": entry("hidden"),
                    "conf.d/a.yaml~": entry("backup"), "conf.d/.#a.yaml": entry("lock"),
                    "more/y/a.yaml": entry("ya"), "more/x/b.yaml": entry("xb"),
                    "more/x/c.yaml": entry("xc"),
                ], in: folder)
            let loaded = try loadFile(in: folder)
            #expect(
                loaded.snapshot.hosts.entries.map(\.label) == [
                    "main", "last", "ten", "nine", "big", "small", "umlaut", "xb", "ya",
                ])
            #expect(
                loaded.inputs.files.map { $0.replacingOccurrences(of: folder + "/", with: "") } == [
                    "main.yaml", "last.yaml", "conf.d/10.yaml", "conf.d/9.yaml", "conf.d/B.yaml",
                    "conf.d/a.yaml", "conf.d/ä.yaml", "more/x/b.yaml", "more/y/a.yaml",
                ])
            #expect(loaded.hasIncludes)
            #expect(loaded.snapshot.effectiveYAML().hasPrefix("include: []\n"))
        }
    }

    @Test func `may be none if there is a pattern, but not if there is a name`() throws {
        try withTemporaryFolder { folder in
            try write(
                ["main.yaml": "include: ['conf.d/*.yaml', '*/x/?.yaml', 'none/[a]']\n"], in: folder)
            #expect(try loadFile(in: folder).snapshot == loadDefaults())
            try write(["main.yaml": "\ninclude:\n  - conf.d/a.yaml\n"], in: folder)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:3: include[0]: \"conf.d/a.yaml\" cannot be read: No such file or "
                        + "directory; expected a readable file"
                ])
        }
    }

    @Test func `may be named by variables and from the home folder`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: ['${DIR}/*.yaml', ~/home.yaml]\n",
                    "elsewhere/a.yaml": "workers: 7\n", "home.yaml": "via: home\n",
                ], in: folder)
            var environment = environment(with: ["DIR": folder + "/elsewhere"])
            environment.homeFolder = folder
            let loaded = try ConfigurationLoader(environment: environment)
                .load(file: folder + "/main.yaml")
            #expect(loaded.snapshot.workers == .fixed(7))
            #expect(loaded.snapshot.via?.text == "home")
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: the environment variable \"DIR\" is not set; "
                        + "expected a variable in the gateway's environment, or $${ for the "
                        + "characters ${"
                ])
        }
    }

    @Test func `are each read once`() throws {
        try withTemporaryFolder { folder in
            try write(["main.yaml": "include: ['*.yaml']\n", "a.yaml": "workers: 2\n"], in: folder)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: \"main.yaml\" is the file \"main.yaml\", which is "
                        + "read already; expected each file once"
                ])
            try write(["main.yaml": "include: [a.yaml, 'a*']\n"], in: folder)
            #expect(symlink("a.yaml", folder + "/link.yaml") == 0)
            #expect(fileErrors(in: folder).count == 1)
            try write(["main.yaml": "include: [a.yaml, link.yaml]\n"], in: folder)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[1]: \"link.yaml\" is the file \"a.yaml\", which is read "
                        + "already; expected each file once"
                ])
        }
    }

    @Test(arguments: [
        (
            "include: a.yaml",
            "main.yaml:1: include: is a single value; expected a list of files and "
                + "patterns"
        ),
        (
            "include: { a: b }",
            "main.yaml:1: include: is a mapping; expected a list of files and "
                + "patterns"
        ),
        (
            "include: ['']",
            "main.yaml:1: include[0]: \"\" is not valid; expected a path, or a "
                + "pattern such as conf.d/*.yaml"
        ),
        (
            "include: [[a]]",
            "main.yaml:1: include[0]: is a list; expected a path, or a pattern such "
                + "as conf.d/*.yaml"
        ),
        (
            "include: [.]",
            "main.yaml:1: include[0]: \".\" is a directory, not a regular file; "
                + "expected a readable file"
        ),
    ])
    func `are named by a list of paths and patterns`(text: String, expected: String) throws {
        try withTemporaryFolder { folder in
            try write(["main.yaml": text], in: folder)
            #expect(fileErrors(in: folder) == [expected])
        }
    }

    @Test func `without keys or that are no mappings are errors, all of them at once`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: ['conf.d/*']\n", "conf.d/1": "# nothing\n",
                    "conf.d/2": "[a]", "conf.d/3": "a: [", "conf.d/4": "a: b\n", "conf.d/5": "{}",
                ], in: folder)
            let found = fileErrors(in: folder)
            #expect(
                found.prefix(2) == [
                    "conf.d/1: has no keys; expected at least one key, or {}",
                    "conf.d/2:1: is a list; expected a mapping, as in the file that includes it",
                ])
            #expect(found.count == 3 && found[2].hasPrefix("conf.d/3:"), "\(found)")
        }
    }

    @Test func `have limits on their number, sizes and values`() throws {
        try withTemporaryFolder { folder in
            try write(["main.yaml": "include: ['conf.d/*']\n"], in: folder)
            try makeFolder("conf.d", in: folder)
            for index in 0...SourceFiles.maximumFiles {
                #expect(
                    FileManager.default.createFile(
                        atPath: "\(folder)/conf.d/\(index)", contents: Data("{}".utf8)))
            }
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: matches more than 1000 files; expected at most 1000 "
                        + "files"
                ])
            try FileManager.default.removeItem(atPath: folder + "/conf.d")
            // Each is within the limit of one file.
            let values = "a: [" + String(repeating: "1,", count: 60_000) + "]\n"
            try write(["conf.d/1": values, "conf.d/2": values], in: folder)
            #expect(fileErrors(in: folder) == ["conf.d/2:1: more than 100000 values"])
            let long = "{} #" + String(repeating: "x", count: YAMLDocument.maximumBytes - 4)
            try write(
                Dictionary(uniqueKeysWithValues: (1...17).map { ("conf.d/\($0)", long) }),
                in: folder)
            #expect(
                fileErrors(in: folder) == [
                    "main.yaml:1: include[0]: too much is included; expected at most 1000 files, "
                        + "of together 16MiB"
                ])
        }
    }

    // MARK: What stands in them

    @Test func `have paths relative to themselves, and errors with their own places`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: ['conf.d/*.yaml']\nadmin: { tokenFile: token }\n",
                    "token": "main", "conf.d/token": "other",
                    "conf.d/a.yaml": "cache: { path: cache }\n",
                    "conf.d/b.yaml":
                        "hosts:\n  - match: [a]\n    request:\n"
                        + "      authorization: { bearer: { tokenFile: token } }\n",
                ], in: folder)
            let snapshot = try loadFile(in: folder).snapshot
            #expect(snapshot.admin.token?.path == folder + "/token")
            #expect(snapshot.cache.path == folder + "/conf.d/cache")
            guard
                case .bearer(.file(let path))? =
                    snapshot.hosts.entries[0].request.authorization?.scheme
            else { return #expect(Bool(false)) }
            #expect(path == folder + "/conf.d/token")
            try write(
                [
                    "main.yaml": "include: ['conf.d/*.yaml']\nadmin: { tokenFile: none }\n"
                        + "limits: { feilds: 1 }\n",
                    "conf.d/a.yaml": "cache: { memory: x, path: c }\nworkers: no\n",
                    "conf.d/b.yaml": "hosts:\n  - match: [a]\n\n  - match: ['b b']\n",
                ], in: folder)
            #expect(
                fileErrors(in: folder).map { $0.prefix(while: { $0 != ";" }) } == [
                    "main.yaml:2: admin.tokenFile: \"none\" cannot be read: No such file or "
                        + "directory",
                    "main.yaml:3: limits.feilds: unknown key (did you mean \"fields\"?)",
                    "conf.d/a.yaml:1: cache.memory: \"x\" is not valid",
                    "conf.d/a.yaml:2: workers: \"no\" is not a number of threads",
                    "conf.d/b.yaml:4: hosts[1].match[0]: \"b b\" is not a host pattern: a host "
                        + "name may contain only letters, digits, '-', '_' and '.'",
                ])
        }
    }

    @Test func `have warnings with their own places`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: [a.yaml]\nhosts: [{ match: [x] }]\n",
                    "a.yaml": "\nhosts:\n  - match: [x]\n",
                ], in: folder)
            let warnings = try loadFile(in: folder).warnings.map(\.description)
            #expect(warnings.count == 1)
            #expect(warnings[0].hasPrefix(folder + "/a.yaml:3: hosts[1].match[0]:"), "\(warnings)")
        }
    }

    @Test func `name the authority's files for the command that creates it`() throws {
        try withTemporaryFolder { folder in
            try write(
                [
                    "main.yaml": "include: [a/b.yaml]\nhosts: nonsense\n",
                    "a/b.yaml": "interception: { certificate: '${C}.pem', key: k }\n",
                ], in: folder)
            let paths = try ConfigurationLoader(environment: environment(with: ["C": "ca"]))
                .authorityPaths(file: folder + "/main.yaml")
            #expect(paths?.certificate == folder + "/a/ca.pem")
            #expect(paths?.key == folder + "/a/k")
        }
    }
}
