import Authentication
import CLinux
import HTTPCore
import Locking
import Testing

@testable import PasswordChecks

/// Hashes of "secret", made by libxcrypt and by libargon2's own functions for texts.
private let hashes = [
    "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
    "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2",
    "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq"
        + ".H91p5hVO1",
    "$y$j75$k2XAnEHBqQ1Ct2aMXFKNa/$Tg4ZRR7tz/WRlmYbADZh9OJYakPewgSPQqW55EXAJ14",
    "$argon2id$v=19$m=256,t=1,p=2$c2FsdHNhbHQ$vk/XkFcG6URnNFQnhXvLif3wO9Xek4pAzjsFD1qhB5s",
    "$argon2i$v=19$m=256,t=1,p=1$c2FsdHNhbHQ$ns/h+yNBKLcUed1NTWxGYsr3gYq/M0x+1qOyt47rlqE",
]

private func file(_ hash: String) throws -> UserFile {
    try UserFile(path: "/users", content: Array("ann:\(hash)".utf8))
}

private func check(
    _ address: String, _ user: String = "ann", _ password: String = "secret",
    hash: String = hashes[0], isDecoy: Bool = false
) throws -> PasswordCheck {
    let token = Base64.encode(Array("\(user):\(password)".utf8))
    let credentials = UserPassword(token: token.utf8.span)
    return PasswordCheck(
        proof: ProofDigest(of: token.utf8.span),
        client: IPNetwork(client: try #require(IPAddress(address))),
        try #require(credentials),
        hash: try #require(try file(hash).hash(of: "ann")), isDecoy: isDecoy)
}

/// Collects results, which arrive on other threads.
private final class Results: Sendable {
    private let found = Monitor<[String: CheckOutcome]>([:])

    func note(_ name: String) -> PasswordChecker.Completion {
        { outcome in
            self.found.withLock { $0[name] = outcome }
            self.found.broadcast()
        }
    }

    func wait(for count: Int) -> [String: CheckOutcome] {
        found.wait { $0.count >= count ? .done($0) : .signal }
    }

    var now: [String: CheckOutcome] { found.withLock { $0 } }
}

@Suite("Password checks")
struct PasswordCheckerTests {
    @Test(arguments: hashes)
    func `the right password matches and others differ`(_ hash: String) throws {
        let hash = try #require(try file(hash).hash(of: "ann"))
        #expect(hash.outcome(of: Array("secret".utf8)) == .matches)
        for other in ["", "secre", "secret ", "Secret", "secret\u{e9}"] {
            #expect(hash.outcome(of: Array(other.utf8)) == .differs, "\(other)")
        }
        #expect(hash.outcome(of: [UInt8](repeating: 0x61, count: 511)) == .differs)
    }

    @Test func `a check that a decoy passes is a failure`() throws {
        let checker = PasswordChecker(cores: 2)
        defer { checker.close() }
        let results = Results()
        _ = checker.check(try check("192.0.2.1"), completion: results.note("known"))
        _ = checker.check(
            try check("192.0.2.2", "eve", isDecoy: true), completion: results.note("unknown"))
        #expect(results.wait(for: 2) == ["known": .matches, "unknown": .differs])
    }

    /// Half of the cores, and one at a time for a network.
    @Test func `no more threads than half of the cores`() throws {
        let running = Locked((now: 0, most: 0))
        let checker = PasswordChecker(cores: 4) { _ in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            usleep(5000)
            running.withLock { $0.now -= 1 }
            return .differs
        }
        defer { checker.close() }
        let results = Results()
        for network in 1...10 {
            for user in 0..<3 {
                _ = checker.check(
                    try check("192.0.2.\(network)", "u\(user)"),
                    completion: results.note("\(network) \(user)"))
            }
        }
        #expect(results.wait(for: 30).count == 30)
        #expect(running.withLock { $0.most } == 2)
        #expect(checker.pending == 0)
    }

    @Test func `failures delay the user's next check and success ends that`() throws {
        let checker = PasswordChecker(cores: 2)
        defer { checker.close() }
        let results = Results()
        var delayed: [Bool] = []
        for number in 0..<6 {
            let submission = checker.check(
                try check("192.0.2.1", "ann", "wrong\(number)"),
                completion: results.note("\(number)"))
            guard case .accepted(_, let isDelayed) = submission else { break }
            delayed.append(isDelayed)
        }
        #expect(delayed == [false, false, false, false, true, true])
        #expect(results.wait(for: 4).values.allSatisfy { $0 == .differs })
        // Nobody else is held up.
        _ = checker.check(try check("192.0.2.2"), completion: results.note("other"))
        #expect(results.wait(for: 5)["other"] == .matches)
        #expect(results.now.count == 5)
    }

    @Test func `a wait that is given up makes no check`() throws {
        let made = Locked(0)
        let gate = Monitor(false)
        let checker = PasswordChecker(cores: 2) { _ in
            made.withLock { $0 += 1 }
            gate.wait { $0 ? .done(()) : .signal }
            return .matches
        }
        let results = Results()
        _ = checker.check(try check("192.0.2.1", "a"), completion: results.note("a"))
        guard
            case .accepted(let ticket, _) = checker.check(
                try check("192.0.2.1", "b"), completion: results.note("b"))
        else {
            Issue.record("not accepted")
            return
        }
        checker.cancel(ticket)
        gate.withLock { $0 = true }
        gate.broadcast()
        _ = results.wait(for: 1)
        checker.close()
        #expect(results.now == ["a": .matches])
        #expect(made.withLock { $0 } == 1)
    }

    @Test func `who waits at the end is told`() throws {
        let gate = Monitor(false)
        let checker = PasswordChecker(cores: 1) { _ in
            gate.wait { $0 ? .done(()) : .signal }
            return .matches
        }
        let results = Results()
        _ = checker.check(try check("192.0.2.1", "a"), completion: results.note("a"))
        while checker.pending == 0 { usleep(100) }
        _ = checker.check(try check("192.0.2.2", "b"), completion: results.note("b"))
        gate.withLock { $0 = true }
        gate.broadcast()
        checker.close()
        #expect(results.now.count == 2)
        guard case .busy = checker.check(try check("192.0.2.1"), completion: results.note("c"))
        else {
            Issue.record("accepted after the end")
            return
        }
    }
}
