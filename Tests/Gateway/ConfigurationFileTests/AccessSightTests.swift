import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

/// What `check` says of rules that can never match, and of lists that overlap.
@Suite("Rules that cannot apply, and lists that overlap")
struct AccessSightTests {
    private func found(_ rule: String, rest: String = "") throws -> [String] {
        try warnings(of: "access: { rules: [{ name: r, \(rule) }] }\n\(rest)")
            .map { $0.replacingOccurrences(of: "gateway.yaml:1: access.rules[0]", with: "") }
    }

    @Test(arguments: ["methods: [POST]", "paths: [/admin]", "methods: [POST], paths: [/admin]"])
    func `a denial that tunnels bypass is warned of, for methods as for paths`(rule: String) throws
    {
        let key = rule.contains("paths") ? "paths" : "methods"
        let found = try found("\(rule), action: deny")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(".\(key): does not apply to tunnels") ?? false, "\(found)")
    }

    @Test(arguments: [
        "methods: [CONNECT], action: deny", "methods: [POST, CONNECT], action: deny",
        "methods: [GET], action: allow", "hosts: [a.test], action: deny",
    ])
    func `what tunnels do not bypass is not`(rule: String) throws {
        #expect(try found(rule) == [])
    }

    @Test func `a rule about hosts that are only tunnelled applies to nothing`() throws {
        let rest = "hosts: [{ match: [\"a.test\"], clearText: refuse, tunnel: pass }]"
        let found = try found("hosts: [a.test], methods: [POST], action: deny", rest: rest)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix(".methods: applies to no request") ?? false, "\(found)")
        let errors = errors(
            of: "access: { rules: [{ name: r, hosts: [a.test], paths: [/x], action: deny }] }\n"
                + rest)
        #expect(errors.count == 1)
    }

    @Test(arguments: [
        ("methods: [CONNECT], paths: [/x]", "paths", "CONNECT has no path"),
        ("methods: [CONNECT], ports: [22]", "ports", "access.connectPorts refuses CONNECT"),
        ("methods: [CONNECT], listeners: [back]", "methods", "only a forward, socks5"),
    ])
    func `conditions that contradict each other are warned of`(
        rule: String, key: String, reason: String
    ) throws {
        let listeners = """
            listeners:
              - { name: proxy, address: 127.0.0.1:8080, kind: forward }
              - { name: back, address: 127.0.0.1:8081, kind: reverse, upstream: http://a.test }
            """
        let found = try found("\(rule), action: allow", rest: listeners)
        let warning = ".\(key): never applies: \(reason)"
        #expect(found.contains { $0.hasPrefix(warning) }, "\(found)")
    }

    @Test func `a list of nothing is warned of`() throws {
        try withTemporaryFolder { folder in
            try write("# nothing yet\n", to: "ads.txt", in: folder)
            let found = try warnings(
                of: "access: { lists: { ads: { files: [ads.txt] } },\n"
                    + "rules: [{ name: r, lists: [ads], action: deny }] }", folder: folder + "/")
            #expect(found.contains { $0.contains("rules[0].lists: applies to nothing at present") })
        }
    }

    private func overlaps(_ files: [(String, String)], rules: [String]) throws -> [String] {
        try withTemporaryFolder { folder in
            for (name, text) in files { try write(text, to: "\(name).txt", in: folder) }
            let lists = files.map { "\($0.0): { files: [\($0.0).txt] }" }.joined(separator: ", ")
            let written = rules.enumerated()
                .map { "{ name: r\($0.offset), lists: [\($0.element)], action: deny }" }
            let snapshot = try load(
                "access: { lists: { \(lists) }, rules: [\(written.joined(separator: ", "))] }",
                folder: folder)
            return ListOverlaps(of: snapshot.access).lines
        }
    }

    @Test func `what lists have in common is counted, and the first names are shown`() throws {
        let names = (1...6).map { "n\($0).a.test\n" }.joined()
        #expect(
            try overlaps(
                [
                    ("ads", "a.test\nb.test\n10.0.0.0/8\n"),
                    ("work", names + "c.test\n10.1.0.0/16\n"),
                ], rules: ["ads", "work"])
                == [
                    "Lists: 7 entries of work in ads too: n1.a.test, n2.a.test, n3.a.test "
                        + "and 4 more"
                ])
        #expect(
            try overlaps([("ads", "a.test\n"), ("work", "a.test\n")], rules: ["ads", "work"]) == [
                "Lists: 1 entry of ads in work too: a.test",
                "Lists: 1 entry of work in ads too: a.test",
            ])
    }

    @Test func `lists that no rule names, exceptions and others have nothing in common`() throws {
        let files = [("ads", "a.test\n"), ("work", "a.test\n")]
        #expect(try overlaps(files, rules: ["ads"]) == [])
        let both = ["ads", "work"]
        #expect(try overlaps([("ads", "a.test\n"), ("work", "xa.test\n")], rules: both) == [])
        let excepted = [("ads", "||b.test^\n@@||a.test^\n"), ("work", "a.test\n")]
        #expect(try overlaps(excepted, rules: both) == [])
    }
}
