import HTTPTypes
import Locking
import Logging
import Testing

@testable import PinfoldClient

/// Keeps what it is told, in words.
private final class Notes: EventMonitor {
    let lines = Locked<[String]>([])

    func request(_ task: TaskIdentifier, _ event: RequestEvent) {
        let line =
            switch event {
            case .adapted(let request, _): "adapted \(request.path ?? "")"
            case .sent(let request, let cause): "sent \(request.path ?? "") \(cause)"
            case .received(let response, _): "received \(response.status.code)"
            case .failed(let error, _): "failed \(error.reason)"
            case .redirected(let request, _): "redirected \(request.path ?? "")"
            case .challenged(_, let response): "challenged \(response.status.code)"
            case .retried(_, let wait): "retried \(wait == .zero)"
            }
        lines.withLock { $0.append(line) }
    }

    func session(_ event: SessionEvent) {
        let line =
            switch event {
            case .didResume: "began"
            case .didComplete(let end): "ended \(end.error.map { "\($0.reason)" } ?? "well")"
            default: "other"
            }
        lines.withLock { $0.append(line) }
    }
}

/// Keeps the lines of a log.
private struct LogNotes: LogHandler {
    let lines: Locked<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let more = (event.metadata ?? [:]).filter { !["task", "seconds"].contains($0.key) }
        let words = more.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        lines.withLock {
            $0.append((["\(event.level)", "\(event.message)"] + words).joined(separator: " "))
        }
    }
}

@Suite("An event monitor")
struct EventMonitorTests {
    /// `/moved` redirects to `/secret`, which needs a password, and that to `/busy`; `/lost` has no
    /// response, and `/away` redirects to where no request can be sent.
    private static func service() -> MockTransport {
        let mock = MockTransport()
        let busy = Locked(0)
        mock.on(.get, "http://a.test/moved") { _ in
            TransportResponse(status: .found, fields: [.location: "/secret?password=1"])
        }
        mock.on(.get, "http://a.test/secret") { request in
            request.head.headerFields.contains(.authorization)
                ? TransportResponse(status: .found, fields: [.location: "/busy"])
                : TransportResponse(
                    status: .unauthorized, fields: [.wwwAuthenticate: "Basic realm=\"a\""])
        }
        mock.on(.get, "http://a.test/busy") { _ in
            let number = busy.withLock { number in
                number += 1
                return number
            }
            return TransportResponse(status: number == 1 ? .serviceUnavailable : .ok)
        }
        mock.on(.get, "http://a.test/lost") { _ in throw TransportError.connectionLost }
        mock.on(.get, "http://a.test/away") { _ in
            TransportResponse(status: .found, fields: [.location: "ftp://b.test/?password=1"])
        }
        return mock
    }

    /// The session's end is its monitors' last event.
    private func use(_ monitor: any EventMonitor, path: String) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.transport = Self.service()
        configuration.eventMonitors = [monitor]
        configuration.retries = RetryPolicy(
            maximumAttempts: 2, firstDelayMilliseconds: 0, maximumElapsedMilliseconds: 3_600_000)
        configuration.interceptor = Adapter { request, _ in
            var request = request
            request.headerFields[.accept] = "text/plain"
            return request
        }
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        session.credentials.set(
            Credential(user: "user", password: "secret"),
            for: try ProtectionSpace("http://a.test/", realm: "a"))
        let events = session.events()
        _ = try? await session.data(for: try HTTPRequest(.get, "http://a.test\(path)"))
        session.invalidate()
        for await _ in events {}
        // Handlers run in their order, so that this one is the last.
        await withCheckedContinuation { continuation in
            session.callbacks.run { continuation.resume() }
        }
    }

    @Test func `is told of every step, in order`() async throws {
        let notes = Notes()
        try await use(notes, path: "/moved")
        let expected = [
            "began", "adapted /moved", "sent /moved task", "received 302",
            "redirected /secret?password=1", "adapted /secret?password=1",
            "sent /secret?password=1 redirect", "received 401", "challenged 401",
            "adapted /secret?password=1", "sent /secret?password=1 challenge", "received 302",
            "redirected /busy", "adapted /busy", "sent /busy redirect", "received 503",
            "retried true", "adapted /busy", "sent /busy retry", "received 200", "ended well",
            "other",
        ]
        #expect(notes.lines.withLock { $0 } == expected)
    }

    @Test func `is told of failures`() async throws {
        let notes = Notes()
        try await use(notes, path: "/lost")
        let expected = [
            "began", "adapted /lost", "sent /lost task", "failed connectionLost", "retried true",
            "adapted /lost", "sent /lost retry", "failed connectionLost", "ended connectionLost",
            "other",
        ]
        #expect(notes.lines.withLock { $0 } == expected)
    }

    @Test func `that logs says what happens, and no secrets`() async throws {
        let lines = Locked<[String]>([])
        let logger = Logger(label: "test") { _ in LogNotes(lines: lines) }
        try await use(LoggingEventMonitor(logger), path: "/moved")
        try await use(LoggingEventMonitor(logger), path: "/lost")
        try await use(LoggingEventMonitor(logger), path: "/away")
        let found = lines.withLock { $0 }
        #expect(
            found.contains(
                "debug request sent cause=redirect method=GET url=http://a.test/secret"))
        #expect(
            found.contains(
                "debug challenge answered method=GET status=401 url=http://a.test/secret"))
        #expect(
            found.contains(
                "info task complete attempts=5 method=GET status=200 url=http://a.test/busy"))
        #expect(found.contains { $0.hasPrefix("warning task failed attempts=2 method=GET") })
        #expect(
            found.contains(
                "warning task failed attempts=1 method=GET reason=redirectRefused status=302 "
                    + "url=http://a.test/away"))
        #expect(!found.contains { $0.contains("password") || $0.contains("dXNlc") })
    }

    @Test func `that logs explains errors, which may quote queries, only on request`()
        async throws
    {
        let lines = Locked<[String]>([])
        let logger = Logger(label: "test") { _ in LogNotes(lines: lines) }
        try await use(LoggingEventMonitor(logger, showsQueries: true), path: "/away")
        let explained = lines.withLock { lines in
            lines.filter { $0.contains("error=the redirect to ftp://b.test/?password=1 is not to") }
        }
        #expect(explained.count == 1)
    }

    @Test func `that logs at a higher level does without the steps`() async throws {
        let lines = Locked<[String]>([])
        let logger = Logger(label: "test") { _ in LogNotes(lines: lines, logLevel: .info) }
        try await use(LoggingEventMonitor(logger, showsQueries: true), path: "/secret?password=1")
        let found = lines.withLock { $0 }
        #expect(found.count == 1)
        #expect(found.first?.hasSuffix("url=http://a.test/busy") == true)
    }
}
