import AccessPolicy
import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Lists of domains")
struct AccessListTests {
    private static let text = """
        access:
          lists:
            ads: { files: [ads.txt, more.txt] }
            allowed: { files: [allowed.txt], format: domains }
        """

    private func loading(
        _ body: (_ folder: String, _ snapshot: ConfigurationSnapshot) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            try write("0.0.0.0 ads.test\n0.0.0.0 b.ads.test\n", to: "ads.txt", in: folder)
            try write("||more.test^\n@@||good.more.test^\n", to: "more.txt", in: folder)
            try write("# ours\nallowed.test\n10.0.0.0/8\n", to: "allowed.txt", in: folder)
            try body(folder, load(Self.text, folder: folder))
        }
    }

    private func covered(_ list: AccessList, of hosts: [String]) -> [String] {
        hosts.filter { list.domains.contains(host: $0.utf8.span) }
    }

    // MARK: Loading

    @Test func `are read from their files`() throws {
        try loading { folder, snapshot in
            let lists = snapshot.access.lists
            #expect(lists.map(\.name) == ["ads", "allowed"])
            #expect(lists[0].files == ["\(folder)/ads.txt", "\(folder)/more.txt"])
            #expect(lists.map(\.format) == [.auto, .domains])
            #expect(lists[0].reports.map(\.format) == [.hosts, .filter])
            let hosts = [
                "ads.test", "a.ads.test", "b.ads.test", "a.more.test", "good.more.test",
                "x.allowed.test", "10.1.1.1",
            ]
            #expect(covered(lists[0], of: hosts) == ["ads.test", "b.ads.test", "a.more.test"])
            #expect(covered(lists[1], of: hosts) == ["x.allowed.test", "10.1.1.1"])
        }
    }

    @Test func `are printed with what was found, and are the same after that`() throws {
        try loading { folder, snapshot in
            let yaml = snapshot.effectiveYAML()
            #expect(
                yaml.contains(
                    """
                      lists:
                        "ads": { files: ["\(folder)/ads.txt", "\(folder)/more.txt"], format: auto \
                    }  # 4 names, 0 networks, hosts, filter
                        "allowed": { files: ["\(folder)/allowed.txt"], format: domains }  \
                    # 1 name, 1 network, domains

                    """))
            let again = try load(yaml)
            #expect(again == snapshot)
        }
        #expect(try load("{}").effectiveYAML().contains("  lists: {}\n"))
    }

    @Test func `are warned of if lines mean nothing`() throws {
        try withTemporaryFolder { folder in
            try write("||a.test^\na.test##.ad\n", to: "one.txt", in: folder)
            let bad = (1...7).map { "not a name \($0)\n" }.joined()
            try write("a.test\n\(bad)", to: "many.txt", in: folder)
            try write("# nothing yet\n", to: "none.txt", in: folder)
            try write("a.test\n", to: "good.txt", in: folder)
            let lines = (2...6).map { "line \($0) is not a name, an address or a network" }
            #expect(
                try warnings(
                    of: """
                        access:
                          lists:
                            a:
                              files: [one.txt, many.txt,
                                none.txt, good.txt]
                        """, folder: folder + "/"
                ).map { $0.replacingOccurrences(of: folder + "/", with: "") } == [
                    "gateway.yaml:4: access.lists.a.files[0]: \"one.txt\", read as filter, has "
                        + "a line that means nothing here: line 2 is not a rule for a whole "
                        + "domain, ||name^ or @@||name^",
                    "gateway.yaml:4: access.lists.a.files[1]: \"many.txt\", read as domains, has "
                        + "7 lines that mean nothing here: \(lines.joined(separator: "; ")); "
                        + "and 2 more",
                    "gateway.yaml:5: access.lists.a.files[2]: \"none.txt\" has only comments, and "
                        + "so lists nothing",
                ])
        }
    }

    @Test(arguments: [
        Wrong(
            "access: { lists: [a] }",
            "1: access.lists: is a list; expected a mapping of names to lists"),
        Wrong(
            "access: { lists: { a: } }",
            "1: access.lists.a: is empty; expected a mapping with files and format"),
        Wrong(
            "access: { lists: { a: {} } }",
            "1: access.lists.a.files: is missing; expected a list of files"),
        Wrong(
            "access: { lists: { a: { files: } } }",
            "1: access.lists.a.files: has no value; expected a list of files"),
        Wrong(
            "access: { lists: { a: { files: [] } } }",
            "1: access.lists.a.files: names no file; expected a list of files"),
        Wrong(
            "access: { lists: { a: { files: x } } }",
            "1: access.lists.a.files: is a single value; expected a list of files"),
        Wrong(
            "access: { lists: { a: { files: [good.txt, good.txt] } } }",
            "1: access.lists.a.files[1]: \"FOLDER/good.txt\" is listed twice; expected each once"),
        Wrong(
            "access: { lists: { a: { files: [good.txt], format: host } } }",
            "1: access.lists.a.format: \"host\" is not valid (did you mean hosts?); "
                + "expected one of auto, domains, hosts, dnsmasq, filter"),
        Wrong(
            "access: { lists: { a: { file: [good.txt] } } }",
            "1: access.lists.a.file: unknown key (did you mean \"files\"?); "
                + "expected one of files, format",
            "1: access.lists.a.files: is missing; expected a list of files"),
        Wrong(
            "access: { lists: { \"a b\": { files: [good.txt] } } }",
            "1: access.lists.\"a b\": is not a valid name of a list; "
                + "expected 1 to 64 letters, digits, `.`, `_` and `-`"),
        Wrong(
            "access: { lists: { a: { files: [good.txt] }, a: { files: [good.txt] } } }",
            "1: access.lists.a: duplicate key (first on line 1); expected each key once"),
        Wrong(
            "access: { lists: { a: { files: [good.txt, none.txt] } } }",
            "1: access.lists.a.files[1]: \"FOLDER/none.txt\" cannot be read: "
                + "No such file or directory; expected a readable file"),
        Wrong(
            "access: { lists: { a: { files: [\".\"] } } }",
            "1: access.lists.a.files[0]: \"FOLDER\" is a directory, not a regular file; "
                + "expected a readable file"),
        Wrong(
            "access: { lists: { a: { files: [empty.txt] } } }",
            "1: access.lists.a.files[0]: \"FOLDER/empty.txt\" is empty; "
                + "expected at least one entry or comment"),
        Wrong(
            "access: { lists: { a: { files: [page.html] } } }",
            "1: access.lists.a.files[0]: \"FOLDER/page.html\" has no entry, and 2 lines that mean "
                + "nothing here: line 1 is not a name, an address or a network; line 2 is not a "
                + "name, an address or a network; expected names, networks, or only comments "
                + "(format auto)"
        ),
        Wrong(
            "access: { lists: { a: { files: [good.txt], format: dnsmasq } } }",
            "1: access.lists.a.files[0]: \"FOLDER/good.txt\" has no entry, and a line that means "
                + "nothing here: line 1 is not address=/name/…, server=/name/… or local=/name/; "
                + "expected names, networks, or only comments (format dnsmasq)"),
    ])
    func `that are wrong are reported`(wrong: Wrong) throws {
        try withTemporaryFolder { folder in
            try write("a.test\n", to: "good.txt", in: folder)
            try write("", to: "empty.txt", in: folder)
            try write("<!DOCTYPE html>\n<p>Gone</p>\n", to: "page.html", in: folder)
            #expect(
                errors(of: wrong.text, folder: folder)
                    == wrong.lines.map { $0.replacingOccurrences(of: "FOLDER", with: folder) })
        }
    }

    @Test func `have files of limited size`() throws {
        try withTemporaryFolder { folder in
            try write("a.test\n", to: "a.txt", in: folder)
            let list = AccessList(name: "a", files: ["\(folder)/a.txt"])
            #expect(try list.read(maximumBytes: 7).domains.nameCount == 1)
            #expect(
                throws: AccessListError(
                    file: 0, text: "\"\(folder)/a.txt\" is longer than 6 bytes",
                    expected: "a smaller file")
            ) { try list.read(maximumBytes: 6) }
        }
    }

    // MARK: Changes

    private func date(_ name: String, in folder: String, at seconds: Double) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: seconds)],
            ofItemAtPath: "\(folder)/\(name)")
    }

    @Test func `are watched with all of their files`() throws {
        try loading { folder, snapshot in
            #expect(
                snapshot.watchedFiles == [
                    ["\(folder)/ads.txt", "\(folder)/more.txt"], ["\(folder)/allowed.txt"],
                ])
        }
    }

    @Test func `are read again when one of their files changes`() throws {
        try loading { folder, snapshot in
            try write("new.test\nbad line\n", to: "ads.txt", in: folder)
            let next = snapshot.refreshed(reading: ["\(folder)/ads.txt"], at: 0)
            #expect(next.problems == [])
            #expect(
                next.warnings == [
                    "access.lists.ads.files[0]: \"\(folder)/ads.txt\", read as domains, has a line "
                        + "that means nothing here: line 2 is not a name, an address or a network"
                ])
            #expect(next.snapshot != snapshot)
            let hosts = ["ads.test", "x.new.test", "more.test", "allowed.test"]
            #expect(
                covered(next.snapshot.access.lists[0], of: hosts) == ["x.new.test", "more.test"])
            // The other one is not even read.
            #expect(
                next.snapshot.access.lists[1].domains === snapshot.access.lists[1].domains)
        }
    }

    @Test func `stay as they are where a file cannot be used`() throws {
        try loading { folder, snapshot in
            let paths = snapshot.access.lists[0].files
            for (text, problem) in [
                ("", "is empty; expected at least one entry or comment"),
                (
                    "<html>",
                    "has no entry, and a line that means nothing here: line 1 is not a "
                        + "name, an address or a network; expected names, networks, or only "
                        + "comments (format auto)"
                ),
                (nil, "cannot be read: No such file or directory; expected a readable file"),
            ] as [(String?, String)] {
                try write("new.test\n", to: "ads.txt", in: folder)
                if let text {
                    try write(text, to: "more.txt", in: folder)
                } else {
                    try FileManager.default.removeItem(atPath: paths[1])
                }
                let next = snapshot.refreshed(reading: paths, at: 0)
                #expect(next.snapshot == snapshot)
                #expect(next.problems.map(\.paths) == [paths])
                #expect(
                    next.problems.map(\.description) == [
                        "access.lists.ads.files[1]: \"\(paths[1])\" \(problem)"
                    ])
            }
        }
    }

    @Test func `that cover the same make the same configuration`() throws {
        try loading { folder, snapshot in
            try write("# new\n10.0.0.0/8\nallowed.test.\n", to: "allowed.txt", in: folder)
            let next = snapshot.refreshed(reading: ["\(folder)/allowed.txt"], at: 0)
            #expect(next.snapshot == snapshot && next.problems == [])
            #expect(
                next.snapshot.access.lists[1].domains !== snapshot.access.lists[1].domains)
        }
    }

    @Test func `are not read again while their files are as they were`() throws {
        try loading { folder, _ in
            for name in ["ads.txt", "more.txt", "allowed.txt"] {
                try date(name, in: folder, at: 1_700_000_000)
            }
            let snapshot = try load(Self.text, folder: folder)
            let lists = snapshot.access.lists
            #expect(lists.map(\.isCurrent) == [true, true])
            let next = snapshot.refreshed(reading: lists.flatMap(\.files), at: 0)
            #expect(zip(next.snapshot.access.lists, lists).allSatisfy { $0.domains === $1.domains })
            // Nor by a reload, even under another name.
            var environment = testEnvironment
            environment.lists = lists
            let text = Self.text.replacingOccurrences(of: "ads:", with: "other:")
            let reloaded = try load(text, folder: folder, environment: environment).access.lists
            #expect(reloaded.map(\.name) == ["other", "allowed"])
            #expect(zip(reloaded, lists).allSatisfy { $0.domains === $1.domains })
            // But with another format, or other content.
            let formatted = Self.text.replacingOccurrences(of: "domains", with: "auto")
            try write("new.test\n", to: "ads.txt", in: folder)
            #expect(!lists[0].isCurrent)
            let other = try load(formatted, folder: folder, environment: environment).access.lists
            #expect(zip(other, lists).allSatisfy { $0.domains !== $1.domains })
        }
    }

    @Test func `are read again if they are too new to be told apart by their time`() throws {
        try withTemporaryFolder { folder in
            try write("a.test\n", to: "a.txt", in: folder)
            try date("a.txt", in: folder, at: 4_000_000_000)
            let list = try AccessList(name: "a", files: ["\(folder)/a.txt"]).read()
            #expect(list.version == nil && !list.isCurrent)
        }
    }
}
