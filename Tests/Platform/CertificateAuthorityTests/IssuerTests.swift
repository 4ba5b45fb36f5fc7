import CLinux
import Clocks
import HTTPCore
import Locking
import Testing

@testable import PinfoldTLS

/// The results of requests, in the order in which they completed.
private final class Answers: Sendable {
    typealias Answer = Result<TLSServerIdentity, IssuanceError>
    private let monitor = Monitor<[Answer]>([])

    func add(_ answer: Answer) {
        monitor.withLock { $0.append(answer) }
        monitor.broadcast()
    }

    /// Waits until there are this many.
    func wait(_ count: Int) -> [Answer] {
        monitor.wait { $0.count >= count ? .done($0) : .signal }
    }
}

/// Keeps the issuer's thread in the completion of a request, until released.
private final class Pause: Sendable {
    private let monitor = Monitor((isReached: false, isOver: false))

    init(_ issuer: CertificateIssuer, _ authority: CertificateAuthority) throws {
        issuer.issue(try Fixture.request(authority, "pause.test")) { [monitor] _ in
            monitor.withLock { $0.isReached = true }
            monitor.broadcast()
            monitor.wait { $0.isOver ? .done(()) : .signal }
        }
        monitor.wait { $0.isReached ? .done(()) : .signal }
    }

    func end() {
        monitor.withLock { $0.isOver = true }
        monitor.broadcast()
    }
}

@Suite("The issuer", .timeLimit(.minutes(30))) struct IssuerTests {
    private let authority: CertificateAuthority

    init() throws { authority = try Fixture.authority() }

    private func issuer(
        kept: Int = 100, waiting: Int = 1024, clock: (@Sendable () -> Int64)? = nil
    ) throws -> CertificateIssuer {
        var options = IssuerOptions()
        options.maximumCertificates = kept
        options.maximumWaiting = waiting
        if let clock { options.clock = clock }
        return try CertificateIssuer(options: options)
    }

    /// The identity for a host, waiting for it.
    private func issue(
        _ issuer: CertificateIssuer, _ request: CertificateRequest
    ) throws -> TLSServerIdentity {
        let answers = Answers()
        issuer.issue(request, completion: answers.add)
        return try answers.wait(1)[0].get()
    }

    @Test func `returns a cached certificate at once, on the caller's thread`() throws {
        let issuer = try issuer()
        let request = try Fixture.request(authority, "a.test")
        #expect(issuer.cached(request) == nil)
        let first = try issue(issuer, request)
        #expect(issuer.cached(request) === first)
        let pause = try Pause(issuer, authority)
        let answers = Answers()
        // The thread is blocked, so that a result can only come from this one.
        issuer.issue(try Fixture.request(authority, "A.TEST."), completion: answers.add)
        #expect(try answers.wait(1)[0].get() === first)
        pause.end()
        let statistics = issuer.statistics()
        #expect(statistics.issued == 2)
        #expect(statistics.hits == 2)
        #expect(statistics.kept == 2)
    }

    @Test func `signs once for a hundred that ask at once`() throws {
        let issuer = try issuer()
        let pause = try Pause(issuer, authority)
        let answers = Answers()
        for _ in 0..<100 {
            issuer.issue(try Fixture.request(authority, "a.test"), completion: answers.add)
        }
        #expect(issuer.statistics().waiting == 1)
        pause.end()
        let identities = try answers.wait(100).map { try $0.get() }
        #expect(identities.allSatisfy { $0 === identities[0] })
        let statistics = issuer.statistics()
        #expect(statistics.issued == 2)
        #expect(statistics.coalesced == 99)
        #expect(statistics.waiting == 0)
        #expect(statistics.failures == 0)
    }

    @Test func `keeps apart what differs in name, key, authority or server`() throws {
        let issuer = try issuer()
        let other = try Fixture.authority()
        let (one, two) = (try Fixture.server(), try Fixture.server())
        let requests = [
            try Fixture.request(authority, "a.test"),
            try Fixture.request(authority, "b.test"),
            try Fixture.request(authority, "a.test", kind: .rsa2048),
            try Fixture.request(other, "a.test"),
            try Fixture.request(authority, "a.test", server: one),
            try Fixture.request(authority, "a.test", server: two),
        ]
        let identities = try requests.map { try issue(issuer, $0) }
        #expect(Set(identities.map { ObjectIdentifier($0) }).count == requests.count)
        for (request, identity) in zip(requests, identities) {
            #expect(issuer.cached(request) === identity)
        }
        #expect(issuer.statistics().issued == requests.count)
    }

    @Test func `takes an authority that was read again for the same`() throws {
        let issuer = try issuer()
        let files = try Fixture.files()
        let request = try Fixture.request(Fixture.authority(files), "a.test")
        let identity = try issue(issuer, request)
        let again = try Fixture.request(Fixture.authority(files), "a.test")
        #expect(issuer.cached(again) === identity)
    }

    @Test func `lets no more than the limit wait`() throws {
        let issuer = try issuer(waiting: 3)
        let pause = try Pause(issuer, authority)
        let answers = Answers()
        for index in 0..<5 {
            issuer.issue(try Fixture.request(authority, "n\(index).test"), completion: answers.add)
        }
        let refused = answers.wait(2)
        #expect(refused.count == 2)
        for answer in refused {
            #expect(throws: IssuanceError.overloaded) { try answer.get() }
        }
        // A request that shares a signature takes no permit.
        issuer.issue(try Fixture.request(authority, "n0.test"), completion: answers.add)
        pause.end()
        #expect(answers.wait(6).filter { (try? $0.get()) != nil }.count == 4)
        #expect(issuer.statistics().failures == 2)
    }

    @Test func `lets one client's names wait and be kept beside another's`() throws {
        let issuer = try issuer(kept: 4, waiting: 8)
        let (flood, other) = (IPNetwork(.v4(1)), IPNetwork(.v4(2)))
        func request(_ name: String, _ client: IPNetwork) throws -> CertificateRequest {
            try Fixture.request(authority, name, client: client)
        }
        let pause = try Pause(issuer, authority)
        let (answers, others) = (Answers(), Answers())
        for index in 0..<10 {
            issuer.issue(try request("n\(index).test", flood), completion: answers.add)
        }
        #expect(answers.wait(6).count == 6, "half of the places are taken")
        for name in ["a.test", "b.test"] {
            issuer.issue(try request(name, other), completion: others.add)
        }
        pause.end()
        #expect(others.wait(2).allSatisfy { (try? $0.get()) != nil })
        #expect(answers.wait(10).count { (try? $0.get()) != nil } == 4)
        for index in 20..<30 { _ = try issue(issuer, try request("n\(index).test", flood)) }
        #expect(issuer.statistics().kept == 4)
        #expect(issuer.cached(try request("b.test", other)) != nil)
    }

    @Test func `issues another when half of a certificate's lifetime is over`() throws {
        let clock = Locked(Fixture.now)
        let issuer = try issuer { clock.withLock { $0 } }
        let request = try Fixture.request(authority, "a.test")
        let first = try issue(issuer, request)
        let half = CertificateAuthority.lifetimeSeconds / 2
        clock.withLock { $0 += half - 1 }
        #expect(issuer.cached(request) === first)
        clock.withLock { $0 += 1 }
        #expect(issuer.cached(request) == nil)
        #expect(try issue(issuer, request) !== first)
        #expect(issuer.statistics().kept == 1)
    }

    @Test func `gives all waiting callers the error, and caches no error`()
        throws
    {
        let issuer = try issuer()
        let limited = try Fixture.authority(limits: ["a.test"])
        let pause = try Pause(issuer, authority)
        let answers = Answers()
        for _ in 0..<3 {
            issuer.issue(try Fixture.request(limited, "b.test"), completion: answers.add)
        }
        pause.end()
        for answer in answers.wait(3) {
            #expect(throws: IssuanceError.outsideConstraints) { try answer.get() }
        }
        #expect(issuer.statistics().failures == 3)
        #expect(issuer.statistics().kept == 1)
        _ = try issue(issuer, Fixture.request(limited, "a.test"))
    }

    @Test func `answers all callers when it is closed, and releases what it held`() throws {
        let issuer = try issuer()
        let kept = try issue(issuer, Fixture.request(authority, "kept.test"))
        let pause = try Pause(issuer, authority)
        let answers = Answers()
        for index in 0..<3 {
            issuer.issue(try Fixture.request(authority, "n\(index).test"), completion: answers.add)
        }
        for answer in answersOfClosing(issuer, answers, pause) {
            #expect(throws: IssuanceError.closed) { try answer.get() }
        }
        issuer.issue(try Fixture.request(authority, "late.test"), completion: answers.add)
        #expect(throws: IssuanceError.closed) { try answers.wait(4)[3].get() }
        #expect(try issuer.cached(Fixture.request(authority, "kept.test")) === kept)
        issuer.close()
    }

    /// Closing waits for the thread, which waits for the end of the pause: the part that responds
    /// is therefore called separately first.
    private func answersOfClosing(
        _ issuer: CertificateIssuer, _ answers: Answers, _ pause: Pause
    ) -> [Answers.Answer] {
        issuer.core.close()
        let closed = answers.wait(3)
        pause.end()
        issuer.close()
        return closed
    }

    /// In a separate process, in which nothing else uses memory.
    @Test func `keeps its limit and its memory through ten thousand names`() async {
        await #expect(processExitsWith: .success) { try IssuerTests().issueTenThousand() }
    }

    private func issueTenThousand() throws {
        let issuer = try issuer(kept: 200)
        func pass(_ names: Range<Int>) throws {
            for index in names {
                _ = try issue(issuer, Fixture.request(authority, "n\(index).test"))
            }
        }
        try pass(0..<1000)
        let before = mallinfo2().uordblks
        try pass(1000..<10_000)
        let after = mallinfo2().uordblks
        #expect(issuer.statistics().kept == 200)
        #expect(issuer.statistics().issued == 10_000)
        // 0 if a sanitizer has its own allocator.
        let isMeasured = before > 0
        #expect(!isMeasured || after < before + (1 << 20))
        #expect(try issuer.cached(Fixture.request(authority, "n9999.test")) != nil)
        #expect(try issuer.cached(Fixture.request(authority, "n9799.test")) == nil)
        issuer.setMaximumCertificates(1)
        #expect(issuer.statistics().kept == 1)
        #expect(!isMeasured || mallinfo2().uordblks + 300_000 < after)
    }
}
