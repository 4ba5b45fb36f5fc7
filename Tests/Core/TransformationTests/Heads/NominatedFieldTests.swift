import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Header rules and fields that Connection names (RFC 9110, section 7.6.1)")
struct NominatedFieldTests {
    private let start = ["GET /a HTTP/1.1", "Host: h"]

    /// What is forwarded to the server, without Host.
    private func sent(
        _ lines: [String], by change: (inout HeaderRules) -> Void
    ) throws -> [String] {
        let lines = try rewritten(start + lines) { change(&$0.headers) } ?? start + lines
        return try forwarded(headBytes(lines)).filter { $0 != "Host: h" }
    }

    @Test(
        arguments: [
            ["Connection: X-A"], ["Connection: close, x-a"], ["Connection: X-A, X-A"],
            ["Connection: close", "Connection: ,X-A ,"], ["Connection: X-A", "X-A: client"],
            ["X-A: client", "X-A: two", "Connection: X-A"],
        ])
    func `what the rules write goes to the server whatever Connection names`(
        lines: [String]
    ) throws {
        #expect(try sent(lines) { $0.set = [.init("X-A", "ours")] } == ["X-A: ours"])
        #expect(try sent(lines) { $0.add = [.init("X-A", "ours")] } == ["X-A: ours"])
        #expect(try sent(lines) { $0.defaults = [.init("X-A", "ours")] } == ["X-A: ours"])
        #expect(
            try sent(lines + ["X-B: b"]) { $0.rename = [.init("X-B", "X-A")] } == ["X-A: b"])
    }

    @Test func `options and other nominations keep their meaning`() throws {
        let new = try rewritten(
            start + ["Connection: X-B,X-A ,\tkeep-alive", "X-B: 1", "X-A: 2"]
        ) { $0.headers.set = [.init("X-A", "ours")] }
        #expect(new == start + ["Connection: X-B, keep-alive", "X-B: 1", "X-A: ours"])
        #expect(try forwarded(headBytes(new ?? [])) == ["Host: h", "X-A: ours"])
    }

    @Test func `Connection that names nothing that is written is not touched`() throws {
        #expect(
            try rewritten(start + ["Connection:  close ,X-B"]) {
                $0.headers.set = [.init("X-A", "1")]
            } == start + ["Connection:  close ,X-B", "X-A: 1"])
    }

    @Test func `what Connection names ends at the gateway and is not renamed`() throws {
        let lines = ["Connection: X-Old", "X-Old: 1"]
        #expect(
            try rewritten(start + lines) { $0.headers.rename = [.init("X-Old", "X-New")] } == nil)
        #expect(try sent(lines) { $0.rename = [.init("X-Old", "X-New")] } == [])
        // Nothing is renamed to it: the client's own nomination stays.
        #expect(
            try sent(["Connection: X-New", "X-New: 1"]) {
                $0.rename = [.init("X-Old", "X-New")]
            } == [])
    }

    @Test func `a line of Connection stays when nothing is left of it`() throws {
        let lines = [
            "GET /a HTTP/1.0", "Host: h", "Connection: X-A", "Proxy-Connection: keep-alive",
        ]
        // `rewritten` compares the persistence with what it was.
        #expect(
            try rewritten(lines) { $0.headers.set = [.init("X-A", "1")] }
                == lines.map { $0 == "Connection: X-A" ? "Connection: " : $0 } + ["X-A: 1"])
    }

    @Test func `credentials cannot be stripped by Connection`() throws {
        let lines = try rewritten(start + ["Connection: Authorization, X-B"]) {
            $0.authorization = RequestAuthorization(
                fieldValue: SecretText("Bearer t"), scheme: .bearer(.variable("T")))
        }
        #expect(try forwarded(headBytes(lines ?? [])).contains("Authorization: Bearer t"))
    }
}
