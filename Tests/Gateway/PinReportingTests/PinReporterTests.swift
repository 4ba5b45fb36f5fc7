import CLinux
import EventLoop
import HTTPCore
import Locking
import PinfoldResolver
import PinfoldTLS
import TestSupport
import Testing
import Threads

@testable import PinReporting

@Suite("Every report that was accepted") struct PinReporterTests {
    private let folder = TemporaryFolder()

    private var path: String { folder.file("reports") }

    /// Reports in files.
    private func onDisk() throws -> Int {
        try ReportFolder.names(in: path).count { ReportFile.created(name: $0) != nil }
    }

    private func reporter(
        _ policies: [ReportPolicy], onEvent: @escaping @Sendable (ReportEvent) -> Void = { _ in }
    ) throws -> PinReporter {
        var options = ResolverOptions()
        options.servers = .list([try #require(Endpoint("127.0.0.1:9"))])
        return try PinReporter(
            folder: path, resolver: try Resolver(options: options),
            settings: try settings(policies), onEvent: onEvent)
    }

    private func settings(_ policies: [ReportPolicy]) throws -> PinReporter.Settings {
        PinReporter.Settings(
            policies: Dictionary(uniqueKeysWithValues: policies.map { ($0.pinset.name, $0) }),
            pins: [:], context: try TLSClientContext(roots: try TrustRoots([])))
    }

    /// Has a failure reported, or counted.
    private func fail(_ reporter: PinReporter, _ policy: ReportPolicy, host: String) {
        var subject = subject(host: host)
        subject.policy = policy
        guard reporter.admits(subject, time: 1, now: 1) else { return }
        reporter.submit(report(pinset: policy.pinset.name, host: host), for: subject)
    }

    /// What was accepted, and what became of it except for what is on disk.
    private func sums(_ reporter: PinReporter) -> (accepted: UInt64, over: UInt64) {
        let found = reporter.statistics
        let results: [ReportResult] = [
            .delivered, .full, .rejected, .expired, .withdrawn, .damaged,
        ]
        return (
            found.accepted, results.reduce(found.lost) { $0 + (found.counts[$1] ?? 0) }
        )
    }

    /// The events of a run are chosen by its seed.
    @Test(arguments: UInt64(1)...24)
    func `is delivered, on disk, or counted by the reason why not`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let takers = try [204, 400, 500].map { try Taker(status: $0) }
        let gone = try Taker(status: 204)
        gone.end()
        let policies = (takers + [gone]).enumerated().map { policy("p\($0)", port: $1.port) }
        let isUsable = random.next() % 3 > 0
        if !isUsable { try folder.write("no folder", to: "reports") }
        let lost = Locked(0)
        let reporter = try reporter(policies) { event in
            if case .notKept(let count) = event { lost.withLock { $0 += count } }
        }
        for number in 0..<Int(random.next() % 160) {
            switch random.next() % 20 {
            case 0: reporter.configure(try settings(Array(policies.shuffled(using: &random)[1...])))
            case 1: reporter.configure(try settings(policies))
            default:
                // The same host is the same failure, which is counted.
                let host = "h\(random.next() % 8 == 0 ? 0 : number)"
                fail(reporter, policies[Int(random.next() % 4)], host: host)
            }
        }
        reporter.close(withinMilliseconds: 60_000)
        let (accepted, over) = sums(reporter)
        let left = isUsable ? try onDisk() : 0
        #expect(accepted == over + UInt64(left))
        #expect(reporter.statistics.lost == UInt64(lost.withLock { $0 }))
        // What arrives after the end is lost, and counted as such.
        fail(reporter, policies[0], host: "late")
        #expect(sums(reporter) == (accepted + 1, over + 1))
        for taker in takers { taker.end() }
    }

    @Test func `is finished or waits depending on its server's response`() throws {
        let takers = try [204, 400, 500].map { try Taker(status: $0) }
        let policies = takers.enumerated().map { policy("p\($0)", port: $1.port) }
        let events = Monitor<[ReportEvent]>([])
        let reporter = try reporter(policies) { event in
            events.withLock { $0.append(event) }
            events.signal()
        }
        for policy in policies { fail(reporter, policy, host: "h") }
        events.wait { $0.count >= 3 ? .done(()) : .signal }
        reporter.close(withinMilliseconds: 60_000)
        let counts = reporter.statistics.counts
        #expect(counts[.delivered] == 1)
        #expect(counts[.rejected] == 1)
        #expect(try #require(counts[.retried]) >= 1)
        #expect(try onDisk() == 1)
        #expect(sums(reporter) == (3, 2))
        for taker in takers { taker.end() }
    }

    @Test func `is lost if it cannot be saved to a folder before the end`() throws {
        try folder.write("no folder", to: "reports")
        let gone = try Taker(status: 204)
        gone.end()
        let policy = policy("p", port: gone.port)
        let reporter = try reporter([policy])
        for number in 0..<3 { fail(reporter, policy, host: "h\(number % 2)") }
        reporter.close(withinMilliseconds: 60_000)
        // Two, and one made from what was counted.
        #expect(reporter.statistics.accepted == 3)
        #expect(reporter.statistics.lost == 3)
    }

    @Test func `is found again by the next process`() throws {
        let gone = try Taker(status: 204)
        gone.end()
        let policy = policy("p", port: gone.port)
        let first = try reporter([policy])
        for number in 0..<5 { fail(first, policy, host: "h\(number)") }
        first.close(withinMilliseconds: 60_000)
        #expect(try onDisk() == 5)
        try folder.write("half", to: "reports/0000000000000001-00000001.report.1.unfinished")
        let second = try reporter([])
        second.close(withinMilliseconds: 60_000)
        #expect(second.statistics.accepted == 6)
        #expect(second.statistics.counts[.damaged] == 1)
        #expect(sums(second).over + UInt64(try onDisk()) == 6)
    }
}

/// A server that gives every request the same response.
private final class Taker: Sendable {
    let port: UInt16
    private let listener: Int32
    private let thread: Thread

    init(status: Int) throws {
        let listener = try Sockets.listen(on: try #require(Endpoint("127.0.0.1:0")))
        self.listener = listener
        port = try #require(Sockets.localEndpoint(listener)).port
        thread = try Thread(name: "taker") {
            var wanted = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            while poll(&wanted, 1, -1) >= 0, wanted.revents & Int16(POLLHUP) == 0 {
                let connection = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
                guard connection >= 0 else { continue }
                Self.answer(connection, status)
                close(connection)
            }
        }
    }

    /// Reads a request, which ends with its JSON, and responds to it.
    private static func answer(_ connection: Int32, _ status: Int) {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.last != UInt8(ascii: "}") {
            let count = read(connection, &part, part.count)
            guard count > 0 else { return }
            bytes += part[..<count]
        }
        let text = "HTTP/1.1 \(status) Answer\r\nContent-Length: 0\r\n\r\n"
        _ = Array(text.utf8).withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
    }

    /// Closes it: connections are refused from now on.
    func end() {
        shutdown(listener, Int32(SHUT_RDWR))
        thread.join()
        close(listener)
    }
}
