import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("X-Forwarded-User")
struct ForwardedUserTests {
    /// The field lines of the head that is sent; `nil` if it is the one that was received.
    private func lines(_ received: String..., user: String?) throws -> [String]? {
        var rules = RequestRules()
        rules.forwardsUser = true
        let heads = RequestHeadRules(rules)
        #expect(!heads.isEmpty)
        let made = try withRequest(headBytes(["GET /a HTTP/1.1", "Host: h"] + received)) {
            head, bytes in
            try heads.head(
                rewriting: head, in: bytes, isSecure: true, user: user.map { Array($0.utf8) })
        }
        return try made.map { Array(try headLines($0).dropFirst(2)) }
    }

    @Test func `says who is asking`() throws {
        #expect(try lines(user: "ann") == ["X-Forwarded-User: ann"])
        #expect(try lines("A: b", user: "jwt:ann") == ["A: b", "X-Forwarded-User: jwt:ann"])
        #expect(try lines("A: b", user: nil) == nil)
    }

    @Test(arguments: [
        "X-Forwarded-User: root", "x-forwarded-user:root", "X_Forwarded_User: root",
        "X-FORWARDED_USER: root", "X-Forwarded-User:",
    ])
    func `is never what a client says`(_ line: String) throws {
        #expect(try lines(line, user: nil) == [])
        #expect(try lines("A: b", line, line, user: "ann") == ["A: b", "X-Forwarded-User: ann"])
        let other = String(line.map { $0 == "-" || $0 == "_" ? "+" : $0 })
        #expect(try lines(other, user: nil) == nil)
    }

    @Test func `cannot be stripped by a client`() throws {
        let made = try lines(
            "Connection: close, X-Forwarded-User", "X-Forwarded-User: root", user: "ann")
        #expect(made == ["Connection: close", "X-Forwarded-User: ann"])
    }
}
