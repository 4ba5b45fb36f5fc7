import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Changed files of rules")
struct RuleFileTests {
    private static let text = """
        hosts:
          - match: [a.test]
            upgrade: https
            tunnel: refuse
            request:
              authorization: { basic: { user: u, passwordFile: secret }, clearText: allow }
            response: { validate: json, schema: schema.json }
          - match: [b.test]
            upgrade: https
            tunnel: refuse
            request: { authorization: { bearer: { tokenFile: secret } } }
          - match: [c.test]
            upgrade: https
            tunnel: refuse
            request: { authorization: { bearer: { tokenVariable: T } } }
        """

    private func loading(
        _ body: (_ folder: String, _ snapshot: ConfigurationSnapshot) throws -> Void
    ) throws {
        var environment = testEnvironment
        environment.variables = .fixed(["T": "t"])
        try withTemporaryFolder { folder in
            try write("one\n", to: "secret", in: folder)
            try write("{}", to: "schema.json", in: folder)
            try body(folder, load(Self.text, folder: folder, environment: environment))
        }
    }

    private func values(_ snapshot: ConfigurationSnapshot) -> [String?] {
        snapshot.hosts.entries.map { $0.request.authorization?.fieldValue.text }
    }

    @Test func `each file is watched once by itself`() throws {
        try loading { folder, snapshot in
            #expect(snapshot.watchedFiles == [["\(folder)/secret"], ["\(folder)/schema.json"]])
        }
    }

    @Test func `a new secret replaces the old one in every entry`() throws {
        try loading { folder, snapshot in
            #expect(values(snapshot) == ["Basic dTpvbmU=", "Bearer one", "Bearer t"])
            try write("two\n", to: "secret", in: folder)
            let next = snapshot.refreshed(reading: ["\(folder)/secret"], at: 0)
            #expect(values(next.snapshot) == ["Basic dTp0d28=", "Bearer two", "Bearer t"])
            #expect(next.problems == [] && next.warnings == [])
            let allows = next.snapshot.hosts.entries.map {
                $0.request.authorization?.allowsClearText
            }
            #expect(allows == [true, false, false])
        }
    }

    @Test func `a new schema replaces the old one`() throws {
        try loading { folder, snapshot in
            try write("{\"type\": \"array\"}", to: "schema.json", in: folder)
            let next = snapshot.refreshed(reading: ["\(folder)/schema.json"], at: 0)
            #expect(
                next.snapshot.hosts.entries[0].response.schema?.text
                    == Array("{\"type\": \"array\"}".utf8))
            #expect(next.problems == [])
        }
    }

    @Test func `files with the same content change nothing`() throws {
        try loading { folder, snapshot in
            try write("one\nnot looked at\n", to: "secret", in: folder)
            let paths = snapshot.watchedFiles.flatMap { $0 }
            let next = snapshot.refreshed(reading: paths, at: 0)
            #expect(next.snapshot == snapshot)
            #expect(next.problems == [])
        }
    }

    @Test func `an unusable file leaves the old content in use`() throws {
        try loading { folder, snapshot in
            try write("two words", to: "secret", in: folder)
            try write("{", to: "schema.json", in: folder)
            let paths = snapshot.watchedFiles.flatMap { $0 }
            let next = snapshot.refreshed(reading: paths, at: 0)
            // The password may have a space; the token may not.
            #expect(values(next.snapshot) == ["Basic dTp0d28gd29yZHM=", "Bearer one", "Bearer t"])
            #expect(
                next.snapshot.hosts.entries[0].response == snapshot.hosts.entries[0].response)
            #expect(
                next.problems.map(\.paths) == [["\(folder)/schema.json"], ["\(folder)/secret"]])
            let lines = next.problems.map(\.description)
            #expect(
                lines[0].hasPrefix(
                    "hosts[0].response.schema: \"\(folder)/schema.json\" is not a JSON Schema: "))
            #expect(
                lines[1]
                    == "hosts[1].request.authorization: \"\(folder)/secret\" has no valid token; "
                    + "expected a token of visible ASCII characters in its first line")
        }
    }

    @Test func `a missing file leaves the old content in use`() throws {
        try loading { folder, snapshot in
            let moved = ["secret", "schema.json"].map { "\(folder)/\($0)" }
            for path in moved { try rename(path) }
            let next = snapshot.refreshed(reading: moved, at: 0)
            #expect(next.snapshot == snapshot)
            #expect(next.problems.count == 3)
            for problem in next.problems {
                #expect(
                    problem.description.hasSuffix(
                        "cannot be read: No such file or directory; expected a readable file"))
            }
        }
    }
}

private func rename(_ path: String) throws {
    try FileManager.default.moveItem(atPath: path, toPath: path + ".gone")
}
