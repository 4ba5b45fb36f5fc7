public import CoreMetrics
import HTTPTypes
import Locking

/// Counts and times the requests of a session's tasks with swift-metrics, in the metrics that the
/// program has bootstrapped.
///
///     configuration.eventMonitors = [MetricsEventMonitor()]
///
/// | metric | kind | dimensions |
/// |---|---|---|
/// | `http.client.request.duration` | timer, for each request | method, status or error |
/// | `http.client.request.body.size` | recorder, in bytes | method |
/// | `http.client.response.body.size` | recorder, in bytes | method |
/// | `pinfold.client.tasks` | counter, at a task's end | method, `outcome` |
/// | `pinfold.client.events.dropped` | counter | |
///
/// Names and dimensions are those of OpenTelemetry where it has some: `http.request.method` is
/// `_OTHER` for a method outside the standards; a request has `http.response.status_code`, or
/// `error.type` if there was no response. `outcome` is `complete`, or the token of an error
/// (``ClientError/token``). There is no dimension of servers, whose number has no bound.
public struct MetricsEventMonitor: EventMonitor {
    private let meters: Meters

    /// Creates a monitor.
    ///
    /// - Parameter factory: Makes the metrics; by default, that of the program. If it has none, the
    ///   monitor does nothing.
    public init(factory: any MetricsFactory = MetricsSystem.factory) {
        meters = Meters(factory)
    }

    public func session(_ event: SessionEvent) {
        guard case .didComplete(let end) = event else { return }
        let method = Meters.name(of: end.request.method)
        let transactions = end.metrics.transactions
        for (index, transaction) in transactions.enumerated() {
            let isLast = index == transactions.count - 1
            meters.record(transaction, method, error: isLast ? end.error?.token : nil)
        }
        meters.count(method, outcome: end.error?.token ?? "complete")
    }

    public func missed(_ events: Int) { meters.dropped.increment(by: Int64(events)) }
}

/// The metrics, each made once.
private final class Meters: Sendable {
    private struct Key: Hashable {
        let label: String
        let method: String
        let result: String
    }

    private let factory: any MetricsFactory
    private let timers = Locked<[Key: Timer]>([:])
    private let sizes = Locked<[Key: Recorder]>([:])
    private let tasks = Locked<[Key: Counter]>([:])
    let dropped: Counter

    private static let methods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
    ]

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        dropped = Counter(label: "pinfold.client.events.dropped", factory: factory)
    }

    /// A method as a dimension: one of a few.
    static func name(of method: HTTPRequest.Method) -> String {
        methods.contains(method.rawValue) ? method.rawValue : "_OTHER"
    }

    func record(_ transaction: TaskMetrics.Transaction, _ method: String, error: String?) {
        let label = "http.client.request.duration"
        // A status has three digits, and an error is one of a list.
        let (name, result) =
            transaction.status.map { ("http.response.status_code", "\($0)") }
            ?? ("error.type", error ?? "_OTHER")
        let timer = timers.withLock { timers in
            timers.made(Key(label: label, method: method, result: result)) {
                Timer(
                    label: label, dimensions: [("http.request.method", method), (name, result)],
                    factory: factory)
            }
        }
        timer.recordMicroseconds(Int64(transaction.total / .microseconds(1)))
        record(transaction.sentBytes, "http.client.request.body.size", method)
        record(transaction.receivedBytes, "http.client.response.body.size", method)
    }

    private func record(_ bytes: Int64, _ label: String, _ method: String) {
        let recorder = sizes.withLock { sizes in
            sizes.made(Key(label: label, method: method, result: "")) {
                Recorder(
                    label: label, dimensions: [("http.request.method", method)],
                    factory: factory)
            }
        }
        recorder.record(bytes)
    }

    func count(_ method: String, outcome: String) {
        let label = "pinfold.client.tasks"
        let counter = tasks.withLock { tasks in
            tasks.made(Key(label: label, method: method, result: outcome)) {
                Counter(
                    label: label,
                    dimensions: [("http.request.method", method), ("outcome", outcome)],
                    factory: factory)
            }
        }
        counter.increment()
    }
}

extension Dictionary {
    /// The value of a key, which is made if there is none.
    fileprivate mutating func made(_ key: Key, _ make: () -> Value) -> Value {
        if let value = self[key] { return value }
        let value = make()
        self[key] = value
        return value
    }
}
